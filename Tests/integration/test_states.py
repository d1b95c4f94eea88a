# SPDX-License-Identifier: MIT
"""The states of a track, over the bus and behind the real portal: how one leads to the next, and in which order that is told."""

import select
import time

import pytest
from gi.repository import GLib

from contract import refused
from harness import DESKTOP_TRACK, ERROR, PORTAL, ROOT, TRACK
from processes import wait_until
from screen import TestScreen
from story import last_of, story


@pytest.fixture
def track(me):
    """The desktop track, listening."""
    me.desktop.start_capture()
    return me.desktop


def states(agent, since, path=DESKTOP_TRACK):
    """The states that were announced."""
    return [message.value["State"] for message in story(agent, since, path) if message.what == "track" and "State" in message.value]


# From idle to active and back


def test_whole_way(me, track, screen):
    """idle, listening, choosing, active, listening, idle: each state is announced once, capturing and broadcasting are two things."""
    track.stop_capture()
    mark = me.mark()
    screen.configure(answer="never")
    track.start_capture()
    assert (track.get("IsCapturing"), track.get("IsBroadcastActive"), track.state) == (True, False, "listening")
    track.start_broadcast()
    screen.wait_for_picker()
    assert (track.get("IsCapturing"), track.get("IsBroadcastActive"), track.state) == (True, False, "choosing")
    screen.answer_picker()
    track.wait_for_signal("BroadcastStarted", since=mark)
    assert (track.get("IsCapturing"), track.get("IsBroadcastActive"), track.state) == (True, True, "active")
    track.stop_broadcast()
    assert (track.get("IsCapturing"), track.get("IsBroadcastActive"), track.state) == (True, False, "listening")
    track.stop_capture()
    assert (track.get("IsCapturing"), track.get("IsBroadcastActive"), track.state) == (False, False, "idle")
    assert states(me, mark) == ["listening", "choosing", "active", "listening", "idle"]


def test_calls_that_change_nothing(me, track):
    """StartCapture while capturing, StopBroadcast while nothing is broadcast and StopCapture in idle are answered, and nothing happens."""
    mark = me.mark()
    track.start_capture()
    track.stop_broadcast()
    assert track.state == "listening" and story(me, mark) == [m for m in story(me, mark) if m.what == "reply"]
    track.stop_capture()
    mark = me.mark()
    track.stop_capture()
    track.stop_broadcast()
    assert track.state == "idle" and story(me, mark) == [m for m in story(me, mark) if m.what == "reply"]


def test_order_of_a_start(me, track):
    """The start is told in this order: one PropertiesChanged of the track with all of it, the agent's, BroadcastStarted, the reply."""
    mark = me.mark()
    before = time.time()
    track.start_broadcast(wait=True)
    changed, agent, signal, reply = last_of(me, mark, 4)
    assert changed.what == "track" and set(changed.value) >= {"State", "IsBroadcastActive", "Size", "StartedAt"}, changed
    assert (changed.value["State"], changed.value["IsBroadcastActive"], changed.value["Size"]) == ("active", True, (1280, 720))
    assert before - 1 <= changed.value["StartedAt"] / 1e6 <= time.time() + 1
    assert (agent.what, agent.value) == ("agent", {"IsBroadcastActive": True})
    assert (signal.what, signal.name, signal.value) == ("signal", "BroadcastStarted", ())
    assert (reply.what, reply.name) == ("reply", "StartBroadcast")
    # Nothing of what is true of a broadcast was told before there was one.
    early = story(me, mark)[:-4]
    assert not [m for m in early if m.what == "track" and {"IsBroadcastActive", "Size", "StartedAt"} & set(m.value)], early


