# SPDX-License-Identifier: MIT
"""Remembered choices: whose they are, for how long, where they are kept, and that nothing that is wrong with one does more than ask again."""

import stat

import pytest

import peers
from contract import refused
from harness import BIN, DESKTOP_TRACK, ERROR, options
from processes import wait_until
from screen import TestScreen

needs_sandbox = pytest.mark.skipif(not peers.sandboxing_works(), reason="this machine lets nobody make a sandbox (bwrap --unshare-user)")
APPLICATION = "org.example.Teacher"


@pytest.fixture
def screen(session):
    return TestScreen(session.client)


def share(peer, path, agent):
    """One share of that track by that client, from start to end."""
    peer.track(path, "StartCapture")
    peer.track(path, "StartBroadcast", options(wait=True))
    assert agent.track(path).state == "active"
    peer.track(path, "StopCapture")


def remembered(session):
    return session.control("forget", "--list").stdout.splitlines()


def wait_for_nobody(agent):
    wait_until(lambda: set(agent.objects()) == {DESKTOP_TRACK}, "no track of anybody")


def test_for_a_session(session, agent, screen):
    """`session`: the second share of the same client skips the picker; another connection of the same program is asked."""
    with peers.same_program(session) as peer:
        path = peer.create_track(persist="session", restore_key="lesson")
        for restores in (0, 1, 2):
            share(peer, path, agent)
            assert screen.get("RestoresUsed") == restores
        other = peer.create_track(persist="session", restore_key="another")
        share(peer, other, agent)
        assert screen.get("RestoresUsed") == 2, "another name is another choice"
    wait_for_nobody(agent)
    with peers.same_program(session) as peer:
        share(peer, peer.create_track(persist="session", restore_key="lesson"), agent)
        assert screen.get("RestoresUsed") == 2
    assert remembered(session) == [], "nothing of it is on the disk"


@needs_sandbox
def test_for_ever(session, agent, screen):
    """`forever`: kept for the application, across its connections and the agent's, in a file that only the user can read; never logged."""
    for restores in (0, 1):
        with peers.flatpak(session, APPLICATION) as peer:
            share(peer, peer.create_track(persist="forever"), agent)
            assert screen.get("RestoresUsed") == restores
        wait_for_nobody(agent)
    file = session.root / "state" / "vitrine" / "choices"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600 and stat.S_IMODE(file.parent.stat().st_mode) == 0o700
    token = file.read_text().rstrip("\n").split("\t")[2]
    assert session.end_agent() == 0
    session.start_agent()
    agent = session.agent()
    with peers.flatpak(session, APPLICATION) as peer:
        path = peer.create_track(persist="forever")
        peer.track(path, "StartCapture")
        mark = agent.mark()
        peer.track(path, "StartBroadcast", options(wait=True))
        # A restored share is announced like any other.
        agent.wait_for("signal", "BroadcastStarted", path=path, since=mark)
        assert screen.get("RestoresUsed") == 2
    assert token and token not in session.processes.log("agent")
    assert token not in str(agent.objects()) + "".join(str(event) for event in agent.events)
    assert file.read_text().count("\n") == 1, "each start replaces what the one before brought"


@needs_sandbox
def test_of_another(session, agent, screen):
    """What one application may skip another may not, whatever name it says; nor does a stranger's start use or replace it."""
    with peers.flatpak(session, APPLICATION) as peer:
        path = peer.create_track(persist="forever", restore_key="mine")
        share(peer, path, agent)
        before = (session.root / "state" / "vitrine" / "choices").read_text()
        with peers.flatpak(session, "org.example.Thief") as thief:
            share(thief, thief.create_track(persist="forever", restore_key="mine"), agent)
            assert screen.get("RestoresUsed") == 0
        # The tests' own program starts the application's track.
        peer.track(path, "StartCapture")
        agent.track(path).start_broadcast(wait=True)
        assert screen.get("RestoresUsed") == 0
        assert not screen.get("LastStart").get("persist_mode")
        peer.track(path, "StopCapture")
        assert (session.root / "state" / "vitrine" / "choices").read_text().startswith(before)
        share(peer, path, agent)
        assert screen.get("RestoresUsed") == 1


def test_programs_that_could_be_anybody(session, agent, screen):
    """`forever` is refused to who cannot be told from another one: interpreters, files that their user can write; with the reason."""
    error = refused(agent.set_screen_share, True, persist="forever")
    assert error.name == ERROR + "Unsupported" and "python" in error.message and "session" in error.message
    assert agent.desktop.state == "idle"
    shown = session.control("share", "--detach", "--remember", "forever", check=False)
    assert shown.returncode == 1 and shown.stderr.startswith('vitrinectl: --remember "forever" is not possible here: exe:')
    assert shown.stderr.endswith(": leave --remember out\n")
    assert refused(agent.create_track, persist="forever").name == ERROR + "Unsupported"
    shown = session.control("share", "--detach", "--remember", "no")
    assert agent.desktop.state == "active"
    assert BIN.exists()


