# SPDX-License-Identifier: MIT
"""vitrinectl against the real agent, portal and PipeWire: what it says, what it exits with, and how it ends."""

import json
import os
import pty
import re
import signal
import subprocess
import sys

import pytest

from control import CANCELLED, DONE, FAILED, TIMED_OUT, UNAVAILABLE, USAGE, Program, ctl, desktop, screen, share, world  # noqa: F401
from harness import ERROR, PORTAL, SERVICE, TOP, program
from processes import wait_until
from screen import TestScreen

VERBS = ["share", "switch", "stop", "toggle", "mute", "status", "watch", "record", "list", "stats", "doctor"]


# Usage


@pytest.mark.parametrize("verb", VERBS)
def test_each_verb_has_help(world, verb):
    done = world.control(verb, "--help")
    assert done.stdout.startswith(f"Usage: vitrinectl {verb}") and "--help" in done.stdout and done.stderr == ""


def test_the_programs_help_names_verbs_and_exit_codes(world):
    text = world.control("--help").stdout
    assert all(re.search(rf"^  {verb} ", text, re.M) for verb in VERBS)
    assert "'vitrinectl help VERB'" in text and world.control("help", "mute").stdout == world.control("mute", "--help").stdout
    assert "0 done   1 failed   2 wrong usage   3 cancelled   4 unavailable   5 timed out" in text
    assert re.fullmatch(r"vitrinectl \d+\.\d+\.\d+\n", world.control("--version").stdout)


@pytest.mark.parametrize("arguments, named, suggested", [
    ((), "say what to do", "Usage: "),
    (("shaer",), "'shaer'", "did you mean 'share'?"),
    (("share", "--presett", "x"), "'--presett'", "did you mean '--preset'?"),
    (("share", "--fps", "many"), "'many' is no value of --fps", "a whole number"),
    (("share", "--max-size", "10"), "'10' is no value of --max-size", "1280x720"),
    (("share", "--crop", "1,2,3"), "'1,2,3' is no value of --crop", "0,0,640,480"),
    (("share", "--mask", "0,0,-1,5"), "'0,0,-1,5' is no value of --mask", "or none"),
    (("share", "--crop", "10,10,0,20"), "'10,10,0,20' is no value of --crop: it is empty", "none takes away"),
    (("share", "--mask", "0,0,0,0"), "'0,0,0,0' is no value of --mask: it is empty", "none takes away"),
    (("share", "--track", "1", "--preset", "h360p"), "--preset is up to the program that made the track", "--timeout and --detach"),
    (("record", ""), "'' is no value of FILE", "vitrinectl record FILE"),
    (("watch", "--player", " "), "' ' is no value of --player", "a command"),
    (("forget", "nope"), "'nope' is no value of PROGRAM", "vitrinectl forget --list"),
    (("share", "--crop=-1,0,5,5", "--timeout", "1"), "--crop begins outside of the source", ""),
    (("share", "--mask", "none", "--mask", "0,0,8,8"), "--mask none takes all away", "give it alone"),
    (("share", "--remember", "session"), "--remember session would be forgotten", "no and forever"),
    (("mute", "--track", "/a/b"), "'/a/b' is no value of --track", "vitrinectl list"),
    (("switch", "--track", "3"), "unknown option '--track'", "Usage: vitrinectl switch"),
    (("help", "nonsense"), "there is no verb 'nonsense'", "Verbs: share"),
    (("share", "--cursor", "sprite"), "'sprite' is no value of --cursor", "embedded, metadata, hidden"),
    (("share", "--layout", "spiral"), "'spiral' is no value of --layout", "grid, row"),
    (("mute", "maybe"), "'maybe' is no value of STATE", "on, off, toggle"),
    (("record",), "FILE is missing", "vitrinectl record FILE"),
    (("record", "x", "--seconds"), "'--seconds' needs a value", "vitrinectl record --help"),
    (("record", "x", "--seconds", "0"), "'0' is no value of --seconds", "more than 0"),
    (("list", "this"), "'this' is one word too many", "Usage: "),
    (("--helpp",), "'--helpp'", "did you mean '--help'?"),
    (("stats", "--track", "a b"), "'a b' is no value of --track", "vitrinectl list"),
    (("stats", "--memory", "--track", "1"), "--memory shows all of the agent", "Usage: vitrinectl stats"),
])
def test_wrong_usage_names_the_thing(world, arguments, named, suggested):
    done = world.control(*arguments, check=False)
    assert done.returncode == USAGE
    assert named in done.stderr and suggested in done.stderr and done.stdout == ""


def test_the_agent_judges_values(world, screen):
    """What it refuses is named as it was typed."""
    for option, value, named in (("--preset", "720p", '--preset is "720p"; there are h360p'), ("--fps", "5000", "--fps is 5000; "),
                                 ("--allow", "somebody", '--allow holds "somebody"'), ("--title", "x" * 65, "--title has 65 characters")):
        done = world.control("share", option, value, check=False)
        assert done.returncode == USAGE and done.stderr.startswith(f"vitrinectl: {named}"), done.stderr
    assert world.agent(world.client).desktop.state == "idle"


# share


def test_share_says_what_is_shared_until_ctrl_c(ctl, screen, desktop):
    program = ctl("share", "--monitor", "--title", "A talk")
    program.wait_for("Sharing: monitor, 1280x720.")
    assert "Choose what to share in the desktop's picker" in program.out
    assert screen.get("LastStart")["types"] == 1
    assert (desktop.state, desktop.get("Title")) == ("active", "A talk")
    program.send(signal.SIGINT)
    assert program.end() == DONE
    assert desktop.state == "idle"
    assert "The share has ended.\n" in program.out
    assert re.search(r"Shared for \d+:\d\d\. Frames: \d+ received, \d+ delivered, \d+ coalesced, \d+ unread\.", program.out)
    assert "\x1b" not in program.out and "\r" not in program.out and program.err == ""


def test_share_hands_its_options_to_the_agent(world, ctl, screen, desktop):
    done = world.control("share", "--detach", "--preset", "h720p", "--max-size", "640x480", "--cursor", "hidden", "--window", "--allow",
                         "exe:/a", "--allow", "exe:/b")
    assert done.returncode == DONE
    assert desktop.state == "active"
    assert sorted(desktop.get("Allowed")) == ["exe:/a", "exe:/b"]
    assert desktop.get("Preset") == "h720p"
    width, height = desktop.get("Size")
    assert width <= 640 and height <= 480
    started = screen.get("LastStart")
    assert (started["types"], started["cursor_mode"]) == (2, 1)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_other_signals_end_a_share_too(ctl, desktop, number):
    program = ctl("share")
    program.wait_for("Sharing: ")
    program.send(number)
    assert program.end() == DONE
    assert desktop.state == "idle"


