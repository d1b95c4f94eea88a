# SPDX-License-Identifier: MIT
"""How a broadcast ends: every reason is reached, told once, and leaves nothing open in the portal; then the user can start again."""

import signal
import time
from pathlib import Path

import pytest

from contract import BUS_ERROR, refused
from harness import DESKTOP_TRACK, ERROR, PORTAL, SERVICE
from processes import wait_until
from screen import TestScreen
from story import story


def broadcasting(agent, track=None):
    """A track that broadcasts, and the mark from which its end is told."""
    track = track or agent.desktop
    track.start_capture()
    track.start_broadcast(wait=True)
    return track, agent.mark()


def finished(agent, track, mark, reason, seconds=30.0):
    """Waits for the end; it is told once, with that reason and words, and listening goes on."""
    told = track.wait_for_signal("BroadcastFinished", since=mark, seconds=seconds)
    assert told.value[0] == reason, told.value
    assert " " in told.value[1], told.value
    assert (track.state, track.get("IsCapturing"), track.get("IsBroadcastActive")) == ("listening", True, False)
    assert (track.get("Size"), track.get("Sources"), track.get("StartedAt")) == ((0, 0), [], 0)
    assert not agent.get("IsBroadcastActive")
    messages = story(agent, mark, track.path)
    changes = [m for m in messages if m.what == "track"]
    assert [set(m.value) for m in changes if "State" in m.value] == [{"State", "IsBroadcastActive", "Size", "StartedAt", "Sources"} | (
        {"LastErrorName", "LastError"} if reason in FAULTS else set())], messages
    assert [m.name for m in messages if m.what == "signal"] == ["BroadcastFinished"]
    kinds = [m.what for m in messages if m.what == "signal" or "IsBroadcastActive" in (m.value or ())]
    assert kinds == ["track", "agent", "signal"], messages
    if reason in FAULTS:
        assert (track.get("LastErrorName"), track.get("LastError")) == (FAULTS[reason], told.value[1])
    else:
        assert (track.get("LastErrorName"), track.get("LastError")) == ("", "")
    return told


# What a reason is as an error in LastErrorName; the others are no fault of anybody.
FAULTS = {
    "source-removed": ERROR + "Failed", "portal-lost": ERROR + "PortalUnavailable", "pipewire-lost": ERROR + "PipeWireUnavailable",
    "failed": ERROR + "Failed",
}


def starts_again(agent, track, screen):
    """The user can start again at once, with no more ado."""
    mark = agent.mark()
    track.start_broadcast(wait=True)
    assert track.state == "active"
    track.stop_broadcast()
    assert track.wait_for_signal("BroadcastFinished", since=mark).value[0] == "stopped"
    screen.wait_until_closed()


def test_stopped_by_a_client(me, world, screen):
    """StopBroadcast by any client ends it as `stopped`; the words name who it was."""
    track, mark = broadcasting(me)
    other = world.agent()
    other.desktop.stop_broadcast()
    told = finished(me, track, mark, "stopped")
    assert "exe:" in told.value[1] or "unit:" in told.value[1]
    screen.wait_until_closed()
    starts_again(me, track, screen)


@pytest.mark.parametrize("how", ["StopCapture", "SetScreenShare", "Destroy"])
def test_other_ways_to_stop(me, screen, how):
    """StopCapture, SetScreenShare(false) and Destroy finish the broadcast first, as `stopped`, and tell that once."""
    track, mark = broadcasting(me, me.create_track() if how == "Destroy" else None)
    {"StopCapture": track.stop_capture, "SetScreenShare": lambda: me.set_screen_share(False), "Destroy": track.destroy}[how]()
    names = [(m.name, m.value[0]) for m in story(me, mark, track.path) if m.what == "signal"]
    assert names == [("BroadcastFinished", "stopped")]
    if how == "Destroy":
        assert refused(track.get, "State").name == BUS_ERROR + "UnknownObject"
    else:
        assert track.state == "idle"
    screen.wait_until_closed()


# Faults: B07 B44
def test_ended_by_the_desktop(me, screen):
    """The user ends the share in the desktop's own indicator: `ended-by-desktop`, and listening goes on."""
    track, mark = broadcasting(me)
    screen.end_session()
    finished(me, track, mark, "ended-by-desktop")
    starts_again(me, track, screen)


