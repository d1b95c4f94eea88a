# SPDX-License-Identifier: MIT
"""vitrinectl record: files that can be played and sought in, however the recording ended."""

import resource
import signal
import subprocess

import pytest

import matroska
from control import CANCELLED, DONE, FAILED, TIMED_OUT, UNAVAILABLE, USAGE, Program, ctl, desktop, length, rising, screen, share, world  # noqa: F401
from harness import SERVICE, SUBSCRIPTION, probe, program
from processes import wait_until
from seekable import ffmpeg_seek, gstreamer_seek, read_finished


def test_record_for_some_seconds(world, desktop, tmp_path):
    share(desktop)
    path = tmp_path / "x.webm"
    done = world.control("record", path, "--seconds", 2)
    assert done.stdout == "" and f"Recording to {path}" in done.stderr and f"to {path}." in done.stderr
    rising(path)
    assert 1.5 < length(path) < 4
    assert probe(path)["streams"][0]["codec_name"] == "vp8"
    wait_until(lambda: desktop.get("Subscriptions") == [], "no subscription left")


def test_record_until_ctrl_c_writes_the_last_picture(world, ctl, screen, desktop, tmp_path):
    screen.configure(manual=True)
    share(desktop)
    path = tmp_path / "x.webm"
    program = ctl("record", path)
    program.wait_for("Recording to")
    before = desktop.statistics["received"]
    last = screen.push_frames(3)
    wait_until(lambda: desktop.statistics["received"] >= before + 3, "the pictures having been received")
    program.send(signal.SIGINT)
    assert program.end() == DONE
    assert rising(path)[-1] == last


def test_record_of_a_still_screen_is_as_long_as_it_was(world, screen, desktop, tmp_path):
    screen.configure(manual=True)
    share(desktop)
    path = tmp_path / "x.webm"
    world.control("record", path, "--seconds", 2)
    assert 1.5 < length(path) < 4


def test_record_waits_for_a_share(world, ctl, desktop, tmp_path):
    path = tmp_path / "x.webm"
    program = ctl("record", path, "--seconds", 1)
    program.wait_for("Waiting: nothing is shared yet (idle)")
    share(desktop)
    assert program.end() == DONE
    rising(path)


def test_record_ends_with_the_share(world, ctl, screen, desktop, tmp_path):
    share(desktop)
    path = tmp_path / "x.webm"
    program = ctl("record", path)
    program.wait_for("Recording to")
    screen.end_session()
    assert program.end() == DONE
    assert "(ended-by-desktop)" in program.err
    rising(path)


def test_record_to_standard_output(world, ctl, desktop, tmp_path):
    share(desktop)
    program = ctl("record", "-", "--seconds", 1)
    assert program.end() == DONE
    path = tmp_path / "x.webm"
    path.write_bytes(program.raw)
    rising(path)


def test_record_survives_a_reader_that_has_seen_enough(world, desktop):
    share(desktop)
    done = subprocess.run(["sh", "-c", f"{program('vitrinectl')} record - | head -c 2000 | wc -c"], env=world.environment, capture_output=True,
                          text=True, timeout=30)
    assert done.stdout.strip() == "2000"
    wait_until(lambda: desktop.get("Subscriptions") == [], "no subscription left")


def test_record_y4m_by_its_name(world, desktop, tmp_path):
    share(desktop)
    path = tmp_path / "x.y4m"
    world.control("record", path, "--seconds", 1, "--max-size", "640x360")
    stream = probe(path)["streams"][0]
    assert (stream["codec_name"], stream["width"], stream["height"]) == ("rawvideo", 640, 360)
    rising(path)


@pytest.mark.parametrize("size", [1, 20_000, 80_000])
def test_a_killed_recording_can_be_played(world, ctl, desktop, tmp_path, size):
    share(desktop)
    path = tmp_path / "x.webm"
    program = ctl("record", path)
    program.wait_for("Recording to")
    wait_until(lambda: path.exists() and path.stat().st_size >= size, f"{size} bytes")
    program.send(signal.SIGKILL)
    program.end()
    # All that is whole is decoded without a complaint: only the end may be cut off.
    done = subprocess.run(["ffmpeg", "-v", "error", "-i", str(path), "-fps_mode", "passthrough", "-f", "framemd5", "-"], stdin=subprocess.DEVNULL,
                          capture_output=True, text=True, timeout=60)
    pictures = [line for line in done.stdout.splitlines() if not line.startswith("#")]
    assert done.returncode == 0 and len(pictures) == len(probe(path)["packets"]) > 0
    assert done.stderr == ""


