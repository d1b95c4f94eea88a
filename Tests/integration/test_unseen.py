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


def shows_nothing(subscription):
    """Whether a reader that has had no picture gets none while the screen moves."""
    return _settled(subscription) == 0


def test_a_lock_that_was_there_before(session, agent):
    """An agent that starts in a locked session shows nothing."""
    logind = Logind(session, locked=True)
    wait_until(lambda: "LockedHint" in logind.asked, "the agent to ask logind")
    agent.set_screen_share(True, wait=True)
    subscription = agent.desktop.subscribe()
    assert shows_nothing(subscription)
    logind.lock(False)
    wait_until(lambda: subscription.statistics["sent"] > 0, "the picture")


@pytest.mark.parametrize("how", ["locked", "asleep"])
def test_logind_that_leaves(session, agent, how):
    """A logind that goes away says nothing: what was hidden stays hidden, also when it is back and says the same, until it says otherwise.

    A crash of logind, or its update, is no reason to show a locked session's screen.
    """
    logind = Logind(session, **{how: True})
    wait_until(lambda: "LockedHint" in logind.asked, "the agent to ask logind")
    agent.set_screen_share(True, wait=True)
    subscription = agent.desktop.subscribe()
    assert shows_nothing(subscription)
    logind.close()
    wait_until(lambda: "logind has left" in session.processes.log("agent"), "the agent to see it")
    assert shows_nothing(subscription)
    again = Logind(session, **{how: True})
    wait_until(lambda: "LockedHint" in again.asked, "the agent to ask the new logind")
    assert shows_nothing(subscription)
    again.close()
    Logind(session)
    wait_until(lambda: subscription.statistics["sent"] > 0, "the picture")


def test_logind_that_knows_of_no_session_yet(session, agent):
    """When logind does not know the session at first, it is asked again: when somebody logs in, and before each picker."""
    logind = Logind(session, has_session=False, locked=True)
    wait_until(lambda: "auto" in logind.asked, "the agent to ask logind")
    agent.set_screen_share(True, wait=True)
    subscription = agent.desktop.subscribe()
    wait_until(lambda: subscription.statistics["sent"] > 0, "the picture: nothing is known of a lock")
    logind.new_session()
    wait_until(lambda: "LockedHint" in logind.asked, "the agent to ask for the new session")
    assert shows_nothing(agent.desktop.subscribe())


def test_logind_is_asked_at_each_start(session, agent):
    """A session that logind learns of without a word is found when the next share starts, before anything of it is shown."""
    logind = Logind(session, has_session=False)
    wait_until(lambda: "auto" in logind.asked, "the agent to ask logind")
    agent.set_screen_share(True, wait=True)
    agent.set_screen_share(False)
    logind.has_session, logind.locked = True, True
    subscription = agent.desktop.subscribe()
    agent.set_screen_share(True, wait=True)
    assert shows_nothing(subscription)


# Who opens the picker


@needs_sandbox
def test_a_sandboxed_program_is_named(session, agent, screen):
    """Before the picker of a sandboxed program the person is told which one it is, in the words of the sandbox; it goes with the picker."""
    notifications = Notifications(session)
    screen.configure(answer="never")
    with peers.flatpak(session, "org.example.Viewer") as peer:
        # A sign of markup may be one character with what is written over it; other characters turn the direction round.
        path = peer.create_track(title="<\u0301b>Your bank</b> &\u0301 you\u202e moc\u2066.")
        peer.track(path, "StartCapture")
        peer.track(path, "StartBroadcast", options())
        ((summary, body, hints),) = notifications.wait_for(ASKED)
        assert body == ("app:org.example.Viewer has opened the picker. It says: "
                        "“\u2068&lt;\u0301b&gt;Your bank&lt;/b&gt; &amp;\u0301 you\ufffd moc\ufffd.\u2069”.")
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
    screen.wait_for_picker()
    assert time.monotonic() - cancelled > 1.5
    screen.answer_picker("cancel")
    agent.desktop.wait_until("State", "listening")
    agent.set_screen_share(True)
    agent.desktop.stop_capture()
    assert agent.desktop.state == "idle" and screen.get("PickersOpen") == 0
    assert agent.objects().keys() >= {DESKTOP_TRACK}


def test_peace_is_nobody_elses(session, agent, screen):
    """Who has to wait for two seconds keeps nobody else from the picker, and gets Busy when that is open by then."""
    screen.configure(answer="cancel")
    assert refused(agent.set_screen_share, True, wait=True).name == ERROR + "Cancelled"
    waiting = agent.start_screen_share(True, wait=True)
    agent.desktop.wait_until("State", "choosing")
    screen.configure(answer="never")
    with peers.other_program(session) as other:
        path = other.create_track()
        other.track(path, "StartCapture")
        other.track(path, "StartBroadcast", options())
        screen.wait_for_picker()
        error = refused(waiting.wait)
        assert error.name == ERROR + "Busy" and path in error.message and agent.desktop.state == "listening"
        screen.answer_picker("ok")
        agent.track(path).wait_until("State", "active")


@needs_sandbox
def test_no_other_path_ends_the_peace(session, agent, screen):
    """Programs in a sandbox that have no name of their own have one peace together: what path each has is its own choice."""
    screen.configure(answer="cancel")
    with peers.sandboxed(session) as first, peers.sandboxed(session, session.root / "another-path") as second:
        for peer in (first, second):
            path = peer.create_track()
            peer.track(path, "StartCapture")
            begun = time.monotonic()
            assert refused(peer.track, path, "StartBroadcast", options(wait=True)).name == ERROR + "Cancelled"
        assert time.monotonic() - begun > 1.5


def test_who_cancels_for_ever_holds_up_nobody(session, agent, screen):
    """A program whose pickers are closed one after the other, and that starts again at once each time, leaves the picker to others."""
    screen.configure(answer="cancel")
    refused(agent.set_screen_share, True, wait=True)
    with peers.other_program(session) as other:
        path = other.create_track()
        other.track(path, "StartCapture")
        for _ in range(3):
            waiting = agent.start_screen_share(True, wait=True)
            agent.desktop.wait_until("State", "choosing")
            screen.configure(answer="ok")
            other.track(path, "StartBroadcast", options(wait=True))
            assert agent.track(path).state == "active"
            other.track(path, "StopBroadcast")
            screen.configure(answer="cancel")
            assert refused(waiting.wait).name == ERROR + "Cancelled"
