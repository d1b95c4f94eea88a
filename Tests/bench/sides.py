# SPDX-License-Identifier: MIT
"""The two that are compared, each from the portal's grant to bytes of WebM in a pipe."""

import os
import signal

from gi.repository import GLib

from screen import Cast

# Of libvpx's threads: GStreamer's documentation and every example give it the cores.
GSTREAMER_THREADS = 2
# Vitrine makes a key frame when one is needed, and one in so many pictures.
KEY_FRAME_DISTANCE = 3000


class Vitrine:
    """The agent, started anew, with one reader."""

    name = "vitrine"

    def __init__(self, session, workload, readers=1, **options):
        self._session = session
        session.start_agent()
        self.pid = session.agent_process.pid
        self.agent = session.agent()
        self.track = self.agent.desktop
        self.subscriptions = [self.track.subscribe() for _ in range(readers)]
        self.descriptors = [one.take() for one in self.subscriptions]
        self.agent.set_screen_share(True, wait=True, cursor="hidden", preset=workload.preset, multiple=workload.sources > 1, **options)

    @property
    def statistics(self):
        return self.track.statistics

    def end(self):
        self.agent.set_screen_share(False)
        assert self._session.end_agent() == 0
        self._session.wait_for_no_name("org.vitrine.ScreenShare1")


class GStreamer:
    """What a program would do that has GStreamer: the same grant, the same codec, bit rate, rate control and rule for key frames."""

    name = "gstreamer"
    statistics = {}

    def __init__(self, session, workload):
        self._session = session
        self._cast = Cast(session.new_client())
        # The pointer is hidden, as on the other side.
        (node, _), = self._cast.granted(types=GLib.Variant("u", 1), cursor_mode=GLib.Variant("u", 1))
        remote = self._cast.open_remote()
        reading, writing = os.pipe()
        command = [
            "gst-launch-1.0", "-q", "pipewiresrc", f"fd={remote}", f"path={node}", "!", "videoconvert", "!",
            "vp8enc", "deadline=1", "cpu-used=8", f"threads={GSTREAMER_THREADS}", "end-usage=cbr", f"target-bitrate={workload.bitrate}",
            "keyframe-mode=disabled", f"keyframe-max-dist={KEY_FRAME_DISTANCE}", "!", "webmmux", "streamable=true", "!", "fdsink", f"fd={writing}",
        ]
        self._process = session.start("gstreamer", command, pass_fds=[remote, writing])
        os.close(remote)
        os.close(writing)
        self.pid = self._process.pid
        self.descriptors = [reading]

    def end(self):
        self._session.processes.end(self._process, first=signal.SIGINT)
        self._cast.close()
        self._cast.client.close()