def test_a_cancelled_picker_is_exit_code_3(world, screen, desktop):
    screen.configure(answer="cancel")
    done = world.control("share", check=False)
    assert done.returncode == CANCELLED
    # It began to listen for this share only; what listened before goes on.
    assert desktop.state == "idle"
    desktop.start_capture()
    assert world.control("share", check=False).returncode == CANCELLED
    assert desktop.state == "listening"
    # It can be tried again at once.
    screen.configure(answer="ok")
    assert world.control("share", "--detach").returncode == DONE


def test_ctrl_c_closes_the_open_picker(ctl, screen, desktop):
    screen.configure(answer="never")
    program = ctl("share")
    program.wait_for("Choose what to share")
    screen.wait_until("PickersOpen", 1)
    program.send(signal.SIGINT)
    assert program.end() == CANCELLED
    assert "the picker was closed" in program.err
    screen.wait_until("PickersOpen", 0)
    assert desktop.state == "idle"


def test_an_unanswered_picker_is_exit_code_5(world, screen, desktop):
    screen.configure(answer="never")
    done = world.control("share", "--timeout", "1", check=False)
    assert done.returncode == TIMED_OUT
    screen.wait_until("PickersOpen", 0)


def test_who_joins_an_open_picker_waits_as_long_as_they_say(world, ctl, screen, desktop):
    screen.configure(answer="never")
    first = ctl("share", "--timeout", "0")
    screen.wait_for_picker()
    done = world.control("share", "--timeout", "1", check=False)
    assert done.returncode == TIMED_OUT and "the picker stays open for who opened it" in done.stderr
    assert desktop.state == "choosing" and first.process.poll() is None
    screen.answer_picker("ok")
    first.wait_for("Sharing: monitor")


def test_a_share_that_may_need_no_picker_says_so(make_session):
    world = make_session()
    folder = world.root / "config" / "vitrine"
    folder.mkdir()
    (folder / "vitrine.conf").write_text("persist = forever\n")
    assert "in the desktop's picker, if it opens: what is remembered needs none." in world.control("share", "--detach").stdout


def test_a_failing_picker_is_exit_code_1(world, screen):
    screen.configure(answer="fail")
    done = world.control("share", check=False)
    assert done.returncode == FAILED and done.stderr.startswith("vitrinectl: ")


def test_the_end_in_the_desktop_is_told(ctl, screen, desktop):
    program = ctl("share")
    program.wait_for("Sharing: ")
    screen.end_session()
    assert program.end() == DONE
    assert "The share was ended in the desktop (ended-by-desktop)" in program.out
    # Who does not stay to share again leaves nothing that listens.
    assert desktop.state == "idle"


@pytest.mark.parametrize("end, code, reason", [
    ("source", FAILED, "source-removed"), ("portal", UNAVAILABLE, "portal-lost"), ("pipewire", UNAVAILABLE, "pipewire-lost")])
def test_an_end_that_nobody_wished_for_has_its_exit_code(make_session, tmp_path, end, code, reason):
    """For who shares and for who records alike."""
    world = make_session()
    sharing, recording = Program(world, "share"), None
    try:
        sharing.wait_for("Sharing: ")
        recording = Program(world, "record", tmp_path / "x.webm")
        recording.wait_for("Recording to")
        if end == "source":
            TestScreen(world.new_client()).vanish()
        else:
            world.processes.end(getattr(world, end), first=signal.SIGKILL)
        assert sharing.end() == code and f"({reason})" in sharing.out
        assert recording.end() == code and f"({reason})" in recording.err
    finally:
        for one in (sharing, recording):
            if one:
                one.close()


def test_the_end_by_somebody_else_is_told(world, ctl, desktop):
    program = ctl("share")
    program.wait_for("Sharing: ")
    assert world.control("stop").stdout == "The share has ended.\n"
    assert program.end() == DONE
    assert re.search(r"The share has ended: .*/vitrinectl$", program.out, re.M)


def test_mute_and_pause_are_told_while_sharing(world, ctl, screen, desktop):
    program = ctl("share")
    program.wait_for("Sharing: ")
    world.control("mute")
    program.wait_for("Muted: readers get a placeholder.")
    world.control("mute", "off")
    program.wait_for("No longer muted.")
    screen.pause()
    program.wait_for("The source is paused")
    screen.resume()
    program.wait_for("The source goes on.")


def test_a_second_share_joins_the_first(world, ctl, desktop):
    share(desktop)
    program = ctl("share", "--preset", "h480p")
    program.wait_for("Shared already: monitor")
    program.wait_for("Changed: preset h480p.\n")
    assert desktop.get("Preset") == "h480p"
    assert "Changed" not in world.control("share", "--detach").stdout
    changed = world.control("share", "--detach", "--fps", "10", "--max-size", "320x200", "--bitrate", "300k").stdout
    assert changed.endswith("Changed: bitrate 300000, fps 10, at most 320x200.\n")
    changed = world.control("share", "--detach", "--allow", "exe:/a", "--allow", "exe:/b", "--title", "").stdout
    assert changed.endswith("Changed: allowed: exe:/a and exe:/b, no title.\n")
    # What cannot change is not said to have changed.
    assert "Changed" not in world.control("share", "--detach", "--cursor", "embedded", "--audio", "none", "--remember", "no").stdout
    # They stand in place of those before.
    world.control("share", "--detach", "--allow", "exe:/c")
    assert desktop.get("Allowed") == ["exe:/c"]
    program.send(signal.SIGINT)
    assert program.end() == DONE


