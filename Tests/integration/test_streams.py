# SPDX-License-Identifier: MIT
"""What is in a stream: judged by ffmpeg, GStreamer, a strict reader of our own, and by the numbers in the decoded pictures."""

import os
import re
import subprocess
import time

import numpy
import pytest

import picture
import stream
import vpx
from harness import frames
from processes import wait_until
from stream import record, wait_for_sent


def monotonic_us():
    return time.clock_gettime_ns(time.CLOCK_MONOTONIC) // 1000


def rising(numbers, repetitions=1):
    """Numbers rise; the last picture may be there twice, since an end repeats it, and an encoder sends one again to sharpen it."""
    assert numbers == sorted(numbers) and len(set(numbers)) >= len(numbers) - repetitions, numbers
    return numbers


def gstreamer_decodes(path, codec):
    """How many pictures GStreamer gets from a WebM file; fails on any error or warning of its elements."""
    done = subprocess.run(
        ["gst-launch-1.0", "-v", "filesrc", f"location={path}", "!", "matroskademux", "!", f"{codec}dec", "!", "fakesink", "silent=false", "sync=false"],
        capture_output=True, text=True, timeout=120, stdin=subprocess.DEVNULL)
    assert done.returncode == 0 and "ERROR" not in done.stderr and "WARN" not in done.stderr, done.stderr
    return done.stdout.count("chain   ***")


def libwebm_parses(path):
    """How many pictures the parser of those who made WebM finds in a file."""
    done = subprocess.run(["webm_info", "-blocks", "-i", str(path)], capture_output=True, text=True, timeout=60, stdin=subprocess.DEVNULL)
    assert done.returncode == 0 and not done.stderr, done.stderr
    return sum("Block: type:V" in line for line in done.stdout.splitlines())


def vpxdec_decodes(path, codec):
    """How many pictures the decoder of those who made IVF gets from a file."""
    done = subprocess.run(["vpxdec", f"--codec={codec}", "--noblit", "--summary", str(path)],
                          capture_output=True, text=True, timeout=120, stdin=subprocess.DEVNULL)
    assert done.returncode == 0, done.stderr
    return int(re.search(r"(\d+) decoded frames", done.stderr).group(1))


@pytest.mark.parametrize("kind", stream.COMPRESSED, ids=str)
def test_compressed(me, world, track, screen, kind):
    """A stream of VP8 or VP9 in WebM or IVF: all tools that read such files do without a word; its times only grow; its pictures are the screen's."""
    subscription = track.subscribe(**kind.options)
    assert (subscription.get("Format"), subscription.get("Codec")) == (kind.format, kind.codec)
    recording = record(subscription, world)
    track.start_broadcast(wait=True)
    wait_for_sent(subscription, 40)
    subscription.unsubscribe()
    recording.wait_for_end()

    probed = recording.probe()
    (found,) = probed["streams"]
    assert (probed["format"]["format_name"], found["codec_name"]) == ("matroska,webm" if kind.format == "webm" else "ivf", kind.codec)
    assert (found["width"], found["height"]) == (640, 360)
    if kind.format == "webm" or kind.codec == "vp9":
        assert found["color_range"] == "tv" and (kind.codec == "vp8" or found["color_space"] in ("bt470bg", "smpte170m")), found
    numbers = rising(picture.numbers(recording.frames()), repetitions=10)
    assert len(numbers) >= 40

    file = stream.read(recording.path)
    names = {"webm-vp8": "V_VP8", "webm-vp9": "V_VP9", "ivf-vp8": "VP80", "ivf-vp9": "VP90"}
    assert (file.doc_type, file.codec, file.size, len(file.blocks)) == (kind.format, names[str(kind)], (640, 360), len(numbers))
    assert file.times[0] == 0 and all(one < next for one, next in zip(file.times, file.times[1:])), file.times
    assert file.blocks[0].is_key and all(block.is_key == vpx.is_key(kind.codec, block.data) for block in file.blocks)
    key_frames = [block.data for block in file.blocks if block.is_key]
    assert {vpx.size(kind.codec, data) for data in key_frames} == {(640, 360)}
    if kind.codec == "vp9":
        assert {vpx.colour(data) for data in key_frames} == {(1, False)}
    if kind.format == "webm":
        assert gstreamer_decodes(recording.path, kind.codec) == libwebm_parses(recording.path) == len(numbers)
    else:
        assert vpxdec_decodes(recording.path, kind.codec) == len(numbers)
    # Times are of the pictures, not counted: about a thirtieth of a second each.
    assert 0.5 * len(numbers) / 30 < file.times[-1] / 1000


