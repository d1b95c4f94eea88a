# SPDX-License-Identifier: MIT
"""The contract in `dbus/` is what the agent serves: each member is answered, and nothing else is."""

import pytest
from gi.repository import Gio, GLib

from bus import BusError
from contract import (
    BUS_ERROR, INTROSPECTABLE, OBJECT_MANAGER, PEER, PROPERTIES, declared, introspect, parse, raw_call, raw_get, refused)
from harness import AGENT, DESKTOP_TRACK, ERROR, ROOT, SERVICE, SUBSCRIPTION, TOP, TRACK, Session

CONTRACT = declared()
STANDARD = {PROPERTIES, INTROSPECTABLE, PEER}

# One value of each type that is written somewhere below.
SAMPLES = {
    "": GLib.Variant("()", ()), "s": GLib.Variant("(s)", ("",)), "a{sv}": GLib.Variant("(a{sv})", ({},)),
    "ba{sv}": GLib.Variant("(ba{sv})", (False, {})), "o": GLib.Variant("(o)", ("/",)), "u": GLib.Variant("(u)", (1,)),
}
VALUES = {
    "b": GLib.Variant("b", True), "s": GLib.Variant("s", "h720p"), "u": GLib.Variant("u", 1), "t": GLib.Variant("t", 1),
    "(uu)": GLib.Variant("(uu)", (1, 1)), "(iiuu)": GLib.Variant("(iiuu)", (0, 0, 0, 0)), "a(iiuu)": GLib.Variant("a(iiuu)", []),
    "as": GLib.Variant("as", []), "ao": GLib.Variant("ao", []), "aa{sv}": GLib.Variant("aa{sv}", []),
    "a{sv}": GLib.Variant("a{sv}", {}), "a{st}": GLib.Variant("a{st}", {}), "a{sb}": GLib.Variant("a{sb}", {}),
    "a{s(uuuu)}": GLib.Variant("a{s(uuuu)}", {}),
}


@pytest.fixture(scope="module")
def session():
    """The agent alone: nothing here needs a portal."""
    with Session(portal="absent", screen=False, pipewire=False) as session:
        yield session


@pytest.fixture(scope="module")
def agent(session):
    return session.agent()


@pytest.fixture(scope="module")
def objects(agent):
    """One path for each interface of the contract."""
    track = agent.create_track()
    subscription = track.subscribe()
    yield {AGENT: ROOT, TRACK: track.path, SUBSCRIPTION: subscription.path}
    track.destroy()
    subscription.close()


def members(kind):
    return [(interface, name) for interface, one in CONTRACT.items() for name in getattr(one, kind)]


def set_property(client, path, interface, name, value):
    return client.call(SERVICE, path, PROPERTIES, "Set", GLib.Variant("(ssv)", (interface, name, value)))


# What is declared


def test_introspection_is_the_files(agent, objects):
    """Each object's introspection at run time declares exactly what the file of its interface declares, and the standard interfaces."""
    for interface, path in [*objects.items(), (TRACK, DESKTOP_TRACK)]:
        found, _ = introspect(agent.client, path)
        assert found[interface] == CONTRACT[interface]
        wanted = STANDARD | {interface} | ({OBJECT_MANAGER} if path == ROOT else set())
        assert set(found) == wanted, path


def test_introspection_carries_the_documentation(agent, objects):
    """The words of the files are served with the declarations, so that whoever introspects can read what a member does."""
    for interface, path in objects.items():
        served = agent.client.call(SERVICE, path, INTROSPECTABLE, "Introspect")[0]
        file = (TOP / "dbus" / f"{interface}.xml").read_text()
        for comment in (part.split("-->")[0] for part in file.split("<!--")[2:]):
            assert " ".join(comment.split()) in " ".join(served.split()), comment


def test_introspection_leads_to_every_object(agent, objects):
    """Walking the nodes down from the root finds exactly the objects that the object manager lists, and the agent."""
    found = set()

    def walk(path):
        interfaces, children = introspect(agent.client, path)
        if any(name.startswith(SERVICE) for name in interfaces):
            found.add(path)
        for child in children:
            walk(path.rstrip("/") + "/" + child)

    walk("/")
    assert found == {ROOT, DESKTOP_TRACK, objects[TRACK], objects[SUBSCRIPTION]}
    assert found - {ROOT} == set(agent.objects())


@pytest.mark.parametrize("interface, name", members("properties"))
def test_property_is_answered(agent, objects, interface, name):
    """Each declared property is answered by Get, with a value of the declared type."""
    assert raw_get(agent.client, objects[interface], interface, name).get_type_string() == CONTRACT[interface].properties[name].type


