# SPDX-License-Identifier: MIT
"""Reads a stream of the format `frames`, as dbus/frames.md specifies it. Run by itself it subscribes to the desktop track and says what comes."""
import collections, contextlib, mmap, os, socket, struct

POOL, FRAME, RELEASE, CURSOR = 1, 2, 3, 4
Frame = collections.namedtuple("Frame", "flags pool slot sequence time width height planes strides damage")

class FramesReader:
    def __init__(self, descriptor):
        self.socket, self.memory = socket.socket(fileno=descriptor), None

    def receive(self):
        """The next picture, which does not change until it is released; None at the end of the stream."""
        while (received := socket.recv_fds(self.socket, 4096, 1))[0]:
            message, descriptors, *_ = received
            if message[0] == POOL:
                self.memory = memoryview(mmap.mmap(descriptors[0], 0, prot=mmap.PROT_READ))
            elif message[0] == CURSOR:
                self.show_cursor(message, descriptors)
            for descriptor in descriptors:
                os.close(descriptor)
            if message[0] == FRAME:
                *head, width, height, luma, blue, red, stride, chroma, count = struct.unpack_from("<4xIIIQQIIQQQIII", message)
                sizes = stride * height, chroma * ((height + 1) // 2), chroma * ((height + 1) // 2)
                planes = [self.memory[start:start + size] for start, size in zip((luma, blue, red), sizes)]
                return Frame(*head, width, height, planes, (stride, chroma), list(struct.iter_unpack("<IIII", message[80:80 + 16 * count])))

    def show_cursor(self, message, descriptors):
        """The pointer has moved, or has another bitmap, which is the descriptor. This reader shows none."""

    def release(self, frame):
        """Gives the picture's slot back, unless the stream has ended."""
        with contextlib.suppress(BrokenPipeError):
            self.socket.send(struct.pack("<III", RELEASE, frame.pool, frame.slot))

if __name__ == "__main__":
    import dbus
    track = dbus.SessionBus().get_object("org.vitrine.ScreenShare1", "/org/vitrine/ScreenShare1/track/desktop")
    reader = FramesReader(track.Subscribe({"format": "frames"}, dbus_interface="org.vitrine.ScreenShare1.Track")[1].take())
    while frame := reader.receive():
        luma = sum(frame.planes[0]) // len(frame.planes[0])
        print(f"{frame.sequence}: {frame.width}x{frame.height}, mean luma {luma}, changed {frame.damage}", flush=True)
        reader.release(frame)
