# SPDX-License-Identifier: MIT
"""The examples that are installed do what they say: panels show the truth, keys are bound to commands that there are."""

import json
import re
import subprocess

import pytest

from harness import BIN
from processes import wait_until

STATES = ["", "sharing", "muted", "sharing", ""]


@pytest.fixture
def examples(tree):
    return tree / "usr/share/doc/vitrine/examples"


@pytest.fixture
def panel(world):
    """A world in which our programs are on the path."""
    world.environment["PATH"] = f"{BIN}:{world.environment['PATH']}"
    return world


def without_comments(path, mark):
    return "\n".join(line for line in path.read_text().splitlines() if not line.lstrip().startswith(mark))


def lines(world, name):
    """Complete lines that a program has written so far."""
    return world.processes.log(name).split("\n")[:-1]


def follow(world, me, name, command, text):
    """Runs a panel's command while a share comes, is muted, is unmuted and goes; returns its lines."""
    before = len(lines(world, name))

    def shows(word):
        wait_until(lambda: len(lines(world, name)) > before and text(lines(world, name)[-1]) == word, f"{name} showing {word!r}")

    child = world.start(name, ["bash", "-c", command])
    shows("")
    world.control("share", "--detach")
    shows("sharing")
    world.control("mute")
    shows("muted")
    world.control("mute", "off")
    shows("sharing")
    world.control("stop")
    shows("")
    world.processes.end(child)
    return lines(world, name)[before:]


def distinct(words):
    return [word for at, word in enumerate(words) if at == 0 or words[at - 1] != word]


def test_waybar_shows_what_is_true(examples, panel, me):
    module = json.loads(without_comments(examples / "waybar.jsonc", "//"))["custom/vitrine"]
    assert module["return-type"] == "json"
    shown = [json.loads(line) for line in follow(panel, me, "waybar", module["exec"], lambda line: json.loads(line)["text"])]
    assert distinct([one["text"] for one in shown]) == STATES
    # What a theme may colour by, and what a hint shows.
    assert {one["class"] for one in shown} >= {"idle", "active"}
    assert all(re.fullmatch(r"Screen share: \w+, readers: \d+", one["tooltip"]) for one in shown)
    assert_clicks(panel, me, module["on-click"], module["on-click-right"])


def test_polybar_shows_what_is_true(examples, panel, me):
    module = dict(line.split(" = ", 1) for line in without_comments(examples / "polybar.ini", (";", "[")).splitlines() if line)
    assert module["type"] == "custom/script" and module["tail"] == "true"
    assert distinct(follow(panel, me, "polybar", module["exec"], str)) == STATES
    assert_clicks(panel, me, module["click-left"], module["click-right"])


def assert_clicks(world, me, stop, mute):
    """The two buttons of a mark."""
    world.control("share", "--detach")
    track = me.desktop
    world.run(["bash", "-c", mute])
    assert track.get("Muted") is True
    world.run(["bash", "-c", mute])
    assert track.get("Muted") is False
    world.run(["bash", "-c", stop])
    assert track.get("State") == "idle"


def test_i3status_shows_what_is_true(examples, panel, me):
    """Its own program reads the file that the line for sway or i3 keeps."""
    text = (examples / "i3status.conf").read_text()
    command = re.search(r"^#   exec (.*)$", text, re.MULTILINE)[1]
    configuration = panel.root / "i3status.conf"
    configuration.write_text("general {\n output_format = none\n interval = 1\n}\n"
                             + text.replace("/run/user/1000/", f"{panel.runtime_dir}/"))
    keeper = panel.start("keeper", ["sh", "-c", command])
    bar = panel.start("i3status", ["i3status", "-c", configuration])

    def shows(word):
        wait_until(lambda: lines(panel, "i3status") and lines(panel, "i3status")[-1] == f"screen: {word}", f"i3status showing {word}")

    shows("not shared")
    panel.control("share", "--detach")
    shows("sharing")
    panel.control("mute")
    shows("muted")
    panel.control("stop")
    shows("not shared")
    panel.processes.end(bar)
    panel.processes.end(keeper)


def known_command(words):
    """Whether vitrinectl has this verb, and its help names the operand."""
    done = subprocess.run([BIN / words[0], words[1], "--help"], capture_output=True, text=True)
    return done.returncode == 0 and all(word in done.stdout for word in words[2:])


def test_keys_of_sway_are_bound_to_commands_that_there_are(examples):
    bound = re.findall(r"^bindsym \$mod\+Shift\+\w exec (vitrinectl .*)$", (examples / "sway.conf").read_text(), re.MULTILINE)
    assert bound == ["vitrinectl toggle", "vitrinectl mute toggle"]
    assert all(known_command(command.split()) for command in bound)


def test_keys_of_gnome_are_added_to_those_that_are_there(examples, panel):
    """GNOME's settings, kept in a file of this world."""
    panel.environment["GSETTINGS_BACKEND"] = "keyfile"
    keys = "org.gnome.settings-daemon.plugins.media-keys"
    base = "/org/gnome/settings-daemon/plugins/media-keys/custom-keybindings"

    def setting(*words):
        return panel.run(["gsettings", *words]).stdout.strip()

    try:
        setting("set", keys, "custom-keybindings", f"['{base}/theirs/']")
        # Twice: they are not added again.
        for _ in range(2):
            panel.run(["sh", examples / "gnome-keys"])
            assert setting("get", keys, "custom-keybindings") == f"['{base}/theirs/', '{base}/vitrine-share/', '{base}/vitrine-mute/']"
        for name, command in (("share", "vitrinectl toggle"), ("mute", "vitrinectl mute toggle")):
            at = f"{keys}.custom-keybinding:{base}/vitrine-{name}/"
            assert setting("get", at, "command") == f"'{command}'"
            assert setting("get", at, "binding").startswith("'<Super><Shift>")
            assert known_command(command.split())
        setting("reset", keys, "custom-keybindings")
        panel.run(["sh", examples / "gnome-keys"])
        assert setting("get", keys, "custom-keybindings") == f"['{base}/vitrine-share/', '{base}/vitrine-mute/']"
    finally:
        panel.environment["GSETTINGS_BACKEND"] = "memory"


def test_a_script_can_wait_until_the_screen_is_shared(panel, tree):
    """The line of vitrinectl(1): it ends with the share's beginning."""
    page = (tree / "usr/share/man/man1/vitrinectl.1").read_text().replace("\\&", "").replace("\\-", "-")
    (command,) = re.findall(r"^grep -q .*broadcasting.*$", page, re.MULTILINE)
    waiting = panel.start("waiting", ["bash", "-c", command])
    assert waiting.poll() is None
    assert panel.control("share", "--detach").returncode == 0
    assert waiting.wait(30) == 0
