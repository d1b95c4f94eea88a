# SPDX-License-Identifier: MIT
"""`make install` into an empty tree, and a bus that knows nothing but that tree."""

import collections
import configparser
import os
import re
import shlex
import shutil
import subprocess
from xml.etree import ElementTree

import pytest

from harness import BIN, SERVICE, TOP, wait_until

PREFIX = "/usr"


def entry(path, section):
    """A section of a desktop entry or service file."""
    parser = configparser.ConfigParser(interpolation=None, strict=False)
    parser.optionxform = str
    parser.read_string(path.read_text())
    return dict(parser[section])


def installed(tree):
    return sorted(str(path.relative_to(tree)) for path in tree.rglob("*") if path.is_file())


def test_what_would_be_done_can_be_asked_for_before_a_build(tmp_path):
    """`make -n` shows the commands, and ends."""
    done = subprocess.run(["make", "-n", "install", f"DESTDIR={tmp_path}", f"BIN={tmp_path}/none"], cwd=TOP, capture_output=True, text=True,
                          stdin=subprocess.DEVNULL, timeout=60)
    lines = done.stdout.splitlines()
    assert done.returncode == 0 and any(line.startswith("install -m 755 ") for line in lines), done.stderr
    assert len([line for line in lines if " build -c release " in line]) <= 3


def test_everything_is_in_its_place(tmp_path):
    subprocess.run(["make", "-s", "install", f"DESTDIR={tmp_path}", f"PREFIX={PREFIX}", f"BIN={BIN}"], cwd=TOP, check=True, stdin=subprocess.DEVNULL)
    assert installed(tmp_path) == [
        "etc/xdg/autostart/org.vitrine.ScreenShare1.desktop",
        "usr/bin/vitrine-agent",
        "usr/bin/vitrine-testscreen",
        "usr/bin/vitrinectl",
        "usr/lib/systemd/user/app-org.vitrine.ScreenShare1.service",
        "usr/share/applications/org.vitrine.ScreenShare1.desktop",
        "usr/share/bash-completion/completions/vitrinectl",
        "usr/share/dbus-1/interfaces/org.vitrine.ScreenShare1.Agent.xml",
        "usr/share/dbus-1/interfaces/org.vitrine.ScreenShare1.Subscription.xml",
        "usr/share/dbus-1/interfaces/org.vitrine.ScreenShare1.Track.xml",
        "usr/share/dbus-1/services/org.vitrine.ScreenShare1.service",
        "usr/share/doc/vitrine/examples/frames_reader.c",
        "usr/share/doc/vitrine/examples/frames_reader.py",
        "usr/share/doc/vitrine/examples/gnome-keys",
        "usr/share/doc/vitrine/examples/i3status.conf",
        "usr/share/doc/vitrine/examples/polybar.ini",
        "usr/share/doc/vitrine/examples/sway.conf",
        "usr/share/doc/vitrine/examples/waybar.jsonc",
        "usr/share/doc/vitrine/frames.md",
        "usr/share/fish/vendor_completions.d/vitrinectl.fish",
        "usr/share/icons/hicolor/scalable/apps/org.vitrine.ScreenShare1.svg",
        "usr/share/icons/hicolor/symbolic/apps/org.vitrine.ScreenShare1-symbolic.svg",
        "usr/share/man/man1/vitrine-agent.1",
        "usr/share/man/man1/vitrine-testscreen.1",
        "usr/share/man/man1/vitrinectl.1",
        "usr/share/man/man5/org.vitrine.ScreenShare1.5",
        "usr/share/man/man5/vitrine.conf.5",
        "usr/share/metainfo/org.vitrine.ScreenShare1.metainfo.xml",
        "usr/share/zsh/site-functions/_vitrinectl",
    ]
    for path in tmp_path.rglob("*"):
        if path.is_file() and path.suffix in (".service", ".desktop"):
            text = path.read_text()
            assert f"{PREFIX}/bin/vitrine" in text and not re.search("@[a-z]+@", text), path
            assert str(tmp_path) not in text, f"{path} names the folder of a package that is being made"
    subprocess.run(["make", "-s", "uninstall", f"DESTDIR={tmp_path}", f"PREFIX={PREFIX}"], cwd=TOP, check=True, stdin=subprocess.DEVNULL)
    assert installed(tmp_path) == []
    assert not (tmp_path / "usr/share/doc/vitrine").exists(), "a folder of our own stays behind"


def test_it_can_be_for_one_user_alone(tmp_path):
    """All of it is then in the home folder, where the bus and systemd look for a user's own services, and desktops for what starts with them."""
    home = tmp_path / "home"
    environment = {**os.environ, "HOME": str(home)}
    words = [f"PREFIX={home}/.local", f"BIN={BIN}"]
    subprocess.run(["make", "-s", "install", *words], cwd=TOP, env=environment, check=True, stdin=subprocess.DEVNULL)
    own = set(installed(home))
    assert {path for path in own if not path.startswith(".local/")} == {".config/autostart/org.vitrine.ScreenShare1.desktop"}
    assert {".local/bin/vitrinectl", ".local/share/systemd/user/app-org.vitrine.ScreenShare1.service",
            ".local/share/dbus-1/services/org.vitrine.ScreenShare1.service"} <= own
    assert entry(home / ".local/share/dbus-1/services/org.vitrine.ScreenShare1.service", "D-BUS Service")["Exec"].startswith(f"{home}/.local/bin/")
    subprocess.run(["make", "-s", "uninstall", *words], cwd=TOP, env=environment, check=True, stdin=subprocess.DEVNULL)
    assert installed(home) == []


