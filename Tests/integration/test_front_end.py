# SPDX-License-Identifier: MIT
"""Portals that misbehave, at every step of the flow: the right error or reason, the track in the right state, nothing left open, and the next share works."""

import random
import signal
import time

import pytest
from gi.repository import GLib

import held
from contract import refused
from front_end import REQUESTS, STEPS, FrontEnd, Manner
from harness import ERROR, PORTAL, PORTAL_PATH, SERVICE, Session
from processes import wait_until
from screen import TestScreen
from story import story

UNKNOWN, FAILED, DENIED = (f"org.freedesktop.DBus.Error.{name}" for name in ("UnknownMethod", "Failed", "AccessDenied"))
# A step of the flow, or what is after it.
MOMENTS = (*STEPS, "active")


@pytest.fixture(scope="module")
def shared():
    """The usual world without a portal."""
    with Session(portal="absent") as session:
        yield session


class Rig:
    """A listening desktop track, and a front end that the test has for itself."""

    def __init__(self, world, me, screen, **properties):
        self.world, self.me, self.screen = world, me, screen
        screen.configure(size=(320, 200))
        self.fronts = []
        self.front = self.new_front(**properties)
        self.track = me.desktop
        self.track.start_capture()
        self.mark = me.mark()
        self.pending = None

    def new_front(self, **properties):
        self.fronts.append(FrontEnd(self.world, **properties))
        return self.fronts[-1]

    def reach(self, moment):
        """Begins a start; returns when it waits at a step that is held, or is active."""
        if moment in REQUESTS:
            self.front.manners[moment] = Manner(response="held")
        elif moment != "active":
            self.front.manners[moment] = Manner(reply="never")
        self.front.asked.clear()
        self.mark = self.me.mark()
        self.pending = self.track.begin_broadcast(wait=True)
        if moment == "active":
            return self.pending.wait()
        wait_until(lambda: self.front.has_asked(moment), f"a call of {moment}")
        # The agent has the reply, and what it does about it is done.
        self.track.get("State")

    def owner(self):
        """The agent's part in the portal's paths."""
        return self.world.client.owner(SERVICE)[1:].replace(".", "_")

    def told(self):
        return [(m.name, m.value[0] if m.value else None) for m in story(self.me, self.mark) if m.what == "signal"]

    def has_failed(self, name):
        """The start was refused with that error, told once, and in words; the track listens."""
        error = refused(self.pending.wait)
        assert error.name == ERROR + name, error
        assert len(error.message.split()) > 4
        assert (self.track.state, self.told()) == ("listening", [("StartFailed", error.name)])
        assert (self.track.get("LastErrorName"), self.track.get("LastError")) == (error.name, error.message)

    def has_ended(self, reason):
        assert self.track.wait_for_signal("BroadcastFinished", since=self.mark).value[0] == reason
        assert (self.track.state, self.told()) == ("listening", [("BroadcastStarted", None), ("BroadcastFinished", reason)])

    def is_clean(self):
        """Nothing is open in the portal, nor behind it."""
        wait_until(lambda: not self.front.sessions and not self.front.requests, "a portal with nothing open")
        self.screen.wait_until_closed()

    def restart(self, **properties):
        """Another front end, where the last one has left."""
        self.front.leave()
        self.world.wait_for_no_name(PORTAL)
        self.front = self.new_front(**properties)

    def works(self):
        """A share from beginning to end, at a portal that behaves, with one picker."""
        self.front.behave()
        self.track.start_capture()
        asked, self.mark = len(self.front.asked), self.me.mark()
        self.track.start_broadcast(wait=True)
        assert [step for step, _ in self.front.asked[asked:]] == [*STEPS]
        self.track.stop_broadcast()
        assert self.told() == [("BroadcastStarted", None), ("BroadcastFinished", "stopped")]
        self.is_clean()