# Faults: B10 B44
def test_source_is_gone(me, screen):
    """The shared window is closed, and the portal says nothing: `source-removed`, the portal's session is closed."""
    track, mark = broadcasting(me)
    screen.vanish()
    finished(me, track, mark, "source-removed")
    screen.wait_until_closed()
    starts_again(me, track, screen)


# Faults: B44
def test_source_is_gone_and_the_session_closed(me, screen):
    """When the source's end and the session's end come together, in whatever order, the stronger reason is told, once."""
    track, mark = broadcasting(me)
    screen.vanish()
    screen.end_session()
    finished(me, track, mark, "ended-by-desktop")
    starts_again(me, track, screen)


# Faults: B54
def test_failed(me, screen):
    """The source takes back every format that can be shown: `failed`, and the words name what it offers now."""
    track, mark = broadcasting(me)
    screen.configure(formats=["RGBA_F16"])
    told = finished(me, track, mark, "failed")
    assert "RGBA_F16" in told.value[1]
    screen.wait_until_closed()
    screen.reset()
    starts_again(me, track, screen)


def test_owner_left(me, world, screen):
    """The client that made the track leaves the bus: `owner-left`, the track goes, its streams end, its portal session is closed."""
    owner = world.new_client()
    track = world.agent(owner).create_track(allow=[me.unique_name])
    track.start_capture()
    track.start_broadcast(wait=True)
    seen = me.track(track.path)
    subscription = seen.subscribe()
    recording = subscription.record(world.root / "owner.webm")
    recording.wait_for_bytes(1000)
    mark = me.mark()
    owner.close()
    seen.wait_for_signal("BroadcastFinished", lambda value: value[0] == "owner-left", mark)
    recording.wait_for_end()
    wait_until(lambda: track.path not in me.objects(), "the track to go")
    gone = [event.value[0] for event in me.events[mark:] if event.kind == "signal" and event.name == "InterfacesRemoved"]
    assert gone == [subscription.path, track.path]
    screen.wait_until_closed()


def test_owner_left_while_choosing(me, world, screen):
    """The owner leaves while the picker is open: the picker closes, the track goes, nothing was ever broadcast."""
    screen.configure(answer="never")
    owner = world.new_client()
    track = world.agent(owner).create_track()
    track.start_capture()
    track.start_broadcast()
    screen.wait_for_picker()
    mark = me.mark()
    owner.close()
    wait_until(lambda: track.path not in me.objects(), "the track to go")
    screen.wait_until_closed()
    names = [event.name for event in me.events[mark:] if event.kind == "signal" and event.path == track.path]
    assert names == ["StartFailed"]


def test_detached(me, world, screen):
    """A detached track goes on without its owner; a new connection of the same program owns it again; idle and without owner it goes."""
    owner = world.new_client()
    track = world.agent(owner).create_track(detached=True, title="on its own", allow=[me.unique_name])
    track.start_capture()
    track.start_broadcast(wait=True)
    identity = track.get("OwnerIdentity")
    seen = me.track(track.path)
    recording = seen.subscribe().record(world.root / "detached.webm")
    mark = me.mark()
    owner.close()
    seen.wait_for_change("Owner", "", mark)
    assert (seen.get("OwnerPid"), seen.get("OwnerIdentity"), seen.get("Title")) == (0, identity, "on its own")
    recording.wait_for_bytes(recording.size + 5000)
    assert seen.state == "active"
    # Who acts on it with the identity of the owner is the owner from now on.
    heir = world.new_client()
    world.agent(heir).track(track.path).set("Preset", "s", "h720p")
    assert (seen.get("Owner"), seen.get("OwnerPid") > 0) == (heir.unique_name, True)
    heir.close()
    seen.wait_until("Owner", "")
    mark = me.mark()
    last = world.new_client()
    world.agent(last).track(track.path).stop_capture()
    assert seen.wait_for_signal("BroadcastFinished", since=mark).value[0] == "stopped"
    screen.wait_until_closed()
    # Idle and without owner, it is of no use.
    last.close()
    wait_until(lambda: track.path not in me.objects(), "the track to go")
    recording.wait_for_end()


