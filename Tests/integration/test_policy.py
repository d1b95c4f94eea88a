# SPDX-License-Identifier: MIT
"""Who may do what: the owner, those whom it allows, other programs, programs in a sandbox. Identities come from the bus's credentials."""

import contextlib
import fcntl
import os
import time

import pytest
from gi.repository import GLib

import peers
from bus import BusError
from contract import BUS_ERROR, declared, refused
from harness import AGENT, DESKTOP_TRACK, ERROR, ROOT, SUBSCRIPTION, TRACK, options
from processes import wait_until

needs_sandbox = pytest.mark.skipif(not peers.sandboxing_works(), reason="this machine lets nobody make a sandbox (bwrap --unshare-user)")

NOT_ALLOWED = ERROR + "NotAllowed"
NOBODY = GLib.Variant("(s)", ("app:org.example.Nobody",))
EMPTY = options()

STOPPING = [
    ("StopBroadcast", lambda peer, path: peer.track(path, "StopBroadcast")),
    ("Muted = true", lambda peer, path: peer.set(path, "Muted", GLib.Variant("b", True))),
    ("StopCapture", lambda peer, path: peer.track(path, "StopCapture")),
]
STARTING = [("StartBroadcast", lambda peer, path: peer.track(path, "StartBroadcast", EMPTY))]
SUBSCRIBING = [("Subscribe", lambda peer, path: peer.track(path, "Subscribe", EMPTY))]
MANAGING = [
    ("StartCapture", lambda peer, path: peer.track(path, "StartCapture")),
    ("Allow", lambda peer, path: peer.track(path, "Allow", NOBODY)),
    ("Disallow", lambda peer, path: peer.track(path, "Disallow", NOBODY)),
    ("Preset", lambda peer, path: peer.set(path, "Preset", GLib.Variant("s", "h720p"))),
    ("Crop", lambda peer, path: peer.set(path, "Crop", GLib.Variant("(iiuu)", (0, 0, 0, 0)))),
    ("Masks", lambda peer, path: peer.set(path, "Masks", GLib.Variant("a(iiuu)", []))),
    ("Layout", lambda peer, path: peer.set(path, "Layout", GLib.Variant("s", "grid"))),
    ("Muted = false", lambda peer, path: peer.set(path, "Muted", GLib.Variant("b", False))),
    ("SwitchSource", lambda peer, path: peer.track(path, "SwitchSource", EMPTY)),
    ("UnsubscribeAll", lambda peer, path: peer.track(path, "UnsubscribeAll", GLib.Variant("(s)", (":1.0",)))),
]
DESTROYING = [("Destroy", lambda peer, path: peer.track(path, "Destroy"))]


@pytest.fixture
def own(me):
    """A track of the tests' own, listening."""
    track = me.create_track(title="guarded")
    track.start_capture()
    yield track
    if track.path in me.objects():
        track.destroy()


def allowed_to(peer, path, acts):
    """Every one of these acts is done for that client, or fails for another reason than who it is."""
    for name, act in acts:
        try:
            act(peer, path)
        except Exception as error:
            assert getattr(error, "name", "") in (ERROR + "Unsupported", ERROR + "NotActive", ERROR + "NotListening"), (name, error)


def refused_to(peer, path, acts, *words):
    """Every one of these acts is refused to that client; the message names member, track and what is given here."""
    for name, act in acts:
        error = refused(act, peer, path)
        assert error.name == NOT_ALLOWED, (name, error)
        for word in (path, *words):
            assert word in error.message, (name, word, error.message)


def sees_everything(peer, me, path):
    """State, statistics and objects are for every client on the bus."""
    for name in ("State", "Statistics", "Allowed", "Owner", "Sources"):
        peer.get(path, TRACK, name)
    peer.get(ROOT, AGENT, "IsBroadcastActive")
    assert path in peer.call(ROOT, "org.freedesktop.DBus.ObjectManager", "GetManagedObjects")
    assert "State" in peer.call(path, "org.freedesktop.DBus.Introspectable", "Introspect")


# Programs outside of a sandbox