@pytest.fixture
def make_rig(world, me, screen):
    """`make_rig(version=3)` is a rig whose front end has these properties."""
    made = []

    def make(**properties):
        made.append(Rig(world, me, screen, **properties))
        return made[-1]

    yield make
    # An active share is stopped where its portal still is.
    me.set_screen_share(False)
    for front in [front for rig in made for front in rig.fronts]:
        front.leave()
    world.wait_for_no_name(PORTAL)


@pytest.fixture
def rig(make_rig):
    return make_rig()


# Answers


# Faults: B25 B38 B56
@pytest.mark.parametrize("code", [1, 2, 3, 2 ** 32 - 1])
@pytest.mark.parametrize("step", REQUESTS)
def test_a_no_and_a_failure_at_each_step(rig, step, code):
    """A response of 1 is the person's no, every other is a failure; wherever it comes, and whenever: also before the reply, and twice."""
    for manner in (Manner(code=code), Manner(code=code, response="before"), Manner(code=code, times=2), Manner(code=code, reply="elsewhere")):
        rig.front.manners[step] = manner
        rig.mark = rig.me.mark()
        rig.pending = rig.track.begin_broadcast(wait=True)
        rig.has_failed("Cancelled" if code == 1 else "Failed")
        rig.is_clean()
    rig.works()


def _without(*names):
    def spoil(results):
        for name in names:
            results.pop(name, None)

    return spoil


def _with(**given):
    return lambda results: results.update(given)


def _foreign(results):
    results["session_handle"] = GLib.Variant("s", f"{PORTAL_PATH}/session/1_999/theirs")


NO_STREAMS = GLib.Variant("a(ua{sv})", [])
MALFORMED = {
    "CreateSession": [
        Manner(answer=GLib.Variant("(s)", ("0",))), Manner(answer=GLib.Variant("()", ())), Manner(answer=GLib.Variant("(ia{sv})", (0, {}))),
        Manner(spoil=_without("session_handle")), Manner(spoil=_foreign), Manner(spoil=_with(session_handle=GLib.Variant("u", 1)))],
    "SelectSources": [Manner(answer=GLib.Variant("()", ())), Manner(answer=GLib.Variant("(us)", (0, ""))), Manner(answer=GLib.Variant("(u)", (0,)))],
    "Start": [
        Manner(answer=GLib.Variant("(a{sv}u)", ({}, 0))), Manner(spoil=_without("streams")), Manner(spoil=_with(streams=NO_STREAMS)),
        Manner(spoil=_with(streams=GLib.Variant("as", ["44"]))), Manner(spoil=_with(streams=GLib.Variant("s", "44"))),
        Manner(spoil=_with(streams=GLib.Variant("a(ua{sv})", [(2 ** 32 - 1, {})])))],
}


@pytest.mark.parametrize(("step", "index"), [(step, index) for step, manners in MALFORMED.items() for index in range(len(manners))])
def test_answers_that_are_none_at_each_step(rig, step, index):
    """A response of another form, or without what it has to say, is a failure that names the step."""
    rig.front.manners[step] = MALFORMED[step][index]
    rig.pending = rig.track.begin_broadcast(wait=True)
    rig.has_failed("Failed")
    assert step in rig.track.get("LastError")
    rig.is_clean()
    rig.works()


# Faults: B40 B41
@pytest.mark.parametrize(("error", "expected"), [(UNKNOWN, "PortalUnavailable"), (FAILED, "Failed"), (DENIED, "Failed"), ("org.example.Odd", "Failed")])
@pytest.mark.parametrize("step", STEPS)
def test_errors_at_each_step(rig, step, error, expected):
    """A call that the portal refuses, or does not know, fails the start in words."""
    rig.front.manners[step] = Manner(reply=error)
    rig.pending = rig.track.begin_broadcast(wait=True)
    rig.has_failed("PipeWireUnavailable" if step == "OpenPipeWireRemote" and error != UNKNOWN else expected)
    rig.is_clean()
    rig.works()


