# SPDX-License-Identifier: MIT
"""The one call: SetScreenShare turns the sharing of the desktop track on and off, whoever calls it, as often as they like."""

import pytest
from gi.repository import GLib

from contract import refused
from harness import AGENT, DESKTOP_TRACK, ERROR, ROOT, SERVICE
from story import last_of, story


def test_on_and_off(me, screen):
    """on listens and opens the picker, off ends broadcast and capture; both return the desktop track, each time the same."""
    for _ in range(2):
        assert me.set_screen_share(True, wait=True).path == DESKTOP_TRACK
        assert me.desktop.state == "active" and me.get("IsBroadcastActive")
        assert me.set_screen_share(False).path == DESKTOP_TRACK
        assert me.desktop.state == "idle" and not me.get("IsBroadcastActive")
        screen.wait_until_closed()


def test_idempotent(me, screen):
    """on while it is on, and off while it is off, change nothing: no second picker, the broadcast goes on as it was."""
    me.set_screen_share(True, wait=True)
    opened, started, mark = screen.get("PickersOpened"), me.desktop.get("StartedAt"), me.mark()
    assert me.set_screen_share(True).path == DESKTOP_TRACK
    assert me.set_screen_share(True, wait=True, preset="h1080p", sources=3).path == DESKTOP_TRACK
    assert (screen.get("PickersOpened"), me.desktop.get("StartedAt")) == (opened, started)
    assert [m.what for m in story(me, mark)] == ["reply", "reply"] or not [m for m in story(me, mark) if m.what != "reply"]
    me.set_screen_share(False)
    mark = me.mark()
    me.set_screen_share(False)
    assert not [m for m in story(me, mark) if m.what != "reply"]


def test_order(me):
    """With wait the reply comes after everything that announces the broadcast, and off is told in the same order."""
    mark = me.mark()
    me.set_screen_share(True, wait=True)
    told = last_of(me, mark, 4)
    assert [m.what for m in told] == ["track", "agent", "signal", "reply"] and told[2].name == "BroadcastStarted", told
    mark = me.mark()
    me.set_screen_share(False, wait=True)
    told = story(me, mark)
    assert [m.what for m in told] == ["track", "agent", "signal", "track", "reply"], told
    assert told[2].name == "BroadcastFinished" and told[3].value == {"State": "idle", "IsCapturing": False}


def test_joins(me, world, screen):
    """on while the picker is open joins: everyone who waits gets the one outcome, and one picker was shown."""
    screen.configure(answer="never")
    opened = screen.get("PickersOpened")
    pending = [world.agent().start_screen_share(True, wait=True) for _ in range(3)]
    screen.wait_for_picker()
    assert me.set_screen_share(True).path == DESKTOP_TRACK
    assert not any(one.done for one in pending)
    screen.answer_picker("ok")
    assert [one.wait() for one in pending] == [(DESKTOP_TRACK,)] * 3
    assert screen.get("PickersOpened") == opened + 1


def test_joins_for_a_while(me, world, screen):
    """A timeout is of the wait of who joins, too: it ends that one's call, and nothing else."""
    screen.configure(answer="never")
    first = world.agent().start_screen_share(True, wait=True, timeout=0)
    screen.wait_for_picker()
    brief, patient = (world.agent().start_screen_share(True, wait=True, timeout=seconds) for seconds in (1, 600))
    error = refused(brief.wait)
    assert error.name == ERROR + "TimedOut" and "stays open" in error.message
    assert me.desktop.state == "choosing" and not first.done and not patient.done
    screen.answer_picker("ok")
    assert first.wait() == patient.wait() == (DESKTOP_TRACK,)


def test_all_who_joined_hear_of_the_failure(world, screen):
    """A picker that is cancelled is Cancelled for all who wait; listening goes on, and the next call opens a picker again."""
    screen.configure(answer="never")
    agents = [world.agent() for _ in range(2)]
    pending = [agent.start_screen_share(True, wait=True) for agent in agents]
    screen.answer_picker("cancel")
    assert [refused(one.wait).name for one in pending] == [ERROR + "Cancelled"] * 2
    assert agents[0].desktop.state == "listening"
    screen.configure(answer="ok")
    agents[0].set_screen_share(True, wait=True)


def test_off_closes_the_picker(me, world, screen):
    """off while the picker is open closes it; those who wait get Cancelled."""
    screen.configure(answer="never")
    pending = world.agent().start_screen_share(True, wait=True)
    screen.wait_for_picker()
    me.set_screen_share(False)
    error = refused(pending.wait)
    assert error.name == ERROR + "Cancelled" and error.message
    assert me.desktop.state == "idle"
    screen.wait_until_closed()


