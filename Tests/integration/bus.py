# SPDX-License-Identifier: MIT
"""A D-Bus client for tests, over GDBus: nothing of it is shared with the programs under test.

One thread runs the GLib main loop. Replies and signals of a client are noted by it in the order in which
they came from the bus, so that a test can look at the order of a transition.
"""

import threading
import time
from dataclasses import dataclass, field

from gi.repository import Gio, GLib

PROPERTIES = "org.freedesktop.DBus.Properties"


class BusError(Exception):
    """An error reply."""

    def __init__(self, name, message):
        super().__init__(f"{name}: {message}")
        self.name = name
        self.message = message


@dataclass(frozen=True)
class Event:
    """Something that came from the bus: a signal, a property's new value, a reply or an error reply.

    `kind` is `signal`, `changed` (one per property), `reply` or `error`; `name` is the member, property, or the error's name.
    `batch` is equal for all properties of one PropertiesChanged.
    """

    kind: str
    path: str
    interface: str
    name: str
    value: object
    batch: int
    at: float = field(compare=False)


class _Loop:
    """The one thread that runs GLib's main loop."""

    def __init__(self):
        self.context = GLib.MainContext.new()
        self._loop = GLib.MainLoop.new(self.context, False)
        threading.Thread(target=self._run, name="glib", daemon=True).start()

    def _run(self):
        self.context.push_thread_default()
        self._loop.run()

    def run(self, function):
        """Runs `function` on the loop's thread and returns what it returned."""
        done = threading.Event()
        outcome = []

        def invoke(*_):
            try:
                outcome.append((function(), None))
            except BaseException as error:  # handed to the caller's thread
                outcome.append((None, error))
            done.set()
            return False

        source = GLib.idle_source_new()
        source.set_priority(GLib.PRIORITY_DEFAULT)
        source.set_callback(invoke)
        source.attach(self.context)
        done.wait()
        value, error = outcome[0]
        if error is not None:
            raise error
        return value


_loop = None


def _the_loop():
    global _loop
    if _loop is None:
        _loop = _Loop()
    return _loop


class Pending:
    """A call whose reply is still to come."""

    def __init__(self, what):
        self._what = what
        self._done = threading.Event()
        self._outcome = None

    @property
    def done(self):
        return self._done.is_set()

    def _finish(self, value, error):
        self._outcome = (value, error)
        self._done.set()

    def wait(self, seconds=60.0):
        """The reply's values, or the error raised as BusError."""
        assert self._done.wait(seconds), f"no reply within {seconds:g} s: {self._what}"
        value, error = self._outcome
        if error is not None:
            raise error
        return value


