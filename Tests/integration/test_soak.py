# SPDX-License-Identifier: MIT
"""Many starts and stops, and a long share with resizes, readers that come and go, mutes and pauses: nothing grows. Sound and picture stay together.

A short form runs with the other tests; `make soak` runs ten thousand starts and two hours (VITRINE_SOAK_STARTS, VITRINE_SOAK_SECONDS).
"""

import os
import random
import statistics
import time

import held
import sound
from processes import wait_until
from screen import TestScreen

STARTS = int(os.environ.get("VITRINE_SOAK_STARTS", "120"))
SECONDS = float(os.environ.get("VITRINE_SOAK_SECONDS", "12"))
FORMS = ("webm", "y4m")
# How much more memory may be held at the end: for allocators that keep what they had, not for a leak of 100 bytes a start.
SLACK = 2 << 20


class Figures:
    """Descriptors, threads and memory of the agent over time, at comparable moments."""

    def __init__(self, session):
        self.pid = session.agent_process.pid
        self.rows = []

    def note(self, what):
        """Notes the least of a moment, once encoders and captures have had the time to go."""
        end = time.monotonic() + 3
        least = held.counts(self.pid)
        while time.monotonic() < end:
            least = tuple(map(min, least, held.counts(self.pid)))
            time.sleep(0.05)
        self.rows.append((what, *least))
        print(f"soak: {what}: {least[0]} descriptors, {least[1]} threads, {least[2] >> 10} kB", flush=True)

    def are_flat(self):
        """The last row against the first, when all that is made once was made."""
        (_, files, threads, memory), (_, later_files, later_threads, later_memory) = self.rows[0], self.rows[-1]
        assert (later_files, later_threads) == (files, threads), self.rows
        assert later_memory - memory < SLACK, self.rows


def _cycle(me, screen, root, index):
    """A start, readers, some frames, a stop, one way or another."""
    me.set_screen_share(True, wait=True)
    if index % 4 == 0:
        recordings = [me.desktop.subscribe(format=form).record(root / form) for form in FORMS]
        for one in recordings:
            one.wait_for_bytes(200)
    if index % 5 == 4:
        screen.end_session()
        me.desktop.wait_until("State", "listening")
    me.set_screen_share(False)
    if index % 4 == 0:
        me.desktop.unsubscribe_all()
        for one in recordings:
            one.wait_for_end().stop()


# Faults: B31 B32
def test_starts_and_stops(session):
    """Starts and stops without end leave no descriptor, no thread and no memory behind."""
    me, screen = session.agent(), TestScreen(session.client)
    screen.configure(size=(320, 200))
    figures = Figures(session)
    warm = max(20, STARTS // 10)
    for index in range(warm + STARTS):
        _cycle(me, screen, session.root, index)
        # A list of everything that was ever heard is the test's own leak.
        me.client.events.clear()
        if index + 1 >= warm and (index + 1 - warm) % max(1, STARTS // 4) == 0:
            screen.wait_until_closed()
            figures.note(f"{index + 1} starts")
    figures.are_flat()


# Faults: B01 B31
def test_a_long_share(session):
    """One share that goes on and on, while its source is resized, and readers come, go, stop reading, are muted and paused."""
    me, screen = session.agent(), TestScreen(session.client)
    moments = random.Random(7)
    sizes = [(320, 200), (640, 360), (202, 308), (641, 479), (100, 90)]
    screen.configure(size=sizes[0], fps=60)
    me.set_screen_share(True, wait=True)
    keeper = me.desktop.subscribe()
    figures = Figures(session)
    steady = keeper.record(session.root / "steady.webm")
    # Every size once, and every kind of reader: what is made once is made.
    started, steps, noted = time.monotonic(), 0, 0
    warm = SECONDS / 4
    while (spent := time.monotonic() - started) < SECONDS + warm:
        if spent > warm + noted * SECONDS / 3:
            screen.set_size(*sizes[0])
            figures.note(f"{spent:.0f} s, {steps} steps")
            noted += 1
        screen.set_size(*sizes[steps % len(sizes)])
        kind = moments.randrange(5)
        one = me.desktop.subscribe(format=moments.choice(FORMS), placeholder=moments.choice(["picture", "hold", "end"]))
        if kind == 0:
            me.desktop.mute()
            me.desktop.mute(False)
        elif kind == 1:
            screen.pause()
            me.desktop.wait_until("SourcePaused", True)
            screen.resume()
            me.desktop.wait_until("SourcePaused", False)
        received = me.desktop.statistics["received"]
        wait_until(lambda: me.desktop.statistics["received"] > received + 2, "pictures")
        one.unsubscribe() if steps % 2 else None
        one.close()
        steps += 1
        me.client.events.clear()
        # An hour of it is not for the disk.
        steady.path.write_bytes(b"") if steps % 50 == 0 else None
    assert me.desktop.state == "active" and not steady.ended.is_set()
    me.desktop.wait_until("Subscriptions", [keeper.path])
    figures.note(f"the end, {steps} steps, {me.desktop.statistics['received']} pictures")
    figures.are_flat()


def test_sound_and_picture_stay_together(session, tmp_path):
    """Flashes and clicks of the same moments lie within 40 ms of each other in the file, from the beginning to the end. A tone never lets the sound rest."""
    me, screen = session.agent(), TestScreen(session.client)
    # No more than 80 MB an hour.
    screen.configure(size=(320, 200), manual=True)
    sound.add_device(session, "speaker")
    me.set_screen_share(True, wait=True, audio="system")
    subscription = me.desktop.subscribe(bitrate=100_000)
    recording = subscription.record(tmp_path / "x.webm")
    recording.wait_for_bytes(500)
    both = sound.FlashesAndClicks(session, screen, tmp_path, tone=0.05)
    started, made = time.monotonic(), 0
    while time.monotonic() - started < SECONDS:
        both.make()
        made += 1
        time.sleep(max(0.5, SECONDS / 600))
    epoch = subscription.get("Epoch") / 1e6
    me.desktop.unsubscribe_all(me.unique_name)
    recording.wait_for_end()
    offsets = both.find(recording.path, epoch)
    part = max(1.0, SECONDS / 60)
    for index in range(int(offsets[-1].moment / part) + 1):
        there = [1e3 * one.between for one in offsets if index * part <= one.moment < (index + 1) * part]
        if there:
            print(f"soak: from {index * part:.0f} s on the click is {statistics.median(there):+.1f} ms after the flash, at most {max(there, key=abs):+.1f} ms, "
                  f"in {len(there)}", flush=True)
    largest = max((one.between for one in offsets), key=abs)
    print(f"soak: {len(offsets)} of {made} flashes with a click, {1e3 * largest:+.1f} ms at most; {recording.size / 1e6:.1f} MB", flush=True)
    assert abs(largest) < 0.04
    assert len(offsets) >= 0.9 * made, "a busy machine loses some, not these many"
