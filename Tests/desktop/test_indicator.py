# SPDX-License-Identifier: MIT
"""What people see of a share on a real shell: its mark in a real panel, and a real notification."""

import pytest

from desktop import PANEL_OF_MARKS, Desktop
from processes import wait_until

MARKS = "Object.keys(Main.panel.statusArea).filter(name => name.includes('StatusNotifierItem'))"
MENU = f"Main.panel.statusArea[{MARKS}[0]].menu"
LABELS = f"{MENU}._getMenuItems().map(item => item.label?.text ?? '')"
NOTIFICATIONS = "Main.messageTray.getSources().flatMap(source => source.notifications)"


def share(desktop):
    """A share of the first monitor, which the person has asked to be shown in any case: this shell would show it by itself."""
    folder = desktop.root / "home" / ".config" / "vitrine"
    folder.mkdir()
    (folder / "vitrine.conf").write_text("indicator = always\n")
    _, agent = desktop.start_agent()
    pending = agent.start_screen_share(True, wait=True, title="lesson")
    desktop.hand.share(index=0)
    pending.wait()
    return agent


def middle_of(desktop, script):
    """Where an actor of the shell is on the stage."""
    return desktop.hand("evaluate", script=f"{{ const a = {script}; const [x, y] = a.get_transformed_position(); [x + a.width / 2, y + a.height / 2] }}")


@pytest.fixture
def desktop_with_marks():
    with Desktop(settings=PANEL_OF_MARKS) as desktop:
        yield desktop


def test_the_mark_in_the_panel_stops_the_share(desktop_with_marks):
    """The mark is in the panel while something is shared; a click opens its menu, a click on Stop ends the share, and the mark goes."""
    desktop = desktop_with_marks
    agent = share(desktop)
    item = f"{MENU}._getMenuItems().find(item => item.label?.text === 'Stop sharing')"
    mark, seen = agent.mark(), []

    def stopped():
        try:
            seen.append(desktop.hand("evaluate", script=LABELS))
            desktop.hand("evaluate", script=f"{MENU}.open(); true")
            if desktop.hand("evaluate", script=f"{item}.mapped"):
                x, y = middle_of(desktop, item)
                desktop.hand("click", x=x, y=y)
        except LookupError:
            # This panel may lose the mark when it has it for a second; it is announced again.
            pass
        return agent.desktop.state == "listening"

    wait_until(stopped, "the share stopped in the mark's menu", seconds=60, every=0.5)
    labels = seen[-1]
    assert labels[0].startswith("exe:") and labels[0].endswith(" · Monitor, 1280×720 · “\u2068lesson\u2069”") and labels[2:] == ["Mute", "Stop sharing"]
    finished = agent.desktop.wait_for_signal("BroadcastFinished", since=mark)
    assert finished.value[0] == "stopped"
    wait_until(lambda: not desktop.hand("evaluate", script=MARKS), "the mark gone", every=0.2)


def test_the_notification_stops_the_share(desktop):
    """Where the panel takes no marks a notification says what is shared; its button ends the share, and it goes."""
    agent = share(desktop)
    titles = f"{NOTIFICATIONS}.map(one => one.title)"
    wait_until(lambda: "Your screen is shared" in desktop.hand("evaluate", script=titles), "the notification", every=0.2)
    mark = agent.mark()
    desktop.hand("evaluate", script=f"{{ const one = {NOTIFICATIONS}.find(one => one.title === 'Your screen is shared');"
                                    " one.actions.find(action => action.label === 'Stop sharing').callback(); true }")
    agent.desktop.wait_for_signal("BroadcastFinished", since=mark)
    wait_until(lambda: "Your screen is shared" not in desktop.hand("evaluate", script=titles), "the notification gone", every=0.2)
