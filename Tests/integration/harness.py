# SPDX-License-Identifier: MIT
"""A world of its own for each test: private buses, private PipeWire and WirePlumber, the real xdg-desktop-portal, our test screen, our agent.

`Session` makes it and takes it down; `Agent` and `Track` speak the agent's contract over GDBus; `Recording` takes what a
subscription's descriptor gives and has ffprobe and ffmpeg judge it. Nothing here is shared with the Swift code.
"""

import contextlib
import json
import os
import re
import select
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
from pathlib import Path

import gi

gi.require_version("Gio", "2.0")

from gi.repository import GLib

from bus import BusError, Client
from processes import Processes, wait_until

TOP = Path(__file__).resolve().parents[2]
BIN = Path(os.environ.get("VITRINE_BIN") or TOP / ".build" / "release")

SERVICE = "org.vitrine.ScreenShare1"
ROOT = "/org/vitrine/ScreenShare1"
DESKTOP_TRACK = ROOT + "/track/desktop"
AGENT = SERVICE + ".Agent"
TRACK = SERVICE + ".Track"
SUBSCRIPTION = SERVICE + ".Subscription"
ERROR = SERVICE + ".Error."

PORTAL = "org.freedesktop.portal.Desktop"
PORTAL_PATH = "/org/freedesktop/portal/desktop"
SCREEN_CAST = "org.freedesktop.portal.ScreenCast"
BACKEND = "org.freedesktop.impl.portal.desktop.vitrinetest"
TEST_SCREEN = "org.vitrine.TestScreen1"

# A sanitizer keeps what was given back: how many times as much memory may be held under one.
MEMORY_FACTOR = int(os.environ.get("VITRINE_MEMORY_FACTOR", "1"))

# What the portal takes the desktop to be: our backend's UseIn names it, so no other backend is asked.
DESKTOP_NAME = "vitrine-test"

BUS_CONFIGURATION = """<!DOCTYPE busconfig PUBLIC "-//freedesktop//DTD D-Bus Bus Configuration 1.0//EN"
 "http://www.freedesktop.org/standards/dbus/1.0/busconfig.dtd">
<busconfig>
  <type>session</type>
  <listen>unix:path={socket}</listen>
  <auth>EXTERNAL</auth>
  {services}
  <policy context="default">
    <allow send_destination="*" eavesdrop="true"/>
    <allow eavesdrop="true"/>
    <allow own="*"/>
  </policy>
  <limit name="max_replies_per_connection">50000</limit>
  <limit name="max_match_rules_per_connection">50000</limit>
</busconfig>
"""

# Signatures of the options of CreateTrack, SetScreenShare, StartBroadcast and Subscribe.
OPTION_TYPES = {
    "wait": "b", "timeout": "u", "parent-window": "s", "preset": "s", "max-size": "(uu)", "fps": "u", "bitrate": "u",
    "sources": "u", "multiple": "b", "cursor": "s", "audio": "s", "persist": "s", "restore-key": "s", "title": "s",
    "allow": "as", "detached": "b", "crop": "(iiuu)", "masks": "a(iiuu)", "excluded-windows": "au",
    "format": "s", "codec": "s", "placeholder": "s",
}


def options(**given):
    """An `a{sv}` of the contract's options. Python names have `_` for `-`; a GLib.Variant is taken as it is."""
    entries = {}
    for name, value in given.items():
        key = name.replace("_", "-")
        entries[key] = value if isinstance(value, GLib.Variant) else GLib.Variant(OPTION_TYPES[key], value)
    return GLib.Variant("(a{sv})", (entries,))


def accepts(path):
    """Whether somebody listens on a socket."""
    with contextlib.closing(socket.socket(socket.AF_UNIX)) as client:
        try:
            client.connect(str(path))
        except OSError:
            return False
    return True


def program(name):
    """Where one of our programs is."""
    path = BIN / name
    assert path.exists(), f"{path} is not there: `make build` makes it, VITRINE_BIN names another folder"
    return path


def libexec(name):
    """Where Debian or another distribution keeps a program that is not for people to call."""
    for folder in ("/usr/libexec", "/usr/lib", "/usr/lib/xdg-desktop-portal"):
        path = Path(folder) / name
        if path.exists():
            return path
    raise FileNotFoundError(f"{name}: install the package xdg-desktop-portal")


