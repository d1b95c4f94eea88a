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
from budgets import Budgets, growth, verdict
from sides import GStreamer, Vitrine
from workload import COMPOSED, FULL_HD, STILL_SET, UHD, WORKLOADS, Workload

SIDES = (Vitrine, GStreamer)
PARTS = ("compare", "floors", "busy", "idle", "memory", "capture", "composed", "starts", "growth")


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
        found = {workload.name: {"copy": [], "libvpx": []} for workload in self._chosen.workloads}
        for _ in range(self._chosen.rounds):
            for workload in self._chosen.workloads:
                copying, encoding, _ = floor.measure(workload, 60)
                found[workload.name]["copy"].append(copying)
                found[workload.name]["libvpx"].append(encoding)
        return found

    def _busy(self):
        """Latency while another program keeps one core busy."""
        found = {workload.name: [] for workload in self._chosen.workloads if workload.has_latency_budget}
        for _ in range(self._chosen.rounds):
            for name, runs in found.items():
                with measure.busy_core():
                    runs.append(dataclasses.asdict(measure.run(self._world, Vitrine, WORKLOADS[name], self._chosen.seconds, compares=False)))
        self.budgets.judge_busy(found)
        return found

    def _idle(self):
        seconds = 10
        found = {
            "idle": measure.idle(self._world, seconds), "still": measure.still(self._world, Vitrine, seconds),
            "still, 4 sources": measure.still(self._world, Vitrine, seconds, STILL_SET),
            "still, GStreamer": measure.still(self._world, GStreamer, seconds),
        }
        self.budgets.judge_idle(found)
        return found

    def _memory(self):
        return {name: measure.memory_by_part(self._world, name) for name in ("idle", *measure.MEMORY)}

    def _capture(self):
        kinds = {
            "partial damage": Workload("partial", "moving", fps=60), "full motion": Workload("full", "video", fps=60),
            "partial damage, 4 sources": Workload("partial", "moving", fps=60, sources=4),
            "full motion, 4 sources": Workload("full", "video", fps=60, sources=4),
        }
        found = {name: [] for name in kinds}
        for _ in range(self._chosen.rounds):
            for name, workload in kinds.items():
                found[name].append(measure.capture_only(self._world, workload, self._chosen.seconds))
        self.budgets.judge_capture(found)
        return found

    def _composed(self):
        """Of each kind, in turns: CPU ms of a picture that a reader gets and how many it gets a second, of one source and of four."""
        found = {name: {"one": [], "four": [], "ratio": []} for name in COMPOSED}
        for _ in range(self._chosen.rounds):
            for name, workloads in COMPOSED.items():
                one, four = (measure.cost_of_a_picture(self._world, workload, self._chosen.seconds) for workload in workloads)
                for kind, value in (("one", one), ("four", four), ("ratio", four[0] / one[0])):
                    found[name][kind].append(value)
        self.budgets.judge_composed(found)
        return found

    def _starts(self):
        from_answer, from_source = measure.first_key_frames(self._world, 7)
        found = {"answer": from_answer, "source": from_source, "request": measure.later_key_frames(self._world, 7)}
        self.budgets.judge_starts(found)
        return found

    def _growth(self):
        """For each kind of work: how much of it, and what it costs: CPU in seconds a second, as often as there are rounds."""
        seconds = min(self._chosen.seconds, 2)
        found = {kind: [{"what": what, "work": [], "cpu": []} for what, _ in steps] for kind, steps in GROWTH.items()}
        for index in range(self._chosen.rounds):
            for kind, steps in GROWTH.items():
                self._say(f"round {index + 1} of {self._chosen.rounds}: growth with {kind}")
                for step, (_, measured) in zip(found[kind], steps):
                    cpu, work = measured(self._world, seconds)
                    step["cpu"].append(cpu)
                    step["work"].append(work)
        self.budgets.judge_growth(found)
        return found


def _readers(count):
    def measured(world, seconds):
        cpu, taken = measure.cost(world, WORKLOADS["scrolling"], seconds, readers=count)
        return cpu, count * taken
    return str(count), measured


def _tracks(count):
    workload = Workload("tracks", "moving", size=(1280, 720), preset="h720p")
    return str(count), lambda world, seconds: measure.cost_of_tracks(world, workload, seconds, count)