# Faults: B49
@needs_sandbox
@pytest.mark.parametrize("kind", ["ask", "refuse"])
def test_a_token_that_is_no_good(session, agent, screen, kind):
    """A choice that the desktop does not honour, or does not give again, leads to the picker; the share works."""
    with peers.flatpak(session, APPLICATION) as peer:
        path = peer.create_track(persist="forever")
        share(peer, path, agent)
        screen.configure(restore=kind)
        share(peer, path, agent)
        assert screen.get("RestoresUsed") == 0
        assert len(remembered(session)) == (kind == "ask"), "what is used up is not kept"
        screen.configure(restore="honour")
        share(peer, path, agent)
        assert screen.get("RestoresUsed") == (kind == "ask")


@needs_sandbox
@pytest.mark.parametrize("content", ["not-a-uuid", "6ba7b810-9dad-11d1-80b4-00c04fd430c8", "\x00\xff", None])
def test_a_file_that_was_tampered_with(session, agent, screen, content):
    """A token that the portal refuses or does not know, a damaged file, a folder in its place: the person is asked, once, and it goes on."""
    folder = session.root / "state" / "vitrine"
    folder.mkdir(mode=0o700)
    file = folder / "choices"
    if content is None:
        file.mkdir()
    else:
        file.write_text(f"app:{APPLICATION}\t\t{content}\n")
    with peers.flatpak(session, APPLICATION) as peer:
        path = peer.create_track(persist="forever")
        share(peer, path, agent)
        assert screen.get("RestoresUsed") == 0
        if content is None:
            assert "remembered" in session.processes.log("agent")
        else:
            share(peer, path, agent)
            assert screen.get("RestoresUsed") == 1


@needs_sandbox
def test_a_cancelled_picker_forgets_nothing(session, agent, screen):
    """A start that comes to nothing leaves what is remembered as it is."""
    with peers.flatpak(session, APPLICATION) as peer:
        path = peer.create_track(persist="forever")
        share(peer, path, agent)
        before = remembered(session)
        screen.configure(restore="ask", answer="cancel")
        peer.track(path, "StartCapture")
        assert refused(peer.track, path, "StartBroadcast", options(wait=True)).name == ERROR + "Cancelled"
        assert remembered(session) == before != []


@needs_sandbox
def test_forget(session, agent, screen):
    """`vitrinectl forget` takes it back: of one program, or of all; the next share asks."""
    for application in (APPLICATION, "org.example.Other"):
        with peers.flatpak(session, application) as peer:
            share(peer, peer.create_track(persist="forever", restore_key="a"), agent)
            share(peer, peer.create_track(persist="forever"), agent)
    assert sorted(remembered(session)) == [
        "app:org.example.Other", 'app:org.example.Other "a"', f"app:{APPLICATION}", f'app:{APPLICATION} "a"']
    assert session.control("forget", "app:org.example.Nobody").stdout == (
        "Nothing was remembered of app:org.example.Nobody. 'vitrinectl forget --list' shows what is.\n")
    assert session.control("forget", f"app:{APPLICATION}").stdout.count("Forgotten: ") == 2
    assert len(remembered(session)) == 2
    session.control("forget")
    assert remembered(session) == [] and session.control("forget").stdout == "Nothing was remembered.\n"
    listed = session.control("forget", "--list")
    assert (listed.returncode, listed.stdout, listed.stderr) == (0, "", "Nothing is remembered.\n")
    with peers.flatpak(session, "org.example.Other") as peer:
        share(peer, peer.create_track(persist="forever"), agent)
    assert screen.get("RestoresUsed") == 0


def test_options(agent):
    """A name without anything to remember is an error that says so; `persist` of a share that runs can not change."""
    error = refused(agent.create_track, restore_key="mine")
    assert error.name == "org.freedesktop.DBus.Error.InvalidArgs" and "restore-key" in error.message and "persist" in error.message
    assert refused(agent.create_track, persist="session", restore_key="x" * 257).name == "org.freedesktop.DBus.Error.InvalidArgs"
    agent.set_screen_share(True, wait=True)
    error = refused(agent.set_screen_share, True, persist="session")
    assert error.name == ERROR + "Busy" and "persist" in error.message
    assert agent.get("Capabilities")["persist"] is True
