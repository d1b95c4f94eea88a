# SPDX-License-Identifier: MIT
"""The test screen as tests drive it, a portal client that is not ours, and a reader of nodes that is not ours either."""

import itertools
import json
import os
import subprocess
import sys
import threading
from pathlib import Path

from gi.repository import GLib

from harness import PORTAL, PORTAL_PATH, SCREEN_CAST, TEST_SCREEN
from processes import wait_until

SCREEN_PATH = "/org/vitrine/TestScreen1"
REQUEST = "org.freedesktop.portal.Request"
SESSION = "org.freedesktop.portal.Session"

# Types of the settings that Python's own types do not tell.
SETTING_TYPES = {
    "size": "(uu)", "sizes": "a(uu)", "resize-to": "(uu)", "formats": "as", "unused-byte": "y", "chunk-stride": "i", "crop": "(iiuu)",
    "cursor-size": "(uu)", "cursor-position": "(ii)", "cursor-hotspot": "(ii)", "omit": "as", "position": "(ii)", "logical-size": "(uu)",
    "next-size": "(uu)",
}

_tokens = itertools.count(1)


def setting(key, value):
    """A setting's value as a GLib.Variant; one that is a variant already is taken as it is."""
    if isinstance(value, GLib.Variant):
        return value
    usual = "b" if isinstance(value, bool) else "u" if isinstance(value, int) else "s"
    return GLib.Variant(SETTING_TYPES.get(key, usual), value)


class TestScreen:
    """The control interface of the test screen of a session."""

    # pytest takes it for a class of tests otherwise.
    __test__ = False

    def __init__(self, client):
        self.client = client
        client.record(TEST_SCREEN)

    def call(self, member, signature="()", *arguments, seconds=60.0):
        return self.client.call(TEST_SCREEN, SCREEN_PATH, TEST_SCREEN, member, GLib.Variant(signature, arguments), seconds=seconds)

    def start(self, member, signature="()", *arguments):
        return self.client.start(TEST_SCREEN, SCREEN_PATH, TEST_SCREEN, member, GLib.Variant(signature, arguments))

    def get(self, name):
        return self.client.get(TEST_SCREEN, SCREEN_PATH, TEST_SCREEN, name)

    def configure(self, **settings):
        """Configure; Python names have `_` for `-`."""
        named = {name.replace("_", "-"): value for name, value in settings.items()}
        self.call("Configure", "(a{sv})", {key: setting(key, value) for key, value in named.items()})

    def reset(self):
        self.call("Reset")

    def answer(self, answer):
        return self.call("Answer", "(s)", answer)[0]

    def wait_for_picker(self):
        self.wait_until("PickersOpen", 1)

    def answer_picker(self, answer="ok"):
        """Answers the one picker that is open, or is about to be."""
        self.wait_for_picker()
        assert self.answer(answer) == 1

    def end_session(self):
        return self.call("EndSession")[0]

    def vanish(self, stream=None):
        self.call("Vanish") if stream is None else self.call("VanishStream", "(u)", stream)

    def pause(self, stream=None):
        self.call("Pause") if stream is None else self.call("PauseStream", "(u)", stream)

    def resume(self, stream=None):
        self.call("Resume") if stream is None else self.call("ResumeStream", "(u)", stream)

    def set_size(self, width, height, stream=None):
        if stream is None:
            self.call("SetSize", "(uu)", width, height)
        else:
            self.call("SetStreamSize", "(uuu)", stream, width, height)

    def push_frames(self, count, stream=None):
        """Sends new pictures, of all streams or of one, and returns the last one's number."""
        if stream is None:
            return self.call("PushFrames", "(u)", count)[0]
        return self.call("PushStreamFrames", "(uu)", stream, count)[0]

    def emit_cursor_only(self):
        self.call("EmitCursorOnly")

    def corrupt(self, place="header"):
        self.call("Corrupt", "(s)", place)

    def set_error(self, message="told to fail"):
        self.call("SetError", "(s)", message)

    def unlink(self):
        self.call("Unlink")

    def clear_format(self):
        self.call("ClearFormat")

    @property
    def streams(self):
        return self.get("Streams")

    @property
    def consumers(self):
        """How many read the first stream."""
        return next((stream.get("consumers", 0) for stream in self.streams), 0)

    def wait_until(self, name, value, seconds=30.0):
        """Waits until a property has a value; `value` may be a function of it."""
        def has():
            now = self.get(name)
            return (value(now) if callable(value) else now == value) or None

        wait_until(has, f"the test screen's {name} = {value}", seconds)

    def wait_until_closed(self, seconds=30.0):
        """Waits until the portal has no session and no picker left, and no node is there any more."""
        self.wait_until("OpenSessions", 0, seconds)
        self.wait_until("PickersOpen", 0, seconds)
        self.wait_until("Streams", [], seconds)

    def wait_for_consumer(self, count=1, seconds=30.0):
        """Waits until so many read the first stream, with its format agreed on."""
        self.wait_until("Streams", lambda streams: streams and streams[0].get("consumers") == count and "size" in streams[0], seconds)


