# SPDX-License-Identifier: MIT
"""A front end of the portal that misbehaves on command, where the real one cannot be made to. Behind it is the test screen, so its streams are real."""

import dataclasses
import os
import random
import re
import socket

from gi.repository import Gio, GLib

from bus import Client
from harness import BACKEND, PORTAL, PORTAL_PATH, SCREEN_CAST

REQUESTS = ("CreateSession", "SelectSources", "Start")
STEPS = (*REQUESTS, "OpenPipeWireRemote")

IMPLEMENTATION = "org.freedesktop.impl.portal."
SESSION, REQUEST = "org.freedesktop.portal.Session", "org.freedesktop.portal.Request"

INTERFACES = Gio.DBusNodeInfo.new_for_xml(f"""<node><interface name="{SCREEN_CAST}">
<method name="CreateSession"><arg type="a{{sv}}" direction="in"/><arg type="o" direction="out"/></method>
<method name="SelectSources"><arg type="o" direction="in"/><arg type="a{{sv}}" direction="in"/><arg type="o" direction="out"/></method>
<method name="Start"><arg type="o" direction="in"/><arg type="s" direction="in"/><arg type="a{{sv}}" direction="in"/>
<arg type="o" direction="out"/></method>
<method name="OpenPipeWireRemote"><arg type="o" direction="in"/><arg type="a{{sv}}" direction="in"/><arg type="h" direction="out"/></method>
<property name="version" type="u" access="read"/><property name="AvailableSourceTypes" type="u" access="read"/>
<property name="AvailableCursorModes" type="u" access="read"/></interface>
<interface name="{REQUEST}"><method name="Close"/></interface>
<interface name="{SESSION}"><method name="Close"/></interface></node>""")


@dataclasses.dataclass
class Manner:
    """How one step goes; as it stands here, as it should."""

    reply: str = "regular"
    """Or `elsewhere` (another handle than the client expects), `never`, `leave` (the portal crashes), or the name of an error."""
    response: str = "after"
    """Or `before` (the reply), `held` (until `release`), `never`."""
    code: int = 0
    times: int = 1
    answer: object = None
    """Instead of a response and results: a GLib.Variant."""
    spoil: object = None
    """A function that changes the results, a dictionary of GLib.Variants."""
    remote: str = "live"
    """Of OpenPipeWireRemote: or `dead` (nobody at the other end), `silent` (somebody who says nothing), `noise` (somebody who says anything), `file` (no
    socket), `missing` (a handle without a descriptor)."""