def test_all_properties_at_once(agent, objects):
    """GetAll has exactly the declared properties, with the declared types; an empty interface name means all interfaces."""
    for interface, path in objects.items():
        wanted = {name: one.type for name, one in CONTRACT[interface].properties.items()}
        for asked in (interface, ""):
            reply = raw_call(agent.client, path, PROPERTIES, "GetAll", GLib.Variant("(s)", (asked,))).get_child_value(0)
            entries = [reply.get_child_value(index) for index in range(reply.n_children())]
            types = {one.get_child_value(0).get_string(): one.get_child_value(1).get_variant().get_type_string() for one in entries}
            assert types == wanted
    assert raw_get(agent.client, ROOT, "", "InterfaceVersion").unpack() == 1


@pytest.mark.parametrize("interface, name", members("methods"))
def test_method_is_answered(agent, interface, name):
    """Each declared method is answered: with values of the declared types, or with an error of the contract."""
    track = agent.create_track()
    subscription = track.subscribe()
    path = {AGENT: ROOT, TRACK: track.path, SUBSCRIPTION: subscription.path}[interface]
    takes, gives = CONTRACT[interface].methods[name]
    try:
        reply = raw_call(agent.client, path, interface, name, SAMPLES[takes])
        assert reply.get_type_string() == f"({gives})"
        if interface == AGENT and name == "CreateTrack":
            agent.track(reply.unpack()[0]).destroy()
    except BusError as error:
        # What needs a broadcast, or a right argument.
        assert error.name in (ERROR + "NotListening", ERROR + "NotActive", ERROR + "Unsupported", BUS_ERROR + "InvalidArgs"), error
        assert error.message
    subscription.close()
    if name != "Destroy":
        track.destroy()


@pytest.mark.parametrize("interface, name", members("methods"))
def test_wrong_arguments(agent, objects, interface, name):
    """A call with arguments of other types is InvalidArgs; the message names the types that are expected and those that came."""
    takes, _ = CONTRACT[interface].methods[name]
    for given, arguments in SAMPLES.items():
        if given == takes:
            continue
        error = refused(raw_call, agent.client, objects[interface], interface, name, arguments)
        assert error.name == BUS_ERROR + "InvalidArgs", (given, error)
        assert takes in error.message and given in error.message, error.message


# What is not


def test_undeclared_members(agent, objects):
    """What no file declares gets the bus's own errors: method, interface, property, object."""
    client = agent.client
    for interface, path in [*objects.items(), (TRACK, DESKTOP_TRACK)]:
        for asked in (interface, PROPERTIES, INTROSPECTABLE, PEER):
            assert refused(raw_call, client, path, asked, "Frobnicate").name == BUS_ERROR + "UnknownMethod"
        # Any method of one object's interface is unknown on another's.
        for other in CONTRACT:
            if other != interface:
                member = next(iter(CONTRACT[other].methods))
                assert refused(raw_call, client, path, other, member).name == BUS_ERROR + "UnknownInterface"
                assert refused(raw_get, client, path, other, next(iter(CONTRACT[other].properties))).name == BUS_ERROR + "UnknownInterface"
        assert refused(raw_call, client, path, "org.vitrine.Nothing", "Frobnicate").name == BUS_ERROR + "UnknownInterface"
        assert refused(raw_call, client, path, PROPERTIES, "GetAll", GLib.Variant("(s)", ("org.vitrine.Nothing",))).name == \
            BUS_ERROR + "UnknownInterface"
        for asked in (interface, ""):
            assert refused(raw_get, client, path, asked, "Frobnicate").name == BUS_ERROR + "UnknownProperty"
        assert refused(set_property, client, path, interface, "Frobnicate", VALUES["s"]).name == BUS_ERROR + "UnknownProperty"
    for path in (DESKTOP_TRACK, objects[TRACK]):
        assert refused(raw_call, client, path, OBJECT_MANAGER, "GetManagedObjects").name == BUS_ERROR + "UnknownInterface"


@pytest.mark.parametrize("path", [
    ROOT + "/track/4294967295", ROOT + "/track/0", ROOT + "/track/Desktop", ROOT + "/nothing", DESKTOP_TRACK + "/subscription/1",
    "/org/vitrine/ScreenShare2", "/nothing"])
def test_no_such_object(agent, path):
    """A path that has no object is UnknownObject, whatever is called there."""
    for interface, member, arguments in [
        (TRACK, "StartCapture", None), (AGENT, "CreateTrack", SAMPLES["a{sv}"]), (PROPERTIES, "Get", GLib.Variant("(ss)", (TRACK, "State"))),
        (PROPERTIES, "GetAll", GLib.Variant("(s)", ("",))), ("org.vitrine.Nothing", "Frobnicate", None),
    ]:
        error = refused(raw_call, agent.client, path, interface, member, arguments)
        assert error.name == BUS_ERROR + "UnknownObject" and path in error.message, error


