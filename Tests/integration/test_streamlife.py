# SPDX-License-Identifier: MIT
"""The life of a stream: it outlives stopping, starting, muting and its client, and ends cleanly, with whoever may end it."""

import os
import select
import subprocess
import time

import pytest

import picture
import stream
from contract import BUS_ERROR, refused
from harness import SUBSCRIPTION
from processes import wait_until
from screen import TestScreen
from stream import record, wait_for_more


@pytest.fixture
def own(me, screen):
    """A track of one's own, listening, in front of a small screen."""
    screen.configure(size=(640, 360))
    track = me.create_track()
    track.start_capture()
    yield track
    if track.path in me.objects():
        track.destroy()


def check(recording):
    """The stream can be decoded from its first byte to its last, its times only grow. Its readings; None is the placeholder."""
    if recording.path.suffix == ".y4m":
        return picture.read_all(recording.frames())
    file = stream.read(recording.path)
    assert all(one < next for one, next in zip(file.times, file.times[1:])), file.times
    assert file.blocks[0].is_key
    readings = picture.read_all(recording.frames())
    assert len(readings) == len(file.blocks)
    return readings


def numbers(readings):
    found = [one.number for one in readings if one]
    assert found == sorted(found), found
    return found


def runs(readings):
    """What a viewer sees: `picture` and `placeholder`, in turns."""
    seen = ["picture" if one else "placeholder" for one in readings]
    return [what for index, what in enumerate(seen) if index == 0 or what != seen[index - 1]]


# Placeholders


@pytest.mark.parametrize("kind", stream.SOME, ids=str)
def test_stop_and_start_again(world, track, screen, kind):
    """Stopping sends the placeholder and keeps the stream; starting again goes on in the same stream, whose times and size go on too."""
    subscription = track.subscribe(**kind.options)
    recording = record(subscription, world, "resumed")
    for _ in range(3):
        track.start_broadcast(wait=True)
        wait_for_more(subscription, 8)
        track.stop_broadcast()
        screen.set_size(800, 400)
    track.stop_capture()
    assert subscription.get("Size") == (640, 360) and not recording.ended.is_set()
    track.start_capture()
    track.start_broadcast(wait=True)
    wait_for_more(subscription, 8)
    subscription.unsubscribe()
    readings = check(recording.wait_for_end())
    assert runs(readings) == ["picture", "placeholder"] * 3 + ["picture"]
    numbers(readings)


def test_muting(world, track, screen):
    """Muted: from the reply on no picture of the screen is sent, but the placeholder; unmuted, the screen is there again."""
    screen.configure(fps=60)
    subscriptions = [track.subscribe(**kind.options) for kind in (*stream.COMPRESSED, stream.RAW)]
    recordings = [record(one, world, f"muted{index}") for index, one in enumerate(subscriptions)]
    track.start_broadcast(wait=True)
    for one in subscriptions:
        wait_for_more(one, 10)
    track.mute()
    first = screen.streams[0]["number"]
    screen.wait_until("Streams", lambda streams: streams[0]["number"] > first + 60)
    last = screen.streams[0]["number"]
    track.mute(False)
    for one in subscriptions:
        wait_for_more(one, 10)
        one.unsubscribe()
    for recording in recordings:
        readings = check(recording.wait_for_end())
        assert runs(readings) == ["picture", "placeholder", "picture"]
        # The newest picture is kept for those who see it when it may be seen again; nothing in between is sent.
        assert not [number for number in numbers(readings) if first < number < last - 6], (first, last)


