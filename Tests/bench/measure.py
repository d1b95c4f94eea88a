# SPDX-License-Identifier: MIT
"""What is measured, one figure or one run at a time. All of it is of one machine at one time: only ratios mean something elsewhere."""

import contextlib
import dataclasses
import json
import os
import statistics
import subprocess
import sys
import time

import numpy

from harness import BACKEND, TOP, Session, program
from meter import Meter
from processes import wait_until
from screen import TestScreen
from sides import GStreamer, Vitrine
from reader import Drain, Painted, Reader, Unreadable, deliveries
from workload import STILL, Workload

# Seconds before a window: the first key frame and what makes it sharp are over.
WARM_UP = 1.5


class World:
    """Private buses, PipeWire, WirePlumber, the portal, and a test screen that is started anew for each run: its pictures are the same each time."""

    def __enter__(self):
        self.session = Session(agent="absent").__enter__()
        self.screen = TestScreen(self.session.client)
        self._files = 0
        return self

    def __exit__(self, *_):
        Painted.end_all()
        self.session.close()

    @contextlib.contextmanager
    def showing(self, **settings):
        """A new test screen with these settings."""
        self.session.processes.end(self.session.screen)
        self.session.wait_for_no_name(BACKEND)
        self.session.start_screen()
        self.screen.configure(**settings)
        with self.session.clients_of_their_own():
            yield self.screen

    def path(self):
        """A file of its own."""
        self._files += 1
        return self.session.root / f"{self._files}.webm"

    @property
    def sent(self):
        """Buffers that the test screen handed over."""
        return self.screen.get("FramesProduced")

    def wait_for_frames(self, count):
        wait_until(lambda: self.sent >= count, f"{count} pictures", 60, 0.005)


@dataclasses.dataclass
class Run:
    """One side with one workload."""

    side: str
    sent: int
    """Pictures that the source sent in the window."""
    delivered: int
    """Those that came to the reader in the window, or, of repeats, need not have come."""
    coalesced: int
    """Those between them that never came."""
    cpu: float
    """Milliseconds of CPU for each delivered picture."""
    latency: tuple
    """Milliseconds from the source to the last byte in the reader: half of the pictures took less, and 99 of 100."""
    psnr: float | None
    """Luma, dB, mean."""
    bitrate: float
    """kbit/s."""
    wakeups: float
    """A second, of all threads."""
    peak: float
    """Megabytes resident, PipeWire's buffers among them."""
    anonymous: float
    """Megabytes of its own at the end."""
    counters: dict
    """The agent's own figures: received, delivered, coalesced."""


class NothingCame(Unreadable):
    """Not one picture, in all of the window: there was no time for one."""


def run(world, side, workload, seconds, compares=True):
    """Measures one side, again when no picture came in the window.

    PipeWire 0.3.65 gives a first link buffers without memory now and then. Vitrine connects again; GStreamer shows them black, to the end.
    """
    for tries_left in reversed(range(5)):
        try:
            return _run(world, side, workload, seconds, compares)
        except Unreadable as error:
            if not (side is GStreamer or isinstance(error, NothingCame)) or not tries_left:
                raise
            print(f"bench: once more: {error}", file=sys.stderr)
    return None