@pytest.mark.parametrize("interface, name", members("properties"))
def test_writing_a_property(agent, objects, interface, name):
    """A property that is not declared writable is PropertyReadOnly; one that is takes its own type alone, else InvalidArgs that names it."""
    one = CONTRACT[interface].properties[name]
    before = raw_get(agent.client, objects[interface], interface, name)
    for kind, value in VALUES.items():
        if one.access == "read":
            error = refused(set_property, agent.client, objects[interface], interface, name, value)
            assert error.name == BUS_ERROR + "PropertyReadOnly" and name in error.message, error
        elif kind != one.type:
            error = refused(set_property, agent.client, objects[interface], interface, name, value)
            assert error.name == BUS_ERROR + "InvalidArgs", error
            assert name in error.message and one.type in error.message, error
    if name != "Statistics":
        assert raw_get(agent.client, objects[interface], interface, name).equal(before)


def test_calls_without_reply(agent):
    """A call that wants no reply is carried out all the same, also a wrong one disturbs nothing."""
    mark = agent.mark()
    for member in ("Frobnicate", "StartCapture", "StopCapture"):
        message = Gio.DBusMessage.new_method_call(SERVICE, DESKTOP_TRACK, TRACK, member)
        message.set_flags(Gio.DBusMessageFlags.NO_REPLY_EXPECTED)
        agent.client.connection.send_message(message, Gio.DBusSendMessageFlags.NONE)
    agent.wait_for("changed", "State", "listening", DESKTOP_TRACK, mark)
    agent.wait_for("changed", "State", "idle", DESKTOP_TRACK, mark)


# Objects


def test_peer(agent, objects):
    """Every object answers Ping and tells the machine's id, as any well-behaved object of the bus."""
    for path in objects.values():
        assert raw_call(agent.client, path, PEER, "Ping").get_type_string() == "()"
        machine = agent.client.call(SERVICE, path, PEER, "GetMachineId")[0]
        assert len(machine) == 32 and set(machine) <= set("0123456789abcdef")


def test_object_manager(agent):
    """The agent's object manager announces tracks and subscriptions with all their properties, and tells when they go."""
    mark = agent.mark()
    track = agent.create_track(title="announced", preset="h480p")
    added = agent.wait_for("signal", "InterfacesAdded", lambda value: value[0] == track.path, ROOT, mark)
    assert set(added.value[1]) >= {TRACK}
    assert set(added.value[1][TRACK]) == set(CONTRACT[TRACK].properties)
    assert added.value[1][TRACK]["Title"] == "announced" and added.value[1][TRACK]["Preset"] == "h480p"
    assert agent.objects()[track.path][TRACK].keys() == CONTRACT[TRACK].properties.keys()

    mark = agent.mark()
    subscription = track.subscribe()
    added = agent.wait_for("signal", "InterfacesAdded", lambda value: value[0] == subscription.path, ROOT, mark)
    assert set(added.value[1][SUBSCRIPTION]) == set(CONTRACT[SUBSCRIPTION].properties)
    assert added.value[1][SUBSCRIPTION]["Subscriber"] == agent.unique_name
    agent.wait_for("changed", "Subscriptions", [subscription.path], track.path, mark)

    mark = agent.mark()
    track.destroy()
    for path, interface in ((subscription.path, SUBSCRIPTION), (track.path, TRACK)):
        gone = agent.wait_for("signal", "InterfacesRemoved", lambda value: value[0] == path, ROOT, mark)
        assert interface in gone.value[1]
    assert set(agent.objects()) & {track.path, subscription.path} == set()
    subscription.close()


def test_desktop_track(agent):
    """The desktop track is always there, owned by nobody, and cannot be destroyed."""
    desktop = agent.desktop
    assert (desktop.get("Owner"), desktop.get("OwnerIdentity"), desktop.get("OwnerPid")) == ("", "", 0)
    assert desktop.state == "idle" and not desktop.get("IsCapturing") and not desktop.get("IsBroadcastActive")
    error = refused(desktop.destroy)
    assert error.name == ERROR + "NotAllowed" and "StopCapture" in error.message
    assert DESKTOP_TRACK in agent.objects()


