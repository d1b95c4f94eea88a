# SPDX-License-Identifier: MIT
"""The compositor of a real desktop dies, and with it the portal's backend, the picker and every source: the agent lives on, and serves the next desktop."""

import signal
import time

import pytest

from contract import refused
from desktop import Desktop
from harness import ERROR, PORTAL
from processes import wait_until
from test_desktop import begin, picture_of, share


# Faults: B09 B10 B45 B47
@pytest.mark.parametrize("state", ["choosing", "active", "muted"])
def test_the_compositor_dies(state, tmp_path, measured):
    """Killed in each state: told once, with a reason; the agent rests; and when the compositor is back, a share works without a restart of the agent."""
    with Desktop() as desktop:
        process, agent = desktop.start_agent()
        track = agent.desktop
        pending = begin(agent)
        desktop.hand.wait_for_picker()
        if state != "choosing":
            desktop.hand.share(index=0)
            pending.wait()
        if state == "muted":
            track.mute()
        mark, died = agent.mark(), time.monotonic()
        desktop.processes.end(desktop.shell, first=signal.SIGKILL)
        if state == "choosing":
            assert refused(pending.wait).name in [ERROR + name for name in ("Cancelled", "Failed", "PortalUnavailable")]
        name = "StartFailed" if state == "choosing" else "BroadcastFinished"
        told = track.wait_for_signal(name, since=mark)
        measured("ms from a death until the agent's state is right", "compositor", state, f"{(told.at - died) * 1000:.0f}")
        if state != "choosing":
            assert told.value[0] in ("source-removed", "ended-by-desktop", "portal-lost")
        assert (track.state, agent.get("IsBroadcastActive")) == ("listening", False)
        # The portal may go too, or stay and be told to.
        desktop.processes.end(desktop.portal)
        wait_until(lambda: desktop.client.owner(PORTAL) is None, "no portal")
        assert [e.name for e in agent.events[mark:] if e.kind == "signal" and e.name in ("StartFailed", "BroadcastFinished")] == [name]
        track.mute(False)
        desktop.start_shell()
        desktop.start_portal()
        share(desktop, agent, index=0)
        assert picture_of(track, tmp_path).shape == (720, 1280, 3)
        agent.set_screen_share(False)
        assert process.poll() is None