class Session:
    """Everything that an agent needs around it, in one short-lived folder. Use it as a context manager.

    `portal`: `running` (started with the rest), `activated` (by the bus, when somebody calls it) or `absent`.
    `agent`: `running`, `activated` or `absent`.
    """

    def __init__(self, *, portal="running", agent="running", screen=True, pipewire=True, agent_arguments=(), screen_arguments=()):
        self._wanted = (portal, agent, screen, pipewire)
        self._agent_arguments = list(agent_arguments)
        self._screen_arguments = list(screen_arguments)
        self._stack = contextlib.ExitStack()
        self._clients = []

    def __enter__(self):
        # Socket paths have 107 bytes: the root stays short.
        self.root = Path(tempfile.mkdtemp(prefix="vt-", dir="/tmp"))
        try:
            self._start()
        except BaseException as error:
            # The note is what a failed fixture leaves to read.
            report = self.processes.report() if hasattr(self, "processes") else ""
            self.close()
            raise RuntimeError(f"the session did not come up: {error}\n{report}") from error
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        for client in self._clients:
            with contextlib.suppress(Exception):
                client.close()
            client.close_descriptors()
        self._clients.clear()
        found = []
        if hasattr(self, "processes"):
            self.processes.end_all()
            found = self.processes.sanitizer_reports()
        shutil.rmtree(self.root, ignore_errors=True)
        assert not found, "\n".join(found)

    # What is made

    def _start(self):
        portal, agent, screen, pipewire = self._wanted
        folders = {name: self.root / name for name in ("run", "home", "config", "data", "state", "cache", "portals", "services", "log")}
        for folder in folders.values():
            folder.mkdir(mode=0o700)
        self.runtime_dir = folders["run"]
        self.services = folders["services"]
        self.bus_address = f"unix:path={self.runtime_dir}/bus"
        self.system_bus_address = f"unix:path={self.runtime_dir}/system"
        self.environment = {
            "PATH": os.environ.get("PATH", "/usr/bin:/bin"),
            "LANG": "C.UTF-8",
            "HOME": str(folders["home"]),
            "XDG_RUNTIME_DIR": str(self.runtime_dir),
            "XDG_CONFIG_HOME": str(folders["config"]),
            "XDG_DATA_HOME": str(folders["data"]),
            "XDG_STATE_HOME": str(folders["state"]),
            "XDG_CACHE_HOME": str(folders["cache"]),
            "XDG_CURRENT_DESKTOP": DESKTOP_NAME,
            "XDG_DESKTOP_PORTAL_DIR": str(folders["portals"]),
            "DBUS_SESSION_BUS_ADDRESS": self.bus_address,
            "DBUS_SYSTEM_BUS_ADDRESS": self.system_bus_address,
            "GSETTINGS_BACKEND": "memory",
            "GIO_USE_VFS": "local",
            "VITRINE_BIN": str(BIN),
            "NO_COLOR": "1",
        }
        for name in ("ASAN_OPTIONS", "TSAN_OPTIONS", "LD_PRELOAD", "PIPEWIRE_DEBUG", "VITRINE_LOG"):
            if name in os.environ:
                self.environment[name] = os.environ[name]
        self.processes = Processes(self.runtime_dir, folders["log"])
        self._write_portal_files(folders, portal)
        if portal == "absent":
            self._keep_pipewire_from_the_portal(folders["config"] / "pipewire")
        if agent == "activated":
            self._write_service(SERVICE, program("vitrine-agent"))
        self._start_bus("system", services=False)
        self._start_bus("bus", services=True)
        self.client = self.new_client()
        if pipewire:
            self.start_pipewire()
        if screen:
            self.start_screen()
        if portal == "running":
            self.start_portal()
        if agent == "running":
            self.start_agent()

    def _write_portal_files(self, folders, portal):
        (folders["portals"] / "vitrine.portal").write_text(
            f"[portal]\nDBusName={BACKEND}\nInterfaces=org.freedesktop.impl.portal.ScreenCast\nUseIn={DESKTOP_NAME}\n")
        # From 1.17 on the portal reads this; before, UseIn decides.
        preferred = folders["config"] / "xdg-desktop-portal"
        preferred.mkdir()
        (preferred / "portals.conf").write_text("[preferred]\ndefault=vitrine\n")
        self._write_service("org.freedesktop.impl.portal.PermissionStore", libexec("xdg-permission-store"))
        if portal == "activated":
            self._write_service(PORTAL, f"{libexec('xdg-desktop-portal')} --verbose")

    @staticmethod
    def _keep_pipewire_from_the_portal(folder):
        """PipeWire 0.3.65 watches the portal's name, and crashes now and then when that changes hands within milliseconds, as a test's does."""
        usual = Path("/usr/share/pipewire/pipewire.conf")
        if usual.exists():
            folder.mkdir()
            (folder / "pipewire.conf").write_text(re.sub(r"\{ name = libpipewire-module-portal\b[^}]*\}", "", usual.read_text()))

    def _write_service(self, name, command):
        (self.services / f"{name}.service").write_text(f"[D-BUS Service]\nName={name}\nExec={command}\n")

    def _start_bus(self, name, services):
        path = self.runtime_dir / name
        configuration = self.root / f"{name}.conf"
        folders = f"<servicedir>{self.services}</servicedir>" if services else ""
        configuration.write_text(BUS_CONFIGURATION.format(socket=path, services=folders))
        self.processes.start(f"dbus-{name}", ["dbus-daemon", "--nofork", "--nopidfile", f"--config-file={configuration}"], self.environment)
        # The socket's file is there before anybody listens on it.
        wait_until(lambda: accepts(path), f"the bus {name}")

    def start_pipewire(self):
        """Starts PipeWire and WirePlumber, at first or again."""
        self.pipewire = self.processes.start("pipewire", ["pipewire"], self.environment)
        # A daemon that was killed leaves its socket's file.
        wait_until(lambda: accepts(self.runtime_dir / "pipewire-0"), "PipeWire's socket")
        self.wireplumber = self.processes.start("wireplumber", ["wireplumber"], self.environment)
        wait_until(self._has_session_manager, "WirePlumber's client in PipeWire")

    def _has_session_manager(self):
        listing = self.run(["pw-dump", "--no-colors"], check=False, timeout=20)
        return "WirePlumber" in listing.stdout

    def start_screen(self):
        """Starts the test screen, which is the portal's backend and a PipeWire source."""
        self.screen = self.processes.start("testscreen", [program("vitrine-testscreen"), *self._screen_arguments], self.environment)
        self.wait_for_name(BACKEND, self.screen)

    def start_portal(self):
        self.portal = self.processes.start("portal", [libexec("xdg-desktop-portal"), "--verbose"], self.environment)
        self.wait_for_name(PORTAL, self.portal)

    def start_agent(self):
        self.agent_process = self.processes.start("agent", [program("vitrine-agent"), *self._agent_arguments], self.environment)
        self.wait_for_name(SERVICE, self.agent_process)

    # What tests do with it

    def wait_for_name(self, name, child=None, seconds=30.0):
        """Waits for an owner of a bus name; fails at once when the process that should own it has ended."""
        def owned():
            owner = self.client.owner(name)
            assert owner or child is None or child.poll() is None, f"{name}: its process ended with {child.returncode}"
            return owner

        return wait_until(owned, f"an owner of {name}", seconds)

    def wait_for_no_name(self, name, seconds=30.0):
        wait_until(lambda: self.client.owner(name) is None, f"{name} without an owner", seconds)

    def new_client(self):
        """A connection of its own on the session bus."""
        client = Client(self.bus_address)
        self._clients.append(client)
        return client

    @contextlib.contextmanager
    def clients_of_their_own(self):
        """Clients that are made inside leave the bus at the end."""
        before = len(self._clients)
        try:
            yield
        finally:
            for client in self._clients[before:]:
                client.close()
                client.close_descriptors()
            del self._clients[before:]

    def agent(self, client=None):
        """The agent as one client sees it; without `client`, as a new one. Its signals are recorded from here on."""
        return Agent(client or self.new_client())

    def run(self, command, *, check=True, timeout=120, **options):
        """Runs a program in this world to its end."""
        options.setdefault("capture_output", True)
        return subprocess.run([str(word) for word in command], env=self.environment, stdin=subprocess.DEVNULL, text=True,
                              check=check, timeout=timeout, **options)

    def control(self, *arguments, check=True, timeout=120):
        """Runs vitrinectl to its end."""
        return self.run([program("vitrinectl"), *arguments], check=check, timeout=timeout)

    def start(self, name, command, **options):
        """Starts a program in this world; `self.processes.log(name)` is what it printed."""
        return self.processes.start(name, command, self.environment, **options)

    def end_agent(self, number=signal.SIGTERM):
        """Ends the agent and returns its exit status."""
        return self.processes.end(self.agent_process, first=number)


