# SPDX-License-Identifier: MIT
"""What broke others does not break Vitrine: the faults of faults.py, each alone and together with those that it meets in the field."""

import random
import signal

import pytest
from gi.repository import GLib

import faults
import matroska
import picture
from contract import refused
from harness import ERROR, PORTAL, Session
from processes import wait_until
from screen import TestScreen
from story import story
from stream import wait_for_more
from test_frames import Reader, reading


@pytest.fixture
def track(me, screen):
    """The desktop track, listening, in front of a small screen."""
    screen.configure(size=(320, 200))
    me.desktop.start_capture()
    return me.desktop


class Watch:
    """Reads a track from its start on; `whole` judges what came."""

    def __init__(self, world, track, form="y4m", **given):
        self.subscription = track.subscribe(format=form, **given)
        self.recording = self.subscription.record(world.root / f"watch.{form}")

    def more(self, count=4):
        """Waits until so many more pictures were sent."""
        wait_for_more(self.subscription, count)

    def pictures(self):
        """What each picture of the ended stream says of itself."""
        self.subscription.unsubscribe()
        return picture.read_all(self.recording.wait_for_end().frames())

    def whole(self):
        """Every picture is one that the source painted, upright, and none is older than the one before."""
        found = self.pictures()
        assert all(one is not None for one in found), found
        assert {(one.orientation, one.channels) for one in found} == {("normal", "rgb")}
        numbers = [one.number for one in found]
        assert numbers == sorted(numbers) and len(set(numbers)) > 2, numbers
        return found


def unread_for_a_while(track):
    """Waits until more pictures came than a pipe and a queue hold."""
    received = track.statistics["received"]
    track.wait_until("Statistics", lambda statistics: statistics["received"] > received + 60, seconds=60)


def named(settings):
    return "-".join(f"{key}={value}" for key, value in settings.items()).replace(" ", "") or "nothing"


# The list itself


def test_every_fault_of_the_list_has_a_test():
    """Each fault is named by a test that reproduces it, or is said not to apply, with the reason; and no test names one that is not listed."""
    marked = faults.marked_tests()
    assert set(marked) <= set(faults.FAULTS)
    assert {number for number in faults.FAULTS if number not in marked} == set(faults.NOT_APPLICABLE)
    assert all(" " in reason for reason in faults.NOT_APPLICABLE.values())


# Sources that do something odd, alone and in pairs

ODDITIES = [
    {"resize_every": 3, "resize_to": (202, 306)}, {"stride_padding": 256}, {"offset": 4096}, {"crop": (8, 4, 240, 180)}, {"transform": 1},
    {"buffers": 2}, {"buffers": 3}, {"offset": 4096, "stride_padding": 36}, {"header": False}, {"planes": 2}, {"memory": "memptr"},
    {"corrupt_header_every": 3}, {"corrupt_chunk_every": 3}, {"cursor_only_every": 2}, {"sequence_gap_every": 3}, {"damage": "garbage"},
    {"damage": "huge"}, {"damage": "full"}, {"damage": "absent"},
    {"max_rate": "zero"}, {"max_rate": "fixed"}, {"max_rate": "absent"}, {"fps_min": 5, "fps": 120},
    {"pts": "invalid"}, {"pts": "zero"}, {"pts": "equal"}, {"pts": "backwards"}, {"pts": "old"},
    {"cursor": "normal", "cursor_size": (24, 24)}, {"cursor": "huge", "cursor_size": (256, 256)}, {"cursor": "outside"}, {"cursor": "invalid"},
    {"cursor": "hidden"}, {"decoy": True},
]