# Faults: B43
@pytest.mark.parametrize("manner", [Manner(response="before"), Manner(times=3), Manner(reply="elsewhere"), Manner(reply="elsewhere", response="before")],
                         ids=["before", "thrice", "elsewhere", "elsewhere-before"])
@pytest.mark.parametrize("step", [*REQUESTS, "all"])
def test_orders_and_places_that_do_not_matter(rig, step, manner):
    """A response before its reply, more than once, or at another path than was to be foreseen is a response."""
    rig.front.manners.update({one: manner for one in REQUESTS if step in (one, "all")})
    rig.track.start_broadcast(wait=True)
    assert rig.told() == [("BroadcastStarted", None)]
    rig.track.stop_broadcast()
    rig.is_clean()
    rig.works()


# Faults: B50
@pytest.mark.parametrize("remote", ["dead", "file", "missing"])
def test_ways_to_pipewire_that_lead_nowhere(rig, remote):
    """A descriptor with nobody behind it, one that is no socket, or none: the start fails, in words, and not after a limit."""
    rig.front.manners["OpenPipeWireRemote"] = Manner(remote=remote)
    rig.pending = rig.track.begin_broadcast(wait=True)
    rig.has_failed("Failed" if remote == "missing" else "PipeWireUnavailable")
    rig.is_clean()
    rig.works()


# Faults: B40 B50
@pytest.mark.parametrize("remote", ["silent", "noise"])
def test_ways_to_pipewire_on_which_nobody_answers(rig, remote):
    """Behind the descriptor is somebody who says nothing, or what is no PipeWire: the agent answers, and the start can be given up, again and again."""
    for _ in range(8):
        rig.front.manners["OpenPipeWireRemote"] = Manner(remote=remote)
        rig.front.asked.clear()
        rig.pending = rig.track.begin_broadcast(wait=True)
        wait_until(lambda: rig.front.has_asked("OpenPipeWireRemote"), "the last step")
        assert rig.me.get_all() and rig.track.state in ("choosing", "listening")
        rig.track.stop_broadcast()
        assert refused(rig.pending.wait).name.startswith(ERROR)
        rig.is_clean()
    # Left alone it comes to an end by itself, and the agent does not spin until then.
    spent = lambda: time.clock_gettime(~rig.world.agent_process.pid << 3 | 2)
    before = spent()
    rig.mark = rig.me.mark()
    rig.pending = rig.track.begin_broadcast(wait=True)
    rig.has_failed("PipeWireUnavailable")
    assert spent() - before < 1, "the agent spins"
    rig.is_clean()
    rig.works()


# What does not come, comes late, and ends meanwhile


# Faults: B39 B40
@pytest.mark.parametrize("step", REQUESTS)
def test_slow_answers_at_each_step(rig, step):
    """A step that takes its time is waited for; meanwhile the agent answers, another start is refused or joins, and no second picker opens."""
    rig.reach(step)
    assert rig.track.state == "choosing"
    joined = rig.me.start_screen_share(True, wait=True)
    assert refused(rig.track.start_broadcast).name == ERROR + "Busy"
    other = rig.me.create_track()
    other.start_capture()
    assert refused(other.start_broadcast).name == ERROR + "Busy"
    other.destroy()
    rig.front.release()
    rig.pending.wait()
    joined.wait()
    assert [one for one, _ in rig.front.asked] == [*STEPS]
    rig.track.stop_broadcast()
    rig.is_clean()
    rig.works()


# What is missing at a step. OpenPipeWireRemote has no response.
SILENCES = [*((step, silence) for step in REQUESTS for silence in ("response", "reply", "reply-and-close", "close", "late")),
            *(("OpenPipeWireRemote", silence) for silence in ("reply", "reply-and-close"))]


