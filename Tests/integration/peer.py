# SPDX-License-Identifier: MIT
"""A client of the session bus in a process of its own: it makes the calls that come as lines on its standard input. See peers.py."""

import json
import sys

from gi.repository import Gio, GLib


def answer(connection, kept, path, interface, member, arguments):
    try:
        reply, descriptors = connection.call_with_unix_fd_list_sync(
            "org.vitrine.ScreenShare1", path, interface, member, GLib.Variant.parse(None, arguments, None, None), None,
            Gio.DBusCallFlags.NONE, 60_000, None, None)
    except GLib.Error as error:
        name = Gio.DBusError.get_remote_error(error) or "local"
        return {"error": name, "message": error.message.removeprefix(f"GDBus.Error:{name}: ")}
    # As long as this process lives, its streams have a reader.
    kept.append(descriptors and descriptors.steal_fds())
    return {"reply": reply.print_(True)}


def main():
    connection = Gio.bus_get_sync(Gio.BusType.SESSION)
    connection.set_exit_on_close(False)
    print(json.dumps({"name": connection.get_unique_name()}), flush=True)
    kept = []
    for line in sys.stdin:
        print(json.dumps(answer(connection, kept, *json.loads(line))), flush=True)


main()