def test_owner_may_do_everything(world, me, screen):
    """The client that made a track may do everything with it."""
    with peers.other_program(world) as peer:
        path = peer.create_track()
        allowed_to(peer, path, MANAGING + STARTING + SUBSCRIBING)
        me.track(path).wait_until("State", "active")
        allowed_to(peer, path, STOPPING + DESTROYING)
        assert path not in me.objects()


@pytest.mark.parametrize("program", ["another", "the same"])
def test_stranger(world, me, own, program):
    """Another client may look, may stop, and may start a track that listens; nothing else. The refusal names both, and the remedy."""
    with (peers.other_program if program == "another" else peers.same_program)(world) as peer:
        identity = peers.other_identity(world) if program == "another" else own.get("OwnerIdentity")
        before = own.get_all()
        before.pop("Statistics")
        refused_to(peer, own.path, MANAGING + SUBSCRIBING + DESTROYING, identity, own.get("OwnerIdentity"))
        after = own.get_all()
        after.pop("Statistics")
        assert after == before
        sees_everything(peer, me, own.path)
        allowed_to(peer, own.path, STARTING)
        own.wait_until("State", "active")
        allowed_to(peer, own.path, STOPPING)
        assert own.state == "idle" and own.get("Muted")


def test_desktop_track_belongs_to_everyone(world, me):
    """Every program outside of a sandbox may do everything with the desktop track, but destroy it."""
    with peers.other_program(world) as peer:
        allowed_to(peer, DESKTOP_TRACK, MANAGING + SUBSCRIBING)
        peer.set_screen_share(True, wait=True)
        assert me.desktop.state == "active"
        peer.set_screen_share(False)
        assert me.desktop.state == "idle"
        assert refused(peer.track, DESKTOP_TRACK, "Destroy").name == NOT_ALLOWED


def test_reading_needs_permission(world, me, own):
    """Subscribe by a program that was not named: the message says what value of allow is missing; with that very value it works."""
    with peers.other_program(world) as peer:
        error = refused(peer.track, own.path, "Subscribe", EMPTY)
        assert error.name == NOT_ALLOWED
        missing = peers.other_identity(world)
        assert f'"{missing}"' in error.message and own.get("OwnerIdentity") in error.message and "llow" in error.message
        own.allow(missing)
        peer.track(own.path, "Subscribe", EMPTY)
        (subscription,) = own.get("Subscriptions")
        assert me.client.get("org.vitrine.ScreenShare1", subscription, SUBSCRIPTION, "SubscriberIdentity") == missing
        assert me.client.get("org.vitrine.ScreenShare1", subscription, SUBSCRIPTION, "Subscriber") == peer.name
        # Who may read may not do more than that.
        refused_to(peer, own.path, MANAGING + DESTROYING, missing)
        # Its own stream is its own.
        peer.call(subscription, SUBSCRIPTION, "Unsubscribe")
        assert own.get("Subscriptions") == []


def test_allowed_with_the_track(world, me):
    """A track that was made with allow lets those programs read from its first moment."""
    with peers.other_program(world) as peer:
        track = me.create_track(allow=[peers.other_identity(world)])
        peer.track(track.path, "Subscribe", EMPTY)
        assert len(track.get("Subscriptions")) == 1
        track.disallow(peers.other_identity(world))
        assert (track.get("Subscriptions"), track.get("Allowed")) == ([], [])
        assert refused(peer.track, track.path, "Subscribe", EMPTY).name == NOT_ALLOWED


def test_allowed_by_unique_name(world, me, own):
    """A connection may be named by its unique name; the right ends with the connection, also when that never called the agent."""
    with peers.other_program(world) as peer, peers.other_program(world) as other:
        own.allow(peer.name)
        peer.track(own.path, "Subscribe", EMPTY)
        assert refused(other.track, own.path, "Subscribe", EMPTY).name == NOT_ALLOWED
        own.allow(other.name)
        mark = me.mark()
        other.close()
        own.wait_for_change("Allowed", [peer.name], mark)
        peer.close()
        own.wait_for_change("Allowed", [], mark)
    gone = world.new_client()
    name = gone.unique_name
    gone.close()
    own.allow(name)
    own.wait_until("Allowed", [])