class Agent:
    """The agent, through one client's connection."""

    def __init__(self, client):
        self.client = client
        client.record(SERVICE)

    @property
    def unique_name(self):
        return self.client.unique_name

    @property
    def desktop(self):
        return Track(self, DESKTOP_TRACK)

    @property
    def events(self):
        return self.client.events

    def mark(self):
        return self.client.mark()

    def wait_for(self, kind, name, value=..., path=None, since=0, seconds=30.0):
        return self.client.wait_for(kind, name, value, path, since, seconds)

    def get(self, name):
        return self.client.get(SERVICE, ROOT, AGENT, name)

    def get_all(self):
        return self.client.get_all(SERVICE, ROOT, AGENT)

    def objects(self):
        """GetManagedObjects."""
        return self.client.call(SERVICE, ROOT, "org.freedesktop.DBus.ObjectManager", "GetManagedObjects")[0]

    def start_screen_share(self, on, **given):
        """SetScreenShare without waiting for its reply."""
        arguments = GLib.Variant.new_tuple(GLib.Variant("b", on), options(**given).get_child_value(0))
        return self.client.start(SERVICE, ROOT, AGENT, "SetScreenShare", arguments)

    def set_screen_share(self, on, **given):
        """SetScreenShare; returns the desktop track."""
        return Track(self, self.start_screen_share(on, **given).wait()[0])

    def create_track(self, **given):
        return Track(self, self.client.call(SERVICE, ROOT, AGENT, "CreateTrack", options(**given))[0])

    def tracks(self):
        """The tracks that exist, by path."""
        return {path: Track(self, path) for path, interfaces in self.objects().items() if TRACK in interfaces}

    def track(self, path):
        """A track that another client may have made."""
        return Track(self, path)


