# SPDX-License-Identifier: MIT
"""The pointer that comes beside the pixels: where it is in what readers decode, and that it leaves no trace."""

import numpy
import pytest

import picture
import stream
from processes import wait_until

WIDTH, HEIGHT = 640, 360
HOTSPOT = (6, 9)
SIDE = 24
SHAPES = {0: (255, 0, 0), 1: (0, 255, 0), 2: (0, 0, 255), 3: (255, 255, 255), 4: (255, 0, 255)}


@pytest.fixture
def track(me, screen):
    """The desktop track in front of a small screen that stands still, with the pointer away."""
    screen.configure(
        size=(WIDTH, HEIGHT), manual=True, cursor_size=(SIDE, SIDE), cursor_hotspot=HOTSPOT, cursor_position=(300, 200), cursor_state="away")
    me.set_screen_share(True, wait=True, cursor="metadata")
    assert screen.get("LastStart")["cursor_mode"] == 4
    return me.desktop


class Reader:
    """One reader of a track and the pictures that it was sent."""

    def __init__(self, track, world, kind, **given):
        self.subscription = track.subscribe(**kind.options, **given)
        self.recording = self.subscription.record(world.root / f"cursor-{kind}.{kind.format}")
        self.wait_for(1)

    @property
    def sent(self):
        return self.subscription.statistics["sent"]

    def wait_for(self, count):
        self.subscription.wait_until("Statistics", lambda statistics: statistics["sent"] >= count)

    def after(self, change):
        """Makes a change and waits for a picture of it."""
        before = self.sent
        change()
        self.wait_for(before + 1)

    def wait_until_sharp(self):
        """Waits until an encoder sends nothing more of a screen that stands still."""
        quiet = [self.sent, 0]

        def is_quiet():
            now = self.sent
            quiet[:] = [now, quiet[1] + 1 if now == quiet[0] else 0]
            return quiet[1] >= 12 or None

        wait_until(is_quiet, "the encoder is done", 30.0)

    def frames(self):
        self.subscription.unsubscribe()
        return self.recording.wait_for_end().frames()


def pointer(shape, at, size=(WIDTH, HEIGHT)):
    """Which pixels of a picture the pointer covers."""
    x, y = numpy.meshgrid(numpy.arange(size[0]), numpy.arange(size[1]))
    x, y = x - at[0] + HOTSPOT[0], y - at[1] + HOTSPOT[1]
    return (x >= 0) & (y < SIDE) & (x <= y)


def difference(one, other):
    return numpy.abs(one.astype(int) - other.astype(int)).max(axis=2)


def check(image, plain, shape, at, tolerance):
    """The pointer is where it should be, in its colour, and all around it the picture is as it is without one."""
    covered = pointer(shape, at)
    # A colour sample belongs to two pixels each way, and a codec smears a little.
    rim = numpy.zeros_like(covered)
    for x in range(-3, 4):
        for y in range(-3, 4):
            rim |= numpy.roll(covered, (y, x), (0, 1))
    inner = covered.copy()
    for x in range(-3, 4):
        for y in range(-3, 4):
            inner &= numpy.roll(covered, (y, x), (0, 1))
    assert inner.sum() > 20
    distance = numpy.abs(image[inner].astype(int) - SHAPES[shape]).max(axis=1)
    assert numpy.percentile(distance, 90) <= tolerance, (shape, at, distance.max())
    assert difference(image, plain)[~rim].max() <= tolerance, (shape, at)


def test_raw_pictures(me, world, track, screen):
    """y4m: each place, shape and disappearance of the pointer over a still screen is a picture; without it the picture is the same, sample by sample."""
    reader = Reader(track, world, stream.RAW)
    steps = [(0, (300, 200)), (0, (301, 203)), (1, (301, 203)), (2, (7, 340)), (3, (600, 100)), (4, (200, 150)), (None, None), (1, (411, 77))]
    for shape, at in steps:
        settings = {"cursor_state": "hidden"} if shape is None else {"cursor_state": "shown", "cursor_shape": shape, "cursor_position": at}
        reader.after(lambda: screen.configure(**settings))
    reader.after(lambda: screen.configure(cursor_state="away"))
    received = track.statistics
    frames = reader.frames()
    plain = frames[0]
    assert picture.read(plain) is not None
    for image, (shape, at) in zip(frames[1:], steps):
        if shape is None:
            assert (image == plain).all()
        else:
            check(image, plain, shape, at, 12)
            if at == (600, 100):
                # White on grey: to the pixel.
                assert ((difference(image, plain) > 60) == pointer(shape, at)).all()
    assert (frames[len(steps) + 1] == plain).all() and (frames[-1] == plain).all()
    assert received["cursor-only"] >= len(steps), received


