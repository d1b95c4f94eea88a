# SPDX-License-Identifier: MIT
"""What Vitrine may cost, held against what it did."""

import dataclasses
import statistics

import table

# A frame of 30 a second.
FRAME_TIME = 1000 / 30


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

    def _judge(self, what, figure, limit, unit=""):
        self.all.append(Budget(what, table.number(figure) + unit, table.number(limit) + unit, figure <= limit))

    def judge_comparison(self, workload, found):
        if workload.budget:
            self._judge(f"{workload.name}: CPU time a frame, of GStreamer's", statistics.median(found["ratio"]), workload.budget)
        runs = found["vitrine"]
        if runs[0]["latency"] and workload.name != "video-2160p":
            self._judge(f"{workload.name}: latency p99", statistics.median(run["latency"][1] for run in runs), FRAME_TIME, " ms")
        if workload.name == "video":
            self._judge("own memory with a VP8 reader at 1080p", max(run["anonymous"] for run in runs), 100, " MB")

    def judge_idle(self, found):
        self._judge("resident memory, idle", found["idle"]["resident"], 12, " MB")
        for name in ("idle", "still"):
            self._judge(f"{name}: CPU in 10 s", found[name]["cpu"], 1, " ms")
            self._judge(f"{name}: wake-ups in 10 s", sum(found[name]["wakeups"].values()), 0)

    def judge_capture(self, found):
        self._judge("own memory without an encoder", max(one["anonymous"] for one in found.values()), 50, " MB")
        self._judge("no reader, 1080p60 with partial damage: a core", found["partial damage"]["core"] * 100, 2, " %")
        self._judge("no reader, 1080p60 with full motion: a core", found["full motion"]["core"] * 100, 8, " %")

    def judge_starts(self, found):
        self._judge("portal's answer to first key frame", statistics.median(found["answer"]), 150, " ms")
        for name in ("source", "request"):
            self._judge(f"from the {name} to a key frame", statistics.median(found[name]), 2 * FRAME_TIME, " ms")

    def judge_growth(self, found):
        readers = found["readers"]
        for step, limit in zip(readers[1:], (1.15, 1.5)):
            self._judge(f"{step['what']} readers: CPU, of one's", step["cpu"] / readers[0]["cpu"], limit)
        for kind in ("tracks", "pixels", "frames a second"):
            first, last = found[kind][0], found[kind][-1]
            growth = (last["cpu"] / first["cpu"]) / (last["work"] / first["work"])
            self._judge(f"CPU over work, {last['what']} {kind} against {first['what']}", growth, 1.0)

    def judge_repeated(self, found):
        first, last = found.values()
        for name, limit, unit in (("descriptors", 0, ""), ("threads", 0, ""), ("anonymous", 1, " MB")):
            self._judge(f"{list(found)[-1]} starts: more {name}", last[name] - first[name], limit, unit)