PAIRS = [
    {"corrupt_header_every": 3, "resize_every": 4, "resize_to": (204, 306)},
    {"corrupt_chunk_every": 2, "resize_every": 3, "resize_to": (640, 360), "buffers": 2},
    {"cursor_only_every": 2, "resize_every": 5, "resize_to": (100, 90), "memory": "memptr"},
    {"crop": (8, 4, 240, 180), "transform": 1}, {"crop": (40, 20, 200, 160), "transform": 7, "corrupt_header_every": 4},
    {"transform": 3, "resize_every": 6, "resize_to": (260, 300)}, {"transform": 5, "offset": 512, "stride_padding": 20},
    {"cursor_only_every": 2, "buffers": 2, "cursor": "outside"}, {"pts": "backwards", "sequence_gap_every": 2, "corrupt_header_every": 5},
    {"memory": "memptr", "damage": "garbage", "resize_every": 5, "resize_to": (400, 240)},
    {"crop": (8, 4, 180, 160), "resize_every": 5, "resize_to": (260, 300)}, {"offset": 4096, "stride_padding": 36, "resize_every": 4, "resize_to": (203, 307)},
    {"pts": "equal", "fps_min": 5, "fps": 120}, {"header": False, "cursor_only_every": 2, "resize_every": 4, "resize_to": (204, 306)},
    {"planes": 2, "buffers": 2, "resize_every": 3, "resize_to": (400, 240)}, {"memory": "memptr", "transform": 7, "crop": (8, 4, 240, 180)},
    {"damage": "huge", "transform": 6, "corrupt_chunk_every": 3}, {"max_rate": "absent", "fps_min": 5, "fps": 120, "buffers": 2},
]


def reads_whole_pictures(world, track, screen, settings, count):
    """A reader of that source gets so many pictures, whole and in order, and nothing else."""
    screen.configure(**settings)
    watch = Watch(world, track)
    track.start_broadcast(wait=True)
    watch.more(count)
    watch.whole()


# Faults: B03 B05 B12 B14 B15 B17 B23 B27 B29 B35
@pytest.mark.parametrize("settings", ODDITIES, ids=named)
def test_odd_sources(world, track, screen, settings):
    """Whatever a source does with its buffers and what it says of them: readers get whole pictures, in order, and nothing else."""
    reads_whole_pictures(world, track, screen, settings, 8)


# Faults: B01 B03 B14 B15 B20 B23
@pytest.mark.parametrize("settings", PAIRS, ids=named)
def test_odd_sources_in_pairs(world, track, screen, settings):
    """The same, where two or three of them meet."""
    reads_whole_pictures(world, track, screen, settings, 12)


# Faults: B01 B03 B14 B15 B20 B23
@pytest.mark.parametrize("settings", PAIRS, ids=named)
def test_odd_sources_in_pairs_read_in_shared_memory(track, screen, settings):
    """A reader of frames in shared memory gets the same whole pictures: its own size and sequence go on through all that the source does."""
    screen.configure(**settings)
    reader = Reader(track.subscribe(format="frames"))
    track.start_broadcast(wait=True)
    taken = [reader.take() for _ in range(14)]
    reader.subscription.unsubscribe()
    taken += reader.take_all()
    reader.close()
    shown = [reading(planes) for _, planes in taken]
    assert all(one is not None for one in shown), shown
    assert {(one.orientation, one.channels) for one in shown} == {("normal", "rgb")}
    assert len({(frame.width, frame.height) for frame, _ in taken}) == 1
    assert all(one.time <= next.time and one.sequence < next.sequence for (one, _), (next, _) in zip(taken, taken[1:]))
    numbers = [one.number for one in shown]
    assert numbers == sorted(numbers) and len(set(numbers)) > 2, numbers


# Faults: B24
@pytest.mark.parametrize("settings", [{}, {"buffers": 2, "workload": "video"}, {"memory": "memptr"}, {"cursor_only_every": 2}, {"transform": 5}], ids=named)
def test_a_source_that_paints_in_what_comes_back(world, track, screen, settings):
    """Each picture is read before its buffer goes back: a source that paints over it at once is never caught doing so."""
    screen.configure(**settings)
    watch = Watch(world, track)
    track.start_broadcast(wait=True)
    watch.more(2)
    # Before a link runs PipeWire gives the first buffer back unread, and again: not from the start on.
    screen.configure(overwrite=True)
    watch.more(20)
    watch.whole()


# Faults: B35
@pytest.mark.parametrize("pts", ["invalid", "zero", "equal", "backwards", "old"])
def test_times_only_grow(world, track, screen, pts):
    """Whatever time stamps a source gives, the times of a stream strictly grow."""
    screen.configure(pts=pts, fps=60)
    watch = Watch(world, track, "webm")
    track.start_broadcast(wait=True)
    watch.more(20)
    watch.whole()
    times = matroska.read(watch.recording.path).times
    assert all(one < next for one, next in zip(times, times[1:])), times


