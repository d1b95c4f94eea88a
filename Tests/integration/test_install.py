# SPDX-License-Identifier: MIT
"""`make install` into an empty tree, and a bus that knows nothing but that tree."""

import configparser
import os
import shlex
import shutil
import subprocess

import pytest

from harness import BIN, SERVICE, TOP, wait_until

PREFIX = "/usr"


@pytest.fixture
def tree(tmp_path):
    """What `make install` puts in place; its activation files name the tree's own programs."""
    # PREFIX has the tree in it, as on a machine on which it is the root: what is installed must name programs that are there.
    prefix = tmp_path / "root" / "usr"
    subprocess.run(["make", "-s", "install", f"PREFIX={prefix}", f"BIN={BIN}", f"autostartdir={tmp_path}/root/etc/xdg/autostart",
                    f"unitdir={prefix}/lib/systemd/user"], cwd=TOP, check=True, stdin=subprocess.DEVNULL)
    return tmp_path / "root"


def entry(path, section):
    """A section of a desktop entry or service file."""
    parser = configparser.ConfigParser(interpolation=None)
    parser.optionxform = str
    parser.read_string(path.read_text())
    return dict(parser[section])


def installed(tree):
    return sorted(str(path.relative_to(tree)) for path in tree.rglob("*") if path.is_file())


def test_everything_is_in_its_place(tmp_path):
    subprocess.run(["make", "-s", "install", f"DESTDIR={tmp_path}", f"PREFIX={PREFIX}", f"BIN={BIN}"], cwd=TOP, check=True, stdin=subprocess.DEVNULL)
    assert installed(tmp_path) == [
        "etc/xdg/autostart/org.vitrine.ScreenShare1.desktop",
        "usr/bin/vitrine-agent",
        "usr/bin/vitrine-testscreen",
        "usr/bin/vitrinectl",
        "usr/lib/systemd/user/app-org.vitrine.ScreenShare1.service",
        "usr/share/applications/org.vitrine.ScreenShare1.desktop",
        "usr/share/dbus-1/interfaces/org.vitrine.ScreenShare1.Agent.xml",
        "usr/share/dbus-1/interfaces/org.vitrine.ScreenShare1.Subscription.xml",
        "usr/share/dbus-1/interfaces/org.vitrine.ScreenShare1.Track.xml",
        "usr/share/dbus-1/services/org.vitrine.ScreenShare1.service",
    ]
    for path in tmp_path.rglob("*"):
        if path.is_file() and path.suffix in (".service", ".desktop"):
            text = path.read_text()
            assert f"{PREFIX}/bin/vitrine-agent" in text and "@" not in text.replace("@autostart", ""), path
            assert str(tmp_path) not in text, f"{path} names the folder of a package that is being made"
    subprocess.run(["make", "-s", "uninstall", f"DESTDIR={tmp_path}", f"PREFIX={PREFIX}"], cwd=TOP, check=True, stdin=subprocess.DEVNULL)
    assert installed(tmp_path) == []


def test_the_entries_are_valid(tree, tmp_path):
    for path in tree.rglob("*.desktop"):
        subprocess.run(["desktop-file-validate", str(path)], check=True)
    unit = tree / "usr/lib/systemd/user/app-org.vitrine.ScreenShare1.service"
    environment = {**os.environ, "XDG_RUNTIME_DIR": str(tmp_path), "SYSTEMD_LOG_LEVEL": "warning"}
    done = subprocess.run(["systemd-analyze", "verify", "--user", str(unit)], env=environment, capture_output=True, text=True)
    assert unit.name not in done.stdout + done.stderr, done.stderr
    service = entry(tree / "usr/share/dbus-1/services/org.vitrine.ScreenShare1.service", "D-BUS Service")
    assert service["SystemdService"] == unit.name
    assert service["Name"] == entry(unit, "Service")["BusName"] == SERVICE


def test_the_portal_reads_an_identity_from_the_units_names():
    """The pattern by which xdg-desktop-portal takes an application's identity from a unit, written after its description."""
    import re

    pattern = re.compile(r"^app-(?:[0-9A-Za-z]+-)?(.+?\..+?\..+?)(?:[@-][0-9A-Za-z]*)?(?:-autostart)?(?:\.scope|\.service|\.slice)$")
    for unit in ("app-org.vitrine.ScreenShare1.service", "app-org.vitrine.ScreenShare1@autostart.service"):
        assert pattern.match(unit)[1] == "org.vitrine.ScreenShare1"


def agents(tree, session):
    """The processes of this world that run the installed agent."""
    found = []
    for pid in session.processes.strays():
        try:
            program = os.readlink(f"/proc/{pid}/exe")
        except OSError:
            continue
        if program == str(tree / "usr/bin/vitrine-agent"):
            found.append(pid)
    return found


@pytest.fixture
def bare(make_session, tree):
    """A bus that knows only what was installed."""
    session = make_session(portal="absent", agent="absent", screen=False, pipewire=False)
    shutil.rmtree(session.services)
    session.services.symlink_to(tree / "usr/share/dbus-1/services")
    session.client.call("org.freedesktop.DBus", "/org/freedesktop/DBus", "org.freedesktop.DBus", "ReloadConfig")
    return session


def busctl(session, *words):
    return session.run(["busctl", f"--address={session.bus_address}", *words]).stdout.strip()


def test_the_first_call_starts_the_agent(bare, tree):
    assert bare.client.owner(SERVICE) is None and agents(tree, bare) == []
    version = busctl(bare, "get-property", SERVICE, "/org/vitrine/ScreenShare1", SERVICE + ".Agent", "InterfaceVersion")
    assert version == "u 1"
    assert len(agents(tree, bare)) == 1


def autostart(session, tree, name):
    """Runs the autostart entry as a desktop session does."""
    command = entry(tree / "etc/xdg/autostart/org.vitrine.ScreenShare1.desktop", "Desktop Entry")["Exec"]
    return session.start(name, shlex.split(command))


def test_the_autostart_entry_starts_it_too_and_then_there_is_still_one(bare, tree):
    first = autostart(bare, tree, "autostart")
    bare.wait_for_name(SERVICE, first)
    assert busctl(bare, "get-property", SERVICE, "/org/vitrine/ScreenShare1", SERVICE + ".Agent", "InterfaceVersion") == "u 1"
    assert agents(tree, bare) == [first.pid]

    second = autostart(bare, tree, "second")
    assert second.wait(30) == 0
    assert bare.processes.log("second").strip(), "a second instance says why it goes"
    assert agents(tree, bare) == [first.pid]
    assert bare.client.process_id(SERVICE) == first.pid


def test_an_agent_that_the_bus_started_leaves_no_room_for_the_autostart_entry(bare, tree):
    busctl(bare, "get-property", SERVICE, "/org/vitrine/ScreenShare1", SERVICE + ".Agent", "Version")
    (running,) = agents(tree, bare)
    assert autostart(bare, tree, "autostart").wait(30) == 0
    wait_until(lambda: agents(tree, bare) == [running], "one agent")
