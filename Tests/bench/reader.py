# SPDX-License-Identifier: MIT
"""A WebM stream as its reader gets it: when each packet was whole, which picture it shows, and how close that is to what the source painted."""

import dataclasses
import os
import select
import subprocess
import threading
import time

import numpy

import matroska
import picture
from harness import Recording, program


def is_compared(number):
    """Whether the picture of that number is held against what the source painted: the first, and one of five."""
    return number % 5 == 1


class Reader(Recording):
    """Takes a stream from a descriptor into a file, and notes when how much of it had come."""

    _BLOCK = 1 << 20

    def __init__(self, descriptor, path):
        self._arrivals = []
        self._arrived = 0
        super().__init__(descriptor, path)

    def _took(self, count):
        self._arrived += count
        self._arrivals.append((self._arrived, time.monotonic_ns()))

    @property
    def begun(self):
        """CLOCK_MONOTONIC, ns, of the first byte; None before."""
        return self._arrivals[0][1] if self._arrivals else None

    def packets(self):
        """(CLOCK_MONOTONIC in ns when the last byte of it had come, bytes, whether it is a key frame), one for each picture."""
        found, arrivals = [], iter(self._arrivals)
        size, when = 0, 0
        for block in matroska.read(self.path, may_be_cut=True).blocks:
            while size < block.end:
                size, when = next(arrivals)
            found.append((when, len(block.data), block.is_key))
        return found


class Drain:
    """Reads any number of streams and throws them away."""

    def __init__(self, descriptors):
        self._descriptors = set(descriptors)
        self._poll = select.epoll()
        for descriptor in descriptors:
            self._poll.register(descriptor, select.EPOLLIN)
        self._ends = threading.Event()
        self.sizes = dict.fromkeys(descriptors, 0)
        self._thread = threading.Thread(target=self._read, name="drain", daemon=True)
        self._thread.start()

    def _read(self):
        while not self._ends.is_set():
            for descriptor, _ in self._poll.poll(0.1):
                self.sizes[descriptor] += len(os.read(descriptor, 1 << 20))

    def close(self):
        self._ends.set()
        self._thread.join()
        self._poll.close()
        for descriptor in self._descriptors:
            os.close(descriptor)


@dataclasses.dataclass(frozen=True)
class Delivery:
    """A picture that reached the reader."""

    number: int
    arrived: int
    """CLOCK_MONOTONIC, ns."""
    size: int
    is_key: bool
    psnr: float | None
    """Of the luma, in dB; None where it was not looked at."""


class Unreadable(Exception):
    """A picture does not say which one it is."""


def deliveries(reader, workload, compares=True):
    """What came, in order."""
    found = []
    # Of the packet that the end of the file cuts ffmpeg may show something all the same.
    for luma, (arrived, size, is_key) in zip(_decoded(reader.path, workload.size), reader.packets()):
        number = read_number(luma)
        if number is None:
            raise Unreadable(f"picture {len(found)} of {reader.path.name}")
        sharpness = None
        if compares and is_compared(number):
            sharpness = psnr(luma, Painted.of(workload).luma(number))
        found.append(Delivery(number, arrived, size, is_key, sharpness))
    return found


def _decoded(path, size):
    """The luma of each picture that ffmpeg decodes of a file that ends anywhere."""
    width, height = size
    command = ["ffmpeg", "-v", "quiet", "-i", str(path), "-fps_mode", "passthrough", "-f", "rawvideo", "-pix_fmt", "yuv420p", "-"]
    with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE) as ffmpeg:
        while len(data := ffmpeg.stdout.read(width * height * 3 // 2)) == width * height * 3 // 2:
            yield numpy.frombuffer(data, numpy.uint8, width * height).reshape(height, width)


def read_number(luma):
    """What the bits in an upright picture without bars say its number is; None when they cannot be read. See picture.py."""
    height, width = luma.shape
    words = []
    for row in range(picture.BIT_ROW, picture.BIT_ROW + picture.BIT_ROWS):
        word = 0
        for column in range(picture.BIT_COLUMN, picture.BIT_COLUMN + picture.BITS):
            x, y = int((column + 0.5) * width / picture.COLUMNS), int((row + 0.5) * height / picture.ROWS)
            word = word << 1 | int(luma[y - 4:y + 5, x - 4:x + 5].mean() >= 126)
        words.append(word)
    return words[0] << 16 | words[1] if picture.check(words[:4]) == words[4] else None


class Painted:
    """The pictures of one workload as the source paints them, from a test screen of its own that waits in between; the compared ones are kept."""

    _all = {}

    @classmethod
    def of(cls, workload):
        key = (workload.content, workload.size)
        if key not in cls._all:
            cls._all[key] = cls(*key)
        return cls._all[key]

    def __init__(self, content, size):
        (self._width, self._height), self._count, self._kept = size, 0, {}
        command = [program("vitrine-testscreen"), "--pictures", "1000000", "--workload", content, "--size", f"{self._width}x{self._height}"]
        self._screen = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)

    def luma(self, number):
        """Of a picture that is compared."""
        while self._count < number:
            data = self._screen.stdout.read(self._width * self._height * 4)
            self._count += 1
            if is_compared(self._count):
                self._kept[self._count] = luma_of(numpy.frombuffer(data, numpy.uint8).reshape(self._height, self._width, 4))
        return self._kept[number]

    @classmethod
    def end_all(cls):
        for painted in cls._all.values():
            painted._screen.kill()
            painted._screen.wait()
            painted._screen.stdout.close()
        cls._all.clear()


def luma_of(bgrx):
    """BT.601 in limited range."""
    blue, green, red = (bgrx[:, :, index].astype(numpy.uint16) for index in range(3))
    return ((25 * blue + 129 * green + 66 * red + 128 >> 8) + 16).astype(numpy.uint8)


def psnr(one, other):
    """In dB."""
    difference = one.astype(numpy.int16) - other
    error = float(numpy.mean(numpy.square(difference.astype(numpy.float32))))
    return 99.0 if error == 0 else float(10 * numpy.log10(255 * 255 / error))
