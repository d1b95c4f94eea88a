# SPDX-License-Identifier: MIT
"""What Vitrine may cost, held against what it did."""

import dataclasses
import statistics

import table

# A frame of 30 a second.
FRAME_TIME = 1000 / 30
# CPU that grows as the work does is measured a little above or below it.
GROWTH_LIMIT = 1.1


def growth(steps):
    """Of each step (work, CPU), as multiples of the first step's; of the rounds the median."""
    values = [(statistics.median(step["work"]), statistics.median(step["cpu"])) for step in steps]
    first_work, first_cpu = values[0]
    return [(work / first_work, cpu / first_cpu) for work, cpu in values]


def greatest_growth(steps):
    """How much faster than the work CPU grows, from the first step to the one that is worst; 1 is as fast."""
    return max(cpu / work for work, cpu in growth(steps)[1:])


def verdict(steps):
    worst = greatest_growth(steps)
    return f"CPU grows {'no faster than the work' if worst <= GROWTH_LIMIT else 'FASTER than the work'}: at most {table.number(worst)} times as fast"


@dataclasses.dataclass(frozen=True)
class Budget:
    what: str
    figure: str
    limit: str
    met: bool


class Budgets:
    """Those of which something was measured."""

    def __init__(self):
        self.all = []

    def _judge(self, what, figure, limit, unit="", least=False):
        met = figure >= limit if least else figure <= limit
        self.all.append(Budget(what, table.number(figure) + unit, ("at least " if least else "") + table.number(limit) + unit, met))

    def judge_comparison(self, workload, found):
        if workload.budget:
            self._judge(f"{workload.name}: CPU time a frame, of GStreamer's", statistics.median(found["ratio"]), workload.budget)
        runs = found["vitrine"]
        if not workload.repeats:
            rate = statistics.median(run["bitrate"] for run in runs)
            self._judge(f"{workload.name}: bits a second, of those asked for", 1e3 * rate / workload.bitrate, 1.2)
        if workload.has_latency_budget:
            self._judge(f"{workload.name}: latency p99", statistics.median(run["latency"][1] for run in runs), FRAME_TIME, " ms")
        if workload.name == "video":
            self._judge("own memory with a VP8 reader at 1080p", max(run["anonymous"] for run in runs), 100, " MB")

    def judge_busy(self, found):
        for name, runs in found.items():
            self._judge(f"{name}, one core busy: latency p99", statistics.median(run["latency"][1] for run in runs), FRAME_TIME, " ms")

    def judge_idle(self, found):
        self._judge("resident memory, idle", found["idle"]["resident"], 12, " MB")
        for name in ("idle", "still", "still, 4 sources"):
            self._judge(f"{name}: CPU in 10 s", found[name]["cpu"], 1, " ms")
            self._judge(f"{name}: wake-ups in 10 s", sum(found[name]["wakeups"].values()), 0)
        self._judge("still: luma after two seconds", found["still"]["sharpness"], 40, " dB", least=True)

    def judge_capture(self, found):
        self._judge("own memory without an encoder", max(run["anonymous"] for runs in found.values() for run in runs), 50, " MB")
        for name, limit in (("partial damage", 2), ("full motion", 8)):
            self._judge(f"no reader, 1080p60 with {name}: a core", 100 * statistics.median(run["core"] for run in found[name]), limit, " %")

    def judge_composed(self, found):
        for name, runs in found.items():
            self._judge(f"composed of 4 sources, {name}: CPU a picture, of one source's", statistics.median(runs["ratio"]), 1.4)

    def judge_starts(self, found):
        self._judge("portal's answer to first key frame", statistics.median(found["answer"]), 150, " ms")
        for name in ("source", "request"):
            self._judge(f"from the {name} to a key frame", statistics.median(found[name]), 2 * FRAME_TIME, " ms")

    def judge_growth(self, found):
        for step, (_, cpu), limit in zip(found["readers"][1:], growth(found["readers"])[1:], (1.15, 1.5)):
            self._judge(f"{step['what']} readers: CPU, of one's", cpu, limit)
        for kind, steps in found.items():
            self._judge(f"growth with {kind}: CPU over work", greatest_growth(steps), GROWTH_LIMIT)

    def judge_repeated(self, found):
        first, last = found.values()
        for name, limit, unit in (("descriptors", 0, ""), ("threads", 0, ""), ("anonymous", 1, " MB")):
            self._judge(f"{list(found)[-1]} starts: more {name}", last[name] - first[name], limit, unit)