class Cast:
    """One session of the portal, for a client that knows the portal's documentation and nothing else."""

    def __init__(self, client):
        self.client = client
        client.record(PORTAL)
        self.token = f"cast{os.getpid()}_{next(_tokens)}"
        self.session = None

    def request(self, member, signature, *arguments, **options):
        """Sends a request and returns where its Response will be, and the call."""
        token = f"request{os.getpid()}_{next(_tokens)}"
        options["handle_token"] = GLib.Variant("s", token)
        sender = self.client.unique_name[1:].replace(".", "_")
        pending = self.client.start(PORTAL, PORTAL_PATH, SCREEN_CAST, member, GLib.Variant(signature, (*arguments, options)))
        return f"{PORTAL_PATH}/request/{sender}/{token}", pending

    def response(self, path, since=0, seconds=30.0):
        """The response and its results."""
        return self.client.wait_for("signal", "Response", path=path, since=since, seconds=seconds).value

    def ask(self, member, signature, *arguments, seconds=30.0, **options):
        path, pending = self.request(member, signature, *arguments, **options)
        assert pending.wait() == (path,)
        return self.response(path, seconds=seconds)

    def create(self):
        response, results = self.ask("CreateSession", "(a{sv})", session_handle_token=GLib.Variant("s", self.token))
        if response == 0:
            self.session = results["session_handle"]
        return response

    def select(self, **options):
        return self.ask("SelectSources", "(oa{sv})", self.session, **options)[0]

    def start(self, seconds=30.0):
        return self.ask("Start", "(osa{sv})", self.session, "", seconds=seconds)

    def begin(self):
        """Start without waiting for the response; returns where it will be."""
        path, pending = self.request("Start", "(osa{sv})", self.session, "")
        pending.wait()
        return path

    def prepare(self, **options):
        assert self.create() == 0 and self.select(**options) == 0
        return self

    def granted(self, **options):
        """The streams of a session that is granted: (node, properties)."""
        self.prepare(**options)
        response, results = self.start()
        assert response == 0, f"Start was answered {response}"
        return results["streams"]

    def open_remote(self):
        """A PipeWire connection's descriptor, which the caller owns."""
        return self.client.call(PORTAL, PORTAL_PATH, SCREEN_CAST, "OpenPipeWireRemote", GLib.Variant("(oa{sv})", (self.session, {})))[0]

    def close_request(self, path):
        self.client.call(PORTAL, path, REQUEST, "Close")

    def close(self):
        self.client.call(PORTAL, self.session, SESSION, "Close")

    def watch(self, session, node, **options):
        """A reader of one of the streams."""
        return NodeReader(session, node, self.open_remote, **options)


class NodeReader:
    """What GStreamer gets from a node: one dictionary for each buffer, as node_reader.py prints them."""

    def __init__(self, session, node, open_remote=None, formats="", stride=0):
        self._session, self._node, self._open_remote = session, node, open_remote
        self._options = [formats, str(stride)]
        self._changed = threading.Condition()
        self._tries_left = 3
        self._start()

    def _start(self):
        descriptor = self._open_remote() if self._open_remote else -1
        program = str(Path(__file__).with_name("node_reader.py"))
        self.frames = []
        self.messages = []
        self._process = subprocess.Popen(
            [sys.executable, program, str(self._node), str(descriptor), *self._options], env=self._session.environment,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, pass_fds=[descriptor] if descriptor >= 0 else [])
        if descriptor >= 0:
            os.close(descriptor)
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def _has_no_memory(self):
        """PipeWire 0.3.65 gives a first link buffers without memory now and then; GStreamer shows them black, to the end."""
        return self._tries_left > 0 and bool(self.frames) and self.frames[0]["mean"] == [0, 0, 0]

    def _read(self):
        for line in self._process.stdout:
            event = json.loads(line)
            with self._changed:
                (self.messages if "message" in event else self.frames).append(event)
                self._changed.notify_all()
        with self._changed:
            self.messages.append({"message": "end"})
            self._changed.notify_all()

    def wait_for(self, condition, what, seconds=30.0):
        """Waits until `condition(frames)` is true of the list of all frames so far."""
        while True:
            with self._changed:
                assert self._changed.wait_for(lambda: condition(self.frames) or self._has_no_memory(), seconds), \
                    f"not within {seconds:g} s: {what}; {self.messages}; {self.frames[-5:]}"
                if not self._has_no_memory():
                    return list(self.frames)
            self._tries_left -= 1
            self.close()
            self._start()

    def wait_for_frames(self, count, seconds=30.0):
        return self.wait_for(lambda frames: len(frames) >= count, f"{count} frames", seconds)

    @property
    def numbers(self):
        return [frame["number"] for frame in list(self.frames)]

    def close(self):
        # It ends when its input does.
        self._process.stdin.close()
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._thread.join(10)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()
