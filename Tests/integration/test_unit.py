# SPDX-License-Identifier: MIT
"""The systemd user unit confines the agent, and the agent does all its work confined so. No systemd runs here: confine.py does what it would."""

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from confine import Unit, allowed
from frames_reader import FramesReader
from harness import SERVICE, probe, program
from processes import wait_until

CONFINE = Path(__file__).with_name("confine.py")
# Settings of systemd.exec(5) and systemd.service(5) that work without a namespace. With one of mounts, users or processes the agent could
# not read from /proc who its clients are, nor the portal who the agent is.
WITHOUT_NAMESPACES = {
    "Type", "BusName", "ExecStart", "Slice", "NoNewPrivileges", "LockPersonality", "MemoryDenyWriteExecute", "RestrictAddressFamilies",
    "RestrictNamespaces", "RestrictRealtime", "RestrictSUIDSGID", "SystemCallArchitectures", "SystemCallFilter", "SystemCallErrorNumber", "UMask", "LimitCORE",
}


@pytest.fixture
def unit_file(tree):
    return tree / "usr/lib/systemd/user/app-org.vitrine.ScreenShare1.service"


def test_no_setting_makes_a_namespace(unit_file):
    assert set(Unit(unit_file)) <= WITHOUT_NAMESPACES


def test_systemd_finds_the_agent_confined(unit_file, tmp_path):
    """`systemd-analyze security` counts what is open to a service: 96 of 100 for one that nothing confines."""
    done = subprocess.run(["systemd-analyze", "security", "--user", "--offline=yes", "--no-pager", "--threshold=65", str(unit_file)],
                          env={**os.environ, "XDG_RUNTIME_DIR": str(tmp_path)}, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_what_a_screen_share_agent_never_needs_is_out_of_reach(unit_file):
    calls = allowed(Unit(unit_file))
    assert calls & {"ptrace", "mount", "pivot_root", "bpf", "init_module", "reboot", "setuid", "process_vm_readv", "keyctl"} == set()


@pytest.fixture
def confined(make_session, unit_file):
    """A world whose agent runs confined as its unit says."""
    session = make_session(agent="absent")
    session.agent_process = session.start("agent", [sys.executable, CONFINE, unit_file, program("vitrine-agent")])
    session.wait_for_name(SERVICE, session.agent_process)
    return session


def test_the_confined_agent_does_all_its_work(confined):
    """From the picker to clean ends of its streams; a system call beyond the unit's would have killed it."""
    status = Path(f"/proc/{confined.agent_process.pid}/status").read_text()
    assert re.search(r"^NoNewPrivs:\t1$", status, re.MULTILINE) and re.search(r"^Seccomp:\t2$", status, re.MULTILINE)

    agent = confined.agent()
    track = agent.set_screen_share(True, wait=True, title="confined")
    assert track.get("State") == "active"
    for name in ("share.webm", "share.ivf", "share.y4m"):
        file = confined.root / name
        confined.control("record", file, "--seconds", "1")
        assert int(probe(file)["streams"][0]["width"]) == 1280
    reader = FramesReader(track.subscribe(format="frames").take())
    reader.release(frame := reader.receive())
    assert (frame.width, frame.height) == (1280, 720)
    # It reads from /proc who calls.
    own = agent.create_track()
    assert own.get("OwnerIdentity") == f"exe:{os.path.realpath(sys.executable)}"
    confined.control("mute", "on")
    confined.control("mute", "off")
    track.set("Preset", "s", "h360p")
    confined.control("stats")
    assert "encoders" in confined.control("stats", "--memory").stdout
    confined.control("stop")
    wait_until(lambda: track.get("State") == "idle", "the end of the share")
    # Again, and then the end while it shares.
    agent.set_screen_share(True, wait=True)
    assert confined.end_agent(signal.SIGTERM) == 0, confined.processes.log("agent")


def test_the_confinement_of_the_test_bites(make_session, unit_file, tmp_path):
    """Under a filter that lacks what the agent needs, it does not live."""
    poor = tmp_path / "poor.service"
    poor.write_text(unit_file.read_text() + "SystemCallFilter=~@io-event\n")
    session = make_session(agent="absent", portal="absent", screen=False, pipewire=False)
    agent = session.start("agent", [sys.executable, CONFINE, poor, program("vitrine-agent")])
    assert agent.wait(30) == -signal.SIGSYS
