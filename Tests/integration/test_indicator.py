# SPDX-License-Identifier: MIT
"""What people see while something is shared: a mark with a menu, or a notification; and when they see nothing."""

import pytest
from gi.repository import GLib

import peers
from bus import BusError
from processes import wait_until
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
    assert headline.replace("__", "_") == f"exe:{peers.PYTHON} · Monitor, 1280×720 · “\u2068my_lesson\u2069”", "who it is first, its own words last"
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


@pytest.mark.parametrize("reason", [3, 1, 4])
def test_a_notification_that_nobody_has_dismissed(session, agent, reason):
    """What another program closes is shown again, what the desktop takes away when there is something new; it is no Stop, and no wish of the person's."""
    notifications = Notifications(session)
    agent.set_screen_share(True, wait=True)
    for _ in range(2):
        notifications.wait_for(SHARED)
        notifications.take_away(notifications.numbers(SHARED)[0], reason)
        if reason != 3:
            agent.desktop.mute()
            notifications.wait_for(MUTED)
            agent.desktop.mute(False)
    notifications.wait_for(SHARED)
    assert agent.desktop.state == "active"
    notifications.dismiss(notifications.numbers(SHARED)[0])
    agent.desktop.mute()
    agent.desktop.mute(False)
    assert not notifications.shown and agent.desktop.state == "active"


def test_a_desktop_that_shows_notifications_anew(session, agent):
    """What one program showed is shown by the next one that shows notifications."""
    notifications = Notifications(session)
    agent.set_screen_share(True, wait=True)
    notifications.wait_for(SHARED)
    notifications.close()
    again = Notifications(session)
    again.wait_for(SHARED)
    agent.set_screen_share(False)
    again.wait_for(SHARED, 0)


def test_a_desktop_that_shows_notifications_late(session, agent):
    """Who begins to show notifications in the middle of a share shows that one."""
    agent.set_screen_share(True, wait=True)
    wait_until(lambda: "shows no notifications" in session.processes.log("agent"), "the agent to see that there are none")
    Notifications(session).wait_for(SHARED)


@pytest.mark.parametrize("how", ["the name is taken", "refuse", "never"])
def test_a_panel_that_does_not_take_the_mark(session, agent, how):
    """Where the panel is there, and does not show the mark, a notification stands in for it; the next share tries the panel again."""
    panel, notifications = Panel(session), Notifications(session)
    name = f"org.kde.StatusNotifierItem-{session.agent_process.pid}-1"
    if how == "the name is taken":
        squatter = Service(session.bus_address, name)
        squatter.own()
    else:
        panel.answer = how
    agent.set_screen_share(True, wait=True)
    notifications.wait_for(SHARED)
    assert panel.items == []
    agent.set_screen_share(False)
    notifications.wait_for(SHARED, 0)
    if how == "the name is taken":
        squatter.close()
        session.wait_for_no_name(name)
    panel.answer = "ok"
    agent.set_screen_share(True, wait=True)
    panel.wait_for()
    assert len(notifications.closed) == 1 and not notifications.shown


def test_a_panel_that_is_late(session, agent):
    """A notification stands in for the mark while the panel does not answer, and goes when it shows the mark at last."""
    panel, notifications = Panel(session), Notifications(session)
    panel.answer = "never"
    agent.set_screen_share(True, wait=True)
    notifications.wait_for(SHARED)
    panel.answer_at_last()
    panel.wait_for()
    notifications.wait_for(SHARED, 0)
    agent.set_screen_share(False)
    panel.wait_for(0)
    assert len(notifications.closed) == 1


class Squatter:
    """A program in a sandbox that has taken names of the desktop's, and answers as the desktop would (see squatter.py)."""

    def __init__(self, session, *kinds):
        command = [*peers.USER_NAMESPACE, peers.PYTHON, peers.PEER.with_name("squatter.py"), session.bus_address, *kinds]
        session.start("squatter", command)
        self._log = lambda: session.processes.log("squatter")
        wait_until(lambda: "ready" in self._log(), "the squatter")

    def wait_for(self, words):
        wait_until(lambda: words in self._log(), f"the squatter: {words}")


needs_sandbox = pytest.mark.skipif(not peers.sandboxing_works(), reason="this machine lets nobody make a sandbox (bwrap --unshare-user)")


@needs_sandbox
@pytest.mark.parametrize("name", ["org.kde.StatusNotifierWatcher", "org.gnome.Shell", "org.kde.plasmashell"])
def test_a_sandboxed_program_is_no_desktop(session, agent, name):
    """A program in a sandbox that takes the name of a panel, or of a shell that shows shares by itself, keeps nobody from being told."""
    Squatter(session, name)
    notifications = Notifications(session)
    agent.set_screen_share(True, wait=True)
    notifications.wait_for(SHARED)
    assert "is not believed" in session.processes.log("agent")


@needs_sandbox
def test_a_sandboxed_program_presses_no_button(session, agent):
    """A program in a sandbox that shows the notifications of a desktop without any does not stop what it may not stop."""
    squatter = Squatter(session, "org.freedesktop.Notifications")
    agent.set_screen_share(True, wait=True)
    squatter.wait_for("pressed")
    for _ in range(20):
        assert agent.desktop.state == "active"
        agent.client.owner("org.freedesktop.Notifications")
    assert agent.desktop.state == "active"


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
    panel.remove_host()
    notifications.wait_for(SHARED)
    panel.add_host()
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
