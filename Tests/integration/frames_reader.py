# SPDX-License-Identifier: MIT
"""Reads a stream of the format `frames`, as dbus/frames.md specifies it. Run by itself it subscribes to the desktop track and says what comes."""

import mmap
import os
import socket
import struct
import sys
import typing

POOL, FRAME, RELEASE, CURSOR = 1, 2, 3, 4


class Frame(typing.NamedTuple):
    flags: int
    pool: int
    slot: int
    sequence: int
    time: int
    width: int
    height: int
    planes: list
    strides: tuple
    damage: list


class FramesReader:
    def __init__(self, descriptor):
        self.socket = socket.socket(fileno=descriptor)
        self.memory = None

    def receive(self):
        """The next picture, which does not change until it is released; None at the end of the stream."""
        while True:
            message, descriptors, _, _ = socket.recv_fds(self.socket, 4096, 1)
            if not message:
                return None
            if message[0] == CURSOR:
                self.show_cursor(message, descriptors)
            elif message[0] == POOL:
                self.memory = memoryview(mmap.mmap(descriptors[0], 0, prot=mmap.PROT_READ))
                os.close(descriptors[0])
            elif message[0] == FRAME:
                (_, flags, pool, slot, sequence, time, width, height, luma, blue, red, stride, chroma_stride, count,
                 _) = struct.unpack_from("<IIIIQQIIQQQIIII", message)
                rows = (height + 1) // 2
                planes = [self.memory[start:start + length] for start, length in (
                    (luma, stride * height), (blue, chroma_stride * rows), (red, chroma_stride * rows))]
                damage = [struct.unpack_from("<IIII", message, 80 + 16 * index) for index in range(count)]
                return Frame(flags, pool, slot, sequence, time, width, height, planes, (stride, chroma_stride), damage)

    def show_cursor(self, message, descriptors):
        """The pointer has moved. This reader shows none."""
        for descriptor in descriptors:
            os.close(descriptor)

    def release(self, frame):
        """Gives the picture's slot back, unless the stream has ended."""
        try:
            self.socket.send(struct.pack("<III", RELEASE, frame.pool, frame.slot))
        except BrokenPipeError:
            pass


def main():
    import dbus

    track = dbus.SessionBus().get_object("org.vitrine.ScreenShare1", "/org/vitrine/ScreenShare1/track/desktop")
    _, stream = track.Subscribe({"format": "frames"}, dbus_interface="org.vitrine.ScreenShare1.Track")
    reader = FramesReader(stream.take())
    while frame := reader.receive():
        mean = sum(frame.planes[0]) / len(frame.planes[0])
        print(f"{frame.sequence}: {frame.width}x{frame.height}, mean luma {mean:.0f}, changed {frame.damage}", flush=True)
        reader.release(frame)


if __name__ == "__main__":
    sys.exit(main())
