# SPDX-License-Identifier: MIT
"""Streams of the format `frames`: pictures in shared memory, read by the example readers in Python and C against the real pipeline."""

import errno
import fcntl
import itertools
import mmap
import os
import random
import resource
import select
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy
import pytest

import held
import picture
from contract import refused
from frames_reader import CURSOR, FramesReader
from harness import ERROR, SERVICE, SUBSCRIPTION, frames
from processes import wait_until
from screen import TestScreen

HERE = Path(__file__).parent
SLOTS = 4
PLACEHOLDER = 1
# Seconds after which what does not come is a failure.
PATIENCE = 60


class Reader(FramesReader):
    """The example reader, which keeps all descriptors, and copies what it is shown."""

    def __init__(self, subscription):
        super().__init__(subscription.take())
        self.socket.settimeout(PATIENCE)
        self.subscription = subscription
        self.cursors = []

    def show_cursor(self, message, descriptors):
        """Keeps each place of the pointer, as (visible, (x, y, width, height), hotspot, bitmap), the bitmap being what came with it."""
        _, flags, *area, hotspot_x, hotspot_y, width, height, stride, _ = struct.unpack("<IIiiIIIIIIII", message)
        bitmap = None
        assert bool(flags & 2) == bool(descriptors)
        for descriptor in descriptors:
            assert fcntl.fcntl(descriptor, 1034) == 0x1 | 0x2 | 0x4 | 0x8
            bitmap = numpy.frombuffer(os.pread(descriptor, stride * height, 0), numpy.uint8).reshape(height, width, 4)
        self.cursors.append((bool(flags & 1), tuple(area), (hotspot_x, hotspot_y), bitmap))

    def take_cursor(self):
        """Reads a message about the pointer."""
        message, descriptors, _, _ = socket.recv_fds(self.socket, 4096, 1)
        assert message[0] == CURSOR, message
        self.show_cursor(message, descriptors)
        for descriptor in descriptors:
            os.close(descriptor)

    def wait_for_cursor(self, count):
        """Waits for a message about the pointer; there must be no picture."""
        while len(self.cursors) < count:
            self.take_cursor()
        return self.cursors[-1]

    @property
    def shows_cursor(self):
        return bool(self.cursors) and self.cursors[-1][0]

    def has_picture(self, seconds=0.0):
        """Whether there is a picture, or the end, or will be within that time. What is said of the pointer meanwhile is read."""
        deadline = time.monotonic() + seconds
        while select.select([self.socket], [], [], max(deadline - time.monotonic(), 0))[0]:
            kind = self.socket.recv(1, socket.MSG_PEEK)
            if kind != bytes([CURSOR]):
                return True
            self.take_cursor()
        return False

    def take(self):
        """The next frame as (frame, planes as arrays that are copies), released at once; None at the end."""
        frame = self.receive()
        if frame is None:
            return None
        planes = copies(frame)
        self.release(frame)
        return frame, planes

    def take_until(self, condition):
        """Takes frames until one meets a condition, which gets frame and planes."""
        for taken in self.within_patience(self.take):
            assert taken, "the stream has ended"
            if condition(*taken):
                return taken

    def take_all(self):
        """What is left of a stream that ends."""
        return list(itertools.takewhile(bool, self.within_patience(self.take)))

    def take_rest(self):
        """What was on its way when nothing more was to come."""
        return list(itertools.takewhile(bool, self.within_patience(lambda: self.has_picture(0.3) and self.take())))

    @staticmethod
    def within_patience(read):
        """What `read` gives, again and again; fails when that does not end."""
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            yield read()
        raise AssertionError(f"not within {PATIENCE} s")

    def close(self):
        self.socket.close()


def copies(frame):
    half = (frame.width + 1) // 2
    planes = []
    for plane, stride, width in zip(frame.planes, (frame.strides[0], frame.strides[1], frame.strides[1]), (frame.width, half, half)):
        planes.append(numpy.frombuffer(plane, numpy.uint8).reshape(-1, stride)[:, :width].copy())
    return planes


def reading(planes):
    return picture.read(picture.rgb(*planes))


def number(planes):
    return reading(planes).number


def covered(frame):
    """Where a frame may have changed, as an array of truth."""
    mask = numpy.zeros((frame.height, frame.width), bool)
    for x, y, width, height in frame.damage:
        mask[y:y + height, x:x + width] = True
    return mask