def test_streams_of_others(world, me, own):
    """A stream belongs to its subscriber and to who manages the track; another reader may not end, pause or disturb it."""
    identity = peers.other_identity(world)
    own.allow(identity)
    with peers.other_program(world) as reader, peers.other_program(world) as other:
        reader.track(own.path, "Subscribe", EMPTY)
        (path,) = own.get("Subscriptions")
        for member in ("Unsubscribe", "RequestKeyFrame"):
            assert refused(other.call, path, SUBSCRIPTION, member).name == NOT_ALLOWED
        paused = GLib.Variant("(ssv)", (SUBSCRIPTION, "Paused", GLib.Variant("b", True)))
        assert refused(other.call, path, "org.freedesktop.DBus.Properties", "Set", paused).name == NOT_ALLOWED
        assert refused(other.track, own.path, "UnsubscribeAll", GLib.Variant("(s)", (reader.name,))).name == NOT_ALLOWED
        other.track(own.path, "UnsubscribeAll", GLib.Variant("(s)", ("",)))
        assert own.get("Subscriptions") == [path]
        reader.call(path, "org.freedesktop.DBus.Properties", "Set", paused)
        own.unsubscribe_all(reader.name)
        assert own.get("Subscriptions") == []


def test_identities_come_from_the_bus(world, me):
    """What a track shows of its owner is who the bus says it is: unique name, process, executable."""
    with peers.other_program(world) as peer:
        path = peer.create_track(title="org.example.Impostor")
        track = me.track(path)
        assert track.get("Owner") == peer.name
        assert track.get("OwnerPid") == peer.process_id
        assert track.get("OwnerIdentity") == peers.other_identity(world)
    wait_until(lambda: path not in me.objects(), "the track to go with its owner")


def test_an_executable_that_is_gone(world, me):
    """A program whose file was replaced under it is not mistaken for the new file."""
    with peers.other_program(world) as peer:
        os.unlink(world.root / "other-program")
        track = me.create_track(allow=[peers.other_identity(world)])
        assert refused(peer.track, track.path, "Subscribe", EMPTY).name == NOT_ALLOWED


# Programs in a sandbox


@needs_sandbox
def test_sandboxed(world, me, own):
    """A program in a sandbox may look. It may not touch tracks of others or the desktop track: not start, not stop, not read, not manage."""
    with peers.sandboxed(world) as peer:
        for path in (own.path, DESKTOP_TRACK):
            sees_everything(peer, me, path)
            refused_to(peer, path, STOPPING + STARTING + SUBSCRIBING + MANAGING + DESTROYING[:path != DESKTOP_TRACK])
        for on in (True, False):
            assert refused(peer.set_screen_share, on).name == NOT_ALLOWED
        assert (me.desktop.state, own.state) == ("idle", "listening")


@needs_sandbox
def test_sandboxed_owner(world, me):
    """A program in a sandbox may make tracks of its own, and do everything with them."""
    with peers.sandboxed(world) as peer:
        path = peer.create_track()
        allowed_to(peer, path, MANAGING + STARTING + SUBSCRIBING)
        me.track(path).wait_until("State", "active")
        allowed_to(peer, path, STOPPING + DESTROYING)
        assert path not in me.objects()


@needs_sandbox
def test_flatpak(world, me, own):
    """A Flatpak application is known by its id, and may read what it was allowed to by that id, the desktop track too."""
    with peers.flatpak(world, "org.example.Viewer") as peer:
        identity = "app:org.example.Viewer"
        path = peer.create_track()
        assert me.track(path).get("OwnerIdentity") == identity
        for track in (own, me.desktop):
            error = refused(peer.track, track.path, "Subscribe", EMPTY)
            assert error.name == NOT_ALLOWED and f'"{identity}"' in error.message
            track.allow(identity)
            peer.track(track.path, "Subscribe", EMPTY)
            track.disallow(identity)
            assert track.get("Subscriptions") == []
            refused_to(peer, track.path, STOPPING + STARTING + SUBSCRIBING + MANAGING, identity)


FORGERIES = {
    "no instance": "[Application]\nname=org.example.Viewer\n",
    "one that is not there": "[Application]\nname=org.example.Viewer\n[Instance]\ninstance-id=77\n",
    "another one's": "[Application]\nname=org.example.Viewer\n[Instance]\ninstance-id={number}\n",
    "another one's, by its folder": "[Application]\nname=org.example.Viewer\n[Instance]\ninstance-id=./{number}\n",
    "one of its own making": "[Application]\nname=org.example.Viewer\n[Instance]\ninstance-id=org.example.Evil/tmp/7\n",
}