def test_crop_and_masks_are_set_with_the_share_and_while_it_runs(world, desktop):
    world.control("share", "--detach", "--crop", "0,0,640,360", "--mask", "0,0,100,50", "--mask=-10,200,30,40")
    assert desktop.get("Crop") == (0, 0, 640, 360)
    assert desktop.get("Masks") == [(0, 0, 100, 50), (-10, 200, 30, 40)]
    assert desktop.get("Size") == (640, 360)
    words = world.control("status").stdout
    assert re.search(r"^Crop +0,0,640,360$", words, re.M) and re.search(r"^Masks +0,0,100,50  -10,200,30,40$", words, re.M)
    told = json.loads(world.control("status", "--json").stdout)
    assert (told["crop"], told["masks"]) == ([0, 0, 640, 360], [[0, 0, 100, 50], [-10, 200, 30, 40]])
    changed = world.control("share", "--detach", "--crop", "none", "--mask", "8,8,16,16").stdout
    assert changed.endswith("Changed: no crop, masked: 8,8,16,16.\n")
    assert desktop.get("Crop") == (0, 0, 0, 0) and desktop.get("Masks") == [(8, 8, 16, 16)]
    assert world.control("share", "--detach", "--mask", "none").stdout.endswith("Changed: no masks.\n")
    assert desktop.get("Masks") == []
    assert "Masks" not in world.control("status").stdout and json.loads(world.control("status", "--json").stdout)["crop"] is None


def test_crop_and_masks_outside_of_the_source_are_told(world, desktop):
    """They are taken, as the contract has it, but nobody can have meant them: the share and status say what comes of them."""
    told = world.control("share", "--detach", "--crop", "2000,0,64,64", "--mask", "0,720,64,64", "--mask=-4,-4,5,5").stdout
    assert told.endswith("The crop 2000,0,64,64 lies outside of monitor, 1280x720: readers see black.\n"
                         "The mask 0,720,64,64 lies outside of monitor, 1280x720: it hides nothing.\n")
    words = world.control("status").stdout
    assert re.search(r"^Crop +2000,0,64,64 outside of the source: all is black$", words, re.M)
    assert re.search(r"^ +outside of the source, hiding nothing: 0,720,64,64$", words, re.M)
    told = world.control("share", "--detach", "--crop", "1279,719,64,64", "--mask=-4,-4,5,5").stdout
    assert "outside" not in told and "outside" not in world.control("status").stdout
    assert "outside" in world.control("share", "--detach", "--mask=-4,0,4,4").stdout


def test_what_is_left_from_before_is_named(world, screen, desktop):
    """A share that begins muted, cropped or masked says so, and how to take it back."""
    world.control("share", "--detach", "--crop", "0,0,640,360", "--mask", "8,8,16,16")
    world.control("stop")
    world.control("mute")
    told = world.control("share", "--detach").stdout
    assert told.endswith("Still in force: it is muted, crop 0,0,640,360, masked: 8,8,16,16. 'vitrinectl mute off' and "
                         "'vitrinectl share --detach --crop none --mask none' take it back.\n")
    world.control("mute", "off")
    assert world.control("share", "--detach", "--crop", "none", "--mask", "none").returncode == DONE
    world.control("stop")
    world.control("share", "--detach", "--mask", "1,1,2,2")
    world.control("stop")
    assert "Still in force" not in world.control("share", "--detach", "--mask", "3,3,4,4").stdout
    world.control("stop")
    assert world.control("share", "--detach").stdout.endswith(
        "Still in force: masked: 3,3,4,4. 'vitrinectl share --detach --mask none' takes it back.\n")
    world.control("share", "--detach", "--mask", "none")


def test_several_sources_and_their_layout(world, screen, desktop):
    """--multiple asks the picker for several, --layout lays them out, before and while they are shared; status names them all."""
    screen.configure(streams=2, sizes=[(320, 200), (200, 300)])
    said = world.control("share", "--detach", "--multiple", "--layout", "row").stdout
    assert "Sharing: monitor" in said and desktop.get("Layout") == "row" and screen.get("LastStart")["multiple"]
    desktop.wait_until("Sources", lambda sources: len(sources) == 2 and all("pixel-size" in one for one in sources))
    assert desktop.get("Size") == (520, 300)
    words = world.control("status").stdout
    assert re.search(r"^Layout +row$", words, re.M) and "monitor, 320x200 and monitor, 200x300" in words
    told = json.loads(world.control("status", "--json").stdout)
    assert told["layout"] == "row" and [one["pixel-size"] for one in told["sources"]] == [[320, 200], [200, 300]]
    assert world.control("share", "--detach", "--layout", "grid").stdout.endswith("Changed: layout grid.\n")
    assert desktop.get("Layout") == "grid"
    done = world.control("share", "--detach", "--layout", "row", check=False)
    assert done.returncode == DONE and desktop.get("Layout") == "row"
    desktop.set("Layout", "s", "grid")


@pytest.mark.parametrize("cursor, mode", [("hidden", 1), ("embedded", 2), ("metadata", 4)])
def test_the_cursor_is_asked_for_as_the_option_says(world, screen, desktop, cursor, mode):
    world.control("share", "--detach", "--cursor", cursor)
    assert screen.get("LastStart")["cursor_mode"] == mode


def test_switch_shares_another_source_while_the_share_goes_on(world, ctl, screen, desktop):
    sharing = ctl("share")
    sharing.wait_for("Sharing: monitor, 1280x720.")
    started = desktop.get("StartedAt")
    screen.configure(source_type=2)
    done = world.control("switch")
    assert done.stdout == ("Choose in the desktop's picker what to share instead of: monitor, 1280x720.\n" "Sharing: window, 1280x720.\n")
    sharing.wait_for("Sharing now: window, 1280x720.")
    # What was right for one source may lie outside of the next.
    world.control("share", "--detach", "--mask", "1000,0,64,64")
    screen.configure(size=(640, 360))
    outside = "The mask 1000,0,64,64 lies outside of window, 640x360: it hides nothing.\n"
    assert world.control("switch").stdout.endswith(f"Sharing: window, 640x360.\n{outside}")
    sharing.wait_for(f"Sharing now: window, 640x360.\n{outside}")
    assert desktop.get("StartedAt") == started
    # A closed picker leaves it all as it is.
    screen.configure(answer="cancel")
    assert world.control("switch", check=False).returncode == CANCELLED
    screen.configure(answer="never")
    assert world.control("switch", "--timeout", "1", check=False).returncode == TIMED_OUT
    waiting = ctl("switch")
    screen.wait_for_picker()
    waiting.send(signal.SIGINT)
    assert waiting.end() == CANCELLED and "what is chosen in the picker still counts" in waiting.err
    assert desktop.state == "active" and desktop.get("Sources")[0]["type"] == 2
    sharing.send(signal.SIGINT)
    assert sharing.end() == DONE
    done = world.control("switch", check=False)
    assert done.returncode == FAILED and "'vitrinectl share' starts a share" in done.stderr


