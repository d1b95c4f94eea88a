# SPDX-License-Identifier: MIT
"""The agent as a process: how it starts, what it logs, how it ends, and that it costs nothing while nothing happens."""

import contextlib
import os
import re
import signal
import socket
import subprocess
import time
from pathlib import Path

import pytest

import held
import peers
from contract import refused
from harness import DESKTOP_TRACK, SERVICE, TOP, Session, program
from processes import wait_until
from screen import TestScreen

AGENT = "vitrine-agent"


def run(session, *arguments, **environment):
    """Runs an agent to its end."""
    return subprocess.run([str(program(AGENT)), *arguments], env={**session.environment, **environment}, capture_output=True, text=True,
                          timeout=60, stdin=subprocess.DEVNULL)


@pytest.fixture(scope="module")
def alone():
    """An agent with nothing but a bus."""
    with Session(portal="absent", screen=False, pipewire=False) as session:
        yield session


# Starting


def test_second_instance(alone):
    """A second agent exits with 0 and a word, and the first one stays."""
    owner = alone.client.owner(SERVICE)
    for _ in range(3):
        done = run(alone)
        assert done.returncode == 0 and "runs already" in done.stderr, done
        assert not done.stdout
    assert alone.client.owner(SERVICE) == owner


def test_many_starting_at_once(make_session):
    """Of agents that start at the same moment one stays, and the others exit with 0."""
    session = make_session(portal="absent", agent="absent", screen=False, pipewire=False)
    children = [session.start(f"agent{index}", [program(AGENT)]) for index in range(5)]
    session.wait_for_name(SERVICE)
    wait_until(lambda: sum(child.poll() is None for child in children) == 1, "one agent to stay")
    assert sorted(child.poll() for child in children if child.poll() is not None) == [0] * 4
    assert DESKTOP_TRACK in session.agent().objects()


def test_activation(make_session):
    """The bus starts the agent when the first call comes, and the call is answered."""
    session = make_session(portal="absent", agent="activated", screen=False, pipewire=False)
    assert session.client.owner(SERVICE) is None
    shown = session.run(["busctl", "--user", "get-property", SERVICE, DESKTOP_TRACK, "org.vitrine.ScreenShare1.Track", "State"])
    assert shown.stdout == 's "idle"\n'
    assert session.client.owner(SERVICE)


def test_idle_agent_leaves(make_session):
    """An agent that activation started leaves when nothing is to be lost, and comes back with the next call; what is set keeps it."""
    session = make_session(portal="absent", agent="absent", screen=False, pipewire=False)
    session._write_service(SERVICE, f"{program(AGENT)} --leave-when-idle=1")
    session.run(["busctl", "--user", "call", "org.freedesktop.DBus", "/org/freedesktop/DBus", "org.freedesktop.DBus", "ReloadConfig"])
    agent = session.agent()
    first = agent.get("Version") and session.client.process_id(SERVICE)
    session.wait_for_no_name(SERVICE)
    assert agent.desktop.state == "idle"
    assert session.client.process_id(SERVICE) != first
    for hold, let_go in [
        (lambda: agent.desktop.start_capture(), lambda: agent.desktop.stop_capture()),
        (lambda: agent.desktop.mute(), lambda: agent.desktop.mute(False)),
        (lambda: agent.desktop.set("Preset", "s", "h360p"), lambda: agent.desktop.set("Preset", "s", "h1080p")),
        (lambda: agent.desktop.subscribe(), lambda: agent.desktop.unsubscribe_all()),
        (lambda: agent.create_track(), lambda: [track.destroy() for path, track in agent.tracks().items() if path != DESKTOP_TRACK]),
        (lambda: agent.desktop.allow("app:org.example.A"), lambda: agent.desktop.disallow("app:org.example.A")),
    ]:
        hold()
        process, began = session.client.process_id(SERVICE), time.monotonic()
        # As long as an idle one would have stayed, and longer.
        wait_until(lambda: time.monotonic() > began + 2, "two seconds")
        assert session.client.process_id(SERVICE) == process, "it left, and lost what was set"
        let_go()
        session.wait_for_no_name(SERVICE)