def test_detached_and_idle(me, world):
    """A detached track that is idle goes with its owner: it is of no use to anybody."""
    owner = world.new_client()
    track = world.agent(owner).create_track(detached=True)
    assert track.path in me.objects()
    owner.close()
    wait_until(lambda: track.path not in me.objects(), "the track to go")


# What ends with the processes around the agent


def test_agent_exit(session):
    """SIGTERM finishes all broadcasts as `agent-exit`, ends the streams, closes the portal's session, and the agent exits with 0."""
    me, screen = session.agent(), TestScreen(session.client)
    track, mark = broadcasting(me)
    recording = track.subscribe().record(session.root / "exit.webm")
    recording.wait_for_bytes(1000)
    assert session.end_agent() == 0
    assert track.wait_for_signal("BroadcastFinished", since=mark).value[0] == "agent-exit"
    recording.wait_for_end()
    assert recording.probe()["streams"][0]["codec_name"] == "vp8"
    session.wait_for_no_name(SERVICE)
    screen.wait_until_closed()


def test_interrupt_while_choosing(session):
    """SIGINT while the picker is open closes the picker and tells who waits; the agent exits with 0."""
    me, screen = session.agent(), TestScreen(session.client)
    screen.configure(answer="never")
    pending = me.start_screen_share(True, wait=True)
    screen.wait_for_picker()
    assert session.end_agent(signal.SIGINT) == 0
    assert refused(pending.wait).name == ERROR + "Cancelled"
    screen.wait_until_closed()


# Faults: B45 B47
def test_portal_lost(session):
    """The portal dies: `portal-lost`, though frames may still come; when it runs again the next share works."""
    me, screen = session.agent(), TestScreen(session.client)
    screen.configure(keep_node=True)
    track, mark = broadcasting(me)
    session.processes.end(session.portal, first=signal.SIGKILL)
    finished(me, track, mark, "portal-lost")
    wait_until(lambda: screen.consumers == 0, "nobody looking any more")
    screen.configure(keep_node=False)
    screen.vanish()
    session.start_portal()
    starts_again(me, track, screen)


# Faults: B42 B47
def test_portal_lost_while_choosing(session):
    """The portal dies while the picker is open: the start fails as PortalUnavailable, and listening goes on."""
    me, screen = session.agent(), TestScreen(session.client)
    screen.configure(answer="never")
    me.desktop.start_capture()
    pending = me.desktop.begin_broadcast(wait=True)
    screen.wait_for_picker()
    mark = me.mark()
    session.processes.end(session.portal, first=signal.SIGKILL)
    error = refused(pending.wait)
    assert error.name == ERROR + "PortalUnavailable" and error.message
    assert me.desktop.wait_for_signal("StartFailed", since=0).value[0] == error.name
    assert me.desktop.state == "listening" and not [m for m in story(me, mark) if m.name == "BroadcastFinished"]
    session.start_portal()
    screen.configure(answer="ok")
    starts_again(me, me.desktop, screen)


# Faults: B53
def test_pipewire_lost(session):
    """PipeWire dies: `pipewire-lost`, no spinning, the portal's session is closed; when it runs again the next share works."""
    me = session.agent()
    track, mark = broadcasting(me)
    session.processes.end(session.pipewire, first=signal.SIGKILL)
    finished(me, track, mark, "pipewire-lost")
    assert _ticks(session) < 30, "somebody spins"
    session.processes.end(session.wireplumber)
    session.screen.wait(30)
    session.start_pipewire()
    session.start_screen()
    if session.portal.poll() is not None:
        session.wait_for_no_name(PORTAL)
        session.start_portal()
    starts_again(me, track, TestScreen(session.client))
    assert me.client.owner(SERVICE) and DESKTOP_TRACK in me.objects()


def _ticks(session):
    """Clock ticks that the agent uses in half a second."""
    def used():
        fields = Path(f"/proc/{session.agent_process.pid}/stat").read_text().rpartition(")")[2].split()
        return int(fields[11]) + int(fields[12])

    before, end = used(), time.monotonic() + 0.5
    wait_until(lambda: time.monotonic() > end, "half a second")
    return used() - before
