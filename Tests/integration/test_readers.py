# SPDX-License-Identifier: MIT
"""Many readers of one track: none disturbs another, whatever it does; and what the counters say of it all."""

import os
import select
import threading
import time

import pytest

import held
import picture
import stream
from processes import wait_until
from stream import record, wait_for_more

MIB = 1 << 20


def encoders(session):
    return sum(name.startswith("enc") for name in held.threads(session.agent_process.pid))


def anonymous_bytes(session):
    """The agent's own memory."""
    return held.memory(session.agent_process.pid)


def decodes(recording):
    """Every picture can be decoded and read, in order; times only grow."""
    file = stream.read(recording.path)
    assert all(one < next for one, next in zip(file.times, file.times[1:]))
    numbers = picture.numbers(recording.frames())
    assert numbers == sorted(numbers)
    return file, numbers


# Who does not read


# Faults: B31
@pytest.mark.parametrize("form", ["webm", "y4m"])
def test_reader_that_does_not_read(world, track, screen, form):
    """A reader that stops reading loses whole pictures, blocks nobody and costs at most 4 MiB; when it reads again it has a clean stream."""
    screen.configure(workload="video", fps=60)
    track.start_broadcast(wait=True)
    good = track.subscribe()
    recording = good.record(world.root / "good.webm")
    # What the encoder itself takes is no part of it.
    twin = track.subscribe(format=form, bitrate=1_000_000_000)
    twin_recording = twin.record(world.root / f"twin.{form}")
    wait_for_more(twin, 5)
    stuck = track.subscribe(format=form, bitrate=1_000_000_000)
    before = anonymous_bytes(world)
    stuck.wait_until("Statistics", lambda statistics: statistics["coalesced"] > 20, seconds=90)
    for _ in range(5):
        wait_for_more(good, 10)
        wait_for_more(twin, 5)
        assert stuck.statistics["queued-bytes"] <= 4 * MIB
    grown = anonymous_bytes(world) - before
    assert grown < 16 * MIB, f"{grown / MIB:.1f} MiB more than before"
    sent = stuck.statistics["sent"]
    stuck_recording = stuck.record(world.root / f"stuck.{form}")
    stuck.wait_until("Statistics", lambda statistics: statistics["sent"] > sent + 5)
    for one in (good, twin, stuck):
        one.unsubscribe()
    for one in (recording, twin_recording, stuck_recording):
        one.wait_for_end()
    decodes(recording)
    if form == "webm":
        file, numbers = decodes(stuck_recording)
        # It goes on with a key frame, after a gap.
        gap = max(range(1, len(numbers)), key=lambda index: numbers[index] - numbers[index - 1])
        assert file.blocks[gap].is_key
    else:
        numbers = picture.numbers(stuck_recording.frames())
        assert numbers == sorted(numbers)


def test_memory_of_encoders_that_have_ended_goes_back(world, track):
    """Encoders of several sizes and codecs come and go together: with the last of them, the system has again what they took, the small blocks too."""
    track.start_broadcast(wait=True)
    before = anonymous_bytes(world)
    for _ in range(3):
        subscriptions = [track.subscribe(max_size=size, codec=codec) for size in [(640, 360), (480, 270), (320, 180), (160, 90)] for codec in ("vp8", "vp9")]
        recordings = [one.record(world.root / f"{index}.webm") for index, one in enumerate(subscriptions)]
        for one in subscriptions:
            wait_for_more(one, 3)
        for one, recording in zip(subscriptions, recordings):
            one.unsubscribe()
            recording.wait_for_end()
        wait_until(lambda: encoders(world) == 0, "the end of the encoders")
    wait_until(lambda: anonymous_bytes(world) < before + 8 * MIB, "the encoders' memory back")


class Drain:
    """Reads many streams and throws them away, until each has ended."""

    def __init__(self, subscriptions):
        self._poll = select.epoll()
        self._left = {}
        for one in subscriptions:
            descriptor = one.take()
            os.set_blocking(descriptor, False)
            self._poll.register(descriptor, select.EPOLLIN)
            self._left[descriptor] = one
        self._thread = threading.Thread(target=self._run, name="drain", daemon=True)
        self._thread.start()

    def _run(self):
        while self._left:
            for descriptor, _ in self._poll.poll():
                if not os.read(descriptor, 1 << 18):
                    self._poll.unregister(descriptor)
                    os.close(descriptor)
                    del self._left[descriptor]

    def wait_for_end(self):
        self._thread.join(60)
        assert not self._thread.is_alive(), f"{len(self._left)} streams have not ended"


