# SPDX-License-Identifier: MIT
"""The manual pages read without a complaint, and leave out nothing: no verb, option, member, exit code or variable."""

import os
import re
import subprocess
from xml.etree import ElementTree

import pytest

from harness import TOP, program

PAGES = {"vitrine-agent": 1, "vitrinectl": 1, "vitrine-testscreen": 1, "vitrine.conf": 5, "org.vitrine.ScreenShare1": 5}
# How long names are kept in one piece, and quotes as they were typed.
FORM = {**os.environ, "MANWIDTH": "400", "LC_ALL": "C.UTF-8", "MANROFFOPT": "-rHY=0 -dAD=l"}


def shown(tree, name):
    page = tree / f"usr/share/man/man{PAGES[name]}/{name}.{PAGES[name]}"
    return subprocess.run(["man", "-l", str(page)], env=FORM, capture_output=True, text=True, check=True).stdout


def section(text, title):
    """The lines of a section, which begins at the margin and is set in."""
    return re.search(rf"^{re.escape(title)}\n(.*?)(?=^\S|\Z)", text, re.MULTILINE | re.DOTALL)[1]


def entry(text, head):
    """What stands below a term, up to the next one."""
    return re.search(rf"^ +{re.escape(head)}\n(.*?)(?:\n\n|\Z)", text, re.MULTILINE | re.DOTALL)[1]


@pytest.mark.parametrize("name", PAGES)
def test_a_page_reads_without_a_complaint(tree, name):
    page = tree / f"usr/share/man/man{PAGES[name]}/{name}.{PAGES[name]}"
    done = subprocess.run(["man", "--warnings", "-E", "UTF-8", "-l", "-Tutf8", "-Z", str(page)], env=FORM, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    text = shown(tree, name)
    assert [title for title in ("NAME", "DESCRIPTION", "SEE ALSO") if not section(text, title).strip()] == []
    # One line of NAME is what `apropos` knows.
    assert re.fullmatch(rf" +{re.escape(name)} - \S.*\n+", section(text, "NAME"))


def test_pages_refer_to_pages_that_are_there(tree):
    others = {"ffmpeg", "busctl", "jq"}
    for name in PAGES:
        for referred, number in re.findall(r"\b([A-Za-z][\w.-]*)\((\d)\)", shown(tree, name)):
            assert referred in others or PAGES.get(referred) == int(number), f"{referred}({number}) in {name}"


def names_in(help_text):
    return {name for line in help_text.splitlines() if line.startswith("  -")
            for name in re.findall(r"(?<!\S)--?[a-z][a-z-]*", line.strip().split("  ")[0])}


@pytest.mark.parametrize("name", ["vitrine-agent", "vitrine-testscreen"])
def test_every_option_is_in_the_page(tree, name):
    options = names_in(subprocess.run([program(name), "--help"], capture_output=True, text=True, check=True).stdout)
    assert len(options) >= 3
    assert options <= set(re.findall(r"--?[a-z][a-z-]*", section(shown(tree, name), "OPTIONS")))


def test_every_verb_is_in_the_page_with_its_options(tree):
    def helped(*words):
        return subprocess.run([program("vitrinectl"), *words, "--help"], capture_output=True, text=True, check=True).stdout

    verbs = re.findall(r"^  ([a-z]+)  ", helped().split("Verbs:")[1].split("\n\n")[0], re.MULTILINE)
    assert {"share", "stop", "status", "record"} <= set(verbs)
    page = section(shown(tree, "vitrinectl"), "VERBS")
    for verb in verbs:
        part = re.search(rf"^   {verb}\n(.*?)(?=^   \S|\Z)", page, re.MULTILINE | re.DOTALL)[1]
        assert names_in(helped(verb)) <= set(re.findall(r"--?[a-z][a-z-]*", part)), verb


def test_every_member_is_in_the_page_with_its_signature_and_its_explanation(tree):
    text = shown(tree, "org.vitrine.ScreenShare1")
    for file in sorted((TOP / "dbus").glob("*.xml")):
        (interface,) = ElementTree.parse(file).getroot().findall("interface")
        part = section(text, interface.get("name").upper())
        for member in interface:
            if member.tag == "annotation":
                continue
            head = re.search(rf"^ +({member.get('name')}(?: \S+ \(.*\)|\(.*\).*))\n( +\S.*)", part, re.MULTILINE)
            assert head, f"{member.get('name')} of {file.name}"
            types = [member.get("type")] if member.tag == "property" else [arg.get("type") for arg in member.findall("arg")]
            assert all(f" {one}" in head[1] for one in types), head[1]
            assert len(head[2].split()) >= 2, f"no explanation of {member.get('name')}"


def test_exit_codes_are_those_of_the_table_of_errors(tree):
    """dbus/ErrorName.swift is what vitrinectl takes its exit codes from."""
    source = (TOP / "dbus/ErrorName.swift").read_text()
    names = dict(re.findall(r'case (\w+) = "(\w+)"', source))
    codes = {name: 1 for name in names}
    body = source.split("public var exitCode")[1]
    for cases, code in re.findall(r"case (\.[\w, .]+): (\d)", body):
        codes.update({case.strip(" ."): int(code) for case in cases.split(",")})
    text = section(shown(tree, "vitrinectl"), "EXIT STATUS")
    for name, code in codes.items():
        assert re.search(rf"\b{names[name]}\b", entry(text, str(code))), f"{names[name]} is not below {code}"


def test_every_variable_that_the_programs_read_is_in_a_page(tree):
    text = section(shown(tree, "vitrine-agent"), "ENVIRONMENT") + section(shown(tree, "vitrinectl"), "ENVIRONMENT")
    read = set()
    for file in (TOP / "Sources").rglob("*.swift"):
        if "vitrine-testscreen" not in file.parts:
            read |= set(re.findall(r'(?:value\(of: |variable\(|getenv\(|filled\()"([A-Z_]+)"', file.read_text()))
    assert {"VITRINE_LOG", "NO_COLOR"} <= read
    # PipeWire's own last resort, which no session sets.
    assert [name for name in sorted(read - {"USERPROFILE"}) if name not in text] == []
