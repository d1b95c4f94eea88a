# SPDX-License-Identifier: MIT
"""A short form of `make bench` that a busy machine can pass and a step back cannot: ratios of what was measured a moment apart.

Vitrine is held against a bare copy of each picture and against libvpx alone, which encodes all of every picture on one thread, as fast. That is a
steadier measure than the GStreamer pipeline of the budgets: its two threads wait for each other by spinning, several times as long where
others want the cores, so that any step back would pass there. What others do on the machine only ever adds: of a figure that is too great
the least of a few is taken. A step back is in all of them.
"""

import statistics
import sys

import pytest

import measure
from sides import Vitrine
from workload import COMPOSED, STILL, WORKLOADS, Workload

SECONDS = 3
TRIES = 4
# Of libvpx, as Vitrine has it: a fixed one, so that the encoder does not work more where it has more time.
SPEED = -5
# CPU time of a frame, as a share of libvpx's, and luma in dB. Usual are 0.2, 0.7, 1.0 and 1.05; more where pictures are coalesced.
LIMITS = {"repeats": (0.35, 38), "typing": (0.95, 38), "scrolling": (1.7, 28), "video": (1.7, 34)}
# Bits a second, of those asked for. Usual is 1.0; 2.9 where text that scrolls is not found where it was.
BITRATE_LIMIT = 1.6
# CPU time of a frame without a reader, as multiples of a bare copy of the picture, which is 8 MB. Usual are 0.4 and 1.1.
PARTIAL, FULL = Workload("partial", "moving", fps=60), Workload("full", "video", fps=60)
CAPTURE_LIMITS = {PARTIAL: 0.8, FULL: 1.7}


@pytest.fixture(scope="module")
def world():
    with measure.World() as world:
        yield world


@pytest.fixture(scope="module")
def floor(world):
    return measure.Floor(world.session.root)


def least(figure, limit):
    """The figure when it is within the limit, else the least of a few."""
    found = []
    while not found or (found[-1] > limit and len(found) < TRIES):
        found.append(figure())
    return min(found)


@pytest.mark.parametrize("name", LIMITS)
def test_a_frame_costs_no_more_than_its_budget(world, floor, name):
    """What has not changed is not encoded, and what has is encoded neither dearly nor badly."""
    workload, (limit, sharpness) = WORKLOADS[name], LIMITS[name]

    def share():
        run = measure.run(world, Vitrine, workload, SECONDS)
        _, alone, _ = floor.measure(workload, 60, SPEED)
        say(f"{name}: {run.cpu:.2f} ms a frame, libvpx alone {alone:.2f}: {run.cpu / alone:.2f} of at most {limit}; {run.psnr:.1f} dB, {run.bitrate:.0f} kbit/s")
        # Neither sharpness nor bits are a matter of who else wants the cores; but the fewer pictures, the more is new in each.
        assert run.psnr >= sharpness
        assert workload.repeats or 1e3 * run.bitrate <= BITRATE_LIMIT * workload.bitrate
        return run.cpu / alone

    assert least(share, limit) <= limit


def test_a_still_screen_costs_nothing(world, floor):
    """Not the tenth part of encoding one picture, in five seconds; and two seconds after it came it is sharp."""
    _, alone, _ = floor.measure(STILL, 10, SPEED)
    found = measure.still(world, Vitrine, 5)
    say(f"still: {found['cpu']:.2f} ms, libvpx alone {alone:.2f} a frame; woken: {found['wakeups']}; {found['sharpness']:.1f} dB")
    assert found["cpu"] <= alone / 10
    assert sum(found["wakeups"].values()) <= 2
    # Usual are 46; 41 where nothing is refined.
    assert found["sharpness"] >= 43


def test_an_idle_agent_costs_nothing(world, floor):
    _, alone, _ = floor.measure(STILL, 10, SPEED)
    found = measure.idle(world, 5)
    say(f"idle: {found['cpu']:.2f} ms; woken: {found['wakeups']}; {found['resident']:.1f} MB")
    assert found["cpu"] <= alone / 10
    assert sum(found["wakeups"].values()) <= 2


def test_memory_is_within_its_budget(world):
    """That of PipeWire's buffers, which belong to the compositor, is not the agent's."""
    for name, limit in {"idle": 12, "no reader": 25, "VP8": 105}.items():
        parts = measure.memory_by_part(world, name)
        own = parts["all"] - parts["buffers"]
        say(f"memory, {name}: " + ", ".join(f"{part} {size:.1f}" for part, size in parts.items()) + " MB")
        assert own <= limit, name
        assert (parts["encoders"] > 0) == (name == "VP8")


def test_readers_share_an_encoder(world):
    """Ten cost little more than one, and a hundred not much more."""
    workload = WORKLOADS["scrolling"]

    def cost(readers):
        cpu, frames = measure.cost(world, workload, SECONDS, readers)
        return cpu / frames

    one = min(cost(1) for _ in range(2))
    for readers, limit in {10: 1.4, 100: 2}.items():
        many = least(lambda count=readers: cost(count), one * limit)
        say(f"readers: {1e3 * one:.2f} ms a frame for one, {1e3 * many:.2f} for {readers}: {many / one:.2f} of at most {limit}")
        assert many <= one * limit


def test_four_sources_cost_little_more_than_one(world):
    """Composed and encoded, against one source of as many pixels, for each picture that a reader gets: what did not change is neither copied nor encoded."""
    one_source, four_sources = COMPOSED["partial damage"]
    limit = 1.7

    def cost():
        one, four = (measure.cost_of_a_picture(world, workload, SECONDS)[0] for workload in (one_source, four_sources))
        say(f"composed: {four:.2f} ms a picture, one source {one:.2f}: {four / one:.2f} of at most {limit}")
        return four / one

    assert least(cost, limit) <= limit


@pytest.mark.parametrize("workload", CAPTURE_LIMITS, ids=lambda workload: workload.name)
def test_without_a_reader_pixels_are_touched_once(world, floor, workload):
    """What has changed is converted, and nothing else is read, copied or encoded."""
    limit = CAPTURE_LIMITS[workload]

    def share():
        run = measure.capture_only(world, workload, SECONDS)
        copying = statistics.median(floor.measure(workload, 20)[0] for _ in range(3))
        cost = 1e3 * run["core"] / run["sent"]
        say(f"no reader, {workload.name}: {cost:.2f} ms a frame, a bare copy {copying:.2f}: {cost / copying:.2f} of at most {limit}")
        return cost / copying

    assert least(share, limit) <= limit


def test_a_frame_waits_for_no_timer(world, floor):
    """Half of them are with the reader within a few times what libvpx takes for one, on the same machine, as busy as it is."""
    limit = 2.5

    def share():
        took = measure.run(world, Vitrine, WORKLOADS["typing"], SECONDS, compares=False).latency[0]
        *_, alone = floor.measure(WORKLOADS["typing"], 60, SPEED)
        say(f"typing: half of the frames within {took:.1f} ms, libvpx alone {alone:.1f}: {took / alone:.2f} of at most {limit}")
        return took / alone

    assert least(share, limit) <= limit


def say(line):
    """Also of a test that passes: what is usual is worth knowing."""
    print(f"\n{line}", file=sys.__stderr__, flush=True)