# Faults: B14 B15
def test_what_is_no_picture_is_counted(me, track, screen):
    """Corrupted buffers and those with a cursor alone are counted as such, and delivered to nobody; the track stays active."""
    screen.configure(manual=True)
    track.start_broadcast(wait=True)
    before = track.statistics
    for send, counter in [(lambda: screen.corrupt("header"), "corrupted"), (lambda: screen.corrupt("chunk"), "corrupted"),
                          (screen.emit_cursor_only, "cursor-only")] * 2:
        count = track.statistics[counter]

        # PipeWire replaces a buffer that was not taken yet by a newer one.
        def is_counted():
            send()
            return track.statistics[counter] > count

        wait_until(is_counted, counter)
    now = track.statistics
    assert (now["delivered"], now["coalesced"], track.state) == (before["delivered"], before["coalesced"], "active")


# Faults: B18 B12
@pytest.mark.parametrize("form", ["webm", "y4m"])
@pytest.mark.parametrize("size", [(1, 1), (3, 5), (2, 1), (641, 479), (1279, 719)], ids=lambda size: "x".join(map(str, size)))
def test_odd_sizes(world, track, screen, size, form):
    """Odd sizes, down to a single pixel, are streams like any other; the size is told as it is."""
    screen.configure(size=size)
    watch = Watch(world, track, form)
    track.start_broadcast(wait=True)
    assert track.get("Sources")[0]["pixel-size"] == size
    watch.more(3)
    if min(size) > 20:
        assert {one.size for one in watch.whole()} == {size}
    else:
        watch.subscription.unsubscribe()
        assert len(watch.recording.wait_for_end().frames()) >= 3


# Faults: B01 B02
def test_a_window_that_grows_from_small_to_big(world, track, screen):
    """The encoder of a reader that came when the window was small serves it when it is big, one with options of its own that comes then gets the big one."""
    screen.configure(size=(64, 48))
    old = Watch(world, track, "webm")
    track.start_broadcast(wait=True)
    old.more()
    screen.set_size(1280, 720)
    track.wait_until("Size", (1280, 720))
    new = track.subscribe(bitrate=3_000_000)
    recording = new.record(world.root / "new.webm")
    new.wait_until("Statistics", lambda statistics: statistics["sent"] >= 4)
    old.more()
    screen.set_size(64, 48)
    track.wait_until("Size", (64, 48))
    for one in (old.subscription, new):
        one.unsubscribe()
    assert old.recording.wait_for_end().frames().shape[1:3] == (48, 64)
    assert recording.wait_for_end().frames().shape[1:3] == (720, 1280)


# Faults: B01 B18
def test_a_size_that_changes_as_the_source_pauses(world, track, screen):
    """PipeWire 0.3.65 stops to pass on pictures now and then when a source changes its size just as it pauses: they come again all the same."""
    track.start_broadcast(wait=True)
    sizes = [(320, 200), (640, 360), (202, 308), (641, 479), (100, 90)]
    for turn in range(40):
        screen.set_size(*sizes[turn % len(sizes)])
        screen.pause()
        track.wait_until("SourcePaused", True)
        screen.resume()
        received = track.statistics["received"]
        wait_until(lambda: track.statistics["received"] > received + 2, f"pictures after turn {turn}")
        track.wait_until("Sources", lambda sources: sources[0]["pixel-size"] == sizes[turn % len(sizes)])


