# SPDX-License-Identifier: MIT
"""A real GNOME desktop with no display and no GPU: the real compositor, shell, portal and picker, in a folder of its own.

Compositors refuse root, so all of it, the tests included, runs as an ordinary user: `make test-desktop` sees to that.
Two desktops can run side by side.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from gi.repository import GLib

from harness import BIN, PORTAL, SERVICE, Agent, Client, accepts, libexec, program
from processes import NotInTime, Processes, wait_until

HAND = Path(__file__).with_name("hand.py")
DISPLAY_CONFIG = ("org.gnome.Mutter.DisplayConfig", "/org/gnome/Mutter/DisplayConfig", "org.gnome.Mutter.DisplayConfig")

# No hot corner: the hand's pointer goes through it. No animations: a click must not meet a panel that still moves.
SETTINGS = """[org/gnome/desktop/interface]
enable-hot-corners=false
enable-animations=false
toolkit-accessibility=true

[org/gnome/desktop/screensaver]
lock-enabled=false

[org/gnome/desktop/session]
idle-delay=uint32 0

[org/gnome/desktop/notifications]
show-banners=false
"""

# The extension that brings status notifiers to the shell.
PANEL_OF_MARKS = """
[org/gnome/shell]
enabled-extensions=['ubuntu-appindicators@ubuntu.com']
disable-user-extensions=false
"""


class Hand:
    """What the person at the desktop sees and does; see hand.py."""

    def __init__(self, desktop):
        self._desktop = desktop

    def __call__(self, verb, **arguments):
        done = self._desktop.run([sys.executable, "-W", "ignore", str(HAND), verb, json.dumps(arguments)], timeout=60)
        answer = json.loads(done.stdout) if done.stdout else {"error": done.stderr}
        if "error" in answer:
            raise LookupError(answer["error"])
        return answer["result"]

    def wait(self, verb, seconds=30.0, **arguments):
        """Does `verb` again and again until it can be done and gives something."""
        last = []

        def tried():
            try:
                return self(verb, **arguments)
            except LookupError as error:
                last[:] = [str(error)]
                return None

        try:
            return wait_until(tried, f"{verb} {arguments}", seconds, every=0.1)
        except NotInTime as error:
            raise NotInTime(f"{error}: {last}") from None

    def wait_for_picker(self, seconds=30.0):
        self.wait("picker_open", seconds)

    def wait_for_no_picker(self, seconds=30.0):
        self._wait_until_gone("picker_open", "the picker closed", seconds)

    def _wait_until_gone(self, verb, what, seconds):
        def gone():
            try:
                return not self(verb)
            except LookupError:  # it went while the tree was read
                return False

        wait_until(gone, what, seconds, every=0.1)

    def share(self, page=None, index=None, name=None):
        """Chooses in the open picker and presses Share."""
        self.wait_for_picker()
        if page is not None:
            self.wait("picker_page", name=page)
        if index is not None or name is not None:
            self.wait("picker_choose", index=index, name=name)
        self.wait("picker_press", label="Share")
        self.wait_for_no_picker()

    def cancel(self):
        self.wait_for_picker()
        self.wait("picker_press", label="Cancel")
        self.wait_for_no_picker()

    def wait_for_indicator(self, seconds=30.0):
        self.wait("indicator", seconds)

    def wait_for_no_indicator(self, seconds=30.0):
        self._wait_until_gone("indicator", "the shell's sharing indicator went out", seconds)

    def stop_sharing(self):
        """Clicks the shell's own indicator."""
        self.wait_for_indicator()
        self("stop_sharing")