class FrontEnd:
    """Owns the portal's name. Everything but the constructor's and the public methods' bodies runs on the bus's thread."""

    def __init__(self, session, **properties):
        self.session = session
        self.manners = {}
        self.asked = []
        """What was asked: (step, options)."""
        self.requests, self.sessions = {}, {}
        """What is open: path -> what it takes to close it."""
        self.answers_close = True
        self.refused_token = None
        """A restore token that SelectSources does not take, and the name of the error."""
        self.properties = {"version": 4, "AvailableSourceTypes": 7, "AvailableCursorModes": 7, **properties}
        self._tokens, self._kept, self._held = set(), [], []
        self.client = Client(session.bus_address)
        self._connection = self.client.connection
        self._run = self.client._glib.run
        self._run(lambda: self._export(PORTAL_PATH, SCREEN_CAST))
        self._run(lambda: self._connection.signal_subscribe(
            BACKEND, IMPLEMENTATION + "Session", "Closed", None, None, Gio.DBusSignalFlags.NONE, self._ended))
        self.client.call("org.freedesktop.DBus", "/org/freedesktop/DBus", "org.freedesktop.DBus", "RequestName", GLib.Variant("(su)", (PORTAL, 4)))

    # What tests do

    def behave(self):
        self.manners.clear()
        self.answers_close = True

    def leave(self):
        """Crashes."""
        self.client.close()

    def release(self):
        """Goes on with what is held."""
        held, self._held = self._held, []
        for body in held:
            self._run(body)

    @property
    def holds(self):
        return len(self._held)

    def has_asked(self, step):
        return any(one == step for one, _ in self.asked)

    def emit_closed(self, path, times=1, by=None):
        """Says that a session is closed; `by` another program, where one is given."""
        def emit():
            for _ in range(times):
                (by or self.client).connection.emit_signal(None, path, SESSION, "Closed", GLib.Variant("(a{sv})", ({},)))

        self._run(emit)

    def emit_response(self, path, by):
        """Another program's no."""
        self._run(lambda: by.connection.emit_signal(None, path, REQUEST, "Response", GLib.Variant("(ua{sv})", (1, {}))))

    def close_sessions(self, times=1):
        """The desktop ends all sessions."""
        for path in [*self.sessions]:
            self.emit_closed(path, times)
            self._run(lambda path=path: self._close_session(path))

    # What clients ask

    def _export(self, path, interface):
        return self._connection.register_object(path, INTERFACES.lookup_interface(interface), self._called, self._read, None)

    def _read(self, _connection, _sender, _path, _interface, name):
        value = self.properties[name]
        return None if value is None else GLib.Variant("u", value)

    def _called(self, _connection, sender, path, interface, member, arguments, invocation):
        if member != "Close":
            return self._ask(member, sender, arguments.unpack(), invocation)
        (self._close_session if interface == SESSION else self._close_request)(path)
        if self.answers_close:
            invocation.return_value(None)
        else:
            self._kept.append(invocation)

    def _ask(self, step, sender, arguments, invocation):
        options, manner = arguments[-1], self.manners.get(step, Manner())
        self.asked.append((step, options))
        if manner.reply == "leave":
            self._kept.append(invocation)
            self._connection.close(None, None)
        elif self.refused_token and options.get("restore_token") == self.refused_token[0]:
            invocation.return_dbus_error(self.refused_token[1], "Restore token is not a valid UUID string")
        elif "." in manner.reply:
            invocation.return_dbus_error(manner.reply, "told to fail")
        elif step == "OpenPipeWireRemote":
            self._open_remote(manner, arguments[0], invocation)
        else:
            self._begin(step, manner, sender, arguments, invocation)

    def _take(self, token):
        """A token has to be one, and new; up to version 1.20 the portal crashed over one that was not."""
        if not re.fullmatch("[A-Za-z0-9_]+", token or "") or token in self._tokens:
            self._connection.close(None, None)
        self._tokens.add(token)
        return token

    def _begin(self, step, manner, sender, arguments, invocation):
        options, owner = arguments[-1], sender[1:].replace(".", "_")
        handle = f"{PORTAL_PATH}/request/{owner}/{self._take(options.get('handle_token'))}"
        if manner.reply == "elsewhere":
            handle = f"{PORTAL_PATH}/request/1/elsewhere{len(self._tokens)}"
        path = arguments[0]
        if step == "CreateSession":
            path = f"{PORTAL_PATH}/session/{owner}/{self._take(options.get('session_handle_token'))}"
        elif path not in self.sessions:
            return invocation.return_dbus_error("org.freedesktop.DBus.Error.AccessDenied", "Invalid session")
        self.requests[handle] = [self._export(handle, REQUEST), False]

        def reply():
            if manner.reply == "never":
                self._kept.append(invocation)
            else:
                invocation.return_value(GLib.Variant("(o)", (handle,)))

        def respond(code, results):
            if not self._forget(handle):
                # It was closed meanwhile, and what came of it is too.
                return self._tell_backend(path, "Session") if step == "CreateSession" and code == 0 else None
            results = {key: value for key, value in results.items() if key not in ("restore_data", "persist_mode")}
            if step == "CreateSession" and code == 0:
                self.sessions[path] = self._export(path, SESSION)
                results["session_handle"] = GLib.Variant("s", path)
            if manner.spoil:
                manner.spoil(results)
            answer = GLib.Variant("(ua{sv})", (code, results)) if manner.answer is None else manner.answer
            for _ in range(manner.times):
                self._connection.emit_signal(sender, handle, REQUEST, "Response", answer)
            if code != 0:
                # As the real one does.
                self._connection.emit_signal(sender, path, SESSION, "Closed", GLib.Variant("(a{sv})", ({},)))
                self._close_session(path)
            if manner.response == "before":
                reply()

        def go_on():
            if manner.code:
                respond(manner.code, {})
            elif handle in self.requests:
                self._forward(step, handle, path, options, respond)

        if manner.response != "before":
            reply()
        if manner.response == "held":
            self._held.append(go_on)
        elif manner.response != "never":
            go_on()

    def _forward(self, step, handle, path, options, respond):
        wishes = {key: value for key, value in options.items() if key in ("types", "multiple", "cursor_mode")}
        given = {key: GLib.Variant("b" if key == "multiple" else "u", value) for key, value in wishes.items()}
        arguments = GLib.Variant("(oossa{sv})", (handle, path, "", "", given)) if step == "Start" else GLib.Variant("(oosa{sv})", (handle, path, "", given))
        self.requests[handle][1] = True

        def finished(connection, result):
            try:
                reply = connection.call_finish(result)
            except GLib.Error:
                return respond(2, {})
            found = reply.get_child_value(1)
            entries = [found.get_child_value(index) for index in range(found.n_children())]
            respond(reply.get_child_value(0).get_uint32(), {
                one.get_child_value(0).get_string(): one.get_child_value(1).get_variant() for one in entries})

        self._connection.call(BACKEND, PORTAL_PATH, IMPLEMENTATION + "ScreenCast", step, arguments, None, Gio.DBusCallFlags.NONE, -1, None, finished)

    def _open_remote(self, manner, path, invocation):
        if manner.reply == "never":
            self._kept.append(invocation)
        elif path not in self.sessions:
            invocation.return_dbus_error("org.freedesktop.DBus.Error.AccessDenied", "Invalid session")
        else:
            descriptors = Gio.UnixFDList.new()
            for descriptor in self._remote(manner.remote):
                descriptors.append(descriptor)
                os.close(descriptor)
            invocation.return_value_with_unix_fd_list(GLib.Variant("(h)", (7 if manner.remote == "missing" else 0,)), descriptors)

    def _remote(self, kind):
        if kind == "live":
            remote = socket.socket(socket.AF_UNIX)
            remote.connect(str(self.session.runtime_dir / "pipewire-0"))
            return [remote.detach()]
        if kind in ("dead", "silent", "noise"):
            near, far = socket.socketpair()
            if kind == "noise":
                far.send(random.Random(len(self.asked)).randbytes(5_000))
            far.close() if kind == "dead" else self._kept.append(far)
            return [near.detach()]
        return [os.open("/dev/null", os.O_RDWR)] if kind == "file" else []

    # What ends

    def _forget(self, handle):
        registration, forwarded = self.requests.pop(handle, (None, None))
        if registration is None:
            return False
        self._connection.unregister_object(registration)
        return True

    def _close_request(self, handle):
        _, forwarded = self.requests.get(handle, (None, False))
        if self._forget(handle) and forwarded:
            self._tell_backend(handle, "Request")

    def _close_session(self, path):
        if registration := self.sessions.pop(path, None):
            self._connection.unregister_object(registration)
            self._tell_backend(path, "Session")

    def _tell_backend(self, path, what):
        self._connection.call(BACKEND, path, IMPLEMENTATION + what, "Close", None, None, Gio.DBusCallFlags.NONE, -1, None, lambda *_: None)

    def _ended(self, _connection, _sender, path, *_):
        """The test screen has ended a session."""
        if path in self.sessions:
            self._connection.emit_signal(None, path, SESSION, "Closed", GLib.Variant("(a{sv})", ({},)))
            self._connection.unregister_object(self.sessions.pop(path))