# Faults: B01
@pytest.mark.parametrize("meanwhile", ["muted", "subscription-paused", "unread", "source-paused"])
def test_resized_while_nobody_looks(world, track, screen, meanwhile):
    """A resize while the track is muted, the subscription or the source paused, or the reader busy: afterwards the new picture is there."""
    watch = Watch(world, track, "webm") if meanwhile != "unread" else None
    stuck = track.subscribe(format="y4m")
    track.start_broadcast(wait=True)
    if watch:
        watch.more()
    if meanwhile == "muted":
        track.mute()
    elif meanwhile == "subscription-paused":
        watch.subscription.set("Paused", "b", True)
    elif meanwhile == "source-paused":
        screen.pause()
        track.wait_until("SourcePaused", True)
    else:
        unread_for_a_while(track)
    for size in [(400, 300), (202, 308), (500, 280)]:
        screen.set_size(*size)
    if meanwhile == "source-paused":
        screen.resume()
    track.wait_until("Sources", lambda sources: sources[0]["pixel-size"] == (500, 280))
    if meanwhile == "muted":
        track.mute(False)
    elif meanwhile == "subscription-paused":
        watch.subscription.set("Paused", "b", False)
    watch = watch or Watch(world, track, "webm")
    watch.more()
    shown = [one for one in watch.pictures() if one]
    assert shown[-1].size == (500, 280) and track.state == "active"
    numbers = [one.number for one in shown]
    assert numbers == sorted(numbers)
    stuck.close()


# Faults: B20
def test_turned_while_shared(world, track, screen):
    """An output that is rotated while it is shared is upright before and after, through all eight transforms."""
    watch = Watch(world, track, "webm")
    track.start_broadcast(wait=True)
    for transform in [1, 2, 3, 4, 5, 6, 7, 0]:
        screen.configure(transform=transform)
        watch.more()
    watch.whole()


# Faults: B13
@pytest.mark.parametrize("unused", [0, 255])
@pytest.mark.parametrize("pixel_format", ["BGRx", "BGRA", "RGBx", "xBGR", "ARGB"])
def test_the_unused_byte_is_not_looked_at(world, track, screen, pixel_format, unused):
    """Colours are those of the screen, whatever the fourth byte of a pixel holds."""
    screen.configure(formats=[pixel_format], unused_byte=GLib.Variant("y", unused))
    watch = Watch(world, track)
    track.start_broadcast(wait=True)
    watch.more(3)
    watch.whole()


# Lies that end for a while what can be seen

LIES = [
    {"short_memory": True, "sealed": False}, {"chunk_stride": -4}, {"chunk_stride": 2 ** 31 - 1}, {"chunk_stride": -2 ** 31 + 1}, {"chunk_stride": 3},
    {"chunk_size": 2 ** 31}, {"chunk_size": 0}, {"chunk_size": 7}, {"planes": 0}, {"crop": (-100, -100, 50, 50)}, {"crop": (2 ** 31 - 1, 0, 2 ** 32 - 1, 2 ** 32 - 1)},
]


# Faults: B10 B15 B23
@pytest.mark.parametrize("settings", LIES, ids=named)
def test_lies_are_survived(world, track, screen, settings):
    """A source that lies about its memory in the middle of a share costs pictures at most; when it is honest again they come again."""
    watch = Watch(world, track)
    track.start_broadcast(wait=True)
    watch.more(3)
    screen.configure(**settings)
    produced = screen.get("FramesProduced")
    wait_until(lambda: screen.get("FramesProduced") > produced + 6, "six pictures of a liar")
    screen.reset()
    screen.configure(size=(320, 200))
    watch.more(6)
    assert track.state == "active"
    last = watch.pictures()[-1]
    assert last is not None and last.size == (320, 200)


# Only a few buffers, only one picture


# Faults: B03 B04 B05
@pytest.mark.parametrize("buffers", [1, 2])
def test_the_only_picture_is_shown(world, track, screen, buffers):
    """A source of one or two buffers that paints a single picture is active with it, and a reader with a limit of one picture a second has it."""
    screen.configure(buffers=buffers, workload="still")
    watch = Watch(world, track, fps=1)
    track.start_broadcast(wait=True)
    watch.subscription.wait_until("Statistics", lambda statistics: statistics["sent"] >= 1)
    (number,) = {one.number for one in watch.pictures()}
    assert number == screen.streams[0]["number"]
    # How long ago the last one came is there to see.
    age = track.statistics["last-frame-age-us"]
    track.wait_until("Statistics", lambda statistics: statistics["last-frame-age-us"] > age)