@pytest.mark.parametrize("member", ["StopBroadcast", "StopCapture"])
def test_order_of_an_end(me, track, member):
    """The end: streams first, then one PropertiesChanged of the track, the agent's, BroadcastFinished, the reply. StopCapture goes on to idle."""
    subscription = track.subscribe(placeholder="end")
    track.start_broadcast(wait=True)
    ended = select.poll()
    ended.register(subscription.descriptor, 0)
    at_the_signal = []
    me.client.on_signal("BroadcastFinished", lambda: at_the_signal.append(ended.poll(0)))
    mark = me.mark()
    track.call(member)
    if member == "StopCapture":
        idle, reply = last_of(me, mark, 2)
        assert idle.value == {"State": "idle", "IsCapturing": False}
        told = story(me, mark)[:-2]
    else:
        told, reply = story(me, mark)[:-1], story(me, mark)[-1]
    changed, agent, signal = told
    assert changed.what == "track" and changed.value == {
        "State": "listening", "IsBroadcastActive": False, "Size": (0, 0), "StartedAt": 0, "Sources": [], "Subscriptions": []}
    assert (agent.what, agent.value) == ("agent", {"IsBroadcastActive": False})
    assert (signal.name, signal.value[0]) == ("BroadcastFinished", "stopped") and signal.value[1]
    assert (reply.what, reply.name) == ("reply", member)
    assert [event & select.POLLHUP for _, event in at_the_signal[0]] == [select.POLLHUP], "the stream had not ended at the signal"
    subscription.close()


def test_order_of_a_failed_start(me, track, screen):
    """A start that fails: one PropertiesChanged of the track with the state and the error, StartFailed, the error; no Started, no Finished."""
    screen.configure(answer="cancel")
    mark = me.mark()
    error = refused(track.start_broadcast, wait=True)
    assert error.name == ERROR + "Cancelled"
    changed, signal, reply = last_of(me, mark, 3)
    assert (changed.what, set(changed.value)) == ("track", {"State", "LastErrorName", "LastError"}), changed
    assert changed.value["State"] == "listening" and changed.value["LastErrorName"] == ERROR + "Cancelled"
    assert (signal.name, signal.value) == ("StartFailed", (ERROR + "Cancelled", changed.value["LastError"]))
    assert (reply.what, reply.name, reply.value) == ("error", ERROR + "Cancelled", changed.value["LastError"])
    assert not [m for m in story(me, mark) if m.name in ("BroadcastStarted", "BroadcastFinished")]


def test_last_error_is_cleared_by_the_next_start(me, screen):
    """LastError tells of the last failed start, in words, until the next start."""
    track = me.create_track()
    track.start_capture()
    assert (track.get("LastErrorName"), track.get("LastError")) == ("", "")
    screen.configure(answer="cancel")
    refused(track.start_broadcast, wait=True)
    assert track.get("LastErrorName") == ERROR + "Cancelled" and " " in track.get("LastError")
    screen.configure(answer="ok")
    track.start_broadcast(wait=True)
    assert (track.get("LastErrorName"), track.get("LastError")) == ("", "")


def test_without_wait(me, track, screen):
    """Without wait the call returns when the picker was asked for; the outcome is a signal, of a cancelled one too."""
    screen.configure(answer="never")
    for answer, name in (("cancel", "StartFailed"), ("ok", "BroadcastStarted")):
        mark = me.mark()
        track.start_broadcast(wait=False)
        assert track.state == "choosing"
        screen.answer_picker(answer)
        track.wait_for_signal(name, since=mark)


def test_what_a_broadcast_shows(me, track, screen):
    """An active track shows what the user picked, how big it is and since when; afterwards none of it."""
    screen.configure(size=(800, 600), position=(100, 50), logical_size=(400, 300), stream_id="screen", stride_padding=64)
    track.start_broadcast(wait=True)
    (source,) = track.get("Sources")
    stream = screen.get("Streams")[0]
    assert source == {
        "type": 1, "id": source["id"], "position": (100, 50), "logical-size": (400, 300), "pixel-size": (800, 600),
        "node": stream["node"], "format": "BGRx", "stride": 800 * 4 + 64, **({"serial": source["serial"]} if "serial" in source else {})}
    assert source["id"].startswith("screen")
    assert track.get("Size") == (800, 600)
    started = track.get("StartedAt")
    assert abs(started / 1e6 - time.time()) < 60
    track.stop_broadcast()
    assert (track.get("Sources"), track.get("Size"), track.get("StartedAt")) == ([], (0, 0), 0)


