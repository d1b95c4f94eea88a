# SPDX-License-Identifier: MIT
"""menu.py NAME PATH [LABEL ...]: reads a menu of the bus with libdbusmenu, as panels do; clicks the items of these labels; prints all labels."""

import json
import sys

import gi

gi.require_version("Dbusmenu", "0.4")

from gi.repository import Dbusmenu, GLib

name, path, *clicks = sys.argv[1:]
client = Dbusmenu.Client(dbus_name=name, dbus_object=path)
loop = GLib.MainLoop()


def read(*_):
    root = client.get_root()
    items = root.get_children() if root else []
    if not items:
        return True
    labels = [item.property_get("label") for item in items if item.property_get("type") != "separator"]
    if None in labels:
        return True
    for item in items:
        if item.property_get("label") in clicks:
            item.handle_event("clicked", GLib.Variant("i", 0), 0)
    print(json.dumps([[label, any(item.property_get("label") == label and item.property_get_bool("enabled") for item in items)]
                      for label in labels]))
    # What was clicked is on its way when the bus has answered.
    GLib.timeout_add(300, loop.quit)
    return False


GLib.timeout_add(50, read)
GLib.timeout_add_seconds(20, loop.quit)
loop.run()