# Faults: B04 B37
@pytest.mark.parametrize("form", ["y4m", "frames"])
@pytest.mark.parametrize("buffers", [0, 2, 3])
def test_the_last_picture_of_a_burst(world, track, screen, buffers, form):
    """A source that paints a burst at once and then nothing: a reader with a limit of five a second has the last one of it, every time."""
    screen.configure(buffers=buffers, manual=True, fps=240)
    watch = Watch(world, track, fps=5) if form == "y4m" else None
    reader = Reader(track.subscribe(format="frames", fps=5)) if form == "frames" else None
    track.start_broadcast(wait=True)
    for count in (30, 1, 7):
        last = screen.push_frames(count)
        if reader:
            reader.take_until(lambda _, planes: reading(planes).number == last)
        else:
            track.wait_until("Statistics", lambda statistics: statistics["last-frame-age-us"] > 300_000)
    if watch:
        assert watch.pictures()[-1].number == last
    else:
        reader.close()


# Faults: B03 B05
def test_slow_readers_of_a_small_pool(world, track, screen):
    """Readers that stop reading and encoders that are busy do not keep a source's two buffers: it paints on, and others see it."""
    screen.configure(buffers=2, workload="video", size=(1280, 720), fps=60)
    stuck = [track.subscribe(format=form, bitrate=100_000_000) for form in ("webm", "y4m", "y4m")]
    watch = Watch(world, track, "webm", max_size=(320, 320))
    track.start_broadcast(wait=True)
    unread_for_a_while(track)
    produced = screen.streams[0]["frames"]
    screen.wait_until("Streams", lambda streams: streams[0]["frames"] > produced + 60, seconds=60)
    watch.more()
    watch.whole()
    for one in stuck:
        one.close()


# Sources that stop for a while, and those that do not come back


def _told(me, mark):
    """Each BroadcastFinished and StartFailed since a mark."""
    return [(m.name, m.value[0]) for m in story(me, mark) if m.what == "signal" and m.name != "BroadcastStarted"]


# Faults: B06 B08 B58
@pytest.mark.parametrize("times", [1, 5])
def test_paused_and_resumed(world, track, screen, times):
    """A window that is minimised and shown again, once or many times, is the same share; SourcePaused says which of both it is."""
    watch = Watch(world, track, "webm")
    track.start_broadcast(wait=True)
    for _ in range(times):
        watch.more()
        screen.pause()
        track.wait_until("SourcePaused", True)
        assert (track.state, track.get("IsBroadcastActive")) == ("active", True)
        screen.resume()
        track.wait_until("SourcePaused", False)
    watch.more()
    watch.whole()


# Faults: B07 B44 B58
@pytest.mark.parametrize("order", ["pause-end", "end-pause", "pause-vanish", "pause-vanish-end", "vanish-end", "end-vanish", "end-end"])
def test_pauses_and_ends_in_any_order(me, track, screen, order):
    """A share that the desktop ends is over once, for the stronger reason, whatever the source did before; no new picker is opened."""
    screen.configure(keep_node=True)
    track.start_broadcast(wait=True)
    pickers, mark = screen.get("PickersOpened"), me.mark()
    for step in order.split("-"):
        {"pause": screen.pause, "end": screen.end_session, "vanish": screen.vanish}[step]()
    track.wait_for_signal("BroadcastFinished", since=mark)
    reason = "ended-by-desktop" if "end" in order else "source-removed"
    screen.reset()
    screen.vanish()
    screen.wait_until_closed()
    assert _told(me, mark) == [("BroadcastFinished", reason)]
    assert (track.state, screen.get("PickersOpened")) == ("listening", pickers)
    screen.configure(size=(320, 200))
    track.start_broadcast(wait=True)


# Faults: B44
@pytest.mark.parametrize("moment", ["picker", "first-frame"])
def test_the_session_is_closed_during_a_start(me, track, screen, moment):
    """The desktop closes the session while the picker is open, or before the first picture: the start is cancelled, nothing was broadcast."""
    screen.configure(**({"answer": "never"} if moment == "picker" else {"manual": True, "first_frame": False}))
    mark = me.mark()
    pending = track.begin_broadcast(wait=True)
    screen.wait_for_picker() if moment == "picker" else screen.wait_for_consumer()
    assert screen.end_session() == 1
    assert refused(pending.wait).name == ERROR + "Cancelled"
    assert _told(me, mark) == [("StartFailed", ERROR + "Cancelled")]
    screen.reset()
    track.start_broadcast(wait=True)


