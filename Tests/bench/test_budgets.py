# SPDX-License-Identifier: MIT
"""A short form of `make bench` that a busy machine can pass and a step back cannot: ratios of what was measured a moment apart, no times.

Vitrine is held against libvpx alone, which encodes all of every picture on one thread. That is a steadier measure than the GStreamer
pipeline of the budgets: its two threads wait for each other by spinning, several times as long where others want the cores, so that any
step back would pass there.
"""

import sys

import pytest

import measure
from sides import Vitrine
from workload import STILL, WORKLOADS

SECONDS = 3
# CPU time of a frame, as a share of libvpx's, and luma in dB. Usual are 0.18, 0.6, 1.0 and 1.0, the last two more where pictures are coalesced.
LIMITS = {"repeats": (0.35, 38), "typing": (0.75, 38), "scrolling": (1.80, 28), "video": (1.80, 34)}


@pytest.fixture(scope="module")
def world():
    with measure.World() as world:
        yield world


@pytest.fixture(scope="module")
def floor(world):
    return measure.Floor(world.session.root)


@pytest.mark.parametrize("name", LIMITS)
def test_a_frame_costs_no_more_than_its_budget(world, floor, name):
    """What has not changed is not encoded, and what has is encoded neither dearly nor badly."""
    workload, (share, sharpness) = WORKLOADS[name], LIMITS[name]
    run = measure.run(world, Vitrine, workload, SECONDS)
    _, alone = floor.measure(workload, 60)
    say(f"{name}: {run.cpu:.2f} ms a frame, libvpx alone {alone:.2f}: {run.cpu / alone:.2f} of at most {share}; {run.psnr:.1f} dB")
    assert run.cpu / alone <= share
    assert run.psnr >= sharpness


def test_a_still_screen_costs_nothing(world, floor):
    """Not the tenth part of encoding one picture, in five seconds."""
    found = measure.still(world, Vitrine, 5)
    _, alone = floor.measure(STILL, 10)
    say(f"still: {found['cpu']:.2f} ms, libvpx alone {alone:.2f} a frame; woken: {found['wakeups']}")
    assert found["cpu"] <= alone / 10
    assert sum(found["wakeups"].values()) <= 2


def test_readers_share_an_encoder(world):
    """Ten cost little more than one, and where there is none nothing is encoded."""
    workload = WORKLOADS["scrolling"]
    none = measure.capture_only(world, workload, SECONDS)
    (one, frames), (ten, frames_of_ten) = (measure.cost(world, workload, SECONDS, readers) for readers in (1, 10))
    costs = none["core"] / none["sent"], one / frames, ten / frames_of_ten
    say("readers: {:.2f} ms a frame for none, {:.2f} for one, {:.2f} for ten".format(*(1e3 * cost for cost in costs)))
    assert costs[0] <= costs[1] * 0.5
    assert costs[2] <= costs[1] * 1.4


def say(line):
    """Also of a test that passes: what is usual is worth knowing."""
    print(f"\n{line}", file=sys.__stderr__, flush=True)