def descriptors(session):
    return len(held.descriptors(session.agent_process.pid))


@pytest.mark.parametrize("kind", stream.SOME, ids=str)
def test_a_hundred_readers_a_third_of_which_never_read(world, track, screen, kind):
    """A hundred readers, a third of which never read: all others get every picture; memory and descriptors are bounded, and given back."""
    screen.configure(workload="video")
    # The first share leaves threads behind that wait for the next.
    track.start_broadcast(wait=True)
    track.stop_broadcast()
    alone = track.subscribe(**kind.options, bitrate=20_000_000)
    recordings = [record(alone, world, "alone")]
    before = descriptors(world)
    readers = [track.subscribe(**kind.options, bitrate=20_000_000) for _ in range(99)]
    stuck, good = readers[::3], [one for one in readers if one not in readers[::3]]
    drain = Drain(good)
    assert (len(stuck), encoders(world)) == (33, 1)
    assert descriptors(world) <= before + 99
    track.start_broadcast(wait=True)
    wait_for_more(alone, 10)
    memory = anonymous_bytes(world)
    for one in stuck:
        one.wait_until("Statistics", lambda statistics: statistics["coalesced"] > 5, seconds=90)
    assert all(one.statistics["queued-bytes"] <= 4 * MIB for one in stuck)
    # The pictures that wait are the same for all.
    grown = anonymous_bytes(world) - memory
    assert grown < 24 * MIB, f"{grown / MIB:.1f} MiB more than before"

    # Those who read again go on with a key frame.
    awake = stuck[:2]
    sent = [one.statistics["sent"] for one in awake]
    recordings += [record(one, world, f"awake{index}") for index, one in enumerate(awake)]
    for one, count in zip(awake, sent):
        one.wait_until("Statistics", lambda statistics: statistics["sent"] > count + 5, seconds=60)
    for one in (alone, *awake):
        one.unsubscribe()
    numbers = [decodes(one.wait_for_end()) for one in recordings]
    for file, shown in numbers[1:]:
        gap = max(range(1, len(shown)), key=lambda index: shown[index] - shown[index - 1])
        assert shown[gap] - shown[gap - 1] > 5 and file.blocks[gap].is_key
    # On account of those who do not read there is a key frame every two seconds at most.
    keys = [block.time for block in numbers[0][0].blocks if block.is_key]
    assert all(next - one >= 1800 for one, next in zip(keys, keys[1:])), keys

    assert all(one.statistics["coalesced"] == 0 for one in good) and good[0].statistics["sent"] > 100
    # Muted, all get the placeholder, and nothing after it: then all have had as many, those aside that still waited and are dropped.
    track.mute()
    wait_until(lambda: len({one.statistics["sent"] + one.statistics["coalesced"] for one in good}) == 1, "all others to have had every picture")
    track.unsubscribe_all()
    drain.wait_for_end()
    wait_until(lambda: encoders(world) == 0, "the encoder to go")
    track.stop_broadcast()
    wait_until(lambda: descriptors(world) <= before, "as many descriptors as before")


# Faults: B31
def test_slow_reader(world, track, screen):
    """A reader that is slower than the source gets fewer pictures, each of them whole."""
    screen.configure(workload="video")
    track.start_broadcast(wait=True)
    subscription = track.subscribe(format="y4m")
    parts = []
    # 2 MB at a time, and then a while nothing: a picture has 350 kB.
    for _ in range(6):
        received = track.statistics["received"]
        wait_until(lambda: track.statistics["received"] >= received + 15, "fifteen pictures")
        left = 2 * MIB
        while left > 0 and select.select([subscription.descriptor], [], [], 5)[0]:
            parts.append(os.read(subscription.descriptor, min(left, 1 << 16)))
            left -= len(parts[-1])
    recording = subscription.record(world.root / "rest.y4m")
    subscription.unsubscribe()
    recording.wait_for_end()
    whole = world.root / "slow.y4m"
    whole.write_bytes(b"".join(parts) + recording.path.read_bytes())
    recording.path = whole
    numbers = picture.numbers(recording.frames())
    assert numbers == sorted(numbers) and numbers[-1] - numbers[0] > len(numbers), numbers