def test_links_of_the_installed_documents_lead_somewhere(tree):
    folder = tree / "usr/share/doc/vitrine"
    links = re.findall(r"\]\(([^)#]+)\)", (folder / "frames.md").read_text())
    assert len(links) >= 2
    assert [link for link in links if not link.startswith("http") and not (folder / link).exists()] == []


def test_the_entries_are_valid(tree, tmp_path):
    for path in tree.rglob("*.desktop"):
        subprocess.run(["desktop-file-validate", str(path)], check=True)
    unit = tree / "usr/lib/systemd/user/app-org.vitrine.ScreenShare1.service"
    # It looks for the manual page, too.
    environment = {**os.environ, "XDG_RUNTIME_DIR": str(tmp_path), "SYSTEMD_LOG_LEVEL": "warning", "MANPATH": str(tree / "usr/share/man")}
    done = subprocess.run(["systemd-analyze", "verify", "--user", str(unit)], env=environment, capture_output=True, text=True)
    assert unit.name not in done.stdout + done.stderr, done.stderr
    service = entry(tree / "usr/share/dbus-1/services/org.vitrine.ScreenShare1.service", "D-BUS Service")
    assert service["SystemdService"] == unit.name
    assert service["Name"] == entry(unit, "Service")["BusName"] == SERVICE


def test_the_metainfo_is_valid_and_says_what_is_true(tree):
    file = tree / "usr/share/metainfo/org.vitrine.ScreenShare1.metainfo.xml"
    done = subprocess.run(["appstreamcli", "validate", "--no-net", "--no-color", str(file)], capture_output=True, text=True)
    # Newer versions want a home page, which there is none of.
    wrong = [line for line in done.stdout.splitlines() if re.match("[EW]: ", line) and "url-homepage-missing" not in line]
    assert wrong == [] and "Validation" in done.stdout, done.stdout + done.stderr
    component = ElementTree.parse(file).getroot()
    version = subprocess.run([BIN / "vitrinectl", "--version"], capture_output=True, text=True, check=True).stdout.split()[1]
    assert component.find("releases")[0].get("version") == version
    assert component.find("provides/dbus").text == component.find("id").text == SERVICE
    for binary in component.findall("provides/binary"):
        assert (tree / "usr/bin" / binary.text).exists()
    assert (tree / "usr/lib/systemd/user" / component.find("launchable").text).exists()


def colours(svg, size, tmp_path):
    """The colours of an icon's picture, each with its number of opaque pixels."""
    picture = tmp_path / "icon.png"
    subprocess.run(["rsvg-convert", "-w", str(size), "-h", str(size), "-o", str(picture), str(svg)], check=True)
    pixels = subprocess.run(["ffmpeg", "-v", "error", "-i", str(picture), "-f", "rawvideo", "-pix_fmt", "rgba", "-"], check=True,
                            capture_output=True).stdout
    assert len(pixels) == size * size * 4
    return collections.Counter(pixels[at:at + 3] for at in range(0, len(pixels), 4) if pixels[at + 3] == 255)


def test_the_icon_is_a_picture_in_the_sizes_in_which_it_is_shown(tree, tmp_path):
    icons = tree / "usr/share/icons/hicolor"
    name = entry(tree / "usr/share/applications/org.vitrine.ScreenShare1.desktop", "Desktop Entry")["Icon"]
    for size in (16, 48, 256):
        found = colours(icons / f"scalable/apps/{name}.svg", size, tmp_path)
        assert len(found) > 10 and found.total() > size * size / 3
    # What panels give their own colour has one.
    found = colours(icons / f"symbolic/apps/{name}-symbolic.svg", 16, tmp_path)
    assert len(found) == 1 and found.total() > 40


def test_the_portal_reads_an_identity_from_the_units_names():
    """The pattern by which xdg-desktop-portal takes an application's identity from a unit, written after its description."""
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


def test_the_application_entry_shares_and_stops(tree, session):
    """Who chooses Vitrine among the applications shares the screen, with no program asking; the entry's actions mute and stop it."""
    file = tree / "usr/share/applications/org.vitrine.ScreenShare1.desktop"
    agent = session.agent()

    def run(section):
        command, *words = shlex.split(entry(file, section)["Exec"])
        assert command.endswith("/usr/bin/vitrinectl")
        session.control(*words)

    run("Desktop Entry")
    assert agent.desktop.state == "active"
    run("Desktop Action Mute")
    assert agent.desktop.get("Muted")
    run("Desktop Action Mute")
    run("Desktop Action Stop")
    assert agent.desktop.state == "idle" and not agent.desktop.get("Muted")
    assert entry(file, "Desktop Entry").get("NoDisplay") is None
