# SPDX-License-Identifier: MIT
"""`make run` on a machine without a desktop."""

import os
import subprocess

import pytest

import picture
from harness import BIN, TOP, frames, probe


@pytest.mark.parametrize("tool, wrong", [("as-user", "usage: as-user"), ("in-test-session", "in-test-session COMMAND")])
def test_the_tools_say_what_they_lack(tmp_path, tool, wrong):
    """A command to run, or the programs."""
    for words, code, said in (([], 2, wrong), (["true"], 1, f"{tmp_path}/vitrine-agent is not there: ")):
        done = subprocess.run([TOP / "Tests/tools" / tool, *words], env={**os.environ, "VITRINE_BIN": str(tmp_path)}, stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, timeout=60)
        assert done.returncode == code and said in done.stderr and "Traceback" not in done.stderr, done.stderr


def test_a_newcomer_without_a_desktop_gets_a_recording_of_the_test_screen():
    recording = TOP / "share.webm"
    recording.unlink(missing_ok=True)
    environment = {name: value for name, value in os.environ.items() if name not in ("DISPLAY", "WAYLAND_DISPLAY")}
    done = subprocess.run([TOP / "Tests/tools/run"], env={**environment, "VITRINE_BIN": str(BIN)}, stdin=subprocess.DEVNULL, capture_output=True,
                          text=True, timeout=120)
    said = done.stdout + done.stderr
    assert done.returncode == 0, said
    assert "the test screen is shared" in said
    # The objects of the contract are shown, and what they say while something is shared.
    assert "/org/vitrine/ScreenShare1/track/desktop" in said and ".IsBroadcastActive" in said
    # It fits a terminal, whatever the programs' folder is called.
    assert [line for line in said.splitlines() if len(line) > 80 and "exe:" not in line] == []

    (stream,) = probe(recording)["streams"]
    assert stream["codec_name"] == "vp8"
    numbers = picture.numbers(frames(recording))
    assert len(numbers) > 20
    # A picture may be sent again, to make it sharper or to end the stream; none comes after a newer one.
    assert numbers == sorted(numbers)
    assert len(set(numbers)) > 0.9 * len(numbers)
    times = [float(packet["pts_time"]) for packet in probe(recording)["packets"]]
    assert 8 < times[-1] - times[0] < 12
    assert f"duration={probe(recording)['format']['duration']}\n" in said
    recording.unlink()