# Faults: B34 B40 B47 B55
@pytest.mark.parametrize("how", ["StopBroadcast", "StopCapture", "SetScreenShare"])
@pytest.mark.parametrize(("step", "silence"), SILENCES)
def test_stopped_at_each_step(rig, step, silence, how):
    """A start is stopped while a step is open, whether its reply, its response or both are missing, and Close is answered or not; what comes late is closed."""
    missing = "never" if "reply" in silence else "regular"
    rig.front.manners[step] = Manner(reply=missing, response="held" if silence == "late" else "never")
    rig.front.answers_close = "close" not in silence
    rig.pending = rig.track.begin_broadcast(wait=True)
    wait_until(lambda: rig.front.has_asked(step), f"a call of {step}")
    rig.me.set_screen_share(False) if how == "SetScreenShare" else rig.track.call(how)
    assert refused(rig.pending.wait).name == ERROR + "Cancelled"
    assert rig.track.state == ("listening" if how == "StopBroadcast" else "idle")
    assert rig.told() == [("StartFailed", ERROR + "Cancelled")]
    rig.front.release()
    rig.is_clean()
    rig.works()


# Faults: B09
def test_a_picker_that_nobody_answers(rig):
    """A Start without a response ends when its time is over, and the picker with it."""
    rig.front.manners["Start"] = Manner(response="never")
    rig.pending = rig.track.begin_broadcast(wait=True, timeout=1)
    rig.has_failed("TimedOut")
    rig.is_clean()
    rig.works()


# Faults: B40 B47
def test_what_is_never_answered(make_session):
    """A call without a reply, or a request without a response, is given up after a minute, in words; all steps wait at once."""
    silences = [*((step, Manner(reply="never", response="never"), "PortalUnavailable") for step in STEPS),
                ("CreateSession", Manner(response="never"), "PortalUnavailable"),
                # Some desktops show their picker here already.
                ("SelectSources", Manner(response="never"), "TimedOut")]
    rigs = []
    for step, manner, error in silences:
        world = make_session(portal="absent")
        rig = Rig(world, world.agent(), TestScreen(world.client))
        rig.front.manners[step] = manner
        rig.pending = rig.track.begin_broadcast(wait=True)
        rigs.append((rig, error))
    for rig, error in rigs:
        refused(lambda: rig.pending.wait(120))
        rig.has_failed(error)
        rig.is_clean()
        rig.works()


# Faults: B44
@pytest.mark.parametrize("times", [1, 2])
@pytest.mark.parametrize("moment", MOMENTS)
def test_closed_at_each_step(rig, moment, times):
    """The session is closed by the desktop at each step, once or twice: a start is cancelled, a broadcast ended; and what is held comes too late."""
    rig.reach(moment)
    if moment == "CreateSession":
        # It is not there yet, and is closed all the same.
        token = rig.front.asked[-1][1]["session_handle_token"]
        rig.front.emit_closed(f"{PORTAL_PATH}/session/{rig.owner()}/{token}", times)
    else:
        rig.front.close_sessions(times)
    rig.has_ended("ended-by-desktop") if moment == "active" else rig.has_failed("Cancelled")
    rig.front.release()
    rig.is_clean()
    rig.works()


# Faults: B43 B44
@pytest.mark.parametrize("moment", MOMENTS)
def test_what_others_say_at_each_step(rig, moment):
    """That another session is closed, or what another program than the portal says of this one and of its request, is not heard."""
    rig.reach(moment)
    stranger = rig.world.new_client()
    rig.front.emit_closed(f"{PORTAL_PATH}/session/1_999/theirs")
    for path in rig.front.sessions:
        rig.front.emit_closed(path, by=stranger)
    for path in rig.front.requests:
        rig.front.emit_response(path, by=stranger)
    # Behind what the stranger sent.
    stranger.call("org.vitrine.ScreenShare1", "/org/vitrine/ScreenShare1", "org.freedesktop.DBus.Peer", "Ping")
    assert rig.track.state == ("active" if moment == "active" else "choosing")
    if moment == "OpenPipeWireRemote":
        rig.track.stop_broadcast()
    else:
        rig.front.release()
        rig.pending.wait()
        assert rig.told() == [("BroadcastStarted", None)]
        rig.track.stop_broadcast()
    rig.is_clean()
    rig.works()


