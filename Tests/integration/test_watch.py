# SPDX-License-Identifier: MIT
"""vitrinectl watch: which player it takes, what the player gets, and how they end."""

import os
import shutil
import signal
import subprocess

import pytest

import picture
from control import CANCELLED, DONE, FAILED, UNAVAILABLE, USAGE, Program, ctl, desktop, screen, share, world  # noqa: F401
from harness import SERVICE, SUBSCRIPTION, frames
from harness import program as binary
from processes import wait_until


def players(folder, **scripts):
    """A PATH with these programs alone, each a shell script; `_` is `-` in a name."""
    folder.mkdir()
    for name, text in scripts.items():
        path = folder / name.replace("_", "-").replace("1-0", "1.0")
        path.write_text(f"#!/bin/sh\n{text}\n")
        path.chmod(0o755)
    return {"PATH": str(folder)}


def test_the_player_gets_a_stream_through_mute_stop_and_start(world, ctl, screen, desktop, tmp_path):
    share(desktop)
    path = tmp_path / "x.webm"
    program = ctl("watch", "--player", f"cat > '{path}'")
    program.wait_for("Showing it in cat")
    wait_until(lambda: path.exists() and path.stat().st_size > 20_000, "20 kB")
    world.control("mute")
    world.control("mute", "off")
    screen.end_session()
    program.wait_for("The next share will be shown here.")
    before, muted = path.stat().st_size, desktop.statistics["delivered"]
    share(desktop)
    wait_until(lambda: path.stat().st_size > before + 20_000 and desktop.statistics["delivered"] > muted + 5, "the second share's pictures")
    program.send(signal.SIGINT)
    assert program.end() == DONE
    # Placeholders have no number; what has one comes in order.
    numbers = [reading.number for reading in picture.read_all(frames(path)) if reading]
    assert len(numbers) > 10 and len(numbers) < len(frames(path))
    wait_until(lambda: desktop.get("Subscriptions") == [], "no subscription left")


def test_gstreamer_plays_it(ctl, desktop):
    share(desktop)
    program = ctl("watch", "--codec", "vp9", "--player", "gst-launch-1.0 fdsrc ! matroskademux ! vp9dec ! fakesink silent=false -v")
    wait_until(lambda: program.err.count("last-message = chain") >= 5, "five pictures")
    program.send(signal.SIGINT)
    assert program.end() == DONE and program.out == ""


def test_ffplay_shows_the_one_picture_of_a_still_screen(ctl, screen, desktop, tmp_path):
    screen.configure(manual=True)
    share(desktop)
    real = shutil.which("ffplay")
    path = players(tmp_path / "bin", ffplay=f'exec {real} "$@" -loglevel info -vf showinfo')
    program = ctl("watch", SDL_VIDEODRIVER="dummy", SDL_AUDIODRIVER="dummy", **path)
    program.wait_for("pts_time:0 ")
    program.send(signal.SIGINT)
    assert program.end() == DONE


@pytest.mark.parametrize("there, taken", [
    ("mpv ffplay gst-launch-1.0 gst-play-1.0", "mpv"), ("ffplay gst-launch-1.0", "ffplay"), ("gst-play-1.0 gst-launch-1.0", "gst-launch-1.0"),
    ("gst-play-1.0", "gst-play-1.0")])
def test_the_best_player_that_is_there_is_taken(ctl, desktop, tmp_path, there, taken):
    share(desktop)
    said = tmp_path / "said"
    script = f'/usr/bin/printf "%s\\n" "$0" "$@" > {said}; exec /usr/bin/head -c 4 > {tmp_path}/begin'
    path = players(tmp_path / "bin", **{name.replace("-", "_").replace(".", "_"): script for name in there.split()})
    # A folder and a file that cannot be run are no players.
    (tmp_path / "other" / "mpv").mkdir(parents=True)
    (tmp_path / "other" / "ffplay").write_text("")
    program = ctl("watch", PATH=f"{tmp_path}/other:{path['PATH']}")
    assert program.end() == DONE and f"Showing it in {taken}." in program.err
    words = said.read_text().splitlines()
    assert words[0].endswith(f"/{taken}") and len(words) > 2
    assert (tmp_path / "begin").read_bytes() == b"\x1a\x45\xdf\xa3"


def test_gst_launch_takes_the_words_that_it_is_given(ctl, desktop, tmp_path):
    share(desktop)
    # No display here: all but the sink is what a person gets.
    real = shutil.which("gst-launch-1.0")
    script = f'for word do shift; [ "$word" = autovideosink ] && word="fakesink silent=false -v"; set -- "$@" $word; done; exec {real} "$@"'
    program = ctl("watch", **players(tmp_path / "bin", gst_launch_1_0=script.replace("shift; ", "shift; [ $word = -q ] && continue; ")))
    wait_until(lambda: program.err.count("last-message = chain") >= 5, "five pictures")
    program.send(signal.SIGINT)
    assert program.end() == DONE