# Faults: B09 B10
def test_a_source_that_went_and_a_picker_that_never_answers(me, track, screen):
    """An output is unplugged without a word, and the desktop's next picker hangs: it can be given up, and the one after that works."""
    screen.configure(cursor_only_every=2, corrupt_chunk_every=3)
    track.start_broadcast(wait=True)
    mark = me.mark()
    screen.vanish()
    assert track.wait_for_signal("BroadcastFinished", since=mark).value[0] == "source-removed"
    screen.wait_until_closed()
    screen.configure(answer="never")
    pending = track.begin_broadcast(wait=True)
    screen.wait_for_picker()
    track.stop_broadcast()
    assert refused(pending.wait).name == ERROR + "Cancelled"
    screen.wait_until_closed()
    screen.reset()
    track.start_broadcast(wait=True)


# Faults: B54
def test_a_source_in_error(me, track, screen):
    """A source in error, which PipeWire keeps to itself, is one that sends nothing: its age tells, it can be stopped, its end is noticed."""
    for stop in (track.stop_broadcast, screen.vanish):
        track.start_broadcast(wait=True)
        mark = me.mark()
        screen.set_error("the compositor has had enough")
        screen.wait_until("Streams", lambda streams: streams[0]["state"] == "error")
        age = track.statistics["last-frame-age-us"]
        track.wait_until("Statistics", lambda statistics: statistics["last-frame-age-us"] > age + 200_000)
        stop()
        track.wait_for_signal("BroadcastFinished", since=mark)
        screen.wait_until_closed()
    track.start_broadcast(wait=True)


# Faults: B54
def test_links_that_are_cut(me, track, screen):
    """A link that somebody destroys ends the broadcast, or is made again; both are told."""
    track.start_broadcast(wait=True)
    mark, received = me.mark(), track.statistics["received"]
    screen.unlink()
    wait_until(lambda: _told(me, mark) or track.get("SourcePaused") or track.statistics["received"] > received + 30, "an end, a pause, or pictures")
    if not _told(me, mark):
        track.stop_broadcast()
    assert len(_told(me, mark)) == 1


# Faults: B06 B33
@pytest.mark.parametrize("meanwhile", ["shown", "paused", "muted"])
def test_a_format_that_is_taken_away(me, world, track, screen, meanwhile):
    """A session manager suspends both ends of the link, and with the format all buffers go, again and again: the share is the same, with the next ones."""
    watch = Watch(world, track, "webm")
    track.start_broadcast(wait=True)
    mark = me.mark()
    for _ in range(5):
        watch.more()
        if meanwhile == "paused":
            screen.pause()
            track.wait_until("SourcePaused", True)
        track.mute(meanwhile == "muted")
        received, number = track.statistics["received"], screen.streams[0]["number"]
        screen.clear_format()
        if meanwhile == "paused":
            screen.wait_until("Streams", lambda streams: "size" not in streams[0])
            assert (track.state, track.get("SourcePaused"), track.get("Sources")[0]["pixel-size"]) == ("active", True, (320, 200))
            # Who comes now gets the picture that there was.
            late = Watch(world, track, fps=7)
            late.subscription.wait_until("Statistics", lambda statistics: statistics["sent"] >= 1)
            assert all(late.pictures())
            screen.resume()
        track.wait_until("Statistics", lambda statistics: statistics["received"] > received + 2)
        track.wait_until("SourcePaused", False)
        track.mute(False)
    watch.more()
    shown = [one for one in watch.pictures() if one or meanwhile != "muted"]
    assert all(shown) and {one.size for one in shown} == {(320, 200)}
    numbers = [one.number for one in shown]
    assert numbers == sorted(numbers) and numbers[-1] > number
    assert (_told(me, mark), track.state) == ([], "active")