def test_record_gives_up_when_told_to(world, screen, tmp_path):
    path = tmp_path / "x.webm"
    done = world.control("record", path, "--wait-seconds", "0.5", check=False)
    assert done.returncode == TIMED_OUT and not path.exists()


def test_ctrl_c_while_waiting_leaves_no_file(ctl, screen, tmp_path):
    path = tmp_path / "x.webm"
    program = ctl("record", path)
    program.wait_for("Waiting: ")
    program.send(signal.SIGINT)
    assert program.end() == CANCELLED and not path.exists()


def test_an_old_recording_stays_until_the_first_picture(ctl, world, desktop, tmp_path):
    path = tmp_path / "x.webm"
    path.write_text("precious" * 100_000)
    program = ctl("record", path)
    program.wait_for("Waiting: ")
    program.send(signal.SIGINT)
    program.end()
    assert path.read_text() == "precious" * 100_000
    done = world.control("record", path, "--no-clobber", check=False)
    assert done.returncode == FAILED and "exists" in done.stderr
    share(desktop)
    world.control("record", path, "--seconds", "0.5")
    rising(path)


@pytest.mark.parametrize("path, words", [
    ("/nowhere/x.webm", "No such file or directory"), ("/tmp", "Is a directory"), ("/dev/full", "No space left on device")])
def test_a_file_that_cannot_be_written_is_named(world, desktop, path, words):
    share(desktop)
    done = world.control("record", path, "--seconds", "5", check=False)
    assert done.returncode == FAILED and f"cannot write {path}: {words}" in done.stderr
    wait_until(lambda: desktop.get("Subscriptions") == [], "no subscription left")


def test_record_of_a_track_of_somebody_else_is_refused(world, screen, tmp_path):
    track = world.agent().create_track()
    done = world.control("record", tmp_path / "x.webm", "--track", track.path.rpartition("/")[2], check=False)
    # Both are programs of this machine, but not the same one.
    assert done.returncode == FAILED and done.stderr.startswith("vitrinectl: ") and not (tmp_path / "x.webm").exists()
    track.destroy()


# Seekable files


def judge(path):
    """What a finished file says of itself; ffprobe and libwebm must agree with it."""
    finished = read_finished(path)
    assert finished.duration >= finished.times[-1] and finished.times[0] == 0
    assert finished.cues == finished.keys
    assert abs(float(probe(path)["format"]["duration"]) * 1000 - finished.duration) < 1
    parsed = subprocess.run(["webm_info", "-all", "-i", str(path)], capture_output=True, text=True, timeout=30)
    assert parsed.returncode == 0 and parsed.stderr == "", parsed.stdout + parsed.stderr
    return finished


def test_a_recording_can_be_sought_in(world, ctl, screen, desktop, tmp_path):
    share(desktop)
    path = tmp_path / "x.webm"
    # A reader of the same encoding: the key frames that it asks for are in the recording too.
    other = desktop.subscribe()
    recording = other.record(tmp_path / "other.webm")
    program = ctl("record", path)
    program.wait_for("Recording to")
    for _ in range(4):
        before = desktop.statistics["delivered"]
        wait_until(lambda: desktop.statistics["delivered"] >= before + 20, "20 more pictures")
        other.call("RequestKeyFrame")
    wait_until(lambda: desktop.statistics["delivered"] >= before + 60, "more pictures behind the last key frame")
    program.send(signal.SIGINT)
    assert program.end() == DONE
    recording.stop()
    finished = judge(path)
    assert len(finished.keys) >= 5
    numbers = rising(path)
    assert len(numbers) == len(finished.times)
    for part in (0.1, 0.35, 0.6, 0.85, 0.97):
        index = round(part * (len(numbers) - 1))
        seconds = finished.times[index] / 1000
        assert ffmpeg_seek(path, seconds) == numbers[index], (part, seconds)
        # GStreamer takes a picture without a length for one of 40 ms: the one before may still be there.
        shown = next(at for at, time in enumerate(finished.times) if time + 41 > finished.times[index])
        assert gstreamer_seek(path, seconds) in numbers[shown:index + 1], (part, seconds)


@pytest.mark.parametrize("end", ["SIGINT", "SIGTERM", "SIGHUP", "--seconds", "the share's", "the subscription's"])
def test_every_end_leaves_a_seekable_file(world, ctl, screen, desktop, tmp_path, end):
    share(desktop)
    path = tmp_path / "x.mkv"
    program = ctl("record", path, *(["--seconds", "1"] if end == "--seconds" else []))
    program.wait_for("Recording to")
    if end.startswith("SIG"):
        program.send(signal.Signals[end])
    elif end == "the share's":
        screen.end_session()
    elif end == "the subscription's":
        (subscription,) = desktop.get("Subscriptions")
        world.client.call(SERVICE, subscription, SUBSCRIPTION, "Unsubscribe")
    assert program.end() == DONE
    assert len(judge(path).times) == len(rising(path))


