# SPDX-License-Identifier: MIT
"""The whole way on a real desktop: the real portal, the real picker, and what is really on the screen."""

import numpy
import pytest
from gi.repository import GLib

import peers
import picture
from arrangement import arranged
from harness import ERROR, BusError, options
from processes import wait_until

MONITOR, WINDOW = 1, 2


def picture_of(track, tmp_path, name="share.webm"):
    """The last picture of a recording that is made now, as ffmpeg decodes it."""
    subscription = track.subscribe()
    recording = subscription.record(tmp_path / name)
    subscription.wait_until("Statistics", lambda statistics: statistics["sent"] >= 1)
    subscription.unsubscribe()
    return recording.wait_for_end().frames()[-1]


def difference(picture, expected):
    """The mean difference of two pictures, in steps of 256."""
    assert picture.shape == expected.shape, f"{picture.shape} is not {expected.shape}"
    return abs(picture.astype(int) - expected.astype(int)).mean()


def begin(agent, **options):
    """Asks for a share on the desktop track and waits until its picker is to be seen."""
    pending = agent.start_screen_share(True, wait=True, **options)
    agent.desktop.wait_for_change("State", "choosing")
    return pending


def share(desktop, agent, options=None, **choice):
    """A share that the person agrees to; returns when frames flow."""
    pending = begin(agent, **(options or {}))
    desktop.hand.share(**choice)
    pending.wait()
    return agent.desktop


def names_since(agent, mark):
    """The signals of the contract since a mark."""
    return [event.name for event in agent.events[mark:] if event.kind == "signal" and event.interface.startswith("org.vitrine.")]


def test_the_chosen_monitor_is_what_readers_see(desktop, agent, tmp_path):
    track = agent.desktop
    pending = begin(agent)
    desktop.hand.wait_for_picker()
    assert (track.get("IsCapturing"), track.get("IsBroadcastActive"), agent.get("IsBroadcastActive")) == (True, False, False)
    assert not pending.done

    desktop.hand.share(index=0)
    assert pending.wait() == (track.path,)
    assert (track.state, agent.get("IsBroadcastActive")) == ("active", True)
    assert names_since(agent, 0) == ["BroadcastStarted"]
    (source,) = track.get("Sources")
    assert source["type"] == MONITOR
    assert tuple(source["pixel-size"]) == (1280, 720)
    desktop.hand.wait_for_indicator()

    assert difference(picture_of(track, tmp_path), desktop.screenshot_of(monitor=0)) < 6


def test_the_second_of_two_monitors(desktop, agent, tmp_path):
    track = share(desktop, agent, index=1)
    (source,) = track.get("Sources")
    assert tuple(source["pixel-size"]) == (1024, 768)
    assert tuple(source["position"]) == (1280, 0)
    picture = picture_of(track, tmp_path)
    assert difference(picture, desktop.screenshot_of(monitor=1)) < 6
    assert difference(picture, desktop.screenshot_of(monitor=0)[:, :1024].repeat(2, axis=0)[:768]) > 40