# Faults: B42 B45 B47
@pytest.mark.parametrize("when", ["at-the-call", "while-it-is-open"])
@pytest.mark.parametrize("moment", MOMENTS)
def test_the_portal_leaves_at_each_step(rig, moment, when):
    """The portal crashes over a call, while a request is open, or later: told once, at once, and a new portal is a new chance."""
    if when == "at-the-call" and moment != "active":
        rig.front.manners[moment] = Manner(reply="leave")
        rig.pending = rig.track.begin_broadcast(wait=True)
    else:
        rig.reach(moment)
        rig.front.leave()
    rig.has_ended("portal-lost") if moment == "active" else rig.has_failed("PortalUnavailable")
    rig.screen.wait_until_closed()
    # Without one a start says so.
    rig.world.wait_for_no_name(PORTAL)
    rig.mark = rig.me.mark()
    rig.pending = rig.track.begin_broadcast(wait=True)
    rig.has_failed("PortalUnavailable")
    rig.restart()
    rig.works()


# Faults: B45
@pytest.mark.parametrize("moment", MOMENTS)
def test_the_portal_is_replaced_at_each_step(rig, moment):
    """Another program takes the portal's name while the old one lives on: what was open at the old one is over."""
    rig.reach(moment)
    old = rig.front
    old.client.call("org.freedesktop.DBus", "/org/freedesktop/DBus", "org.freedesktop.DBus", "ReleaseName", GLib.Variant("(s)", (PORTAL,)))
    rig.front = rig.new_front()
    rig.has_ended("portal-lost") if moment == "active" else rig.has_failed("PortalUnavailable")
    # As the real one does, which owns nothing any more.
    old.leave()
    rig.works()


# Faults: B55
@pytest.mark.parametrize("moment", MOMENTS)
def test_the_owner_leaves_at_each_step(rig, moment):
    """A client's connection goes while its track is at that step: nothing stays open."""
    owner = rig.world.new_client()
    track = rig.world.agent(owner).create_track()
    track.start_capture()
    rig.track, desktop = rig.me.track(track.path), rig.track
    if moment in REQUESTS:
        rig.front.manners[moment] = Manner(response="held")
    elif moment != "active":
        rig.front.manners[moment] = Manner(reply="never")
    pending = track.begin_broadcast(wait=True)
    pending.wait() if moment == "active" else wait_until(lambda: rig.front.has_asked(moment), f"a call of {moment}")
    owner.close()
    wait_until(lambda: track.path not in rig.me.objects(), "the track to go")
    rig.front.release()
    rig.is_clean()
    rig.track = desktop
    rig.works()


# Faults: B55
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
@pytest.mark.parametrize("moment", MOMENTS)
def test_the_agent_ends_at_each_step(moment, number):
    """However the agent ends: no share that it had asked for is left, as soon as its portal has seen it leave."""
    with Session(portal="absent") as session:
        screen = TestScreen(session.client)
        rig = Rig(session, session.agent(), screen)
        rig.reach(moment)
        session.agent_process.send_signal(number)
        assert session.agent_process.wait(30) == (0 if number == signal.SIGTERM else -number)
        if number == signal.SIGTERM:
            # What it had opened it has closed itself.
            wait_until(lambda: not rig.front.sessions and not rig.front.requests, "a portal with nothing open")
        rig.front.leave()
        screen.wait_until_closed()


