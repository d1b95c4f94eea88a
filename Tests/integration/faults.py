# SPDX-License-Identifier: MIT
"""Faults that screen sharing shipped with elsewhere, and where each is reproduced here.

A test names the faults that it reproduces in a comment above it, `Faults: B01 B02`; `python3 Tests/integration/faults.py` prints the table.
"""

import re
from pathlib import Path

TESTS = Path(__file__).resolve().parents[1]

# What was seen, and one place where it was reported.
FAULTS = {
    "B01": "a capture freezes when the window is resized (pop-os/xdg-desktop-portal-cosmic#72)",
    "B02": "an encoder refuses a size above its first one (pion/mediadevices#282)",
    "B03": "a consumer that holds both buffers of a pool of two stops the source for ever (emersion/xdg-desktop-portal-wlr#390)",
    "B04": "the first picture is dropped, and there is no second (bquenin/pipewire-capture#35)",
    "B05": "a source out of buffers is not told from one that stands still (hyprwm/xdg-desktop-portal-hyprland#423)",
    "B06": "frozen after suspend or a locked screen (obsproject/obs-studio#12423)",
    "B07": "the stream pauses when the person ends it, and the program keeps trying (lamco-admin/lamco-rdp-server#30)",
    "B08": "no pictures of a minimised window are taken for an error (ammen99/wf-recorder#338)",
    "B09": "an output is unplugged, and later starts fail too (pop-os/xdg-desktop-portal-cosmic#91)",
    "B10": "the captured window is closed, and the stream hangs (pop-os/xdg-desktop-portal-cosmic#83)",
    "B12": "sheared pictures where rows have padding (obsproject/obs-studio#6609)",
    "B13": "red and blue exchanged, or three bytes a pixel read as four (emersion/xdg-desktop-portal-wlr#190)",
    "B14": "one corrupted buffer is fatal (CapSoftware/Cap#1946)",
    "B15": "old pictures flash when only the cursor moves (obsproject/obs-studio#8630)",
    "B17": "cursor metadata of another size are never agreed on (SECHAK-AG/capptivo#32)",
    "B18": "odd sizes: a green line, or bytes beyond the buffer (SeaDve/Kooha#357)",
    "B19": "washed-out colours: the wrong range or matrix (bugs.kde.org 507015)",
    "B20": "rotated outputs are shown sideways or cut off (emersion/xdg-desktop-portal-wlr#83)",
    "B21": "a source of ten bits a colour: wrong colours, or no agreement and no word (obsproject/obs-studio#11207)",
    "B23": "memory of a buffer that was taken back, or is shorter than it says, is read (emersion/xdg-desktop-portal-wlr#375)",
    "B24": "a buffer is read while the source paints in it again (obsproject/obs-studio#11699)",
    "B25": "a backend that cannot start is not told from a no (emersion/xdg-desktop-portal-wlr#289)",
    "B26": "a source of tiled memory alone: black, or a hang (niri-wm/niri#2223)",
    "B27": "a rate of 0/1, or none, breaks the negotiation (emersion/xdg-desktop-portal-wlr#372)",
    "B29": "irregular rates are forced into a clock's (emersion/xdg-desktop-portal-wlr#351)",
    "B30": "a still screen costs time (LizardByte/Sunshine#5748)",
    "B31": "memory grows with an encoder that is too slow (bugs.kde.org 469005)",
    "B32": "descriptors leak with each share (PipeWire/pipewire#181)",
    "B33": "a buffer is used after it was taken back, or a lock is held over it (GNOME/gnome-remote-desktop f4fa605)",
    "B34": "stopping hangs, or loses the end of a recording (bugs.kde.org 489434)",
    "B35": "two pictures have one time, and the decoder fails (bugs.kde.org 518009)",
    "B37": "a video is shorter than it was (getopenscreen/openscreen#511)",
    "B38": "a no casts a default, or is called an error (pantarune/niri-screenshare#3)",
    "B39": "two pickers, or endless ones (electron/electron#30652)",
    "B40": "a portal that does not answer blocks the program (flatpak/xdg-desktop-portal#274)",
    "B41": "at login the portal has no screen cast yet, and never has one later (emersion/xdg-desktop-portal-wlr#39)",
    "B42": "a token of other characters ends the portal (flatpak/xdg-desktop-portal#1747)",
    "B43": "tokens that are used twice mix two requests up (flatpak/xdg-desktop-portal#1875)",
    "B44": "the person ends the share, and the program never hears of it (flatpak/xdg-desktop-portal#508)",
    "B45": "a stream goes on though its portal has died (niri-wm/niri#3258)",
    "B47": "a portal or backend that crashes or hangs takes the program with it (flatpak/xdg-desktop-portal#501)",
    "B48": "a token to skip the picker is lost, or kept too long (flatpak/xdg-desktop-portal#1862)",
    "B49": "a remembered choice shares another window of the same program (noctalia-dev/xdg-desktop-portal-umbriel#5)",
    "B50": "a camera is shown where the granted source is gone (workbenchdev/Workbench#377)",
    "B52": "logical sizes are taken for pixels (rustdesk/rustdesk#6116)",
    "B53": "PipeWire ends, and the program spins or shows black (emersion/xdg-desktop-portal-wlr#242)",
    "B54": "the stream's error is logged, and the program goes on claiming to be live (flatpak/libportal#209)",
    "B55": "the desktop's indicator stays lit (zugaldia/speedofsound#184)",
    "B56": "a picker that cannot be started: nobody says so (emersion/xdg-desktop-portal-wlr#138)",
    "B58": "a window that is minimised and one that is closed look the same (w3c/mediacapture-screen-share#72)",
}

# Those that cannot be met here, and why.
NOT_APPLICABLE = {}

_MARK = re.compile(r"^\s*(?:#|//) Faults: ([B\d ]+)$")
_PYTHON = re.compile(r"^def (test_\w+)")
_SWIFT = re.compile(r"^\s*(?:@Test.*)?\bfunc (\w+)\(")


def marked_tests():
    """The tests that name each fault, as `file::test`. A mark that is above no test is an error."""
    found = {}
    for path in sorted([*TESTS.glob("integration/test_*.py"), *TESTS.glob("desktop/test_*.py"), *TESTS.glob("*Tests/*.swift")]):
        pattern = _PYTHON if path.suffix == ".py" else _SWIFT
        waiting = None
        for number, line in enumerate(path.read_text().splitlines(), 1):
            if mark := _MARK.match(line):
                assert waiting is None, f"{path}:{number}: a mark above no test"
                waiting = mark[1].split()
            elif waiting and (test := pattern.match(line)):
                for fault in waiting:
                    found.setdefault(fault, []).append(f"{path.relative_to(TESTS)}::{test[1]}")
                waiting = None
        assert waiting is None, f"{path}: a mark above no test"
    return found


def main():
    marked = marked_tests()
    for number, words in FAULTS.items():
        print(f"{number} {words}")
        for test in marked.get(number, [f"does not apply: {NOT_APPLICABLE.get(number, '?')}"]):
            print(f"      {test}")


if __name__ == "__main__":
    main()
