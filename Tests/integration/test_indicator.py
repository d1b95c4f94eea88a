# SPDX-License-Identifier: MIT
"""What people see while something is shared: a mark with a menu, or a notification; and when they see nothing."""

import pytest
from gi.repository import GLib

import peers
from bus import BusError
from screen import TestScreen
from services import Notifications, Panel, Service

SHARED, MUTED = "Your screen is shared", "Screen sharing is muted"


@pytest.fixture
def screen(session):
    return TestScreen(session.client)


def configure(session, mode):
    folder = session.root / "config" / "vitrine"
    folder.mkdir(exist_ok=True)
    (folder / "vitrine.conf").write_text(f"indicator = {mode}\n")


def test_a_mark_in_the_panel(session, agent, screen):
    """While something is shared, and only then, a mark is in the panel; its menu says what, by whom and for how many, mutes, and stops."""
    panel, notifications = Panel(session), Notifications(session)
    agent.desktop.start_capture()
    screen.configure(answer="never")
    agent.desktop.begin_broadcast()
    screen.wait_for_picker()
    assert not panel.items, "what only listens or is being chosen is not shown"
    agent.desktop.stop_capture()
    screen.configure(answer="ok")
    agent.set_screen_share(True, wait=True, title="my_lesson")
    (name,) = panel.wait_for()
    item = panel.item(name)
    assert (item["Category"], item["Status"], item["ItemIsMenu"]) == ("SystemServices", "Active", True)
    assert item["ToolTip"][2] == SHARED and "my_lesson" in item["ToolTip"][3]
    (headline, _), (detail, _), *acts = panel.menu()
    assert headline.replace("__", "_") == f"Monitor, 1280×720 · “my_lesson” · exe:{peers.PYTHON}"
    assert detail.startswith("Since ") and detail.endswith(" · 0 readers")
    assert acts == [["Mute", True], ["Stop sharing", True]]
    reader = agent.desktop.subscribe()
    assert panel.menu("Mute")[1][0].endswith(" · 1 reader")
    agent.desktop.wait_until("Muted", True)
    assert ["Show again", True] in panel.menu() and panel.item(name)["ToolTip"][2] == MUTED
    panel.menu("Show again")
    agent.desktop.wait_until("Muted", False)
    mark = agent.mark()
    panel.menu("Stop sharing")
    finished = agent.desktop.wait_for_signal("BroadcastFinished", since=mark)
    assert finished.value == ("stopped", "stopped in the indicator")
    assert agent.desktop.state == "listening", "it can be started again"
    panel.wait_for(0)
    assert not notifications.shown and not notifications.closed
    reader.close()
    agent.set_screen_share(True, wait=True)
    assert panel.wait_for() and not panel.menu()[0][1]


@pytest.mark.skipif(not peers.sandboxing_works(), reason="this machine lets nobody make a sandbox (bwrap --unshare-user)")
def test_a_sandboxed_program_clicks_nothing(session, agent):
    """The menu is for panels: what a program in a sandbox may not do by a call it does not do by a click either."""
    panel = Panel(session)
    agent.set_screen_share(True, wait=True)
    agent.desktop.mute()
    panel.wait_for()
    refused = 0
    with peers.sandboxed(session) as peer:
        for number in range(1, 8):
            try:
                peer.call("/StatusNotifierItem/Menu", "com.canonical.dbusmenu", "Event",
                          GLib.Variant("(isvu)", (number, "clicked", GLib.Variant("i", 0), 0)))
            except BusError:
                refused += 1
    assert refused < 7, "some of them are items"
    assert agent.desktop.get("Muted") and agent.desktop.state == "active"


def test_several_shares(session, agent):
    """Each share has its own place in the menu, and is stopped by itself."""
    panel = Panel(session)
    track = agent.create_track(title="second")
    track.start_capture()
    agent.set_screen_share(True, wait=True, title="first")
    track.start_broadcast(wait=True)
    panel.wait_for()
    labels = [label for label, _ in panel.menu()]
    assert len(labels) == 8 and "first" in labels[0] and "second" in labels[4]
    agent.set_screen_share(False)
    labels = [label for label, _ in panel.menu("Stop sharing")]
    assert len(labels) == 4 and "second" in labels[0]
    track.wait_until("State", "listening")
    panel.wait_for(0)


def test_a_notification_where_no_panel_takes_marks(session, agent):
    """Without a panel there is a notification with Stop; one that was closed does not come back for the same share."""
    notifications = Notifications(session)
    agent.set_screen_share(True, wait=True, title="lesson")
    ((_, body, _),) = notifications.wait_for(SHARED)
    assert "lesson" in body
    agent.desktop.mute()
    notifications.wait_for(MUTED)
    agent.desktop.mute(False)
    notifications.wait_for(SHARED)
    mark = agent.mark()
    notifications.press(notifications.numbers(SHARED)[0], "stop")
    agent.desktop.wait_for_signal("BroadcastFinished", since=mark)
    notifications.wait_for(SHARED, 0)
    agent.set_screen_share(True, wait=True)
    notifications.wait_for(SHARED)
    notifications.dismiss(notifications.numbers(SHARED)[0])
    agent.desktop.mute()
    agent.desktop.mute(False)
    other = agent.create_track()
    other.start_capture()
    assert not notifications.shown
    other.start_broadcast(wait=True)
    notifications.wait_for(SHARED)


def test_a_panel_that_comes_and_goes(session, agent):
    """The mark follows the panel: a notification stands in for it while there is none, or none that shows marks."""
    notifications = Notifications(session)
    agent.set_screen_share(True, wait=True)
    notifications.wait_for(SHARED)
    panel = Panel(session, has_host=False)
    notifications.wait_for(SHARED)
    panel.add_host()
    panel.wait_for()
    notifications.wait_for(SHARED, 0)
    panel.close()
    notifications.wait_for(SHARED)
    panel = Panel(session)
    panel.wait_for()
    notifications.wait_for(SHARED, 0)


@pytest.mark.parametrize("shell", ["org.gnome.Shell", "org.kde.plasmashell"])
def test_desktops_that_show_it_themselves(session, agent, shell):
    """A shell with an indicator of its own is left to it, unless the person asks for ours; `never` is never."""
    notifications, desktop = Notifications(session), Service(session.bus_address, shell)
    desktop.own()
    agent.set_screen_share(True, wait=True)
    agent.set_screen_share(False)
    configure(session, "always")
    agent.set_screen_share(True, wait=True)
    notifications.wait_for(SHARED)
    agent.set_screen_share(False)
    notifications.wait_for(SHARED, 0)
    assert len(notifications.closed) == 1, "the first share was left to the shell"
    configure(session, "never")
    agent.set_screen_share(True, wait=True)
    desktop.close()
    agent.set_screen_share(False)
    configure(session, "auto")
    agent.set_screen_share(True, wait=True)
    notifications.wait_for(SHARED)
    assert len(notifications.closed) == 1
