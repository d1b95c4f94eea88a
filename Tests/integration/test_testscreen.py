# SPDX-License-Identifier: MIT
"""The test screen behind the real xdg-desktop-portal, seen by a portal client and a PipeWire consumer that are not ours."""

import signal
import subprocess
import time
import xml.etree.ElementTree
import zlib

import numpy
import pytest
from gi.repository import GLib

import picture
from bus import BusError
from harness import PORTAL, PORTAL_PATH, SCREEN_CAST, TEST_SCREEN, Session, program
from processes import wait_until
from screen import SCREEN_PATH, Cast, NodeReader, TestScreen

INVALID = "org.freedesktop.DBus.Error.InvalidArgs"


@pytest.fixture(scope="module")
def world():
    """One world for the whole file; each test gets a screen that is as it was at first."""
    with Session(agent="absent") as session:
        yield session


@pytest.fixture
def screen(world):
    screen = TestScreen(world.new_client())
    yield screen
    screen.end_session()
    screen.vanish()
    screen.reset()


@pytest.fixture
def cast(world, screen):
    cast = Cast(world.new_client())
    yield cast
    cast.client.close()
    screen.wait_until("OpenSessions", 0)


@pytest.fixture
def watch(world, cast):
    """Starts a granted session and reads its first stream."""
    readers = []

    def start(**options):
        streams = cast.granted()
        reader = cast.watch(world, streams[0][0], **options)
        readers.append(reader)
        return reader

    yield start
    for reader in readers:
        reader.close()


def readable(frames):
    return [frame for frame in frames if frame["number"] is not None]


# The portal's side


def test_grants_at_once_and_shows_rising_numbers(world, screen, cast):
    streams = cast.granted(types=GLib.Variant("u", 1), cursor_mode=GLib.Variant("u", 2))
    (node, properties), = streams
    assert properties == {"id": "screen-0", "position": (0, 0), "size": (1280, 720), "source_type": 1}
    asked = screen.get("LastStart")
    assert (asked["types"], asked["cursor_mode"], asked["app_id"], asked["parent_window"]) == (1, 2, "", "")
    assert screen.get("OpenSessions") == 1
    with cast.watch(world, node) as reader:
        frames = reader.wait_for_frames(40)
    assert all(frame["size"] == [1280, 720] and frame["orientation"] == "normal" and frame["channels"] == "rgb" for frame in frames)
    numbers = [frame["number"] for frame in frames]
    assert numbers == sorted(set(numbers))
    assert numbers[-1] - numbers[0] < 2 * len(numbers), "hardly any picture is lost"
    cast.close()
    screen.wait_until("Streams", [])
    assert screen.get("FramesProduced") >= 40
    assert screen.get("OpenSessions") == 0


@pytest.mark.parametrize(("answer", "response"), [("cancel", 1), ("fail", 2), ("error", 2)])
@pytest.mark.parametrize("step", ["answer_create", "answer_select", "answer"])
def test_says_no_at_each_step(screen, cast, step, answer, response):
    screen.configure(**{step: answer})
    if step == "answer_create":
        assert cast.create() == response
        return
    assert cast.create() == 0
    if step == "answer_select":
        assert cast.select() == response
    else:
        assert cast.select() == 0
        assert cast.start() == (response, {})
    assert screen.streams == []


def test_answers_late(screen, cast):
    screen.configure(delay=300)
    cast.prepare()
    path = cast.begin()
    screen.wait_until("PickersOpen", 1)
    assert cast.response(path)[0] == 0
    assert screen.get("PickersOpen") == 0


def test_never_answers_until_it_is_told_to(screen, cast):
    screen.configure(answer="never")
    cast.prepare()
    path = cast.begin()
    screen.wait_until("PickersOpen", 1)
    assert screen.answer("ok") == 1
    response, results = cast.response(path)
    assert response == 0 and len(results["streams"]) == 1


def test_portal_closes_the_picker(screen, cast):
    screen.configure(answer="never")
    closed = screen.get("PickersClosed")
    cast.prepare()
    path = cast.begin()
    screen.wait_until("PickersOpen", 1)
    cast.close_request(path)
    screen.wait_until("PickersClosed", closed + 1)
    assert screen.get("PickersOpen") == 0


def test_ends_the_session_as_an_indicator_does(world, screen, cast):
    cast.granted()
    assert screen.end_session() == 1
    cast.client.wait_for("signal", "Closed", path=cast.session)
    assert screen.streams == [] and screen.get("OpenSessions") == 0