def test_y4m(me, world, track, screen):
    """A y4m stream: pictures as they are, each change once, in colour, in order; ffmpeg reads it."""
    subscription = track.subscribe(format="y4m")
    recording = record(subscription, world)
    track.start_broadcast(wait=True)
    wait_for_sent(subscription, 20)
    subscription.unsubscribe()
    recording.wait_for_end()
    data = recording.path.read_bytes()
    header, _, rest = data.partition(b"\n")
    assert header.startswith(b"YUV4MPEG2 W640 H360 ") and b" C420" in header
    frame = 640 * 360 * 3 // 2
    assert len(rest) % (frame + len(b"FRAME\n")) == 0 and rest.startswith(b"FRAME\n")
    pictures = [picture.i420(rest[start + 6:start + 6 + frame], 640, 360) for start in range(0, len(rest), frame + 6)]
    readings = picture.read_all(pictures)
    assert all(one is not None and (one.size, one.orientation, one.channels) == ((640, 360), "normal", "rgb") for one in readings)
    assert rising([one.number for one in readings]) == picture.numbers(recording.frames())
    assert subscription.agent.desktop.get("Subscriptions") == []


def test_y4m_says_its_rate(me, world, track, screen):
    """The header's rate is the reader's own limit, else the track's, which may be set after the reader came."""
    for given, preset, rate in (({"fps": 7}, "h1080p", 7), ({}, "h360p", 15), ({"fps": 0}, "h1080p", 30)):
        subscription = track.subscribe(format="y4m", **given)
        recording = record(subscription, world)
        track.set("Preset", "s", preset)
        track.start_broadcast(wait=True)
        wait_for_sent(subscription, 1)
        subscription.unsubscribe()
        recording.wait_for_end()
        assert f" F{rate}:1 ".encode() in recording.path.read_bytes().partition(b"\n")[0]
        track.stop_broadcast()


# Faults: B04
@pytest.mark.parametrize("kind", [*stream.COMPRESSED, stream.RAW], ids=str)
def test_late_subscriber(me, world, track, screen, kind):
    """Whoever subscribes to a screen that has not changed since gets its picture at once, and the right one."""
    screen.configure(manual=True)
    before = track.statistics["received"]
    track.start_broadcast(wait=True)
    number = screen.push_frames(3)
    track.wait_until("Statistics", lambda statistics: statistics["received"] >= before + 4)
    recordings = []
    for index in range(3):
        subscription = track.subscribe(**kind.options)
        recording = record(subscription, world, f"late{index}")
        wait_for_sent(subscription, 1)
        subscription.unsubscribe()
        recordings.append(recording.wait_for_end())
    for recording in recordings:
        assert set(picture.numbers(recording.frames())) == {number}
    assert track.statistics["received"] == before + 4, "the screen was not still"


@pytest.mark.parametrize("kind", [*stream.SOME, stream.RAW], ids=str)
def test_before_there_is_a_picture(me, world, track, screen, kind):
    """Subscribing works in every state; not a byte comes before the first real picture, then the stream's size and epoch are announced."""
    track.stop_capture()
    subscription = track.subscribe(**kind.options)
    recording = record(subscription, world)
    track.start_capture()
    screen.configure(manual=True, first_frame=False)
    pending = track.begin_broadcast(wait=True)
    screen.wait_for_consumer()
    assert (subscription.get("Size"), subscription.get("Epoch")) == ((0, 0), 0)
    assert subscription.statistics == {"sent": 0, "coalesced": 0, "bytes": 0, "queued-bytes": 0, "keyframes": 0}
    assert recording.size == 0 and not pending.done
    mark, before = me.mark(), monotonic_us()
    number = screen.push_frames(1)
    pending.wait()
    subscription.wait_for_change("Size", (640, 360), mark)
    epoch = subscription.wait_for_change("Epoch", since=mark).value
    assert before <= epoch <= monotonic_us()
    wait_for_sent(subscription, 1)
    subscription.unsubscribe()
    assert set(picture.numbers(recording.wait_for_end().frames())) == {number}


