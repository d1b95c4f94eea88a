# SPDX-License-Identifier: MIT
"""Sound beside the picture: which, at which level, in which channel, when; and what it costs while there is none."""

import random
import signal
import time
from pathlib import Path

import gi
import numpy
import pytest

gi.require_version("Gst", "1.0")

from gi.repository import GLib, Gst

import held
import matroska
import peers
import sound
import test_composition as composed
from harness import ERROR, BusError, frames, options, probe
from processes import wait_until
from screen import TestScreen
from seekable import read_finished
from services import Logind

Gst.init(None)

# What a decoded tone of level 0.25 may have lost or gained.
NEAR = pytest.approx(0.25, abs=0.03)


@pytest.fixture
def devices(session):
    """The usual world, with an output and a microphone."""
    sound.add_device(session, "speaker")
    sound.add_microphone(session, "microphone")
    return session


@pytest.fixture
def tone(tmp_path):
    return sound.write_tone(tmp_path / "tone.wav", 440, 1_000)


def share(agent, audio, **given):
    return agent.set_screen_share(True, wait=True, audio=audio, **given)


def record(desktop, path, **given):
    recording = desktop.subscribe(**given).record(path)
    recording.wait_for_bytes(1_000)
    return recording


def packets(recording):
    return matroska.read(recording.path, may_be_cut=True).sound


def wait_for_packets(recording, count, seconds=60):
    """Waits for so many more packets of sound."""
    before = len(packets(recording))
    wait_until(lambda: len(packets(recording)) >= before + count, f"{count} packets of sound", seconds)


def finish(agent, recording):
    """Ends the stream, and gives the sound that is in it."""
    agent.desktop.unsubscribe_all(agent.unique_name)
    recording.wait_for_end()
    return sound.decode(recording.path)