# Faults: B32 B33 B47
@pytest.mark.parametrize("seed", range(2))
def test_one_fault_after_another(rig, seed):
    """Many starts that fail in all these ways, or are given up at any moment: the agent has no descriptor and no thread more than before."""
    moments = random.Random(seed)
    pid = rig.world.agent_process.pid
    rig.works()
    before = held.counts(pid)[:2]
    for _ in range(60):
        rig.front.behave()
        step = moments.choice(STEPS)
        manners = [Manner(reply=FAILED), Manner(reply="never"), Manner(reply="leave"), Manner(remote="dead"), Manner(remote="missing")]
        if step != "OpenPipeWireRemote":
            manners += [Manner(code=2), Manner(response="never"), Manner(response="held"), Manner(times=2), *MALFORMED[step]]
        rig.front.manners[step] = moments.choice(manners)
        rig.front.answers_close = moments.random() < 0.7
        rig.front.asked.clear()
        rig.pending = rig.track.begin_broadcast(wait=True)
        if moments.random() < 0.5:
            wait_until(lambda: rig.pending.done or rig.front.has_asked(step), "the step, or an end")
        act = moments.choice(["StopBroadcast", "StopCapture", "close", "leave", "release"])
        if act.startswith("Stop"):
            rig.track.call(act)
        elif not rig.front.client.connection.is_closed():
            {"close": rig.front.close_sessions, "leave": rig.front.leave, "release": rig.front.release}[act]()
        rig.track.stop_broadcast()
        wait_until(lambda: rig.pending.done, "an answer to the start")
        rig.front.release()
        rig.track.start_capture()
        if rig.front.client.connection.is_closed():
            rig.restart()
        else:
            rig.is_clean()
    rig.works()
    wait_until(lambda: held.counts(pid)[:2] <= before, f"no more than {before}")


# What it grants, and what it has


@pytest.mark.parametrize("count", [2, 3])
def test_more_streams_than_were_asked_for(rig, count):
    """A portal that grants several sources where one was asked for shares one."""
    rig.screen.configure(streams=count)
    rig.track.start_broadcast(wait=True)
    assert len(rig.track.get("Sources")) == 1
    rig.track.stop_broadcast()
    rig.is_clean()
    rig.works()


# Faults: B52
@pytest.mark.parametrize("details", [
    {"size": GLib.Variant("(ii)", (0, -1))}, {"size": GLib.Variant("s", "big")}, {"source_type": GLib.Variant("u", 4096)},
    {"source_type": GLib.Variant("s", "window")}, {"position": GLib.Variant("(ii)", (-2 ** 31, 2 ** 31 - 1))}, {"id": GLib.Variant("s", "")},
    {"id": GLib.Variant("s", "x" * 100_000)}, {"pipewire-serial": GLib.Variant("u", 1)}, {"mapping_id": GLib.Variant("i", -1)},
    {"size": GLib.Variant("(ii)", (2 ** 31 - 1, 2 ** 31 - 1))}], ids=str)
def test_details_of_a_stream_that_are_wrong(rig, details):
    """What a portal says of a stream beside its node may be missing or wrong: the share is that of the node."""
    def spoil(results):
        node = results["streams"].get_child_value(0).get_child_value(0).get_uint32()
        results["streams"] = GLib.Variant("a(ua{sv})", [(node, details)])

    rig.front.manners["Start"] = Manner(spoil=spoil)
    rig.track.start_broadcast(wait=True)
    (source,) = rig.track.get("Sources")
    assert source["pixel-size"] == (320, 200)
    rig.track.stop_broadcast()
    rig.is_clean()
    rig.works()


@pytest.mark.parametrize("masks", [0, 1, 3, 7])
@pytest.mark.parametrize("version", range(1, 7))
def test_every_version_and_mask(make_rig, version, masks):
    """Of each version is asked what it knows, of what it has; where it has nothing, the start says so."""
    rig = make_rig(version=version, AvailableSourceTypes=masks, AvailableCursorModes=masks)
    if masks == 0:
        rig.pending = rig.track.begin_broadcast(wait=True)
        rig.has_failed("PortalUnavailable")
        assert rig.front.asked == []
        rig.restart()
    else:
        rig.track.start_broadcast(wait=True)
        wishes = dict(rig.front.asked)["SelectSources"]
        assert wishes["types"] == masks & 3
        assert wishes.get("cursor_mode") == (None if version < 2 else 2 if masks & 2 else 1)
        assert ("persist_mode" in wishes) == (version >= 4)
        rig.track.stop_broadcast()
    rig.is_clean()
    rig.works()