def test_client_that_leaves_ends_its_session(world, screen):
    cast = Cast(world.new_client())
    cast.granted()
    assert screen.get("OpenSessions") == 1
    cast.client.close()
    screen.wait_until("OpenSessions", 0)
    screen.wait_until("Streams", [])


@pytest.mark.parametrize(("fault", "nodes"), [("no-streams", None), ("wrong-type", None), ("invalid-node", [0xFFFFFFFF]), ("dead-node", [1_000_000])])
def test_malformed_results(screen, cast, fault, nodes):
    screen.configure(fault=fault)
    cast.prepare()
    response, results = cast.start()
    if nodes is None:
        assert response != 0 or not results.get("streams")
    else:
        assert response == 0 and [node for node, _ in results["streams"]] == nodes


def test_streams_as_configured(screen, cast):
    screen.configure(streams=3, sizes=[(800, 600), (320, 240)], omit=["id"], source_type=2, position=(100, -5))
    streams = cast.granted()
    assert [(p["size"], p["position"], p["source_type"]) for _, p in streams] == [
        ((800, 600), (100, -5), 2), ((320, 240), (900, -5), 2), ((1280, 720), (1220, -5), 2)]
    assert len({node for node, _ in streams}) == 3 and all("id" not in p for _, p in streams)


def test_logical_size_differs_from_pixels(world, screen, watch):
    screen.configure(size=(960, 540), logical_size=(640, 360))
    frames = watch().wait_for_frames(2)
    assert (frames[-1]["width"], frames[-1]["height"]) == (960, 540)


def test_remembered_choice_opens_no_picker(screen, cast):
    cast.prepare(persist_mode=GLib.Variant("u", 1))
    response, results = cast.start()
    token = results["restore_token"]
    cast.close()
    screen.configure(answer="never")
    again = Cast(cast.client)
    again.prepare(persist_mode=GLib.Variant("u", 1), restore_token=GLib.Variant("s", token))
    response, results = again.start()
    assert response == 0 and results["restore_token"]
    assert screen.get("RestoresUsed") == 1 and screen.get("PickersOpen") == 0


def test_refuses_to_remember(screen, cast):
    screen.configure(restore="refuse")
    cast.prepare(persist_mode=GLib.Variant("u", 1))
    response, results = cast.start()
    assert response == 0 and "restore_token" not in results


# The source's side


@pytest.mark.parametrize("name", ["BGRx", "BGRA", "RGBx", "RGBA", "xRGB", "ARGB", "xBGR", "ABGR", "RGB", "BGR"])
def test_formats(screen, watch, name):
    screen.configure(formats=[name], size=(646, 486), unused_byte=GLib.Variant("y", 0 if "x" in name else 255))
    frames = watch(formats=name).wait_for_frames(3)
    assert all(frame["channels"] == "rgb" and frame["size"] == [646, 486] for frame in frames), frames
    assert screen.streams[0]["format"] == name


@pytest.mark.parametrize("settings", [
    {"memory": "memptr"}, {"sealed": False}, {"buffers": 2}, {"header": False}, {"max_rate": "absent"},
    {"max_rate": "zero"}, {"max_rate": "fixed"}, {"damage": "garbage"}, {"cursor": "normal"}, {"cursor": "outside"}, {"overwrite": True},
    {"pts": "invalid"}, {"pts": "equal"}, {"fps_min": 5, "fps": 120}, {"workload": "typing"}, {"workload": "scrolling"},
    {"workload": "video"}, {"workload": "repeats"}, {"planes": 2},
], ids=lambda settings: "-".join(f"{key}-{value}" for key, value in settings.items()))
def test_whole_pictures_come_whatever_the_source_does(screen, watch, settings):
    screen.configure(**settings)
    frames = watch().wait_for_frames(8)
    # GStreamer may read its first buffer after it gave it back, which "overwrite" shows.
    frames = frames[3 if "overwrite" in settings else 0:]
    assert all(frame["size"] == [1280, 720] for frame in frames), frames
    numbers = [frame["number"] for frame in frames]
    assert numbers == sorted(numbers)