@pytest.mark.parametrize("kind", [*stream.COMPRESSED, stream.RAW], ids=str)
@pytest.mark.parametrize("how", ["mute", "mask"])
def test_hiding_from_a_slow_reader(world, track, screen, kind, how):
    """What waits for a reader that does not read when the track is muted, or all of it masked, is not sent: it gets what lies in its pipe and the rest
    of what it has begun to get, then what is shown instead, in a clean stream."""
    screen.configure(workload="video", fps=60)
    track.start_broadcast(wait=True)
    subscription = track.subscribe(bitrate=100_000_000, **kind.options)
    waiting = 1 if kind == stream.RAW else 1 << 20
    subscription.wait_until("Statistics", lambda statistics: statistics["queued-bytes"] >= waiting, seconds=90)
    before = subscription.statistics
    if how == "mute":
        track.mute()
    else:
        track.set("Masks", "a(iiuu)", [(0, 0, 640, 360)])
    hidden = screen.streams[0]["number"]
    screen.wait_until("Streams", lambda streams: streams[0]["number"] > hidden + 30)
    recording = record(subscription, world, "slow")
    # The first may be one that it had begun to get: the second is not.
    subscription.wait_until("Statistics", lambda statistics: statistics["sent"] > before["sent"] and statistics["queued-bytes"] == 0)
    sent = subscription.statistics["sent"]
    subscription.call("RequestKeyFrame")
    subscription.wait_until("Statistics", lambda statistics: statistics["sent"] > sent and statistics["queued-bytes"] == 0)
    shown = screen.streams[0]["number"]
    if how == "mute":
        track.mute(False)
    else:
        track.set("Masks", "a(iiuu)", [])
    wait_for_more(subscription, 10)
    subscription.unsubscribe()
    readings = check(recording.wait_for_end())
    assert runs(readings) == ["picture", "placeholder", "picture"]
    first = readings.index(None)
    assert first <= before["sent"] + 1
    assert not [number for number in numbers(readings[first:]) if number < shown - 6], (hidden, shown)
    recording.probe()


def test_muted_from_the_start(world, track, screen):
    """A muted track sends nothing before it ever had a picture to show: no stream begins with a placeholder."""
    track.mute()
    subscriptions = [track.subscribe(**kind.options) for kind in (*stream.COMPRESSED, stream.RAW)]
    recordings = [record(one, world, f"silent{index}") for index, one in enumerate(subscriptions)]
    track.start_broadcast(wait=True)
    received = track.statistics["received"]
    track.wait_until("Statistics", lambda statistics: statistics["received"] > received + 20)
    assert all(recording.size == 0 for recording in recordings) and all(one.get("Epoch") == 0 for one in subscriptions)
    track.mute(False)
    for one, recording in zip(subscriptions, recordings):
        wait_for_more(one, 5)
        one.unsubscribe()
        assert runs(check(recording.wait_for_end())) == ["picture"]


@pytest.mark.parametrize("kind", stream.SOME, ids=str)
def test_hold(world, track, screen, kind):
    """placeholder=hold: nothing is sent while there is nothing to show; then the stream goes on."""
    subscription = track.subscribe(placeholder="hold", **kind.options)
    recording = record(subscription, world, "hold")
    track.start_broadcast(wait=True)
    wait_for_more(subscription, 5)
    track.mute()
    size, sent = recording.size, subscription.statistics["sent"]
    received = track.statistics["received"]
    track.wait_until("Statistics", lambda statistics: statistics["received"] > received + 20)
    # One may have been on its way when the track was muted.
    assert subscription.statistics["sent"] <= sent + 1
    track.mute(False)
    wait_for_more(subscription, 5)
    track.stop_broadcast()
    sent = subscription.statistics["sent"]
    track.start_broadcast(wait=True)
    wait_for_more(subscription, 5)
    subscription.unsubscribe()
    assert recording.size > size
    assert runs(check(recording.wait_for_end())) == ["picture"]


@pytest.mark.parametrize("kind", [*stream.SOME, stream.RAW], ids=str)
def test_end(world, track, screen, kind):
    """placeholder=end: the stream ends with the broadcast, cleanly; one that asked for nothing else goes on beside it."""
    ending, staying = track.subscribe(placeholder="end", **kind.options), track.subscribe(**kind.options)
    recordings = [record(ending, world, "ending"), record(staying, world, "staying")]
    track.start_broadcast(wait=True)
    for one in (ending, staying):
        wait_for_more(one, 5)
    track.stop_broadcast()
    recordings[0].wait_for_end()
    assert track.get("Subscriptions") == [staying.path]
    assert refused(ending.get, "Size").name == BUS_ERROR + "UnknownObject"
    assert runs(check(recordings[0])) == ["picture"]
    assert not recordings[1].ended.is_set()
    staying.unsubscribe()
    assert runs(check(recordings[1].wait_for_end())) == ["picture", "placeholder"]


# Ends


