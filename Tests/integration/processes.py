# SPDX-License-Identifier: MIT
"""Child processes of a private world: started with a log each, watched, and ended by their ids."""

import os
import signal
import subprocess
import time
from pathlib import Path


# What a machine without a realtime daemon and cameras makes every log say.
NOISE = ("RTKit", "RealtimeKit", "mod.rt", "libcamera", "Failed to set fd limit")


class NotInTime(AssertionError):
    """A condition that did not come true within its deadline."""


def wait_until(condition, what, seconds=30.0, every=0.02):
    """Waits until `condition()` is true and returns what it returned; `what` names it in the failure, or is called for that."""
    deadline = time.monotonic() + seconds
    while True:
        found = condition()
        if found:
            return found
        if time.monotonic() > deadline:
            raise NotInTime(f"not within {seconds:g} s: {what() if callable(what) else what}")
        time.sleep(every)


class Processes:
    """The processes of one world, which is a runtime directory that only they have in their environment."""

    def __init__(self, runtime_dir, log_dir):
        self.runtime_dir = str(runtime_dir)
        self.log_dir = Path(log_dir)
        self.log_dir.mkdir(parents=True, exist_ok=True)
        self._children = []

    def start(self, name, command, environment, **options):
        """Starts `command`; what it prints goes to `<name>.log`."""
        with open(self.log_dir / f"{name}.log", "ab") as log:
            child = subprocess.Popen(
                [str(word) for word in command],
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                **options,
            )
        self._children.append((name, child))
        return child

    def log(self, name):
        """What the process of this name has printed so far."""
        path = self.log_dir / f"{name}.log"
        return path.read_text(errors="replace") if path.exists() else ""

    def end(self, child, seconds=10.0, first=signal.SIGTERM):
        """Ends one child: asks, and after `seconds` insists. Returns its exit status."""
        if child.poll() is None:
            child.send_signal(first)
            try:
                child.wait(seconds)
            except subprocess.TimeoutExpired:
                child.kill()
                child.wait()
        return child.returncode

    def end_all(self):
        """Ends the children, the last one first, then what they left behind (services that a bus had activated)."""
        for _, child in reversed(self._children):
            self.end(child)
        self._children.clear()
        deadline = time.monotonic() + 5
        while (left := self.strays()) and time.monotonic() < deadline:
            for pid in left:
                _signal(pid, signal.SIGTERM)
            time.sleep(0.05)
        for pid in self.strays():
            _signal(pid, signal.SIGKILL)

    def strays(self):
        """Processes of this world that are nobody's child here: every one has the world's own runtime directory."""
        mark = f"XDG_RUNTIME_DIR={self.runtime_dir}".encode()
        found = []
        for entry in os.listdir("/proc"):
            if not entry.isdigit() or int(entry) == os.getpid():
                continue
            try:
                environment = Path(f"/proc/{entry}/environ").read_bytes()
                state = Path(f"/proc/{entry}/stat").read_text().rpartition(")")[2].split()[0]
            except OSError:
                continue
            if state != "Z" and mark in environment.split(b"\0"):
                found.append(int(entry))
        return found

    def sanitizer_reports(self):
        """What a program that was built with a sanitizer complained of, with some lines of where."""
        found = []
        for path in sorted(self.log_dir.glob("*.log")):
            lines = path.read_text(errors="replace").splitlines()
            found += ["\n".join(lines[index:index + 40]) for index, line in enumerate(lines)
                      if "WARNING: ThreadSanitizer" in line or "ERROR: AddressSanitizer" in line]
        return found

    def report(self, lines=60):
        """The end of every log, for a failed test."""
        parts = []
        for path in sorted(self.log_dir.glob("*.log")):
            text = [line for line in path.read_text(errors="replace").splitlines() if not any(word in line for word in NOISE)]
            if text:
                parts.append(f"---- {path.name} ({len(text)} lines)\n" + "\n".join(text[-lines:]))
        return "\n".join(parts)


def _signal(pid, number):
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        pass