@pytest.mark.parametrize("workload", ["moving", "typing", "scrolling", "video", "repeats"])
def test_the_same_number_is_the_same_picture(workload):
    """What is printed, what comes one after the other, and what is painted anew in between."""
    width, height = 640, 360
    done = subprocess.run([program("vitrine-testscreen"), "--pictures", "100", "--workload", workload, "--size", f"{width}x{height}"],
                          capture_output=True, check=True)
    printed = numpy.frombuffer(done.stdout, numpy.uint8).reshape(100, height, width, 4)[:, :, :, 2::-1]
    assert picture.numbers(printed) == ([1] * 100 if workload == "repeats" else list(range(1, 101)))
    with Session(agent="absent", screen_arguments=["--workload", workload, "--size", f"{width}x{height}"]) as session:
        own_screen, own_cast = TestScreen(session.client), Cast(session.client)
        (node, _), = own_cast.granted()
        began = time.monotonic_ns()
        with own_cast.watch(session, node) as reader:
            reader.wait_for_frames(45)
            own_screen.configure(workload=workload)
            frames = reader.wait_for_frames(75)
        timeline = own_screen.get("Timeline")
    known = {number: zlib.crc32(image.tobytes()) for number, image in zip(picture.numbers(printed), printed)}
    compared = [frame for frame in frames if frame["number"] in known]
    assert len(compared) > 40 or workload == "repeats" and compared
    assert [frame["crc"] for frame in compared] == [known[frame["number"]] for frame in compared]
    # The screen knows when it sent which.
    assert {frame["number"] for frame in frames} <= {number for number, _ in timeline}
    times = [when for _, when in timeline]
    assert times == sorted(times) and began < times[0] and times[-1] < time.monotonic_ns()


@pytest.mark.parametrize("size", [(1, 1), (3, 5), (40, 36), (641, 479), (1279, 719), (1920, 1080), (3840, 2160)])
def test_sizes(screen, watch, size):
    screen.configure(size=size)
    frames = watch().wait_for_frames(3)
    assert all((frame["width"], frame["height"]) == size for frame in frames)
    if min(size) > 20:
        assert all(tuple(frame["size"]) == size for frame in frames)


def test_size_changes_and_back(world, screen, cast):
    (node, _), = cast.granted()
    with cast.watch(world, node) as reader:
        reader.wait_for_frames(3)
        for size in [(640, 480), (1280, 720), (1920, 1080), (1280, 720)]:
            screen.set_size(*size)
            screen.wait_until("Streams", lambda streams: streams[0].get("size") == size)
            frames = screen.streams[0]["frames"]
            screen.wait_until("Streams", lambda streams: streams[0]["frames"] > frames + 3)
            # GStreamer's source shows old pictures after a change; one that comes now sees the new ones.
            with cast.watch(world, node) as late:
                assert tuple(late.wait_for_frames(2)[-1]["size"]) == size


@pytest.mark.parametrize("settings", [{"stride_padding": 256}, {"stride_padding": 4, "offset": 0, "memory": "memptr"}])
def test_stride(screen, watch, settings):
    screen.configure(size=(643, 481), **settings)
    stride = 643 * 4 + settings["stride_padding"]
    frames = watch(formats="BGRx", stride=stride).wait_for_frames(3)
    assert all(frame["size"] == [643, 481] for frame in frames)
    assert screen.streams[0]["stride"] == stride


@pytest.mark.parametrize("transform", range(8))
def test_transforms_turn_the_buffer(screen, watch, transform):
    screen.configure(size=(800, 600), transform=transform)
    frames = watch().wait_for_frames(3)
    names = list(picture.ORIENTATIONS)
    # This version of GStreamer's source does not undo transforms, so the picture comes as it is in memory.
    expected = (600, 800) if transform % 2 else (800, 600)
    assert all((f["width"], f["height"]) == expected and f["orientation"] == names[transform] and f["size"] == [800, 600] for f in frames), frames


def test_still_screen_sends_one_picture_to_each_consumer(world, screen, cast):
    screen.configure(workload="still")
    (node, _), = cast.granted()
    with cast.watch(world, node) as first:
        first.wait_for_frames(1)
        produced = screen.get("FramesProduced")
        with cast.watch(world, node) as second:
            second.wait_for_frames(1)
            assert second.frames[0]["number"] == first.frames[0]["number"]
        assert screen.get("FramesProduced") == produced + 1


def test_pointer_is_in_the_pixels_when_asked(world, screen, cast):
    # Without a red bar that the ball hides and shows.
    screen.configure(workload="scrolling")
    red = {}
    for mode in (1, 2, 4):
        cast = Cast(cast.client)
        (node, _), = cast.granted(cursor_mode=GLib.Variant("u", mode))
        with cast.watch(world, node) as reader:
            frames = reader.wait_for_frames(10)
        assert all(frame["size"] == [1280, 720] for frame in frames)
        red[mode] = max(frame["red"] for frame in frames)
        cast.close()
        screen.wait_until("Streams", [])
    assert red[1] == red[4] and red[2] > red[1] + 200, red


