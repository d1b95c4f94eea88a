/* SPDX-License-Identifier: MIT */
/* Linux calls that Swift's Glibc module lacks or cannot import. One line each, no logic. */
#pragma once
#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

static inline int clinux_eventfd(void) { return eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK); }
static inline int clinux_signalfd(const sigset_t *mask) { return signalfd(-1, mask, SFD_CLOEXEC | SFD_NONBLOCK); }
static inline int clinux_memfd_create(const char *name, unsigned int flags) { return (int)syscall(SYS_memfd_create, name, flags); }
static inline int clinux_set_thread_name(const char *name) { return prctl(PR_SET_NAME, name, 0, 0, 0); }
static inline int clinux_set_mmap_threshold(int bytes) { return mallopt(M_MMAP_THRESHOLD, bytes); }
static inline int clinux_trim_heap(void) { return malloc_trim(0); }
static inline int clinux_gettid(void) { return (int)syscall(SYS_gettid); }
static inline int clinux_pipe(int ends[2]) { return (int)syscall(SYS_pipe2, ends, O_CLOEXEC); }
static inline int clinux_datagram_socket(void) { return socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0); }
static inline int clinux_seqpacket_pair(int ends[2]) { return socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends); }
static inline int clinux_unread_bytes(int fd) { int count = 0; return ioctl(fd, 0x5411 /* SIOCOUTQ */, &count) < 0 ? -1 : count; }
static inline int clinux_epoll(void) { return epoll_create1(EPOLL_CLOEXEC); }
static inline int clinux_epoll_add_write_edges(int epoll, int fd) { return epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &(struct epoll_event){.events = EPOLLOUT | EPOLLET}); }
static inline int clinux_epoll_take(int epoll) { return epoll_wait(epoll, &(struct epoll_event){0}, 1, 0); }
static inline int clinux_set_pipe_size(int fd, int bytes) { return fcntl(fd, 1031 /* F_SETPIPE_SZ */, bytes); }
static inline int clinux_get_pipe_size(int fd) { return fcntl(fd, 1032 /* F_GETPIPE_SZ */); }
static inline int clinux_parent_namespace(int fd) { return ioctl(fd, 0xb702 /* NS_GET_PARENT */); }
static inline int clinux_add_seals(int fd, int seals) { return fcntl(fd, 1033 /* F_ADD_SEALS */, seals); }

enum {
    CLINUX_MFD_CLOEXEC = 0x1,
    CLINUX_MFD_ALLOW_SEALING = 0x2,
    CLINUX_SEAL_SEAL = 0x1,
    CLINUX_SEAL_SHRINK = 0x2,
    CLINUX_SEAL_GROW = 0x4,
    CLINUX_SEAL_WRITE = 0x8,
    CLINUX_SEAL_FUTURE_WRITE = 0x10,
};