class Client:
    """One connection to a bus, with a unique name of its own."""

    def __init__(self, address):
        flags = Gio.DBusConnectionFlags.AUTHENTICATION_CLIENT | Gio.DBusConnectionFlags.MESSAGE_BUS_CONNECTION
        self._glib = _the_loop()
        self._changed = threading.Condition()
        self._batch = 0
        self._hooks = []
        self.events = []
        self.holders = []
        """What has descriptors that this client was given, until its `close`."""
        self.connection = self._glib.run(lambda: Gio.DBusConnection.new_for_address_sync(address, flags, None, None))
        self.connection.set_exit_on_close(False)
        self.unique_name = self.connection.get_unique_name()

    def close(self):
        """Leaves the bus, as a program does that exits."""
        if not self.connection.is_closed():
            self._glib.run(lambda: self.connection.close_sync(None))

    def close_descriptors(self):
        """Lets go of what it still has of what it was given; a test process has few descriptors, and many tests."""
        for holder in self.holders:
            holder.close()
        self.holders.clear()

    # Calls

    def start(self, destination, path, interface, member, arguments=None, *, seconds=600.0, descriptors=None):
        """Sends a call and returns at once. `arguments` is a GLib.Variant tuple."""
        pending = Pending(f"{interface}.{member} on {path}")

        def finished(connection, result):
            try:
                reply, fds = connection.call_with_unix_fd_list_finish(result)
                value = reply.unpack()
                if fds is not None:
                    value = _with_descriptors(reply, fds.steal_fds())
                self._note("reply", path, interface, member, value)
                pending._finish(value, None)
            except GLib.Error as error:
                name = Gio.DBusError.get_remote_error(error) or f"local:{error.domain}:{error.code}"
                failure = BusError(name, error.message.removeprefix(f"GDBus.Error:{name}: "))
                self._note("error", path, interface, failure.name, failure.message)
                pending._finish(None, failure)

        def send():
            self.connection.call_with_unix_fd_list(
                destination, path, interface, member, arguments, None, Gio.DBusCallFlags.NONE, int(seconds * 1000),
                descriptors, None, finished)

        self._glib.run(send)
        return pending

    def call(self, destination, path, interface, member, arguments=None, *, seconds=60.0):
        """Calls and waits for the reply's values."""
        return self.start(destination, path, interface, member, arguments, seconds=seconds).wait(seconds + 5)

    def get(self, destination, path, interface, name):
        return self.call(destination, path, PROPERTIES, "Get", GLib.Variant("(ss)", (interface, name)))[0]

    def get_all(self, destination, path, interface):
        return self.call(destination, path, PROPERTIES, "GetAll", GLib.Variant("(s)", (interface,)))[0]

    def set(self, destination, path, interface, name, signature, value):
        self.call(destination, path, PROPERTIES, "Set", GLib.Variant("(ssv)", (interface, name, GLib.Variant(signature, value))))

    def owner(self, name):
        """The unique name that owns `name`, or None."""
        try:
            return self.call("org.freedesktop.DBus", "/org/freedesktop/DBus", "org.freedesktop.DBus", "GetNameOwner",
                             GLib.Variant("(s)", (name,)))[0]
        except BusError:
            return None

    def process_id(self, name):
        """The process behind a bus name."""
        return self.call("org.freedesktop.DBus", "/org/freedesktop/DBus", "org.freedesktop.DBus", "GetConnectionUnixProcessID",
                         GLib.Variant("(s)", (name,)))[0]

    # Signals

    def record(self, sender):
        """From now on every signal of `sender` is noted in `events`. Returns when the bus has confirmed that."""
        self._glib.run(lambda: self.connection.signal_subscribe(
            sender, None, None, None, None, Gio.DBusSignalFlags.NONE, self._heard))
        # A later call's reply comes after AddMatch has been carried out.
        self.call("org.freedesktop.DBus", "/org/freedesktop/DBus", "org.freedesktop.DBus", "GetId")

    def on_signal(self, member, function):
        """Calls `function` on the bus's thread each time that this signal comes, before it is noted."""
        self._hooks.append((member, function))

    def _heard(self, _connection, _sender, path, interface, member, parameters):
        values = parameters.unpack()
        if interface == PROPERTIES and member == "PropertiesChanged":
            owner, changed, invalidated = values
            self._batch += 1
            for name, value in changed.items():
                self._note("changed", path, owner, name, value)
            for name in invalidated:
                self._note("changed", path, owner, name, None)
        else:
            self._batch += 1
            for name, function in self._hooks:
                if name == member:
                    function()
            self._note("signal", path, interface, member, values)

    def _note(self, kind, path, interface, name, value):
        with self._changed:
            self.events.append(Event(kind, path, interface, name, value, self._batch, time.monotonic()))
            self._changed.notify_all()

    def mark(self):
        """A place in `events`, to look only at what comes after it."""
        return len(self.events)

    def wait_for(self, kind, name, value=..., path=None, since=0, seconds=30.0):
        """Waits for an event and returns it; `value=...` is any, a function is asked."""
        def matches(event):
            if event.kind != kind or event.name != name or (path is not None and event.path != path):
                return False
            return value is ... or (value(event.value) if callable(value) else event.value == value)

        deadline = time.monotonic() + seconds
        seen = since
        with self._changed:
            while True:
                for index in range(seen, len(self.events)):
                    if matches(self.events[index]):
                        return self.events[index]
                seen = len(self.events)
                left = deadline - time.monotonic()
                if left <= 0:
                    recent = "\n".join(f"  {e.kind} {e.path} {e.name} {e.value!r}" for e in self.events[since:][-40:])
                    raise AssertionError(f"no {kind} {name} within {seconds:g} s; what came instead:\n{recent}")
                self._changed.wait(left)


def _with_descriptors(reply, descriptors):
    """The reply's values with each handle replaced by its descriptor, which the caller owns."""
    values = []
    for index in range(reply.n_children()):
        child = reply.get_child_value(index)
        values.append(descriptors[child.get_handle()] if child.get_type_string() == "h" else child.unpack())
    return tuple(values)
