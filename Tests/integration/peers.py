# SPDX-License-Identifier: MIT
"""Clients that are other programs than the tests: with another executable, or in a sandbox."""

import contextlib
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

from gi.repository import GLib

from bus import BusError
from contract import PROPERTIES
from harness import AGENT, ROOT, TRACK, options
from processes import wait_until

PEER = Path(__file__).with_name("peer.py")
PYTHON = Path(os.path.realpath(sys.executable))


def sandboxing_works():
    """Whether this machine lets an ordinary program make a sandbox."""
    if not shutil.which("bwrap"):
        return False
    return subprocess.run(["bwrap", "--ro-bind", "/", "/", "--unshare-user", "true"], capture_output=True).returncode == 0


class Peer:
    """A process with a connection of its own. Use it as a context manager."""

    def __init__(self, session, command, descriptors=(), **environment):
        self._child = subprocess.Popen(
            [str(word) for word in command], env={**session.environment, **environment}, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            text=True, pass_fds=descriptors)
        line = self._child.stdout.readline()
        assert line, f"the client did not come up: {command}"
        self.name = json.loads(line)["name"]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        """It ends when its input does, and leaves the bus."""
        if self._child.poll() is None:
            self._child.stdin.close()
            self._child.wait(30)
        self._child.stdout.close()

    @property
    def process_id(self):
        return self._child.pid

    def call(self, path, interface, member, arguments=None):
        """The reply's values; an error reply is raised as BusError."""
        arguments = arguments or GLib.Variant("()", ())
        self._child.stdin.write(json.dumps([path, interface, member, arguments.print_(True)]) + "\n")
        self._child.stdin.flush()
        answer = json.loads(self._child.stdout.readline())
        if "error" in answer:
            raise BusError(answer["error"], answer["message"])
        return answer["reply"]

    def get(self, path, interface, name):
        return self.call(path, PROPERTIES, "Get", GLib.Variant("(ss)", (interface, name)))

    def set(self, path, name, value):
        return self.call(path, PROPERTIES, "Set", GLib.Variant("(ssv)", (TRACK, name, value)))

    def track(self, path, member, arguments=None):
        return self.call(path, TRACK, member, arguments)

    def create_track(self, **given):
        """The path of a track of its own."""
        return self.call(ROOT, AGENT, "CreateTrack", options(**given)).split("'")[1]

    def set_screen_share(self, on, **given):
        return self.call(ROOT, AGENT, "SetScreenShare", GLib.Variant.new_tuple(GLib.Variant("b", on), options(**given).get_child_value(0)))


def same_program(session):
    """A client that is the tests' own program."""
    return Peer(session, [PYTHON, PEER])


def other_program(session):
    """A client with an executable of its own; `identity_of(session)` is what the agent calls it."""
    copy = session.root / "other-program"
    if not copy.exists():
        shutil.copy(PYTHON, copy)
    return Peer(session, [copy, PEER], PYTHONHOME="/usr")


def other_identity(session):
    return f"exe:{session.root / 'other-program'}"


def sandboxed(session):
    """A client in a user namespace of its own."""
    return Peer(session, ["bwrap", "--dev-bind", "/", "/", "--unshare-user", "--die-with-parent", PYTHON, PEER])


def flatpak(session, application, **environment):
    """A client that lives as a Flatpak application does: its root says which one it is."""
    reading, command = _flatpak_sandbox(session, application)
    try:
        return Peer(session, [*command, PYTHON, PEER], descriptors=[reading], **environment)
    finally:
        os.close(reading)


@contextlib.contextmanager
def flatpak_behind_proxy(session, application):
    """A client that reaches the bus as a Flatpak application does: through a proxy that may speak to the agent only, and lives in the same sandbox."""
    reading, command = _flatpak_sandbox(session, application)
    path = session.root / "proxied"
    try:
        proxy = session.start(
            "proxy", [*command, "xdg-dbus-proxy", session.bus_address, path, "--filter", "--talk=org.vitrine.ScreenShare1"], pass_fds=[reading])
    finally:
        os.close(reading)
    wait_until(path.exists, "the proxy's socket")
    with flatpak(session, application, DBUS_SESSION_BUS_ADDRESS=f"unix:path={path}") as peer:
        yield peer
    session.processes.end(proxy)


def _flatpak_sandbox(session, application):
    """A descriptor that the sandbox reads, and the command that makes it."""
    reading, writing = os.pipe()
    os.write(writing, f"[Application]\nname={application}\nruntime=runtime/org.example.Platform/x86_64/1\n".encode())
    os.close(writing)
    command = ["bwrap", "--unshare-user", "--die-with-parent", "--ro-bind", "/usr", "/usr", "--proc", "/proc", "--dev", "/dev",
               "--bind", session.root, session.root, "--ro-bind", PEER.parent, PEER.parent, "--ro-bind-data", reading, "/.flatpak-info"]
    for name in ("bin", "lib", "lib64", "etc"):
        path = Path("/") / name
        if path.is_symlink():
            command += ["--symlink", os.readlink(path), path]
        elif path.is_dir():
            command += ["--ro-bind", path, path]
    return reading, command