@pytest.mark.parametrize("kind", [*stream.SOME, stream.RAW], ids=str)
@pytest.mark.parametrize("how", ["Unsubscribe", "UnsubscribeAll", "Disallow", "Destroy"])
def test_ends(me, world, own, how, kind):
    """Each way to end a stream ends it cleanly: what was written can be decoded to its last byte, and the subscription is gone at the reply."""
    reader = world.agent()
    own.allow(reader.unique_name)
    subscription = reader.track(own.path).subscribe(**kind.options)
    recording = record(subscription, world, how)
    own.start_broadcast(wait=True)
    wait_for_more(subscription, 6)
    {"Unsubscribe": subscription.unsubscribe, "UnsubscribeAll": lambda: own.unsubscribe_all(reader.unique_name),
     "Disallow": lambda: own.disallow(reader.unique_name), "Destroy": own.destroy}[how]()
    assert refused(subscription.get, "Size").name == BUS_ERROR + "UnknownObject"
    recording.wait_for_end()
    readings = check(recording)
    # A track that goes finishes its broadcast first, and who asked for the placeholder then gets it.
    assert runs(readings) in (["picture"], ["picture", "placeholder"][:2 if how == "Destroy" else 1]) and len(numbers(readings)) >= 6
    if how != "Destroy":
        assert (own.state, own.get("Subscriptions")) == ("active", [])


def test_unsubscribe_all_ends_those_of_one_reader(me, world, track):
    """UnsubscribeAll ends every stream of one client, unconditionally, and nobody else's; the caller's own with an empty name."""
    readers = [world.agent() for _ in range(2)]
    recordings = {}
    for reader in readers:
        for index in range(3):
            subscription = reader.desktop.subscribe()
            recordings[subscription.path] = (reader, subscription.record(world.root / f"{len(recordings)}.webm"))
    readers[0].desktop.unsubscribe_all()
    left = [path for path, (reader, _) in recordings.items() if reader is readers[1]]
    assert track.get("Subscriptions") == left
    track.unsubscribe_all(readers[1].unique_name)
    assert track.get("Subscriptions") == []
    for _, recording in recordings.values():
        recording.wait_for_end()


def test_reader_goes(me, track):
    """Whoever closes the reading end has no subscription any more, whether anything was sent or not."""
    early = track.subscribe()
    mark = me.mark()
    early.close()
    me.wait_for("signal", "InterfacesRemoved", lambda value: value == (early.path, [SUBSCRIPTION]), since=mark)
    track.start_broadcast(wait=True)
    late = track.subscribe()
    wait_for_more(late, 2)
    mark = me.mark()
    late.close()
    me.wait_for("signal", "InterfacesRemoved", lambda value: value == (late.path, [SUBSCRIPTION]), since=mark)
    assert track.get("Subscriptions") == [] and track.state == "active"


def test_last_reader_may_go_while_the_source_is_still(me, track, screen):
    """A reader that goes while nothing changes on the screen is noticed all the same, and nobody spins over it."""
    screen.configure(workload="still")
    track.start_broadcast(wait=True)
    subscription = track.subscribe()
    subscription.wait_until("Statistics", lambda statistics: statistics["sent"] >= 1)
    subscription.close()
    track.wait_until("Subscriptions", [])


# The descriptor lives by itself


