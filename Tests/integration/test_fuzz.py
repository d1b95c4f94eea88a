# SPDX-License-Identifier: MIT
"""What any program on the bus may send: everything. The agent answers each call, stays what it is, and gives back what it took.

Seeded: the same rounds each time, some hundred. `make fuzz` runs more of them with another seed (VITRINE_FUZZ_ROUNDS, VITRINE_FUZZ_SEED).
"""

import os
import random
import select
import socket
import string

import pytest
from gi.repository import Gio, GLib

import held
from bus import Client
from contract import declared
from harness import DESKTOP_TRACK, MEMORY_FACTOR, OPTION_TYPES, PORTAL, ROOT, SERVICE
from processes import wait_until

ROUNDS = int(os.environ.get("VITRINE_FUZZ_ROUNDS", "250"))
SEED = int(os.environ.get("VITRINE_FUZZ_SEED", "1"))

MEMBERS = {name: ([*interface.methods.items()], [*interface.properties]) for name, interface in declared().items()}
STANDARD = {
    "org.freedesktop.DBus.Properties": [("Get", ("ss", "")), ("GetAll", ("s", "")), ("Set", ("ssv", ""))],
    "org.freedesktop.DBus.Introspectable": [("Introspect", ("", ""))],
    "org.freedesktop.DBus.ObjectManager": [("GetManagedObjects", ("", ""))],
    "org.freedesktop.DBus.Peer": [("Ping", ("", ""))],
}
BASIC = "ybnqiuxtdsogv"
# What an error may be called.
ERRORS = ("org.vitrine.ScreenShare1.Error.", "org.freedesktop.DBus.Error.")


def split(types):
    """The complete types in a row of them."""
    found, start, depth = [], 0, 0
    for index, letter in enumerate(types):
        depth += letter in "({"
        depth -= letter in ")}"
        if depth == 0 and letter != "a":
            found.append(types[start:index + 1])
            start = index + 1
    return found