def test_options(alone):
    """--help and --version print to standard output and exit with 0; what is wrong exits with 2, and says what, and where help is."""
    for word in ("--help", "-h"):
        done = run(alone, word)
        assert done.returncode == 0 and done.stdout.startswith("usage: vitrine-agent") and not done.stderr
        assert "--log-level" in done.stdout and "VITRINE_LOG" in done.stdout
        assert max(map(len, done.stdout.splitlines())) <= 140
    done = run(alone, "--version")
    assert (done.returncode, done.stderr) == (0, "") and re.fullmatch(r"vitrine-agent \d+\.\d+\.\d+\n", done.stdout)
    for words in (["--frobnicate"], ["word"], ["--log-level"], ["--log-level", "loud"], ["--log-level=loud"], ["-x"], [""]):
        done = run(alone, *words)
        assert done.returncode == 2 and "--help" in done.stderr and not done.stdout, (words, done)
        assert not words[-1].strip("-") or words[-1].rpartition("=")[2] in done.stderr
    assert run(alone, VITRINE_LOG="loud").returncode == 2


def test_log_level(alone):
    """--log-level and VITRINE_LOG say how much is logged."""
    assert "runs already" in run(alone, "--log-level", "info").stderr
    assert run(alone, "--log-level", "error").stderr == ""
    assert run(alone, "--log-level=error").stderr == ""
    assert run(alone, VITRINE_LOG="error").stderr == ""
    assert "runs already" in run(alone, "--log-level", "debug", VITRINE_LOG="error").stderr
    # One area may have a level of its own.
    assert "runs already" in run(alone, VITRINE_LOG="error,agent=info").stderr
    assert "runs already" in run(alone, VITRINE_LOG="agent=info,error").stderr
    assert run(alone, VITRINE_LOG="debug,agent=error").stderr.count("runs already") == 0
    assert run(alone, "--log-level", "error", VITRINE_LOG="agent=info").stderr == ""


def test_the_areas_of_the_log_are_those_that_can_be_named(alone):
    done = run(alone, VITRINE_LOG="info,kitchen=debug")
    assert done.returncode == 2
    named = re.search(r'"kitchen" is no area; there are ([a-z, ]+)', done.stderr).group(1).split(", ")
    others = {"vitrinectl", "vitrine-testscreen"}
    sources = [file for file in (TOP / "Sources").glob("*/*.swift") if file.parent.name not in others]
    assert set(named) == {area for file in sources for area in re.findall(r'\bLog\("(\w+)"\)', file.read_text())}


@pytest.mark.parametrize("address", ["unix:path=/nowhere/bus", "nonsense", ""])
def test_no_bus(alone, address):
    """Without a session bus the agent exits with 1, and says what it lacks."""
    done = run(alone, DBUS_SESSION_BUS_ADDRESS=address, XDG_RUNTIME_DIR="/nowhere")
    assert done.returncode == 1 and "DBUS_SESSION_BUS_ADDRESS" in done.stderr, done


# Ending


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_signals(make_session, number):
    """SIGTERM and SIGINT end an idle agent with 0; its name is free, and owners of tracks hear of it by the bus."""
    session = make_session(portal="absent", screen=False, pipewire=False)
    me = session.agent()
    track = me.create_track()
    subscription = track.subscribe()
    recording = subscription.record(session.root / "never.webm")
    assert session.end_agent(number) == 0
    session.wait_for_no_name(SERVICE)
    recording.wait_for_end()
    assert recording.size == 0
    assert refused(track.get, "State").name.endswith(("ServiceUnknown", "NameHasNoOwner"))