def heard(samples):
    """The part in which there is sound, without its ends."""
    where = numpy.flatnonzero(numpy.abs(samples).max(1) > 0.05)
    assert len(where) > sound.RATE // 2, "there is no sound"
    return samples[where[0] + sound.RATE // 5:where[-1] - sound.RATE // 10]


# What comes


def test_the_systems_sound_comes_beside_the_picture(devices, agent, tone, tmp_path):
    """Each channel has its tone, at its level; the file is one that ffprobe, GStreamer and a strict reader take."""
    share(agent, "system")
    recording = record(agent.desktop, tmp_path / "x.webm")
    sound.play(devices, tone)
    wait_for_packets(recording, 100)
    samples = heard(finish(agent, recording))
    for channel, frequency in enumerate((440, 1_000)):
        assert sound.loudest(samples, channel) == pytest.approx(frequency, abs=2)
        assert sound.level(samples, frequency, channel) == NEAR
    assert sound.level(samples, 440, 1) < 0.01 and sound.level(samples, 1_000, 0) < 0.01
    file = matroska.read(recording.path)
    assert (file.codec, file.sound_codec, file.codec_delay, file.seek_pre_roll) == ("V_VP8", "A_OPUS", 6_500_000, 80_000_000)
    assert file.opus_head == b"OpusHead\x01\x02\x38\x01\x80\xbb\0\0\0\0\0"
    times = [block.time for block in file.sound]
    # Packets of 20 ms, each at its time; a busy machine may lose some of the sound itself.
    steps = [after - before for before, after in zip(times, times[1:])]
    assert min(steps) >= 19 and sum(step <= 21 for step in steps) >= 0.9 * len(steps)
    assert [(one["codec_name"], one["codec_type"]) for one in probe(recording.path)["streams"]] == [("vp8", "video"), ("opus", "audio")]
    assert len(frames(recording.path)) == len(file.blocks)
    assert _gstreamer_counts(recording.path, "opusdec") >= len(file.sound) - 2


def _gstreamer_counts(path, decoder):
    """How many buffers of sound GStreamer decodes."""
    pipeline = Gst.parse_launch(f"filesrc location={path} ! matroskademux name=d d.audio_0 ! queue ! {decoder} ! fakesink name=sink signal-handoffs=true sync=false "
                                "d.video_0 ! queue ! vp8dec ! fakesink sync=false")
    count = 0

    def counted(*_):
        nonlocal count
        count += 1

    pipeline.get_by_name("sink").connect("handoff", counted)
    pipeline.set_state(Gst.State.PLAYING)
    message = pipeline.get_bus().timed_pop_filtered(60 * Gst.SECOND, Gst.MessageType.EOS | Gst.MessageType.ERROR)
    assert message and message.type == Gst.MessageType.EOS, message and message.parse_error()
    pipeline.set_state(Gst.State.NULL)
    return count


def test_the_microphone_alone(devices, agent, tone, tmp_path):
    other = sound.write_tone(tmp_path / "other.wav", 700, 700)
    share(agent, "microphone")
    recording = record(agent.desktop, tmp_path / "x.webm")
    sound.play(devices, other)
    sound.speak(devices, tone, "microphone")
    wait_for_packets(recording, 100)
    samples = heard(finish(agent, recording))
    assert sound.level(samples, 440, 0) == NEAR and sound.level(samples, 1_000, 1) == NEAR
    assert sound.level(samples, 700, 0) < 0.01, "what is played is heard in it"


def test_both_are_mixed_with_headroom(devices, agent, tmp_path):
    """Each has half of its level, and two at full scale are not cut off."""
    one = sound.write_tone(tmp_path / "one.wav", 500, 500, level=0.98)
    other = sound.write_tone(tmp_path / "other.wav", 800, 800, level=0.98)
    share(agent, "both")
    recording = record(agent.desktop, tmp_path / "x.webm")
    sound.play(devices, one)
    sound.speak(devices, other, "microphone")
    wait_for_packets(recording, 150)
    samples = heard(finish(agent, recording))[-sound.RATE:]
    for channel in (0, 1):
        assert sound.level(samples, 500, channel) == pytest.approx(0.49, abs=0.05)
        assert sound.level(samples, 800, channel) == pytest.approx(0.49, abs=0.05)
        # What clipping would make of the two.
        for product in (1_100, 1_300, 200, 1_500):
            assert sound.level(samples, product, channel) < 0.01, product


# When it comes


def test_a_flash_and_a_click_are_at_the_same_time(devices, agent, tmp_path):
    """The click's own time, as the player took it, and the picture's, as the screen took it, lie in the file where they belong: within 40 ms."""
    screen = TestScreen(devices.client)
    screen.configure(manual=True)
    share(agent, "system")
    subscription = agent.desktop.subscribe()
    recording = subscription.record(tmp_path / "x.webm")
    recording.wait_for_bytes(1_000)
    both = sound.FlashesAndClicks(devices, screen, tmp_path)
    for _ in range(5):
        both.make()
        # Silence between them; no one click is taken for the next.
        GLib.usleep(300_000)
    epoch = subscription.get("Epoch") / 1e6
    finish(agent, recording)
    offsets = both.find(recording.path, epoch)
    assert len(offsets) == 5 and all(abs(one.between) < 0.04 for one in offsets), offsets


def test_a_pause_in_the_sound_leaves_its_times_true(devices, agent, tone, tmp_path):
    """Nothing is sent while nothing sounds; what comes then is where it belongs, by the time that passed."""
    share(agent, "system")
    recording = record(agent.desktop, tmp_path / "x.webm")
    player = sound.play(devices, tone)
    wait_for_packets(recording, 20)
    devices.processes.end(player)
    wait_until(lambda: "running" not in [state for _, name, state in sound.nodes(devices) if name == "vitrine-system"], "the stream at rest")
    before = len(packets(recording))
    GLib.usleep(2_000_000)
    assert len(packets(recording)) == before
    sound.play(devices, tone, "again")
    wait_for_packets(recording, 20)
    finish(agent, recording)
    file = matroska.read(recording.path)
    gap = file.sound[before].time - file.sound[before - 1].time
    assert gap > 1_900
    # Its pictures came meanwhile, and the first sound after the pause came when they did.
    assert abs(file.sound[-1].time - file.times[-1]) < 1_500


# Several sources


def test_sound_goes_with_several_sources(devices, agent, tmp_path):
    """Each source's numbers are in the composed picture, the tone is in the sound, and flashes and clicks are at the same time."""
    screen, sizes = TestScreen(devices.client), [(320, 180), (200, 300), (180, 160)]
    screen.configure(streams=3, sizes=sizes, manual=True)
    share(agent, "system", multiple=True)
    composed.wait_for_all(agent.desktop, 3)
    subscription = agent.desktop.subscribe()
    recording = subscription.record(tmp_path / "x.webm")
    recording.wait_for_bytes(1_000)
    both = sound.FlashesAndClicks(devices, screen, tmp_path, tone=0.1)
    for _ in range(5):
        both.make()
        GLib.usleep(300_000)
    epoch = subscription.get("Epoch") / 1e6
    samples = finish(agent, recording)
    offsets = both.find(recording.path, epoch, lambda image: composed.read(image, sizes))
    assert len(offsets) == 5 and all(abs(one.between) < 0.04 for one in offsets), offsets
    readings = [composed.read(image, sizes) for image in frames(recording.path)]
    for index, of_one in enumerate(zip(*readings)):
        numbers = [one.number for one in of_one if one]
        assert numbers == sorted(numbers) and len(set(numbers)) >= 5
        assert {number // composed.NUMBERS_PER_STREAM for number in numbers} == {index}
    # A click is white, and in few parts.
    tone = samples[len(samples) // 2:]
    assert sound.loudest(tone, 0) == pytest.approx(400, abs=2) and sound.level(tone, 400, 1) == pytest.approx(0.1, abs=0.02)


def test_sound_goes_on_while_sources_change_and_go(devices, agent, tone, tmp_path):
    """A source gets another size, two end, the layout changes: nothing of it is heard."""
    screen = TestScreen(devices.client)
    screen.configure(streams=3, sizes=[(320, 180), (200, 300), (400, 160)])
    share(agent, "system", multiple=True)
    composed.wait_for_all(agent.desktop, 3)
    recording = record(agent.desktop, tmp_path / "x.webm")
    sound.play(devices, tone)
    wait_for_packets(recording, 30)
    for change, count in ((lambda: screen.set_size(500, 90, stream=0), 3), (lambda: agent.desktop.set("Layout", "s", "row"), 3),
                          (lambda: screen.vanish(stream=1), 2), (lambda: screen.vanish(stream=0), 1)):
        size = agent.desktop.get("Size")
        change()
        agent.desktop.wait_until("Size", lambda now: now != size)
        assert len(agent.desktop.get("Sources")) == count
        wait_for_packets(recording, 30)
    file, samples = matroska.read(recording.path, may_be_cut=True), heard(finish(agent, recording))
    steps = [after.time - before.time for before, after in zip(file.sound, file.sound[1:])]
    # A busy machine may lose some of the sound itself.
    assert len(steps) > 140 and min(steps) >= 19 and sum(step <= 21 for step in steps) >= 0.9 * len(steps)
    for channel, frequency in enumerate((440, 1_000)):
        assert sound.level(samples, frequency, channel) == NEAR


@pytest.mark.parametrize("gap", ["paused", "corrupt", "still", "resized"])
def test_gaps_in_the_picture_leave_the_sound_whole(devices, agent, tone, tmp_path, gap):
    """A source that pauses, sends what is no picture, nothing at all, or another size each time costs no sound; and the picture comes back."""
    screen = TestScreen(devices.client)
    screen.configure(size=(320, 200))
    share(agent, "system")
    recording = record(agent.desktop, tmp_path / "x.webm")
    sound.play(devices, tone)
    wait_for_packets(recording, 20)
    if gap == "paused":
        screen.pause()
        agent.desktop.wait_until("SourcePaused", True)
    elif gap == "corrupt":
        screen.configure(corrupt_header_every=1)
    elif gap == "still":
        screen.configure(manual=True)
    else:
        screen.configure(resize_every=1, resize_to=(202, 306), fps=60)
    wait_for_packets(recording, 75)
    screen.resume()
    screen.reset()
    pictures = len(matroska.read(recording.path, may_be_cut=True).times)
    wait_until(lambda: len(matroska.read(recording.path, may_be_cut=True).times) > pictures + 5, "pictures again")
    assert sound.level(heard(finish(agent, recording)), 440, 0) == NEAR
    file = matroska.read(recording.path)
    # Each at its own time, and in one row with the pictures.
    times = [block.time for block in file.sound]
    assert times == sorted(times) and file.times == sorted(file.times)
    assert agent.desktop.get("IsBroadcastActive")


# Devices


def test_it_follows_the_default(devices, agent, tone, tmp_path):
    """Another output becomes the default, as when a headset is plugged in: what is played there is heard, and what is played elsewhere is not."""
    share(agent, "both")
    recording = record(agent.desktop, tmp_path / "x.webm")
    wait_until(lambda: sound.linked(devices, "vitrine-system", "speaker"), "the output")
    wait_until(lambda: sound.linked(devices, "vitrine-microphone", "microphone"), "the microphone")
    sound.add_device(devices, "headset")
    sound.add_microphone(devices, "headset-microphone")
    sound.set_default(devices, "sink", "headset")
    sound.set_default(devices, "source", "headset-microphone")
    wait_until(lambda: sound.linked(devices, "vitrine-system", "headset"), "the other output")
    wait_until(lambda: sound.linked(devices, "vitrine-microphone", "headset-microphone"), "the other microphone")
    sound.play(devices, tone)
    sound.play(devices, sound.write_tone(tmp_path / "elsewhere.wav", 2_500, 2_500), "elsewhere", "speaker")
    wait_for_packets(recording, 120)
    samples = heard(finish(agent, recording))
    assert sound.level(samples, 440, 0) == pytest.approx(0.125, abs=0.02)
    assert sound.level(samples, 2_500, 0) < 0.01


def test_it_survives_a_device_that_vanishes(devices, agent, tone, tmp_path):
    """With the only output gone there is silence, and the picture goes on; with the next one there is sound again."""
    share(agent, "system")
    recording = record(agent.desktop, tmp_path / "x.webm")
    sound.play(devices, tone)
    wait_for_packets(recording, 20)
    sound.remove_device(devices, "speaker")
    wait_until(lambda: not agent.get("Capabilities")["system-audio"], "no output")
    before, pictures = len(packets(recording)), agent.desktop.statistics["delivered"]
    wait_until(lambda: agent.desktop.statistics["delivered"] > pictures + 20, "pictures without sound")
    assert len(packets(recording)) <= before + 20
    sound.add_device(devices, "other")
    wait_until(lambda: sound.linked(devices, "vitrine-system", "other"), "the other output")
    # The player goes on there too.
    wait_for_packets(recording, 50)
    samples = heard(finish(agent, recording)[-sound.RATE:])
    assert sound.level(samples, 440, 0) == NEAR
    assert agent.desktop.get("IsBroadcastActive")


@pytest.mark.parametrize("seed", range(3))
def test_devices_and_shares_that_come_and_go(devices, agent, tone, seed):
    """Outputs and microphones come and go while shares with sound are started, muted, read, stopped and ended by the desktop at any moment; then all of it works."""
    moments = random.Random(seed)
    screen = TestScreen(devices.client)
    screen.configure(size=(320, 200))
    track = agent.desktop
    made = {"speaker": sound.add_device, "microphone": sound.add_microphone}
    there = {*made}
    pending = []
    for _ in range(30):
        act = moments.choice(["start", "start", "stop", "device", "device", "read", "mute", "end", "vanish"])
        if act == "start":
            pending.append(agent.start_screen_share(True, wait=True, audio=moments.choice(["system", "microphone", "both", "none"])))
        elif act == "stop":
            agent.set_screen_share(False)
        elif act == "device":
            name = moments.choice([*made])
            sound.remove_device(devices, name) if name in there else made[name](devices, name)
            there ^= {name}
        elif act == "read":
            track.subscribe().close() if moments.random() < 0.5 else track.subscribe()
        elif act == "mute":
            track.mute(moments.random() < 0.5)
        else:
            (screen.end_session if act == "end" else screen.vanish)()
    agent.set_screen_share(False)
    wait_until(lambda: all(one.done for one in pending), "an answer to every start")
    track.unsubscribe_all()
    track.mute(False)
    for name in made.keys() - there:
        made[name](devices, name)
    wait_until(lambda: agent.get("Capabilities")["system-audio"] and agent.get("Capabilities")["microphone"], "both")
    share(agent, "both")
    recording = record(track, devices.root / "x.webm")
    sound.play(devices, tone)
    wait_for_packets(recording, 40)
    finish(agent, recording)
    screen.wait_until("OpenSessions", 1)


# Muted, stopped, unread


def test_muted_is_silent(devices, agent, tone, tmp_path):
    share(agent, "both")
    recording = record(agent.desktop, tmp_path / "x.webm")
    sound.play(devices, tone)
    wait_for_packets(recording, 20)
    agent.desktop.mute(True)
    muted = len(packets(recording))
    wait_until(lambda: sound.node(devices, "vitrine-system") is None and sound.node(devices, "vitrine-microphone") is None, "nobody who listens")
    GLib.usleep(500_000)
    # What was in the pipe is all that came.
    assert len(packets(recording)) - muted < 10
    agent.desktop.mute(False)
    wait_for_packets(recording, 50)
    finish(agent, recording)
    times = [block.time for block in matroska.read(recording.path).sound]
    assert max(after - before for before, after in zip(times, times[1:])) > 500


@pytest.mark.parametrize("how", ["lock", "sleep"])
def test_nobody_is_heard_who_is_not_there(devices, agent, tone, tmp_path, how):
    """While the session is locked, or the machine goes to sleep, no microphone is on the air, and none is held; nor what the machine plays. Then both are again."""
    logind = Logind(devices)
    wait_until(lambda: "LockedHint" in logind.asked, "the agent to ask logind")
    share(agent, "both")
    recording = record(agent.desktop, tmp_path / "x.webm")
    sound.play(devices, tone)
    wait_for_packets(recording, 20)
    getattr(logind, how)(True)
    wait_until(lambda: sound.node(devices, "vitrine-system") is None and sound.node(devices, "vitrine-microphone") is None, "nobody who listens")
    hidden = len(packets(recording))
    late = agent.desktop.subscribe().record(tmp_path / "late.webm")
    GLib.usleep(500_000)
    # What was in the pipe is all that came.
    assert len(packets(recording)) - hidden < 10
    assert agent.desktop.state == "active" and agent.desktop.get("Muted") is False and late.size == 0
    getattr(logind, how)(False)
    wait_for_packets(recording, 50)
    finish(agent, recording)
    times = [block.time for block in matroska.read(recording.path).sound]
    assert max(after - before for before, after in zip(times, times[1:])) > 500


def test_nobody_listens_for_streams_that_began_before_there_was_sound(devices, agent, tone, tmp_path):
    """They have no place for it. With one that has there is sound, and none any more when that goes."""
    share(agent, "none")
    early = record(agent.desktop, tmp_path / "early.webm")
    agent.set_screen_share(False)
    share(agent, "both")
    sound.play(devices, tone)
    early.wait_for_bytes(early.size + 10_000)
    assert sound.node(devices, "vitrine-system") is None and sound.node(devices, "vitrine-microphone") is None
    late = record(agent.desktop, tmp_path / "late.webm")
    wait_for_packets(late, 20)
    late.stop()
    wait_until(lambda: sound.node(devices, "vitrine-system") is None and sound.node(devices, "vitrine-microphone") is None, "nobody who listens")
    assert packets(early) == []


def test_nothing_is_heard_after_the_broadcast_and_the_next_one_goes_on_in_the_same_stream(devices, agent, tone, tmp_path):
    share(agent, "system")
    recording = record(agent.desktop, tmp_path / "x.webm")
    sound.play(devices, tone)
    wait_for_packets(recording, 20)
    agent.set_screen_share(False)
    wait_until(lambda: sound.node(devices, "vitrine-system") is None, "nobody who listens")
    before = len(packets(recording))
    GLib.usleep(700_000)
    assert len(packets(recording)) == before
    share(agent, "system")
    wait_for_packets(recording, 20)
    finish(agent, recording)
    file = matroska.read(recording.path)
    times = [block.time for block in file.sound]
    assert times == sorted(times) and times[before] - times[before - 1] > 600


def test_no_byte_comes_before_the_first_picture(devices, agent, tone, tmp_path):
    screen = TestScreen(devices.client)
    screen.configure(manual=True, first_frame=False)
    sound.play(devices, tone)
    call = agent.start_screen_share(True, wait=True, audio="system")
    recording = agent.desktop.subscribe().record(tmp_path / "x.webm")
    wait_until(lambda: screen.streams and screen.streams[0]["state"] == "streaming", "the source")
    assert recording.size == 0
    screen.push_frames(1)
    call.wait()
    wait_for_packets(recording, 20)
    file = matroska.read(recording.path, may_be_cut=True)
    assert file.times[0] == 0 and file.sound[0].time >= 0


def test_nobody_listens_while_nobody_reads(devices, agent, tone, tmp_path):
    """PipeWire has no stream of ours without a reader that can hear, and the agent no thread for it."""
    share(agent, "both")
    sound.play(devices, tone)
    raw = agent.desktop.subscribe(format="y4m").record(tmp_path / "x.y4m")
    raw.wait_for_bytes(1_000)
    assert "sound" not in held.threads(devices.agent_process.pid) and sound.node(devices, "vitrine-system") is None
    recording = record(agent.desktop, tmp_path / "x.webm")
    wait_for_packets(recording, 5)
    assert "sound" in held.threads(devices.agent_process.pid)
    recording.stop()
    wait_until(lambda: sound.node(devices, "vitrine-system") is None and "sound" not in held.threads(devices.agent_process.pid), "nobody who listens")


def test_silence_wakes_nobody(devices, agent, tmp_path):
    """While nothing plays no packet comes, the output sleeps, and so does the thread."""
    TestScreen(devices.client).configure(manual=True)
    share(agent, "system")
    recording = record(agent.desktop, tmp_path / "x.webm")
    wait_until(lambda: sound.linked(devices, "vitrine-system", "speaker"), "the output")
    wait_until(lambda: _at_rest(devices), "the thread at rest")
    before = _switches(devices)
    GLib.usleep(2_000_000)
    assert _switches(devices) - before <= 2
    assert packets(recording) == []
    assert "running" not in [state for _, name, state in sound.nodes(devices) if name == "speaker"]


def _switches(session):
    """How often the thread of sound, and PipeWire's beside it, have gone to sleep."""
    count = 0
    for task in Path(f"/proc/{session.agent_process.pid}/task").iterdir():
        if (task / "comm").read_text().strip() in ("sound", "data-loop.0", "pipewire"):
            count += int((task / "status").read_text().split("voluntary_ctxt_switches:")[1].split()[0])
    return count


def _at_rest(session):
    before = _switches(session)
    GLib.usleep(500_000)
    return _switches(session) == before


# Other formats, other readers


@pytest.mark.parametrize("format", ["ivf", "y4m"])
def test_a_format_without_room_for_it_carries_the_picture_alone(devices, agent, tone, tmp_path, format):
    share(agent, "system")
    sound.play(devices, tone)
    recording = record(agent.desktop, tmp_path / f"x.{format}", format=format)
    recording.wait_for_bytes(20_000)
    agent.desktop.unsubscribe_all(agent.unique_name)
    recording.wait_for_end()
    assert [one["codec_type"] for one in probe(recording.path)["streams"]] == ["video"]


def test_a_recording_has_both_in_order(devices, agent, tone, tmp_path):
    """`record` makes a file that can be sought in, with its blocks in the order of their times."""
    share(agent, "system")
    sound.play(devices, tone)
    path = tmp_path / "x.webm"
    devices.control("record", path, "--seconds", 4)
    found = read_finished(path)
    file = matroska.read(path)
    assert len(file.sound) > 100 and len(file.blocks) > 20 and found.keys[0] == 0
    assert sound.level(heard(sound.decode(path)), 440, 0) == NEAR


def test_share_audio_by_the_command_line(devices, agent, tmp_path):
    done = devices.control("share", "--detach", "--audio", "both")
    assert "with the sound of this machine and the microphone" in done.stdout
    recording = record(agent.desktop, tmp_path / "x.webm")
    assert matroska.read(recording.path, may_be_cut=True).sound_codec == "A_OPUS"
    again = devices.control("share", "--detach", "--audio", "none", check=False)
    assert again.returncode == 1 and "audio" in again.stderr


def test_what_the_person_has_set_holds_for_a_share(devices, agent, tmp_path):
    folder = devices.root / "config" / "vitrine"
    folder.mkdir()
    (folder / "vitrine.conf").write_text("audio = system\n")
    agent.set_screen_share(True, wait=True)
    assert agent.get("DefaultOptions")["audio"] == "system"
    recording = record(agent.desktop, tmp_path / "x.webm")
    assert matroska.read(recording.path, may_be_cut=True).sound_codec == "A_OPUS"
    agent.set_screen_share(False)
    assert "with the sound of this machine" in devices.control("share", "--detach").stdout
    agent.set_screen_share(False)
    assert "with the sound" not in devices.control("share", "--detach", "--audio", "none").stdout


# Where it cannot be


def can(agent):
    found = agent.get("Capabilities")
    return found["system-audio"], found["microphone"]


def refused(agent, audio):
    """The error of a share and of a track with this sound."""
    messages = []
    for call in (lambda: agent.set_screen_share(True, audio=audio), lambda: agent.create_track(audio=audio)):
        with pytest.raises(BusError) as raised:
            call()
        assert raised.value.name == ERROR + "Unsupported"
        messages.append(raised.value.message)
    assert messages[0] == messages[1] and "audio" in messages[0]
    return messages[0]


def test_what_there_is_none_of_is_refused_with_the_reason(session, agent):
    """Capabilities tell the truth whenever they are read, and follow what is plugged in."""
    assert can(agent) == (False, False)
    assert "no sound output" in refused(agent, "system") and "no sound input" in refused(agent, "microphone")
    sound.add_device(session, "speaker")
    assert can(agent) == (True, False)
    assert "no sound input" in refused(agent, "both")
    agent.create_track(audio="system").destroy()
    sound.add_microphone(session, "microphone")
    assert can(agent) == (True, True)
    agent.create_track(audio="both").destroy()
    sound.remove_device(session, "speaker")
    assert can(agent) == (False, True)
    assert agent.desktop.state == "idle"


def test_what_the_person_has_set_and_cannot_be_is_said_to_be_theirs(session):
    """A refusal names an option of the command line only where one was given."""
    folder = session.root / "config" / "vitrine"
    folder.mkdir()
    (folder / "vitrine.conf").write_text("audio = system\n")
    done = session.control("share", "--detach", check=False)
    assert done.returncode == 1 and done.stderr.startswith('vitrinectl: vitrine.conf: "audio" "system" is not possible here: ')
    assert done.stderr.endswith(". --audio wins over its line\n")
    assert session.control("share", "--detach", "--audio", "microphone", check=False).stderr.startswith('vitrinectl: --audio "microphone" is not')
    assert "Sharing: " in session.control("share", "--detach", "--audio", "none").stdout


def test_a_stop_ends_a_start_that_waits_to_know_what_sound_there_is(devices, agent):
    """The last word of a client holds, also where it does not wait for the answer to the one before."""
    track = agent.create_track(audio="system")
    track.start_capture()
    for start, stop in ((lambda: agent.start_screen_share(True, audio="system"), lambda: agent.set_screen_share(False)),
                        (lambda: track.start("StartBroadcast", options()), track.stop_broadcast)):
        started = start()
        stop()
        try:
            started.wait()
        except BusError as error:
            assert error.name == ERROR + "Cancelled"
    assert (agent.desktop.state, track.state) == ("idle", "listening")


@pytest.mark.skipif(not peers.sandboxing_works(), reason="this machine lets nobody make a sandbox (bwrap --unshare-user)")
def test_a_sandboxed_program_may_not_listen(devices):
    """The person is asked about the screen alone."""
    with peers.sandboxed(devices) as peer:
        with pytest.raises(BusError) as raised:
            peer.create_track(audio="microphone")
        assert raised.value.name == ERROR + "Unsupported" and "sandboxed" in raised.value.message
        assert peer.create_track(audio="none")


def test_without_a_session_manager_it_is_refused(devices, agent):
    assert can(agent) == (True, True)
    devices.processes.end(devices.wireplumber)
    wait_until(lambda: can(agent) == (False, False), "the session manager gone")
    assert "session manager" in refused(agent, "system")


def test_a_pipewire_that_hangs_holds_nobody_up(devices, agent):
    """Who asks what there is waits for an answer once, and then no more; with PipeWire the answer comes back."""
    assert can(agent) == (True, True)
    devices.pipewire.send_signal(signal.SIGSTOP)
    mark, times = agent.mark(), []
    for _ in range(4):
        started = time.monotonic()
        can(agent)
        times.append(time.monotonic() - started)
    # Against the first, which waits: a busy machine takes its time for all of them.
    assert sum(times[1:]) < times[0]
    agent.wait_for("changed", "Capabilities", lambda found: not found["system-audio"] and not found["microphone"], since=mark)
    devices.pipewire.send_signal(signal.SIGCONT)
    wait_until(lambda: can(agent) == (True, True), "PipeWire's answer")


def test_without_pipewire_it_is_refused(make_session):
    session = make_session(pipewire=False, screen=False, portal="absent")
    agent = session.agent()
    assert can(agent) == (False, False)
    assert "PipeWire does not answer" in refused(agent, "both")
    assert agent.create_track(audio="none").state == "idle"
