# SPDX-License-Identifier: MIT
"""vitrine.conf: what the person has set for shares of the desktop track."""

from harness import DESKTOP_TRACK


def write(session, text, place="config"):
    folder = session.root / place / "vitrine"
    folder.mkdir(exist_ok=True)
    (folder / "vitrine.conf").write_text(text)


def test_what_the_person_has_set(session, agent):
    """A share of the desktop track begins with it, whoever asks; what the call says wins; tracks of programs have the contract's defaults."""
    write(session, "preset = h360p\nallow = app:org.example.Viewer\ntitle = Room 7\npersist = forever\n")
    agent.set_screen_share(True, wait=True)
    assert (agent.desktop.get("Preset"), agent.desktop.get("Title"), agent.desktop.get("Allowed")) == (
        "h360p", "Room 7", ["app:org.example.Viewer"])
    shown = agent.get("DefaultOptions")
    assert (shown["preset"], shown["title"], shown["persist"]) == ("h360p", "Room 7", "forever")
    assert tuple(agent.desktop.get("Size")) == (640, 360)
    agent.set_screen_share(False)
    agent.set_screen_share(True, wait=True, preset="h480p")
    assert (agent.desktop.get("Preset"), agent.desktop.get("Title")) == ("h480p", "Room 7")
    assert agent.create_track().get("Preset") == "h1080p"


def test_changed_between_two_shares(session, agent):
    """It is read anew for each share, and its change is announced; taken away, the contract's defaults are back."""
    assert agent.get("DefaultOptions")["preset"] == "h1080p"
    write(session, "preset = h720p\n")
    mark = agent.mark()
    agent.set_screen_share(True, wait=True)
    assert agent.wait_for("changed", "DefaultOptions", since=mark).value["preset"] == "h720p"
    assert agent.desktop.get("Preset") == "h720p"
    agent.set_screen_share(False)
    (session.root / "config" / "vitrine" / "vitrine.conf").unlink()
    agent.set_screen_share(True, wait=True)
    assert agent.desktop.get("Preset") == "h1080p"


def test_wrong_lines(session, agent):
    """A line that is wrong is told with its number and left out; the others hold."""
    write(session, "# mine\npreset = h9000p\nfps = 7\naudio = loud\nnonsense\ncolour = blue\n")
    agent.set_screen_share(True, wait=True)
    assert agent.get("DefaultOptions")["fps"] == 7 and agent.desktop.get("Preset") == "h1080p"
    log = session.processes.log("agent")
    for number, word in ((2, "h9000p"), (4, "audio"), (5, "nonsense"), (6, "colour")):
        (line,) = [line for line in log.splitlines() if f"vitrine.conf:{number}: " in line]
        assert word in line and "warning" in line
    assert ".conf:3:" not in log and DESKTOP_TRACK in agent.objects()


def test_values_are_taken_as_they_stand(session, agent):
    """A comment is a line of its own, and nothing quotes: what stands behind the first = is the value, but for the spaces around it."""
    write(session, '  # title = none\n\t title=  "Room" #7 = big \nfps = 5 # slow\nbitrate="1M"\n')
    agent.set_screen_share(True, wait=True)
    shown = agent.get("DefaultOptions")
    assert shown["title"] == '"Room" #7 = big' and "fps" not in shown and "bitrate" not in shown
    log = session.processes.log("agent")
    assert 'vitrine.conf:3: "fps = 5 # slow" is left out' in log and "vitrine.conf:4: " in log and "vitrine.conf:1: " not in log


def test_the_machines_file_and_the_users(make_session):
    """The machine's file holds where the user's says nothing."""
    session = make_session(agent="absent", portal="absent", screen=False, pipewire=False)
    session.environment["XDG_CONFIG_DIRS"] = f"{session.root}/data:{session.root}/cache"
    write(session, "preset = h480p\nfps = 3\n", "cache")
    write(session, "fps = 4\nbitrate = 1M\n", "data")
    write(session, "bitrate = 2M\n")
    session.start_agent()
    shown = session.agent().get("DefaultOptions")
    assert (shown["preset"], shown["fps"], shown["bitrate"]) == ("h480p", 4, 2_000_000)
