# SPDX-License-Identifier: MIT
"""Services of a desktop that do not run on a machine without one: logind and a notification server, as far as the agent speaks to them."""

import json
import threading
from pathlib import Path

from gi.repository import Gio, GLib

from bus import Client
from processes import wait_until

NOTIFICATIONS = """<node><interface name="org.freedesktop.Notifications">
<method name="Notify"><arg type="s" direction="in"/><arg type="u" direction="in"/><arg type="s" direction="in"/><arg type="s" direction="in"/>
<arg type="s" direction="in"/><arg type="as" direction="in"/><arg type="a{sv}" direction="in"/><arg type="i" direction="in"/>
<arg type="u" direction="out"/></method>
<method name="CloseNotification"><arg type="u" direction="in"/></method>
<signal name="ActionInvoked"><arg type="u"/><arg type="s"/></signal>
<signal name="NotificationClosed"><arg type="u"/><arg type="u"/></signal></interface></node>"""

WATCHER = """<node><interface name="org.kde.StatusNotifierWatcher">
<method name="RegisterStatusNotifierItem"><arg type="s" direction="in"/></method>
<property name="IsStatusNotifierHostRegistered" type="b" access="read"/>
<signal name="StatusNotifierHostRegistered"/><signal name="StatusNotifierHostUnregistered"/></interface></node>"""

LOGIND = """<node><interface name="org.freedesktop.login1.Manager">
<method name="GetSession"><arg type="s" direction="in"/><arg type="o" direction="out"/></method>
<property name="PreparingForSleep" type="b" access="read"/>
<signal name="SessionNew"><arg type="s"/><arg type="o"/></signal>
<signal name="PrepareForSleep"><arg type="b"/></signal></interface></node>"""

LOGIND_SESSION = """<node><interface name="org.freedesktop.login1.Session">
<property name="LockedHint" type="b" access="read"/></interface></node>"""

MENU = Path(__file__).with_name("menu.py")


class Service:
    """A name on a bus with objects behind it."""

    def __init__(self, address, name):
        self.client = Client(address)
        self.name = name

    def export(self, path, xml):
        interface = Gio.DBusNodeInfo.new_for_xml(xml).interfaces[0]
        connection = self.client.connection
        self.client._glib.run(lambda: connection.register_object(path, interface, self._called, self._read, None))

    def own(self):
        self.client.call("org.freedesktop.DBus", "/org/freedesktop/DBus", "org.freedesktop.DBus", "RequestName",
                         GLib.Variant("(su)", (self.name, 0)))

    def close(self):
        self.client.close()

    def emit(self, path, interface, member, value):
        self.client._glib.run(lambda: self.client.connection.emit_signal(None, path, interface, member, value))

    def _called(self, _connection, _sender, _path, _interface, member, arguments, invocation):
        try:
            invocation.return_value(getattr(self, member)(*arguments.unpack()))
        except LookupError as error:
            invocation.return_dbus_error("org.freedesktop.DBus.Error.Failed", str(error))

    def _read(self, _connection, _sender, _path, _interface, name):
        return getattr(self, name)()


class Notifications(Service):
    """Keeps what is shown: number -> (summary, body, hints)."""

    PATH = "/org/freedesktop/Notifications"

    def __init__(self, session):
        super().__init__(session.bus_address, "org.freedesktop.Notifications")
        self.shown, self.closed = {}, {}
        self._lock = threading.Lock()
        self.export(self.PATH, NOTIFICATIONS)
        self.own()

    def Notify(self, application, replaces, icon, summary, body, actions, hints, timeout):
        with self._lock:
            number = replaces or len(self.shown) + len(self.closed) + 1
            self.shown[number] = (summary, body, hints)
        return GLib.Variant("(u)", (number,))

    def CloseNotification(self, number):
        with self._lock:
            self.closed[number] = self.shown.pop(number)

    def press(self, number, key):
        self.emit(self.PATH, self.name, "ActionInvoked", GLib.Variant("(us)", (number, key)))

    def dismiss(self, number):
        """The person closes it."""
        self.CloseNotification(number)
        self.emit(self.PATH, self.name, "NotificationClosed", GLib.Variant("(uu)", (number, 2)))

    def take_away(self, number, reason):
        """It goes, and not because the person wants it: it has expired (1), another program has closed it (3), or who knows why (4)."""
        self.CloseNotification(number)
        self.emit(self.PATH, self.name, "NotificationClosed", GLib.Variant("(uu)", (number, reason)))

    def numbers(self, about):
        """Those that are shown with that summary."""
        with self._lock:
            return [number for number, (summary, _, _) in self.shown.items() if summary == about]

    def wait_for(self, about, count=1):
        wait_until(lambda: len(self.numbers(about)) == count, f"{count} notifications: {about}")
        return [self.shown[number] for number in self.numbers(about)]


