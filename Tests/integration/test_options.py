# SPDX-License-Identifier: MIT
"""Options: what is taken, what is refused and how, and that a refused call changes nothing."""

import pytest
from gi.repository import GLib

from contract import BUS_ERROR, refused
from harness import DESKTOP_TRACK, ERROR, Session
from processes import wait_until

INVALID = BUS_ERROR + "InvalidArgs"
UNSUPPORTED = ERROR + "Unsupported"


def v(signature, value):
    return GLib.Variant(signature, value)


# Every option with its default, as the contract's table has them.
DEFAULTS = {
    "wait": v("b", False), "timeout": v("u", 60), "parent-window": v("s", ""), "preset": v("s", "h1080p"), "max-size": v("(uu)", (1920, 1080)),
    "fps": v("u", 30), "bitrate": v("u", 4_000_000), "sources": v("u", 3), "multiple": v("b", False), "cursor": v("s", "embedded"),
    "audio": v("s", "none"), "persist": v("s", "none"), "restore-key": v("s", ""), "title": v("s", ""), "allow": v("as", []),
    "detached": v("b", False), "crop": v("(iiuu)", (0, 0, 0, 0)), "masks": v("a(iiuu)", []), "excluded-windows": v("au", []),
}
START_KEYS = ("wait", "timeout", "parent-window")
SUBSCRIBE_DEFAULTS = {
    "format": v("s", "webm"), "codec": v("s", "vp8"), "bitrate": v("u", 4_000_000), "max-size": v("(uu)", (1920, 1080)), "fps": v("u", 30),
    "placeholder": v("s", "picture"),
}

WRONG_VALUES = [
    ("preset", v("s", "h4320p")), ("preset", v("s", "")), ("sources", v("u", 0)), ("sources", v("u", 8)), ("cursor", v("s", "sprite")),
    ("audio", v("s", "loud")), ("persist", v("s", "always")), ("restore-key", v("s", "mine")), ("title", v("s", "x" * 65)), ("title", v("s", "a\nb")),
    ("allow", v("as", ["nobody"])), ("allow", v("as", ["exe:/usr/bin/cat", ""])), ("allow", v("as", [":"])), ("allow", v("as", ["app:"])),
    ("allow", v("as", ["org.example.Name"])), ("parent-window", v("s", "cocoa:1")), ("max-size", v("(uu)", (1 << 20, 1))),
    ("fps", v("u", 1 << 31)), ("bitrate", v("u", 1)), ("crop", v("(iiuu)", (-1, 0, 10, 10))), ("crop", v("(iiuu)", (0, -1, 10, 10))),
    ("frobnicate", v("b", False)), ("Preset", v("s", "h720p")), ("", v("s", "")),
]
UNBUILT = [
    # No device to hear in the world of these tests.
    ("audio", v("s", "system")), ("audio", v("s", "microphone")), ("audio", v("s", "both")),
    ("persist", v("s", "forever")), ("excluded-windows", v("au", [7])),
]
WRONG_SUBSCRIBE_VALUES = [
    ("format", v("s", "gif")), ("codec", v("s", "av1")), ("placeholder", v("s", "cat")), ("bitrate", v("u", 1)), ("fps", v("u", 1 << 31)),
    ("max-size", v("(uu)", (1 << 20, 1))), ("preset", v("s", "h720p")), ("wait", v("b", True)), ("frobnicate", v("b", False)),
]


def name_of(case):
    return f"{case[0]}={case[1].print_(False)}"[:40]


@pytest.fixture(scope="module")
def session():
    """The agent alone: nothing here gets as far as the portal."""
    with Session(portal="absent", screen=False, pipewire=False) as session:
        yield session


@pytest.fixture(scope="module")
def agent(session):
    return session.agent()


@pytest.fixture
def track(agent):
    """A track that listens."""
    track = agent.create_track()
    track.start_capture()
    yield track
    track.destroy()


def everything(agent):
    """All objects with all that they show, but counters."""
    state = agent.objects()
    for interfaces in state.values():
        for properties in interfaces.values():
            properties.pop("Statistics", None)
    return state


def refuse_everywhere(agent, track, key, value, name):
    """The option is refused by each call that takes it; the message names it, and nothing has changed."""
    before = everything(agent)
    mark = agent.mark()
    calls = [lambda **given: agent.create_track(**given), lambda **given: agent.set_screen_share(True, **given)]
    if key in START_KEYS or key not in DEFAULTS:
        calls.append(lambda **given: track.start_broadcast(**given))
    for call in calls:
        error = refused(call, **{key: value})
        assert error.name == name, error
        assert key in error.message and len(error.message) > len(key) + 10, error.message
    assert everything(agent) == before
    assert [event for event in agent.events[mark:] if event.kind in ("signal", "changed")] == []