def test_remedies_are_commands(world, desktop):
    share(desktop)
    done = world.control("share", "--cursor", "hidden", check=False)
    assert done.returncode == FAILED
    assert "cursor cannot change while the share is under way: 'vitrinectl stop' ends it first" in done.stderr
    # None of the agent's words is translated that it does not say.
    source = (TOP / "Sources/vitrinectl/Remedy.swift").read_text()
    theirs = re.findall(r'^ +\("(.*?)", "', source, re.M)
    agent = "".join(file.read_text() for file in (TOP / "Sources/Agent").glob("*.swift"))
    assert len(theirs) > 3 and [words for words in theirs if f'{words}"' not in agent] == []


def test_an_agent_that_ends_is_told(make_session):
    world = make_session()
    sharing, recording = Program(world, "share"), None
    try:
        sharing.wait_for("Sharing: ")
        recording = Program(world, "record", world.root / "x.webm")
        recording.wait_for("Recording to")
        world.end_agent(signal.SIGKILL)
        assert sharing.end() == UNAVAILABLE and "the agent has gone away" in sharing.err
        assert recording.end() == UNAVAILABLE and "The agent has gone away" in recording.err
        assert world.control("status").stdout == "idle: nothing is shared, and the agent does not run\n"
    finally:
        for one in (sharing, recording):
            if one:
                one.close()


def test_an_agent_that_is_told_to_leave_is_told(make_session):
    world = make_session()
    sharing = Program(world, "share")
    try:
        sharing.wait_for("Sharing: ")
        world.end_agent(signal.SIGTERM)
        assert sharing.end() == UNAVAILABLE
        assert "(agent-exit)" in sharing.out
    finally:
        sharing.close()


def test_a_terminal_gets_a_live_line_and_colour(world, screen):
    environment = {**world.environment, "TERM": "xterm"}
    del environment["NO_COLOR"]
    ours, theirs = pty.openpty()
    process = subprocess.Popen([str(program("vitrinectl")), "share"], env=environment, stdin=theirs, stdout=theirs, stderr=theirs,
                               start_new_session=True)
    os.close(theirs)
    shown = b""
    try:
        while b"1 reader" not in shown or b"0:01" not in shown:
            shown += os.read(ours, 4096)
            if b"Sharing" in shown and b"subscribed" not in shown:
                subscription = world.agent().desktop.subscribe()
                shown += b"subscribed"
        assert re.search(rb"\r\x1b\[K\d+:\d\d  \d+ received, \d+ delivered, \d+ coalesced", shown)
        subscription.close()
        process.send_signal(signal.SIGINT)
        try:
            while block := os.read(ours, 4096):
                shown += block
        except OSError:  # the terminal has nobody at its other end any more
            pass
        assert process.wait(20) == DONE
        assert b"Shared for" in shown
    finally:
        process.kill()
        process.wait()
        os.close(ours)


def test_no_color_is_honoured_on_a_terminal(world):
    for colour in ("", "1"):
        ours, theirs = pty.openpty()
        done = subprocess.run([str(program("vitrinectl")), "nonsense"], env={**world.environment, "TERM": "xterm", "NO_COLOR": colour},
                              stdin=theirs, stdout=theirs, stderr=theirs)
        os.close(theirs)
        assert done.returncode == USAGE
        assert (b"\x1b[" in os.read(ours, 4096)) == (colour == "")
        os.close(ours)


def test_a_terminal_that_is_closed_ends_the_share(world, screen, desktop):
    ours, theirs = pty.openpty()
    process = subprocess.Popen([str(program("vitrinectl")), "share"], env={**world.environment, "TERM": "xterm"}, stdin=theirs, stdout=theirs,
                               stderr=theirs, start_new_session=True)
    os.close(theirs)
    try:
        desktop.wait_until("State", "active")
        os.close(ours)
        assert process.wait(20) == DONE
        assert desktop.state == "idle"
    finally:
        process.kill()
        process.wait()


# stop, toggle, mute


def test_stop_is_idempotent(world, desktop):
    assert world.control("stop").stdout == "Nothing is shared.\n"
    share(desktop)
    assert world.control("stop").stdout == "The share has ended.\n"
    assert world.control("stop").stdout == "Nothing is shared.\n"
    assert desktop.state == "idle"


def test_stop_closes_a_picker(world, ctl, screen):
    screen.configure(answer="never")
    program = ctl("share")
    program.wait_for("Choose what to share")
    assert world.control("stop").stdout == "The picker was closed.\n"
    assert program.end() == CANCELLED


def test_toggle_starts_and_ends(world, desktop):
    assert "Sharing: monitor" in world.control("toggle").stdout
    assert desktop.state == "active"
    assert world.control("toggle").stdout == "The share has ended.\n"
    assert desktop.state == "idle"


def test_toggle_tells_a_cancelled_picker(world, screen):
    screen.configure(answer="cancel")
    assert world.control("toggle", check=False).returncode == CANCELLED


def test_mute_sets_and_toggles(world, desktop):
    for arguments, muted in ((("mute",), True), (("mute", "toggle"), False), (("mute", "toggle"), True), (("mute", "off"), False),
                             (("mute", "on"), True)):
        assert world.control(*arguments).returncode == DONE
        assert desktop.get("Muted") is muted


# Tracks of programs


@pytest.fixture
def lesson(world, screen):
    """A track that a program has made, and that listens."""
    track = world.agent().create_track(title="Slides")
    track.start_capture()
    yield track
    track.destroy()


def test_a_track_that_listens_is_offered_and_shared_with(world, ctl, screen, desktop, lesson):
    """Whoever shares is told who listens too, and may share with that one in place of the desktop track."""
    number, owner = lesson.path.rpartition("/")[2], lesson.get("OwnerIdentity")
    told = world.control("share", "--detach").stdout
    assert f"Track {number} (\"Slides\", {owner}) listens too: 'vitrinectl share --track {number}' shares with it instead.\n" in told
    world.control("stop")
    sharing = ctl("share", "--track", number)
    sharing.wait_for("Sharing: monitor, 1280x720.")
    assert (lesson.state, desktop.state) == ("active", "idle")
    done = world.control("share", "--track", number, check=False)
    assert done.returncode == FAILED and f"'vitrinectl stop --track {number}' ends the share first" in done.stderr
    sharing.send(signal.SIGINT)
    assert sharing.end() == DONE
    # The program goes on listening, and is shared with again.
    assert lesson.state == "listening"
    screen.configure(answer="cancel")
    assert world.control("share", "--track", number, check=False).returncode == CANCELLED
    assert lesson.state == "listening"
    lesson.stop_capture()
    done = world.control("share", "--track", number, check=False)
    assert done.returncode == FAILED and "does not listen: the program that made it decides" in done.stderr