# Who shares


def test_equal_readers_share_an_encoder(world, track, screen):
    """Readers with equal options share one encoder, others have their own; the last one to leave stops it."""
    track.start_broadcast(wait=True)
    wait_until(lambda: encoders(world) == 0, "no encoder without a reader")
    equal = [track.subscribe() for _ in range(5)]
    recordings = [one.record(world.root / f"equal{index}.webm") for index, one in enumerate(equal)]
    for one in equal:
        wait_for_more(one, 3)
    assert encoders(world) == 1
    # Enough that each picture can be read.
    other = track.subscribe(bitrate=2_000_000)
    recordings.append(other.record(world.root / "other.webm"))
    wait_for_more(other, 3)
    assert encoders(world) == 2
    other.unsubscribe()
    wait_until(lambda: encoders(world) == 1, "one encoder")
    for one in equal[:-1]:
        one.unsubscribe()
        wait_for_more(equal[-1], 2)
        assert encoders(world) == 1
    equal[-1].unsubscribe()
    wait_until(lambda: encoders(world) == 0, "no encoder")
    for one in recordings:
        decodes(one.wait_for_end())


@pytest.mark.parametrize("kind", stream.COMPRESSED, ids=str)
def test_joining_and_leaving_disturbs_nobody(world, track, screen, kind):
    """While others join and leave, a reader's stream has no gap, no change of size and no picture out of order."""
    track.start_broadcast(wait=True)
    steady = track.subscribe(**kind.options)
    recording = record(steady, world, "steady")
    wait_for_more(steady, 3)
    for index in range(8):
        passing = track.subscribe(**kind.options)
        passing_recording = record(passing, world, f"passing{index}")
        wait_for_more(passing, 2)
        if index % 2:
            passing.unsubscribe()
            decodes(passing_recording.wait_for_end())
        else:
            passing_recording.stop()
    lost = steady.statistics["coalesced"]
    steady.unsubscribe()
    file, numbers = decodes(recording.wait_for_end())
    assert lost == 0 and file.size == (640, 360)
    # Each newcomer costs a key frame, and no more than that; those within half a second share one.
    keys = [block.time for block in file.blocks if block.is_key]
    assert len(keys) <= 10 and all(next - one >= 400 for one, next in zip(keys, keys[1:])), keys


def test_equal_readers_see_the_same(world, track, screen):
    """Two readers with equal options get the same pictures, each with times of its own that start at 0; epochs tell how they relate."""
    track.start_broadcast(wait=True)
    first = track.subscribe()
    recordings = [first.record(world.root / "first.webm")]
    wait_for_more(first, 10)
    second = track.subscribe()
    recordings.append(second.record(world.root / "second.webm"))
    wait_for_more(second, 15)
    epochs = [first.get("Epoch"), second.get("Epoch")]
    for one in (first, second):
        one.unsubscribe()
    seen = []
    for recording, epoch in zip(recordings, epochs):
        file, numbers = decodes(recording.wait_for_end())
        assert file.times[0] == 0
        seen.append({number: epoch / 1000 + time for number, time in reversed(list(zip(numbers, file.times)))})
    common = set(seen[0]) & set(seen[1])
    assert len(common) >= 10 and set(seen[1]) - {max(seen[1])} <= set(seen[0])
    # The same picture was at the same time, whoever looked; what joins late may be shown a picture that is older than it.
    later = sorted(common)[1:-1]
    assert all(abs(seen[0][number] - seen[1][number]) < 3 for number in later), [(seen[0][n], seen[1][n]) for n in later]


@pytest.mark.parametrize("kind", stream.COMPRESSED, ids=str)
def test_view_that_is_made_again(world, track, screen, kind):
    """A view that goes and comes back at once gets its picture at once, however still the screen is, from the encoder that was there."""
    screen.configure(workload="still")
    track.start_broadcast(wait=True)
    names = []
    for index in range(10):
        before = time.monotonic()
        subscription = track.subscribe(**kind.options)
        took = time.monotonic() - before
        recording = record(subscription, world, f"again{index}")
        recording.wait_for_bytes(1000, seconds=30)
        # On a machine that was busy for longer than the grace it may be another.
        if took < 1:
            names += [name for name in held.threads(world.agent_process.pid) if name.startswith("enc")]
        recording.stop()
        track.wait_until("Subscriptions", [])
    assert len(set(names)) == 1, names
    wait_until(lambda: encoders(world) == 0, "the encoder goes after the grace")