class _Object:
    """An object of the agent with one interface of the contract."""

    interface = ""

    def __init__(self, agent, path):
        self.agent = agent
        self.client = agent.client
        self.path = path

    def __repr__(self):
        return f"<{self.path} as {self.client.unique_name}>"

    def call(self, member, arguments=None, seconds=60.0):
        return self.client.call(SERVICE, self.path, self.interface, member, arguments, seconds=seconds)

    def start(self, member, arguments=None):
        return self.client.start(SERVICE, self.path, self.interface, member, arguments)

    def get(self, name):
        return self.client.get(SERVICE, self.path, self.interface, name)

    def get_all(self):
        return self.client.get_all(SERVICE, self.path, self.interface)

    def set(self, name, signature, value):
        self.client.set(SERVICE, self.path, self.interface, name, signature, value)

    def wait_for_signal(self, name, value=..., since=0, seconds=30.0):
        return self.client.wait_for("signal", name, value, self.path, since, seconds)

    def wait_for_change(self, name, value=..., since=0, seconds=30.0):
        """Waits for a PropertiesChanged that carries this property."""
        return self.client.wait_for("changed", name, value, self.path, since, seconds)

    def wait_until(self, name, value, seconds=30.0):
        """Waits until a property has a value; `value` may be a function of it."""
        def has():
            now = self.get(name)
            return (value(now) if callable(value) else now == value) or None

        wait_until(has, f"{self.path} {name} = {value}", seconds)

    @property
    def statistics(self):
        return self.get("Statistics")


class Track(_Object):
    interface = TRACK

    @property
    def state(self):
        return self.get("State")

    def start_capture(self):
        self.call("StartCapture")

    def stop_capture(self):
        self.call("StopCapture")

    def start_broadcast(self, **given):
        self.call("StartBroadcast", options(**given))

    def begin_broadcast(self, **given):
        """StartBroadcast without waiting for its reply."""
        return self.start("StartBroadcast", options(**given))

    def switch_source(self, **given):
        self.call("SwitchSource", options(**given))

    def begin_switch(self, **given):
        """SwitchSource without waiting for its reply."""
        return self.start("SwitchSource", options(**given))

    def stop_broadcast(self):
        self.call("StopBroadcast")

    def destroy(self):
        self.call("Destroy")

    def allow(self, identity):
        self.call("Allow", GLib.Variant("(s)", (identity,)))

    def disallow(self, identity):
        self.call("Disallow", GLib.Variant("(s)", (identity,)))

    def unsubscribe_all(self, name=""):
        self.call("UnsubscribeAll", GLib.Variant("(s)", (name,)))

    def subscribe(self, **given):
        """Subscribe; returns the subscription, whose `descriptor` is the reading end."""
        path, descriptor = self.call("Subscribe", options(**given))
        subscription = Subscription(self.agent, path, descriptor)
        self.agent.client.holders.append(subscription)
        return subscription

    def mute(self, muted=True):
        self.set("Muted", "b", muted)