def test_what_only_a_program_shares_is_named_and_can_be_stopped(world, desktop, lesson):
    number, owner = lesson.path.rpartition("/")[2], lesson.get("OwnerIdentity")
    name = f'track {number} ("Slides", {owner})'
    lesson.start_broadcast(wait=True)
    told = world.control("status").stdout
    assert re.search(r"^State +idle: nothing is shared here$", told, re.M)
    assert re.search(rf"^Shared too +monitor, 1280x720, on {re.escape(name)}$", told, re.M)
    assert world.control("stop").stdout == (
        f"Nothing is shared on the desktop track.\nBut {name} shares: monitor, 1280x720. 'vitrinectl stop --track {number}' ends that.\n")
    assert lesson.state == "active"
    assert world.control("stop", "--track", number).stdout == "The share has ended.\n"
    assert lesson.state == "listening"
    assert world.control("stop", "--track", number).stdout == f"Nothing is shared on {name}.\n"
    assert world.control("stop").stdout == "Nothing is shared.\n"


def test_a_mute_that_only_the_owner_takes_back_says_so(world, lesson):
    number = lesson.path.rpartition("/")[2]
    words = f"'vitrinectl stop --track {number}' ends the share"
    told = world.control("mute", "--track", number).stdout
    assert "Muted: readers get a placeholder.\nOnly the program that made track" in told and words in told
    done = world.control("mute", "off", "--track", number, check=False)
    assert done.returncode == FAILED and words in done.stderr and "CreateTrack" not in done.stderr
    assert lesson.get("Muted") is True


def test_a_recording_that_waits_for_the_end_of_a_mute_says_so(world, ctl, desktop, tmp_path):
    share(desktop)
    world.control("mute")
    program = ctl("record", tmp_path / "muted.webm", "--seconds", "1")
    wait_until(lambda: "the share is muted" in program.err and "'vitrinectl mute off' shows it" in program.err, "the words about the mute")
    world.control("mute", "off")
    assert program.end() == DONE


# status, list, stats


def test_status_in_words(world, desktop):
    assert re.match(r"State +idle: nothing is shared\nMuted +no\nReaders +0\n", world.control("status").stdout)
    share(desktop)
    lines = world.control("status").stdout.splitlines()
    assert re.fullmatch(r"State +active for \d+:\d\d", lines[0])
    assert re.fullmatch(r"Shared +monitor, 1280x720", lines[1])


def test_status_as_json(world, desktop):
    idle = json.loads(world.control("status", "--json").stdout)
    assert (idle["state"], idle["broadcasting"], idle["size"], idle["started-at"]) == ("idle", False, None, None)
    share(desktop, title='odd "title" \\ größe')
    active = json.loads(world.control("status", "--json").stdout)
    assert list(active) == list(idle)
    assert active["state"] == "active" and active["size"] == [1280, 720] and active["title"] == desktop.get("Title")
    assert active["sources"][0]["type"] == "monitor"
    assert active["started-at"] == desktop.get("StartedAt")


def test_status_says_that_another_track_is_shared(world, ctl, desktop):
    """What a panel shows by it is true whichever track is shared."""
    words, lines = ctl("status", "--follow"), ctl("status", "--follow", "--json")
    words.wait_for("idle")
    lines.wait_for('"sharing":false')
    track = world.agent().create_track()
    track.start_capture()
    track.start_broadcast(wait=True)
    words.wait_for("idle, shared on another track")
    lines.wait_for('"sharing":true')
    for told in (json.loads(world.control("status", "--json").stdout), json.loads(lines.out.splitlines()[-1])):
        assert (told["state"], told["broadcasting"], told["sharing"]) == ("idle", False, True)
    # What is told of an end of this track is no word of others, before it is known that they still share.
    share(desktop)
    words.wait_for("active")
    desktop.stop_capture()
    wait_until(lambda: words.out.splitlines()[-1] == "idle, shared on another track", "the other track's share")
    late = ctl("status", "--follow", "--json")
    late.wait_for('"sharing":true')
    track.destroy()
    wait_until(lambda: json.loads(late.out.splitlines()[-1])["sharing"] is False, "the end of it")
    for one in (words, lines, late):
        one.send(signal.SIGINT)
        assert one.end() == DONE


def test_status_names_no_other_track_when_there_is_none(world, ctl, desktop):
    words = ctl("status", "--follow")
    words.wait_for("idle")
    for _ in range(5):
        share(desktop)
        desktop.stop_capture()
    wait_until(lambda: words.out.count("finished: ") == 5 and words.out.splitlines()[-1] == "idle", "the last end")
    assert "another" not in words.out


def test_status_follows_the_transitions_in_order(world, ctl, screen, desktop):
    program = ctl("status", "--follow", "--json")
    program.wait_for('"state":"idle"')
    share(desktop)
    world.control("mute")
    world.control("mute", "off")
    screen.end_session()
    program.wait_for("ended-by-desktop")
    screen.configure(answer="cancel")
    world.control("share", check=False)
    program.wait_for("start-failed")
    world.control("stop")
    wait_until(lambda: json.loads(program.out.splitlines()[-1])["state"] == "idle", "the last line being idle")
    program.send(signal.SIGINT)
    assert program.end() == DONE
    lines = [json.loads(line) for line in program.out.splitlines()]
    seen = [(line["state"], line["muted"], line["event"], line["reason"]) for line in lines]
    assert [entry for index, entry in enumerate(seen) if index == 0 or entry != seen[index - 1]] == [
        ("idle", False, "state", None),
        ("listening", False, "state", None),
        ("choosing", False, "state", None),
        ("active", False, "state", None),
        ("active", False, "started", None),
        ("active", True, "state", None),
        ("active", False, "state", None),
        ("listening", False, "state", None),
        ("listening", False, "finished", "ended-by-desktop"),
        ("choosing", False, "state", None),
        ("listening", False, "state", None),
        ("listening", False, "start-failed", ERROR + "Cancelled"),
        ("idle", False, "state", None),
    ]


