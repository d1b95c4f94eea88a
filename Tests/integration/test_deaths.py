# SPDX-License-Identifier: MIT
"""What the agent leans on dies, in each of its states: it says so, rests, and works again when the thing is back, without a restart of its own."""

import os
import random
import signal
import time
from pathlib import Path

import pytest
from gi.repository import GLib

import held
import sound
from contract import BUS_ERROR, refused
from harness import BACKEND, ERROR, PORTAL, SERVICE
from processes import wait_until
from screen import TestScreen
from story import story

STATES = ["idle", "listening", "choosing", "active", "muted", "paused"]
BROADCASTING = ("active", "muted", "paused")


class World:
    """A session whose desktop track can be brought into each state, and whose parts can be killed and started again."""

    def __init__(self, session, measured):
        self.session = session
        self.measured = measured
        self.died = None
        self.me = session.agent()
        self.screen = TestScreen(session.client)
        self.track = self.me.desktop
        self.pending = None

    def bring_into(self, state, track=None):
        """A state of the track; with it, and as long as it lasts, `pending` is the reply of the start."""
        track = track or self.track
        self.pending = None
        self.screen.configure(size=(320, 200), answer="never" if state == "choosing" else "ok")
        if state == "idle":
            return
        track.start_capture()
        if state == "choosing":
            self.pending = track.begin_broadcast(wait=True)
            self.screen.wait_for_picker()
        if state in BROADCASTING:
            track.start_broadcast(wait=True)
        if state == "muted":
            track.mute()
        if state == "paused":
            self.screen.pause()
            track.wait_until("SourcePaused", True)

    def kill(self, victim, how=signal.SIGKILL):
        """Kills processes by their ids; those that PipeWire takes with it go as well."""
        child = {"portal": self.session.portal, "backend": self.session.screen, "wireplumber": self.session.wireplumber,
                 "pipewire": self.session.pipewire}[victim]
        self.died = time.monotonic()
        self.session.processes.end(child, first=how)
        if victim == "pipewire":
            self.session.processes.end(self.session.wireplumber)
            self.session.screen.wait(30)

    def revive(self, victim):
        session = self.session
        if victim == "portal":
            session.wait_for_no_name(PORTAL)
            session.start_portal()
        if victim == "backend":
            session.wait_for_no_name(BACKEND)
            session.start_screen()
        if victim == "wireplumber":
            session.wireplumber = session.start("wireplumber", ["wireplumber"])
            wait_until(session._has_session_manager, "WirePlumber's client in PipeWire")
        if victim == "pipewire":
            session.start_pipewire()
            session.start_screen()
            if session.portal.poll() is not None:
                session.wait_for_no_name(PORTAL)
                session.start_portal()
        self.screen = TestScreen(session.client)

    def told(self, mark):
        """The signals about a broadcast since a mark, each with its first argument."""
        return [(m.name, m.value[0] if m.value else None) for m in story(self.me, mark) if m.what == "signal"]

    def note(self, victim, state, at=None):
        """What came of the death is there, since just now or `at`: how long that took is printed behind the tests."""
        taken = (at or time.monotonic()) - self.died
        self.measured("ms from a death until the agent's state is right", victim, state, f"{taken * 1000:.0f}")

    def rests(self, victim, state):
        """Nobody spins: in a second the agent uses next to no time."""
        before, end = self.spent(), time.monotonic() + 1
        wait_until(lambda: time.monotonic() > end, "a second")
        spent = self.spent() - before
        self.measured("ms of CPU in the second after a death", victim, state, f"{spent:.1f}")
        assert spent < 150, "the agent spins"

    def spent(self):
        """Milliseconds of CPU, by all threads that ever were."""
        # As clock_getcpuclockid(3) makes it.
        return time.clock_gettime(~self.session.agent_process.pid << 3 | 2) * 1000

    def works(self):
        """A share from beginning to end, with pictures in it."""
        self.screen.configure(size=(320, 200), answer="ok")
        self.track.mute(False)
        self.track.start_capture()
        mark = self.me.mark()
        self.track.start_broadcast(wait=True)
        subscription = self.track.subscribe()
        subscription.wait_until("Statistics", lambda statistics: statistics["sent"] >= 3)
        subscription.unsubscribe()
        subscription.close()
        self.me.set_screen_share(False)
        assert self.told(mark) == [("BroadcastStarted", None), ("BroadcastFinished", "stopped")]
        self.screen.wait_until_closed()