def test_bus_ends(make_session):
    """When the session bus ends, the agent ends too: readers get the end of their streams, and the portal's session goes."""
    session = make_session()
    me, screen = session.agent(), TestScreen(session.client)
    screen.configure(size=(640, 360))
    me.set_screen_share(True, wait=True)
    recording = me.desktop.subscribe().record(session.root / "bus.webm")
    recording.wait_for_bytes(5000)
    (bus,) = [pid for pid in session.processes.strays() if f"--config-file={session.root}/bus.conf" in _command(pid)]
    os.kill(bus, signal.SIGKILL)
    session.agent_process.wait(30)
    assert session.agent_process.returncode in (0, 1)
    recording.wait_for_end()
    assert recording.probe()["streams"][0]["codec_name"] == "vp8"


def _command(pid):
    try:
        return Path(f"/proc/{pid}/cmdline").read_text().split("\0")
    except OSError:
        return []


# Logs


@pytest.mark.skipif(not peers.sandboxing_works(), reason="this machine lets nobody make a sandbox (bwrap --unshare-user)")
@pytest.mark.parametrize("claims, listens", [(True, True), (True, False), (False, True)])
def test_what_the_journal_gets(make_session, claims, listens):
    """When standard error is the journal, its socket gets each line as a record with fields; where it takes none, a line begins with its
    priority; when standard error is something else, there is nothing of both."""
    session = make_session(portal="absent", agent="absent", screen=False, pipewire=False)
    path, address = session.root / "stderr", session.root / "journal"
    # The machine's own journal is out of reach.
    sandbox = [*peers.USER_NAMESPACE, "--tmpfs", "/run"]
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as journal, open(path, "wb") as file:
        journal.bind(str(address))
        if listens:
            sandbox += ["--ro-bind", address, "/run/systemd/journal/socket"]
        status = os.fstat(file.fileno())
        # A JOURNAL_STREAM that was inherited from somebody else's journal does not count.
        stream = f"{status.st_dev}:{status.st_ino if claims else status.st_ino + 1}"
        child = subprocess.Popen([str(word) for word in (*sandbox, program(AGENT))], env={**session.environment, "JOURNAL_STREAM": stream},
                                 stderr=file, stdin=subprocess.DEVNULL)
        session.wait_for_name(SERVICE)
        track = session.agent().create_track()
        os.kill(session.client.process_id(SERVICE), signal.SIGTERM)
        assert child.wait(30) == 0
        lines, records = path.read_text().splitlines(), []
        journal.setblocking(False)
        with contextlib.suppress(BlockingIOError):
            while True:
                records.append(dict(field.split("=", 1) for field in journal.recv(1 << 16).decode().splitlines()))
    if claims and listens:
        assert not lines and all(one["SYSLOG_IDENTIFIER"] == AGENT and one["PRIORITY"] == "6" for one in records)
        assert records[0]["MESSAGE"].startswith("agent: version ") and records[0]["VITRINE_AREA"] == "agent"
        (created,) = [one for one in records if one.get("VITRINE_TRACK") == track.path]
        # It is in a namespace of its own, and knows nobody.
        assert (created["MESSAGE"], created["VITRINE_OWNER"]) == (f"agent: {track.path}: created; owner=unknown:", "unknown:")
    else:
        assert not records and len(lines) >= 2 and all(bool(re.match(r"<[3-7]>\S", line)) == claims for line in lines), lines


def test_no_secret_is_logged(make_session):
    """The log tells who shares what, for how long and why it ended. Neither it nor what the agent says on the bus holds a handle or token of the portal."""
    session = make_session(agent_arguments=["--log-level", "debug"])
    me, screen = session.agent(), TestScreen(session.client)
    screen.configure(size=(640, 360))
    track = me.create_track(title="what others see")
    track.start_capture()
    track.start_broadcast(wait=True, parent_window="x11:4242")
    handle = screen.get("LastStart")["session_handle"]
    track.subscribe().close()
    said = [str(me.objects())]
    track.destroy()
    screen.configure(answer="fail")
    said.append(str(refused(me.set_screen_share, True, wait=True)))
    screen.configure(answer="ok")
    me.set_screen_share(True, wait=True)
    said.append(str(me.objects()))
    me.set_screen_share(False)
    screen.wait_until_closed()
    log = session.processes.log("agent")
    for word in (track.path, "reason=stopped", "identity=", "received=", "delivered=", "coalesced=", "footprint="):
        assert word in log, word
    token = handle.rpartition("/")[2]
    assert len(token) >= 16
    for secret in (handle, token, "/org/freedesktop/portal/desktop/request/", "/org/freedesktop/portal/desktop/session/"):
        assert secret not in log, secret
        assert secret not in "".join(said + [str(event) for event in me.events]), secret