def test_status_follows_in_words(ctl, desktop):
    program = ctl("status", "--follow")
    program.wait_for("idle\n")
    share(desktop)
    desktop.agent.set_screen_share(False)
    wait_until(lambda: "finished: The share has ended" in program.out and program.out.endswith("idle\n"), "the last line being idle")
    program.send(signal.SIGTERM)
    assert program.end() == DONE
    words = [re.split("[,:]", line)[0] for line in program.out.splitlines()]
    assert [word for index, word in enumerate(words) if index == 0 or word != words[index - 1]] == [
        "idle", "listening", "choosing", "active", "listening", "finished", "idle"]


def test_status_follows_an_agent_that_comes_and_goes(make_session):
    world = make_session(agent="absent", portal="absent", screen=False, pipewire=False)
    program = Program(world, "status", "--follow", "--json")
    try:
        program.wait_for('"agent":false')
        world.start_agent()
        program.wait_for('"agent":true')
        world.end_agent()
        wait_until(lambda: len(program.out.splitlines()) == 3, "a third line")
        program.send(signal.SIGINT)
        assert program.end() == DONE
        assert [json.loads(line)["agent"] for line in program.out.splitlines()] == [False, True, False]
    finally:
        program.close()


def test_a_reader_that_leaves_ends_it_quietly(world, ctl):
    environment = world.environment
    done = subprocess.run(["sh", "-c", f"{program('vitrinectl')} status --follow | head -n 1"], env=environment, capture_output=True,
                          text=True, timeout=30)
    assert done.stdout == "idle\n" and done.stderr == ""


def test_output_that_cannot_be_written_is_a_failure(world):
    with open("/dev/full", "w") as full:
        done = subprocess.run([str(program("vitrinectl")), "status"], env=world.environment, stdout=full, stderr=subprocess.PIPE, text=True)
    assert done.returncode == FAILED and "No space left on device" in done.stderr


@pytest.mark.parametrize("closed", ["0<&-", "1>&-", "2>&-", "0<&- 1>&- 2>&-"])
def test_closed_standard_descriptors_are_survived(world, closed):
    done = subprocess.run(["sh", "-c", f"exec {program('vitrinectl')} status {closed}"], env=world.environment, capture_output=True, timeout=30)
    assert done.returncode == DONE and done.stderr == b""


def test_list_names_owners_titles_and_readers(world, desktop):
    owner = world.agent()
    track = owner.create_track(title="Slides \u202e")
    subscription = track.subscribe()
    try:
        lines = world.control("list").stdout.splitlines()
        assert re.fullmatch(r"desktop +idle +0 +- +- +/org/vitrine/ScreenShare1/track/desktop", lines[1])
        row = next(line for line in lines if line.endswith(track.path))
        assert "Slides \\u{202e}" in row and track.get("OwnerIdentity") in row
        objects = {entry["track"]: entry for entry in map(json.loads, world.control("list", "--json").stdout.splitlines())}
        assert objects[track.path]["readers"] == 1
        assert objects[track.path]["title"] == track.get("Title")
        assert objects[track.path]["pid"] == os.getpid()
        number = track.path.rpartition("/")[2]
        assert json.loads(world.control("status", "--json", "--track", number).stdout)["track"] == track.path
    finally:
        subscription.close()
        track.destroy()


def test_a_track_that_is_not_there_is_a_failure(world, tmp_path):
    done = world.control("status", "--track", "4711", check=False)
    assert done.returncode == FAILED
    assert done.stderr == "vitrinectl: there is no track 4711: 'vitrinectl list' shows those that are there\n"
    # As one types it who knows ffmpeg.
    done = world.control("record", tmp_path / "x.webm", "-t", "7", check=False)
    assert done.returncode == FAILED and "there is no track 7:" in done.stderr


def test_stats_count(world, desktop, tmp_path):
    share(desktop)
    subscription = desktop.subscribe()
    recording = subscription.record(tmp_path / "x.webm")
    recording.wait_for_bytes(1000)
    counters = json.loads(world.control("stats", "--json").stdout)
    assert counters["state"] == "active" and counters["counters"]["received"] >= counters["counters"]["delivered"] > 0
    (reader,) = counters["readers"]
    assert reader["format"] == "webm" and reader["size"] == [1280, 720] and reader["counters"]["sent"] > 0
    words = world.control("stats").stdout
    assert re.search(r"^received +\d+  frames$", words, re.M) and re.search(r"^\d+ +webm vp8 +1280x720", words, re.M)
    units = {line.split()[0]: line.split()[2] for line in words.split("READER")[0].splitlines()[1:]}
    assert set(units) == set(counters["counters"])
    assert {name: unit for name, unit in units.items() if unit != "frames"} == {
        "footprint": "bytes", "pool-capacity": "slots", "last-frame-age-us": "µs", "latency-p50-us": "µs", "latency-p99-us": "µs"}
    names, row = ([word.lower() for word in line.split()] for line in words.split("\nREADER")[1].splitlines()[:2])
    columns = dict(zip(names[2:-1], row[1:]))
    assert set(columns) == set(reader["counters"])
    assert columns["bytes"] == columns["queued-bytes"] == "bytes" and columns["sent"] == columns["keyframes"] == "frames"
    recording.stop()


def test_stats_follow_in_words(ctl, desktop):
    share(desktop)
    program = ctl("stats", "--follow")
    wait_until(lambda: len(re.findall("^desktop: active$", program.out, re.M)) >= 2, "two blocks")
    program.send(signal.SIGINT)
    assert program.end() == DONE
    first, second = (int(number) for number in re.findall(r"^received +(\d+) ", program.out, re.M)[:2])
    assert second > first


def test_stats_follow(ctl, desktop):
    program = ctl("stats", "--follow", "--json")
    wait_until(lambda: len(program.out.splitlines()) >= 2, "two lines")
    program.send(signal.SIGINT)
    assert program.end() == DONE
    assert all(json.loads(line)["state"] == "idle" for line in program.out.splitlines())