def test_a_window_instead_of_a_monitor(desktop, agent, tmp_path):
    track = share(desktop, agent, page="Window", name="teal")
    (source,) = track.get("Sources")
    assert source["type"] == WINDOW
    picture = picture_of(track, tmp_path)
    middle = picture[picture.shape[0] // 4:, picture.shape[1] // 4:].reshape(-1, 3).mean(axis=0)
    assert abs(middle - (0, 128, 128)).max() < 10


def share_several(desktop, agent, *choices, expected=2, **given):
    """A share of several sources that the person chooses in the picker; a choice of a `page` turns to that."""
    pending = begin(agent, multiple=True, preset="native", **given)
    desktop.hand.wait_for_picker()
    for choice in choices:
        if "page" in choice:
            desktop.hand.wait("picker_page", name=choice["page"])
        else:
            desktop.hand.wait("picker_choose", **choice)
    desktop.hand.wait("picker_press", label="Share")
    desktop.hand.wait_for_no_picker()
    pending.wait()
    track = agent.desktop
    track.wait_until("Sources", lambda sources: len(sources) == expected and all("pixel-size" in one for one in sources))
    return track


def parts_of(track, tmp_path, layout, name):
    """Each source with what is in its place of a recording that is made now."""
    sources = track.get("Sources")
    whole, places = arranged([one["pixel-size"] for one in sources], layout)
    track.wait_until("Size", whole)
    image = picture_of(track, tmp_path, name)
    assert image.shape[:2] == whole[::-1]
    return [(source, image[y:y + height, x:x + width]) for source, (x, y, width, height) in zip(sources, places)]


@pytest.mark.parametrize("layout", ["grid", "row"])
def test_two_monitors_in_one_picture(desktop, agent, tmp_path, layout):
    """The person chooses both monitors: each is in its place as the shell shows it. One share ends with one click."""
    agent.desktop.set("Layout", "s", layout)
    track = share_several(desktop, agent, {"index": 0}, {"index": 1})
    assert [one["type"] for one in track.get("Sources")] == [MONITOR, MONITOR]
    for source, part in parts_of(track, tmp_path, layout, "monitors.webm"):
        assert difference(part, desktop.screenshot_of(monitor=0 if source["position"][0] == 0 else 1)) < 6
    mark = agent.mark()
    desktop.hand.stop_sharing()
    assert track.wait_for_signal("BroadcastFinished", since=mark).value[0] == "ended-by-desktop"
    assert names_since(agent, mark) == ["BroadcastFinished"]
    desktop.hand.wait_for_no_indicator()


def test_two_windows_in_one_picture(desktop, agent, tmp_path):
    """The person chooses two windows: both are in the picture. With the first that is closed this desktop ends the session, and so all of it."""
    track = share_several(desktop, agent, {"page": "Window"}, {"name": "teal"}, {"name": "crimson"})
    parts = [part for _, part in parts_of(track, tmp_path, "grid", "windows.webm")]
    teal, crimson = sorted((part[part.shape[0] // 4:, part.shape[1] // 4:].reshape(-1, 3).mean(axis=0) for part in parts), key=lambda colour: colour[0])
    assert abs(teal - (0, 128, 128)).max() < 10 and abs(crimson - (192, 32, 32)).max() < 10
    mark = agent.mark()
    desktop.processes.end(desktop.windows["teal"])
    assert track.wait_for_signal("BroadcastFinished", since=mark).value[0] == "ended-by-desktop"
    assert (track.state, track.get("Sources")) == ("listening", [])


def test_monitors_and_a_window_cannot_be_chosen_together(desktop, agent, tmp_path):
    """GNOME's picker, that of 43 and that of 48, forgets what is chosen of one page when it is turned to the other. What it then says is what is shared."""
    track = share_several(desktop, agent, {"index": 0}, {"index": 1}, {"page": "Window"}, {"name": "teal"}, expected=1)
    ((source, part),) = parts_of(track, tmp_path, "grid", "forgotten.webm")
    assert source["type"] == WINDOW
    assert abs(part[part.shape[0] // 4:, part.shape[1] // 4:].reshape(-1, 3).mean(axis=0) - (0, 128, 128)).max() < 10


def test_windows_only_are_offered_when_only_they_are_asked_for(desktop, agent):
    begin(agent, sources=WINDOW)
    desktop.hand.wait_for_picker()
    rows = desktop.hand.wait("picker_rows")
    assert any("teal" in row for row in rows) and any("crimson" in row for row in rows), rows
    desktop.hand.cancel()


def test_the_person_ends_the_share_in_the_shells_indicator_and_shares_again(desktop, agent, tmp_path):
    track = share(desktop, agent, index=0)
    subscription = track.subscribe()
    recording = subscription.record(tmp_path / "both.webm")
    subscription.wait_until("Statistics", lambda statistics: statistics["sent"] >= 1)

    mark = agent.mark()
    desktop.hand.stop_sharing()
    finished = track.wait_for_signal("BroadcastFinished", since=mark)
    assert finished.value[0] == "ended-by-desktop"
    assert (track.state, track.get("IsCapturing"), track.get("IsBroadcastActive")) == ("listening", True, False)
    assert names_since(agent, mark) == ["BroadcastFinished"]
    desktop.hand.wait_for_no_indicator()

    delivered = track.statistics["delivered"]
    share(desktop, agent, index=1)
    assert track.state == "active"
    assert names_since(agent, mark) == ["BroadcastFinished", "BroadcastStarted"]
    # The reader of the first share sees the second one in the stream that it has, letterboxed into its size.
    track.wait_until("Statistics", lambda statistics: statistics["delivered"] > delivered)
    subscription.unsubscribe()
    pictures = recording.wait_for_end().frames()
    assert pictures[0].shape == pictures[-1].shape == (720, 1280, 3)
    assert abs(pictures[0][600, 640].astype(int) - (192, 32, 32)).max() < 12
    assert abs(pictures[-1][600, 640].astype(int) - (0, 128, 128)).max() < 12
    track.stop_broadcast()
    assert track.state == "listening"
    desktop.hand.wait_for_no_indicator()


def test_a_cancelled_picker_is_a_normal_outcome_and_can_be_tried_again(desktop, agent):
    track = agent.desktop
    pending = begin(agent)
    desktop.hand.cancel()
    with pytest.raises(BusError) as failure:
        pending.wait()
    assert failure.value.name == ERROR + "Cancelled"
    assert track.wait_for_signal("StartFailed").value[0] == ERROR + "Cancelled"
    assert (track.state, names_since(agent, 0)) == ("listening", ["StartFailed"])

    share(desktop, agent, index=0)
    assert names_since(agent, 0) == ["StartFailed", "BroadcastStarted"]


def test_a_picker_that_nobody_answers_times_out_and_closes(desktop, agent):
    track = agent.desktop
    pending = begin(agent, timeout=3)
    desktop.hand.wait_for_picker()
    with pytest.raises(BusError) as failure:
        pending.wait()
    assert failure.value.name == ERROR + "TimedOut"
    assert track.wait_for_signal("StartFailed").value[0] == ERROR + "TimedOut"
    assert (track.state, names_since(agent, 0)) == ("listening", ["StartFailed"])
    desktop.hand.wait_for_no_picker()


def test_stopping_the_capture_closes_the_picker(desktop, agent):
    track = agent.desktop
    pending = begin(agent)
    desktop.hand.wait_for_picker()
    track.stop_capture()
    with pytest.raises(BusError) as failure:
        pending.wait()
    assert failure.value.name == ERROR + "Cancelled"
    assert (track.state, track.get("IsCapturing")) == ("idle", False)
    desktop.hand.wait_for_no_picker()
    assert "BroadcastStarted" not in names_since(agent, 0)


def test_the_indicator_goes_out_when_the_agent_ends(desktop):
    process, agent = desktop.start_agent()
    track = share(desktop, agent, index=0)
    desktop.hand.wait_for_indicator()
    assert desktop.processes.end(process) == 0
    assert track.wait_for_signal("BroadcastFinished").value[0] == "agent-exit"
    desktop.hand.wait_for_no_indicator()


def test_a_remembered_choice_is_asked_for_once(desktop, agent):
    """The first share opens the picker; the second one of the same client shows the same monitor without it, and is announced all the same."""
    track = share(desktop, agent, {"persist": "session"}, index=1)
    assert tuple(track.get("Sources")[0]["pixel-size"]) == (1024, 768)
    agent.set_screen_share(False)
    desktop.hand.wait_for_no_indicator()

    mark = agent.mark()
    agent.set_screen_share(True, wait=True, persist="session")
    assert names_since(agent, mark) == ["BroadcastStarted"]
    assert tuple(track.get("Sources")[0]["pixel-size"]) == (1024, 768)
    desktop.hand.wait_for_indicator()
    agent.set_screen_share(False)

    begin(agent)
    desktop.hand.cancel()


@pytest.mark.skipif(not peers.sandboxing_works(), reason="this machine lets nobody make a sandbox (bwrap --unshare-user)")
def test_an_application_is_remembered_for_ever(desktop, agent):
    """What an application in a sandbox was granted for ever it is granted without the picker when it comes back; another one is asked."""
    for application, asks in (("org.example.Teacher", True), ("org.example.Teacher", False), ("org.example.Pupil", True)):
        with peers.flatpak(desktop, application) as peer:
            path = peer.create_track(persist="forever")
            peer.track(path, "StartCapture")
            peer.track(path, "StartBroadcast", options())
            if asks:
                desktop.hand.share(index=1)
            agent.track(path).wait_until("State", "active")
            assert tuple(agent.track(path).get("Sources")[0]["pixel-size"]) == (1024, 768)
        desktop.hand.wait_for_no_indicator()


class PointerDevice:
    """A mouse of the desktop's own: what its remote desktop would move."""

    NAME, PATH = "org.gnome.Mutter.RemoteDesktop", "/org/gnome/Mutter/RemoteDesktop"

    def __init__(self, desktop):
        self.client = desktop.new_client()
        (self.session,) = self.client.call(self.NAME, self.PATH, self.NAME, "CreateSession")
        self.call("Start")
        # Into the corner, from where the ways are known.
        self.move(-10_000, -10_000)

    def call(self, member, arguments=None):
        self.client.call(self.NAME, self.session, f"{self.NAME}.Session", member, arguments)

    def move(self, x, y):
        self.call("NotifyPointerMotionRelative", GLib.Variant("(dd)", (x, y)))


def test_the_pointer_beside_the_pixels_is_drawn_where_it_is(desktop, agent, tmp_path):
    device = PointerDevice(desktop)
    places = [(400, 510), (700, 480), (1000, 600)]
    device.move(*places[0])
    track = share(desktop, agent, options={"cursor": "metadata"}, index=0)
    assert agent.get("AvailableCursorModes") & 4 and agent.get("Capabilities")["cursor-metadata"] is True
    subscription = track.subscribe(format="y4m")
    recording = subscription.record(tmp_path / "pointer.y4m")
    recording.wait_for_bytes(1)

    def tip():
        """Where what is not the window's colour begins, in the newest picture of the recording; None when nothing is."""
        header, _, pictures = recording.path.read_bytes().partition(b"\n")
        size = 1280 * 720 * 3 // 2
        count = len(pictures) // (size + 6)
        if not count:
            return None
        image = picture.i420(pictures[(count - 1) * (size + 6) + 6:count * (size + 6)], 1280, 720)
        rows, columns = numpy.nonzero(abs(image[450:700, 200:1200].astype(int) - (192, 32, 32)).max(axis=2) > 60)
        assert not len(rows) or max(numpy.ptp(rows), numpy.ptp(columns)) < 64
        return (columns.min() + 200, rows.min() + 450) if len(rows) else None

    for (x, y), (next_x, next_y) in zip(places, [*places[1:], (1300, 600)]):
        # An arrow's tip is at its top left.
        wait_until(lambda: (found := tip()) and abs(found[0] - x) < 12 and abs(found[1] - y) < 12 or None, f"the pointer at {x}, {y}")
        device.move(next_x - x, next_y - y)
    # On the other monitor it is not in what is shared.
    wait_until(lambda: tip() is None or None, "no pointer")
    assert track.statistics["cursor-only"] > 0
    subscription.close()