# What it costs


class TenSeconds:
    """Ten seconds of an idle agent, of one that shares a still screen, and of one that shares a busy one, all at the same time."""

    def __init__(self):
        self.idle = Session(portal="absent", screen=False, pipewire=False)
        self.still = Session(screen_arguments=["--still", "--size", "640x360"])
        self.busy = Session(screen_arguments=["--size", "320x200", "--fps", "10"])
        self.worlds = [self.idle, self.still, self.busy]

    def watch(self):
        for session in self.worlds[1:]:
            me = session.agent()
            me.set_screen_share(True, wait=True)
            recording = me.desktop.subscribe().record(session.root / "ten.webm")
            recording.wait_for_bytes(500)
        # A program that was stopped: new memory, with the picture as it is now, is for it when it has read of that which waits for it.
        desktop = self.still.agent().desktop
        self.stopped = desktop.subscribe(format="frames")
        self.stopped.wait_until("Statistics", lambda statistics: statistics["sent"] == 1)
        desktop.mute()
        desktop.mute(False)
        # Starting has its echoes.
        wait_until(lambda: _settled(self.idle) and _settled(self.still), "both to be at rest")
        self.before = {session: _activity(session) for session in self.worlds}
        end = time.monotonic() + 10.5
        wait_until(lambda: time.monotonic() > end, "ten seconds")
        self.after = {session: _activity(session) for session in self.worlds}


def _activity(session):
    """How often the agent's threads were woken, and the clock ticks that it used, by thread."""
    found = {}
    for entry in Path(f"/proc/{session.agent_process.pid}/task").iterdir():
        status = (entry / "status").read_text()
        switches = sum(int(count) for count in re.findall(r"ctxt_switches:\t(\d+)", status))
        fields = (entry / "stat").read_text().rpartition(")")[2].split()
        found[(entry / "comm").read_text().strip() + " " + entry.name] = (switches, int(fields[11]) + int(fields[12]))
    return found


def _settled(session):
    before = _activity(session)
    end = time.monotonic() + 1
    wait_until(lambda: time.monotonic() > end, "a second")
    return _activity(session) == before


@pytest.fixture(scope="module")
def ten_seconds():
    watched = TenSeconds()
    with watched.idle, watched.still, watched.busy:
        watched.watch()
        yield watched


def test_idle_agent_sleeps(ten_seconds):
    """An idle agent is not woken once in ten seconds, uses no time, and is one thread."""
    before, after = ten_seconds.before[ten_seconds.idle], ten_seconds.after[ten_seconds.idle]
    assert after == before
    assert len(after) == 1


# Faults: B30
def test_still_screen_costs_nothing(ten_seconds):
    """Sharing a screen that stands still, with one reader and another that was stopped, wakes nobody and encodes nothing for ten seconds."""
    before, after = ten_seconds.before[ten_seconds.still], ten_seconds.after[ten_seconds.still]
    assert after.keys() == before.keys()
    woken = {name: (after[name][0] - before[name][0], after[name][1] - before[name][1]) for name in after if after[name] != before[name]}
    assert sum(switches for switches, _ in woken.values()) <= 2 and sum(ticks for _, ticks in woken.values()) == 0, woken


def test_one_line_in_ten_seconds(ten_seconds):
    """While frames come, a line with the counters is logged, at most every ten seconds; while none come, none is."""
    wait_until(lambda: _lines(ten_seconds.busy), "the line")
    assert len(_lines(ten_seconds.busy)) == 1
    assert re.search(r"received=\d+ delivered=\d+ coalesced=\d+ footprint=\d+", _lines(ten_seconds.busy)[0])
    assert len(_lines(ten_seconds.still)) <= 1


