# SPDX-License-Identifier: MIT
"""When nobody sits before the screen: a session that is locked, a machine that sleeps. And who opens a picker is told to the person."""

import itertools
import time

import pytest

import peers
import picture
from harness import DESKTOP_TRACK, ERROR, options
from contract import refused
from processes import wait_until
from screen import TestScreen
from services import Logind, Notifications

ASKED = "A program asks to share your screen"

needs_sandbox = pytest.mark.skipif(not peers.sandboxing_works(), reason="this machine lets nobody make a sandbox (bwrap --unshare-user)")


@pytest.fixture
def screen(session):
    return TestScreen(session.client)


@pytest.mark.parametrize("how", ["lock", "sleep"])
def test_unseen_screens_are_not_shown(session, agent, how):
    """While the session is locked, or the machine goes to sleep, readers get the placeholder; then the picture again. Muted is not touched."""
    logind = Logind(session)
    wait_until(lambda: "LockedHint" in logind.asked, "the agent to ask logind")
    assert logind.asked[0] == "auto"
    agent.set_screen_share(True, wait=True)
    subscription = agent.desktop.subscribe()
    recording = subscription.record(session.root / "unseen.webm")
    wait_until(lambda: subscription.statistics["sent"] >= 5, "pictures")
    getattr(logind, how)(True)
    sent = _settled(subscription)
    assert agent.desktop.state == "active" and agent.desktop.get("Muted") is False
    assert _settled(subscription) == sent, "nothing of the screen comes while it is locked"
    late = agent.desktop.subscribe()
    assert _settled(late) == 0
    getattr(logind, how)(False)
    wait_until(lambda: subscription.statistics["sent"] > sent and late.statistics["sent"] > 0, "pictures again")
    agent.set_screen_share(False)
    agent.desktop.unsubscribe_all()
    readings = picture.read_all(recording.wait_for_end().frames())
    assert [kind for kind, _ in itertools.groupby("picture" if one else "placeholder" for one in readings)] == [
        "picture", "placeholder", "picture", "placeholder"]


def _is_still(subscription):
    before = subscription.statistics["sent"]
    time.sleep(0.5)
    return subscription.statistics["sent"] == before


def _settled(subscription):
    wait_until(lambda: _is_still(subscription), "nothing more to come")
    return subscription.statistics["sent"]


def test_a_lock_that_was_there_before(session, agent):
    """An agent that starts in a locked session shows nothing; when logind goes away it knows of no lock any more."""
    logind = Logind(session, locked=True)
    wait_until(lambda: "LockedHint" in logind.asked, "the agent to ask logind")
    agent.set_screen_share(True, wait=True)
    subscription = agent.desktop.subscribe()
    assert _settled(subscription) == 0
    logind.close()
    wait_until(lambda: subscription.statistics["sent"] > 0, "the picture, when nothing is known of a lock")
    again = Logind(session, locked=True)
    wait_until(lambda: "LockedHint" in again.asked, "the agent to ask the new logind")
    _settled(subscription)
    again.close()


# Who opens the picker


@needs_sandbox
def test_a_sandboxed_program_is_named(session, agent, screen):
    """Before the picker of a sandboxed program the person is told which one it is, in the words of the sandbox; it goes with the picker."""
    notifications = Notifications(session)
    screen.configure(answer="never")
    with peers.flatpak(session, "org.example.Viewer") as peer:
        path = peer.create_track(title="<b>Your bank</b> & you")
        peer.track(path, "StartCapture")
        peer.track(path, "StartBroadcast", options())
        ((summary, body, hints),) = notifications.wait_for(ASKED)
        assert "app:org.example.Viewer" in body and "&lt;b&gt;Your bank&lt;/b&gt; &amp; you" in body
        screen.answer_picker("ok")
        notifications.wait_for(ASKED, 0)
        agent.track(path).wait_until("State", "active")


def test_a_stranger_is_named(session, agent, screen):
    """A program that starts the track of another one is told to the person; the owner and the desktop track's users are not."""
    notifications = Notifications(session)
    track = agent.create_track()
    track.start_capture()
    screen.configure(answer="never")
    with peers.other_program(session) as stranger:
        stranger.track(track.path, "StartBroadcast", options())
        ((_, body, _),) = notifications.wait_for(ASKED)
        assert peers.other_identity(session) in body
        track.stop_broadcast()
        notifications.wait_for(ASKED, 0)
    screen.configure(answer="ok")
    track.start_broadcast(wait=True)
    track.stop_capture()
    agent.set_screen_share(True, wait=True)
    assert [summary for summary, _, _ in notifications.closed.values()].count(ASKED) == 1 and not notifications.numbers(ASKED)


def test_nobody_to_tell(session, agent, screen):
    """A desktop that shows no notifications gets its picker all the same."""
    track = agent.create_track()
    track.start_capture()
    with peers.other_program(session) as stranger:
        stranger.track(track.path, "StartBroadcast", options(wait=True))
    assert track.state == "active"


def test_peace_after_a_cancelled_picker(session, agent, screen):
    """Who had a picker closed cannot open the next one for two seconds: it is put off, not refused, and stopping it meanwhile works."""
    screen.configure(answer="cancel")
    assert refused(agent.set_screen_share, True, wait=True).name == ERROR + "Cancelled"
    cancelled = time.monotonic()
    screen.configure(answer="never")
    agent.set_screen_share(True)
    assert agent.desktop.state == "choosing"
    with peers.other_program(session) as other:
        path = other.create_track()
        other.track(path, "StartCapture")
        error = refused(other.track, path, "StartBroadcast", options())
        assert error.name == ERROR + "Busy", "the next picker is this one's, though it is not shown yet"
    screen.wait_for_picker()
    assert time.monotonic() - cancelled > 1.5
    screen.answer_picker("cancel")
    agent.desktop.wait_until("State", "listening")
    agent.set_screen_share(True)
    agent.desktop.stop_capture()
    assert agent.desktop.state == "idle" and screen.get("PickersOpen") == 0
    assert agent.objects().keys() >= {DESKTOP_TRACK}
