# SPDX-License-Identifier: MIT
"""The person at the test desktop: `python3 hand.py VERB [JSON]` does one thing and prints its result as JSON.

It sees the picker and the shell's panel through the accessibility tree that a screen reader would use, presses buttons
there, and has a virtual pointer and keyboard of the compositor's. It runs inside the desktop's session, a fresh process for each
verb, so that nothing of the tree is remembered.
"""

import json
import sys
import time
import warnings

import gi

gi.require_version("Atspi", "2.0")

from gi.repository import Atspi, Gio, GLib

warnings.simplefilter("ignore", DeprecationWarning)

BACKEND = "xdg-desktop-portal-gnome"
SHELL = "gnome-shell"

# GNOME 43 lists sources as list items, 48 as toggle buttons; the names of the roles changed with AT-SPI too.
BUTTONS = ("push button", "button")
ROWS = ("list item", "toggle button")
PAGES = ("page tab",)


class NotThere(Exception):
    """What was asked for is not on the screen."""


# The accessibility tree


def application(name):
    desktop = Atspi.get_desktop(0)
    for index in range(desktop.get_child_count()):
        child = desktop.get_child_at_index(index)
        if child is not None and child.get_name() == name:
            return child
    return None


def nodes(top, roles):
    """Every node below `top` with one of these roles."""
    found = [top] if top.get_role_name() in roles else []
    for index in range(top.get_child_count()):
        child = top.get_child_at_index(index)
        if child is not None:
            found += nodes(child, roles)
    return found


def named(candidates, text):
    for node in candidates:
        if text in (node.get_name() or ""):
            return node
    raise NotThere(f"{text!r} is not among {[node.get_name() for node in candidates]}")


def press(node):
    if not node.get_action_iface().do_action(0):
        raise NotThere(f"{node.get_name()!r} cannot be pressed")


def has(node, state):
    return node.get_state_set().contains(state)


# The picker


def picker_frame():
    backend = application(BACKEND)
    if backend is None:
        return None
    for frame in nodes(backend, ("frame", "dialog", "window")):
        if any("Share" in (button.get_name() or "") for button in nodes(frame, BUTTONS)):
            return frame
    return None


def the_picker():
    frame = picker_frame()
    if frame is None:
        raise NotThere("no picker is open")
    return frame


def has_pixels(node):
    """Whether a node has a size: rows of a page that is not shown have none."""
    component = node.get_component_iface()
    return component is not None and component.get_extents(Atspi.CoordType.WINDOW).width > 0


def rows(frame):
    """The rows of the page that is shown."""
    return [row for row in nodes(frame, ROWS) if has_pixels(row) and has(row, Atspi.StateType.SENSITIVE)]


def picker_open():
    return picker_frame() is not None


def picker_pages():
    return [page.get_name() for page in nodes(the_picker(), PAGES)]


def picker_page(name):
    """Turns to a page, such as `Window`."""
    frame = the_picker()
    press(named(nodes(frame, PAGES), name))
    return True


def picker_rows():
    return [row.get_name() for row in rows(the_picker())]


def picker_choose(index=None, name=None):
    """Chooses a row of the page that is shown, by its place or by a part of its name."""
    def row():
        found = rows(the_picker())
        if name is not None:
            return named(found, name)
        if index < len(found):
            return found[index]
        raise NotThere(f"row {index} of {len(found)}")

    wanted = row()
    if wanted.get_role_name() == "toggle button":
        if not has(wanted, Atspi.StateType.PRESSED):
            press(wanted)
        return True
    wanted.get_parent().get_selection_iface().select_child(wanted.get_index_in_parent())
    if not has(wanted, Atspi.StateType.SELECTED):
        # GNOME 48 has no selection in the list of windows: its rows are activated.
        activate_by_keys(row)
    return True


def activate_by_keys(node):
    """Goes to a node with the keyboard and activates it; `node` finds it anew each time."""
    for attempt in range(40):
        now = node()
        now.clear_cache()
        if has(now, Atspi.StateType.FOCUSED):
            return key("Return")
        siblings = rows(the_picker())
        # The list ends at its ends: one above is reached afterwards.
        arrow = "Down" if attempt < 20 else "Up"
        key(arrow if any(has(row, Atspi.StateType.FOCUSED) for row in siblings) else "Tab")
        time.sleep(0.1)
    raise NotThere(f"{node().get_name()!r} is not reached by the keyboard")


def picker_press(label):
    """Presses `Share` or `Cancel`."""
    button = named(nodes(the_picker(), BUTTONS), label)
    if not has(button, Atspi.StateType.SENSITIVE):
        raise NotThere(f"{label!r} cannot be pressed yet")
    press(button)
    return True