# Faults: B01 B06
def test_another_format_comes_back(world, track, screen):
    """A window that had another size or other colours before its format came back is shown with these."""
    track.start_broadcast(wait=True)
    for size, pixel_format in [((500, 280), "BGRx"), ((202, 308), "RGBA"), ((320, 200), "xBGR")]:
        screen.pause()
        track.wait_until("SourcePaused", True)
        screen.clear_format()
        screen.configure(size=size, formats=[pixel_format])
        screen.resume()
        track.wait_until("Sources", lambda sources: (sources[0]["pixel-size"], sources[0]["format"]) == (size, pixel_format))
        watch = Watch(world, track)
        watch.more()
        assert {one.size for one in watch.whole()} == {size}


# Faults: B04 B06
def test_a_format_that_goes_before_the_first_picture(me, track, screen):
    """The format is taken away while the first picture is waited for: the share begins with the first one of the next."""
    screen.configure(workload="still", first_frame=False)
    mark = me.mark()
    pending = track.begin_broadcast(wait=True)
    screen.wait_for_consumer()
    screen.clear_format()
    screen.wait_for_consumer()
    assert track.state == "choosing"
    screen.configure(workload="moving")
    pending.wait()
    assert (_told(me, mark), track.state) == ([], "active")


# Faults: B26 B21
@pytest.mark.parametrize("settings", [{"memory": "dmabuf"}, {"formats": ["xBGR_210LE"]}, {"formats": ["RGBA_F16", "xBGR_210LE"]}], ids=named)
def test_a_source_without_common_ground(track, screen, settings):
    """A source of tiled memory or of ten bits a colour alone: the start fails, in words that name what it offers, and does not hang."""
    screen.configure(**settings)
    error = refused(track.start_broadcast, wait=True)
    assert error.name == ERROR + "Failed"
    assert ("memory" if "memory" in settings else settings["formats"][0]) in error.message
    screen.wait_until_closed()


# Faults: B25 B38 B56
@pytest.mark.parametrize("step", ["answer_create", "answer_select", "answer"])
@pytest.mark.parametrize("answer", ["cancel", "fail"])
def test_no_and_failure_are_two_things(me, track, screen, step, answer):
    """A response of 1, wherever it comes, is the person's no; 2 is a failure, with words that say where to look; neither opens another picker."""
    screen.configure(**{step: answer})
    pickers, mark = screen.get("PickersOpened"), me.mark()
    error = refused(track.start_broadcast, wait=True)
    assert error.name == ERROR + ("Cancelled" if answer == "cancel" else "Failed")
    assert len(error.message.split()) > 4
    assert (track.state, _told(me, mark)) == ("listening", [("StartFailed", error.name)])
    assert screen.get("PickersOpened") <= pickers + 1
    screen.wait_until_closed()


# Faults: B39
def test_two_programs_and_one_picker(me, world, track, screen):
    """However many programs ask at once, in whatever way, one picker opens; all of them hear what came of it."""
    screen.configure(answer="never")
    pickers = screen.get("PickersOpened")
    others = [world.agent() for _ in range(3)]
    joined = [one.start_screen_share(True, wait=True) for one in others]
    screen.wait_for_picker()
    joined += [one.start_screen_share(True, wait=True) for one in others]
    assert refused(me.desktop.start_broadcast, wait=True).name == ERROR + "Busy"
    own = others[0].create_track()
    own.start_capture()
    assert refused(own.start_broadcast).name == ERROR + "Busy"
    assert screen.answer("ok") == 1
    assert {one.wait()[0] for one in joined} == {track.path}
    assert screen.get("PickersOpened") == pickers + 1
    own.destroy()


# Faults: B52
def test_logical_size_and_pixels_are_told_apart(track, screen):
    """At a fractional scale the portal's size is not the picture's: both are told, and what is sent has the pixels'."""
    screen.configure(size=(480, 300), logical_size=(320, 200), position=(-320, 0))
    track.start_broadcast(wait=True)
    (source,) = track.get("Sources")
    assert (source["logical-size"], source["pixel-size"], source["position"]) == ((320, 200), (480, 300), (-320, 0))
    assert track.get("Size") == (480, 300)


# Stopping at bad moments