@needs_sandbox
@pytest.mark.parametrize("numbers", ["own process numbers", "shared process numbers"])
@pytest.mark.parametrize("what", FORGERIES)
def test_a_forged_flatpak(world, me, own, what, numbers):
    """A sandbox that was not made by Flatpak may say in its root what it likes: it is no application, not even beside one that runs."""
    own.allow("app:org.example.Viewer")
    # The folders of applications, beside those of instances, are theirs to write.
    made = world.runtime_dir / ".flatpak" / "org.example.Evil" / "tmp" / "7"
    made.mkdir(parents=True, exist_ok=True)
    (made / "info").write_text(FORGERIES["one of its own making"])
    (made / ".ref").touch()
    with peers.flatpak(world, "org.example.Viewer") as genuine, (made / ".ref").open("r+") as lock:
        fcntl.lockf(lock, fcntl.LOCK_EX)
        genuine.track(own.path, "Subscribe", EMPTY)
        number = max(int(one.name) for one in made.parents[2].iterdir() if one.name.isdigit())
        with peers.forged_flatpak(world, FORGERIES[what].format(number=number), numbers == "own process numbers") as peer:
            error = refused(peer.track, own.path, "Subscribe", EMPTY)
            assert error.name == NOT_ALLOWED and f"is not for exe:{peers.PYTHON}" in error.message
            path = peer.create_track()
            assert me.track(path).get("OwnerIdentity") == f"exe:{peers.PYTHON}"
            assert refused(peer.create_track, persist="forever").name == ERROR + "Unsupported"


@needs_sandbox
def test_an_instance_that_has_just_begun(world, me):
    """An application may call before the lock of its instance is there: for three seconds it is taken for running, as Flatpak does."""
    # A busy machine has a minute for it here.
    for age, known in ((-60, True), (10, False)):
        instance = peers.FlatpakInstance(world, "org.example.Viewer")
        os.utime(instance.folder / ".ref", (time.time() - age, time.time() - age))
        with instance.proxied() as address, peers.Peer(world, [peers.PYTHON, peers.PEER], DBUS_SESSION_BUS_ADDRESS=address) as peer:
            identity = me.track(peer.create_track()).get("OwnerIdentity")
        assert identity == "app:org.example.Viewer" if known else "xdg-dbus-proxy" in identity


@needs_sandbox
@pytest.mark.parametrize("what", ["left", "another application's"])
def test_an_instance_that_is_none(world, me, what):
    """The folder of an instance that has ended, and one that names another application than the sandbox does, stand for nobody."""
    instance = peers.FlatpakInstance(world, "org.example.Viewer")
    if what == "left":
        # One that has only just begun may not be locked yet.
        os.utime(instance.folder / ".ref", (0, 0))
        with instance.proxied() as address:
            with instance.peer(DBUS_SESSION_BUS_ADDRESS=address) as peer:
                assert me.track(peer.create_track()).get("OwnerIdentity") == "app:org.example.Viewer"
            # Its process number and its namespace may be somebody else's by now.
            with peers.Peer(world, [peers.PYTHON, peers.PEER], DBUS_SESSION_BUS_ADDRESS=address) as peer:
                assert "xdg-dbus-proxy" in me.track(peer.create_track()).get("OwnerIdentity")
    else:
        instance.info = instance.info.replace("Viewer", "Painter")
        with instance.proxied() as address, instance.peer(DBUS_SESSION_BUS_ADDRESS=address) as peer:
            assert "xdg-dbus-proxy" in me.track(peer.create_track()).get("OwnerIdentity")


@needs_sandbox
def test_no_longer_allowed_by_the_next_share(world, me):
    """Who could read because one share allowed it reads nothing of the next one that does not."""
    with peers.flatpak(world, "org.example.Viewer") as peer:
        me.set_screen_share(True, wait=True, allow=["app:org.example.Viewer"])
        peer.track(DESKTOP_TRACK, "Subscribe", EMPTY)
        assert len(me.desktop.get("Subscriptions")) == 1
        me.set_screen_share(False)
        me.set_screen_share(True, wait=True)
        me.desktop.wait_until("Subscriptions", [])


