# SPDX-License-Identifier: MIT
"""What the shells themselves complete of vitrinectl: verbs, options, values, and the tracks of the agent that runs."""

import os
import pty
import re
import select
import subprocess
import time
from pathlib import Path

import pytest

from harness import BIN


class Bash:
    """The function that bash calls, called as bash calls it."""

    def __init__(self, tree, environment):
        self.file = tree / "usr/share/bash-completion/completions/vitrinectl"
        self.environment = environment

    def complete(self, line):
        words = re.findall(r"[^ =:]+|[=:]", line) + ([""] if line.endswith(" ") else [])
        script = f'source {self.file}; complete -p vitrinectl >/dev/null || exit 1\n' \
                 'COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _vitrinectl "$1"; printf "%s\\n" "${COMPREPLY[@]}"'
        done = subprocess.run(["bash", "--norc", "-c", script, "bash", *words], env=self.environment, capture_output=True, text=True, check=True)
        assert done.stderr == ""
        return done.stdout.split()


class Fish:
    def __init__(self, tree, environment):
        self.file = tree / "usr/share/fish/vendor_completions.d/vitrinectl.fish"
        self.environment = environment

    def complete(self, line):
        done = subprocess.run(["fish", "--no-config", "-c", f"source {self.file}; complete -C '{line}'"], env=self.environment,
                              capture_output=True, text=True, check=True)
        assert done.stderr == ""
        # --name=value is completed as a whole there.
        return [candidate.split("\t")[0].rpartition("=")[2] for candidate in done.stdout.splitlines()]


class Zsh:
    """zsh completes in its line editor alone, so it gets a terminal; what would be offered is kept by a `compadd` of our own."""

    def __init__(self, tree, environment):
        self.folder = tree / "usr/share/zsh/site-functions"
        self.environment = environment

    def complete(self, line):
        pid, terminal = pty.fork()
        if pid == 0:
            os.execvpe("zsh", ["zsh", "-f", "-i"], {**self.environment, "TERM": "dumb"})
        try:
            self.told(terminal, f"""fpath=({self.folder} $fpath); autoload -U compinit; compinit -u -D; PS1='' PS2=''
                compadd() {{ local -a found; builtin compadd -O found "$@"; offered+=($found); builtin compadd "$@" }}
                show() {{ print -r -- "<<${{(j: :)offered}}>""> $BUFFER"; offered=() }}
                zle -N show; bindkey '^X' show; bindkey '^I' complete-word; print -r -- 'READY'':'
                """.replace("\n", "\r"), "READY:")
            shown = self.told(terminal, line + "\t\x18", ">> ")
            return re.search(r"<<(.*)>> ", shown)[1].split()
        finally:
            os.close(terminal)
            os.waitpid(pid, 0)

    @staticmethod
    def told(terminal, text, end):
        """Types, and returns what the terminal shows up to `end`."""
        os.write(terminal, text.encode())
        shown, deadline = "", time.monotonic() + 60
        while end not in shown:
            ready, _, _ = select.select([terminal], [], [], max(0, deadline - time.monotonic()))
            assert ready, f"zsh did not get to {end!r}: {shown!r}"
            shown += os.read(terminal, 65536).decode(errors="replace")
        return shown


@pytest.fixture(params=[Bash, Fish, Zsh])
def shell(request, tree, shared):
    """Each shell in a world where an agent runs, with our programs on its path."""
    return request.param(tree, {**shared.environment, "PATH": f"{BIN}:{shared.environment['PATH']}"})


def helped(*words):
    return subprocess.run([BIN / "vitrinectl", *words, "--help"], capture_output=True, text=True, check=True).stdout


VERBS = re.findall(r"^  ([a-z]+)  ", helped().split("Verbs:")[1].split("\n\n")[0], re.MULTILINE)


def test_verbs_are_those_of_the_help(shell):
    assert set(VERBS) <= set(shell.complete("vitrinectl "))
    assert set(shell.complete("vitrinectl st")) == {verb for verb in VERBS if verb.startswith("st")}


def test_options_are_those_of_the_verbs_help(shell):
    options = {name for line in helped("share").splitlines() if line.startswith("  -")
               for name in re.findall(r"(?<!\S)--[a-z-]+", line.strip().split("  ")[0])}
    assert {"--preset", "--detach", "--no-wait"} <= options
    assert set(shell.complete("vitrinectl share --")) == options
    assert set(shell.complete("vitrinectl status --f")) == {"--follow"}


def test_tracks_are_those_of_the_running_agent(shell, shared):
    agent = shared.agent()
    one, two = agent.create_track(title="one"), agent.create_track()
    numbers = {track.path.rpartition("/")[2] for track in (one, two)}
    for line in ("vitrinectl mute --track ", "vitrinectl status -t ", "vitrinectl stats --track="):
        assert set(shell.complete(line)) == {"desktop"} | numbers, line
    one.call("Destroy")
    two.call("Destroy")
    assert shell.complete("vitrinectl record --track ") == ["desktop"]


def test_values_are_offered_where_they_are_known(shell, shared):
    presets = shell.complete("vitrinectl share --preset ")
    assert set(presets) == set(shared.agent().get("Presets"))
    assert shell.complete("vitrinectl share --preset=h10") == ["h1080p"]
    assert set(shell.complete("vitrinectl mute ")) == {"on", "off", "toggle"}
    assert set(shell.complete("vitrinectl mute t")) == {"toggle"}


@pytest.mark.parametrize("verb, option, letter", [
    ("record", "--format", "-f"), ("record", "--placeholder", None), ("record", "--codec", "-c"), ("share", "--cursor", None),
    ("share", "--remember", None),
])
def test_values_are_those_that_the_program_takes(shell, verb, option, letter, tmp_path):
    """A wrong one is refused with the list."""
    wrong = subprocess.run([BIN / "vitrinectl", verb, *([tmp_path / "none"] if verb == "record" else []), option, "?"], capture_output=True,
                           text=True, env=shell.environment)
    assert wrong.returncode == 2
    taken = set(re.search(r"one of ([\w, ]+)", wrong.stderr)[1].split(", "))
    assert len(taken) >= 2
    assert set(shell.complete(f"vitrinectl {verb} {option} ")) == taken
    if letter:
        assert set(shell.complete(f"vitrinectl {verb} {letter} ")) == taken


def test_programs_to_forget_are_those_that_are_remembered(shell, shared):
    assert shell.complete("vitrinectl forget ") == []
    choices = Path(shared.environment["XDG_STATE_HOME"]) / "vitrine/choices"
    choices.parent.mkdir(exist_ok=True)
    choices.write_text("app:org.example.Teacher\tlesson\ttoken-1\nexe:/usr/bin/other\t\ttoken-2\n")
    try:
        # bash takes a word with a colon for three.
        offered = {one.rpartition(":")[2] for one in shell.complete("vitrinectl forget ")}
        assert offered == {"org.example.Teacher", "/usr/bin/other"}
    finally:
        choices.unlink()


def test_a_file_to_record_to_is_completed(shell, tmp_path):
    (tmp_path / "lecture.webm").touch()
    # zsh goes along the folders of the path.
    offered = shell.complete(f"vitrinectl record {tmp_path}/lec")
    assert offered[-1].endswith("lecture.webm")


def test_nothing_is_offered_where_nothing_fits(shell):
    assert shell.complete("vitrinectl nosuchverb --") == []
    assert shell.complete("vitrinectl stop x") == []