def test_numbers_never_come_again(agent):
    """The number of a track that is gone is given to no other one, and what is called on its path is UnknownObject."""
    first = agent.create_track()
    gone = first.path
    subscription = first.subscribe()
    first.destroy()
    assert refused(first.start_capture).name == BUS_ERROR + "UnknownObject"
    assert refused(first.get, "State").name == BUS_ERROR + "UnknownObject"
    assert refused(first.destroy).name == BUS_ERROR + "UnknownObject"
    assert refused(subscription.get, "Paused").name == BUS_ERROR + "UnknownObject"
    subscription.close()
    second = agent.create_track()
    assert int(second.path.rpartition("/")[2]) > int(gone.rpartition("/")[2])
    second.destroy()


def test_agent_properties(agent):
    """Version, presets and capabilities say what this build is; nothing is claimed that a portal has not told yet."""
    found = agent.get_all()
    assert found["InterfaceVersion"] == 1 and found["Version"]
    assert not found["IsBroadcastActive"]
    assert (found["PortalVersion"], found["AvailableSourceTypes"], found["AvailableCursorModes"]) == (0, 0, 0)
    assert found["Presets"] == {
        "h360p": (640, 360, 15, 500_000), "h480p": (854, 480, 20, 900_000), "h720p": (1280, 720, 30, 2_000_000),
        "h1080p": (1920, 1080, 30, 4_000_000), "h1440p": (2560, 1440, 30, 7_000_000), "h2160p": (3840, 2160, 30, 14_000_000),
        "native": (0, 0, 60, 0)}
    known = {"vp9", "ivf", "frames", "crop", "masks", "persist", "multiple", "system-audio", "microphone", "cursor-metadata",
             "window-exclusion"}
    assert set(found["Capabilities"]) <= known
    assert {name for name, works in found["Capabilities"].items() if works} == {"vp9", "ivf", "frames", "crop", "masks", "multiple"}
    # What the desktop track starts with can be said again, word for word.
    track = agent.create_track(**{name: GLib.Variant(*_typed(agent, name)) for name in found["DefaultOptions"]})
    assert track.get("Preset") == found["DefaultOptions"]["preset"] == agent.desktop.get("Preset")
    track.destroy()


def _typed(agent, name):
    value = raw_get(agent.client, ROOT, AGENT, "DefaultOptions").lookup_value(name, None)
    return value.get_type_string(), value.unpack()


def test_statistics_change_without_a_signal(agent):
    """What is declared to change without a signal is in no PropertiesChanged; what never changes neither."""
    silent = {name for one in CONTRACT.values() for name, value in one.properties.items() if value.emits != "true"}
    assert "Statistics" in silent
    agent.desktop.start_capture()
    agent.desktop.stop_capture()
    assert not [event for event in agent.events if event.kind == "changed" and event.name in silent]


# The usual tools


def test_busctl(session, agent, objects):
    """busctl shows the tree, the members and the values as they are declared."""
    tree = session.run(["busctl", "--user", "--list", "tree", SERVICE]).stdout.split()
    assert set(objects.values()) | {DESKTOP_TRACK} <= set(tree)
    for interface, path in objects.items():
        table = session.run(["busctl", "--user", "introspect", SERVICE, path, interface]).stdout
        for name, (takes, gives) in CONTRACT[interface].methods.items():
            assert [f".{name}", "method", takes or "-", gives or "-"] in [line.split()[:4] for line in table.splitlines()]
        for name, one in CONTRACT[interface].properties.items():
            row = next(line for line in table.splitlines() if line.split()[:3] == [f".{name}", "property", one.type])
            assert ("writable" in row) == (one.access == "readwrite")
            assert ("emits-change" in row) == (one.emits == "true") and ("const" in row.split()) == (one.emits == "const"), row
    shown = session.run(["busctl", "--user", "get-property", SERVICE, DESKTOP_TRACK, TRACK, "State", "IsCapturing", "Size", "StartedAt"])
    assert shown.stdout.splitlines() == ['s "idle"', "b false", "(uu) 0 0", "t 0"]


def test_gdbus(session, objects):
    """gdbus, which parses introspection strictly, shows every object with its values."""
    for interface, path in objects.items():
        shown = session.run(["gdbus", "introspect", "--session", "--dest", SERVICE, "--object-path", path])
        assert f"interface {interface} {{" in shown.stdout and not shown.stderr
    recursive = session.run(["gdbus", "introspect", "--session", "--recurse", "--dest", SERVICE, "--object-path", "/"])
    assert recursive.stdout.count(f"interface {TRACK} {{") == 2


def test_gdbus_sees_valid_xml(agent, objects):
    """The introspection of every object is XML that a strict parser takes, and names the node it is of."""
    for path in [*objects.values(), "/", "/org", ROOT + "/track"]:
        text = agent.client.call(SERVICE, path, INTROSPECTABLE, "Introspect")[0]
        parse(text)
        assert text.startswith("<!DOCTYPE node")