# Faults: B37
@pytest.mark.parametrize("kind", stream.COMPRESSED, ids=str)
def test_still_screen_is_as_long_as_it_was(me, world, track, screen, kind):
    """The end repeats the last picture at the present time: a recording of a still screen is as long as it was."""
    screen.configure(workload="still")
    track.start_broadcast(wait=True)
    subscription = track.subscribe(**kind.options)
    recording = record(subscription, world)
    wait_for_sent(subscription, 1)
    epoch = subscription.get("Epoch")
    wait_until(lambda: monotonic_us() > epoch + 1_500_000, "a second and a half")
    sent = subscription.statistics["sent"]
    before = monotonic_us()
    subscription.unsubscribe()
    after = monotonic_us()
    recording.wait_for_end()
    file = stream.read(recording.path)
    assert (before - epoch) / 1000 - 5 <= file.times[-1] <= (after - epoch) / 1000 + 5
    # It costs nothing meanwhile.
    assert sent <= 3 and len(file.blocks) == sent + 1
    assert len(set(picture.numbers(recording.frames()))) == 1


# Faults: B01 B02
@pytest.mark.parametrize("kind", stream.SOME, ids=str)
def test_resizes(me, world, track, screen, kind):
    """The source changes its size and shape: the stream keeps its own, the picture is scaled into it, and all of it can be decoded."""
    subscription = track.subscribe(**kind.options)
    recording = record(subscription, world)
    track.start_broadcast(wait=True)
    sizes = [(640, 360), (320, 400), (1000, 200), (642, 362), (640, 360)]
    for width, height in sizes:
        mark = me.mark()
        screen.set_size(width, height)
        track.wait_until("Sources", lambda sources: sources[0]["pixel-size"] == (width, height))
        # A picture of that size is in the stream when two more were sent.
        wait_for_sent(subscription, subscription.statistics["sent"] + 6)
        assert track.state == "active"
    assert subscription.get("Size") == (640, 360)
    subscription.unsubscribe()
    recording.wait_for_end()
    assert {(one["width"], one["height"]) for one in recording.probe()["streams"]} == {(640, 360)}
    readings = picture.read_all(recording.frames())
    assert all(one is not None for one in readings)
    seen = [one.size for one in readings]
    assert [size for index, size in enumerate(seen) if index == 0 or size != seen[index - 1]] == sizes
    numbers = [one.number for one in readings]
    assert numbers == sorted(numbers)
    for one in readings:
        x, y, width, height = one.box
        shape = one.width / one.height
        assert abs(width / height / shape - 1) < 0.06, one
        assert abs((640 - width) / 2 - x) <= 4 and abs((360 - height) / 2 - y) <= 4, one
    assert not [event for event in me.events[mark:] if event.kind == "signal" and event.name.startswith("Broadcast")]


def test_own_options(me, world, track, screen):
    """A reader that wants a smaller picture and fewer of them gets that, beside others that want all of it."""
    small = track.subscribe(max_size=(320, 320), fps=5, bitrate=300_000)
    whole = track.subscribe()
    recordings = [record(small, world, "small"), record(whole, world, "whole")]
    track.start_broadcast(wait=True)
    wait_for_sent(small, 12)
    for one in (small, whole):
        one.unsubscribe()
    for one in recordings:
        one.wait_for_end()
    files = [stream.read(one.path) for one in recordings]
    assert [file.size for file in files] == [(320, 180), (640, 360)]
    shown = picture.numbers(recordings[0].frames())
    # A picture may be sent again to sharpen it; those that are new are five a second, in the mean. The end adds the newest.
    new = [time for index, time in enumerate(files[0].times) if shown[index] not in shown[:index]]
    assert numpy.diff(new[1:-1]).mean() > 170, new
    assert len(files[1].blocks) > 2 * len(files[0].blocks)
    for one in recordings:
        numbers = picture.numbers(one.frames())
        assert numbers == sorted(numbers)


@pytest.mark.parametrize("kind", stream.COMPRESSED, ids=str)
def test_rates_change_while_running(me, world, screen, kind):
    """A bit rate and a frame rate that are changed while a stream runs are followed from then on, and its size stays."""
    screen.configure(size=(640, 360), workload="video")
    track = me.set_screen_share(True, bitrate=8_000_000, fps=30, wait=True)
    subscription = track.subscribe(**kind.options)
    recording = record(subscription, world)

    def bytes_of(count):
        before = subscription.statistics
        wait_for_sent(subscription, before["sent"] + count)
        now = subscription.statistics
        return (now["bytes"] - before["bytes"]) / (now["sent"] - before["sent"])

    bytes_of(15)
    much = bytes_of(45)
    me.set_screen_share(True, bitrate=300_000)
    bytes_of(45)
    little = bytes_of(45)
    assert little * 2 < much, f"{little:.0f} bytes a picture after {much:.0f}"
    me.set_screen_share(True, fps=5)
    slow = subscription.statistics["sent"] + 2
    wait_for_sent(subscription, slow + 8)
    assert subscription.get("Size") == (640, 360)
    subscription.unsubscribe()
    times = stream.read(recording.wait_for_end().path).times[slow:slow + 8]
    assert numpy.diff(times).mean() > 150, times


