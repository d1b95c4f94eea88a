# SPDX-License-Identifier: MIT
"""Starts that come to nothing: why is told, nothing is left open, and the next start works at once."""

import pytest

from contract import refused
from harness import ERROR, PORTAL, Session, libexec
from screen import TestScreen
from story import story


@pytest.fixture
def track(me):
    me.desktop.start_capture()
    return me.desktop


def fails(agent, track, name, **given):
    """A start that fails with that error, as reply, as signal and as LastError; nothing was broadcast, and listening goes on."""
    mark = agent.mark()
    error = refused(track.start_broadcast, wait=True, **given)
    assert error.name == ERROR + name, error
    assert " " in error.message
    messages = story(agent, mark, track.path)
    signals = [(m.name, m.value) for m in messages if m.what == "signal"]
    assert signals == [("StartFailed", (error.name, error.message))]
    assert (track.get("LastErrorName"), track.get("LastError")) == (error.name, error.message)
    assert (track.state, track.get("IsBroadcastActive"), track.get("StartedAt")) == ("listening", False, 0)
    assert not [m for m in messages if m.what == "track" and {"IsBroadcastActive", "StartedAt", "Size"} & set(m.value)], messages
    return error


def succeeds(track, screen):
    screen.wait_until_closed()
    screen.reset()
    track.start_broadcast(wait=True)
    assert track.state == "active"


# Faults: B38
@pytest.mark.parametrize("step", ["answer", "answer_select"])
def test_cancelled(me, track, screen, step):
    """The user closes the picker, which some desktops open early: Cancelled, which is normal, and the next start works at once."""
    screen.configure(**{step: "cancel"})
    fails(me, track, "Cancelled")
    screen.configure(**{step: "ok"})
    track.start_broadcast(wait=True)


# Faults: B25 B38 B56
@pytest.mark.parametrize("settings", [
    {"answer": "fail"}, {"answer": "error"}, {"answer_select": "fail"}, {"answer_create": "fail"}, {"answer_create": "error"},
    {"fault": "no-streams"}, {"fault": "wrong-type"}, {"streams": 0}], ids=lambda value: "=".join(map(str, *value.items())))
def test_failed(me, track, screen, settings):
    """The portal fails at any step, or answers nonsense: Failed, told apart from a cancelled picker."""
    screen.configure(**settings)
    fails(me, track, "Failed")
    succeeds(track, screen)


# Faults: B50
@pytest.mark.parametrize("fault", ["invalid-node", "dead-node", "vanished-node"])
def test_source_that_is_not_there(me, track, screen, fault):
    """The granted source does not exist, or no longer: Failed; another source, such as a camera, is never taken instead."""
    screen.configure(fault=fault, decoy=True)
    fails(me, track, "Failed")
    succeeds(track, screen)


# Faults: B21
def test_source_that_cannot_be_shown(me, track, screen):
    """A source that offers no format that can be shown: Failed, and the message names what it offers."""
    screen.configure(formats=["RGBA_F16"])
    error = fails(me, track, "Failed")
    assert "RGBA_F16" in error.message
    succeeds(track, screen)


def test_picker_that_is_not_answered(me, track, screen):
    """Nobody answers the picker within the timeout: TimedOut, and the picker is closed."""
    screen.configure(answer="never")
    fails(me, track, "TimedOut", timeout=1)
    screen.wait_until_closed()
    succeeds(track, screen)


def test_timeout_counts_from_the_picker(me, track, screen):
    """A picker that is answered within its timeout is no failure, however short; with 0 there is no timeout."""
    screen.configure(answer="never")
    for timeout in (30, 0):
        pending = track.begin_broadcast(wait=True, timeout=timeout)
        screen.answer_picker("ok")
        pending.wait()
        track.stop_broadcast()


def test_first_frame_that_never_comes(me, track, screen):
    """The user has chosen, but no frame comes: after 15 s TimedOut, the session is closed; it never was active."""
    screen.configure(manual=True, first_frame=False)
    fails(me, track, "TimedOut")
    succeeds(track, screen)