def changed(one, other):
    """Where two pictures differ, chroma included."""
    height, width = one[0].shape
    mask = one[0] != other[0]
    for first, second in zip(one[1:], other[1:]):
        mask |= numpy.repeat(numpy.repeat(first != second, 2, 0), 2, 1)[:height, :width]
    return mask


def first_lines(child, count):
    """So many lines of what a program says, which is ended when they do not come."""
    alarm = threading.Timer(PATIENCE, child.kill)
    alarm.start()
    try:
        return [child.stdout.readline() for _ in range(count)]
    finally:
        alarm.cancel()


def agent_memory(session):
    """The agent's own pages, those of shared memory included."""
    return held.memory(session.agent_process.pid, "RssAnon", "RssShmem")


def agent_descriptors(session):
    return len(held.descriptors(session.agent_process.pid))


def pools_of(session):
    """How many pools the agent has mapped."""
    return Path(f"/proc/{session.agent_process.pid}/maps").read_text().count("vitrine-frames")


@pytest.fixture
def read(track):
    """`read(...)` subscribes and returns a reader; all are closed after the test."""
    readers = []

    def subscribe(on=None, **options):
        readers.append(Reader((on or track).subscribe(format="frames", **options)))
        return readers[-1]

    yield subscribe
    for reader in readers:
        reader.close()
    # An encoder that rests would keep its size for the next test.
    track.wait_until("Subscriptions", [])


# Pictures


def test_pictures_are_those_of_the_screen(track, screen, read):
    """Numbers in the pictures rise, their times and sequence too, the damage covers all that differs from the picture before."""
    reader = read()
    assert not reader.has_picture(0.3), "nothing comes before the first picture"
    track.start_broadcast(wait=True)
    taken = [reader.take() for _ in range(40)]
    assert reader.subscription.get("Size") == (640, 360)
    assert (reader.subscription.get("Format"), reader.subscription.get("Codec")) == ("frames", "")
    readings = [reading(planes) for _, planes in taken]
    assert all((one.size, one.orientation, one.channels) == ((640, 360), "normal", "rgb") for one in readings)
    assert all(one.number < next.number for one, next in zip(readings, readings[1:]))
    shown = [frame for frame, _ in taken]
    assert shown[0].sequence == 1
    assert all(one.sequence < next.sequence and one.time < next.time for one, next in zip(shown, shown[1:]))
    assert shown[0].time // 1000 == reader.subscription.get("Epoch")
    assert shown[0].damage == [(0, 0, 640, 360)] and {frame.flags for frame in shown} == {0}
    assert {frame.pool for frame in shown} == {1} and {frame.slot for frame in shown} <= set(range(SLOTS))
    for (_, before), (frame, planes) in zip(taken, taken[1:]):
        assert not (changed(before, planes) & ~covered(frame)).any()
    statistics = reader.subscription.statistics
    assert statistics["sent"] >= 40 and statistics["bytes"] > 40 * 640 * 360 * 3 // 2 and 1 <= statistics["keyframes"] < 5
    assert statistics["sent"] + statistics["coalesced"] >= shown[-1].sequence


