# SPDX-License-Identifier: MIT
"""Applications of a real Flatpak: a runtime that holds one program, and an application that is not more than its name."""

import platform
import re
import shutil
import subprocess
from pathlib import Path

import pytest

import peers
from harness import DESKTOP_TRACK, SERVICE, TRACK

pytestmark = pytest.mark.skipif(
    not (shutil.which("flatpak") and peers.sandboxing_works()), reason="there is no Flatpak here, or this machine lets nobody make a sandbox")

RUNTIME, APPLICATION = "org.example.Platform", "org.example.Viewer"
# A program that calls once and prints the answer.
CALLER = shutil.which("gdbus") or "/usr/bin/gdbus"


def write(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def libraries(program):
    listed = subprocess.run(["ldd", program], capture_output=True, text=True, check=True).stdout
    return re.findall(r"(/\S+) \(0x", listed)


@pytest.fixture
def flatpak(session):
    """Runs Flatpak, with the application installed for the user of this session."""
    branch = f"{platform.machine()}/1"
    runtime, application, repository = (session.root / name for name in ("runtime", "application", "repository"))
    write(runtime / "metadata", f"[Runtime]\nname={RUNTIME}\nruntime={RUNTIME}/{branch}\nsdk={RUNTIME}/{branch}\n")
    for file in (CALLER, *libraries(CALLER)):
        place = runtime / "usr" / Path(file).relative_to("/usr" if file.startswith("/usr/") else "/")
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(file, place)
    write(application / "metadata", f"[Application]\nname={APPLICATION}\nruntime={RUNTIME}/{branch}\nsdk={RUNTIME}/{branch}\ncommand=gdbus\n\n"
          f"[Session Bus Policy]\n{SERVICE}=talk\n")
    for folder in (runtime / "files", application / "files", application / "export"):
        folder.mkdir()
    session.run(["flatpak", "build-export", "--disable-sandbox", "--runtime", repository, runtime, "1"])
    session.run(["flatpak", "build-export", "--disable-sandbox", repository, application, "1"])
    session.run(["flatpak", "--user", "remote-add", "--no-gpg-verify", "test", repository])
    for name in (RUNTIME, APPLICATION):
        session.run(["flatpak", "--user", "install", "--noninteractive", "test", f"{name}/{branch}"])
    return lambda *words: session.run(["flatpak", "--user", *words], check=False)


@pytest.mark.parametrize("way", ["through its proxy", "on the whole bus"])
def test_an_application_is_known(session, agent, flatpak, way):
    """What Flatpak starts is known by its id, whether it reaches the bus through Flatpak's proxy or has the whole bus; and may read when that id is allowed."""
    given = ["--socket=session-bus"] * (way == "on the whole bus")
    call = ["call", "--session", "--dest", SERVICE, "--object-path", DESKTOP_TRACK, "--method", f"{TRACK}.Subscribe", "{}"]
    done = flatpak("run", *given, APPLICATION, *call)
    assert f"is not for app:{APPLICATION}:" in done.stderr, (done.stdout, done.stderr)
    agent.desktop.allow(f"app:{APPLICATION}")
    done = flatpak("run", *given, APPLICATION, *call)
    assert "/subscription/1" in done.stdout, (done.stdout, done.stderr)
