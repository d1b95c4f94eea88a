# SPDX-License-Identifier: MIT
"""Rules of the source tree and of the built programs that no compiler checks."""

import re
import subprocess

import pytest

from harness import TOP, program

TOP_LEVEL = {
    ".ci", ".gitignore", ".swift-format", "LICENSE", "SECURITY.md", "Makefile", "Package.swift", "README.md", "Sources", "Tests", "data", "dbus",
}
UNTRACKED = {".git", ".build", ".swiftpm", "share.webm"}

PROGRAMS = ["vitrine-agent", "vitrinectl", "vitrine-testscreen"]

# The one layer, or the few, that may speak to each C library.
C_MODULES = {
    "CDBus": {"DBus"},
    "CPipeWire": {"PipeWire", "Capture", "Sound", "vitrine-testscreen"},
    "COpus": {"Sound"},
    "CVPX": {"Encoding"},
    "CYUV": {"Frames"},
}

# Parts in which no unsafe pointer is handled.
SAFE = ["Portal", "Agent", "vitrine-agent", "vitrinectl"]


def sources(*folders):
    """Swift files below these folders of the tree."""
    return [path for folder in folders for path in sorted((TOP / folder).rglob("*.swift"))]


def code(path):
    """The numbered lines of a Swift file without comments and string literals."""
    for number, line in enumerate(path.read_text().splitlines(), 1):
        yield number, re.sub(r'"(?:[^"\\]|\\.)*"', '""', line).partition("//")[0]


def offences(paths, pattern):
    """Where code matches: `file:line: code`."""
    return [f"{path.relative_to(TOP)}:{number}: {line.strip()}" for path in paths for number, line in code(path) if re.search(pattern, line)]


def test_the_top_level_has_nothing_else():
    assert {path.name for path in TOP.iterdir()} - UNTRACKED == TOP_LEVEL


def test_every_file_says_its_licence():
    names = ("*.swift", "*.py", "*.h", "*.modulemap", "*.xml", "*.ini")
    files = [path for folder in ("Sources", "Tests", "dbus") for name in names for path in (TOP / folder).rglob(name)]
    # Debian's own files have forms of their own, and a picture has no room for it.
    files += [path for path in (TOP / "data").rglob("*") if path.is_file() and "debian" not in path.parts and path.suffix != ".png"]
    files += [TOP / "data/debian/rules"]
    files += [TOP / "Package.swift", TOP / "Makefile", TOP / ".ci/run", *(path for path in (TOP / "Tests/tools").iterdir() if path.is_file())]
    assert len(files) > 30
    assert [str(path.relative_to(TOP)) for path in files if "SPDX-License-Identifier: MIT" not in path.read_text()[:400]] == []


def test_no_foundation_and_no_concurrency_runtime():
    everything = sources("Sources", "dbus")
    assert offences(everything, r"\bimport\s+(Foundation\w*|Dispatch|_Concurrency|FoundationEssentials)\b") == []
    assert offences(everything, r"\b(async|await|actor|Task\s*[.{(]|DispatchQueue)\b") == []


@pytest.mark.parametrize("module", C_MODULES)
def test_each_c_library_is_spoken_to_in_one_place(module):
    found = {path.relative_to(TOP / "Sources").parts[0] for path in sources("Sources")
             if any(re.search(rf"\bimport\s+{module}\b", line) for _, line in code(path))}
    assert found <= C_MODULES[module]


def test_pointers_stay_where_they_are_needed():
    assert offences(sources(*(f"Sources/{name}" for name in SAFE)), r"Unsafe|Unmanaged|withUnsafe|unsafeBitCast|\bimport C[A-Z]") == []


def comments_above(lines, index):
    """The comment lines above a declaration, and above those that it stands in."""
    found = []
    depth = indentation(lines[index])
    for earlier in reversed(range(index)):
        line = lines[earlier]
        if not line.strip():
            continue
        is_comment = line.strip().startswith(("//", "@"))
        if is_comment and indentation(line) <= depth:
            found.append(line)
        elif not is_comment and indentation(line) < depth:
            depth = indentation(line)
        elif not is_comment and indentation(line) == depth:
            # A neighbour: comments above it are its own, and only an outer declaration's are still of interest.
            depth -= 1
    return "\n".join(found)