def test_colours(track, screen, read):
    """Pure colours on the screen are those of BT.601, limited range, sample by sample."""
    reader = read()
    track.start_broadcast(wait=True)
    _, planes = reader.take()
    golden = {"red": (81, 90, 240), "green": (145, 54, 34), "blue": (41, 240, 110), "white": (235, 128, 128)}
    for column, row, name in picture.CORNERS:
        x, y = (column + 1) * 640 // picture.COLUMNS, (row + 1) * 360 // picture.ROWS
        found = (planes[0][y, x], planes[1][y // 2, x // 2], planes[2][y // 2, x // 2])
        assert all(abs(int(one) - wanted) <= 1 for one, wanted in zip(found, golden[name])), (name, found)


def test_damage_of_typing_is_small(track, screen, read):
    """Where one line of text changes the rectangles are a small part of the picture, and cover each change."""
    screen.configure(size=(1280, 720), workload="typing", fps=10)
    reader = read()
    track.start_broadcast(wait=True)
    _, before = reader.take()
    shares = []
    for _ in range(15):
        frame, planes = reader.take()
        assert not (changed(before, planes) & ~covered(frame)).any()
        shares.append(covered(frame).mean())
        before = planes
    # The frame's number and its digits change too.
    assert sorted(shares)[len(shares) // 2] < 0.2, shares


def test_limits_and_shape(track, screen, read):
    """`max-size` and `fps` count; the size stays, another source's picture is scaled into it with bars around."""
    small, whole = read(max_size=(320, 320), fps=5), read()
    track.start_broadcast(wait=True)
    taken = [small.take() for _ in range(6)]
    assert {(frame.width, frame.height) for frame, _ in taken} == {(320, 180)}
    times = [frame.time for frame, _ in taken]
    assert (times[-1] - times[1]) / 4 > 170e6, times
    whole.take()
    for size in ((320, 400), (1000, 200), (640, 360)):
        screen.set_size(*size)
        frame, planes = whole.take_until(lambda _, planes: (one := reading(planes)) and one.size == size)
        assert (frame.width, frame.height, frame.pool) == (640, 360, 1)
        x, y, width, height = reading(planes).box
        assert abs(width / height / (size[0] / size[1]) - 1) < 0.06
        assert abs((640 - width) / 2 - x) <= 4 and abs((360 - height) / 2 - y) <= 4


def test_masks(track, screen, read):
    """Masks that are written on a still screen: the frame that is asked for after the reply, whole, has nothing of what they cover; nor has a late one."""
    screen.configure(manual=True)
    reader = read(fps=1)
    track.start_broadcast(wait=True)
    _, planes = reader.take()
    assert planes[0][180:300].max() > 100
    track.set("Masks", "a(iiuu)", [(0, 180, 640, 120)])
    reader.subscription.call("RequestKeyFrame")
    frame, planes = reader.take_until(lambda frame, _: frame.damage == [(0, 0, 640, 360)])
    assert planes[0][180:300].max() == 16 and planes[0][300:].max() > 100
    _, planes = read().take()
    assert planes[0][180:300].max() == 16


def test_another_source(track, screen, read):
    """SwitchSource: frames keep their size, times and sequence go on, and after the new source's first frame none is of the old one."""
    screen.configure(fps=60)
    reader = read()
    track.start_broadcast(wait=True)
    taken = [reader.take() for _ in range(5)]
    screen.configure(next_size=(800, 450))
    track.switch_source(wait=True)
    is_new = lambda _, planes: reading(planes).size == (800, 450)
    taken.append(reader.take_until(is_new))
    taken += [reader.take() for _ in range(20)]
    assert all(is_new(*one) for one in taken[5:])
    assert {(frame.width, frame.height) for frame, _ in taken} == {(640, 360)}
    assert all(one.time < next.time and one.sequence < next.sequence for (one, _), (next, _) in zip(taken, taken[1:]))


def test_late_subscriber_and_request(track, screen, read):
    """Of a still screen a new reader gets the picture at once, and whoever asks for a key frame gets it once more, whole. Then nothing comes."""
    screen.configure(workload="still")
    track.start_broadcast(wait=True)
    first = read()
    shown = number(first.take()[1])
    for _ in range(3):
        late = read()
        frame, planes = late.take()
        assert number(planes) == shown and frame.damage == [(0, 0, 640, 360)]
        late.subscription.call("RequestKeyFrame")
        frame, planes = late.take()
        assert number(planes) == shown and frame.damage == [(0, 0, 640, 360)] and frame.sequence == 2
        assert late.subscription.statistics["keyframes"] == 2
    assert not first.has_picture(0.5)


def test_pointer_beside_the_pictures(me, world, screen):
    """cursor=metadata: the pointer's places and shapes are messages of their own, over a still screen and without a slot; pictures are without it."""
    screen.configure(
        size=(640, 360), manual=True, cursor_size=(24, 24), cursor_hotspot=(6, 9), cursor_position=(300, 200), cursor_shape=0, cursor_state="away")
    track = me.create_track(cursor="metadata")
    track.start_capture()
    track.start_broadcast(wait=True)
    reader, half = Reader(track.subscribe(format="frames")), Reader(track.subscribe(format="frames", max_size=(320, 320)))
    frame = reader.receive()
    plain = copies(frame)
    half.take()
    screen.configure(cursor_state="shown")
    visible, area, hotspot, bitmap = reader.wait_for_cursor(1)
    assert (visible, area, hotspot) == (True, (294, 191, 24, 24), (6, 9))
    # Half of the square is the pointer, in premultiplied blue, green, red, alpha; the other half is nothing.
    assert bitmap.shape == (24, 24, 4) and (bitmap[20, 2] == (0, 0, 255, 255)).all() and not bitmap[2, 20].any()
    assert half.wait_for_cursor(1)[:3] == (True, (147, 95, 12, 12), (6, 9))
    for index in range(10):
        screen.configure(cursor_position=(10 + index, 20))
        visible, area, _, bitmap = reader.wait_for_cursor(2 + index)
        assert (visible, area) == (True, (4 + index, 11, 24, 24)) and bitmap is None
    screen.configure(cursor_shape=2)
    assert (reader.wait_for_cursor(12)[3][20, 2] == (255, 0, 0, 255)).all()
    screen.configure(cursor_state="hidden")
    assert reader.wait_for_cursor(13)[0] is False
    reader.release(frame)
    screen.push_frames(1)
    frame, planes = reader.take()
    assert frame.sequence == 2 and reading(plain).number < number(planes)
    # A reader that comes late gets picture and pointer, and one whose track is muted has none.
    screen.configure(cursor_state="shown")
    late = Reader(track.subscribe(format="frames"))
    assert number(late.take()[1]) == number(planes)
    visible, area, _, bitmap = late.wait_for_cursor(1)
    assert (visible, area) == (True, (13, 11, 24, 24)) and bitmap is not None
    track.mute()
    assert late.wait_for_cursor(2)[0] is False
    for one in (reader, half, late):
        one.close()
    track.mute(False)
    track.wait_until("Subscriptions", [])


# Life


@pytest.mark.parametrize("cursor", ["embedded", "metadata"])
def test_stop_start_mute_and_pause(me, screen, read, cursor):
    """The socket outlives stopping, starting, muting and pausing; each time later pictures come in another pool, and all times grow.

    A pointer beside the pictures is gone whenever there is none, and when the reader is paused nothing more is said of it.
    """
    screen.configure(size=(640, 360))
    track = me.create_track(cursor=cursor)
    track.start_capture()
    reader = read(track)
    sequence, time_before, pool = 0, 0, 1

    def check(frame):
        nonlocal sequence, time_before
        assert frame.sequence > sequence and frame.time > time_before
        sequence, time_before = frame.sequence, frame.time

    for _ in range(2):
        track.start_broadcast(wait=True)
        for _ in range(5):
            frame, planes = reader.take_until(lambda frame, _: check(frame) or frame.flags == 0)
            assert frame.pool == pool and reading(planes)
        track.stop_broadcast()
        frame, planes = reader.take_until(lambda frame, _: check(frame) or frame.flags == PLACEHOLDER)
        pool += 1
        assert frame.pool == pool and reading(planes) is None and frame.damage == [(0, 0, 640, 360)]
        assert not reader.shows_cursor
    track.start_broadcast(wait=True)
    reader.take_until(lambda frame, _: check(frame) or frame.flags == 0)
    track.mute()
    frame, _ = reader.take_until(lambda frame, _: check(frame) or frame.flags == PLACEHOLDER)
    pool += 1
    assert frame.pool == pool and not reader.shows_cursor
    first = screen.streams[0]["number"]
    screen.wait_until("Streams", lambda streams: streams[0]["number"] > first + 30)
    count = len(reader.cursors)
    assert not reader.has_picture() and len(reader.cursors) == count
    track.mute(False)
    frame, planes = reader.take()
    check(frame)
    assert number(planes) > first + 20 and frame.pool == pool
    reader.subscription.set("Paused", "b", True)
    # What the writer had in hand when it was told.
    for frame, _ in reader.take_rest():
        check(frame)
    assert bool(reader.cursors) == (cursor == "metadata")
    count, first = len(reader.cursors), screen.streams[0]["number"]
    screen.wait_until("Streams", lambda streams: streams[0]["number"] > first + 10)
    assert not reader.has_picture() and len(reader.cursors) == count
    reader.subscription.set("Paused", "b", False)
    frame, _ = reader.take()
    check(frame)
    assert frame.pool == pool + 1 and frame.damage == [(0, 0, 640, 360)]
    reader.subscription.unsubscribe()
    *rest, (last, _) = reader.take_all()
    assert last.damage == [] and last.flags == 0
    for frame, _ in [*rest, (last, None)]:
        check(frame)


@pytest.mark.parametrize("placeholder", ["hold", "end"])
def test_placeholders(track, screen, read, placeholder):
    """`hold` sends nothing while nothing is broadcast; `end` ends the stream with the broadcast, after the last picture once more."""
    reader = read(placeholder=placeholder)
    track.start_broadcast(wait=True)
    for _ in range(3):
        reader.take()
    track.stop_broadcast()
    if placeholder == "end":
        taken = reader.take_all()
        assert taken[-1][0].damage == [] and {frame.flags for frame, _ in taken} == {0}
        assert track.get("Subscriptions") == []
        return
    assert all(frame.flags == 0 for frame, _ in reader.take_rest())
    track.start_broadcast(wait=True)
    frame, _ = reader.take()
    assert (frame.flags, frame.pool) == (0, 2)


def test_memory_of_before_shows_nothing_later(me, world, screen):
    """What a reader keeps stays as it was when it is muted, unsubscribed, disallowed: later pictures are in other memory, the agent lets go of this."""
    screen.configure(size=(640, 360))
    own = me.create_track()
    own.start_capture()
    client = world.agent()
    own.allow(client.unique_name)
    readers = [Reader(client.track(own.path).subscribe(format="frames")) for _ in range(2)]
    witness = Reader(own.subscribe(format="frames"))
    own.start_broadcast(wait=True)
    kept = []
    for reader in readers:
        reader.take_until(lambda frame, _: frame.sequence >= 5)
    own.mute()
    old = [reader.memory for reader in readers]
    for reader in readers:
        reader.take_until(lambda frame, _: frame.flags == PLACEHOLDER)
    # From here on nothing more may come in it.
    kept += [(memory, bytes(memory)) for memory in old]
    # The witness has not read what it was sent: until it does there is no new memory for it.
    wait_until(lambda: pools_of(world) == 2, "nothing but the newest pool of each who reads")
    own.mute(False)
    for reader in readers:
        reader.take_until(lambda frame, _: frame.sequence >= 10)
    readers[0].subscription.unsubscribe()
    readers[0].take_all()
    own.disallow(client.unique_name)
    readers[1].take_all()
    kept += [(reader.memory, bytes(reader.memory)) for reader in readers]
    before = witness.take()[0].sequence
    witness.take_until(lambda frame, _: frame.sequence >= before + 20)
    assert all(bytes(memory) == content for memory, content in kept)
    wait_until(lambda: pools_of(world) <= 1, "the agent has no memory of those who are gone")
    own.destroy()
    witness.close()


def test_descriptors_of_others_on_their_way(world, track, read):
    """When too many descriptors of this user lie in sockets unread (root may have any number), new memory comes later: the reader is not gone."""
    reader = read()
    track.start_broadcast(wait=True)
    reader.take()
    pid = world.agent_process.pid
    resource.prlimit(pid, resource.RLIMIT_NOFILE, (250, resource.prlimit(pid, resource.RLIMIT_NOFILE)[1]))
    ends = socket.socketpair()
    for _ in range(3):
        socket.send_fds(ends[0], [b"x"], [ends[0].fileno()] * 100)
    track.mute()
    reader.take_rest()
    assert len(track.get("Subscriptions")) == 1
    for end in ends:
        end.close()
    reader.take_until(lambda frame, _: frame.flags == PLACEHOLDER)


def test_sealed(track, read):
    """A reader can neither write the memory nor change its size or its seals, by no descriptor, while the agent goes on writing."""
    reader = read()
    track.start_broadcast(wait=True)
    message, descriptors, _, _ = socket.recv_fds(reader.socket, 4096, 1)
    (descriptor,) = descriptors
    kind, version, pool, slots, slot_bytes, flags, reserved = struct.unpack("<IIIIQII", message)
    assert (kind, version, pool, slots, flags, reserved) == (1, 1, 1, SLOTS, 0, 0)
    assert os.fstat(descriptor).st_size == slots * slot_bytes and slot_bytes % mmap.PAGESIZE == 0
    F_ADD_SEALS, F_GET_SEALS, SEALS = 1033, 1034, 0x1 | 0x2 | 0x4 | 0x10
    assert fcntl.fcntl(descriptor, F_GET_SEALS) == SEALS
    again = os.open(f"/proc/self/fd/{descriptor}", os.O_RDWR)
    for one in (descriptor, again):
        for act in (
            lambda: mmap.mmap(one, 0), lambda: os.pwrite(one, b"x", 0), lambda: os.ftruncate(one, 0), lambda: os.ftruncate(one, 1 << 30),
            lambda: fcntl.fcntl(one, F_ADD_SEALS, 0x8),
        ):
            with pytest.raises(PermissionError):
                act()
    reader.memory = memoryview(mmap.mmap(descriptor, 0, prot=mmap.PROT_READ))
    numbers = [number(reader.take()[1]) for _ in range(5)]
    assert numbers == sorted(set(numbers))
    for one in (descriptor, again):
        os.close(one)


# Readers of every kind


def test_reader_that_never_releases(world, track, screen, read):
    """It gets as many frames as there are slots; they are taken back once; then it gets no more. Others get each picture, memory is bounded."""
    screen.configure(workload="video", fps=60)
    greedy, good = read(), read()
    track.start_broadcast(wait=True)
    held = [greedy.receive() for _ in range(SLOTS)]
    contents = [copies(frame) for frame in held]
    assert sorted(frame.slot for frame in held) == list(range(SLOTS)) and {frame.pool for frame in held} == {1}
    old = greedy.memory
    good.take()
    before = agent_memory(world)
    for _ in range(10):
        good.take()
    frame = greedy.receive()
    while frame.pool == 1:
        frame = greedy.receive()
    assert frame.pool == 2 and frame.damage == [(0, 0, 640, 360)] and frame.sequence > SLOTS + 1
    second = [frame, *(greedy.receive() for _ in range(SLOTS - 1))]
    assert {one.pool for one in second} == {2}
    good.take_until(lambda frame, _: frame.time > second[-1].time + 3_000_000_000)
    assert not greedy.has_picture(), "nothing more is taken back from one that gives no sign of life"
    # What it holds still is what it was, in the pool that it lost too.
    for one, content in zip(held, contents):
        assert all((before == now).all() for before, now in zip(content, copies(one)))
    assert len(old) == SLOTS * (640 * 360 * 3 // 2 + 4095 & ~4095)
    assert agent_memory(world) - before < 8 << 20
    statistics = greedy.subscription.statistics
    assert statistics["sent"] == 2 * SLOTS and statistics["queued-bytes"] <= SLOTS * 640 * 360 * 2
    greedy.release(second[2])
    frame, planes = greedy.take()
    assert frame.pool == 2 and frame.time > second[-1].time + 3_000_000_000, "the newest, and no old one"
    statistics = greedy.subscription.statistics
    assert statistics["coalesced"] > 30 and statistics["sent"] + statistics["coalesced"] >= frame.sequence


def test_slow_reader_sees_the_newest(track, screen, read):
    """A reader that takes its time misses pictures and never sees an old one; the damage covers all that it missed."""
    screen.configure(fps=60)
    reader = read()
    track.start_broadcast(wait=True)
    held = []
    before, changes = None, 0
    for _ in range(12):
        frame = reader.receive()
        planes = copies(frame)
        if before is not None:
            assert not (changed(before, planes) & ~covered(frame)).any()
            changes += 1
        before = planes
        held.append(frame)
        received = track.statistics["received"]
        wait_until(lambda: track.statistics["received"] >= received + 10, "ten pictures")
        if len(held) == SLOTS:
            reader.release(held.pop(0))
    assert changes == 11 and reader.subscription.statistics["coalesced"] > 10


def test_reader_that_is_stopped_and_killed(world, me, track, read):
    """A process that is stopped, and then killed, holding all that it was given: the others go on, and it is a subscription no more."""
    good = read()
    subscription = track.subscribe(format="frames")
    child = subprocess.Popen(
        [sys.executable, "-c", "import sys, time; sys.path.insert(0, sys.argv[1])\nfrom frames_reader import FramesReader\n"
         "reader = FramesReader(0)\nprint(reader.receive().sequence, flush=True)\ntime.sleep(1000)", HERE],
        stdin=subscription.descriptor, stdout=subprocess.PIPE)
    subscription.close()
    try:
        track.start_broadcast(wait=True)
        assert first_lines(child, 1) == [b"1\n"]
        child.send_signal(signal.SIGSTOP)
        first = good.take()[0].sequence
        frame, _ = good.take_until(lambda frame, _: frame.sequence >= first + 60)
        assert subscription.path in track.get("Subscriptions")
    finally:
        child.kill()
        child.wait()
        child.stdout.close()
    track.wait_until("Subscriptions", [good.subscription.path])
    good.take()


@pytest.mark.parametrize("what", ["nothing", "garbage", "large", "flood", "wrong slot", "descriptors", "no reading", "no writing", "neither"])
def test_hostile_readers(world, track, read, what):
    """Whoever sends what makes no sense, too much of it, or closes one direction is gone at once, and nobody else notices."""
    good, bad = read(), read()
    track.start_broadcast(wait=True)
    good.take()
    bad.receive()
    descriptors = agent_descriptors(world)
    try:
        if what == "nothing":
            bad.socket.send(b"")
        elif what == "garbage":
            bad.socket.send(os.urandom(12))
        elif what == "large":
            bad.socket.send(bytes(100_000))
        elif what == "flood":
            while True:
                bad.socket.send(struct.pack("<III", 3, 1, 0))
        elif what == "wrong slot":
            bad.socket.send(struct.pack("<III", 3, 1, 0xFFFFFFFF))
        elif what == "descriptors":
            with open("/dev/null", "rb") as file:
                socket.send_fds(bad.socket, [struct.pack("<III", 3, 7, 0)], [file.fileno()] * 50)
        else:
            bad.socket.shutdown({"no reading": socket.SHUT_RD, "no writing": socket.SHUT_WR, "neither": socket.SHUT_RDWR}[what])
    except OSError as error:
        assert error.errno in (errno.EPIPE, errno.ECONNRESET)
    track.wait_until("Subscriptions", [good.subscription.path])
    for _ in range(10):
        good.take()
    wait_until(lambda: agent_descriptors(world) < descriptors, "no descriptor of that reader is left")


# Faults: B01 B03 B32 B33
@pytest.mark.parametrize("seed", range(3))
def test_readers_that_come_and_go_while_the_source_is_resized(world, track, screen, read, seed):
    """Readers of every size come, hold on to what they have, release it late or twice, and go, while the source is resized, paused and muted: one that behaves
    has whole pictures to the end, and the memory of the others is given back."""
    moments = random.Random(seed)
    good = read()
    track.start_broadcast(wait=True)
    good.take()
    before = pools_of(world), agent_descriptors(world)
    readers = []
    for _ in range(60):
        act = moments.choice(["size", "size", "size", "come", "come", "hold", "release", "go", "go", "mute", "pause"])
        if act == "size":
            screen.set_size(*moments.choice([(640, 360), (100, 90), (641, 479), (3, 5), (202, 308)]))
        elif act == "come" and len(readers) < 6:
            readers.append((Reader(track.subscribe(format="frames", max_size=moments.choice([(640, 360), (320, 180), (99, 77)]))), []))
        elif act in ("hold", "release") and readers:
            reader, held = moments.choice(readers)
            if act == "hold" and reader.has_picture(0.2):
                held.append(reader.receive())
            for frame in held if act == "release" else []:
                reader.release(frame)
        elif act == "go" and readers:
            reader, _ = readers.pop(moments.randrange(len(readers)))
            reader.subscription.unsubscribe() if moments.random() < 0.5 else None
            reader.close()
        elif act == "mute":
            track.mute(moments.random() < 0.5)
        elif act == "pause":
            (screen.pause if moments.random() < 0.5 else screen.resume)()
        while good.has_picture():
            good.take()
    track.mute(False)
    screen.resume()
    screen.set_size(640, 360)
    for reader, _ in readers:
        reader.close()
    seen = reading(good.take_until(lambda _, planes: reading(planes) and reading(planes).size == (640, 360))[1])
    good.take_until(lambda _, planes: number(planes) > seen.number + 3)
    wait_until(lambda: pools_of(world) <= before[0] and agent_descriptors(world) <= before[1], f"no more than {before}")
    assert track.state == "active"


def test_limit_together_with_other_raw_readers(track, read):
    """At most eight raw readers are on a track, whatever their format; encoded ones are not concerned."""
    readers = [read() for _ in range(5)]
    others = [track.subscribe(format="y4m") for _ in range(3)]
    for form in ("frames", "y4m"):
        error = refused(track.subscribe, format=form)
        assert error.name == ERROR + "LimitExceeded" and "8" in error.message
    readers[0].subscription.unsubscribe()
    read()
    for one in (*others, track.subscribe()):
        one.close()


def test_coming_and_going_costs_nothing(world, track, screen, read):
    """Two hundred readers that came and went, in every way, left no descriptor and no memory."""
    track.start_broadcast(wait=True)
    steady = read()
    steady.take()

    def round():
        for way in range(4):
            reader = Reader(track.subscribe(format="frames"))
            frame = reader.receive()
            if way == 0:
                reader.subscription.unsubscribe()
            elif way == 1:
                reader.release(frame)
            elif way == 2:
                reader.socket.send(b"?")
            reader.close()
        track.wait_until("Subscriptions", [steady.subscription.path])

    for _ in range(5):
        round()
    wait_until(lambda: pools_of(world) == 1, "one pool")
    descriptors, memory = agent_descriptors(world), agent_memory(world)
    for _ in range(45):
        round()
    wait_until(lambda: pools_of(world) == 1, "one pool")
    wait_until(lambda: agent_descriptors(world) <= descriptors, "as many descriptors as before")
    # A pool would be 1.4 MB, and the pictures of the encoder come and go.
    assert agent_memory(world) - memory < 6 << 20


def test_agent_dies(session):
    """The agent is killed: readers get the end, and what they have stays."""
    me, screen = session.agent(), TestScreen(session.client)
    screen.configure(size=(640, 360))
    me.set_screen_share(True, wait=True)
    reader = Reader(me.desktop.subscribe(format="frames"))
    frame = reader.receive()
    shown = number(copies(frame))
    session.agent_process.kill()
    session.agent_process.wait()
    assert not all(reader.within_patience(reader.receive))
    assert number(copies(frame)) == shown
    reader.close()


# The examples


def end_reading(track, child):
    """Ends the one subscription of a track, which a program reads that ends with it, without a complaint."""
    (path,) = track.get("Subscriptions")
    track.client.call(SERVICE, path, SUBSCRIPTION, "Unsubscribe")
    _, errors = child.communicate(timeout=PATIENCE)
    assert (child.returncode, errors) == (0, "")


def test_python_example(world, track):
    """The Python reader, run as a program, subscribes by itself and says what comes."""
    track.start_broadcast(wait=True)
    child = subprocess.Popen(
        [sys.executable, HERE / "frames_reader.py"], env=world.environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        text=True)
    try:
        lines = first_lines(child, 3)
        assert lines[0].startswith("1: 640x360, mean luma ") and "changed [(0, 0, 640, 360)]" in lines[0], lines
        track.stop_capture()
        end_reading(track, child)
    finally:
        child.kill()
        child.wait()


def test_c_example(world, track, tmp_path):
    """The C reader compiles without a warning and makes YUV4MPEG2 of the stream, whose pictures are the screen's, to the last one."""
    program = tmp_path / "frames_reader"
    done = subprocess.run(["cc", "-Wall", "-Wextra", "-Werror", "-o", program, HERE / "frames_reader.c"], capture_output=True, text=True,
                          timeout=PATIENCE)
    assert done.returncode == 0, done.stderr
    subscription = track.subscribe(format="frames")
    output = tmp_path / "stream.y4m"
    with open(output, "wb") as file:
        child = subprocess.Popen([program], stdin=subscription.descriptor, stdout=file, stderr=subprocess.PIPE, text=True)
    subscription.close()
    track.start_broadcast(wait=True)
    subscription.wait_until("Statistics", lambda statistics: statistics["sent"] >= 25)
    track.mute()
    subscription.wait_until("Statistics", lambda statistics: statistics["sent"] >= 26 and statistics["queued-bytes"] == 0)
    track.mute(False)
    sent = subscription.statistics["sent"]
    subscription.wait_until("Statistics", lambda statistics: statistics["sent"] >= sent + 10)
    subscription.unsubscribe()
    _, errors = child.communicate(timeout=PATIENCE)
    assert (child.returncode, errors) == (0, "")
    readings = picture.read_all(frames(output))
    numbers = [one.number for one in readings if one]
    assert len(numbers) >= 35 and numbers == sorted(numbers) and None in readings
    assert readings[-1] == readings[-2], "the last picture comes once more"


def test_c_example_is_started_as_it_says(world, track, tmp_path):
    """The lines at the head of the C reader compile it and start it, a file in place of the player."""
    source = HERE / "frames_reader.c"
    lines = [line[7:] for line in source.read_text().split("*/")[1].splitlines() if line.startswith(" *     ")]
    script = "\n".join(lines).replace("frames_reader.c", str(source)).replace("python3", "/usr/bin/python3").replace("| ffplay -", ">stream.y4m")
    output = tmp_path / "stream.y4m"
    assert script.count(output.name) == 1
    track.start_broadcast(wait=True)
    child = subprocess.Popen(["bash", "-e", "-c", script], cwd=tmp_path, env=world.environment, stderr=subprocess.PIPE, text=True)
    try:
        wait_until(lambda: (output.exists() and output.stat().st_size > 100) or child.poll() is not None, "a picture")
        end_reading(track, child)
    finally:
        child.kill()
        child.wait()
    assert output.read_bytes().startswith(b"YUV4MPEG2 W640 H360 ")
