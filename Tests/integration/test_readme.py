# SPDX-License-Identifier: MIT
"""README.md is true, word for word: its terminal sessions are run and compared, and its client shares and saves a file.

`/usr/bin/python3 Tests/integration/test_readme.py` runs the sessions and writes what they print into README.md.
"""

import re
import signal
import sys

from harness import BIN, TOP, Session
from processes import wait_until
from screen import TestScreen

README = TOP / "README.md"
BLOCK = re.compile(r"^```(console monitor|console|python)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
# What differs from one run to the next: names and numbers of this bus, times, counters.
VOLATILE = [
    (re.compile(r":1\.\d+"), ":1.N"),
    (re.compile(r"Cookie=\d+"), "Cookie=N"),
    (re.compile(r'Timestamp="[^"]*"'), 'Timestamp="…"'),
    (re.compile(r"\d+:\d\d\b"), "M:SS"),
    (re.compile(r"\d+(\.\d+)? [kM]?B\b"), "N B"),
    # The line is cut, and where depends on the counters' length.
    (re.compile(r"(\.Statistics +property +a\{st\}).*"), r"\1 …"),
    (re.compile(r'"(received|delivered|unread|coalesced|footprint|last-frame-age-us|latency-p\d+-us)" \d+'), r'"\1" N'),
    (re.compile(r'(oh "[^"]*") \d+'), r"\1 N"),
    (re.compile(r" +"), " "),
]


def stable(text):
    for pattern, replacement in VOLATILE:
        text = pattern.sub(replacement, text)
    return [line.rstrip() for line in text.strip().splitlines()]


def blocks(kind):
    return [found.group(2) for found in BLOCK.finditer(README.read_text()) if found.group(1) == kind]


def commands(block):
    return [line[2:] for line in block.splitlines() if line.startswith("$ ")]


def begin(session):
    """Sets up the session that the README shows: our programs are on the path, and its files are in a folder of its own."""
    session.environment["PATH"] = f"{BIN}:{session.environment['PATH']}"
    session.environment["SYSTEMD_PAGER"] = "cat"
    session.folder = session.root / "work"
    session.folder.mkdir()


def perform(session, block):
    """What the terminal would show of a block."""
    shown = ""
    for command in commands(block):
        log = session.root / "terminal"
        with open(log, "wb") as output:
            session.run(["bash", "-c", command], check=False, cwd=session.folder, capture_output=False, stdout=output, stderr=output)
        shown += f"$ {command}\n{log.read_text()}"
    return shown


def play(session):
    """Runs all sessions in order, the monitor beside them; returns the blocks as they should be."""
    (monitor,) = commands(blocks("console monitor")[0])
    watcher = session.start("monitor", ["bash", "-c", "exec " + monitor])
    wait_until(lambda: "Monitoring bus message stream." in session.processes.log("monitor"), "busctl monitor")
    # The monitor is shown for one block only, the one before it.
    shown, seen = [], None
    for kind, block in ((found.group(1), found.group(2)) for found in BLOCK.finditer(README.read_text())):
        if kind == "console":
            before = len(session.processes.log("monitor"))
            shown.append(perform(session, block))
            last = session.processes.log("monitor")[before:]
        elif kind == "console monitor":
            wait_until(lambda: "BroadcastFinished" in session.processes.log("monitor")[before:], "the signals of the share")
            seen = session.processes.log("monitor")[before:]
            shown.append(f"$ {monitor}\nMonitoring bus message stream.\n{seen}")
    session.processes.end(watcher, first=signal.SIGINT)
    return shown


def test_terminal_sessions_are_true():
    """Each command of the README prints what the README says."""
    with Session(agent="activated") as session:
        begin(session)
        shown = play(session)
    told = [found.group(2) for found in BLOCK.finditer(README.read_text()) if found.group(1) != "python"]
    assert len(shown) == len(told)
    for now, then in zip(shown, told):
        assert stable(now) == stable(then)


def test_every_method_is_shown():
    """There is a busctl line for every method of the contract."""
    text = "\n".join(blocks("console"))
    for file in (TOP / "dbus").glob("*.xml"):
        for method in re.findall(r'<method name="(\w+)"', file.read_text()):
            assert re.search(rf"busctl --user call .* {method}\b", text), f"{method} is not in README.md"


def run_client(session, **options):
    """Runs the client of the README, as it stands."""
    (code,) = blocks("python")
    (session.folder / "client.py").write_text(code)
    return session.run([sys.executable, "client.py"], cwd=session.folder, **options)


def test_python_client_shares_and_saves():
    """It leaves a WebM file that ffmpeg decodes without an error."""
    (code,) = blocks("python")
    assert len([line for line in code.splitlines() if line.strip()]) <= 25
    with Session(agent="activated") as session:
        begin(session)
        run_client(session)
        probe = session.run(["ffprobe", "-v", "error", "-count_frames", "-show_entries", "stream=codec_name,nb_read_frames",
                             "-of", "csv=p=0", "share.webm"], cwd=session.folder)
        codec, frames = probe.stdout.strip().split(",")
        assert codec == "vp8" and int(frames) > 10
        # Two pictures may lie nearer to each other than the frame rate that ffmpeg guesses.
        decode = ["ffmpeg", "-v", "error", "-i", "share.webm", "-fps_mode", "passthrough", "-enc_time_base", "-1", "-f", "null", "-"]
        assert session.run(decode, cwd=session.folder).stderr == ""


def test_python_client_leaves_a_share_alone_that_ran_before():
    with Session(agent="activated") as session:
        begin(session)
        session.control("share", "--detach")
        run_client(session)
        assert session.agent().desktop.get("State") == "active"


def test_python_client_ends_in_front_of_a_still_screen():
    with Session(agent="activated") as session:
        begin(session)
        TestScreen(session.client).configure(workload="still")
        assert "bytes of WebM" in run_client(session, timeout=60).stdout


def test_python_client_says_that_the_picker_was_closed():
    with Session(agent="activated") as session:
        begin(session)
        TestScreen(session.client).configure(answer="cancel")
        done = run_client(session, check=False)
        assert done.returncode == 1 and done.stderr.startswith("Nothing is shared: ") and len(done.stderr.splitlines()) == 1


def rewrite():
    with Session(agent="activated") as session:
        begin(session)
        shown = iter(play(session))
    README.write_text(BLOCK.sub(
        lambda found: found.group(0) if found.group(1) == "python" else f"```{found.group(1)}\n{next(shown)}```", README.read_text()))


if __name__ == "__main__":
    rewrite()