class Subscription(_Object):
    interface = SUBSCRIPTION

    def __init__(self, agent, path, descriptor):
        super().__init__(agent, path)
        self.descriptor = descriptor

    def record(self, path):
        """Hands the descriptor to a thread that copies the stream into a file."""
        return Recording(self.take(), path)

    def take(self):
        """Hands the descriptor to the caller, who closes it."""
        descriptor, self.descriptor = self.descriptor, None
        return descriptor

    def close(self):
        """Closes the reading end."""
        if self.descriptor is not None:
            os.close(self.descriptor)
            self.descriptor = None

    def unsubscribe(self):
        self.call("Unsubscribe")


class Recording:
    """A stream on its way into a file."""

    _BLOCK = 1 << 16

    def __init__(self, descriptor, path):
        self.path = Path(path)
        self._descriptor = descriptor
        self._stop_read, self._stop_write = os.pipe()
        self.ended = threading.Event()
        self.size = 0
        self._thread = threading.Thread(target=self._copy, name="recording", daemon=True)
        self._thread.start()

    def _copy(self):
        poll = select.poll()
        for descriptor in (self._descriptor, self._stop_read):
            poll.register(descriptor, select.POLLIN)
        with open(self.path, "wb", buffering=0) as file:
            while True:
                if any(descriptor == self._stop_read for descriptor, _ in poll.poll()):
                    break
                block = os.read(self._descriptor, self._BLOCK)
                if not block:
                    self.ended.set()
                    break
                self._took(len(block))
                file.write(block)
                self.size += len(block)
        os.close(self._descriptor)

    def __del__(self):
        for descriptor in (self._stop_read, self._stop_write):
            os.close(descriptor)

    def _took(self, count):
        """So many bytes have come just now, and are not in the file yet."""

    def wait_for_bytes(self, count, seconds=30.0):
        wait_until(lambda: self.size >= count, f"{count} bytes of {self.path.name}", seconds)

    def wait_for_end(self, seconds=30.0):
        """Waits for the end of the stream, which is the agent's to make."""
        assert self.ended.wait(seconds), f"the stream {self.path.name} did not end within {seconds:g} s"
        self._thread.join()
        return self

    def stop(self):
        """Stops reading and closes the reading end."""
        if self._thread.is_alive():
            os.write(self._stop_write, b"x")
            self._thread.join()
        return self

    def probe(self):
        return probe(self.path)

    def frames(self):
        return frames(self.path)


def probe(path):
    """What ffprobe says of a file: format, streams and packets. Fails on anything that ffprobe complains about."""
    done = subprocess.run(["ffprobe", "-v", "error", "-of", "json", "-show_format", "-show_streams", "-show_packets", str(path)],
                          capture_output=True, text=True, timeout=120, stdin=subprocess.DEVNULL)
    assert done.returncode == 0 and not done.stderr, f"ffprobe of {path}: {done.stderr}"
    return json.loads(done.stdout)


def frames(path, pixel_format="rgb24"):
    """Every picture of a file as ffmpeg decodes it: an array (frame, row, column[, channel]). Fails on any decoding error."""
    import numpy

    stream = next(s for s in probe(path)["streams"] if s["codec_type"] == "video")
    width, height = stream["width"], stream["height"]
    done = subprocess.run(["ffmpeg", "-v", "error", "-i", str(path), "-fps_mode", "passthrough", "-enc_time_base", "-1", "-f", "rawvideo", "-pix_fmt",
                           pixel_format, "-"],
                          capture_output=True, timeout=300, stdin=subprocess.DEVNULL)
    assert done.returncode == 0 and not done.stderr, f"ffmpeg of {path}: {done.stderr.decode(errors='replace')}"
    shape = (-1, height, width, 3) if pixel_format == "rgb24" else (-1, height, width)
    return numpy.frombuffer(done.stdout, numpy.uint8).reshape(shape)


__all__ = [
    "AGENT", "BACKEND", "BIN", "BusError", "Client", "DESKTOP_TRACK", "ERROR", "PORTAL", "PORTAL_PATH", "ROOT", "Recording", "SCREEN_CAST",
    "SERVICE", "SUBSCRIPTION", "Session", "TEST_SCREEN", "TOP", "TRACK", "Agent", "Subscription", "Track", "frames", "libexec", "options",
    "probe", "program", "wait_until",
]