class Nonsense:
    """Random values, types, names and messages."""

    def __init__(self, seed):
        self.random = random.Random(seed)

    def integer(self, bits, signed):
        low, high = (-(1 << bits - 1), (1 << bits - 1) - 1) if signed else (0, (1 << bits) - 1)
        return self.random.choice([low, high, 0, 1, min(high, 2), self.random.randint(low, high), self.random.randint(0, 64)])

    def text(self):
        kind = self.random.randrange(8)
        if kind == 0:
            return ""
        if kind == 1:
            return "".join(chr(self.random.choice([self.random.randrange(1, 0xD800), self.random.randrange(0xE000, 0x110000)])) for _ in range(9))
        if kind == 2:
            return self.random.choice(string.ascii_letters) * self.random.choice([64, 65, 255, 256, 70_000])
        if kind == 3:
            return self.random.choice(["webm", "y4m", "ivf", "frames", "vp8", "vp9", "picture", "hold", "end", "h360p", "native", "grid", "none"])
        if kind == 4:
            return self.random.choice([":1.1", ":1.99999", "app:org.example.X", "exe:/", "unit:", "%s%n", "../../..", "wayland:x", "x11:zz"])
        return "".join(self.random.choice(string.printable) for _ in range(self.random.randrange(20)))

    def path(self):
        return self.random.choice([
            ROOT, ROOT, DESKTOP_TRACK, DESKTOP_TRACK, DESKTOP_TRACK, ROOT + "/track/1", ROOT + f"/track/{self.random.randrange(400)}",
            DESKTOP_TRACK + f"/subscription/{self.random.randrange(1, 60)}", "/", "/org", "/a" * 100])

    def type(self, depth=0):
        kind = self.random.randrange(10)
        if depth > 6 or kind < 6:
            return self.random.choice(BASIC)
        if kind < 8:
            return "a" + self.type(depth + 1)
        if kind == 8:
            return "(" + "".join(self.type(depth + 1) for _ in range(self.random.randrange(1, 4))) + ")"
        return "a{" + self.random.choice("ybnqiuxtdsog") + self.type(depth + 1) + "}"

    def value(self, kind, depth=0):
        """A GLib.Variant of a type."""
        more = depth + 1
        integers = {"y": (8, False), "n": (16, True), "q": (16, False), "i": (32, True), "u": (32, False), "x": (64, True), "t": (64, False)}
        if kind in integers:
            return GLib.Variant(kind, self.integer(*integers[kind]))
        if kind == "b":
            return GLib.Variant("b", self.random.random() < 0.5)
        if kind == "d":
            return GLib.Variant("d", self.random.choice([0.0, -1.5, 1e308, float("inf"), float("nan")]))
        if kind == "s":
            return GLib.Variant("s", self.text())
        if kind == "o":
            return GLib.Variant("o", self.path())
        if kind == "g":
            return GLib.Variant("g", self.type())
        if kind == "h":
            return GLib.Variant("h", self.random.randrange(3))
        if kind == "v":
            # Below the bus's own limit on depth.
            deep = self.value(self.type(depth + 3), more) if depth < 8 else GLib.Variant("u", 1)
            for _ in range(self.random.choice([0, 0, 0, 40]) if depth == 0 else 0):
                deep = GLib.Variant.new_variant(deep)
            return GLib.Variant.new_variant(deep)
        if kind == "a{sv}":
            return self.options()
        if kind[0] == "a":
            count = self.random.choice([0, 1, 2, 3, 300 if len(kind) == 2 and depth < 2 else 2])
            return GLib.Variant.new_array(GLib.VariantType.new(kind[1:]), [self.value(kind[1:], more) for _ in range(count)])
        parts = [self.value(part, more) for part in split(kind[1:-1])]
        return GLib.Variant.new_dict_entry(*parts) if kind[0] == "{" else GLib.Variant.new_tuple(*parts)

    def options(self):
        """Options of the contract, most of them with values of the right type; some that there are none."""
        given = GLib.VariantBuilder.new(GLib.VariantType.new("a{sv}"))
        for key in self.random.sample([*OPTION_TYPES], self.random.choice([0, 0, 1, 1, 2, 5])):
            kind = OPTION_TYPES[key] if self.random.random() < 0.85 else self.type()
            given.add_value(GLib.Variant.new_dict_entry(GLib.Variant("s", key), GLib.Variant.new_variant(self.value(kind, 2))))
        if self.random.random() < 0.1:
            given.add_value(GLib.Variant.new_dict_entry(GLib.Variant("s", self.text()), self.value("v", 5)))
        return given.end()

    def body(self, types):
        """Arguments: of these types, most of the time."""
        if self.random.random() < 0.1:
            types = "".join(self.type() for _ in range(self.random.randrange(4)))
        return self.value(f"({types})")

    def call(self):
        """A message that is a call of something that there is, as a rule."""
        interface = self.random.choice([*MEMBERS] * 3 + [*STANDARD])
        member, (types, _) = self.random.choice(MEMBERS[interface][0] if interface in MEMBERS else STANDARD[interface])
        path = self.path()
        if interface.endswith("Agent"):
            path = ROOT
        elif interface.endswith("Track") and self.random.random() < 0.8:
            path = DESKTOP_TRACK
        body = self.body(types)
        if member in ("Get", "Set") and self.random.random() < 0.9:
            owner = self.random.choice([*MEMBERS])
            name = self.random.choice(MEMBERS[owner][1])
            rest = (self.value("v"),) if member == "Set" else ()
            body = GLib.Variant.new_tuple(GLib.Variant("s", owner), GLib.Variant("s", name), *rest)
        if self.random.random() < 0.05:
            member = self.random.choice(["Frobnicate", "GetAll", "_", "A" * 255])
        message = Gio.DBusMessage.new_method_call(SERVICE, path, interface if self.random.random() < 0.95 else None, member)
        message.set_body(body or GLib.Variant("()", ()))
        if self.random.random() < 0.1:
            descriptors = Gio.UnixFDList.new()
            for _ in range(self.random.randrange(1, 4)):
                descriptors.append(0)
            message.set_unix_fd_list(descriptors)
        if self.random.random() < 0.1:
            message.set_flags(Gio.DBusMessageFlags.NO_REPLY_EXPECTED)
        return message

    def lie(self):
        """A message that only somebody else may send: a signal of the bus or of the portal, a reply to nothing."""
        kind = self.random.randrange(4)
        if kind < 2:
            message = Gio.DBusMessage.new_signal(*self.random.choice([
                ("/org/freedesktop/DBus", "org.freedesktop.DBus", "NameOwnerChanged"), ("/org/freedesktop/DBus", "org.freedesktop.DBus", "NameLost"),
                ("/org/freedesktop/portal/desktop/request/1_1/x", "org.freedesktop.portal.Request", "Response"),
                ("/org/freedesktop/portal/desktop/session/1_1/x", "org.freedesktop.portal.Session", "Closed"),
                (ROOT, "org.freedesktop.DBus.Properties", "PropertiesChanged")]))
            body = self.random.choice([
                GLib.Variant("(sss)", (PORTAL, ":1.2", "")), GLib.Variant("(s)", (SERVICE,)), GLib.Variant("(ua{sv})", (1, {})), None])
            message.set_body(body or self.value("(" + self.type() + ")"))
        else:
            message = Gio.DBusMessage()
            message.set_message_type(Gio.DBusMessageType.METHOD_RETURN if kind == 2 else Gio.DBusMessageType.ERROR)
            message.set_reply_serial(self.random.randrange(1, 5000))
            if kind == 3:
                message.set_error_name("org.freedesktop.DBus.Error." + self.random.choice(["NoReply", "ServiceUnknown", "X"]))
            message.set_body(self.value("(" + self.type() + ")"))
        message.set_destination(SERVICE)
        return message