@needs_sandbox
def test_a_path_in_a_sandbox_names_nobody(world, me, own):
    """A program in a sandbox is not let in, and owns nothing again, by a path: in there it is what the sandbox says."""
    identity = own.get("OwnerIdentity")
    own.allow(identity)
    detached = peers.same_program(world)
    path = detached.create_track(detached=True)
    detached.track(path, "StartCapture")
    detached.close()
    me.track(path).wait_until("Owner", "")
    with peers.sandboxed(world) as peer:
        assert refused(peer.track, own.path, "Subscribe", EMPTY).name == NOT_ALLOWED
        assert refused(peer.track, path, "Destroy").name == NOT_ALLOWED
        assert me.track(path).get("Owner") == ""
    with peers.same_program(world) as peer:
        peer.track(path, "Destroy")


@needs_sandbox
def test_behind_a_proxy(world, me, own):
    """A sandboxed application that reaches the bus through xdg-dbus-proxy, as Flatpak has it, is known by its id all the same."""
    identity = "app:org.example.Proxied"
    with peers.flatpak_behind_proxy(world, "org.example.Proxied") as peer:
        path = peer.create_track()
        assert me.track(path).get("OwnerIdentity") == identity
        refused_to(peer, own.path, STOPPING + STARTING + SUBSCRIBING + MANAGING + DESTROYING, identity)
        own.allow(identity)
        peer.track(own.path, "Subscribe", EMPTY)
        assert me.client.get("org.vitrine.ScreenShare1", own.get("Subscriptions")[0], SUBSCRIPTION, "SubscriberIdentity") == identity
        own.disallow(identity)
        peer.track(path, "StartCapture")
        peer.track(path, "StartBroadcast", options(wait=True))
        assert me.track(path).state == "active"


def test_every_member_has_a_row():
    """The tables above hold every method of a track and every property that can be written: none is left to whoever calls it."""
    walked = {name.split(" ")[0] for name, _ in STOPPING + STARTING + SUBSCRIBING + MANAGING + DESTROYING}
    written = {name for name, one in declared()[TRACK].properties.items() if one.access == "readwrite"}
    assert walked == set(declared()[TRACK].methods) | written


@pytest.mark.skipif(os.getuid() == 0, reason="nobody is closed to root")
def test_who_cannot_be_looked_at_counts_as_sandboxed(world, me, own):
    """A process that its own user cannot look into is nobody, and may do what a program in a sandbox may."""
    with peers.closed(world) as peer:
        refused_to(peer, own.path, STOPPING + STARTING + SUBSCRIBING + MANAGING + DESTROYING, "is not for unknown:")
        own.allow(own.get("OwnerIdentity"))
        refused_to(peer, own.path, SUBSCRIBING)
        path = peer.create_track()
        assert me.track(path).get("OwnerIdentity") == "unknown:" and me.track(path).get("OwnerPid") == peer.process_id


def test_a_track_whose_owner_is_gone(world, me):
    """While nobody owns a detached track, those that it allows may read, others may stop it and start it, nobody may manage it; its identity stays."""
    detached = peers.other_program(world)
    allowed = "app:org.example.Nobody"
    path = detached.create_track(detached=True, allow=[allowed])
    detached.track(path, "StartCapture")
    detached.close()
    track = me.track(path)
    track.wait_until("Owner", "")
    assert (track.get("OwnerIdentity"), track.get("OwnerPid"), track.get("Allowed")) == (peers.other_identity(world), 0, [allowed])
    with peers.same_program(world) as stranger:
        refused_to(stranger, path, MANAGING + SUBSCRIBING + DESTROYING, peers.other_identity(world))
        allowed_to(stranger, path, STARTING)
        track.wait_until("State", "active")
    # Whoever is the program again owns it again.
    with peers.other_program(world) as owner:
        allowed_to(owner, path, MANAGING + SUBSCRIBING)
        assert track.get("Owner") == owner.name
        allowed_to(owner, path, STOPPING)
    wait_until(lambda: path not in me.objects(), "the idle track to go with its owner")


# Limits