def test_over_a_picture_that_changes(me, world, track, screen):
    """The screen changes below the pointer, which stands still or moves: no old pixel comes back when it leaves."""
    reader = Reader(track, world, stream.RAW)
    reader.after(lambda: screen.configure(cursor_state="shown"))
    for step in range(6):
        reader.after(lambda: screen.push_frames(1))
        # In the middle of what moves.
        reader.after(lambda: screen.configure(cursor_position=(100 + 70 * step, 170 + step)))
    reader.after(lambda: screen.configure(cursor_state="away"))
    # The same picture once more, whole, by a stream that never had the pointer.
    other = track.subscribe(format="y4m").record(world.root / "plain.y4m")
    other.wait_for_bytes(WIDTH * HEIGHT)
    last = reader.frames()[-1]
    track.unsubscribe_all()
    plain = other.wait_for_end().frames()[-1]
    assert picture.read(last).number == picture.read(plain).number
    assert (last == plain).all()


@pytest.mark.parametrize("kind", stream.SOME, ids=str)
def test_encoded_pictures(me, world, track, screen, kind):
    """Encoded: the pointer is seen where it is, and where it was the still screen is as sharp as before; a still one costs nothing."""
    reader = Reader(track, world, kind, bitrate=4_000_000)
    reader.wait_until_sharp()
    plain_count = reader.sent
    reader.after(lambda: screen.configure(cursor_state="shown", cursor_position=(200, 190)))
    reader.wait_until_sharp()
    shown_count = reader.sent
    for x in range(200, 420, 11):
        reader.after(lambda: screen.configure(cursor_position=(x, 190), cursor_shape=3))
    reader.wait_until_sharp()
    moved_count = reader.sent
    screen.configure(cursor_position=(409, 190))
    reader.after(lambda: screen.configure(cursor_state="hidden"))
    reader.wait_until_sharp()
    file_frames = reader.frames()
    blocks = stream.read(reader.recording.path).blocks
    plain = file_frames[plain_count - 1]
    check(file_frames[shown_count - 1], plain, 0, (200, 190), 60)
    check(file_frames[moved_count - 1], plain, 3, (409, 190), 60)
    assert difference(file_frames[-1], plain).max() <= 40
    # Only what it touches is encoded: far less than the whole.
    sizes = [len(block.data) for block in blocks]
    assert not any(block.is_key for block in blocks[1:-1])
    assert max(sizes[shown_count:moved_count]) < sizes[0] / 3, sizes


def test_late_subscriber(me, world, track, screen):
    """Who joins late sees the pointer at once, also one that has not moved since."""
    screen.configure(cursor_state="shown", cursor_shape=4, cursor_position=(150, 180))
    wait_until(lambda: track.statistics["cursor-only"] > 0 or None, "the pointer has come")
    image = Reader(track, world, stream.RAW).frames()[0]
    covered = pointer(4, (150, 180))
    assert numpy.median(numpy.abs(image[covered].astype(int) - SHAPES[4]).max(axis=1)) <= 12


def test_placeholder(me, world, track, screen):
    """Muted, the placeholder shows no pointer, and where it goes meanwhile sends nothing; unmuted, it is where it is."""
    screen.configure(cursor_state="shown")
    reader = Reader(track, world, stream.RAW)
    reader.after(track.mute)
    sent = reader.sent
    for x in range(20, 200, 20):
        received = track.statistics["received"]
        screen.configure(cursor_position=(x, 100))
        wait_until(lambda: track.statistics["received"] > received, "the pointer has moved")
    reader.after(lambda: track.mute(False))
    frames = reader.frames()
    # The placeholder is grey; its two bars too.
    muted = [image for image in frames if picture.read(image) is None]
    assert muted and len(frames) <= sent + 2
    assert all((image.max(axis=2).astype(int) - image.min(axis=2) <= 8).all() for image in muted)
    covered = pointer(0, (180, 100))
    assert numpy.median(numpy.abs(frames[-1][covered].astype(int) - SHAPES[0]).max(axis=1)) <= 12