def test_without_a_player_it_says_what_to_install(ctl, desktop, tmp_path):
    program = ctl("watch", **players(tmp_path / "bin"))
    assert program.end() == UNAVAILABLE
    for word in ("mpv", "ffplay", "gst-launch-1.0", "--player", "vitrinectl watch - |"):
        assert word in program.err
    assert desktop.get("Subscriptions") == []


@pytest.mark.parametrize("command, code, words", [
    ("head -c 100 > /dev/null", DONE, ""), ("exit 3", FAILED, "the player ended with exit code 3: exit 3"),
    ("kill -TERM $$", FAILED, "the player was ended by signal 15"), ("/nonesuch -", UNAVAILABLE, "the player cannot be run: /nonesuch -"),
    ("'it''s' -", UNAVAILABLE, "the player cannot be run: 'it''s' -")])
def test_the_end_of_the_player_is_the_end(ctl, desktop, command, code, words):
    share(desktop)
    program = ctl("watch", "--player", command)
    assert program.end() == code and words in program.err
    wait_until(lambda: desktop.get("Subscriptions") == [], "no subscription left")


def test_a_player_that_does_not_end_is_ended(ctl, desktop, tmp_path):
    share(desktop)
    path = tmp_path / "pid"
    program = ctl("watch", "--player", f"trap '' TERM INT; echo $$ > {path}; exec sleep 1000")
    wait_until(lambda: path.exists() and path.read_text().strip(), "the player's number")
    program.send(signal.SIGTERM)
    assert program.end() == DONE
    assert not os.path.exists(f"/proc/{path.read_text().strip()}")


def test_watch_waits_for_a_share(ctl, desktop):
    program = ctl("watch", "--player", "head -c 100 >/dev/null")
    program.wait_for("Waiting: nothing is shared yet (idle)")
    share(desktop)
    assert program.end() == DONE


def test_ctrl_c_while_waiting_is_exit_code_3(ctl, screen):
    program = ctl("watch", "--player", "cat >/dev/null")
    program.wait_for("Waiting: ")
    program.send(signal.SIGINT)
    assert program.end() == CANCELLED and "nothing was shown" in program.err


@pytest.mark.parametrize("kind, warns", [(1, True), (2, False)])
def test_a_shared_monitor_is_warned_of(ctl, screen, desktop, kind, warns):
    screen.configure(source_type=kind)
    share(desktop)
    program = ctl("watch", "--player", "head -c 100 >/dev/null")
    assert program.end() == DONE
    assert ("A monitor is shared: a player on it shows itself" in program.err) == warns


def test_the_end_of_the_subscription_is_the_end(world, ctl, desktop):
    share(desktop)
    program = ctl("watch", "--player", "cat > /dev/null")
    program.wait_for("Showing it in")
    (subscription,) = desktop.get("Subscriptions")
    world.client.call(SERVICE, subscription, SUBSCRIPTION, "Unsubscribe")
    assert program.end() == DONE and "The stream was ended." in program.err


def test_an_agent_that_is_killed_ends_it(make_session):
    world = make_session()
    world.control("share", "--detach")
    program = Program(world, "watch", "--player", "cat > /dev/null")
    try:
        program.wait_for("Showing it in")
        world.end_agent(signal.SIGKILL)
        assert program.end() == UNAVAILABLE and "The agent has gone away." in program.err
    finally:
        program.close()


def test_watch_writes_to_standard_output(ctl, world, desktop, tmp_path):
    share(desktop)
    program = ctl("watch", "-", "--max-size", "320x180")
    wait_until(lambda: len(program.raw) > 20_000, "20 kB")
    program.send(signal.SIGINT)
    assert program.end() == DONE
    assert "A monitor is shared" in program.err
    done = subprocess.run(["ffmpeg", "-v", "error", "-i", "-", "-f", "null", "-"], input=program.raw, capture_output=True, timeout=60)
    assert done.returncode == 0
    enough = subprocess.run(["sh", "-c", f"{binary('vitrinectl')} watch - 2>/dev/null | head -c 2000 | wc -c"], env=world.environment,
                            capture_output=True, text=True, timeout=30)
    assert enough.stdout.strip() == "2000"
    wait_until(lambda: desktop.get("Subscriptions") == [], "no subscription left")


@pytest.mark.parametrize("arguments, words", [
    (("x.webm",), "only - can be named"), (("-", "--player", "x"), "exclude each other"), (("--codec", "h264"), "one of vp8, vp9")])
def test_wrong_words_are_refused(world, arguments, words):
    done = world.control("watch", *arguments, check=False)
    assert done.returncode == USAGE and words in done.stderr