# A track's options


@pytest.mark.parametrize("key", DEFAULTS)
def test_wrong_type(agent, track, key):
    """An option of another type is InvalidArgs, which names the option and the type that it must have."""
    other = v("s", "x") if DEFAULTS[key].get_type_string() != "s" else v("i", 1)
    refuse_everywhere(agent, track, key, other, INVALID)
    assert DEFAULTS[key].get_type_string() in refused(agent.create_track, **{key: other}).message


@pytest.mark.parametrize("case", WRONG_VALUES, ids=name_of)
def test_wrong_value(agent, track, case):
    """An unknown key, or a value that the option cannot have, is InvalidArgs naming the key."""
    refuse_everywhere(agent, track, *case, INVALID)


@pytest.mark.parametrize("case", UNBUILT, ids=name_of)
def test_not_possible_here(agent, track, case):
    """What is known but cannot be done here is Unsupported naming it: no option is accepted without effect."""
    refuse_everywhere(agent, track, *case, UNSUPPORTED)


def test_one_wrong_option_spoils_the_call(agent, track):
    """Right options beside a wrong one are not applied."""
    before = everything(agent)
    wrong = {"preset": v("s", "h360p"), "title": v("s", "spoilt"), "zzz": v("b", True)}
    assert refused(agent.create_track, **wrong).name == INVALID
    assert refused(agent.set_screen_share, True, **wrong).name == INVALID
    assert refused(agent.set_screen_share, False, **wrong).name == INVALID
    assert everything(agent) == before


def test_defaults_are_accepted(agent):
    """A value that equals the default is accepted, also of what this version cannot do."""
    for given in [*({key: value} for key, value in DEFAULTS.items()), DEFAULTS]:
        track = agent.create_track(**given)
        assert track.get("Preset") == "h1080p" and track.get("Title") == "" and track.get("Allowed") == []
        track.destroy()


def test_start_takes_its_own_options_alone(agent, track):
    """StartBroadcast takes wait, timeout and parent-window; a track's option there is InvalidArgs, also at its default."""
    for key, value in DEFAULTS.items():
        if key not in START_KEYS:
            error = refused(track.start_broadcast, **{key: value})
            assert error.name == INVALID and key in error.message
    assert track.state == "listening"


def test_options_have_effect(agent):
    """What CreateTrack was given is what the track shows."""
    identities = ["app:org.example.App", "unit:example.service", "exe:/usr/bin/example", agent.unique_name]
    track = agent.create_track(preset="h480p", title="a" * 64, allow=identities, detached=True)
    assert track.get("Preset") == "h480p"
    assert track.get("Title") == "a" * 64
    assert track.get("Allowed") == identities
    assert track.get("Owner") == agent.unique_name
    assert track.get("OwnerPid") == agent.client.process_id(agent.unique_name)
    assert track.get("OwnerIdentity").startswith(("exe:/", "unit:"))
    track.destroy()


def test_title_counts_characters(agent):
    """64 characters are 64 characters, however many bytes they have."""
    track = agent.create_track(title="é" * 63 + "🖥")
    assert track.get("Title").endswith("🖥")
    track.destroy()


def test_an_identity_is_listed_once(agent):
    """An identity that is given twice is one."""
    track = agent.create_track(allow=["app:a.b.c", "app:a.b.c"])
    track.allow("app:a.b.c")
    assert track.get("Allowed") == ["app:a.b.c"]
    track.disallow("app:a.b.c")
    track.disallow("app:never.there")
    assert track.get("Allowed") == []
    for call in (track.allow, track.disallow):
        assert refused(call, "nobody").name == INVALID
    track.destroy()


# Writable properties


def test_preset_is_written(agent, track):
    """A preset that exists is taken and announced; one that does not is InvalidArgs naming those that do, and changes nothing."""
    mark = agent.mark()
    track.set("Preset", "s", "h360p")
    track.wait_for_change("Preset", "h360p", mark)
    error = refused(track.set, "Preset", "s", "h4320p")
    assert error.name == INVALID and "h4320p" in error.message and "h720p" in error.message
    assert track.get("Preset") == "h360p"