@pytest.fixture
def world(make_session, measured):
    return World(make_session(), measured)


# What a death is told as: of a start that was under way, and of a broadcast.
ENDS = {
    "portal": ("PortalUnavailable", {"portal-lost"}),
    "backend": ("Failed", {"source-removed", "ended-by-desktop"}),
    "pipewire": (None, {"pipewire-lost"}),
}


# Faults: B45 B47 B53 B09
@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize("victim", ENDS)
def test_killed_and_started_again(world, victim, state):
    """A death in each state: the right state, the right reason, told once; no spinning; and the next share works."""
    error, reasons = ENDS[victim]
    world.bring_into(state)
    stream = world.track.subscribe()
    recording = stream.record(world.session.root / "stream.webm")
    mark = world.me.mark()
    world.kill(victim)
    if state in BROADCASTING:
        told = world.track.wait_for_signal("BroadcastFinished", since=mark)
        world.note(victim, state, told.at)
        assert told.value[0] in reasons and " " in told.value[1]
        assert (world.track.state, world.track.get("SourcePaused")) == ("listening", False)
        assert not world.me.get("IsBroadcastActive")
    elif state == "choosing" and error:
        assert refused(world.pending.wait).name == ERROR + error
        world.note(victim, state, world.track.wait_for_signal("StartFailed", since=mark).at)
        assert world.track.state == "listening"
    elif state == "choosing":
        # The picker does not need what has died; it is given up.
        world.track.stop_broadcast()
        assert refused(world.pending.wait).name.startswith(ERROR)
    assert world.track.state == ("idle" if state == "idle" else "listening")
    world.rests(victim, state)
    if state in BROADCASTING:
        assert len(world.told(mark)) == 1, world.told(mark)
    elif state != "choosing":
        assert world.told(mark) == []
    # A stream outlives all of that.
    assert not recording.ended.is_set()
    world.revive(victim)
    world.works()
    assert not recording.ended.is_set()
    stream.unsubscribe()
    recording.wait_for_end()


# Faults: B45 B47 B53 B09
@pytest.mark.parametrize("victim", ENDS)
def test_killed_while_everything_is_carried(world, victim):
    """The same while several sources, the system's sound and readers of every kind are served; afterwards all of it can be had again."""
    session, root = world.session, world.session.root
    tone = sound.write_tone(root / "tone.wav", 440, 1_000)

    def begin():
        if sound.node(session, "speaker") is None:
            sound.add_device(session, "speaker")
        sound.play(session, tone)
        world.screen.configure(streams=3, sizes=[(320, 200), (160, 90), (90, 160)])
        world.me.set_screen_share(True, wait=True, multiple=True, audio="system")
        subscriptions = [world.track.subscribe(format=form) for form in ("webm", "ivf", "y4m")]
        for one in subscriptions:
            one.wait_until("Statistics", lambda statistics: statistics["sent"] >= 3)

    begin()
    mark = world.me.mark()
    world.kill(victim)
    told = world.track.wait_for_signal("BroadcastFinished", since=mark)
    world.note(victim, "all parts", told.at)
    assert told.value[0] in ENDS[victim][1]
    world.rests(victim, "all parts")
    assert len(world.told(mark)) == 1 and world.track.state == "listening"
    world.track.unsubscribe_all()
    world.revive(victim)
    begin()
    world.me.set_screen_share(False)
    world.screen.wait_until_closed()


# Faults: B45 B47 B53 B09
@pytest.mark.parametrize("victim", ENDS)
def test_killed_while_another_source_is_chosen(world, victim):
    """The same while a broadcast goes on and the picker of a switch is open: both are over, each told once."""
    world.bring_into("active")
    world.screen.configure(answer="never")
    pending = world.track.begin_switch(wait=True)
    world.screen.wait_for_picker()
    mark = world.me.mark()
    world.kill(victim)
    told = world.track.wait_for_signal("BroadcastFinished", since=mark)
    world.note(victim, "switching", told.at)
    assert told.value[0] in ENDS[victim][1]
    assert refused(pending.wait).name.startswith(ERROR)
    assert world.track.state == "listening"
    world.rests(victim, "switching")
    assert sorted(name for name, _ in world.told(mark)) == ["BroadcastFinished", "StartFailed"]
    world.revive(victim)
    world.works()


