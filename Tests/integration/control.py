# SPDX-License-Identifier: MIT
"""vitrinectl while it runs, and the world that the tests of a file run it in. Test files import the fixtures that they use."""

import os
import signal
import subprocess
import threading

import pytest

import picture
from harness import Session, frames, probe, program
from processes import wait_until
from screen import TestScreen

DONE, FAILED, USAGE, CANCELLED, UNAVAILABLE, TIMED_OUT = range(6)


class Program:
    """vitrinectl while it runs; `out` and `err` are what it has written so far."""

    def __init__(self, world, *arguments, **environment):
        self.process = subprocess.Popen(
            [str(program("vitrinectl")), *(str(argument) for argument in arguments)], env={**world.environment, **environment},
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True)
        self._parts = {"out": b"", "err": b""}
        self._threads = [threading.Thread(target=self._read, args=(name, stream), daemon=True)
                         for name, stream in (("out", self.process.stdout), ("err", self.process.stderr))]
        for thread in self._threads:
            thread.start()

    def _read(self, name, stream):
        while block := os.read(stream.fileno(), 1 << 16):
            self._parts[name] += block

    @property
    def out(self):
        return self._parts["out"].decode()

    @property
    def err(self):
        return self._parts["err"].decode()

    @property
    def raw(self):
        return self._parts["out"]

    def wait_for(self, text, seconds=30.0):
        """Waits until it has written this, to either output."""
        wait_until(lambda: text in self.out + self.err or self.process.poll() is not None, f"vitrinectl saying {text!r}", seconds)
        if self.process.poll() is not None:
            self._join()
        assert text in self.out + self.err, f"it ended with {self.process.returncode} after: {self.out}{self.err}"

    def send(self, number):
        self.process.send_signal(number)

    def end(self, seconds=30.0):
        """Waits for the end by itself and returns the exit code."""
        self.process.wait(seconds)
        self._join()
        return self.process.returncode

    def _join(self):
        for thread in self._threads:
            thread.join(10)

    def close(self):
        if self.process.poll() is None:
            # With what it has started.
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        self._join()
        self.process.stdout.close()
        self.process.stderr.close()


@pytest.fixture(scope="module")
def world():
    """One world for most of the file; nothing is shared in it when a test begins."""
    with Session() as session:
        yield session


@pytest.fixture
def screen(world):
    screen = TestScreen(world.new_client())
    yield screen
    desktop = world.agent(world.client).desktop
    desktop.mute(False)
    desktop.stop_capture()
    desktop.set("Preset", "s", "h1080p")
    desktop.set("Crop", "(iiuu)", (0, 0, 0, 0))
    desktop.set("Masks", "a(iiuu)", [])
    screen.end_session()
    screen.wait_until("PickersOpen", 0)
    screen.reset()


@pytest.fixture
def desktop(world, screen):
    """The desktop track, as a client that watches sees it."""
    return world.agent().desktop


@pytest.fixture
def ctl(world, screen):
    """Starts vitrinectl in the world."""
    running = []

    def start(*arguments, **environment):
        running.append(Program(world, *arguments, **environment))
        return running[-1]

    yield start
    for one in running:
        one.close()


def share(desktop, **given):
    """Shares by another client than vitrinectl."""
    return desktop.agent.set_screen_share(True, wait=True, **given)


def rising(path):
    """The numbers in a file's pictures, which must rise; ffprobe and ffmpeg must not complain."""
    probe(path)
    numbers = picture.numbers(frames(path))
    assert numbers and all(earlier <= later for earlier, later in zip(numbers, numbers[1:])), numbers
    return numbers


def length(path):
    times = [float(packet["pts_time"]) for packet in probe(path)["packets"]]
    return times[-1] - times[0]
