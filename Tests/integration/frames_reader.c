/* SPDX-License-Identifier: MIT */
/* Turns a `frames` stream on standard input, as dbus/frames.md specifies it, into YUV4MPEG2 on standard output, for any player.
 * A program subscribes (Subscribe {format: "frames"}) and starts this with the socket that it got as standard input. In Python:
 *
 *     cc -O2 -o frames_reader frames_reader.c
 *     python3 -c 'import dbus, subprocess; name = "org.vitrine.ScreenShare1"
 *     track = dbus.SessionBus().get_object(name, "/org/vitrine/ScreenShare1/track/desktop")
 *     _, stream = track.Subscribe({"format": "frames"}, dbus_interface=name + ".Track")
 *     subprocess.run(["./frames_reader"], stdin=stream.take())' | ffplay -
 */
#include <stdint.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

union message {
    uint32_t type;
    struct { uint32_t type, version, number, slots; uint64_t slot_bytes; } pool;
    struct { uint32_t type, flags, pool, slot; uint64_t sequence, time; uint32_t width, height; uint64_t planes[3]; uint32_t strides[2]; } frame;
};

int main(void) {
    const uint8_t *memory = NULL;
    union message message;
    struct { struct cmsghdr header; int descriptor; } control;
    for (size_t bytes = 0, count = 0;;) {
        struct iovec part = { &message, sizeof message }; /* The rectangles, which follow, are not looked at. */
        struct msghdr header = { .msg_iov = &part, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control };
        if (recvmsg(0, &header, MSG_CMSG_CLOEXEC) <= 0) return 0; /* The end of the stream. */
        if (message.type == 1) {
            if (memory) munmap((void *)memory, bytes);
            bytes = message.pool.slots * message.pool.slot_bytes;
            memory = mmap(NULL, bytes, PROT_READ, MAP_SHARED, control.descriptor, 0);
            if (memory == MAP_FAILED) return perror("mmap"), 1;
        } else if (message.type == 2) {
            uint32_t width = message.frame.width, height = message.frame.height;
            if (count++ == 0) printf("YUV4MPEG2 W%u H%u F30:1 Ip A1:1 C420jpeg XCOLORRANGE=LIMITED\n", width, height);
            puts("FRAME");
            for (int plane = 0; plane < 3; plane++)
                for (uint32_t row = 0; row < (plane ? (height + 1) / 2 : height); row++)
                    fwrite(memory + message.frame.planes[plane] + row * (size_t)message.frame.strides[plane > 0], 1, plane ? (width + 1) / 2 : width, stdout);
            send(0, (uint32_t[]){ 3, message.frame.pool, message.frame.slot }, 12, MSG_NOSIGNAL);
        } /* What the pointer does is not drawn here. */
        if (header.msg_controllen) close(control.descriptor);
    }
}
