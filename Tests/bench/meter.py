# SPDX-License-Identifier: MIT
"""What a process costs, read from outside of it: CPU time, wake-ups, memory, descriptors and threads."""

import os
import time
from pathlib import Path


class Meter:
    """A process, which must be this user's."""

    def __init__(self, pid):
        self.pid = pid
        self._folder = Path("/proc") / str(pid)

    @property
    def cpu(self):
        """Seconds of CPU, user and system, of all threads that it ever had; exact to the nanosecond, where /proc/PID/stat has ticks of 10 ms."""
        # The clock's number as clock_getcpuclockid() makes it.
        return time.clock_gettime(~self.pid << 3 | 2)

    @property
    def wakeups(self):
        """How often a thread went to sleep of its own accord, by thread; the names of threads are not unique, their numbers are."""
        found = {}
        for task in (self._folder / "task").iterdir():
            status = _fields(task / "status")
            found[int(task.name)] = (status["Name"], int(status["voluntary_ctxt_switches"]))
        return found

    def wakeups_since(self, before):
        """By thread, those that were woken at all."""
        after = self.wakeups
        return {name: count - before.get(task, (name, 0))[1] for task, (name, count) in after.items()
                if count > before.get(task, (name, 0))[1]}

    def has_thread(self, prefix):
        """Whether a thread has a name that begins so."""
        return any(name.startswith(prefix) for name, _ in self.wakeups.values())

    @property
    def memory(self):
        """Megabytes: `peak` and `resident` of all pages, `anonymous` of its own, `shared` of shared memory, which are PipeWire's buffers."""
        status, pages = _fields(self._folder / "status"), _fields(self._folder / "smaps_rollup", skip=1)
        kilobytes = {
            "peak": status["VmHWM"], "resident": status["VmRSS"], "shared": status["RssShmem"], "anonymous": pages["Anonymous"],
        }
        return {name: int(text.split()[0]) / 1024 for name, text in kilobytes.items()}

    @property
    def descriptors(self):
        return len(os.listdir(self._folder / "fd"))

    @property
    def threads(self):
        return len(os.listdir(self._folder / "task"))


def _fields(path, skip=0):
    lines = path.read_text().splitlines()[skip:]
    return {name: value.strip() for name, _, value in (line.partition(":") for line in lines)}