def _lines(session):
    return [line for line in session.processes.log("agent").splitlines() if "received=" in line and "reason=" not in line]


# Faults: B32
def test_a_hundred_starts_and_stops(session):
    """A hundred starts and stops, every second one with readers, leave no descriptor and no thread behind, and no memory to speak of."""
    me, screen = session.agent(), TestScreen(session.client)
    screen.configure(size=(320, 200))
    seen = []
    for index in range(100):
        me.set_screen_share(True, wait=True)
        if index % 2:
            recordings = [me.desktop.subscribe(format=form).record(session.root / form) for form in ("webm", "y4m")]
            for one in recordings:
                one.wait_for_bytes(200)
        me.set_screen_share(False)
        if index % 2:
            me.desktop.unsubscribe_all()
            for one in recordings:
                one.wait_for_end().stop()
        if index in (9, 99):
            screen.wait_until_closed()
            wait_until(lambda: me.desktop.get("Subscriptions") == [], "no subscription")
            least = held.counts(session.agent_process.pid)
            # The last thread and its descriptors go a moment after the reply.
            end = time.monotonic() + 0.5
            while time.monotonic() < end:
                least = tuple(map(min, least, held.counts(session.agent_process.pid)))
            seen.append(least)
    (files, threads, memory), (later_files, later_threads, later_memory) = seen
    assert (later_files, later_threads) == (files, threads)
    assert later_memory - memory < 1 << 20, f"{later_memory - memory} bytes more"


def test_no_core_dump_holds_the_screen(session, agent):
    """No core is dumped, and what others dump of the agent has none of its memory; the portal can still look at the process."""
    agent.set_screen_share(True, wait=True)
    process = f"/proc/{session.agent_process.pid}"
    limits = open(f"{process}/limits").read()
    assert re.search(r"Max core file size +0 +0 ", limits), limits
    assert int(open(f"{process}/coredump_filter").read(), 16) == 0
    pool = [part for part in open(f"{process}/smaps").read().split("VmFlags:")[1:] if " dd " in part.splitlines()[0] + " "]
    assert pool, "the pool's memory is left out by itself too"
    assert os.readlink(f"{process}/exe") == os.path.realpath(program("vitrine-agent")), "it stays inspectable for its own user"


def test_killed_in_the_middle(session, agent):
    """An agent that dies leaves nothing behind: the portal's session ends with its connection, readers get the end, the next one starts clean."""
    screen = TestScreen(session.client)
    agent.set_screen_share(True, wait=True)
    recording = agent.desktop.subscribe().record(session.root / "killed.webm")
    recording.wait_for_bytes(1_000)
    session.end_agent(signal.SIGKILL)
    recording.wait_for_end()
    screen.wait_until_closed()
    session.start_agent()
    agent = session.agent()
    assert agent.desktop.state == "idle" and set(agent.objects()) == {DESKTOP_TRACK}
    agent.set_screen_share(True, wait=True)
    assert agent.desktop.state == "active"


def test_descriptors_stay_where_they_belong(session, agent):
    """No descriptor of the agent outlives an exec, it listens on no socket, and what a reader gets is an end that can only be read."""
    agent.set_screen_share(True, wait=True)
    readers = [agent.desktop.subscribe(), agent.desktop.subscribe(format="y4m")]
    process = Path(f"/proc/{session.agent_process.pid}")
    sockets = set()
    for number in os.listdir(process / "fd"):
        flags = re.search(r"flags:\s+(\d+)", (process / "fdinfo" / number).read_text()).group(1)
        target = os.readlink(process / "fd" / number)
        assert int(number) < 3 or int(flags, 8) & os.O_CLOEXEC, f"descriptor {number} ({target}) is not close-on-exec"
        sockets |= set(re.findall(r"socket:\[(\d+)\]", target))
    listening = {line.split()[6] for line in (process / "net" / "unix").read_text().splitlines()[1:] if int(line.split()[3], 16) & 0x10000}
    assert sockets and not sockets & listening
    for reader in readers:
        with pytest.raises(OSError):
            os.write(reader.descriptor, b"x")
        reader.close()