def test_an_agent_that_is_killed_leaves_a_seekable_file(make_session, tmp_path):
    world = make_session()
    world.control("share", "--detach")
    path = tmp_path / "x.webm"
    program = Program(world, "record", path)
    try:
        program.wait_for("Recording to")
        wait_until(lambda: path.stat().st_size > 50_000, "50 kB")
        world.end_agent(signal.SIGKILL)
        assert program.end() == UNAVAILABLE and "The agent has gone away; the recording ends there." in program.err
    finally:
        program.close()
    # What came of a picture that was not whole is left out.
    assert len(judge(path).times) == len(rising(path))


def test_a_recording_of_a_still_screen_says_its_length(world, ctl, screen, desktop, tmp_path):
    screen.configure(manual=True)
    share(desktop)
    path = tmp_path / "x.webm"
    world.control("record", path, "--seconds", 2)
    finished = judge(path)
    assert 1500 < finished.duration < 4000 and len(finished.keys) == 1


def test_key_frames_are_asked_for_while_pictures_change(world, ctl, desktop, tmp_path):
    share(desktop)
    path = tmp_path / "x.webm"
    world.control("record", path, "--seconds", "11", "--max-size", "320x180")
    first, second = judge(path).keys
    assert first == 0 and second >= 10_000


def test_a_full_disk_leaves_a_file_that_can_be_played(world, screen, desktop, tmp_path):
    share(desktop)
    path = tmp_path / "x.webm"
    # For the process it is the same as a full disk: a write that takes a part, then one that takes nothing.
    done = subprocess.run([str(program("vitrinectl")), "record", str(path)], env=world.environment, stdin=subprocess.DEVNULL,
                          capture_output=True, text=True, timeout=60,
                          preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000)))
    assert done.returncode == FAILED
    assert f"cannot write {path}: File too large. What was written can be played" in done.stderr
    assert path.stat().st_size <= 100_000
    rising(path)
    times = [float(packet["pts_time"]) for packet in probe(path)["packets"]]
    assert abs(float(probe(path)["format"]["duration"]) - times[-1] - 0.033) < 0.01


def test_a_file_that_a_program_appends_to_gets_the_live_stream(world, desktop, tmp_path):
    share(desktop)
    path = tmp_path / "x"
    path.write_bytes(b"before")
    with open(path, "ab") as file:
        subprocess.run([str(program("vitrinectl")), "record", "-", "--seconds", "1"], env=world.environment, stdin=subprocess.DEVNULL,
                       stdout=file, stderr=subprocess.PIPE, timeout=60, check=True)
    data = path.read_bytes()
    assert data.startswith(b"before\x1a\x45\xdf\xa3")
    path.write_bytes(data[6:])
    # No length, no index: what the agent sent.
    assert matroska.read(path).blocks and "duration" not in probe(path)["format"]


@pytest.mark.parametrize("name, code", [("m.mp4", USAGE), ("m.", USAGE), ("m.webm.part", USAGE), ("m", DONE), (".m", DONE), ("m.WebM", DONE)])
def test_a_name_that_says_no_format_is_refused(world, desktop, tmp_path, name, code):
    share(desktop)
    path = tmp_path / name
    done = world.control("record", path, "--seconds", "0.3", check=False)
    assert done.returncode == code, done.stderr
    if code == DONE:
        judge(path)
        return
    assert "names no format" in done.stderr and "--format" in done.stderr and "ffmpeg -i" in done.stderr and not path.exists()
    assert world.control("record", path, "--seconds", "0.3", "--format", "webm").returncode == DONE
    judge(path)


@pytest.mark.parametrize("name, codec", [("x.webm", "vp9"), ("x.ivf", "vp8"), ("x.ivf", "vp9"), ("x.mkv", "vp8")])
def test_format_and_codec_are_what_was_asked_for(world, desktop, tmp_path, name, codec):
    share(desktop)
    path = tmp_path / name
    world.control("record", path, "--seconds", "1", "--codec", codec)
    assert probe(path)["streams"][0]["codec_name"] == codec
    assert path.read_bytes()[:4] == (b"DKIF" if name.endswith("ivf") else b"\x1a\x45\xdf\xa3")
    rising(path)
    if not name.endswith("ivf"):
        judge(path)


def test_raw_pictures_have_no_codec(world, tmp_path):
    done = world.control("record", tmp_path / "x.y4m", "--codec", "vp9", check=False)
    assert done.returncode == USAGE and "--codec makes no sense" in done.stderr
