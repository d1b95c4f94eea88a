# SPDX-License-Identifier: MIT
"""What happens on a real desktop while something is shared: windows change and close, monitors come, go and turn, the session is locked.

The desktop decides what of it ends a share; the agent says the truth about it, and the next share is right.
"""

import os

from gi.repository import GLib

from desktop import Desktop
from processes import wait_until
from test_desktop import begin, difference, picture_of, share

SCREEN_CAST = ("org.gnome.Mutter.ScreenCast", "/org/gnome/Mutter/ScreenCast", "org.gnome.Mutter.ScreenCast")

# As D-Bus numbers them in org.gnome.Mutter.DisplayConfig.
UPRIGHT, QUARTER = 0, 1

CRIMSON, TEAL = (192, 32, 32), (0, 128, 128)


def wait_for_end(track, mark, *reasons):
    assert track.wait_for_signal("BroadcastFinished", since=mark).value[0] in (reasons or ("ended-by-desktop",))
    assert (track.state, track.get("IsBroadcastActive")) == ("listening", False)


def told(agent, mark):
    """Each end and each failed start since a mark."""
    return [event.name for event in agent.events[mark:] if event.kind == "signal" and event.name in ("BroadcastFinished", "StartFailed")]


def window(desktop, title, act):
    """Does something with a window `w` in the shell, and returns its size as GNOME shares it, without the frame that its program draws."""
    find = f"const w = global.get_window_actors().map(a => a.meta_window).find(w => w.get_title() === '{title}')"
    return tuple(desktop.hand("evaluate", script=f"{{ {find}; {act}; const f = w.get_buffer_rect(); [f.width, f.height] }}"))