@pytest.mark.parametrize("transform", range(8))
def test_turned_and_cropped(me, world, screen, transform):
    """A source that hands over its picture turned, in a part of its buffer, has its pointer turned with it: it is upright and in its place."""
    sides = (WIDTH, HEIGHT) if transform % 2 == 0 else (HEIGHT, WIDTH)
    screen.configure(
        size=(720, 720), crop=(30, 50, *sides), transform=transform, manual=True, cursor_size=(SIDE, SIDE), cursor_hotspot=HOTSPOT,
        cursor_position=(220, 190))
    me.set_screen_share(True, wait=True, cursor="metadata")
    assert me.desktop.get("Size") == (WIDTH, HEIGHT)
    reader = Reader(me.desktop, world, stream.RAW)
    reader.after(lambda: screen.configure(cursor_position=(600, 100), cursor_shape=3))
    shown = reader.sent
    reader.after(lambda: screen.configure(cursor_state="hidden"))
    hidden = reader.sent
    frames = reader.frames()
    image, plain = frames[shown - 1], frames[hidden - 1]
    assert picture.read(plain) is not None
    check(image, plain, 3, (600, 100), 12)
    assert ((difference(image, plain) > 60) == pointer(3, (600, 100))).all()


def test_crop_and_masks(me, world, track, screen):
    """The track's crop moves it along; under a mask it is not drawn, also not in part, and none of its pixels comes from there."""
    track.set("Crop", "(iiuu)", (100, 100, 400, 200))
    reader = Reader(track, world, stream.RAW)
    reader.after(lambda: screen.configure(cursor_state="shown", cursor_position=(300, 180)))
    image = reader.frames()[-1]
    covered = pointer(0, (200, 80), (400, 200))
    assert image.shape[:2] == (200, 400)
    assert numpy.median(numpy.abs(image[covered].astype(int) - SHAPES[0]).max(axis=1)) <= 12

    track.set("Crop", "(iiuu)", (0, 0, 0, 0))
    track.wait_until("Size", lambda size: size == (WIDTH, HEIGHT))
    track.set("Masks", "a(iiuu)", [(280, 160, 100, 100)])
    # Not with the options of the other one, whose encoder and size it would get.
    reader = Reader(track, world, stream.RAW, fps=29)
    reader.after(lambda: screen.configure(cursor_position=(276, 175)))
    frames = reader.frames()
    for image in frames:
        assert image[162:258, 282:378].max() <= 4
    # Pointing in it, it is nowhere; pointing beside it, what does not reach into it is seen.
    outside = pointer(0, (276, 175))
    outside[:, 278:] = False
    assert numpy.median(numpy.abs(frames[-1][outside].astype(int) - SHAPES[0]).max(axis=1)) <= 12
    assert (difference(frames[0], frames[-1])[outside] > 40).mean() > 0.5


def test_embedded_and_hidden_are_as_before(me, world, screen):
    """Drawn by the desktop, it comes with the pixels and as nothing else; hidden, not at all."""
    screen.configure(size=(WIDTH, HEIGHT), manual=True, cursor_size=(SIDE, SIDE), cursor_hotspot=HOTSPOT, cursor_position=(300, 200))
    covered = pointer(0, (300, 200))
    for mode, is_seen in (("embedded", True), ("hidden", False)):
        me.set_screen_share(True, wait=True, cursor=mode)
        image = Reader(me.desktop, world, stream.RAW).frames()[-1]
        distance = numpy.median(numpy.abs(image[covered].astype(int) - SHAPES[0]).max(axis=1))
        assert (distance <= 12) == is_seen
        me.set_screen_share(False)


def test_the_next_share_starts_without_it(me, world, track, screen):
    """Nothing of an ended share's pointer is seen in the next one."""
    reader = Reader(track, world, stream.RAW)
    reader.after(lambda: screen.configure(cursor_state="shown", cursor_shape=4, cursor_position=(600, 100)))
    shown = reader.sent
    me.set_screen_share(False)
    for mode in ("hidden", "metadata"):
        screen.configure(cursor_state="away")
        before = reader.sent
        me.set_screen_share(True, wait=True, cursor=mode)
        reader.wait_for(before + 1)
        me.set_screen_share(False)
    frames = reader.frames()
    covered = pointer(4, (600, 100))
    magenta = [(numpy.abs(image[covered].astype(int) - SHAPES[4]).max(axis=1) < 60).sum() for image in frames]
    assert magenta[shown - 1] > 100 and not any(magenta[shown:]), magenta
    assert sum(picture.read(image) is not None for image in frames[shown:]) >= 2