# Faults: B33 B34
@pytest.mark.parametrize("seed", range(4))
def test_stopped_at_any_moment_of_a_resize(world, track, screen, seed):
    """A source that changes its size with every picture is stopped at random moments, by several at once: each end is whole, and the next start works."""
    moments = random.Random(seed)
    screen.configure(fps=100, resize_every=1 + seed, resize_to=(200, 330), buffers=seed % 3 * 2)
    for _ in range(6):
        watch = Watch(world, track, moments.choice(["webm", "y4m"]))
        pending = track.begin_broadcast(wait=True)
        for _ in range(moments.randrange(30)):
            track.get("Statistics")
        ends = [track.start(moments.choice(["StopBroadcast", "StopCapture"])) for _ in range(moments.randrange(1, 4))]
        for one in ends:
            one.wait()
        wait_until(lambda: pending.done, "an answer to the start")
        assert track.state in ("listening", "idle")
        track.start_capture()
        watch.subscription.unsubscribe()
        watch.recording.wait_for_end()
        if watch.recording.size:
            watch.recording.frames()
        screen.wait_until_closed()


# Faults: B34
def test_stopped_while_the_encoder_is_busy(world, track, screen):
    """A stop in the middle of a big picture waits for no more than that one: the stream ends whole, and stopping twice is stopping."""
    screen.configure(size=(1920, 1080), workload="video", fps=60)
    watch = Watch(world, track, "webm", placeholder="end")
    track.start_broadcast(wait=True)
    watch.more(3)
    for one in [track.start("StopBroadcast"), track.start("StopCapture"), track.start("StopBroadcast")]:
        one.wait()
    assert track.state == "idle"
    assert len(watch.recording.wait_for_end().frames()) >= 3


# The portal is there, and does nothing


# Faults: B40 B47
@pytest.mark.parametrize("moment", ["before", "picker", "active"])
def test_a_portal_that_hangs(session, moment):
    """A portal that is stopped in its tracks blocks nobody: the agent answers, a share can be stopped, and goes on when the portal does."""
    me, screen = session.agent(), TestScreen(session.client)
    screen.configure(size=(320, 200), answer="never" if moment == "picker" else "ok")
    track = me.desktop
    track.start_capture()
    pending = None
    if moment == "active":
        track.start_broadcast(wait=True)
    if moment == "picker":
        pending = track.begin_broadcast(wait=True)
        screen.wait_for_picker()
    session.portal.send_signal(signal.SIGSTOP)
    try:
        if moment == "before":
            pending = track.begin_broadcast(wait=True)
            track.wait_until("State", "choosing")
        for _ in range(20):
            assert me.get_all() and me.objects()
        other = session.agent().create_track()
        other.destroy()
        track.stop_broadcast()
        if pending:
            assert refused(pending.wait).name == ERROR + "Cancelled"
        assert track.state == "listening"
    finally:
        session.portal.send_signal(signal.SIGCONT)
    screen.wait_until_closed()
    screen.configure(answer="ok")
    track.start_broadcast(wait=True)


# Faults: B41
def test_a_portal_that_comes_late(make_session):
    """No portal at login, then one without a backend, then a whole one: each start tells what is there now, without a restart of the agent."""
    session = make_session(portal="absent", screen=False)
    me = session.agent()
    me.desktop.start_capture()
    assert refused(me.desktop.start_broadcast, wait=True).name == ERROR + "PortalUnavailable"
    session.start_portal()
    assert refused(me.desktop.start_broadcast, wait=True).name == ERROR + "PortalUnavailable"
    session.processes.end(session.portal)
    session.wait_for_no_name(PORTAL)
    session.start_screen()
    session.start_portal()
    me.desktop.start_broadcast(wait=True)


# Faults: B55
@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL])
@pytest.mark.parametrize("moment", ["picker", "active"])
def test_the_indicator_goes_out_with_the_agent(how, moment):
    """However the agent ends, in the picker or later, no session of the portal is left, and the desktop's indicator goes out."""
    with Session() as session:
        me, screen = session.agent(), TestScreen(session.client)
        screen.configure(size=(320, 200), answer="never" if moment == "picker" else "ok")
        me.set_screen_share(True, wait=moment == "active")
        screen.wait_until("OpenSessions", 1)
        session.agent_process.send_signal(how)
        session.agent_process.wait(30)
        screen.wait_until("OpenSessions", 0)
        screen.wait_until("PickersOpen", 0)