# What is remembered


# Faults: B48
@pytest.mark.parametrize("failure", ["cancelled", "never", "closed", "left"])
def test_tokens_change_and_outlive_what_fails(rig, failure):
    """Each share's token is for the next one; a start that came to nothing, however, leaves it for the one after."""
    track = rig.me.create_track(persist="session", restore_key="it")
    rig.track = track
    track.start_capture()

    def share(token, new):
        """A share that asks with that token and gets a new one."""
        rig.front.behave()
        rig.front.manners["Start"] = Manner(spoil=_with(restore_token=GLib.Variant("s", new)))
        track.start_broadcast(wait=True)
        assert dict(rig.front.asked)["SelectSources"].get("restore_token") == token, "the newest is asked with"
        track.stop_broadcast()
        rig.is_clean()

    share(None, "first")
    share("first", "second")
    rig.reach("SelectSources" if failure == "left" else "Start")
    if failure == "never":
        track.stop_broadcast()
    elif failure == "closed":
        rig.front.close_sessions()
    elif failure == "left":
        rig.front.leave()
    else:
        rig.front.manners["Start"].code = 1
        rig.front.release()
    refused(rig.pending.wait)
    if failure == "left":
        rig.restart()
    rig.is_clean()
    share("second", "third")
    track.destroy()


# Faults: B48
@pytest.mark.parametrize("error", ["org.freedesktop.portal.Error.InvalidArgument", "org.freedesktop.DBus.Error.InvalidArgs"])
def test_a_token_that_is_refused_is_done_without(rig, error):
    """A portal that finds fault with a token is asked once more, without it, and the person chooses again."""
    track = rig.me.create_track(persist="session", restore_key="it")
    track.start_capture()
    rig.front.manners["Start"] = Manner(spoil=_with(restore_token=GLib.Variant("s", "stale")))
    track.start_broadcast(wait=True)
    track.stop_broadcast()
    rig.front.refused_token = ("stale", error)
    rig.front.asked.clear()
    track.start_broadcast(wait=True)
    wishes = [options.get("restore_token") for step, options in rig.front.asked if step == "SelectSources"]
    assert wishes == ["stale", None] and len(rig.front.asked) == 5
    track.destroy()
    rig.is_clean()
    rig.works()


# Faults: B50
@pytest.mark.parametrize("kind", ["one-dead", "all-dead", "the-same-twice", "too-many"])
def test_several_streams_that_are_not_all_there(rig, kind):
    """Of several streams that are granted some have no node, are one and the same, or are more than a picture takes: what is there is shown, or nothing."""
    def spoil(results):
        node = results["streams"].get_child_value(0).get_child_value(0).get_uint32()
        nodes = {"one-dead": [node, 99_999], "all-dead": [99_998, 99_999], "the-same-twice": [node, node], "too-many": [node] * 40}[kind]
        results["streams"] = GLib.Variant("a(ua{sv})", [(one, {}) for one in nodes])

    track = rig.me.create_track(multiple=True)
    track.start_capture()
    desktop, rig.track = rig.track, track
    rig.front.manners["Start"] = Manner(spoil=spoil)
    rig.mark = rig.me.mark()
    pending = track.begin_broadcast(wait=True)
    if kind == "all-dead":
        assert refused(pending.wait).name == ERROR + "Failed"
        assert track.state == "listening"
    else:
        pending.wait()
        wanted = {"one-dead": 1, "the-same-twice": 2, "too-many": 16}[kind]
        track.wait_until("Sources", lambda sources: len(sources) == wanted and all("pixel-size" in one for one in sources))
        received = track.statistics["received"]
        track.wait_until("Statistics", lambda statistics: statistics["received"] > received + 5)
        track.stop_broadcast()
    rig.is_clean()
    track.destroy()
    rig.track = desktop
    rig.works()