def test_only_the_first_frame_makes_it_active(me, track, screen):
    """Between the portal's answer and the first frame the track is still choosing."""
    screen.configure(manual=True, first_frame=False)
    pending = track.begin_broadcast(wait=True)
    screen.wait_for_consumer()
    assert track.state == "choosing" and not pending.done
    screen.push_frames(1)
    pending.wait()
    assert track.state == "active"


@pytest.mark.parametrize("how", ["StopCapture", "StopBroadcast", "SetScreenShare", "Destroy"])
def test_stopping_closes_the_picker(me, screen, how):
    """Stopping while the picker is open closes it; who waits gets Cancelled, and the stop is answered after that."""
    track = me.create_track() if how == "Destroy" else me.desktop
    track.start_capture()
    screen.configure(answer="never")
    mark = me.mark()
    pending = track.begin_broadcast(wait=True)
    screen.wait_for_picker()
    {"StopCapture": track.stop_capture, "StopBroadcast": track.stop_broadcast, "Destroy": track.destroy,
     "SetScreenShare": lambda: me.set_screen_share(False)}[how]()
    assert pending.done
    assert refused(pending.wait).name == ERROR + "Cancelled"
    screen.wait_until_closed()
    messages = story(me, mark, track.path)
    names = [m.name for m in messages if m.what in ("signal", "error")]
    assert names == ["StartFailed", ERROR + "Cancelled"], messages
    if how != "Destroy":
        assert track.state == ("listening" if how == "StopBroadcast" else "idle")


# Faults: B34
@pytest.mark.parametrize("delay", [0, 1, 3, 10, 30])
def test_late_answers(me, track, screen, delay):
    """However the user's answer and a stop cross, the stop wins: nothing is broadcast afterwards, and no session stays open."""
    screen.configure(delay=delay)
    for _ in range(4):
        pending = track.begin_broadcast(wait=True)
        track.stop_capture()
        assert pending.done
        screen.wait_until_closed()
        assert track.state == "idle" and not track.get("IsBroadcastActive")
        track.start_capture()
    screen.configure(delay=0)
    track.start_broadcast(wait=True)
    assert screen.get("OpenSessions") == 1


# Without a portal, without PipeWire


# Faults: B40
def test_no_portal():
    """Without a portal the start fails as PortalUnavailable, with what to install; all else works."""
    with Session(portal="absent", screen=False, pipewire=False) as session:
        me = session.agent()
        me.desktop.start_capture()
        for _ in range(2):
            error = fails(me, me.desktop, "PortalUnavailable")
            assert "xdg-desktop-portal" in error.message
        assert session.client.owner(PORTAL) is None
        error = refused(me.set_screen_share, True, wait=True)
        assert error.name == ERROR + "PortalUnavailable"


# Faults: B41
def test_portal_without_screen_cast():
    """A portal that has no screen cast, as at a login that is too early: PortalUnavailable; once it has, the next start works."""
    with Session(portal="running", screen=False) as session:
        me = session.agent()
        me.desktop.start_capture()
        fails(me, me.desktop, "PortalUnavailable")
        session.processes.end(session.portal)
        session.wait_for_no_name(PORTAL)
        session.start_screen()
        session.start_portal()
        succeeds(me.desktop, TestScreen(session.client))


def test_no_pipewire():
    """The portal cannot reach PipeWire: PipeWireUnavailable, with the remedy, and no session stays open."""
    with Session(portal="absent") as session:
        nowhere = {**session.environment, "PIPEWIRE_REMOTE": "nowhere"}
        session.portal = session.processes.start("portal", [libexec("xdg-desktop-portal"), "--verbose"], nowhere)
        session.wait_for_name(PORTAL, session.portal)
        me = session.agent()
        me.desktop.start_capture()
        error = fails(me, me.desktop, "PipeWireUnavailable")
        assert "PipeWire" in error.message
        TestScreen(session.client).wait_until_closed()


@pytest.mark.parametrize("settings", [{"fault": "dead-node"}, {"formats": ["RGBA_F16"]}], ids=["node", "format"])
def test_first_start_of_a_track_fails_before_its_format(me, screen, settings):
    """Also a track that never had a picture has one at the next start."""
    track = me.create_track()
    track.start_capture()
    screen.configure(**settings)
    refused(track.start_broadcast, wait=True)
    succeeds(track, screen)
    track.destroy()