def test_stats_say_what_the_memory_is_used_for(world, desktop, tmp_path):
    """The parts are the whole, the pool's is its footprint, and the encoder's comes with a reader and goes with the last."""
    process = world.client.process_id(SERVICE)

    def memory():
        report = json.loads(world.control("stats", "--memory", "--json").stdout)
        assert report["pid"] == process and sum(report["parts"].values()) == report["resident"]
        return report["parts"]

    assert list(idle := memory()) == ["pool", "encoders", "frames", "libraries", "rest", "buffers"]
    assert idle["pool"] == idle["encoders"] == idle["frames"] == 0 and idle["libraries"] > 1 << 20
    share(desktop)

    def shared():
        """What there is once pictures come to no other slots: pages at the end of one stay empty where the picture does not need them."""
        parts, footprint = memory(), desktop.statistics["footprint"]
        return parts if 0.9 * footprint < parts["pool"] <= footprint else None

    parts = wait_until(shared, "a pool that is as large as its footprint")
    assert parts["encoders"] == 0 and parts["buffers"] >= 1280 * 720 * 4
    recording = desktop.subscribe().record(tmp_path / "x.webm")
    recording.wait_for_bytes(1000)
    wait_until(lambda: memory()["encoders"] > 20 << 20, "the encoder's memory")
    resident = sum(int(line.split()[1]) << 10 for line in open(f"/proc/{process}/smaps", encoding="utf-8") if line.startswith("Rss:"))
    assert abs(sum(memory().values()) - resident) < 0.1 * resident
    recording.stop()
    wait_until(lambda: memory()["encoders"] == 0, "an end of the encoder's memory")
    words = world.control("stats", "--memory").stdout
    assert re.search(r"^PART +RESIDENT\npool +\d+\.\d MB  frames", words) and re.search(rf"^all +\d+\.\d MB  of process {process}$", words, re.M)


# What is not there


def test_without_a_bus_everything_is_unavailable(world, tmp_path):
    environment = {**world.environment, "DBUS_SESSION_BUS_ADDRESS": f"unix:path={tmp_path}/none"}
    for verb in (["share"], ["stop"], ["toggle"], ["mute"], ["status"], ["record", str(tmp_path / "x")], ["list"], ["stats"], ["doctor"]):
        done = subprocess.run([str(program("vitrinectl")), *verb], env=environment, capture_output=True, text=True, timeout=30)
        assert done.returncode == UNAVAILABLE, verb
        assert "there is no session bus" in done.stdout + done.stderr
    assert not (tmp_path / "x").exists()


def test_doctor_says_what_to_do_without_a_bus(world, tmp_path):
    """The remedy is said once, and is of use: where the user's bus is, or who has one."""
    environment = {**world.environment, "DBUS_SESSION_BUS_ADDRESS": f"unix:path={tmp_path}/none"}
    done = subprocess.run([str(program("vitrinectl")), "doctor", "--json"], env=environment, capture_output=True, text=True, timeout=30)
    found = json.loads(done.stdout.splitlines()[0])
    assert (found["check"], found["result"]) == ("session bus", "missing") and found["text"].startswith("there is no session bus: ")
    folder = f"/run/user/{os.getuid()}"
    wanted = f"export XDG_RUNTIME_DIR={folder}" if os.path.exists(f"{folder}/bus") else "the user of the desktop" if os.getuid() == 0 else "log in"
    assert wanted in found["remedy"] and found["text"].count("desktop session") == 0


def test_an_agent_that_cannot_be_started(make_session, tmp_path):
    world = make_session(agent="absent", portal="absent", screen=False, pipewire=False)
    for verb in (["share"], ["toggle"], ["mute"], ["record", tmp_path / "x"]):
        done = world.control(*verb, check=False)
        assert done.returncode == UNAVAILABLE, verb
        assert "the agent is not running, and the bus cannot start it" in done.stderr
    assert world.control("status").stdout == "idle: nothing is shared, and the agent does not run\n"
    assert json.loads(world.control("status", "--json").stdout)["agent"] is False
    assert world.control("list").stdout == "No tracks: the agent does not run.\n"
    assert world.control("stats").stdout == "No counters: the agent does not run.\n"
    assert world.control("stats", "--memory").stdout == "No memory: the agent does not run.\n"
    assert world.control("stop").stdout == "Nothing is shared: the agent does not run.\n"


def test_looking_starts_no_agent_and_sharing_does(make_session):
    world = make_session(agent="activated")
    for verb in ("status", "list", "stats", "stop", "doctor"):
        world.control(verb)
        assert world.client.owner(SERVICE) is None, verb
    assert world.control("share", "--detach").returncode == DONE
    assert world.client.owner(SERVICE)
    assert re.match("State +active", world.control("status").stdout)


def test_a_share_without_a_portal_is_unavailable(make_session):
    world = make_session(portal="absent", screen=False, pipewire=False)
    done = world.control("share", check=False)
    assert done.returncode == UNAVAILABLE and done.stderr.startswith("vitrinectl: ")


# doctor


SILENT_PORTAL = """
import dbus, dbus.mainloop.glib, dbus.service
from gi.repository import GLib
dbus.mainloop.glib.DBusGMainLoop(set_as_default=True)
class NoReply(dbus.DBusException):
    _dbus_error_name = "org.freedesktop.DBus.Error.NoReply"
class Portal(dbus.service.Object):
    @dbus.service.method("org.freedesktop.DBus.Properties", in_signature="s", out_signature="a{sv}")
    def GetAll(self, interface):
        raise NoReply("nothing came")
bus = dbus.SessionBus()
portal = Portal(bus, "/org/freedesktop/portal/desktop")
name = dbus.service.BusName("org.freedesktop.portal.Desktop", bus)
GLib.MainLoop().run()
"""


def findings(world, *, code):
    done = world.control("doctor", "--json", check=False)
    assert done.returncode == code, done.stdout + done.stderr
    return {entry["check"]: entry for entry in map(json.loads, done.stdout.splitlines())}


def test_doctor_finds_everything(world, screen):
    found = findings(world, code=DONE)
    assert {check for check, entry in found.items() if entry["result"] == "ok"} >= {
        "session bus", "agent", "portal", "screen sharing", "sources", "cursor", "PipeWire", "PipeWire session manager"}
    assert found["sources"]["text"] == "monitors, windows, virtual monitors"
    words = world.control("doctor").stdout
    assert re.search(r"^ok       portal: ", words, re.M)


def test_doctor_shows_wrong_lines_of_the_configuration(make_session):
    """As the agent reads them, whether it runs or not; they are no reason that sharing would not work."""
    world = make_session(portal="activated", agent="activated")
    assert findings(world, code=DONE)["vitrine.conf"]["result"] == "ok"
    folder = world.root / "config" / "vitrine"
    folder.mkdir()
    (folder / "vitrine.conf").write_text("fps = 7\npreset = h720p # small\n\ncolour = blue\n")
    done = world.control("doctor", "--json")
    found = [one for one in map(json.loads, done.stdout.splitlines()) if one["check"] == "vitrine.conf"]
    assert [one["result"] for one in found] == ["note", "note"] and all("man vitrine.conf" in one["remedy"] for one in found)
    for one, number, word in zip(found, (2, 4), ("h720p # small", "colour")):
        assert one["text"].startswith(f"{folder}/vitrine.conf:{number}: ") and word in one["text"]