class Sender:
    """A client of its own that sends messages and keeps the answers."""

    def __init__(self, address):
        self.client = Client(address)
        self.connection = self.client.connection
        self.waiting = 0
        self.errors = set()
        self.sent = 0

    def call(self, message):
        """Sends a call; its answer, an error or none, is looked at when it comes."""
        wants = not message.get_flags() & Gio.DBusMessageFlags.NO_REPLY_EXPECTED
        self.sent += 1

        def answered(connection, result):
            try:
                reply = connection.send_message_with_reply_finish(result)
                if reply.get_message_type() == Gio.DBusMessageType.ERROR:
                    self.errors.add(reply.get_error_name())
                elif reply.get_unix_fd_list():
                    for descriptor in reply.get_unix_fd_list().steal_fds():
                        os.close(descriptor)
            except GLib.Error as error:
                self.errors.add(error.message)
            self.waiting -= 1

        def send():
            if wants:
                self.waiting += 1
                self.connection.send_message_with_reply(message, Gio.DBusSendMessageFlags.NONE, 2 ** 31 - 1, None, answered)
            else:
                self.connection.send_message(message, Gio.DBusSendMessageFlags.NONE)

        self.client._glib.run(send)

    def send(self, message):
        self.client._glib.run(lambda: self.connection.send_message(message, Gio.DBusSendMessageFlags.NONE))


@pytest.fixture
def unharmed(world, me, screen):
    """The agent of the shared world: after the test it is the same process, works, and holds no more than before."""
    screen.configure(size=(320, 200))
    pid = world.agent_process.pid
    _share(me)
    descriptors, memory = len(held.descriptors(pid)), held.memory(pid)
    yield world
    assert world.agent_process.poll() is None, "the agent has died"
    me.set_screen_share(False)
    for path in me.desktop.get("Subscriptions"):
        me.desktop.unsubscribe_all(me.client.get(SERVICE, path, "org.vitrine.ScreenShare1.Subscription", "Subscriber"))
    for identity in me.desktop.get("Allowed"):
        me.desktop.disallow(identity)
    # What is hidden stays hidden in the next share.
    me.desktop.set("Crop", "(iiuu)", (0, 0, 0, 0))
    me.desktop.set("Masks", "a(iiuu)", [])
    wait_until(lambda: set(me.objects()) == {DESKTOP_TRACK}, "no object but the desktop track")
    screen.reset()
    screen.configure(size=(320, 200))
    _share(me)
    wait_until(lambda: len(held.descriptors(pid)) <= descriptors, f"no more than {descriptors} descriptors")
    # A sanitizer keeps what was given back.
    if not {"ASAN_OPTIONS", "TSAN_OPTIONS"} & os.environ.keys():
        assert held.memory(pid) < memory + (24 << 20), "bytes more than before"


def _share(me):
    me.desktop.mute(False)
    me.set_screen_share(True, wait=True)
    subscription = me.desktop.subscribe()
    subscription.wait_until("Statistics", lambda statistics: statistics["sent"] >= 2)
    subscription.unsubscribe()
    subscription.close()
    me.set_screen_share(False)