def test_masks_reach_the_portal():
    """The portal reads them once, when it starts."""
    with Session(agent="absent", screen_arguments=["--source-types", "1", "--cursor-modes", "3"]) as session:
        assert session.client.get(PORTAL, PORTAL_PATH, SCREEN_CAST, "AvailableSourceTypes") == 1
        assert session.client.get(PORTAL, PORTAL_PATH, SCREEN_CAST, "AvailableCursorModes") == 3


def test_error_and_unlink(world, screen, cast):
    (node, _), = cast.granted()
    with cast.watch(world, node) as reader:
        reader.wait_for_frames(2)
        screen.unlink()
        screen.wait_until("Streams", lambda streams: not streams or not streams[0].get("consumers"))
    screen.set_error("no more")
    screen.wait_until("Streams", lambda streams: streams[0]["state"] == "error")


def test_manual_pictures(screen, watch):
    screen.configure(manual=True)
    reader = watch()
    first = reader.wait_for_frames(1)[0]["number"]
    last = screen.push_frames(5)
    assert last == first + 5
    reader.wait_for(lambda frames: frames[-1]["number"] == last, "the last picture")
    assert screen.streams[0]["number"] == last


def test_nobody_to_push_to(screen, cast):
    with pytest.raises(BusError) as error:
        screen.push_frames(1)
    assert error.value.name == "org.vitrine.TestScreen1.Error.NoStream"


def test_numbers_go_on_in_the_next_session(world, screen):
    last = 0
    for _ in range(2):
        cast = Cast(world.new_client())
        (node, _), = cast.granted()
        with cast.watch(world, node) as reader:
            numbers = [frame["number"] for frame in reader.wait_for_frames(3)]
        assert min(numbers) > last
        last = max(numbers)
        cast.client.close()
        screen.wait_until("Streams", [])


def test_pause_and_resume(world, screen, cast):
    (node, _), = cast.granted()
    with cast.watch(world, node) as reader:
        reader.wait_for_frames(3)
        screen.pause()
        screen.wait_until("Streams", lambda streams: streams[0]["state"] == "paused")
        produced = screen.get("FramesProduced")
    screen.resume()
    # GStreamer's source does not get over a pause and keeps every buffer; a new one shows that the node goes on.
    with cast.watch(world, node) as reader:
        frames = reader.wait_for_frames(3)
    assert screen.get("FramesProduced") > produced and all(frame["number"] for frame in frames)


def test_clear_format(world, screen, cast):
    """Format and buffers go, and come again with the next that runs."""
    (node, _), = cast.granted()
    with cast.watch(world, node) as reader:
        reader.wait_for_frames(2)
        screen.pause()
        screen.wait_until("Streams", lambda streams: streams[0]["state"] == "paused")
        screen.clear_format()
        screen.wait_until("Streams", lambda streams: "size" not in streams[0] and streams[0]["buffers"] == 0)
        screen.resume()
        screen.wait_until("Streams", lambda streams: streams[0].get("size") == (1280, 720) and streams[0]["buffers"] > 0)


def test_vanish_takes_the_node_away(world, screen, watch):
    reader = watch()
    reader.wait_for_frames(3)
    screen.vanish()
    assert screen.streams == [] and screen.get("OpenSessions") == 1
    listing = world.run(["pw-dump", "--no-colors"]).stdout
    assert "Vitrine test screen" not in listing


def test_lies_about_a_buffer(screen, watch):
    screen.configure(corrupt_header_every=3, cursor_only_every=4)
    frames = watch().wait_for_frames(20)
    # GStreamer passes some of the garbage on; good pictures come all the same.
    assert len(readable(frames)) >= 5


def test_crop_surrounds_the_picture(screen, watch):
    screen.configure(crop=(64, 32, 960, 600))
    frames = watch().wait_for_frames(3)
    # GStreamer crops, or passes the whole buffer on.
    assert all((f["width"], f["height"]) in ((960, 600), (1280, 720)) for f in frames)
    assert screen.streams[0]["size"] == (1280, 720)


def test_decoy_is_not_granted(world, screen, cast):
    screen.configure(decoy=True)
    streams = cast.granted()
    assert len(streams) == 1
    listing = world.run(["pw-dump", "--no-colors"]).stdout
    assert "vitrine-testdecoy" in listing


# The program