def _run(world, side_class, workload, seconds, compares):
    with world.showing(**workload.settings):
        side = side_class(world.session, workload)
        reader = Reader(side.descriptors[0], world.path())
        world.wait_for_frames(max(2, round(WARM_UP * workload.fps)))
        meter = Meter(side.pid)
        window = Window(world, meter)
        time.sleep(seconds)
        window.close()
        memory, counters = meter.memory, side.statistics
        timeline = world.screen.get("Timeline")
        reader.stop()
        side.end()
    try:
        came = deliveries(reader, workload, compares)
    finally:
        reader.path.unlink()
    if not came:
        raise Unreadable(f"no picture came; {world.session.processes.log(side.name)[-500:]}")
    shown = {number: when for number, when in reversed(timeline)}
    # Once each, as it came first; by arrival, because what lags behind may lag by more than the window.
    firsts = {one.number: one for one in reversed(came)}
    in_window = {number: one for number, one in firsts.items() if window.holds(one.arrived)}
    sent = window.sent
    delivered, coalesced = sent, 0
    if not workload.repeats:
        if not in_window:
            raise NothingCame(f"{side_class.name}: nothing came within {seconds:g} s; is the machine busy?")
        delivered, coalesced = len(in_window), max(in_window) - min(in_window) + 1 - len(in_window)
    # Of repeats the first alone is new, and there is no telling which of the others a packet shows.
    latencies = [] if workload.repeats else [(one.arrived - shown[number]) / 1e6 for number, one in in_window.items()]
    sharpness = [one.psnr for one in (came[-1:] if workload.repeats else in_window.values()) if one.psnr is not None]
    size = sum(one.size for one in came if window.holds(one.arrived))
    return Run(
        side_class.name, sent, delivered, coalesced, 1e3 * window.cpu / delivered,
        tuple(float(value) for value in numpy.percentile(latencies, (50, 99))) if latencies else (),
        statistics.fmean(sharpness) if sharpness else None, size * 8 / window.seconds / 1e3, window.wakeups / window.seconds,
        memory["peak"], memory["anonymous"], {name: counters[name] for name in ("received", "delivered", "coalesced") if name in counters})


class Window:
    """The time that is measured: what a process costs in it, and how many pictures the source sends."""

    def __init__(self, world, meter):
        self._world, self._meter = world, meter
        self._wakeups = meter.wakeups
        self._sent, self._start, self._cpu = world.sent, time.monotonic_ns(), meter.cpu

    def close(self):
        self.cpu, self._end = self._meter.cpu - self._cpu, time.monotonic_ns()
        self.sent = self._world.sent - self._sent
        self.woken = self._meter.wakeups_since(self._wakeups)
        self.wakeups = sum(self.woken.values())
        self.seconds = (self._end - self._start) / 1e9

    def holds(self, when):
        return self._start <= when < self._end


# Without the comparison


def cost(world, workload, seconds, readers=1, **options):
    """CPU of the agent in seconds a second, with so many readers, and the pictures a second that an encoder took."""
    return _cost(world, workload, seconds, lambda side: side.statistics["delivered"], readers, **options)


def cost_of_a_picture(world, workload, seconds):
    """CPU of the agent in milliseconds for each picture that its one reader gets, however many frames of sources are in it; and those pictures a second."""
    cpu, pictures = _cost(world, workload, seconds, lambda side: side.subscriptions[0].statistics["sent"])
    return 1e3 * cpu / pictures, pictures


def _cost(world, workload, seconds, count, readers=1, **options):
    """CPU of the agent in seconds a second, and by how much what is counted grows a second."""
    with world.showing(**workload.settings):
        side = Vitrine(world.session, workload, readers, **options)
        drain = Drain(side.descriptors)
        world.wait_for_frames(max(2, round(WARM_UP * workload.fps * workload.sources)))
        before = count(side)
        window = Window(world, Meter(side.pid))
        time.sleep(seconds)
        window.close()
        counted = count(side) - before
        silent = sum(not size for size in drain.sizes.values())
        assert not silent, f"{silent} of {readers} readers got nothing"
        drain.close()
        side.end()
    return window.cpu / window.seconds, counted / window.seconds


def cost_of_tracks(world, workload, seconds, count):
    """The same, with so many tracks that share a screen each, with a reader each."""
    with world.showing(**workload.settings):
        world.session.start_agent()
        agent = world.session.agent()
        tracks = []
        for _ in range(count):
            track = agent.create_track(preset=workload.preset, cursor="hidden")
            track.start_capture()
            track.start_broadcast(wait=True)
            tracks.append(track)
        subscriptions = [track.subscribe() for track in tracks]
        drain = Drain([one.take() for one in subscriptions])
        world.wait_for_frames(world.sent + round(WARM_UP * workload.fps * count))
        before = [track.statistics["delivered"] for track in tracks]
        window = Window(world, Meter(world.session.agent_process.pid))
        time.sleep(seconds)
        window.close()
        taken = sum(track.statistics["delivered"] for track in tracks) - sum(before)
        drain.close()
        for track in tracks:
            track.destroy()
        assert world.session.end_agent() == 0
    return window.cpu / window.seconds, taken / window.seconds


