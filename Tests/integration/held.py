# SPDX-License-Identifier: MIT
"""What a process holds, read from outside of it."""

import contextlib
from pathlib import Path


def descriptors(pid):
    """Its descriptors, each with what it is of."""
    found = []
    for entry in Path(f"/proc/{pid}/fd").iterdir():
        # One that has just been closed is none.
        with contextlib.suppress(FileNotFoundError):
            found.append(f"{entry.name} {entry.readlink()}")
    return found


def threads(pid):
    """The names of its threads."""
    found = []
    for entry in Path(f"/proc/{pid}/task").iterdir():
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            found.append((entry / "comm").read_text().strip())
    return sorted(found)


def memory(pid, *kinds):
    """Bytes of it that are resident: its own, or of these kinds, as /proc names them."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return sum(int(line.split()[1]) * 1024 for line in lines if line.startswith(kinds or "RssAnon"))


def counts(pid):
    """How many descriptors, how many threads, how much memory of its own."""
    return len(descriptors(pid)), len(threads(pid)), memory(pid)