def test_handed_to_ffmpeg(me, world, track):
    """The descriptor is ffmpeg's standard input, its client leaves the bus: the stream goes on until the broadcast ends, and ffmpeg is content."""
    client = world.new_client()
    subscription = world.agent(client).desktop.subscribe(placeholder="end")
    output = world.root / "from-ffmpeg.mkv"
    child = subprocess.Popen(["ffmpeg", "-v", "error", "-f", "matroska", "-i", "-", "-c", "copy", str(output)], stdin=subscription.descriptor,
                             stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    subscription.close()
    client.close()
    track.start_broadcast(wait=True)
    (path,) = track.get("Subscriptions")
    assert me.client.get("org.vitrine.ScreenShare1", path, SUBSCRIPTION, "Subscriber") == client.unique_name
    wait_until(lambda: me.client.get("org.vitrine.ScreenShare1", path, SUBSCRIPTION, "Statistics")["sent"] >= 20, "twenty pictures")
    track.stop_broadcast()
    said, _ = child.communicate(timeout=60)
    assert (child.returncode, said) == (0, "")
    done = subprocess.run(["ffprobe", "-v", "error", "-count_frames", "-show_entries", "stream=nb_read_frames", "-of", "csv=p=0", str(output)],
                          capture_output=True, text=True, timeout=60)
    assert int(done.stdout.strip()) >= 20 and not done.stderr
    assert track.get("Subscriptions") == []


def test_duplicated_descriptor(track):
    """A subscription lives as long as its reading end is open anywhere: a copy of the descriptor is enough."""
    subscription = track.subscribe()
    copy = os.dup(subscription.descriptor)
    subscription.close()
    track.start_broadcast(wait=True)
    assert select.select([copy], [], [], 30)[0] == [copy]
    assert track.get("Subscriptions") == [subscription.path]
    os.close(copy)
    track.wait_until("Subscriptions", [])


# What the subscriber may do with it


@pytest.mark.parametrize("kind", [*stream.SOME, stream.RAW], ids=str)
def test_paused(me, world, track, kind):
    """Paused: nothing is sent; then the stream goes on, with a key frame."""
    subscription = track.subscribe(**kind.options)
    recording = record(subscription, world, "paused")
    track.start_broadcast(wait=True)
    wait_for_more(subscription, 5)
    mark = me.mark()
    subscription.set("Paused", "b", True)
    subscription.wait_for_change("Paused", True, mark)
    sent, received = subscription.statistics["sent"], track.statistics["received"]
    track.wait_until("Statistics", lambda statistics: statistics["received"] > received + 20)
    # What the writer had in hand when it was told.
    assert subscription.statistics["sent"] <= sent + 1
    before = subscription.statistics["keyframes"]
    subscription.set("Paused", "b", False)
    wait_for_more(subscription, 5)
    assert subscription.statistics["keyframes"] > before
    subscription.unsubscribe()
    assert runs(check(recording.wait_for_end())) == ["picture"]


@pytest.mark.parametrize("kind", stream.SOME, ids=str)
def test_key_frame_on_request(world, track, screen, kind):
    """RequestKeyFrame gives a key frame at once, also of a screen that stands still."""
    screen.configure(workload="still")
    track.start_broadcast(wait=True)
    subscription = track.subscribe(**kind.options)
    recording = record(subscription, world, "key")
    subscription.wait_until("Statistics", lambda statistics: statistics["sent"] >= 1)
    for _ in range(3):
        before = subscription.statistics["keyframes"]
        subscription.call("RequestKeyFrame")
        subscription.wait_until("Statistics", lambda statistics: statistics["keyframes"] > before)
    subscription.unsubscribe()
    check(recording.wait_for_end())
    assert sum(block.is_key for block in stream.read(recording.path).blocks) >= 4


@pytest.mark.parametrize("kind", stream.SOME, ids=str)
def test_preset_does_not_disturb_a_stream(world, track, kind):
    """A preset that is written while it runs changes rates at once; the size of a running stream stays, that of a new one follows."""
    old = track.subscribe(**kind.options)
    recordings = [record(old, world, "old")]
    track.start_broadcast(wait=True)
    wait_for_more(old, 5)
    for preset in ("h360p", "native", "h720p"):
        track.set("Preset", "s", preset)
        wait_for_more(old, 3)
    assert old.get("Size") == (640, 360)
    old.unsubscribe()
    check(recordings[0].wait_for_end())


def test_source_that_pauses(world, track, screen):
    """A source that pauses ends no stream: it sends nothing, not even the placeholder, and goes on afterwards."""
    subscription = track.subscribe()
    recording = subscription.record(world.root / "minimised.webm")
    track.start_broadcast(wait=True)
    wait_for_more(subscription, 5)
    screen.pause()
    track.wait_until("SourcePaused", True)
    screen.resume()
    track.wait_until("SourcePaused", False)
    wait_for_more(subscription, 5)
    subscription.unsubscribe()
    assert runs(check(recording.wait_for_end())) == ["picture"]


# Faults: B55
def test_agent_dies(session):
    """The agent is killed: readers get the end of the file, and what they have can be decoded."""
    me, screen = session.agent(), TestScreen(session.client)
    screen.configure(size=(640, 360))
    me.set_screen_share(True, wait=True)
    subscription = me.desktop.subscribe()
    recording = subscription.record(session.root / "killed.webm")
    wait_for_more(subscription, 10)
    session.agent_process.kill()
    started = time.monotonic()
    recording.wait_for_end()
    assert time.monotonic() - started < 30
    assert recording.probe()["streams"][0]["codec_name"] == "vp8"
    screen.wait_until_closed()