class Panel(Service):
    """A panel that shows status notifiers: the watcher that they are registered with, and the one host. Menus are read by libdbusmenu."""

    PATH, ITEM = "/StatusNotifierWatcher", "org.kde.StatusNotifierItem"

    def __init__(self, session, *, has_host=True):
        super().__init__(session.bus_address, "org.kde.StatusNotifierWatcher")
        self.items, self.has_host, self.session = [], has_host, session
        # "ok", "refuse", or "never" answer; what is not answered can be by and by.
        self.answer, self.unanswered = "ok", []
        self.export(self.PATH, WATCHER)
        self.own()

    def _called(self, connection, sender, path, interface, member, arguments, invocation):
        call = (connection, sender, path, interface, member, arguments, invocation)
        if self.answer == "never":
            self.unanswered.append(call)
        else:
            super()._called(*call)

    def answer_at_last(self):
        self.answer = "ok"
        for call in self.unanswered:
            self.client._glib.run(lambda call=call: super(Panel, self)._called(*call))
        self.unanswered.clear()

    def RegisterStatusNotifierItem(self, name):
        if self.answer == "refuse":
            raise LookupError("no room")
        if name not in self.items:
            self.items.append(name)

    def IsStatusNotifierHostRegistered(self):
        return GLib.Variant("b", self.has_host)

    def add_host(self):
        self.has_host = True
        self.emit(self.PATH, self.name, "StatusNotifierHostRegistered", None)

    def remove_host(self):
        self.has_host = False
        self.emit(self.PATH, self.name, "StatusNotifierHostUnregistered", None)

    def shown(self):
        """The items that are there: a host drops one when its name goes."""
        return [name for name in self.items if self.client.owner(name)]

    def wait_for(self, count=1):
        wait_until(lambda: len(self.shown()) == count, f"{count} marks in the panel")
        return self.shown()

    def item(self, name):
        return self.client.get_all(name, "/StatusNotifierItem", self.ITEM)

    def menu(self, *click):
        """The labels of the menu of the one item, as libdbusmenu has them; clicks those that are named."""
        (name,) = self.shown()
        done = self.session.run(["/usr/bin/python3", MENU, name, self.item(name)["Menu"], *click])
        return json.loads(done.stdout)


class Logind(Service):
    """One session, which is locked or not, and a machine that sleeps or not."""

    PATH, SESSION = "/org/freedesktop/login1", "/org/freedesktop/login1/session/_31"

    def __init__(self, session, *, locked=False, asleep=False, has_session=True):
        super().__init__(session.system_bus_address, "org.freedesktop.login1")
        self.locked, self.asleep, self.has_session = locked, asleep, has_session
        self.asked = []
        self.export(self.PATH, LOGIND)
        self.export(self.SESSION, LOGIND_SESSION)
        self.own()

    def GetSession(self, name):
        self.asked.append(name)
        if not self.has_session:
            raise LookupError("the caller does not belong to any known session")
        return GLib.Variant("(o)", (self.SESSION,))

    def PreparingForSleep(self):
        return GLib.Variant("b", self.asleep)

    def new_session(self):
        """The person logs in."""
        self.has_session = True
        self.emit(self.PATH, "org.freedesktop.login1.Manager", "SessionNew", GLib.Variant("(so)", ("1", self.SESSION)))

    def LockedHint(self):
        self.asked.append("LockedHint")
        return GLib.Variant("b", self.locked)

    def lock(self, locked=True):
        self.locked = locked
        changed = {"LockedHint": GLib.Variant("b", locked)}
        self.emit(self.SESSION, "org.freedesktop.DBus.Properties", "PropertiesChanged",
                  GLib.Variant("(sa{sv}as)", ("org.freedesktop.login1.Session", changed, [])))

    def sleep(self, begins=True):
        self.asleep = begins
        self.emit(self.PATH, "org.freedesktop.login1.Manager", "PrepareForSleep", GLib.Variant("(b)", (begins,)))