def test_any_call(unharmed, me, screen):
    """Calls of everything, with anything, from several clients that come and go: each is answered, with an error of the contract or the bus."""
    nonsense = Nonsense(SEED)
    senders = [Sender(unharmed.bus_address) for _ in range(3)]
    seen, sent = set(), 0
    for index in range(ROUNDS * 16):
        if index % 40 == 0:
            screen.configure(answer=nonsense.random.choice(["ok", "ok", "cancel", "fail", "never"]))
        sender = nonsense.random.choice(senders)
        sender.call(nonsense.call())
        if nonsense.random.random() < 0.05:
            sender.send(nonsense.lie())
        if nonsense.random.random() < 0.01:
            senders.remove(sender)
            seen |= sender.errors
            sent += sender.sent
            sender.client.close()
            senders.append(Sender(unharmed.bus_address))
        if index % 50 == 49:
            me.set_screen_share(False)
            for one in senders:
                wait_until(lambda: one.waiting == 0, f"an answer to everything of {one.client.unique_name} (seed {SEED}, round {index})")
    for one in senders:
        seen |= one.errors
        one.client.close()
    strange = [name for name in seen if not name.startswith(ERRORS) and "closed" not in name]
    assert strange == [] and len(seen) > 5


def test_floods(unharmed, me):
    """Clients that call and never read, make tracks and subscriptions without end, or watch and vanish: others are served, limits hold."""
    flooders = [Sender(unharmed.bus_address) for _ in range(3)]
    for flooder in flooders:
        for _ in range(100):
            message = Gio.DBusMessage.new_method_call(SERVICE, ROOT, "org.freedesktop.DBus.ObjectManager", "GetManagedObjects")
            message.set_body(GLib.Variant("()", ()))
            flooder.call(message)
            message = Gio.DBusMessage.new_method_call(SERVICE, ROOT, SERVICE + ".Agent", "CreateTrack")
            message.set_body(GLib.Variant("(a{sv})", ({},)))
            flooder.call(message)
            message = Gio.DBusMessage.new_method_call(SERVICE, DESKTOP_TRACK, SERVICE + ".Track", "Subscribe")
            message.set_body(GLib.Variant("(a{sv})", ({},)))
            flooder.call(message)
    assert me.desktop.state == "idle"
    for flooder in flooders:
        wait_until(lambda: flooder.waiting == 0, "an answer to everything", seconds=120)
        assert "org.vitrine.ScreenShare1.Error.LimitExceeded" in flooder.errors
    assert len(me.tracks()) <= 65
    for flooder in flooders:
        flooder.client.close()


def _hello(path):
    """A connection to the bus by hand, as far as its name."""
    client = socket.socket(socket.AF_UNIX)
    client.connect(path)
    client.settimeout(30)
    client.sendall(b"\0AUTH EXTERNAL " + str(os.getuid()).encode().hex().encode() + b"\r\n")
    client.recv(200)
    client.sendall(b"NEGOTIATE_UNIX_FD\r\nBEGIN\r\n")
    client.recv(200)
    hello = Gio.DBusMessage.new_method_call("org.freedesktop.DBus", "/org/freedesktop/DBus", "org.freedesktop.DBus", "Hello")
    hello.set_serial(1)
    client.sendall(hello.to_blob(Gio.DBusCapabilityFlags.UNIX_FD_PASSING))
    client.recv(4096)
    return client


def test_half_open_clients_and_raw_bytes(unharmed, me):
    """Clients that stop in the middle of a message, send bytes that are none, or never read: the bus ends some of them, the agent serves all others."""
    nonsense = Nonsense(SEED + 1)
    path = str(unharmed.runtime_dir / "bus")
    kept = []
    for index in range(ROUNDS * 2):
        client = _hello(path)
        message = nonsense.call()
        message.set_unix_fd_list(None)
        message.set_serial(2 + index)
        try:
            blob = bytearray(message.to_blob(Gio.DBusCapabilityFlags.NONE))
        except GLib.Error:
            # It speaks of descriptors that it has not.
            continue
        kind = nonsense.random.randrange(4)
        if kind == 0:
            blob = blob[:nonsense.random.randrange(len(blob))]
        elif kind == 1:
            for _ in range(nonsense.random.randrange(1, 6)):
                blob[nonsense.random.randrange(len(blob))] = nonsense.random.randrange(256)
        elif kind == 2:
            blob = blob * 3
        try:
            client.sendall(blob)
        except OSError:
            pass
        kept.append(client)
        if nonsense.random.random() < 0.5:
            kept.pop(nonsense.random.randrange(len(kept))).close()
        if index % 20 == 0:
            me.set_screen_share(False)
            assert me.get_all()
    for client in kept:
        client.close()