# What is counted


def counted(statistics):
    return sum(statistics[name] for name in ("delivered", "coalesced", "unread", "corrupted", "cursor-only", "dropped"))


def test_statistics_add_up(me, screen):
    """Every picture that came is in exactly one of the counters: delivered, coalesced, unread, corrupted, cursor only, dropped."""
    screen.configure(size=(640, 360), corrupt_chunk_every=7, corrupt_header_every=11, cursor_only_every=5, fps=60)
    track = me.create_track()
    track.start_capture()
    assert track.statistics["received"] == 0 and track.statistics["last-frame-age-us"] == 0
    track.start_broadcast(wait=True)
    track.wait_until("Statistics", lambda statistics: statistics["received"] > 60)
    nobody = track.statistics
    assert nobody["unread"] > 0 and nobody["delivered"] == 0
    subscription = track.subscribe()
    wait_until(lambda: subscription.statistics["sent"] > 20 or not _drained(subscription), "twenty pictures", every=0)
    for _ in range(20):
        now = track.statistics
        assert 0 <= now["received"] - counted(now) <= now["pool-capacity"], now
    track.stop_broadcast()
    wait_until(lambda: track.statistics["received"] - counted(track.statistics) <= 1, "the rest of the pictures to be counted")
    now = track.statistics
    assert now["delivered"] > 0 and now["corrupted"] > 0 and now["cursor-only"] > 0 and now["pool-capacity"] > 0
    assert 0 < now["last-frame-age-us"] < 60_000_000
    assert 0 < now["latency-p50-us"] <= now["latency-p99-us"] < 10_000_000
    subscription.close()
    track.destroy()


def _drained(subscription):
    """Reads what is there, and throws it away."""
    while select.select([subscription.descriptor], [], [], 0.01)[0]:
        os.read(subscription.descriptor, 1 << 16)
    return True


def test_preset_too_high(me, world, screen):
    """An encoder that cannot keep up for three windows of ten seconds: PresetTooHigh names the next preset that is less work."""
    # As many pixels as no machine encodes sixty times a second.
    screen.configure(size=(3840, 2160), workload="video", fps=60)
    track = me.create_track(preset="native")
    track.start_capture()
    mark = me.mark()
    recording = track.subscribe().record(world.root / "overload.webm")
    started = time.monotonic()
    track.start_broadcast(wait=True)
    event = track.wait_for_signal("PresetTooHigh", since=mark, seconds=120)
    assert time.monotonic() - started > 30
    assert event.value == ("h2160p",)
    counts = track.statistics
    assert counts["coalesced"] * 10 > counts["received"]
    track.destroy()
    recording.wait_for_end()


def test_pool_does_not_grow(me, world, screen):
    """The pool's footprint is what a few pictures take, known in advance, and is the same after five hundred of them."""
    screen.configure(size=(640, 360), fps=240)
    track = me.create_track()
    track.start_capture()
    track.start_broadcast(wait=True)
    recording = track.subscribe().record(world.root / "pool.webm")
    track.wait_until("Statistics", lambda statistics: statistics["received"] > 100)
    early = track.statistics
    track.wait_until("Statistics", lambda statistics: statistics["received"] > 600)
    late = track.statistics
    frame = 640 * 360 * 3 // 2
    assert frame <= early["footprint"] <= late["footprint"] <= late["pool-capacity"] * frame * 1.2
    assert late["pool-capacity"] == early["pool-capacity"]
    track.destroy()
    recording.wait_for_end()


# Faults: B03 B05
def test_no_buffer_is_held(me, world, screen):
    """Every buffer goes back to the compositor before the next picture: it never lacks one, with a pool of two and no reader that keeps up."""
    screen.configure(size=(640, 360), buffers=2, fps=60)
    before = screen.get("NullDequeues")
    track = me.create_track()
    track.start_capture()
    track.start_broadcast(wait=True)
    recording = track.subscribe(format="y4m").record(world.root / "held.y4m")
    track.wait_until("Statistics", lambda statistics: statistics["received"] > 120)
    missing = screen.get("NullDequeues") - before
    assert missing <= 6, f"{missing} pictures found no buffer"
    track.destroy()
    recording.wait_for_end()
