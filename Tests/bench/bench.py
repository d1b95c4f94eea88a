#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Measures Vitrine beside a GStreamer pipeline that does the same job with the same codec, and prints ratios.

Both share the same test screen through the same portal, one after the other, in several rounds; each has the same pictures. What
belongs to PipeWire, the portal and the test screen is in nobody's figures. CPU time depends on what else the machine does: let it rest.
"""

import argparse
import dataclasses
import json
import os
import statistics
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "integration"))

import measure
import table
from budgets import Budgets
from sides import GStreamer, Vitrine
from workload import FULL_HD, WORKLOADS, Workload

SIDES = (Vitrine, GStreamer)
PARTS = ("compare", "floors", "idle", "capture", "starts", "growth")


def arguments():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog="Exit status: 0, also when a budget is not met: a machine that does something else meanwhile proves nothing.")
    parser.add_argument("workloads", nargs="*", metavar="WORKLOAD", help=f"{' '.join(WORKLOADS)}; all of them when none is named")
    parser.add_argument("--rounds", type=int, default=3, help="how often each workload is measured (3)")
    parser.add_argument("--seconds", type=float, default=3, help="seconds that are counted of each run (3)")
    parser.add_argument("--parts", default=",".join(PARTS), help=f"what is measured: some of {','.join(PARTS)} (all)")
    parser.add_argument("--starts", type=int, default=0, metavar="N", help="starts and stops sharing N times besides, and counts what is left over")
    parser.add_argument("--json", action="store_true", help="prints JSON, with each single run, instead of tables")
    chosen = parser.parse_args()
    chosen.parts = chosen.parts.split(",")
    for word, known in [(word, WORKLOADS) for word in chosen.workloads] + [(word, PARTS) for word in chosen.parts]:
        if word not in known:
            parser.error(f"{word}: there are {' '.join(known)}")
    chosen.workloads = [WORKLOADS[name] for name in chosen.workloads or WORKLOADS]
    return chosen


def machine():
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    model = next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), "CPU")
    return f"{len(os.sched_getaffinity(0))} cores of {model}, load {os.getloadavg()[0]:.1f}"


class Bench:
    """Measures the parts that were asked for, and keeps the figures as they will be printed as JSON."""

    def __init__(self, chosen, world):
        self._chosen, self._world = chosen, world
        self.figures = {"machine": machine()}
        self.budgets = Budgets()

    def measure(self):
        for part in PARTS:
            if part in self._chosen.parts:
                self._say(part)
                self.figures[part] = getattr(self, f"_{part}")()
        if self._chosen.starts:
            self._say(f"{self._chosen.starts} starts and stops")
            self.figures["repeated"] = measure.starts(self._world, self._chosen.starts)
            self.budgets.judge_repeated(self.figures["repeated"])
        self.figures["budgets"] = [dataclasses.asdict(one) for one in self.budgets.all]
        return self.figures

    @staticmethod
    def _say(words):
        print(f"bench: {words}", file=sys.stderr, flush=True)

    def _compare(self):
        found = {workload.name: {side.name: [] for side in SIDES} for workload in self._chosen.workloads}
        for index in range(self._chosen.rounds):
            for workload in self._chosen.workloads:
                # Who comes first takes turns.
                for side in SIDES if index % 2 == 0 else reversed(SIDES):
                    self._say(f"round {index + 1} of {self._chosen.rounds}: {workload.name}, {side.name}")
                    run = measure.run(self._world, side, workload, self._chosen.seconds)
                    found[workload.name][side.name].append(dataclasses.asdict(run))
        for workload in self._chosen.workloads:
            ours, theirs = (found[workload.name][side.name] for side in SIDES)
            found[workload.name]["ratio"] = [one["cpu"] / other["cpu"] for one, other in zip(ours, theirs)]
            self.budgets.judge_comparison(workload, found[workload.name])
        return found

    def _floors(self):
        floor = measure.Floor(self._world.session.root)
        found = {}
        for workload in self._chosen.workloads:
            copying, encoding = floor.measure(workload, 60)
            found[workload.name] = {"copy": copying, "libvpx": encoding}
        return found

    def _idle(self):
        seconds = 10
        found = {
            "idle": measure.idle(self._world, seconds), "still": measure.still(self._world, Vitrine, seconds),
            "still, GStreamer": measure.still(self._world, GStreamer, seconds),
        }
        self.budgets.judge_idle(found)
        return found

    def _capture(self):
        seconds = self._chosen.seconds
        found = {
            "partial damage": measure.capture_only(self._world, Workload("partial", "moving", fps=60), seconds),
            "full motion": measure.capture_only(self._world, Workload("full", "video", fps=60), seconds),
        }
        self.budgets.judge_capture(found)
        return found

    def _starts(self):
        from_answer, from_source = measure.first_key_frames(self._world, 7)
        found = {"answer": from_answer, "source": from_source, "request": measure.later_key_frames(self._world, 7)}
        self.budgets.judge_starts(found)
        return found

    def _growth(self):
        """For each kind of work: how much of it, and what it costs: CPU in seconds a second."""
        world, seconds = self._world, min(self._chosen.seconds, 2)
        found = {"readers": [], "tracks": [], "pixels": [], "frames a second": []}
        for count in (1, 10, 100):
            cpu, taken = measure.cost(world, WORKLOADS["scrolling"], seconds, readers=count)
            found["readers"].append({"what": str(count), "work": count * taken, "cpu": cpu})
        for count in (1, 4):
            workload = Workload("tracks", "moving", size=(1280, 720), preset="h720p")
            cpu, taken = measure.cost_of_tracks(world, workload, seconds, count)
            found["tracks"].append({"what": str(count), "work": taken, "cpu": cpu})
        for width, height in ((1280, 720), FULL_HD, (2560, 1440), (3840, 2160)):
            workload = Workload("pixels", "video", fps=10, size=(width, height), preset="native")
            cpu, taken = measure.cost(world, workload, seconds)
            found["pixels"].append({"what": f"{width}x{height}", "work": width * height * taken, "cpu": cpu})
        for fps in (1, 10, 30, 60, 144):
            workload = Workload("rate", "moving", fps=fps, size=(1280, 720), preset="native")
            cpu, taken = measure.cost(world, workload, max(seconds, 4 / fps), fps=fps)
            found["frames a second"].append({"what": str(fps), "work": taken, "cpu": cpu})
        self.budgets.judge_growth(found)
        return found


def report(chosen, figures):
    """The tables."""
    yield f"{figures['machine']}; {chosen.rounds} rounds of {chosen.seconds:g} s. Medians, ranges in brackets. MB own: without PipeWire's buffers."
    if "compare" in figures:
        yield from _comparison(figures)
    if "idle" in figures:
        rows = [[name, table.number(one["cpu"]), sum(one["wakeups"].values()),
                 " ".join(f"{thread} {count}" for thread, count in one["wakeups"].items()) or "-",
                 *(table.number(one[kind]) for kind in ("anonymous", "shared", "resident"))] for name, one in figures["idle"].items()]
        yield "Ten seconds in which nothing happens:\n" + table.text(
            ["", "CPU ms", "wake-ups", "of threads", "MB own", "shared", "resident"], rows)
    if "capture" in figures:
        rows = [[name, f"{one['core'] * 100:.1f}", table.number(one["sent"]), *(table.number(one[kind]) for kind in ("anonymous", "shared", "resident"))]
                for name, one in figures["capture"].items()]
        yield "A broadcast without a reader, 1920x1080, 60 frames/s:\n" + table.text(
            ["", "% of a core", "frames/s", "MB own", "shared", "resident"], rows)
    if "starts" in figures:
        rows = [[f"from the {name}", table.spread(times)] for name, times in figures["starts"].items()]
        yield "To the last byte of a key frame in the reader, 1920x1080, all of it moves (answer: the picker's; request: RequestKeyFrame):\n" + (
            table.text(["", "ms"], rows))
    if "growth" in figures:
        for kind, steps in figures["growth"].items():
            first = steps[0]
            rows = [[one["what"], table.number(one["cpu"] * 100), table.number(one["work"] / first["work"]), table.number(one["cpu"] / first["cpu"])]
                    for one in steps]
            yield table.text([kind, "% of a core", "work", "CPU"], rows)
    if "repeated" in figures:
        rows = [[count, one["descriptors"], one["threads"], table.number(one["anonymous"])] for count, one in figures["repeated"].items()]
        yield table.text(["starts", "descriptors", "threads", "MB own"], rows)
    if figures["budgets"]:
        rows = [[one["what"], one["figure"], one["limit"], "yes" if one["met"] else "NO"] for one in figures["budgets"]]
        yield table.text(["budget", "measured", "limit", "met"], rows)


def _comparison(figures):
    rows = []
    for name, found in figures["compare"].items():
        rows += [[f"{name}, {side.name}", *_middles(found[side.name])] for side in SIDES]
        note = f"    ratio {table.spread(found['ratio'])}"
        if name in figures.get("floors", {}):
            floor = figures["floors"][name]
            note += f"; ms a frame of a bare copy {table.number(floor['copy'])}, of libvpx alone {table.number(floor['libvpx'])}"
        rows.append(note)
    yield table.text(
        ["", "CPU ms/frame", "latency p50", "p99 ms", "PSNR dB", "kbit/s", "delivered", "coalesced", "peak MB", "own MB", "wake-ups/s"], rows)


def _middles(runs):
    """The cells of one side: the CPU time with its range, of the others the median."""
    def middle(values):
        values = [value for value in values if value is not None]
        return table.number(statistics.median(values)) if values else "-"

    def of(name):
        return middle(run[name] for run in runs)

    latencies = [middle(run["latency"][index] if run["latency"] else None for run in runs) for index in (0, 1)]
    return [table.spread([run["cpu"] for run in runs]), *latencies, of("psnr"), of("bitrate"), f"{of('delivered')}/{of('sent')}", of("coalesced"),
            of("peak"), of("anonymous"), of("wakeups")]


def main():
    chosen = arguments()
    began = time.monotonic()
    with measure.World() as world:
        figures = Bench(chosen, world).measure()
    if chosen.json:
        print(json.dumps(figures, indent=1))
    else:
        print("\n\n".join(report(chosen, figures)))
    print(f"bench: took {time.monotonic() - began:.0f} s", file=sys.stderr)


if __name__ == "__main__":
    main()