# Faults: B40 B47 B53
@pytest.mark.parametrize("state", ["listening", "choosing", "active", "muted", "paused"])
@pytest.mark.parametrize("victim", ["backend", "pipewire", "wireplumber", "all"])
def test_what_hangs(world, victim, state):
    """What the agent leans on stops in its tracks: the agent answers, a share can be stopped, a start be given up; and all is well when it goes on."""
    world.bring_into(state)
    session = world.session
    children = {"backend": [session.screen], "pipewire": [session.pipewire], "wireplumber": [session.wireplumber],
                "all": [session.portal, session.screen, session.pipewire, session.wireplumber]}[victim]
    recording = world.track.subscribe().record(session.root / "stream.webm")
    for child in children:
        child.send_signal(signal.SIGSTOP)
    try:
        assert world.me.get_all() and world.me.objects()
        other = session.agent().create_track()
        other.destroy()
        world.track.stop_broadcast()
        if world.pending:
            assert refused(world.pending.wait).name == ERROR + "Cancelled"
        assert world.track.state == "listening"
        for _ in range(3):
            pending = world.track.begin_broadcast(wait=True)
            world.track.wait_until("State", "choosing")
            world.track.stop_broadcast()
            assert refused(pending.wait).name == ERROR + "Cancelled"
        world.rests(f"hangs: {victim}", state)
    finally:
        for child in children:
            child.send_signal(signal.SIGCONT)
    assert not recording.ended.is_set()
    world.screen.wait_until_closed()
    world.works()


# Faults: B53
@pytest.mark.parametrize("state", ["listening", "choosing", "active", "paused"])
def test_the_session_manager_dies(world, state):
    """Without WirePlumber links that stand go on or end with a reason, no new one comes: a start then fails in words. With it, all is well."""
    world.bring_into(state)
    mark = world.me.mark()
    world.kill("wireplumber")
    if state == "choosing":
        world.screen.configure(answer="ok")
        world.screen.answer("ok")
        error = refused(world.pending.wait)
        assert error.name in (ERROR + "Failed", ERROR + "TimedOut") and len(error.message.split()) > 4
    world.rests("wireplumber", state) if state != "active" else None
    for one in world.told(mark):
        assert one[0] in ("BroadcastFinished", "StartFailed")
    world.revive("wireplumber")
    world.me.set_screen_share(False)
    world.screen.wait_until_closed()
    world.works()


@pytest.mark.parametrize("state", STATES)
def test_the_owner_dies(world, state):
    """The owner leaves in each state of its track: what was shared ends as `owner-left`, the track goes, its streams end, nothing stays open."""
    owner = world.session.new_client()
    track = world.session.agent(owner).create_track(allow=[world.me.unique_name])
    world.bring_into(state, track)
    recording = world.me.track(track.path).subscribe().record(world.session.root / "stream.webm")
    mark = world.me.mark()
    world.died = time.monotonic()
    owner.close()
    world.note("owner", state, world.me.wait_for("signal", "InterfacesRemoved", lambda value: value[0] == track.path, since=mark).at)
    recording.wait_for_end()
    told = [(e.name, e.value[0]) for e in world.me.events[mark:] if e.kind == "signal" and e.path == track.path]
    expected = [("BroadcastFinished", "owner-left")] if state in BROADCASTING else []
    assert told == ([("StartFailed", ERROR + "Cancelled")] if state == "choosing" else expected)
    world.screen.wait_until_closed()
    world.rests("owner", state)
    world.works()


@pytest.mark.parametrize("state", STATES)
def test_the_subscriber_dies(world, state):
    """A reader that is gone, with its connection or before it, is noticed in each state, and the share is not its business."""
    world.bring_into(state)
    client = world.session.new_client()
    streams = [world.session.agent(client).desktop.subscribe(format=form) for form in ("webm", "y4m")]
    assert len(world.track.get("Subscriptions")) == 2
    mark = world.me.mark()
    world.died = time.monotonic()
    client.close()
    for one in streams:
        one.close()
    world.note("subscriber", state, world.track.wait_for_change("Subscriptions", [], since=mark).at)
    assert world.told(mark) == []
    assert world.track.state == {"muted": "active", "paused": "active"}.get(state, state)
    if state not in ("active", "muted"):
        world.rests("subscriber", state)


