# SPDX-License-Identifier: MIT
"""`make run` on a desktop."""

from harness import TOP, frames, wait_until


def run(desktop):
    """Starts what `make run` starts after the build."""
    return desktop.start("run", [TOP / "Tests/tools/run"])


def test_a_newcomer_chooses_in_the_picker_and_gets_a_recording(desktop):
    recording = TOP / "share.webm"
    recording.unlink(missing_ok=True)
    running = run(desktop)
    desktop.hand.share(index=1)
    desktop.hand.wait_for_indicator()
    wait_until(lambda: running.poll() is not None, "the end of the recording", 60)
    assert running.returncode == 0
    assert "shares this desktop's screen" in desktop.processes.log("run")
    picture = frames(recording)[-1]
    assert abs(picture[600, 500].astype(int) - (0, 128, 128)).max() < 12
    desktop.hand.wait_for_no_indicator()
    recording.unlink()


def test_a_cancelled_picker_is_told_by_the_exit_status(desktop):
    running = run(desktop)
    desktop.hand.cancel()
    assert running.wait(30) == 3