def idle(world, seconds):
    """The agent that nobody has asked for anything: CPU in ms, wake-ups by thread, memory."""
    world.session.start_agent()
    meter = Meter(world.session.agent_process.pid)
    window = _settled(world, meter, seconds)
    memory = meter.memory
    assert world.session.end_agent() == 0
    return {"cpu": window.cpu * 1e3, "wakeups": window.woken, **memory}


def still(world, side_class, seconds, workload=STILL):
    """The same, while a screen is shared that stands still, or several."""
    with world.showing(**workload.settings):
        side = side_class(world.session, workload)
        reader = Reader(side.descriptors[0], world.path())
        if side_class is Vitrine:
            wait_until(lambda: reader.begun, "the first picture")
            # Ten seconds after a frame the agent says what became of it; then it sleeps.
            wait_until(lambda: "received=" in world.session.processes.log("agent").rpartition("broadcast active")[2], "the agent's line")
        meter = Meter(side.pid)
        window = _settled(world, meter, seconds)
        memory = meter.memory
        reader.stop()
        side.end()
    try:
        # Of several sources there is no one picture to compare with.
        sharpness = _sharpness(reader, 2) if workload.sources == 1 else None
    finally:
        reader.path.unlink()
    return {"cpu": window.cpu * 1e3, "wakeups": window.woken, "sent": window.sent, "sharpness": sharpness, **memory}


def _settled(world, meter, seconds):
    """A window that begins when the process has come to rest; one that never does is measured all the same."""
    with contextlib.suppress(AssertionError):
        last = [meter.cpu, time.monotonic()]

        def rests():
            if (now := meter.cpu) - last[0] > 1e-4:
                last[:] = now, time.monotonic()
            return time.monotonic() - last[1] > 1

        wait_until(rests, "rest", 6)
    window = Window(world, meter)
    time.sleep(seconds)
    window.close()
    return window


def _sharpness(reader, within):
    """Luma in dB of the last picture that came within so many seconds of the first."""
    packets = reader.packets()
    count = sum(arrived <= packets[0][0] + within * 1e9 for arrived, *_ in packets)
    return deliveries(reader, STILL)[count - 1].psnr


@contextlib.contextmanager
def busy_core():
    """Another program wants one of the cores all the time meanwhile."""
    with subprocess.Popen(["taskset", "-c", str(max(os.sched_getaffinity(0))), "sh", "-c", "while :; do :; done"]) as other:
        try:
            yield
        finally:
            other.kill()


# What reads, for each name, as options of Subscribe; None is nobody.
MEMORY = {"no reader": None, "VP8": {}, "VP9": {"codec": "vp9"}, "frames": {"format": "frames"}}


def memory_by_part(world, name):
    """What `vitrinectl stats --memory` says of an agent that is `idle`, or shares 1080p with one of these readers; in megabytes."""
    workload = Workload("video", "video")
    with world.showing(**workload.settings):
        world.session.start_agent()
        agent = world.session.agent()
        drain = None
        if name != "idle":
            agent.set_screen_share(True, wait=True, cursor="hidden")
            if MEMORY[name] is not None:
                drain = Drain([agent.desktop.subscribe(**MEMORY[name]).take()])
            world.wait_for_frames(world.sent + round(WARM_UP * workload.fps))
        report = json.loads(world.session.control("stats", "--memory", "--json").stdout)
        if drain:
            drain.close()
        assert world.session.end_agent() == 0
    return {**{part: size / (1 << 20) for part, size in report["parts"].items()}, "all": report["resident"] / (1 << 20)}


def capture_only(world, workload, seconds):
    """A broadcast without a reader: CPU as a share of one core, memory."""
    with world.showing(**workload.settings):
        side = Vitrine(world.session, workload, readers=0)
        world.wait_for_frames(max(2, round(WARM_UP * workload.fps * workload.sources)))
        meter = Meter(side.pid)
        window = Window(world, meter)
        time.sleep(seconds)
        window.close()
        memory = meter.memory
        side.end()
    return {"core": window.cpu / window.seconds, "sent": window.sent / window.seconds, **memory}


