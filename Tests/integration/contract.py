# SPDX-License-Identifier: MIT
"""The contract as the XML files in `dbus/` declare it, for tests that hold it against what the agent does."""

import dataclasses
import xml.etree.ElementTree as ElementTree

from gi.repository import Gio, GLib

from bus import BusError
from harness import SERVICE, TOP

PROPERTIES = "org.freedesktop.DBus.Properties"
INTROSPECTABLE = "org.freedesktop.DBus.Introspectable"
PEER = "org.freedesktop.DBus.Peer"
OBJECT_MANAGER = "org.freedesktop.DBus.ObjectManager"
BUS_ERROR = "org.freedesktop.DBus.Error."
EMITS = "org.freedesktop.DBus.Property.EmitsChangedSignal"


@dataclasses.dataclass(frozen=True)
class Property:
    type: str
    access: str
    emits: str


@dataclasses.dataclass(frozen=True)
class Interface:
    """Members by name. A method is (types in, types out), a signal is its types."""

    methods: dict
    properties: dict
    signals: dict


def parse(text):
    """The interfaces of one introspection XML, by name, and the names of the nodes below."""
    root = ElementTree.fromstring(text)
    return {one.get("name"): _interface(one) for one in root.findall("interface")}, {one.get("name") for one in root.findall("node")}


def _interface(element):
    assert not [one.tag for one in element if one.tag not in ("method", "property", "signal", "annotation")]
    methods = {
        one.get("name"): (_types(one, "in", "in"), _types(one, "out", "in")) for one in element.findall("method")
    }
    properties = {
        one.get("name"): Property(one.get("type"), one.get("access"), _annotations(one).get(EMITS, "true"))
        for one in element.findall("property")
    }
    signals = {one.get("name"): _types(one, "out", "out") for one in element.findall("signal")}
    return Interface(methods, properties, signals)


def _types(member, direction, default):
    return "".join(one.get("type") for one in member.findall("arg") if one.get("direction", default) == direction)


def _annotations(element):
    return {one.get("name"): one.get("value") for one in element.findall("annotation")}


def declared():
    """Every interface of the files, by name."""
    interfaces = {}
    for path in sorted((TOP / "dbus").glob("*.xml")):
        found, _ = parse(path.read_text())
        assert list(found) == [path.stem], f"{path} declares {list(found)}"
        interfaces.update(found)
    return interfaces


def raw_call(client, path, interface, member, arguments=None, destination=SERVICE, seconds=30.0):
    """The reply as the GLib.Variant that came, types and all."""
    try:
        return client.connection.call_sync(
            destination, path, interface, member, arguments, None, Gio.DBusCallFlags.NONE, int(seconds * 1000), None)
    except GLib.Error as error:
        name = Gio.DBusError.get_remote_error(error) or f"local:{error.domain}:{error.code}"
        raise BusError(name, error.message.removeprefix(f"GDBus.Error:{name}: ")) from None


def raw_get(client, path, interface, name):
    """A property's value as a GLib.Variant."""
    return raw_call(client, path, PROPERTIES, "Get", GLib.Variant("(ss)", (interface, name))).get_child_value(0).get_variant()


def introspect(client, path):
    return parse(client.call(SERVICE, path, INTROSPECTABLE, "Introspect")[0])


def refused(call, *arguments, **named):
    """The error of a call that must have one."""
    try:
        result = call(*arguments, **named)
    except BusError as error:
        return error
    raise AssertionError(f"no error, but {result!r}")