def _bus(session):
    """The session bus's process."""
    def command(pid):
        try:
            return Path(f"/proc/{pid}/cmdline").read_text().split("\0")
        except OSError:
            return []

    (bus,) = [pid for pid in session.processes.strays() if f"--config-file={session.root}/bus.conf" in command(pid)]
    return bus


@pytest.mark.parametrize(("state", "how"), [*((state, signal.SIGKILL) for state in STATES), ("active", signal.SIGTERM)])
def test_the_bus_dies(world, state, how):
    """The bus goes in each state: the agent ends, readers get the end of their streams."""
    world.bring_into(state)
    recording = world.track.subscribe().record(world.session.root / "stream.webm")
    bus, world.died = _bus(world.session), time.monotonic()
    os.kill(bus, how)
    assert world.session.agent_process.wait(30) in (0, 1)
    world.note(f"bus ({how.name})", state)
    recording.wait_for_end()


# Faults: B45 B47 B53
def test_one_death_after_another(world):
    """One agent outlives all of them, in an order that nobody chose, and is as fit as on its first day."""
    moments = random.Random(20)
    files = None
    for _ in range(8):
        victim, state = moments.choice(["portal", "backend", "pipewire"]), moments.choice(STATES)
        world.bring_into(state)
        world.kill(victim)
        if state in BROADCASTING:
            world.track.wait_until("State", "listening")
        elif state == "choosing":
            world.track.stop_broadcast()
            wait_until(lambda: world.pending.done, "an answer to the start")
        world.revive(victim)
        world.works()
        # Encoders stay a moment longer than their readers.
        if files is None:
            wait_until(lambda: not _encodes(world), "no encoder")
            files, links = _open(world), _new_links(world)
    # PipeWire 0.3.65 gives a first link buffers without memory now and then; when another is made, its library may keep a descriptor of the first.
    most = len(files) + _new_links(world) - links
    wait_until(lambda: not _encodes(world) and len(_open(world)) <= most, lambda: f"at most {most} descriptors: {_open(world)}; at first {files}")
    assert world.session.client.owner(SERVICE)


def _open(world):
    return held.descriptors(world.session.agent_process.pid)


def _new_links(world):
    """How often the agent has had a link made again."""
    return world.session.processes.log("agent").count("connecting again")


def _encodes(world):
    return any(name.startswith("enc") for name in held.threads(world.session.agent_process.pid))


# Calls that meet an end


def test_calls_behind_a_destroy(world):
    """What is asked of a track while it is being destroyed is answered: there is no such object; nothing of it is done."""
    for _ in range(5):
        track = world.me.create_track()
        world.bring_into("active", track)
        recordings = [track.subscribe(format=form).record(world.session.root / f"x.{form}") for form in ("webm", "y4m")]
        for one in recordings:
            one.wait_for_bytes(500)
        mark = world.me.mark()
        destroyed = track.start("Destroy")
        client, names = track.client, ("org.freedesktop.DBus.Properties", "Set")
        later = [client.start(SERVICE, track.path, *names, GLib.Variant("(ssv)", (track.interface, name, value)))
                 for name, value in (("Muted", GLib.Variant("b", True)), ("Preset", GLib.Variant("s", "h360p")))]
        later += [track.start(member) for member in ("StartCapture", "StopCapture", "StopBroadcast")]
        later += [track.begin_broadcast(), track.begin_broadcast(wait=True)]
        destroyed.wait()
        for one in later:
            assert refused(one.wait).name == BUS_ERROR + "UnknownObject"
        for one in recordings:
            one.wait_for_end()
        told = [(e.name, e.value[0]) for e in world.me.events[mark:] if e.kind == "signal" and e.path == track.path]
        assert told == [("BroadcastFinished", "stopped")]
        world.screen.wait_until_closed()


def test_calls_behind_a_signal(world):
    """An agent that leaves answers what is asked of it meanwhile, opens no picker any more, and exits with 0."""
    world.bring_into("active")
    world.track.subscribe(format="y4m").record(world.session.root / "x.y4m").wait_for_bytes(500)
    opened = world.screen.get("PickersOpened")
    world.session.agent_process.send_signal(signal.SIGTERM)
    pending = [world.me.start_screen_share(True, wait=True) for _ in range(20)]
    assert world.session.agent_process.wait(30) == 0
    for one in pending:
        wait_until(lambda: one.done, "an answer")
    world.screen.wait_until_closed()
    assert world.screen.get("PickersOpened") == opened
