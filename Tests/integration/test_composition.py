# SPDX-License-Identifier: MIT
"""Several sources in one picture: each one's numbers are read back from the cell in which it should be."""

import random
import re
import time
from pathlib import Path

import pytest

import held
import picture
from arrangement import arranged
from contract import BUS_ERROR, refused
from harness import ERROR
from processes import wait_until
from screen import TestScreen
from stream import wait_for_more
from test_frames import Reader

SIZES = [(320, 180), (200, 300), (400, 160)]
NUMBERS_PER_STREAM = 10_000_000


def read(image, sizes, layout="grid"):
    """What each source says of itself in its place; None for one that is not there."""
    whole, places = arranged(sizes, layout)
    assert image.shape[:2] == whole[::-1], f"a picture of {image.shape} is none of {whole}"
    return [picture.read(image[y:y + height, x:x + width]) for x, y, width, height in places]


def outside(image, sizes, layout="grid"):
    """The greatest level beside the sources."""
    rest = image.copy()
    for x, y, width, height in arranged(sizes, layout)[1]:
        # A colour sample at an odd edge reaches one pixel further.
        rest[y:y + height + height % 2, x:x + width + width % 2] = 0
    return rest.max()


def check_whole(image, sizes, layout="grid", streams=None):
    """Every source is in its place, upright and whole; returns their numbers."""
    readings = read(image, sizes, layout)
    assert all(readings), readings
    assert [one.size for one in readings] == [tuple(size) for size in sizes]
    assert [one.number // NUMBERS_PER_STREAM for one in readings] == list(streams or range(len(sizes)))
    assert {(one.orientation, one.channels) for one in readings} == {("normal", "rgb")}
    assert outside(image, sizes, layout) < 12
    return [one.number for one in readings]


def wait_for_all(track, count):
    """Waits until every source has sent its first picture."""
    track.wait_until("Sources", lambda sources: len(sources) == count and all("pixel-size" in one for one in sources))


def begin(me, screen, sizes=SIZES, **given):
    """Shares so many sources with the desktop track."""
    screen.configure(streams=len(sizes), sizes=sizes)
    track = me.set_screen_share(True, wait=True, multiple=True, **given)
    wait_for_all(track, len(sizes))
    return track


@pytest.fixture
def track(me, screen):
    """The desktop track, broadcasting three sources."""
    return begin(me, screen)


class Look:
    """What a reader sees that comes now."""

    def __init__(self, world, track):
        self._world, self._track, self._count = world, track, 0

    def __call__(self):
        self._count += 1
        # Options of its own: an encoder that runs goes on with the size that it has.
        subscription = self._track.subscribe(format="y4m", fps=100 + self._count)
        recording = subscription.record(self._world.root / f"look-{self._count}.y4m")
        subscription.wait_until("Statistics", lambda statistics: statistics["sent"] >= 1)
        subscription.unsubscribe()
        return recording.wait_for_end().frames()[0]

    def until(self, condition, what):
        """The first picture of which `condition` is true."""
        found = []

        def has():
            image = self()
            if condition(image):
                found.append(image)
            return bool(found)

        wait_until(has, what)
        return found[0]

    def settled(self, sizes, layout="grid", streams=None):
        """A picture in which the sources have these sizes; returns their numbers."""
        whole, _ = arranged(sizes, layout)

        def is_there(image):
            if image.shape[:2] != whole[::-1]:
                return False
            readings = read(image, sizes, layout)
            return all(readings) and [one.size for one in readings] == [tuple(size) for size in sizes]

        return check_whole(self.until(is_there, f"sources of {sizes} as a {layout}"), sizes, layout, streams)


@pytest.fixture
def look(world, track):
    return Look(world, track)


# What is in the picture


@pytest.mark.parametrize("layout", ["grid", "row"])
@pytest.mark.parametrize("sizes", [SIZES[:2], SIZES, [(161, 91), (120, 121), (99, 77), (240, 135), (87, 201)], [(160, 90)] * 8], ids=len)
def test_every_source_is_in_the_picture(world, me, screen, sizes, layout):
    """Each source has its own pixels in its place, its numbers only grow, and all else is black."""
    me.desktop.set("Layout", "s", layout)
    track = begin(me, screen, sizes)
    whole, _ = arranged(sizes, layout)
    assert screen.get("LastStart")["multiple"] and track.get("Size") == whole
    assert [source["pixel-size"] for source in track.get("Sources")] == sizes
    assert len({source["node"] for source in track.get("Sources")}) == len(sizes)
    subscription = track.subscribe(format="y4m")
    recording = subscription.record(world.root / "whole.y4m")
    wait_for_more(subscription, 20)
    subscription.unsubscribe()
    found = [check_whole(image, sizes, layout) for image in recording.wait_for_end().frames()]
    for numbers in zip(*found):
        assert list(numbers) == sorted(numbers) and len(set(numbers)) > 3


@pytest.mark.parametrize("form", ["webm", "ivf"])
def test_encoded(world, track, form):
    """A codec gets the composed picture, with what has changed in it: no source's numbers tear."""
    subscription = track.subscribe(format=form)
    recording = subscription.record(world.root / f"encoded.{form}")
    wait_for_more(subscription, 30)
    subscription.unsubscribe()
    images = recording.wait_for_end().frames()
    # The first picture of a stream may come while a codec is still rough.
    found = [read(image, SIZES) for image in images]
    assert sum(all(readings) for readings in found) >= len(found) - 3
    for readings in zip(*found):
        numbers = [one.number for one in readings if one]
        assert numbers == sorted(numbers) and len(set(numbers)) > 5


def test_frames_in_shared_memory(world, track):
    """A reader of frames sees the composed picture, and that no more has changed than the sources say."""
    reader = Reader(track.subscribe(format="frames"))
    before = [0] * len(SIZES)
    for _ in range(30):
        _, planes = reader.take()
        numbers = check_whole(picture.rgb(*planes), SIZES)
        assert all(new >= old for new, old in zip(numbers, before))
        before = numbers
    assert all(before)


def test_the_first_source_begins_it(world, me, screen):
    """Active begins with the first picture of any source; the others are black until theirs, and come live."""
    screen.configure(streams=3, sizes=SIZES, manual=True, first_frame=False)
    track = me.desktop
    track.start_capture()
    me.start_screen_share(True, multiple=True)
    screen.wait_until("Streams", lambda streams: len(streams) == 3 and all(one.get("consumers") and "size" in one for one in streams))
    assert track.state == "choosing"
    look = Look(world, track)
    for index, wanted in ((1, [1]), (2, [1, 2]), (0, [0, 1, 2])):
        wait_until(lambda: push(screen, index, track), f"the first picture of source {index}")
        image = look.until(lambda image: [i for i, one in enumerate(read(image, SIZES)) if one] == wanted, f"sources {wanted}")
        for missing in {0, 1, 2} - set(wanted):
            x, y, width, height = arranged(SIZES)[1][missing]
            assert image[y:y + height, x:x + width].max() < 12
        assert track.state == "active" and track.get("Size") == arranged(SIZES)[0]
        assert [index for index, one in enumerate(track.get("Sources")) if "pixel-size" in one] == wanted


def push(screen, index, track):
    """Has a source send a picture; whether it has come. What is sent while the graph starts may be lost."""
    if next(one for one in screen.streams if one["stream"] == index)["state"] == "streaming":
        screen.push_frames(1, index)
    sources = track.get("Sources")
    return index < len(sources) and "pixel-size" in sources[index]


# Live


def test_layout_is_live(me, world, screen, track, look):
    """Layout is written while it runs: the picture follows at once, also of sources that stand still; a running stream keeps its size."""
    running = track.subscribe(format="y4m")
    recording = running.record(world.root / "running.y4m")
    look.settled(SIZES)
    mark = me.mark()
    track.set("Layout", "s", "row")
    track.wait_for_change("Layout", "row", mark)
    track.wait_until("Size", arranged(SIZES, "row")[0])
    look.settled(SIZES, "row")
    screen.configure(workload="still")
    look.settled(SIZES, "row")
    track.set("Layout", "s", "grid")
    look.settled(SIZES, "grid")
    assert len(track.get("Sources")) == 3
    running.unsubscribe()
    images = recording.wait_for_end().frames()
    assert images.shape[1:3] == arranged(SIZES)[0][::-1]


def test_wrong_layouts(track):
    """A layout that there is not: InvalidArgs, and nothing changes."""
    for wrong in ("", "Grid", "column", "row "):
        error = refused(track.set, "Layout", "s", wrong)
        assert error.name == BUS_ERROR + "InvalidArgs" and "grid" in error.message and "row" in error.message
    refused(track.set, "Layout", "u", 1)
    assert track.get("Layout") == "grid" and track.get("Size") == arranged(SIZES)[0]


def test_a_source_resizes_and_turns(screen, track, look):
    """A source gets another size, and is turned on its side: the others move, and all have their own pixels."""
    for size in ((500, 90), (90, 500), (320, 180)):
        screen.set_size(*size, stream=0)
        sizes = [size, *SIZES[1:]]
        look.settled(sizes)
        track.wait_until("Size", arranged(sizes)[0])
        assert track.get("Sources")[0]["pixel-size"] == size
    screen.configure(transform=1)
    look.settled(SIZES)


def test_sources_go(me, world, screen, track, look):
    """A source whose node goes is taken out, the others go on; with the last one the broadcast ends: source-removed."""
    subscription = track.subscribe(format="webm", placeholder="end")
    recording = subscription.record(world.root / "going.webm")
    wait_for_more(subscription, 5)
    mark = me.mark()
    screen.vanish(stream=1)
    left = [SIZES[0], SIZES[2]]
    look.settled(left, streams=[0, 2])
    assert track.get("Size") == arranged(left)[0]
    assert [source["pixel-size"] for source in track.get("Sources")] == left
    assert (track.state, track.get("LastErrorName")) == ("active", "")
    screen.vanish(stream=0)
    look.settled([SIZES[2]], streams=[2])
    assert [source["pixel-size"] for source in track.get("Sources")] == SIZES[2:] and track.get("Size") == SIZES[2]
    wait_for_more(subscription, 5)
    screen.vanish(stream=2)
    assert track.wait_for_signal("BroadcastFinished", since=mark).value[0] == "source-removed"
    assert (track.state, track.get("Sources"), track.get("Size")) == ("listening", [], (0, 0))
    recording.wait_for_end()
    assert not [one for one in check_decodes(recording) if one.shape[:2] != arranged(SIZES)[0][::-1]]


def check_decodes(recording):
    """A stream that can be decoded from its first byte to its last."""
    return list(recording.frames())


def test_the_desktop_ends_it(me, screen, track):
    """The desktop closes the session: all sources go at once, and the reason is ended-by-desktop."""
    mark = me.mark()
    assert screen.end_session() == 1
    assert track.wait_for_signal("BroadcastFinished", since=mark).value[0] == "ended-by-desktop"
    assert track.state == "listening"


def test_pipewire_ends(make_session):
    """PipeWire ends: pipewire-lost, once."""
    session = make_session()
    me, screen = session.agent(), TestScreen(session.client)
    track = begin(me, screen)
    mark = me.mark()
    session.processes.end(session.pipewire)
    assert track.wait_for_signal("BroadcastFinished", since=mark).value[0] == "pipewire-lost"


def test_sources_pause(screen, track, look):
    """A source that pauses keeps its last picture while the others go on; SourcePaused says that all of them do."""
    screen.pause(1)
    before = look.settled(SIZES)
    image = look.until(lambda image: [one.number for one in read(image, SIZES)][0] > before[0] + 5, "the first source to go on")
    frozen = [one.number for one in read(image, SIZES)][1]
    image = look.until(lambda image: [one.number for one in read(image, SIZES)][2] > before[2] + 30, "the third source to go on")
    assert [one.number for one in read(image, SIZES)][1] == frozen
    assert not track.get("SourcePaused")
    screen.pause()
    track.wait_until("SourcePaused", True)
    screen.resume(0)
    track.wait_until("SourcePaused", False)
    screen.resume()
    look.until(lambda image: [one.number for one in read(image, SIZES)][1] > frozen, "the second source to go on")


def test_formats_are_taken_away(screen, track, look):
    """The session manager takes the format of all sources, of which one pauses: that one keeps its picture, and each goes on with its next format."""
    def numbers(image):
        return [one.number for one in read(image, SIZES)]

    for paused in range(3):
        screen.pause(paused)
        screen.wait_until("Streams", lambda streams, index=paused: streams[index]["state"] == "paused")
        before = look.settled(SIZES)
        screen.clear_format()
        screen.wait_until("Streams", lambda streams, index=paused: ["size" in one for one in streams] == [one != index for one in range(3)])
        others = [index for index in range(3) if index != paused]
        image = look.until(lambda image: all(numbers(image)[one] > before[one] + 5 for one in others), "the others to go on")
        frozen = numbers(image)[paused]
        assert track.state == "active" and not track.get("SourcePaused")
        assert [source["pixel-size"] for source in track.get("Sources")] == SIZES
        screen.resume(paused)
        look.until(lambda image: numbers(image)[paused] > frozen, "the one that paused to go on")
    check_whole(look(), SIZES)


def test_a_source_that_has_sent_nothing_yet_is_no_reason_not_to_be_paused(me, screen):
    """SourcePaused says that nothing comes, of any source: also where one of them never began."""
    screen.configure(streams=2, sizes=SIZES[:2], manual=True, first_frame=False)
    track = me.desktop
    track.start_capture()
    me.start_screen_share(True, multiple=True)
    screen.wait_until("Streams", lambda streams: len(streams) == 2 and all(one.get("consumers") and "size" in one for one in streams))
    wait_until(lambda: push(screen, 1, track), "the first picture of the second source")
    assert not track.get("SourcePaused")
    screen.pause(1)
    track.wait_until("SourcePaused", True)
    screen.resume(1)
    track.wait_until("SourcePaused", False)


def test_more_than_there_is_room_for(world, me, screen):
    """Sixteen sources are shown, and the log says that there were more."""
    screen.configure(streams=17, sizes=[(64, 36)] * 17)
    wait_for_all(me.set_screen_share(True, wait=True, multiple=True), 16)
    assert "17 sources were chosen" in world.processes.log("agent")


# Sources that misbehave

ODDITIES = [
    {"corrupt_header_every": 3}, {"cursor_only_every": 2, "buffers": 2}, {"memory": "memptr", "damage": "garbage"}, {"transform": 1, "header": False},
    {"offset": 4096, "stride_padding": 36, "corrupt_chunk_every": 2}, {"pts": "backwards", "sequence_gap_every": 3}, {"fps_min": 5, "fps": 120},
]


# Faults: B03 B12 B14 B15 B20 B23 B35
@pytest.mark.parametrize("settings", ODDITIES, ids=str)
def test_odd_sources(world, me, screen, settings):
    """Whatever all sources do with their buffers and say of them: each picture has every source whole, and none goes back."""
    screen.configure(**settings)
    track = begin(me, screen)
    Look(world, track).settled(SIZES)
    subscription = track.subscribe(format="y4m")
    recording = subscription.record(world.root / "odd.y4m")
    wait_for_more(subscription, 12)
    subscription.unsubscribe()
    numbers = [check_whole(image, SIZES) for image in recording.wait_for_end().frames()]
    assert all(list(column) == sorted(column) for column in zip(*numbers))


# Faults: B01 B08 B10 B33
@pytest.mark.parametrize("seed", range(3))
def test_one_source_that_never_stands_still(world, me, screen, track, look, seed):
    """One of three changes its size, pauses, comes back, while the layout changes and the track is muted, and goes at last: the others stand it."""
    moments = random.Random(seed)
    subscriptions = [track.subscribe(format=form) for form in ("webm", "y4m")]
    recordings = [one.record(world.root / f"restless-{one.get('Format')}") for one in subscriptions]
    mark = me.mark()
    for _ in range(40):
        act = moments.choice(["size", "size", "size", "pause", "resume", "layout", "mute"])
        if act == "size":
            screen.set_size(*moments.choice([(90, 500), (500, 90), (161, 91), (1, 1), (3, 700), (320, 180)]), stream=1)
        elif act == "layout":
            track.set("Layout", "s", moments.choice(["grid", "row"]))
        elif act == "mute":
            track.mute(moments.random() < 0.5)
        else:
            (screen.pause if act == "pause" else screen.resume)(1)
    track.mute(False)
    track.set("Layout", "s", "grid")
    screen.resume(1)
    screen.set_size(*SIZES[1], stream=1)
    # What was asked for last may take a while to come: it begins as it ends.
    before, whole = look.settled(SIZES), arranged(SIZES)[0]
    look.until(lambda image: image.shape[:2] == whole[::-1] and all(
        now and now.number > then for now, then in zip(read(image, SIZES), before)), "all to go on")
    screen.set_size(500, 90, stream=1)
    screen.vanish(stream=1)
    look.settled([SIZES[0], SIZES[2]], streams=[0, 2])
    assert track.state == "active" and not [e for e in me.events[mark:] if e.name == "BroadcastFinished"]
    for one, recording in zip(subscriptions, recordings):
        one.unsubscribe()
        assert len(check_decodes(recording.wait_for_end())) > 3


# What is hidden


def test_crop_and_masks(world, screen, track, look):
    """They are in pixels of the composed picture, across sources. What they hide of a source stays hidden when sources move, until they are set anew."""
    whole, places = arranged(SIZES)
    x, y = places[1][0], places[1][1]
    track.set("Masks", "a(iiuu)", [(x - 40, y, 80, 60)])
    image = look()
    assert image[y:y + 60, x - 40:x + 40].max() < 12 and image[y + 64:y + 90, x + 4:x + 60].max() > 60
    track.set("Crop", "(iiuu)", (x - 100, 0, 200, y + 100))
    assert track.get("Size") == (200, y + 100)
    image = look()
    assert image.shape[:2] == (y + 100, 200) and image[y:y + 60, 60:140].max() < 12
    track.set("Layout", "s", "row")
    # The second source begins 20 pixels from the left now, with its own mask, and is seen as far as it was.
    image = look()
    assert image.shape[:2] == (y + 100, 200)
    assert image[:60, 20:60].max() < 12 and image[64:90, 24:60].max() > 60 and image[:, 122:].max() < 12
    screen.vanish(stream=0)
    track.wait_until("Sources", lambda sources: len(sources) == 2)
    # The third source, of which nothing was seen, is where the crop is.
    look.until(lambda image: image.max() < 12, "nothing")
    track.set("Crop", "(iiuu)", (0, 0, 0, 0))
    look.until(lambda image: image[:60, :40].max() < 12 and image[64:90, 4:60].max() > 60, "the mask with its source")
    track.set("Masks", "a(iiuu)", [])
    look.settled(SIZES[1:], "row", streams=[1, 2])


def test_nothing_hidden_is_ever_seen(world, screen, track):
    """A stream that runs while a mask is set, moving sources below it: from the reply on every picture is masked."""
    screen.configure(fps=60)
    subscription = track.subscribe(format="y4m")
    recording = subscription.record(world.root / "masked.y4m")
    wait_for_more(subscription, 5)
    track.set("Masks", "a(iiuu)", [(0, 0, 600, 300)])
    wait_for_more(subscription, 30)
    subscription.unsubscribe()
    images = recording.wait_for_end().frames()
    # The third source goes on below.
    levels = [image[:300].max() for image in images]
    # What was in the pipe before the reply may be plain; nothing after the first black one is.
    first = next(index for index, level in enumerate(levels) if level < 12)
    assert len(levels) > first + 20 and max(levels[first:]) < 12


def test_muted(world, screen, track, look):
    """Muting, stopping and starting again are as with one source."""
    subscription = track.subscribe(format="webm")
    recording = subscription.record(world.root / "muted.webm")
    wait_for_more(subscription, 5)
    track.mute()
    sent = track.statistics["received"]
    track.wait_until("Statistics", lambda statistics: statistics["received"] > sent + 20)
    track.mute(False)
    wait_for_more(subscription, 5)
    track.stop_broadcast()
    track.start_broadcast(wait=True)
    wait_for_all(track, 3)
    wait_for_more(subscription, 5)
    subscription.unsubscribe()
    recording.wait_for_end()
    seen = ["picture" if read(image, SIZES)[0] else "placeholder" for image in recording.frames()[3:]]
    assert [one for index, one in enumerate(seen) if index == 0 or one != seen[index - 1]] == [
        "picture", "placeholder", "picture", "placeholder", "picture"]


# One source, and another choice


def test_one_source_is_not_composed(me, world, screen):
    """The person chooses one: it is captured as without the option, whatever Layout says, which is kept."""
    screen.configure(streams=1, size=(500, 301))
    track = me.set_screen_share(True, wait=True, multiple=True)
    assert screen.get("LastStart")["multiple"] and track.get("Size") == (500, 301)
    assert track.statistics["pool-capacity"] == 12
    received = Look(world, track)
    track.set("Layout", "s", "row")
    assert track.get("Layout") == "row" and track.get("Size") == (500, 301)
    assert picture.read(received()).size == (500, 301)
    track.stop_broadcast()
    assert track.get("Layout") == "row"


def test_multiple_is_asked_for(me, screen):
    """Without the option one source is asked for, and one is taken, whatever the desktop answers."""
    screen.configure(streams=3, sizes=SIZES)
    track = me.set_screen_share(True, wait=True)
    assert not screen.get("LastStart").get("multiple")
    assert len(track.get("Sources")) == 1 and track.get("Size") == SIZES[0]
    assert refused(me.set_screen_share, True, multiple=True).name == ERROR + "Busy"


def test_capability(me):
    assert me.get("Capabilities")["multiple"] is True and me.get("DefaultOptions")["multiple"] is False


def test_switch_source(me, world, screen, track, look):
    """Another choice replaces the whole set: several by one, one by several, several by others; streams go on, and the old are never seen again."""
    subscription = track.subscribe(format="y4m")
    recording = subscription.record(world.root / "switched.y4m")
    wait_for_more(subscription, 5)
    steps = [[(300, 200)], [(200, 100), (100, 200)], [(150, 150), (151, 99), (80, 60), (200, 90)]]
    for sizes in steps:
        screen.configure(streams=len(sizes), sizes=sizes)
        mark = me.mark()
        # The running sources take their new sizes, too.
        track.switch_source(wait=True)
        track.wait_for_change("Sources", since=mark)
        wait_for_all(track, len(sizes))
        look.settled(sizes)
        screen.wait_until("OpenSessions", 1)
        assert len(track.get("Sources")) == len(sizes) and track.state == "active"
        wait_for_more(subscription, 5)
        assert subscription.get("Size") == arranged(SIZES)[0]
    subscription.unsubscribe()
    recording.wait_for_end()
    assert balanced(track)


def test_switch_is_cancelled(me, world, screen, track, look):
    """The picker is closed without a choice, or the choice delivers nothing and is stopped: the several sources go on."""
    screen.configure(answer="cancel")
    assert refused(track.switch_source, wait=True).name == ERROR + "Cancelled"
    look.settled(SIZES)
    screen.configure(answer="ok", fault="dead-node")
    assert refused(track.switch_source, wait=True)
    look.settled(SIZES)
    screen.configure(fault="none")
    before = look.settled(SIZES)
    look.until(lambda image: [one.number for one in read(image, SIZES)][0] > before[0], "the sources to go on")


# What it counts, and what it costs


def balanced(track):
    """Whether what has come is what became of it, up to what is in flight."""
    counts = track.statistics
    names = ("delivered", "coalesced", "unread", "corrupted", "cursor-only", "dropped")
    return 0 <= counts["received"] - sum(counts[name] for name in names) <= 20


def test_statistics(world, screen, track):
    """They are those of all sources: what was sent was received, and became something that adds up."""
    screen.configure(corrupt_header_every=7, cursor_only_every=11, fps=60)
    subscription = track.subscribe(format="y4m")
    recording = subscription.record(world.root / "counted.y4m")
    wait_for_more(subscription, 60)
    assert balanced(track)
    screen.configure(manual=True)
    seen = []

    def is_quiet():
        seen.append(track.statistics["received"])
        return len(seen) > 10 and len(set(seen[-10:])) == 1

    wait_until(is_quiet, "the counters to stand still")
    counts = track.statistics
    assert counts["corrupted"] > 5 and counts["cursor-only"] > 5 and counts["delivered"] > 60
    produced = screen.get("FramesProduced")
    subscription.unsubscribe()
    for image in recording.wait_for_end().frames()[3:]:
        check_whole(image, SIZES)
    screen.vanish(stream=0)
    track.wait_until("Sources", lambda sources: len(sources) == 2)
    assert track.statistics["received"] >= counts["received"] and balanced(track) and produced >= counts["received"] // 2


def test_without_a_reader(screen, track):
    """Nobody reads: what comes is unread."""
    before = track.statistics
    track.wait_until("Statistics", lambda statistics: statistics["received"] > before["received"] + 60)
    now = track.statistics
    assert now["unread"] > before["unread"] + 40 and now["delivered"] == before["delivered"] and balanced(track)


def wakeups(session):
    total = 0
    for task in Path(f"/proc/{session.agent_process.pid}/task").iterdir():
        if (task / "comm").read_text().strip() == "capture" or (task / "comm").read_text().startswith("enc-"):
            total += sum(int(count) for count in re.findall(r"ctxt_switches:\t(\d+)", (task / "status").read_text()))
    return total


def test_a_still_set_costs_nothing(world, me, screen):
    """Sources that stand still, with a reader: nothing is composed, sent or woken up."""
    screen.configure(workload="still")
    track = begin(me, screen)
    subscription = track.subscribe(format="webm")
    recording = subscription.record(world.root / "still.webm")
    subscription.wait_until("Statistics", lambda statistics: statistics["sent"] >= 1)

    def is_quiet():
        sent, count = subscription.statistics["sent"], wakeups(world)
        time.sleep(3)
        return subscription.statistics["sent"] == sent and wakeups(world) - count <= 2

    wait_until(is_quiet, "nothing to happen", 60)
    received = track.statistics["received"]
    count = wakeups(world)
    time.sleep(5)
    assert wakeups(world) - count <= 3 and track.statistics["received"] == received
    subscription.unsubscribe()
    assert read(recording.wait_for_end().frames()[-1], SIZES)[0]


def test_only_what_is_damaged(me, world, screen):
    """One source changes a little: a reader of frames hears of that, and of nothing else."""
    screen.configure(manual=True)
    track = begin(me, screen)
    reader = Reader(track.subscribe(format="frames"))
    reader.take()
    before = track.statistics["received"]
    wait_until(lambda: screen.push_frames(1, 1) and track.statistics["received"] > before, "a picture")
    frame, _ = reader.take()
    _, places = arranged(SIZES)
    x, y, width, height = places[1]
    assert frame.damage, frame
    for left, top, across, down in frame.damage:
        assert x <= left and left + across <= x + width and y <= top and top + down <= y + height, (frame.damage, places[1])


def test_memory_and_descriptors(make_session):
    """Many rounds: no descriptor, no thread and no memory is left behind."""
    session = make_session()
    me, screen = session.agent(), TestScreen(session.client)
    screen.configure(streams=3, sizes=SIZES)
    pid = session.agent_process.pid

    def a_round():
        track = me.set_screen_share(True, wait=True, multiple=True)
        wait_for_all(track, 3)
        assert track.statistics["footprint"] < 12 * 600 * 460 * 3 // 2
        me.set_screen_share(False)
        screen.wait_until_closed()

    for _ in range(10):
        a_round()
    wait_until(lambda: me.desktop.statistics["footprint"] == 0, "the pool to be empty")
    descriptors, threads, memory = held.counts(pid)
    for _ in range(30):
        a_round()
    wait_until(lambda: me.desktop.statistics["footprint"] == 0, "the pool to be empty")
    wait_until(lambda: all(now <= then for now, then in zip(held.counts(pid), (descriptors, threads))), "descriptors and threads to go")
    assert held.memory(pid) <= memory + (1 << 20)
    assert balanced(me.desktop)


# The pointer


def test_the_pointer(me, world, screen):
    """Sent beside the pixels, it is drawn in its place in the composed picture, of the source that it is in."""
    screen.configure(manual=True, cursor_size=(24, 24), cursor_hotspot=(0, 0), cursor_position=(100, 100), cursor_shape=4)
    track = begin(me, screen, cursor="metadata")
    look = Look(world, track)
    screen.configure(cursor_position=(60, 130))
    _, places = arranged(SIZES)

    def is_there(image):
        # The test screen moves the pointers of all its sources; one of them is shown.
        marks = [(x + 60, y + 130) for x, y, _, _ in places]
        hits = [tuple(int(part) for part in image[y + 16, x + 4]) for x, y in marks]
        return sum(red > 180 and green < 90 and blue > 180 for red, green, blue in hits) == 1

    look.until(is_there, "one pointer in its place")
