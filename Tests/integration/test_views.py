# SPDX-License-Identifier: MIT
"""Crop and masks: what they hide is in no picture that is made after the reply, whatever the source, the format, and the reader."""

import itertools

import numpy
import pytest

import picture
from bus import BusError
from harness import frames
from processes import wait_until
from stream import wait_for_more

BLACK = 16
NONE = (0, 0, 0, 0)


def crop(track, *region):
    track.set("Crop", "(iiuu)", region or NONE)


def mask(track, *regions):
    track.set("Masks", "a(iiuu)", list(regions))


def lumas(path):
    """The luma planes of a y4m file, as they are in it."""
    data = path.read_bytes()
    end = data.index(b"\n")
    sides = {word[:1]: int(word[1:]) for word in data[:end].split() if word[:1] in (b"W", b"H")}
    width, height = sides[b"W"], sides[b"H"]
    size = len(b"FRAME\n") + width * height + 2 * ((width + 1) // 2) * ((height + 1) // 2)
    packets = [data[start:start + size] for start in range(end + 1, len(data), size)]
    assert all(one.startswith(b"FRAME\n") for one in packets)
    planes = [numpy.frombuffer(one, numpy.uint8, width * height, len(b"FRAME\n")) for one in packets if len(one) == size]
    return [plane.reshape(height, width) for plane in planes]


def do(subscription, action):
    """Does something that gives the reader another picture, and waits for that."""
    before = subscription.statistics["sent"]
    action()
    subscription.wait_until("Statistics", lambda statistics: statistics["sent"] > before)


def push(screen, subscription):
    """Has the source send a picture, until its reader has one more: what is sent while the graph starts may be lost."""
    before, tries = subscription.statistics["sent"], itertools.count()

    def has():
        if next(tries) % 20 == 0:
            try:
                screen.push_frames(1)
            except BusError:
                # It is just being stopped and started.
                return False
        return subscription.statistics["sent"] > before

    wait_until(has, "another picture")


class Late:
    """What a reader sees that comes now, in front of a screen that stands still."""

    def __init__(self, world, track):
        self._world, self._track, self._count = world, track, 0

    def __call__(self, form="y4m"):
        self._count += 1
        # Options of its own: an encoder that runs goes on with the size that it has.
        subscription = self._track.subscribe(format=form, fps=100 + self._count)
        recording = subscription.record(self._world.root / f"late-{self._count}.{form}")
        subscription.wait_until("Statistics", lambda statistics: statistics["sent"] >= 1)
        subscription.unsubscribe()
        path = recording.wait_for_end().path
        return lumas(path) if form == "y4m" else list(frames(path).max(axis=3))


@pytest.fixture
def late(world, track):
    return Late(world, track)


def part(image, region, scale=1):
    """The pixels of a region, as far as the picture has them."""
    x, y, width, height = (round(number * scale) for number in region)
    return image[max(0, y):max(0, y + height), max(0, x):max(0, x + width)]


def is_black(pixels, most=BLACK):
    assert pixels.size
    return int(pixels.max()) <= most


def is_dark(image, region, scale=1):
    """Whether a region is black in a picture that went through a codec or a scaler, whose errors reach over its edges."""
    x, y, width, height = region
    return is_black(part(image, (x + 16, y + 16, width - 32, height - 32), scale), 80)


# Masks


@pytest.mark.parametrize("form", ["webm", "y4m"])
def test_masked_from_the_reply_on(world, track, screen, form):
    """Masks are written while the screen moves: no picture from the reply on shows what they cover; taken back, it is seen again."""
    screen.configure(fps=60)
    region = (33, 181, 555, 121)
    subscription = track.subscribe(format=form)
    recording = subscription.record(world.root / f"masked.{form}")
    track.start_broadcast(wait=True)
    spans = []
    for _ in range(4):
        wait_for_more(subscription, 8)
        mask(track, region)
        first = screen.streams[0]["number"]
        wait_for_more(subscription, 8)
        last = screen.streams[0]["number"]
        mask(track)
        spans.append((first, last))
    wait_for_more(subscription, 8)
    subscription.unsubscribe()
    images = recording.wait_for_end().frames()
    readings = picture.read_all(images)
    assert all(readings)
    masked = [is_dark(image, region) for image in images]
    # What the source sent just before the masks were taken back may have come just after.
    within = [any(first < one.number < last - 6 for first, last in spans) for one in readings]
    assert sum(within) >= 8
    shown = [one.number for one, inside, black in zip(readings, within, masked) if inside and not black]
    assert not shown, (shown, spans)
    assert not masked[0] and not masked[-1] and masked.count(False) >= 20


def test_masks_of_a_still_screen(world, track, screen, late):
    """A screen that sends nothing more is masked at once: for who joins late, in key frames, and in the picture that ends a stream."""
    screen.configure(manual=True)
    track.start_broadcast(wait=True)
    shown = late()[-1]
    readers = {form: track.subscribe(format=form) for form in ("webm", "y4m")}
    recordings = {form: one.record(world.root / f"still.{form}") for form, one in readers.items()}
    for one in readers.values():
        one.wait_until("Statistics", lambda statistics: statistics["sent"] >= 1)
    region = (64, 40, 512, 100)
    assert not is_black(part(shown, region))
    mask(track, region)
    for form in ("y4m", "webm"):
        assert all(is_dark(image, region) if form == "webm" else is_black(part(image, region)) for image in late(form))
    keys = readers["webm"].statistics["keyframes"]
    readers["webm"].call("RequestKeyFrame")
    readers["webm"].wait_until("Statistics", lambda statistics: statistics["keyframes"] > keys)
    for form, one in readers.items():
        one.unsubscribe()
        seen = [is_dark(image, region) for image in recordings[form].wait_for_end().frames()]
        assert seen == sorted(seen) and not seen[0] and seen.count(True) >= 1, seen
    # The rest of the picture is what it was.
    hidden = late()[-1]
    assert (hidden[140:] == shown[140:]).all() and (hidden[:40] == shown[:40]).all()


def test_unmuted_and_masked(world, track, screen, late):
    """Masks that are written while the track is muted are there when it is unmuted, also on a screen that stands still."""
    screen.configure(manual=True)
    region = (0, 0, 640, 200)
    subscription = track.subscribe(format="y4m")
    recording = subscription.record(world.root / "unmuted.y4m")
    track.start_broadcast(wait=True)
    subscription.wait_until("Statistics", lambda statistics: statistics["sent"] >= 1)
    do(subscription, track.mute)
    mask(track, region)
    do(subscription, lambda: track.mute(False))
    subscription.unsubscribe()
    images = lumas(recording.wait_for_end().path)
    assert [is_black(part(image, region)) for image in images] == [False, False] + [True] * (len(images) - 2) and len(images) >= 3


def test_masks_that_were_there_before(world, me, screen):
    """Masks and crop that come with the track hold from its first picture on, and through stopping and starting; SetScreenShare keeps and changes them."""
    screen.configure(size=(640, 360))
    region = (320, 0, 400, 400)
    own = me.create_track(masks=[region], crop=(0, 180, 640, 180))
    own.start_capture()
    for _ in range(2):
        subscription = own.subscribe(format="y4m", placeholder="end")
        recording = subscription.record(world.root / "first.y4m")
        own.start_broadcast(wait=True)
        assert own.get("Size") == (640, 180)
        wait_for_more(subscription, 5)
        own.stop_broadcast()
        images = lumas(recording.wait_for_end().path)
        assert len(images) >= 5 and all(is_black(image[:, 320:]) and not is_black(image[:, :320]) for image in images)
    own.destroy()
    desktop = me.set_screen_share(True, wait=True, masks=[region])
    assert (desktop.get("Masks"), desktop.get("Size")) == ([region], (640, 360))
    mark = me.mark()
    me.set_screen_share(True, crop=(0, 0, 320, 200))
    desktop.wait_for_change("Size", (320, 200), mark)
    me.set_screen_share(False)
    me.set_screen_share(True, wait=True, preset="h720p")
    assert (desktop.get("Masks"), desktop.get("Crop"), desktop.get("Size")) == ([region], (0, 0, 320, 200), (320, 200))
    me.set_screen_share(True, crop=NONE, masks=[])
    desktop.wait_until("Size", (640, 360))
    assert (desktop.get("Masks"), desktop.get("Crop")) == ([], NONE)


def test_resized_while_masked(world, track, screen):
    """The source gets another size while it is masked and cropped: both hold in its new pixels, in a stream whose size stays."""
    screen.configure(fps=60)
    region = (101, 301, 199, 49)
    mask(track, region)
    subscription = track.subscribe(format="y4m")
    recording = subscription.record(world.root / "resized.y4m")
    track.start_broadcast(wait=True)
    wait_for_more(subscription, 5)
    for size in ((800, 450), (1280, 720), (640, 360)):
        screen.set_size(*size)
        track.wait_until("Size", size)
        wait_for_more(subscription, 5)
    subscription.unsubscribe()
    images = recording.wait_for_end().frames()
    seen = set()
    for image, reading in zip(images, picture.read_all(images)):
        scale = 640 / reading.width
        seen.add(reading.width)
        above = (region[0], region[1] - 40, region[2], 40)
        assert is_dark(image, region, scale) and not is_dark(image, above, scale), reading
    assert seen == {640, 800, 1280}


# Crop


def test_cropped_while_it_runs(me, world, track, screen, late):
    """A new crop is Size at once, and that of new streams; one that runs keeps its size, with bars; on a still screen too."""
    screen.configure(manual=True)
    running = track.subscribe(format="y4m", fps=29)
    recording = running.record(world.root / "running.y4m")
    track.start_broadcast(wait=True)
    running.wait_until("Statistics", lambda statistics: statistics["sent"] >= 1)
    whole = late()[-1]
    for region in [(100, 60, 300, 200), (101, 61, 299, 199), (0, 0, 31, 17), (639, 359, 1, 1)]:
        crop(track)
        push(screen, running)
        track.wait_until("Size", (640, 360))
        whole = late()[-1]
        mark = me.mark()
        sent = running.statistics["sent"]
        crop(track, *region)
        assert track.get("Size") == region[2:]
        changes = [event for event in me.events[mark:] if event.kind == "changed" and event.path == track.path]
        assert {event.name for event in changes if event.name != "Subscriptions"} == {"Crop", "Size"}
        for image in late():
            assert image.shape == (region[3], region[2]) and (image == part(whole, region)).all()
        running.wait_until("Statistics", lambda statistics: statistics["sent"] > sent)
    assert running.get("Size") == (640, 360)
    crop(track)
    push(screen, running)
    do(running, lambda: crop(track, 0, 0, 320, 360))
    running.unsubscribe()
    last = lumas(recording.wait_for_end().path)[-1]
    assert is_black(last[:, :160]) and is_black(last[:, 480:]) and not is_black(last[:, 180:460])


def test_crop_outside_of_the_source(track, screen, late):
    """A crop is cut to the source, again at each of its sizes; where nothing is left the picture is black, until something is again."""
    crop(track, 600, 300, 4_000_000_000, 4_000_000_000)
    track.start_broadcast(wait=True)
    assert track.get("Size") == (40, 60)
    screen.set_size(800, 450)
    track.wait_until("Size", (200, 150))
    screen.set_size(320, 200)
    track.wait_until("Size", (320, 200))
    assert all(is_black(image) and image.shape == (200, 320) for image in late())
    screen.set_size(640, 360)
    track.wait_until("Size", (40, 60))
    assert not any(is_black(image) for image in late())
    crop(track, 640, 0, 1, 1)
    assert all(is_black(image) and image.shape == (360, 640) for image in late())
    crop(track)
    wait_until(lambda: not is_black(late()[-1]), "the whole picture again")


def test_what_a_crop_hides_is_hidden_at_once(world, track, screen, late):
    """A crop that moves on a screen that sends nothing: from the reply on, nothing outside of it is seen; what is not known of it yet is black."""
    screen.configure(manual=True)
    crop(track, 0, 0, 320, 360)
    reader = track.subscribe()
    reader.record(world.root / "reader.webm")
    track.start_broadcast(wait=True)
    known = late()[-1]
    crop(track, 160, 0, 321, 360)
    assert track.get("Size") == (321, 360)
    for image in late():
        assert image.shape == (360, 321) and (image[:, :160] == known[:, 160:]).all() and is_black(image[:, 162:])
    push(screen, reader)
    assert not is_black(late()[-1][:, 162:])


# With what the producer does


@pytest.mark.parametrize("transform", range(8))
@pytest.mark.parametrize("producers_crop", [NONE, (33, 16, 151, 123)])
def test_with_transforms_and_the_producers_crop(world, track, screen, late, transform, producers_crop):
    """However the source turns its picture and cuts it: crop and masks are in its upright pixels; odd, overlapping, out of range as they like."""
    screen.configure(manual=True, size=(320, 200), transform=transform, crop=producers_crop)
    reader = track.subscribe()
    reader.record(world.root / "reader.webm")
    track.start_broadcast(wait=True)
    width, height = track.get("Size")
    assert {width, height} == ({151, 123} if any(producers_crop) else {320, 200})
    masks = [(-5, -7, 30, 33), (21, 11, 17, 35), (width - 19, height - 21, 4_000_000_000, 4_000_000_000), (71, 51, 1, 1), (90, 90, 0, 5)]
    view = (13, 9, width - 20, height - 11)
    masked, near = numpy.zeros((height, width), bool), numpy.zeros((height, width), bool)
    for x, y, w, h in masks:
        part(masked, (x, y, w, h))[:] = True
        if w and h:
            # They are rounded out to even pixels of what is sent.
            part(near, (x - 1, y - 1, w + 2, h + 2))[:] = True
    for region in (NONE, view):
        mask(track)
        crop(track)
        push(screen, reader)
        whole = late()[-1]
        mask(track, *masks)
        crop(track, *region)
        region = region if any(region) else (0, 0, width, height)
        wanted, hidden, fuzzy = part(whole, region), part(masked, region), part(near, region)
        for comes in (False, True):
            if comes:
                push(screen, reader)
            image = late()[-1]
            assert image.shape == wanted.shape
            assert (image[hidden] == BLACK).all()
            # What the next picture changes lies elsewhere.
            rows = slice(0, None) if not comes else slice(height - height // 9, None)
            assert (image == wanted)[rows][~fuzzy[rows]].all()