def _calls(count, first):
    """Calls with big answers, one after the other, as they are sent."""
    kinds = [(ROOT, "org.freedesktop.DBus.ObjectManager", "GetManagedObjects", None), (ROOT, "org.freedesktop.DBus.Introspectable", "Introspect", None),
             (DESKTOP_TRACK, "org.freedesktop.DBus.Introspectable", "Introspect", None),
             (DESKTOP_TRACK, "org.freedesktop.DBus.Properties", "GetAll", GLib.Variant("(s)", ("",)))]
    parts = []
    for index in range(count):
        path, interface, member, body = kinds[index % len(kinds)]
        message = Gio.DBusMessage.new_method_call(SERVICE, path, interface, member)
        message.set_body(body or GLib.Variant("()", ()))
        message.set_serial(first + index)
        parts.append(message.to_blob(Gio.DBusCapabilityFlags.NONE))
    return b"".join(parts)


def test_clients_that_call_and_never_read(unharmed, me):
    """Clients that call for big answers without end and read none of them are refused in time: the bus goes on to serve all others, the agent's memory stays."""
    pid = unharmed.agent_process.pid
    before = held.memory(pid)
    stuck = [_hello(str(unharmed.runtime_dir / "bus")) for _ in range(4)]
    for turn in range(10):
        for client in stuck:
            client.sendall(_calls(800, 2 + 800 * turn))
        # Behind all that was asked for so far.
        assert me.get_all() and me.desktop.state == "idle"
    assert held.memory(pid) < before + (24 << 20) * MEMORY_FACTOR
    me.set_screen_share(True, wait=True)
    me.set_screen_share(False)
    # What one of them finds when it reads at last.
    found = b""
    while select.select([stuck[0]], [], [], 1)[0]:
        found += stuck[0].recv(1 << 20)
    assert b"Error.LimitExceeded" in found and len(found) < 24 << 20
    for client in stuck:
        client.close()


def test_a_client_that_reads_much(unharmed):
    """However much a client asks for, it is served for as long as it reads."""
    greedy = Sender(unharmed.bus_address)
    for _ in range(60):
        for _ in range(40):
            greedy.call(Gio.DBusMessage.new_method_call(SERVICE, DESKTOP_TRACK, "org.freedesktop.DBus.Introspectable", "Introspect"))
        wait_until(lambda: greedy.waiting == 0, "forty answers")
    assert greedy.errors == set()
    greedy.client.close()


def test_odd_descriptors_and_readers(unharmed, me):
    """Readers that close, shut, seek, write to, or hand on what they were given, at any moment: only their own stream is theirs."""
    nonsense = Nonsense(SEED + 2)
    me.set_screen_share(True, wait=True)
    good = me.desktop.subscribe()
    recording = good.record(unharmed.root / "good.webm")
    for _ in range(ROUNDS // 4):
        one = me.desktop.subscribe(format=nonsense.random.choice(["webm", "y4m"]), placeholder=nonsense.random.choice(["picture", "hold", "end"]))
        kind = nonsense.random.randrange(5)
        if kind == 0:
            one.unsubscribe()
        elif kind == 1:
            with pytest.raises(OSError):
                os.write(one.descriptor, b"x")
        elif kind == 2:
            if select.select([one.descriptor], [], [], 0.05)[0]:
                os.read(one.descriptor, nonsense.random.choice([1, 7, 65536]))
        elif kind == 3:
            me.desktop.mute(nonsense.random.random() < 0.5)
        one.close()
    me.desktop.mute(False)
    sent = good.statistics["sent"]
    good.wait_until("Statistics", lambda statistics: statistics["sent"] > sent + 3)
    good.unsubscribe()
    recording.wait_for_end().frames()