# Faults: B29 B04
@pytest.mark.parametrize("kind", [*stream.COMPRESSED, stream.RAW], ids=str)
def test_limit_never_loses_the_last_picture(me, world, track, screen, kind):
    """A limit of pictures a second drops those in between; the last one of a burst is always sent."""
    screen.configure(manual=True, fps=120)
    subscription = track.subscribe(fps=4, **kind.options)
    recording = record(subscription, world)
    track.start_broadcast(wait=True)
    last = [screen.push_frames(10) for _ in range(3)][-1]
    with open(recording.path, "rb"):
        wait_until(lambda: _newest(recording.path) == last, "the last picture of the burst", every=0.2)
    assert subscription.statistics["sent"] < 20
    subscription.unsubscribe()
    recording.wait_for_end()


def _newest(path):
    """The number of the newest picture in a file that is still written."""
    copy = path.with_suffix(f".copy{path.suffix}")
    copy.write_bytes(path.read_bytes())
    done = subprocess.run(["ffmpeg", "-v", "quiet", "-i", str(copy), "-fps_mode", "passthrough", "-f", "rawvideo", "-pix_fmt", "rgb24", "-"],
                          capture_output=True, timeout=60, stdin=subprocess.DEVNULL)
    pictures = numpy.frombuffer(done.stdout, numpy.uint8)
    if len(pictures) < 640 * 360 * 3:
        return None
    reading = picture.read(pictures.reshape(-1, 360, 640, 3)[-1])
    return reading and reading.number


# Faults: B12 B13
@pytest.mark.parametrize("pixel_format", ["BGRx", "RGBA", "xRGB", "ABGR"])
def test_pixel_formats(me, world, track, screen, pixel_format):
    """Whatever the order of the colours in the source's memory, red is red in the stream."""
    screen.configure(formats=[pixel_format], stride_padding=32)
    subscription = track.subscribe(format="y4m")
    recording = record(subscription, world)
    track.start_broadcast(wait=True)
    assert track.get("Sources")[0]["format"] == pixel_format
    wait_for_sent(subscription, 3)
    subscription.unsubscribe()
    readings = picture.read_all(recording.wait_for_end().frames())
    assert {(one.channels, one.orientation, one.size) for one in readings} == {("rgb", "normal", (640, 360))}


# Faults: B20
@pytest.mark.parametrize("transform", range(8))
def test_turned_sources(me, world, track, screen, transform):
    """A source that hands over its pictures turned or flipped, and says so, is upright in the stream, in the right shape."""
    screen.configure(transform=transform, size=(320, 200))
    subscription = track.subscribe(format="y4m")
    recording = record(subscription, world)
    track.start_broadcast(wait=True)
    wait_for_sent(subscription, 2)
    subscription.unsubscribe()
    readings = picture.read_all(recording.wait_for_end().frames())
    assert {(one.orientation, one.channels) for one in readings} == {("normal", "rgb")}
    assert track.get("Size") == subscription_size(recording.path) == readings[0].size


def subscription_size(path):
    height, width = frames(path).shape[1:3]
    return (width, height)


def test_cropped_source(me, world, track, screen):
    """A source that uses part of its buffer only, and says which, is sent without the rest."""
    screen.configure(crop=(32, 16, 320, 180))
    subscription = track.subscribe(format="y4m")
    recording = record(subscription, world)
    track.start_broadcast(wait=True)
    assert track.get("Size") == (320, 180)
    wait_for_sent(subscription, 2)
    subscription.unsubscribe()
    assert all(one is not None for one in picture.read_all(recording.wait_for_end().frames()))


# Faults: B50
def test_the_decoy_is_never_shown(me, world, track, screen):
    """Another source in PipeWire, such as a camera, is never shown: only the granted one is."""
    screen.configure(decoy=True)
    subscription = track.subscribe(format="y4m")
    recording = record(subscription, world)
    track.start_broadcast(wait=True)
    wait_for_sent(subscription, 5)
    screen.vanish()
    track.wait_for_signal("BroadcastFinished")
    subscription.unsubscribe()
    recording.wait_for_end()
    numbers = [one.number for one in picture.read_all(recording.frames()) if one]
    assert numbers and max(numbers) < 4_000_000_000
    assert os.path.getsize(recording.path) > 0