def first_key_frames(world, count):
    """Milliseconds to the last byte of the first key frame in the reader: from the answer of the picker, and from the source's buffer."""
    workload = Workload("video", "video")
    from_answer, from_source = [], []
    with world.showing(**workload.settings, answer="never"):
        world.session.start_agent()
        agent = world.session.agent()
        for _ in range(count):
            subscription = agent.desktop.subscribe()
            reader = Reader(subscription.take(), world.path())
            call = agent.start_screen_share(True, wait=True, cursor="hidden")
            world.screen.wait_for_picker()
            answered = time.monotonic_ns()
            world.screen.answer("ok")
            call.wait()
            wait_until(lambda: len(reader.packets()) > 1, "the first pictures")
            timeline = dict(reversed(world.screen.get("Timeline")))
            reader.stop()
            agent.set_screen_share(False)
            world.screen.wait_until_closed()
            first = deliveries(reader, workload, compares=False)[0]
            reader.path.unlink()
            from_answer.append((first.arrived - answered) / 1e6)
            from_source.append((first.arrived - timeline[first.number]) / 1e6)
        assert world.session.end_agent() == 0
    return from_answer, from_source


def later_key_frames(world, count):
    """Milliseconds from a request to the last byte of the key frame in the reader, while all of the picture moves."""
    workload = Workload("video", "video")
    with world.showing(**workload.settings):
        side = Vitrine(world.session, workload)
        reader = Reader(side.descriptors[0], world.path())
        world.wait_for_frames(round(WARM_UP * workload.fps))
        found = []
        for _ in range(count):
            requested = time.monotonic_ns()
            side.subscriptions[0].call("RequestKeyFrame")

            def answer(since=requested):
                return next((arrived for arrived, _, is_key in reader.packets() if is_key and arrived > since), None)

            found.append((wait_until(answer, "the key frame") - requested) / 1e6)
            # Requests that come within half a second of a key frame wait until that is over.
            world.wait_for_frames(world.sent + 20)
        reader.stop()
        side.end()
    return found


def starts(world, count):
    """Starts and stops sharing so often; what the agent has after the tenth and after the last: descriptors, threads, megabytes."""
    figures = {}
    with world.showing(workload="moving", size=(640, 360)):
        world.session.start_agent()
        agent = world.session.agent()
        meter = Meter(world.session.agent_process.pid)
        for index in range(1, count + 1):
            subscription = agent.desktop.subscribe()
            reader = Reader(subscription.take(), world.path())
            agent.set_screen_share(True, wait=True)
            wait_until(lambda: reader.begun, "the first picture")
            reader.stop()
            reader.path.unlink()
            agent.set_screen_share(False)
            wait_until(lambda: not agent.desktop.get("Subscriptions"), "no subscription")
            if index in (min(10, count), count):
                # An encoder stays for a moment, for a reader that comes back.
                wait_until(lambda: not meter.has_thread("enc-"), "no encoder")
                figures[index] = {"descriptors": meter.descriptors, "threads": meter.threads, "anonymous": meter.memory["anonymous"]}
        assert world.session.end_agent() == 0
    return figures


class Floor:
    """What cannot be had for less: see floor.c, which is built for it."""

    def __init__(self, folder):
        self._program = folder / "floor"
        subprocess.run(["cc", "-O2", "-o", self._program, TOP / "Tests/bench/floor.c", "-lvpx", "-lyuv"], check=True)

    def measure(self, workload, pictures, speed=8):
        """Milliseconds for each picture: CPU of a bare copy, CPU and time of libvpx alone, at the speed of the GStreamer pipeline or another."""
        width, height = workload.size
        painting = [program("vitrine-testscreen"), "--pictures", pictures, "--workload", workload.content, "--size", f"{width}x{height}"]
        counting = [self._program, width, height, pictures, workload.fps, workload.bitrate, speed]
        with subprocess.Popen([str(word) for word in painting], stdout=subprocess.PIPE) as screen:
            printed = subprocess.run([str(word) for word in counting], stdin=screen.stdout, capture_output=True, text=True, check=True).stdout
        return tuple(float(word) for word in printed.split())