def test_a_reader_who_has_seen_enough_is_no_fault(world, screen):
    for _ in range(5):
        done = world.run(["bash", "-c", f"{program('vitrinectl')} doctor | head -n 1"])
        assert done.stdout.startswith("ok       session bus: ") and done.stderr == ""


def test_doctor_starts_the_portal_and_says_so(make_session):
    world = make_session(portal="activated", agent="activated")
    found = findings(world, code=DONE)
    assert found["portal"]["text"].startswith("it was started for this look")
    assert found["agent"]["text"].startswith("it does not run; the bus starts it")


def test_doctor_misses_agent_portal_and_pipewire(make_session):
    world = make_session(agent="absent", portal="absent", screen=False, pipewire=False)
    found = findings(world, code=UNAVAILABLE)
    missing = {check for check, entry in found.items() if entry["result"] == "missing"}
    assert missing == {"agent", "portal", "PipeWire", "PipeWire session manager"}
    assert all(found[check]["remedy"] for check in missing)
    assert "-> " in world.control("doctor", check=False).stdout


def test_doctor_misses_the_backend(make_session):
    """Its file is there and it is for this desktop, but it does not run and nobody can start it."""
    world = make_session(screen=False)
    found = findings(world, code=UNAVAILABLE)
    assert {check for check, entry in found.items() if entry["result"] == "missing"} & {"screen sharing", "sources"}


@pytest.mark.parametrize("installed, desktop, cause, remedy", [
    ("", "GNOME", "no backend that shares screens is installed", "install xdg-desktop-portal-gnome"),
    ("[portal]\nDBusName=org.example.Other\nInterfaces=org.freedesktop.impl.portal.Access\nUseIn=KDE\n", "KDE",
     "no backend that shares screens is installed", "install xdg-desktop-portal-kde"),
], ids=["nothing is installed", "without ScreenCast"])
def test_doctor_tells_why_the_portal_shares_no_screens(make_session, installed, desktop, cause, remedy):
    world = make_session(portal="absent", screen=False)
    (world.root / "portals" / "vitrine.portal").write_text(installed)
    world.environment["XDG_CURRENT_DESKTOP"] = desktop
    world.start_portal()
    found = findings(world, code=UNAVAILABLE)["screen sharing"]
    assert found["result"] == "missing" and cause in found["text"] and remedy in found["remedy"]


def test_doctor_finds_a_wrong_name_of_the_desktop(make_session):
    """The portal takes the session for a desktop that no backend is for, or for another one than it is."""
    world = make_session(portal="absent", screen=False)
    (world.root / "config" / "xdg-desktop-portal" / "portals.conf").write_text("[preferred]\ndefault=none\n")
    (world.root / "portals" / "vitrine.portal").write_text("[portal]\nDBusName=org.example.Other\n"
                                                            "Interfaces=org.freedesktop.impl.portal.ScreenCast\nUseIn=plasma\n")
    world.environment.update(XDG_CURRENT_DESKTOP="Other", WAYLAND_DISPLAY="wayland-9")
    world.start_portal()
    found = findings(world, code=UNAVAILABLE)
    # Old portals take any backend there is, and then have no sources; new ones none.
    (missing,) = [found[check] for check in ("screen sharing", "sources") if found.get(check, {}).get("result") == "missing"]
    assert "no installed backend is for XDG_CURRENT_DESKTOP=Other, there are: vitrine (for plasma)" in missing["text"]
    assert "set XDG_CURRENT_DESKTOP" in missing["remedy"]
    world.environment["XDG_CURRENT_DESKTOP"] = "plasma"
    found = findings(world, code=UNAVAILABLE)["portal's environment"]
    assert found["result"] == "note" and found["text"].endswith("but this session is XDG_CURRENT_DESKTOP=plasma")
    assert "restart xdg-desktop-portal" in found["remedy"]


def test_doctor_finds_a_portal_from_before_the_display(make_session):
    """A portal that was started before the desktop had told its display and its name; restarted with both, it is well."""
    world = make_session(portal="absent")
    environment = dict(world.environment)
    del world.environment["XDG_CURRENT_DESKTOP"]
    world.start_portal()
    world.environment.update(environment, WAYLAND_DISPLAY="wayland-9")
    done = world.control("doctor", "--json", check=False)
    found = {entry["check"]: entry for entry in map(json.loads, done.stdout.splitlines())}["portal's environment"]
    assert found["result"] == "note" and "it lacks XDG_CURRENT_DESKTOP and WAYLAND_DISPLAY" in found["text"]
    assert "dbus-update-activation-environment --systemd XDG_CURRENT_DESKTOP WAYLAND_DISPLAY; systemctl" in found["remedy"]
    world.processes.end(world.portal)
    world.wait_for_no_name(PORTAL)
    world.start_portal()
    assert findings(world, code=DONE)["portal's environment"]["result"] == "ok"


def test_doctor_finds_a_portal_that_does_not_answer(make_session):
    """It has its name, but what it is asked for ends without a reply."""
    world = make_session(portal="absent", screen=False)
    world.wait_for_name(PORTAL, world.start("silent", [sys.executable, "-c", SILENT_PORTAL]))
    found = findings(world, code=UNAVAILABLE)["screen sharing"]
    assert found["result"] == "missing" and "does not answer" in found["text"] and "restart xdg-desktop-portal" in found["remedy"]


def test_doctor_misses_a_session_manager_alone(make_session):
    world = make_session()
    world.processes.end(world.wireplumber)
    found = findings(world, code=UNAVAILABLE)
    assert {check for check, entry in found.items() if entry["result"] == "missing"} == {"PipeWire session manager"}
    assert "wireplumber" in found["PipeWire session manager"]["remedy"]


def test_doctor_finds_an_agent_that_does_not_answer(world, screen):
    process = world.client.process_id(SERVICE)
    os.kill(process, signal.SIGSTOP)
    try:
        found = findings(world, code=UNAVAILABLE)["agent"]
    finally:
        os.kill(process, signal.SIGCONT)
    assert "does not answer" in found["text"] and "systemctl --user restart" in found["remedy"]


def test_doctor_misses_sources(make_session):
    world = make_session(screen_arguments=["--source-types=0"])
    assert findings(world, code=UNAVAILABLE)["sources"]["result"] == "missing"