def test_limit_of_tracks(world, me):
    """A client that makes tracks without end is stopped by LimitExceeded, with what to do; others are not concerned."""
    made, error = [], None
    while error is None and len(made) < 1000:
        try:
            made.append(me.create_track())
        except Exception as caught:
            error = caught
    assert getattr(error, "name", "") == ERROR + "LimitExceeded" and str(len(made)) in error.message
    assert len(made) >= 16
    other = world.agent().create_track()
    made.pop().destroy()
    made.append(me.create_track())
    for track in (*made, other):
        if track is not other:
            track.destroy()


@needs_sandbox
def test_sandboxed_programs_keep_nobody_out(world, me):
    """However many connections programs in a sandbox make, and tracks and streams on each, there is room for the others."""
    with contextlib.ExitStack() as stack:
        owners, made, error = [], [], None
        while error is None and len(owners) < 10:
            owners.append(stack.enter_context(peers.sandboxed(world)))
            try:
                made += [(owners[-1], owners[-1].create_track()) for _ in range(8)]
            except BusError as caught:
                error = caught
        assert error.name == ERROR + "LimitExceeded" and "sandbox" in error.message and len(made) >= 16
        track = me.create_track()
        # One stream of each track, each of which is an encoding, then many that share those of one track.
        for words, paths in (("encodings", made), ("sandbox", [made[0]] * 300 + [made[8]] * 300)):
            error = None
            for owner, path in paths:
                try:
                    owner.track(path, "Subscribe", EMPTY)
                except BusError as caught:
                    error = caught
                    if words in error.message:
                        break
            assert error and error.name == ERROR + "LimitExceeded" and words in error.message, error
        track.subscribe().close()
        track.destroy()
    wait_until(lambda: set(me.objects()) == {DESKTOP_TRACK}, "their tracks to go with them")


def test_limit_of_subscriptions(world, me):
    """A client that subscribes without end is stopped by LimitExceeded; when one of its streams has ended there is room again."""
    made, error = [], None
    while error is None and len(made) < 1000:
        try:
            made.append(me.desktop.subscribe())
        except Exception as caught:
            error = caught
    assert getattr(error, "name", "") == ERROR + "LimitExceeded" and str(len(made)) in error.message, error
    assert len(made) >= 100, "a hundred readers are to be had"
    world.agent().desktop.subscribe().close()
    made.pop().unsubscribe()
    made.append(me.desktop.subscribe())
    me.desktop.unsubscribe_all()
    for one in made:
        one.close()


def test_limit_of_raw_readers(me, own):
    """A track has at most eight raw readers: the ninth gets LimitExceeded, and encoded ones are not concerned."""
    raw = [own.subscribe(format="y4m") for _ in range(8)]
    error = refused(own.subscribe, format="y4m")
    assert error.name == ERROR + "LimitExceeded" and "8" in error.message
    encoded = own.subscribe()
    raw.pop().unsubscribe()
    raw.append(own.subscribe(format="y4m"))
    other = me.create_track()
    raw.append(other.subscribe(format="y4m"))
    assert len(own.get("Subscriptions")) == 9
    assert refused(own.get, "Nothing").name == BUS_ERROR + "UnknownProperty"
    for one in (*raw, encoded):
        one.close()
    other.destroy()


def test_encodings_of_a_track(me, world):
    """Readers with ever other options get LimitExceeded before they cost a thread each without end; equal ones are not concerned."""
    track = me.create_track()
    made = [track.subscribe(bitrate=100_000 + number) for number in range(8)]
    error = refused(track.subscribe, bitrate=900_000)
    assert error.name == ERROR + "LimitExceeded" and "8" in error.message
    track.subscribe(bitrate=100_003)
    track.destroy()
    assert len(made) == 8


def test_long_input_is_not_sent_back(me):
    """What a client sent by the megabyte is refused in a short message, and the agent stays on the bus."""
    for act in (
        lambda: me.desktop.set("Layout", "s", "x" * 4_000_000),
        lambda: me.desktop.set("Preset", "s", "a" + "\u0301" * 2_000_000),
        lambda: me.create_track(allow=["exe:/" + "x" * 4_000_000]),
        lambda: me.create_track(title="a" + "\u0301" * 2_000_000),
    ):
        error = refused(act)
        assert error.name == "org.freedesktop.DBus.Error.InvalidArgs" and len(error.message) < 3_000
    assert me.desktop.state == "idle"