def test_crop_and_masks_are_written(agent, track):
    """Crop and Masks are set and announced in any state; what is wrong is refused by name and changes nothing. So with CreateTrack."""
    masks = [(-5, -7, 20, 30), (1, 1, 1, 1), (1, 1, 1, 1), (2_147_483_647, -2_147_483_648, 4_294_967_295, 0)]
    for name, signature, value in [("Crop", "(iiuu)", (1, 2, 3, 4)), ("Masks", "a(iiuu)", masks)]:
        mark = agent.mark()
        track.set(name, signature, value)
        track.wait_for_change(name, value, mark)
        assert track.get(name) == value
    for value in [(-1, 0, 1, 1), (0, -1, 1, 1)]:
        error = refused(track.set, "Crop", "(iiuu)", value)
        assert error.name == INVALID and "crop" in error.message
    error = refused(track.set, "Masks", "a(iiuu)", masks[:1] * 257)
    assert error.name == ERROR + "LimitExceeded" and "masks" in error.message and "256" in error.message
    assert (track.get("Crop"), track.get("Masks")) == ((1, 2, 3, 4), masks)
    other = agent.create_track(crop=(5, 6, 7, 8), masks=masks)
    assert (other.get("Crop"), other.get("Masks")) == ((5, 6, 7, 8), masks)
    assert refused(agent.create_track, masks=masks * 65).name == ERROR + "LimitExceeded"
    other.destroy()


def test_layout_is_written(agent, track):
    """Layout takes and announces both of its values, in any state; nonsense is InvalidArgs, and nothing changes."""
    for name in ("row", "grid", "row"):
        mark = agent.mark()
        track.set("Layout", "s", name)
        track.wait_for_change("Layout", name, mark)
    assert refused(track.set, "Layout", "s", "spiral").name == INVALID
    assert track.get("Layout") == "row"


def test_muted_is_written(agent, track):
    """Muted is set and announced in any state, and needs no broadcast."""
    for muted in (True, False):
        mark = agent.mark()
        track.mute(muted)
        track.wait_for_change("Muted", muted, mark)
        assert track.get("Muted") is muted


def test_switch_source(agent, track):
    """SwitchSource without a broadcast is NotActive: there is no source to switch."""
    error = refused(track.call, "SwitchSource", v("(a{sv})", ({},)))
    assert error.name == ERROR + "NotActive" and "StartBroadcast" in error.message


# Subscribe


@pytest.mark.parametrize("case", WRONG_SUBSCRIBE_VALUES, ids=name_of)
def test_wrong_subscribe_option(agent, track, case):
    """Subscribe refuses what it does not know, with InvalidArgs naming the key, and makes no subscription."""
    error = refused(track.subscribe, **dict([case]))
    assert error.name == INVALID and case[0] in error.message, error
    assert track.get("Subscriptions") == []


@pytest.mark.parametrize("key", SUBSCRIBE_DEFAULTS)
def test_wrong_subscribe_type(agent, track, key):
    """An option of Subscribe that has another type is InvalidArgs naming it."""
    other = v("s", "x") if SUBSCRIBE_DEFAULTS[key].get_type_string() != "s" else v("u", 1)
    error = refused(track.subscribe, **{key: other})
    assert error.name == INVALID and key in error.message and SUBSCRIBE_DEFAULTS[key].get_type_string() in error.message
    assert track.get("Subscriptions") == []


def test_a_raw_format_has_no_codec(agent, track):
    """A codec beside a format that has none is InvalidArgs naming the codec; the default codec is accepted, and not shown."""
    error = refused(track.subscribe, format="y4m", codec="vp9")
    assert error.name == INVALID and '"codec"' in error.message and "y4m" in error.message
    assert track.get("Subscriptions") == []
    subscription = track.subscribe(format="y4m", codec="vp8")
    assert (subscription.get("Format"), subscription.get("Codec")) == ("y4m", "")
    subscription.close()
    wait_until(lambda: track.get("Subscriptions") == [], "the subscription goes with its reading end")


def test_subscribe_defaults(agent, track):
    """Subscribe with each default said, and with none, makes the same kind of subscription."""
    for given in [{}, SUBSCRIBE_DEFAULTS, *({key: value} for key, value in SUBSCRIBE_DEFAULTS.items())]:
        subscription = track.subscribe(**given)
        found = subscription.get_all()
        assert (found["Format"], found["Codec"], found["Size"], found["Epoch"], found["Paused"]) == ("webm", "vp8", (0, 0), 0, False)
        assert found["Subscriber"] == agent.unique_name
        assert found["SubscriberIdentity"] == track.get("OwnerIdentity")
        subscription.close()
    wait_until(lambda: track.get("Subscriptions") == [], "subscriptions go with their reading ends")


def test_key_frame_without_a_broadcast(agent, track):
    """RequestKeyFrame while nothing is broadcast is NotActive."""
    subscription = track.subscribe()
    assert refused(subscription.call, "RequestKeyFrame").name == ERROR + "NotActive"
    subscription.close()


def test_unsubscribe_all_takes_unique_names(agent, track):
    """UnsubscribeAll takes a unique name or nothing; another string is InvalidArgs."""
    assert refused(track.unsubscribe_all, "org.example.Name").name == INVALID
    track.unsubscribe_all()
    track.unsubscribe_all(":1.99999")
    assert DESKTOP_TRACK in agent.objects()