def indentation(line):
    return len(line) - len(line.lstrip())


def test_every_promise_to_the_compiler_has_its_reason():
    unexplained = []
    for path in sources("Sources", "Tests", "dbus"):
        lines = path.read_text().splitlines()
        for number, line in code(path):
            if re.search(r"@unchecked\s+Sendable|nonisolated\(unsafe\)", line):
                if "SAFETY:" not in lines[number - 1] + comments_above(lines, number - 1):
                    unexplained.append(f"{path.relative_to(TOP)}:{number}")
    assert unexplained == []


def test_nothing_traps_on_purpose():
    assert offences(sources("Sources"), r"\btry!|\bas!") == []


def needed(path):
    """What a program says it needs, and what the loader then finds, by the names of libraries."""
    done = subprocess.run(["ldd", str(path)], capture_output=True, text=True, check=True)
    return {line.split()[0].rsplit("/", 1)[-1] for line in done.stdout.splitlines() if line.strip()}


def dynamic_symbols(path):
    return subprocess.run(["nm", "-a", str(path)], capture_output=True, text=True).stdout


@pytest.mark.parametrize("name", PROGRAMS)
def test_no_program_needs_foundation(name):
    path = program(name)
    assert [library for library in needed(path) if re.search(r"Foundation|ICU|libicu", library)] == []
    # A statically linked one would not be among the libraries, but its symbols would be there: $s10Foundation…
    assert re.findall(r"\$s10Foundation\w*|\$s20FoundationEssentials\w*", dynamic_symbols(path))[:5] == []
    assert b"$s10Foundation" not in path.read_bytes()


def test_the_command_line_carries_no_media_library():
    assert [library for library in needed(program("vitrinectl")) if re.search(r"pipewire|vpx|yuv", library)] == []


def test_the_agent_links_each_library_that_it_speaks_to():
    libraries = " ".join(needed(program("vitrine-agent")))
    for name in ("libdbus-1", "libpipewire-0.3", "libvpx", "libopus"):
        assert name in libraries


@pytest.mark.parametrize("script", ["Tests/tools/install-packages", "Tests/tools/as-user", "Tests/tools/run", "Tests/tools/share-and-record", "Tests/tools/test-sanitized", ".ci/run"])
def test_scripts_are_programs_that_bash_can_read(script):
    path = TOP / script
    assert path.stat().st_mode & 0o111
    subprocess.run(["bash", "-n", str(path)], check=True)


def test_what_make_is_told_to_make_can_be_made():
    """Each `make WORD` of the README, of scripts and of the tests is a target of the Makefile, and `make help` lists it."""
    files = [TOP / "README.md", TOP / ".ci/run", *(TOP / "Tests").rglob("*.py"), *(TOP / "Tests").rglob("*.swift")]
    named = {word for path in files for word in re.findall(r"(?:`|^ *(?:sudo )?|timeout \d+ )make ([a-z][a-z-]+)", path.read_text(), re.MULTILINE)}
    assert {"test", "soak", "fuzz", "test-asan", "test-tsan"} <= named
    listed = set(re.findall(r"^([a-z-]+):.* ## ", (TOP / "Makefile").read_text(), re.MULTILINE))
    assert named <= listed, named - listed


def test_no_module_is_left_out_by_the_sanitizers():
    """test-sanitized runs the tests of every module."""
    targets = re.findall(r'^        tests\("(\w+)Tests"', (TOP / "Package.swift").read_text(), re.MULTILINE)
    (modules,) = re.findall(r"^for module in (.*); do$", (TOP / "Tests/tools/test-sanitized").read_text(), re.MULTILINE)
    assert sorted(modules.split()) == sorted(targets)


def test_what_make_fuzz_runs_is_there():
    """The suite that `make fuzz` names has that name: a filter that fits nothing passes."""
    (suite,) = re.findall(r"--filter '/(\w+)/'", (TOP / "Makefile").read_text())
    assert f"@Suite struct {suite} {{" in (TOP / "Tests/CaptureTests/PipeWireFuzzTests.swift").read_text()