def test_wrong_settings_change_nothing(screen):
    before = screen.get("Settings")
    for settings, word in [
        ({"no-such-thing": True}, "no-such-thing"), ({"fps": "fast"}, "fps"), ({"fps": 2000}, "fps"), ({"size": (0, 5)}, "size"),
        ({"formats": ["BGRz"]}, "formats"), ({"answer": "perhaps", "streams": 2}, "answer"),
    ]:
        with pytest.raises(BusError) as error:
            screen.configure(**settings)
        assert error.value.name == INVALID and word in error.value.message
    assert screen.get("Settings") == before


def test_introspection_and_help_are_true(world, screen):
    text = screen.client.call(TEST_SCREEN, SCREEN_PATH, "org.freedesktop.DBus.Introspectable", "Introspect")[0]
    root = xml.etree.ElementTree.fromstring(text)
    properties = {p.get("name"): p.get("type") for p in root.findall(f"./interface[@name='{TEST_SCREEN}']/property")}
    assert set(properties) == set(screen.client.get_all(TEST_SCREEN, SCREEN_PATH, TEST_SCREEN))
    listed = world.run([program("vitrine-testscreen"), "--help"]).stdout
    for key in screen.get("Settings"):
        assert f"--{key}" in listed


@pytest.mark.parametrize("arguments", [["--fps"], ["--fps", "x"], ["--nonsense"], ["--size", "10"], ["word"], ["--answer", "perhaps"]])
def test_wrong_command_lines(world, arguments):
    done = world.run([program("vitrine-testscreen"), *arguments], check=False)
    assert done.returncode == 2 and done.stderr.startswith("vitrine-testscreen: ") and done.stdout == ""


def test_without_portal_or_bus(world):
    """The sources alone, for programs that read nodes by themselves."""
    environment = {**world.environment, "DBUS_SESSION_BUS_ADDRESS": "unix:path=/nonexistent"}
    process = subprocess.Popen(
        [program("vitrine-testscreen"), "--no-portal", "--size", "320x240"], env=environment, stderr=subprocess.PIPE, text=True)
    try:
        for line in process.stderr:
            if " is node " in line:
                break
        with NodeReader(world, line.rsplit(None, 1)[1]) as reader:
            assert reader.wait_for_frames(3)[-1]["size"] == [320, 240]
        process.send_signal(signal.SIGTERM)
        assert process.wait(10) == 0
    finally:
        process.kill()
        process.wait()


def test_reports_that_pipewire_died():
    with Session(agent="absent", portal="absent") as session:
        session.processes.end(session.pipewire, first=signal.SIGKILL)
        assert session.screen.wait(20) == 1
        assert "PipeWire is gone" in session.processes.log("testscreen")


def test_ends_at_a_signal():
    with Session(agent="absent", portal="absent") as session:
        assert session.processes.end(session.screen) == 0


def test_reader_knows_all_orientations_and_scales():
    """picture.py against a picture that it draws itself."""
    image = numpy.full((360, 400, 3), 112, numpy.uint8)

    def fill(column, row, width, height, colour):
        image[row * 20:(row + height) * 20, column * 20:(column + width) * 20] = colour

    for (column, row, _), colour in zip(picture.CORNERS, [(255, 0, 0), (0, 255, 0), (0, 0, 255), (255, 255, 255)]):
        fill(column, row, 2, 2, colour)
    words = [3, 0x1234, 400, 360]
    for row, word in enumerate(words + [picture.check(words)]):
        for column in range(16):
            fill(2 + column, 2 + row, 1, 1, 255 if word >> (15 - column) & 1 else 0)
    turned = {
        "normal": image, "90": numpy.rot90(image), "180": numpy.rot90(image, 2), "270": numpy.rot90(image, 3), "flipped": image[:, ::-1],
        "flipped-90": numpy.rot90(image[:, ::-1]), "flipped-180": image[::-1], "flipped-270": numpy.rot90(image[:, ::-1], 3),
    }
    for name, view in turned.items():
        framed = numpy.zeros((500, 600, 3), numpy.uint8)
        framed[30:30 + view.shape[0], 50:50 + view.shape[1]] = view
        reading = picture.read(framed)
        assert reading == picture.Reading(0x31234, 400, 360, name, (50, 30, view.shape[1], view.shape[0]), "rgb")
    assert picture.read(image[:, :, ::-1]).channels == "bgr"
    assert picture.read(image[::4, ::4]).number == 0x31234
    assert picture.read(numpy.zeros((50, 50, 3), numpy.uint8)) is None
    image[70, :] = 0
    assert picture.read(image[:200]) is None
