/* SPDX-License-Identifier: MIT */
/* Turns a `frames` stream on standard input, as dbus/frames.md specifies it, into YUV4MPEG2 on standard output, for any player. */
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

struct pool { uint32_t type, version, number, slots; uint64_t slot_bytes; uint32_t flags, reserved; };
struct frame {
    uint32_t type, flags, pool, slot;
    uint64_t sequence, time;
    uint32_t width, height;
    uint64_t luma, blue, red;
    uint32_t stride, chroma_stride, damage_count, reserved, damage[4096];
};

int main(void) {
    const uint8_t *memory = NULL;
    union { uint32_t type; struct pool pool; struct frame frame; } message;
    union { struct cmsghdr header; char bytes[CMSG_SPACE(sizeof(int))]; } control;
    for (size_t bytes = 0, count = 0;;) {
        struct iovec part = { &message, sizeof message };
        struct msghdr header = { .msg_iov = &part, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control };
        if (recvmsg(0, &header, MSG_CMSG_CLOEXEC) <= 0) return 0; /* the end of the stream */
        int descriptor = -1;
        if (header.msg_controllen >= CMSG_LEN(sizeof descriptor)) memcpy(&descriptor, CMSG_DATA(&control.header), sizeof descriptor);
        if (message.type == 1) {
            if (memory) munmap((void *)memory, bytes);
            bytes = message.pool.slots * message.pool.slot_bytes;
            memory = mmap(NULL, bytes, PROT_READ, MAP_SHARED, descriptor, 0);
            if (memory == MAP_FAILED) return perror("mmap"), 1;
        } else if (message.type == 2) {
            const struct frame *frame = &message.frame;
            const uint64_t planes[] = { frame->luma, frame->blue, frame->red };
            if (count == 0) printf("YUV4MPEG2 W%u H%u F30:1 Ip A1:1 C420jpeg XCOLORRANGE=LIMITED\n", frame->width, frame->height);
            puts("FRAME");
            for (int plane = 0; plane < 3; plane++) {
                uint32_t width = plane ? (frame->width + 1) / 2 : frame->width, rows = plane ? (frame->height + 1) / 2 : frame->height;
                const uint8_t *row = memory + planes[plane];
                for (; rows > 0; rows--, row += plane ? frame->chroma_stride : frame->stride) fwrite(row, 1, width, stdout);
            }
            const uint32_t release[] = { 3, frame->pool, frame->slot };
            send(0, release, sizeof release, MSG_NOSIGNAL);
            count++;
        } /* and the pointer, which is not drawn here */
        if (descriptor >= 0) close(descriptor);
    }
}