def test_what_the_portal_does_not_say_is_absent(me, track, screen):
    """A key of Sources that the portal did not give is not made up."""
    screen.configure(omit=["id", "position", "size", "source_type"])
    track.start_broadcast(wait=True)
    (source,) = track.get("Sources")
    assert not {"id", "position", "logical-size", "type"} & set(source), source
    assert source["pixel-size"] == (1280, 720)


def test_preset_limits_size(me, track):
    """Size is what is sent: the source, in its own shape, within the preset; a preset that is written takes effect at once."""
    track.set("Preset", "s", "h360p")
    track.start_broadcast(wait=True)
    assert track.get("Size") == (640, 360)
    mark = me.mark()
    track.set("Preset", "s", "h480p")
    track.wait_for_change("Size", (853, 480), mark)
    track.set("Preset", "s", "native")
    assert track.get("Size") == (1280, 720)


# Faults: B06 B08 B58
def test_source_that_pauses(me, track, screen):
    """A source that the compositor stops for a while is no end: the track stays active, SourcePaused is true until it goes on."""
    track.start_broadcast(wait=True)
    mark = me.mark()
    screen.pause()
    track.wait_for_change("SourcePaused", True, mark)
    assert track.state == "active"
    screen.resume()
    track.wait_for_change("SourcePaused", False, mark)
    assert not [m for m in story(me, mark) if m.what == "signal"]


def test_muted_survives(me, track):
    """Muted is independent of starting and stopping: it stays as it was set."""
    track.mute()
    track.start_broadcast(wait=True)
    assert track.get("Muted") and track.get("IsBroadcastActive")
    track.stop_capture()
    assert track.get("Muted")
    track.start_capture()
    assert track.get("Muted")
    track.mute(False)
    assert not track.get("Muted")


# Several at once


def test_start_without_capture(me):
    """StartBroadcast in idle is NotListening, and the message names the remedy; nothing is asked of the portal."""
    error = refused(me.desktop.start_broadcast, wait=True)
    assert error.name == ERROR + "NotListening" and "StartCapture" in error.message
    assert me.desktop.state == "idle"


# Faults: B39
def test_one_picker_at_a_time(me, track, screen):
    """While a picker is open, another start gets Busy, of the same track and of another; the first picker is not disturbed."""
    other = me.create_track()
    other.start_capture()
    screen.configure(answer="never")
    opened = screen.get("PickersOpened")
    first = track.begin_broadcast(wait=True)
    screen.wait_for_picker()
    for busy in (track, other):
        error = refused(busy.start_broadcast)
        assert error.name == ERROR + "Busy" and error.message
    assert other.state == "listening"
    screen.answer_picker()
    first.wait()
    assert screen.get("PickersOpened") == opened + 1
    assert refused(track.start_broadcast).name == ERROR + "Busy"
    screen.configure(answer="ok")
    other.start_broadcast(wait=True)
    assert (track.state, other.state) == ("active", "active")


def test_several_tracks(me, world, screen):
    """Tracks of several clients broadcast side by side; the end of one leaves the others, and the agent's IsBroadcastActive is true until the last."""
    agents = [world.agent() for _ in range(3)]
    tracks = [agent.create_track(title=f"share {index}") for index, agent in enumerate(agents)]
    for track in tracks:
        track.start_capture()
        track.start_broadcast(wait=True)
    assert screen.get("OpenSessions") == 3
    assert len({track.get("Sources")[0]["node"] for track in tracks}) == 3
    for index, track in enumerate(tracks):
        assert me.get("IsBroadcastActive")
        track.stop_broadcast()
        assert [one.state for one in tracks] == ["listening"] * (index + 1) + ["active"] * (2 - index)
    assert not me.get("IsBroadcastActive")


def test_everybody_hears_it(me, world, track):
    """Every client on the bus sees states and hears the signals, also one that has no part in the share."""
    observer = world.agent()
    mark = observer.mark()
    track.start_broadcast(wait=True)
    track.stop_broadcast()
    observer.desktop.wait_for_signal("BroadcastFinished", since=mark)
    names = [m.name for m in story(observer, mark) if m.what == "signal"]
    assert names == ["BroadcastStarted", "BroadcastFinished"]
    assert states(observer, mark) == ["choosing", "active", "listening"]


# What the portal is asked