def test_live_options(me):
    """on while it is on applies live options: the picture that is sent gets smaller, title and allowed readers change; no new picker."""
    me.set_screen_share(True, wait=True)
    mark = me.mark()
    me.set_screen_share(True, preset="h360p", title="smaller", allow=["app:org.example.Reader"])
    (change,) = [m.value for m in story(me, mark) if m.what == "track"]
    assert change == {"Preset": "h360p", "Size": (640, 360), "Title": "smaller", "Allowed": ["app:org.example.Reader"]}
    me.set_screen_share(True, max_size=(320, 320))
    assert me.desktop.get("Size") == (320, 180)
    # Writing a preset resets what was explicit.
    me.desktop.set("Preset", "s", "h360p")
    assert me.desktop.get("Size") == (640, 360)


@pytest.mark.parametrize("state", ["choosing", "active"])
@pytest.mark.parametrize("key, value", [("sources", 1), ("cursor", "hidden"), ("cursor", "metadata")])
def test_options_that_are_not_live(me, screen, state, key, value):
    """An option that only a new start can change is Busy, which names it, and changes nothing, also not what stands beside it."""
    if state == "choosing":
        screen.configure(answer="never")
    me.set_screen_share(True, wait=state == "active")
    error = refused(me.set_screen_share, True, **{key: value, "title": "beside"})
    assert error.name == ERROR + "Busy" and key in error.message
    assert (me.desktop.get("Title"), me.desktop.state) == ("", state)


def test_another_picker_is_open(me, screen):
    """While another track's picker is open, on is Busy and the desktop track stays as it is."""
    track = me.create_track()
    track.start_capture()
    screen.configure(answer="never")
    track.start_broadcast()
    screen.wait_for_picker()
    error = refused(me.set_screen_share, True, wait=True, preset="h360p")
    assert error.name == ERROR + "Busy" and track.path in error.message
    assert (me.desktop.state, me.desktop.get("Preset")) == ("idle", "h1080p")
    track.destroy()


def test_started_by_hand(world, me, screen):
    """A person starts and stops a share with busctl; what programs see of it is the same as when a program started it."""
    seen = []
    for start in ("program", "person"):
        mark = me.mark()
        if start == "program":
            me.set_screen_share(True, wait=True)
        else:
            world.run(["busctl", "--user", "--timeout=60", "call", SERVICE, ROOT, AGENT, "SetScreenShare", "ba{sv}", "true", "1", "wait", "b", "true"])
        me.desktop.wait_for_signal("BroadcastStarted", since=mark)
        properties = me.desktop.get_all()
        for name in ("Statistics", "StartedAt", "Sources"):
            properties.pop(name)
        seen.append(properties)
        world.run(["busctl", "--user", "call", SERVICE, ROOT, AGENT, "SetScreenShare", "ba{sv}", "false", "0"])
        assert me.desktop.state == "idle"
    assert seen[0] == seen[1]


def test_after_capture_was_started(me):
    """on works on a desktop track that listens already, and off takes it back to idle, whoever had it listen."""
    me.desktop.start_capture()
    me.set_screen_share(True, wait=True)
    me.desktop.stop_broadcast()
    assert me.desktop.state == "listening"
    me.set_screen_share(True, wait=True)
    me.set_screen_share(False)
    assert me.desktop.state == "idle"


def test_many_at_once(world, screen):
    """Ten clients turn sharing on and off as fast as they can: each gets an answer, and in the end it is as the last one said."""
    agents = [world.agent() for _ in range(10)]
    pending = [agent.start_screen_share(on) for on in (True, False, True) for agent in agents]
    for one in pending:
        try:
            assert one.wait() == (DESKTOP_TRACK,)
        except Exception as error:
            assert getattr(error, "name", "") in (ERROR + "Cancelled", ERROR + "Busy"), error
    agents[0].set_screen_share(True, wait=True)
    assert agents[0].desktop.state == "active" and screen.get("OpenSessions") == 1
    agents[0].set_screen_share(False)
    screen.wait_until_closed()


def test_arguments_are_checked_when_off(me):
    """off takes the same options, and checks them: an unknown one is no accident that goes unnoticed."""
    me.set_screen_share(False, wait=True, preset="h360p", timeout=5)
    error = refused(me.set_screen_share, False, frobnicate=GLib.Variant("b", True))
    assert "frobnicate" in error.message