def _pixels(width, height):
    workload = Workload("pixels", "video", fps=10, size=(width, height), preset="native")

    def measured(world, seconds):
        cpu, taken = measure.cost(world, workload, seconds)
        return cpu, width * height * taken
    return f"{width}x{height}", measured


def _rate(fps):
    workload = Workload("rate", "moving", fps=fps, size=(1280, 720), preset="native")
    return str(fps), lambda world, seconds: measure.cost(world, workload, max(seconds, 4 / fps), fps=fps)


# Of each kind of work several amounts: what it is called, and what measures it.
GROWTH = {
    "readers": [_readers(count) for count in (1, 10, 100)],
    "tracks": [_tracks(count) for count in (1, 4)],
    "pixels": [_pixels(*size) for size in ((1280, 720), FULL_HD, (2560, 1440), UHD)],
    "frames a second": [_rate(fps) for fps in (1, 10, 30, 60, 144)],
}


def report(chosen, figures):
    """The tables."""
    yield f"{figures['machine']}; {chosen.rounds} rounds of {chosen.seconds:g} s. Medians, ranges in brackets. MB own: without PipeWire's buffers."
    if "compare" in figures:
        yield from _comparison(figures)
    if "busy" in figures:
        rows = [[name, *(table.spread([run["latency"][index] for run in runs]) for index in (0, 1))] for name, runs in figures["busy"].items()]
        yield "While another program keeps one core busy:\n" + table.text(["", "latency p50 ms", "p99 ms"], rows)
    if "idle" in figures:
        rows = [[name, table.number(one["cpu"]), sum(one["wakeups"].values()),
                 " ".join(f"{thread} {count}" for thread, count in one["wakeups"].items()) or "-",
                 *(table.number(one[kind]) for kind in ("anonymous", "shared", "resident"))] for name, one in figures["idle"].items()]
        yield "Ten seconds in which nothing happens:\n" + table.text(
            ["", "CPU ms", "wake-ups", "of threads", "MB own", "shared", "resident"], rows)
    if "memory" in figures:
        head = list(next(iter(figures["memory"].values())))
        rows = [[name, *(table.number(parts[part]) for part in head)] for name, parts in figures["memory"].items()]
        yield "MB resident by part, as `vitrinectl stats --memory` has them:\n" + table.text(["", *head], rows)
    if "capture" in figures:
        rows = [[name, table.spread([100 * run["core"] for run in runs]),
                 *(table.number(statistics.median(run[kind] for run in runs)) for kind in ("sent", "anonymous", "shared", "resident"))]
                for name, runs in figures["capture"].items()]
        yield "A broadcast without a reader, 1920x1080, 60 frames/s:\n" + table.text(
            ["", "% of a core", "frames/s", "MB own", "shared", "resident"], rows)
    if "composed" in figures:
        rows = [[name, *(table.spread([run[index] for run in found[kind]]) for kind in ("one", "four") for index in (0, 1)), table.spread(found["ratio"])]
                for name, found in figures["composed"].items()]
        yield "A VP8 reader of 1920x1080, of one source and composed of four that have as many pixels together, 30 frames/s each:\n" + table.text(
            ["", "one: CPU ms/picture", "pictures/s", "four: CPU ms/picture", "pictures/s", "ratio"], rows)
    if "starts" in figures:
        rows = [[f"from the {name}", table.spread(times)] for name, times in figures["starts"].items()]
        yield "To the last byte of a key frame in the reader, 1920x1080, all of it moves (answer: the picker's; request: RequestKeyFrame):\n" + (
            table.text(["", "ms"], rows))
    if "growth" in figures:
        for kind, steps in figures["growth"].items():
            rows = [[step["what"], table.spread([100 * cpu for cpu in step["cpu"]]), table.number(work), table.number(cpu)]
                    for step, (work, cpu) in zip(steps, growth(steps))]
            yield table.text([kind, "% of a core", "work", "CPU"], rows) + f"\n    {verdict(steps)}"
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
            note += f"; ms a frame of a bare copy {table.spread(floor['copy'])}, of libvpx alone {table.spread(floor['libvpx'])}"
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

    def whole(name):
        return f"{statistics.median(run[name] for run in runs):.0f}"

    latencies = [middle(run["latency"][index] if run["latency"] else None for run in runs) for index in (0, 1)]
    return [table.spread([run["cpu"] for run in runs]), *latencies, of("psnr"), of("bitrate"), f"{whole('delivered')}/{whole('sent')}", whole("coalesced"),
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