class Desktop:
    """The desktop. Use it as a context manager; `monitors` are the sizes of its virtual monitors, left to right."""

    def __init__(self, monitors=("1280x720", "1024x768"), settings=""):
        self._monitors = monitors
        self._settings = settings
        self.hand = Hand(self)
        self.windows = {}
        """The programs of the windows that were opened, by title."""
        self._clients = []
        self._agents = 0

    def __enter__(self):
        assert os.geteuid() != 0, "a compositor does not run as root: `make test-desktop` starts this as an ordinary user"
        self.root = Path(tempfile.mkdtemp(prefix="vd-", dir="/tmp"))
        try:
            self._start()
        except BaseException as error:
            report = self.processes.report() if hasattr(self, "processes") else ""
            self.close()
            raise RuntimeError(f"the desktop did not come up: {error}\n{report}") from error
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        for client in self._clients:
            client.close()
        self._clients.clear()
        if hasattr(self, "processes"):
            self.processes.end_all()
        shutil.rmtree(self.root, ignore_errors=True)

    def _start(self):
        run, home, log = (self.root / name for name in ("run", "home", "log"))
        for folder in (run, home, log):
            folder.mkdir(mode=0o700)
        settings = home / ".config" / "glib-2.0" / "settings"
        settings.mkdir(parents=True)
        (settings / "keyfile").write_text(SETTINGS + self._settings)
        self.bus_address = f"unix:path={run}/bus"
        system_address = f"unix:path={run}/system"
        self.environment = {
            "PATH": os.environ.get("PATH", "/usr/bin:/bin"),
            "LANG": "C.UTF-8",
            "HOME": str(home),
            "XDG_RUNTIME_DIR": str(run),
            "XDG_CURRENT_DESKTOP": "GNOME",
            "XDG_SESSION_TYPE": "wayland",
            "LIBGL_ALWAYS_SOFTWARE": "1",
            "GSK_RENDERER": "cairo",
            "GSETTINGS_BACKEND": "keyfile",
            "DBUS_SESSION_BUS_ADDRESS": self.bus_address,
            "DBUS_SYSTEM_BUS_ADDRESS": system_address,
            "VITRINE_BIN": str(BIN),
            "NO_COLOR": "1",
        }
        self.processes = Processes(run, log)
        for name, address in (("system", system_address), ("bus", self.bus_address)):
            self.start(f"dbus-{name}", ["dbus-daemon", "--session", "--nofork", "--nopidfile", f"--address={address}"])
            wait_until((run / name).exists, f"the socket of the bus {name}")
        self.client = self.new_client()
        # The shell asks logind for its session.
        self.start("logind", ["/usr/bin/python3", "-m", "dbusmock", "--system", "--template", "logind"])
        self.system = Client(system_address)
        self._clients.append(self.system)
        wait_until(lambda: self.system.owner("org.freedesktop.login1"), "an owner of org.freedesktop.login1")
        self.start("pipewire", ["pipewire"])
        wait_until((run / "pipewire-0").exists, "PipeWire's socket")
        self.start("wireplumber", ["wireplumber"])
        self.start_shell()
        self.start_portal()

    def start_shell(self):
        """Starts the compositor, at first or again."""
        self.shell = self.start("shell", ["gnome-shell", "--headless", "--wayland", "--no-x11", "--unsafe-mode",
                                          *(word for size in self._monitors for word in ("--virtual-monitor", size))])
        # A compositor that was killed leaves its socket's file, and its lock.
        wait_until(lambda: self._alive(self.shell) and accepts(self.root / "run" / "wayland-0"), "the compositor's socket", 60)
        self.environment["WAYLAND_DISPLAY"] = "wayland-0"
        self.run(["dbus-update-activation-environment", *(f"{name}={value}" for name, value in self.environment.items())])
        self.wait_for_name("org.gnome.Shell.Introspect", self.shell)

    def start_portal(self):
        """Starts the portal and its backend, which is a program of the compositor's, at first or again."""
        self.backend = self.start("portal-gnome", [libexec("xdg-desktop-portal-gnome"), "--verbose"])
        self.wait_for_name("org.freedesktop.impl.portal.desktop.gnome", self.backend)
        self.portal = self.start("portal", [libexec("xdg-desktop-portal"), "--verbose"])
        self.wait_for_name(PORTAL, self.portal)
        self.hand.wait("close_overview")
        wait_until(lambda: not self.hand("evaluate", script="Main.overview.visible"), "the overview closed", every=0.1)
        self.stage = self.hand("monitors")

    @staticmethod
    def _alive(child):
        assert child.poll() is None, f"it ended with {child.returncode}"
        return True

    def start(self, name, command):
        """Starts a program in the desktop."""
        return self.processes.start(name, command, self.environment)

    def run(self, command, check=True, timeout=60):
        """Runs a program in the desktop to its end."""
        return subprocess.run([str(word) for word in command], env=self.environment, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                              check=check, timeout=timeout)

    def new_client(self):
        client = Client(self.bus_address)
        self._clients.append(client)
        return client

    def wait_for_name(self, name, child, seconds=60.0):
        wait_until(lambda: self._alive(child) and self.client.owner(name), f"an owner of {name}", seconds)

    def start_agent(self):
        """Starts the agent; returns its process and a client's view of it."""
        self._agents += 1
        process = self.start(f"agent-{self._agents}", [program("vitrine-agent")])
        self.wait_for_name(SERVICE, process)
        return process, Agent(self.new_client())

    def open_window(self, title, colour, monitor):
        """A still window that fills a monitor with one colour, and a line of text in its corner."""
        window = self.start(f"window-{title}", ["foot", f"--title={title}", "--override=locked-title=yes", f"--override=colors.background={colour}",
                                                "sh", "-c", f"printf '\\033[?25l{title}'; exec sleep 100000"])
        self.windows[title] = window
        wait_until(lambda: self._alive(window) and any(w["title"] == title for w in self.hand("windows")), f"the window {title}", every=0.1)
        self.hand("place_window", title=title, monitor=monitor)
        width, height = self.stage[monitor][2:]

        def placed():
            return any(w["title"] == title and w["monitor"] == monitor and w["frame"][2] == width and w["frame"][3] > height - 100
                       for w in self.hand("windows"))

        wait_until(placed, f"the window {title} on monitor {monitor}", every=0.1)
        return window

    def monitors(self):
        """The monitors, each with its connector, the size of its one mode, and the scales that this mode can have."""
        _, monitors, _, _ = self.client.call(*DISPLAY_CONFIG, "GetCurrentState")
        return [(names[0], tuple(modes[0][1:3]), modes[0][5]) for names, modes, _ in monitors]

    def arrange(self, *places):
        """Lays the monitors out, as the settings do; of each that stays on: its index, x, y, scale and transform."""
        serial, monitors, _, _ = self.client.call(*DISPLAY_CONFIG, "GetCurrentState")
        logical = [(x, y, scale, transform, place == 0, [(monitors[index][0][0], monitors[index][1][0][0], {})])
                   for place, (index, x, y, scale, transform) in enumerate(places)]
        # Temporarily, as a click on Apply does before it is kept.
        self.client.call(*DISPLAY_CONFIG, "ApplyMonitorsConfig", GLib.Variant("(uua(iiduba(ssa{sv}))a{sv})", (serial, 1, logical, {})))
        self.stage = self.hand("monitors")

    def screenshot(self):
        """The whole stage as an array (row, column, channel), as the shell itself sees it."""
        import numpy

        path = self.root / "screenshot.png"
        used = self.hand("screenshot", path=str(path))
        done = subprocess.run(["ffmpeg", "-v", "error", "-i", used, "-f", "rawvideo", "-pix_fmt", "rgb24", "-"], capture_output=True, check=True,
                              stdin=subprocess.DEVNULL, timeout=60)
        width = max(x + w for x, _, w, _ in self.stage)
        return numpy.frombuffer(done.stdout, numpy.uint8).reshape(-1, width, 3)

    def screenshot_of(self, monitor):
        """What the shell shows on one monitor."""
        x, y, width, height = self.stage[monitor]
        return self.screenshot()[y:y + height, x:x + width]
