# SPDX-License-Identifier: MIT
"""`make deb`: a package with nothing for lintian to complain of, which has what `make install` puts in place and asks for what that needs."""

import os
import re
import subprocess

import pytest

from harness import BIN, TOP, program


@pytest.fixture(scope="module")
def package():
    """The package of the programs that are tested."""
    linked = subprocess.run(["ldd", program("vitrine-agent")], capture_output=True, text=True, check=True).stdout
    if "libswiftCore" in linked:
        pytest.skip("these programs need a Swift runtime, which no package has: `make build` makes those that are packed")
    # The package with the names for debuggers is as big as all else, and nobody looks at it here.
    environment = {**os.environ, "DEB_BUILD_OPTIONS": "noautodbgsym"}
    done = subprocess.run(["make", "deb", f"BIN={BIN}"], cwd=TOP, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.findall(r"^[EW]: .*", done.stdout + done.stderr, re.MULTILINE) == []
    (file,) = (TOP / ".build/deb").glob("vitrine_*.deb")
    return file


def field(package, name):
    return subprocess.run(["dpkg-deb", "-f", str(package), name], capture_output=True, text=True, check=True).stdout.strip()


def names(package, name):
    """The packages that a field asks for, without their versions."""
    return {one.split()[0] for one in field(package, name).split(",")}


def test_it_asks_for_what_the_programs_need(package):
    depends = names(package, "Depends")
    assert {"pipewire", "xdg-desktop-portal"} <= depends
    # From the libraries that the programs are linked to.
    for library in ("libc6", "libdbus-1-3", "libpipewire-0.3-0", "libvpx", "libopus", "libyuv"):
        assert [one for one in depends if one.startswith(library)], library
    assert not [one for one in depends if "swift" in one]
    assert names(package, "Recommends") == {"wireplumber"}


def test_its_version_is_the_programs(package):
    said = subprocess.run([program("vitrine-agent"), "--version"], capture_output=True, text=True, check=True).stdout
    assert field(package, "Version") == said.split()[1]


def test_it_has_what_make_install_puts_in_place(package, tmp_path):
    packed, installed = tmp_path / "packed", tmp_path / "installed"
    subprocess.run(["dpkg-deb", "-x", str(package), str(packed)], check=True)
    subprocess.run(["make", "-s", "install", f"DESTDIR={installed}", "PREFIX=/usr", f"BIN={BIN}"], cwd=TOP, check=True, stdin=subprocess.DEVNULL)

    def files(root):
        return {str(path.relative_to(root)).removesuffix(".gz").replace("zsh/vendor-completions", "zsh/site-functions")
                for path in root.rglob("*") if path.is_file()}

    documents = {f"usr/share/doc/vitrine/{name}" for name in ("README.md", "SECURITY.md", "changelog", "copyright")}
    assert files(packed) == files(installed) | documents
    for name in ("vitrine-agent", "vitrinectl", "vitrine-testscreen"):
        assert subprocess.run([packed / "usr/bin" / name, "--version"], capture_output=True, text=True, check=True).stdout.startswith(name)
    unit = (packed / "usr/lib/systemd/user/app-org.vitrine.ScreenShare1.service").read_text()
    assert re.search(r"^ExecStart=/usr/bin/vitrine-agent\b", unit, re.MULTILINE)
