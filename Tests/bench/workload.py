# SPDX-License-Identifier: MIT
"""What happens on the screen while it is shared, and what Vitrine may cost then."""

import dataclasses

FULL_HD, UHD = (1920, 1080), (3840, 2160)


@dataclasses.dataclass(frozen=True)
class Workload:
    name: str
    content: str
    """One of the test screen's workloads."""
    fps: int = 30
    size: tuple = FULL_HD
    damage: str = "exact"
    """What the source says of its damage; `exact` as good compositors do."""
    preset: str = "h1080p"
    bitrate: int = 4_000_000
    """Bit/s of both sides."""
    sources: int = 1
    """1, 2 or 4, which together have the size, and are composed."""
    stands: bool = False
    """Whether the first picture is all there is."""
    budget: float | None = None
    """CPU time per frame as a share of GStreamer's."""

    @property
    def settings(self):
        """The test screen's settings."""
        settings = {"workload": self.content, "fps": self.fps, "size": self.size, "damage": self.damage, "manual": self.stands}
        if self.sources > 1:
            columns, rows = 2, self.sources // 2
            settings |= {"streams": self.sources, "sizes": [(self.size[0] // columns, self.size[1] // rows)] * self.sources}
        return settings

    @property
    def has_latency_budget(self):
        """Whether pictures of it must be with the reader within a frame's time: at 1080p, where each shows something new."""
        return self.size == FULL_HD and not self.repeats

    @property
    def repeats(self):
        """Whether no picture differs from the one before: then none has to be sent, and each that came was delivered."""
        return self.content == "repeats"


WORKLOADS = {one.name: one for one in (
    Workload("repeats", "repeats", damage="absent", budget=0.10),
    Workload("typing", "typing", fps=10, budget=0.30),
    Workload("scrolling", "scrolling", budget=0.60),
    Workload("video", "video", budget=0.75),
    Workload("video-2160p", "video", size=UHD, preset="h2160p", bitrate=14_000_000),
)}
# Of text: nothing else shows so well how sharp it is.
STILL = Workload("still", "typing", stands=True)
STILL_SET = Workload("still set", "still", sources=4)
# What is composed of four sources and read, beside one source that has all of its pixels.
COMPOSED = {name: (Workload(name, content), Workload(name, content, sources=4))
            for name, content in (("partial damage", "moving"), ("full motion", "video"))}