def test_what_is_asked_of_the_portal(me, screen):
    """The portal is asked for what the options say: source types, cursor mode, one source, nothing to remember, the parent window."""
    track = me.create_track(sources=1, cursor="hidden")
    pointer = me.create_track(cursor="metadata")
    for one, given, wanted in [
            (track, {"parent_window": "x11:1234"}, (1, 1, "x11:1234")), (me.desktop, {}, (3, 2, "")), (pointer, {}, (3, 4, ""))]:
        one.start_capture()
        one.start_broadcast(wait=True, **given)
        asked = screen.get("LastStart")
        assert (asked["types"], asked["cursor_mode"], asked["parent_window"]) == wanted
        assert not asked.get("multiple") and not asked.get("persist_mode")
        one.stop_broadcast()


def test_only_what_the_desktop_has_is_asked_for(make_session):
    """Source types are masked by what the portal has; a cursor mode that it lacks is Unsupported when it was asked for, else another one is taken."""
    session = make_session(screen_arguments=["--source-types=1", "--cursor-modes=1"])
    me, screen = session.agent(), TestScreen(session.client)
    me.set_screen_share(True, wait=True)
    assert (screen.get("LastStart")["types"], screen.get("LastStart")["cursor_mode"]) == (1, 1)
    assert me.get("Capabilities")["cursor-metadata"] is False
    me.set_screen_share(False)
    for given, word in [({"sources": 4}, "monitor"), ({"cursor": "embedded"}, "hidden"), ({"cursor": "metadata"}, "metadata")]:
        error = refused(me.set_screen_share, True, wait=True, **given)
        assert error.name == ERROR + "Unsupported" and word in error.message
        assert me.desktop.state == "listening"
    screen.wait_until_closed()


# Faults: B41
def test_what_the_portal_has_is_shown(make_session):
    """The portal is not contacted before somebody asks for a broadcast, also not by reading; then its version and masks are announced."""
    session = make_session(portal="activated")
    me, screen = session.agent(), TestScreen(session.client)
    assert (me.get("PortalVersion"), me.get("AvailableSourceTypes"), me.get("AvailableCursorModes")) == (0, 0, 0)
    capabilities = me.get("Capabilities")
    me.objects()
    me.get_all()
    session.run(["busctl", "--user", "introspect", "org.vitrine.ScreenShare1", DESKTOP_TRACK])
    track = me.create_track()
    for one in (track, me.desktop):
        one.get_all()
        one.start_capture()
        one.subscribe().close()
        assert refused(one.call, "SwitchSource", GLib.Variant("(a{sv})", ({},))).name == ERROR + "NotActive"
        one.mute()
    assert session.client.owner(PORTAL) is None, "the portal was started by somebody"
    mark = me.mark()
    track.start_broadcast(wait=True)
    assert session.client.owner(PORTAL)
    me.wait_for("changed", "PortalVersion", lambda value: value >= 4, ROOT, mark)
    assert (me.get("AvailableSourceTypes"), me.get("AvailableCursorModes")) == (7, 7)
    assert "cursor-metadata" not in capabilities
    assert me.get("Capabilities") == capabilities | {"persist": True, "cursor-metadata": True}
    track.destroy()
    screen.wait_until_closed()


def test_no_undeclared_signal_was_heard(me, overseer):
    """In all that the tests before this one did, no signal came from the agent that is not declared."""
    declared = {"BroadcastStarted", "BroadcastFinished", "StartFailed", "PresetTooHigh", "InterfacesAdded", "InterfacesRemoved"}
    heard = {event.name for event in overseer.events if event.kind == "signal"}
    assert "BroadcastStarted" in heard and heard <= declared
    assert all(len(event.value) == {"BroadcastStarted": 0, "PresetTooHigh": 1}.get(event.name, 2)
               for event in overseer.events if event.kind == "signal" and event.interface == TRACK)


def test_left_alone_it_settles(me, track):
    """A track that was only started and stopped is as it was before."""
    track.stop_capture()
    before = track.get_all()
    before.pop("Statistics")
    track.start_capture()
    track.start_broadcast(wait=True)
    track.stop_capture()
    after = track.get_all()
    after.pop("Statistics")
    assert after == before
    wait_until(lambda: me.get("IsBroadcastActive") is False, "no broadcast")
