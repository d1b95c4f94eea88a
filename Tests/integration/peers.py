# SPDX-License-Identifier: MIT
"""Clients that are other programs than the tests: with another executable, or in a sandbox."""

import contextlib
import itertools
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


def closed(session):
    """A client that nobody but root can look into, as a program with capabilities of its own is."""
    closing = "import ctypes, runpy, sys; ctypes.CDLL(None).prctl(4, 0, 0, 0, 0); runpy.run_path(sys.argv[1])"
    return Peer(session, [PYTHON, "-c", closing, PEER])


# What gives a program a user namespace of its own, and leaves it everything else.
USER_NAMESPACE = ["bwrap", "--dev-bind", "/", "/", "--unshare-user", "--die-with-parent"]


def sandboxed(session, path=PYTHON):
    """A client in a user namespace of its own; its executable may lie at a path of its choice there."""
    if not path.exists():
        path.touch()
    return Peer(session, [*USER_NAMESPACE, "--ro-bind", PYTHON, path, path, PEER], PYTHONHOME="/usr")


def flatpak(session, application, **environment):
    """A client that lives as a Flatpak application does, and has the whole bus."""
    return FlatpakInstance(session, application).peer(**environment)


@contextlib.contextmanager
def flatpak_behind_proxy(session, application):
    """A client that reaches the bus as a Flatpak application does by default: through a proxy that may speak to the agent only, and lives beside it."""
    instance = FlatpakInstance(session, application)
    with instance.proxied() as address, instance.peer(DBUS_SESSION_BUS_ADDRESS=address) as peer:
        yield peer


def forged_flatpak(session, info, has_own_numbers):
    """A client in a sandbox that was made inside of another one, by a program there, with this text as `/.flatpak-info`."""
    outer = [*USER_NAMESPACE, *(["--unshare-pid", "--proc", "/proc"] if has_own_numbers else [])]
    with flatpak_root(session, info) as (reading, command):
        return Peer(session, [*outer, *command, PYTHON, PEER], descriptors=[reading])


class FlatpakInstance:
    """An application as `flatpak run` starts it: the folder that Flatpak keeps of it, its sandbox, its bus proxy."""

    _numbers = itertools.count(1_000_001)

    def __init__(self, session, application):
        self.session = session
        self.number = next(self._numbers)
        self.all = Path(session.environment["XDG_RUNTIME_DIR"]) / ".flatpak"
        self.folder = self.all / str(self.number)
        self.folder.mkdir(parents=True)
        self.info = f"[Application]\nname={application}\nruntime=runtime/org.example.Platform/x86_64/1\n\n[Instance]\ninstance-id={self.number}\n"
        (self.folder / "info").write_text(self.info)
        (self.folder / ".ref").touch()

    def peer(self, **environment):
        """A client in it. The sandbox has its own process numbers, and of all instances' folders its own alone, which it cannot write."""
        with (self.folder / "bwrapinfo.json").open("wb") as noted:
            inside = ["--unshare-pid", "--proc", "/proc", "--dev", "/dev", "--tmpfs", self.all, "--ro-bind", self.folder, self.folder,
                      "--lock-file", self.folder / ".ref", "--info-fd", noted.fileno()]
            with flatpak_root(self.session, self.info) as (reading, command):
                return Peer(self.session, [*command, *inside, PYTHON, PEER], descriptors=[reading, noted.fileno()], **environment)

    @contextlib.contextmanager
    def proxied(self):
        """The address of its proxy, which has a root of its own, and nothing else."""
        path = self.session.root / f"proxied-{self.number}"
        with flatpak_root(self.session, self.info) as (reading, command):
            proxy = self.session.start("proxy", [
                *command, "xdg-dbus-proxy", self.session.bus_address, path, "--filter", "--talk=org.vitrine.ScreenShare1"], pass_fds=[reading])
        wait_until(path.exists, "the proxy's socket")
        yield f"unix:path={path}"
        self.session.processes.end(proxy)


@contextlib.contextmanager
def flatpak_root(session, info):
    """A descriptor that the sandbox reads, and the command that gives a program a root of its own, with this text as `/.flatpak-info`."""
    reading, writing = os.pipe()
    os.write(writing, info.encode())
    os.close(writing)
    command = ["bwrap", "--unshare-user", "--die-with-parent", "--ro-bind", "/usr", "/usr", "--dev-bind", "/dev", "/dev", "--ro-bind", "/proc", "/proc",
               "--bind", session.root, session.root, "--ro-bind", PEER.parent, PEER.parent, "--ro-bind-data", reading, "/.flatpak-info"]
    for name in ("bin", "lib", "lib64", "etc"):
        path = Path("/") / name
        if path.is_symlink():
            command += ["--symlink", os.readlink(path), path]
        elif path.is_dir():
            command += ["--ro-bind", path, path]
    try:
        yield reading, command
    finally:
        os.close(reading)