# The shell


def indicator():
    """Where the shell's own sharing indicator is on the screen: its middle, or None when it is not shown."""
    shell = application(SHELL)
    if shell is None:
        return None
    for button in nodes(shell, BUTTONS):
        name = button.get_name() or ""
        if "Stop Screen" in name and has(button, Atspi.StateType.SHOWING):
            box = button.get_component_iface().get_extents(Atspi.CoordType.SCREEN)
            if box.width > 0 and box.height > 0:
                return [box.x + box.width / 2, box.y + box.height / 2]
    return None


def call(destination, path, interface, method, signature=None, *arguments):
    bus = Gio.bus_get_sync(Gio.BusType.SESSION)
    parameters = GLib.Variant(signature, arguments) if signature else None
    return bus.call_sync(destination, path, interface, method, parameters, None, Gio.DBusCallFlags.NONE, 20000, None).unpack()


DEVICES = """
const Clutter = imports.gi.Clutter;
const seat = Clutter.get_default_backend().get_default_seat();
global.handsPointer ??= seat.create_virtual_device(Clutter.InputDeviceType.POINTER_DEVICE);
global.handsKeyboard ??= seat.create_virtual_device(Clutter.InputDeviceType.KEYBOARD_DEVICE);
const now = global.get_current_time() * 1000;
"""


def key(name):
    """Presses a key, named as in keysymdef.h."""
    for state in ("PRESSED", "RELEASED"):
        evaluate(f"{DEVICES} global.handsKeyboard.notify_keyval(now, Clutter.KEY_{name}, Clutter.KeyState.{state}); true")
        time.sleep(0.02)
    return True


def click(x, y):
    """Moves a pointer of the compositor's own there and presses its left button once."""
    evaluate(f"{DEVICES} global.handsPointer.notify_absolute_motion(now, {x}, {y}); true")
    time.sleep(0.1)
    for state in ("PRESSED", "RELEASED"):
        evaluate(f"{DEVICES} global.handsPointer.notify_button(now, Clutter.BUTTON_PRIMARY, Clutter.ButtonState.{state}); true")
        time.sleep(0.05)
    return evaluate("let [x, y] = global.get_pointer(); [x, y]")


def stop_sharing():
    """Clicks the shell's own sharing indicator."""
    place = indicator()
    if place is None:
        raise NotThere("the shell shows no sharing indicator")
    return click(*place)


def evaluate(script):
    """Runs JavaScript in the shell, which the test desktop's `--unsafe-mode` allows."""
    done, result = call("org.gnome.Shell", "/org/gnome/Shell", "org.gnome.Shell", "Eval", "(s)", script)
    if not done:
        raise NotThere(result)
    return json.loads(result) if result else None


def close_overview():
    call("org.gnome.Shell", "/org/gnome/Shell", "org.freedesktop.DBus.Properties", "Set", "(ssv)",
         "org.gnome.Shell", "OverviewActive", GLib.Variant("b", False))
    return True


def windows():
    """The shell's windows by title: the monitor that each is on and its frame."""
    return evaluate(
        "global.get_window_actors().map(a => a.meta_window).map(w => {"
        " let f = w.get_frame_rect(); return {title: w.get_title(), monitor: w.get_monitor(), frame: [f.x, f.y, f.width, f.height]}; })")


def place_window(title, monitor):
    """Puts a window onto a monitor and makes it fill that."""
    return evaluate(
        f"{{ let w = global.get_window_actors().map(a => a.meta_window).find(w => w.get_title() === {json.dumps(title)});"
        f" w.move_to_monitor({monitor}); w.maximize(3); true }}")


def monitors():
    """Each monitor's place on the stage."""
    return evaluate("Main.layoutManager.monitors.map(m => [m.x, m.y, m.width, m.height])")


def screenshot(path):
    """The whole stage without the pointer, as a PNG."""
    name = "org.gnome.Shell.Screenshot"
    done, used = call(name, "/org/gnome/Shell/Screenshot", name, "Screenshot", "(bbs)", False, False, path)
    if not done:
        raise NotThere("the shell made no screenshot")
    return used


VERBS = {verb.__name__: verb for verb in (
    picker_open, picker_pages, picker_page, picker_rows, picker_choose, picker_press, indicator, key, click, stop_sharing, evaluate,
    close_overview, windows, place_window, monitors, screenshot)}


def main(verb, arguments="{}"):
    try:
        print(json.dumps({"result": VERBS[verb](**json.loads(arguments))}))
    except (NotThere, GLib.Error) as error:
        print(json.dumps({"error": str(error)}))


if __name__ == "__main__":
    main(*sys.argv[1:])