def middle(picture):
    """The colour of the middle of a picture."""
    height, width = picture.shape[:2]
    return picture[height // 4:height * 3 // 4, width // 4:width * 3 // 4].reshape(-1, 3).mean(axis=0)


def is_of(colour, picture):
    return abs(middle(picture) - colour).max() < 10


def wait_to_see(track, tmp_path, colour):
    """A window that changes may be shown without its content for a moment: GNOME itself then sends pictures that are transparent."""
    wait_until(lambda: is_of(colour, picture_of(track, tmp_path)), f"{colour} to be seen")


def wait_to_see_monitor(desktop, track, tmp_path, monitor):
    """The shell may still paint what a change of the monitors changes on those that stay."""
    wait_until(lambda: difference(picture_of(track, tmp_path), desktop.screenshot_of(monitor=monitor)) < 6, f"monitor {monitor} to be seen")


# Faults: B01 B08 B10 B58
def test_a_window_is_resized_minimised_and_closed(desktop, agent, tmp_path):
    """A resized window is shown in its new size, a minimised one is shared as before, and a closed one is an end that the desktop made."""
    mark = agent.mark()
    track = share(desktop, agent, page="Window", name="teal")
    assert tuple(track.get("Size")) == window(desktop, "teal", "0")
    for size in ((640, 400), (900, 333)):
        window(desktop, "teal", f"w.unmaximize(3); w.move_resize_frame(false, 1300, 60, {size[0]}, {size[1]})")
        track.wait_until("Size", lambda shown: tuple(shown) == window(desktop, "teal", "0") and abs(shown[0] - size[0]) < 32)
        wait_to_see(track, tmp_path, TEAL)

    window(desktop, "teal", "w.minimize()")
    wait_until(lambda: desktop.hand("evaluate", script="global.get_window_actors().some(a => a.meta_window.minimized)"), "the minimised window")
    # GNOME does not pause the stream, so nothing is told; who comes now gets the last picture.
    wait_to_see(track, tmp_path, TEAL)
    assert (track.state, track.get("SourcePaused"), told(agent, mark)) == ("active", False, [])

    window(desktop, "teal", "w.unminimize(); w.move_resize_frame(false, 1300, 60, 500, 500)")
    track.wait_until("Size", lambda shown: tuple(shown) == window(desktop, "teal", "0") and abs(shown[1] - 500) < 32)
    wait_to_see(track, tmp_path, TEAL)

    mark = agent.mark()
    window(desktop, "teal", "w.delete(global.get_current_time())")
    wait_for_end(track, mark)
    desktop.hand.wait_for_no_indicator()
    share(desktop, agent, index=0)


# Faults: B20 B44 B09
def test_a_monitor_is_turned_and_moved(desktop, agent, tmp_path):
    """GNOME ends the share of a monitor that is turned or moved; that is told, and what is shared next is upright. Others may go as they like."""
    track = share(desktop, agent, index=0)
    # The other one is switched off, and on again: nothing to the share.
    mark = agent.mark()
    desktop.arrange((0, 0, 0, 1, UPRIGHT))
    wait_to_see_monitor(desktop, track, tmp_path, 0)
    desktop.arrange((0, 0, 0, 1, UPRIGHT), (1, 1280, 0, 1, UPRIGHT))
    wait_to_see_monitor(desktop, track, tmp_path, 0)
    assert (track.state, told(agent, mark)) == ("active", [])

    desktop.arrange((0, 0, 0, 1, QUARTER), (1, 720, 0, 1, UPRIGHT))
    wait_for_end(track, mark)
    share(desktop, agent, {"max_size": (1280, 1280)}, index=0)
    assert tuple(track.get("Size")) == (720, 1280)
    wait_to_see_monitor(desktop, track, tmp_path, 0)

    mark = agent.mark()
    desktop.arrange((0, 1024, 0, 1, UPRIGHT), (1, 0, 0, 1, UPRIGHT))
    wait_for_end(track, mark)
    desktop.hand.wait_for_no_indicator()


class VirtualMonitor:
    """A monitor that a program of the desktop's makes, as a remote desktop does. Its mode is what the program that looks at it asks for."""

    def __init__(self, desktop):
        self.desktop = desktop
        self.client = desktop.new_client()
        self.client.record(SCREEN_CAST[0])
        (self.session,) = self.client.call(*SCREEN_CAST, "CreateSession", GLib.Variant("(a{sv})", ({},)))
        self.call("RecordVirtual", GLib.Variant("(a{sv})", ({},)))
        self.call("Start")
        (self.node,) = self.client.wait_for("signal", "PipeWireStreamAdded").value
        self.viewer = None

    def call(self, member, arguments=None):
        return self.client.call(SCREEN_CAST[0], self.session, f"{SCREEN_CAST[2]}.Session", member, arguments)

    def set_mode(self, width, height):
        if self.viewer:
            self.desktop.processes.end(self.viewer)
        self.viewer = self.desktop.start("viewer", [
            "gst-launch-1.0", "-q", "pipewiresrc", f"path={self.node}", "!", f"video/x-raw,width={width},height={height},max-framerate=30/1", "!",
            "fakesink"])
        wait_until(lambda: self.desktop.monitors()[-1][1] == (width, height), f"a mode of {width}x{height}", every=0.1)
        self.desktop.stage = self.desktop.hand("monitors")

    def remove(self):
        self.call("Stop")
        self.desktop.processes.end(self.viewer)


# Faults: B09 B44
def test_a_monitor_comes_changes_its_mode_and_goes(desktop, agent, tmp_path):
    """A monitor is plugged in beside the shared one, shared itself, gets another mode, and is unplugged: each end is told, the next share is right."""
    # Those that the desktop began with have one mode for ever; those that come later have the mode that is asked for.
    assert [size for _, size, _ in desktop.monitors()] == [(1280, 720), (1024, 768)]
    track = share(desktop, agent, index=0)
    mark = agent.mark()
    monitor = VirtualMonitor(desktop)
    monitor.set_mode(800, 600)
    wait_to_see_monitor(desktop, track, tmp_path, 0)
    assert (track.state, told(agent, mark)) == ("active", [])
    agent.set_screen_share(False)

    share(desktop, agent, index=2)
    assert tuple(track.get("Size")) == (800, 600)
    mark = agent.mark()
    monitor.set_mode(1000, 500)
    wait_for_end(track, mark)
    share(desktop, agent, index=2)
    assert tuple(track.get("Size")) == (1000, 500)
    wait_to_see_monitor(desktop, track, tmp_path, 2)

    mark = agent.mark()
    monitor.remove()
    wait_for_end(track, mark)
    desktop.hand.wait_for_no_indicator()
    share(desktop, agent, index=0)


SCALED = """
[org/gnome/mutter]
experimental-features=['scale-monitor-framebuffer']
"""


# Faults: B52
def test_a_monitor_gets_another_scale(tmp_path):
    """At a scale of 2 the desktop speaks of half the size: both are told, and what is sent has the pixels."""
    with Desktop(monitors=("1920x1200",), settings=SCALED) as desktop:
        desktop.open_window("crimson", "c02020", monitor=0)
        _, agent = desktop.start_agent()
        assert 2 in desktop.monitors()[0][2]
        track = share(desktop, agent, {"max_size": (1920, 1200)}, index=0)
        mark = agent.mark()
        desktop.arrange((0, 0, 0, 2, UPRIGHT))
        wait_for_end(track, mark)
        share(desktop, agent, {"max_size": (1920, 1200)}, index=0)
        (source,) = track.get("Sources")
        assert (tuple(source["logical-size"]), tuple(source["pixel-size"])) == ((960, 600), (1920, 1200))
        wait_to_see(track, tmp_path, CRIMSON)


# Faults: B06
def test_a_locked_session_is_not_shown(desktop, tmp_path):
    """While the shell's own lock screen is up readers get the placeholder, and the share goes on; unlocked, they see the desktop again."""
    # The session that logind knows, for the shell and for the agent.
    system = desktop.system
    system.call("org.freedesktop.login1", "/org/freedesktop/login1", "org.freedesktop.DBus.Mock", "AddSession",
                GLib.Variant("(ssusb)", ("auto", "seat0", os.getuid(), "someone", True)))
    _, agent = desktop.start_agent()
    track = share(desktop, agent, index=0)
    # A shell without a display manager has no lock screen, and so no org.gnome.ScreenSaver: it is given its own.
    assert desktop.client.owner("org.gnome.ScreenSaver") is None and desktop.hand("evaluate", script="Main.screenShield === null")
    desktop.hand("evaluate", script="imports.gi.GLib.setenv('XDG_SESSION_ID', 'auto', true);"
                                    " Main.screenShield = new imports.ui.screenShield.ScreenShield(); true")
    subscription = track.subscribe()
    recording = subscription.record(tmp_path / "lock.webm")
    subscription.wait_until("Statistics", lambda statistics: statistics["sent"] >= 1)
    wait_until(lambda: desktop.hand("evaluate", script="Main.screenShield._loginSession !== undefined && Main.screenShield._loginSession !== null"),
               "the shell's session", every=0.1)
    mark, sent = agent.mark(), subscription.statistics["sent"]
    desktop.hand("evaluate", script="Main.screenShield.lock(false); true")
    wait_until(lambda: desktop.hand("evaluate", script="Main.sessionMode.currentMode === 'unlock-dialog'"), "the lock screen", every=0.1)
    subscription.wait_until("Statistics", lambda statistics: statistics["sent"] > sent)
    late = track.subscribe()
    assert (track.state, track.get("Muted"), told(agent, mark)) == ("active", False, [])
    assert late.statistics["sent"] == 0
    desktop.hand("evaluate", script="Main.screenShield.deactivate(false); true")
    late.wait_until("Statistics", lambda statistics: statistics["sent"] >= 1)
    # The shell says that it is unlocked, and then has its lock screen go.
    wait_to_see(track, tmp_path, CRIMSON)
    subscription.unsubscribe()
    pictures = recording.wait_for_end().frames()
    crimson, black = [is_of(CRIMSON, one) for one in pictures], [middle(one).max() < 60 for one in pictures]
    assert crimson[0] and any(black) and crimson[-1]
    # While it is locked the lock screen itself is not among them: the placeholder is black.
    unlocked = len(black) - black[::-1].index(True)
    assert all(shown or hidden for shown, hidden in zip(crimson[:unlocked], black))


# Faults: B07 B44 B55
def test_the_shells_indicator_ends_a_share_in_each_state(desktop, agent, tmp_path):
    """The shell's indicator is lit while something is shared, and a click on it is an end in each state; a picker alone lights none."""
    track = agent.desktop
    pending = begin(agent)
    desktop.hand.wait_for_picker()
    assert desktop.hand("indicator") is None
    desktop.hand.share(index=0)
    pending.wait()
    switch = None
    for state in ("muted", "switching", "paused", "minimised"):
        if state == "minimised":
            share(desktop, agent, page="Window", name="teal")
            window(desktop, "teal", "w.minimize()")
        elif track.state != "active":
            share(desktop, agent, index=0)
        if state == "muted":
            track.mute()
        elif state == "switching":
            switch = track.begin_switch(wait=True)
            desktop.hand.wait_for_picker()
        elif state == "paused":
            track.subscribe().set("Paused", "b", True)
        mark = agent.mark()
        desktop.hand.stop_sharing()
        track.wait_for_signal("BroadcastFinished", since=mark)
        # GNOME 43's backend crashes when its picker goes together with a session, mostly after it has said that this one is closed, but not always.
        crashed = state == "switching" and desktop.backend.poll() is not None
        wait_for_end(track, mark, *(("ended-by-desktop", "source-removed") if crashed else ()))
        desktop.hand.wait_for_no_indicator()
        if state == "switching":
            wait_until(lambda: switch.done, "an answer to the switch")
            desktop.hand.wait_for_no_picker()
        assert told(agent, mark) == [*(["StartFailed"] if state == "switching" else []), "BroadcastFinished"], state
        track.mute(False)
