# SPDX-License-Identifier: MIT
"""SwitchSource: another source for a broadcast that runs. The old one is shown until the new one delivers, and nothing of it afterwards."""

import pytest
from gi.repository import GLib

import picture
from contract import BUS_ERROR, refused
from harness import ERROR
from processes import wait_until
from screen import TestScreen
from story import story
from stream import wait_for_more
from test_streamlife import check, numbers, runs

OLD, NEW = (640, 360), (800, 450)


@pytest.fixture
def track(me, screen):
    """The desktop track, broadcasting a fast screen; whatever is chosen next has another size."""
    screen.configure(size=OLD, fps=60)
    me.desktop.start_capture()
    me.desktop.start_broadcast(wait=True)
    screen.configure(next_size=NEW)
    return me.desktop


def pixels(track):
    return track.get("Sources")[0]["pixel-size"]


def signals(agent, since, track):
    return [(one.name, one.value) for one in story(agent, since, track.path) if one.what == "signal"]


def goes_on(track, screen):
    """The old source is shown, and nothing of the other is left."""
    assert (track.state, pixels(track), track.get("Size")) == ("active", OLD, OLD)
    screen.wait_until("OpenSessions", 1)
    screen.wait_until("PickersOpen", 0)
    received = track.statistics["received"]
    track.wait_until("Statistics", lambda statistics: statistics["received"] > received + 5)


def record(world, track, *forms, **given):
    """Streams in some formats, each on its way into a file."""
    streams = [track.subscribe(format=form, **given) for form in forms]
    return [(one, one.record(world.root / f"switched-{index}.{form}")) for index, (form, one) in enumerate(zip(forms, streams))]


def read(subscription, recording):
    """Ends a stream; what its pictures say, and in which order which source was seen."""
    subscription.unsubscribe()
    recording.wait_for_end()
    readings = check(recording) if recording.path.suffix == ".webm" else picture.read_all(recording.frames())
    numbers(readings)
    sizes = [one.size if one else None for one in readings]
    return readings, [size for index, size in enumerate(sizes) if index == 0 or size != sizes[index - 1]]


# It works


def test_switches(me, world, track, screen):
    """Streams go on with their size, pictures of the old source, then of the new one, and never again of the old; Sources and Size change as one."""
    streams = record(world, track, "webm", "y4m")
    for one, _ in streams:
        wait_for_more(one, 10)
    started, opened, mark = track.get("StartedAt"), screen.get("PickersOpened"), me.mark()
    track.switch_source(wait=True)
    (change,) = [one.value for one in story(me, mark) if one.what == "track" and "Sources" in one.value]
    assert set(change) == {"Sources", "Size"} and change["Size"] == NEW and change["Sources"][0]["pixel-size"] == NEW
    assert not signals(me, mark, track) and story(me, mark)[-1].what == "reply"
    assert (track.get("StartedAt"), track.state, screen.get("PickersOpened")) == (started, "active", opened + 1)
    # The old session went as soon as the new one delivered.
    screen.wait_until("OpenSessions", 1)
    screen.wait_until("Streams", lambda found: len(found) == 1 and found[0]["size"] == NEW)
    for one, _ in streams:
        wait_for_more(one, 10)
        assert one.get("Size") == OLD
    screen.configure(next_size=OLD)
    track.switch_source(wait=True)
    for one, _ in streams:
        wait_for_more(one, 10)
    for one, recording in streams:
        readings, seen = read(one, recording)
        assert seen == [OLD, NEW, OLD] and {reading.orientation for reading in readings} == {"normal"}


def test_switches_a_still_screen(world, track, screen):
    """Neither source moves: the new one is seen, by who reads already and by who joins."""
    screen.configure(workload="still")
    ((one, recording),) = record(world, track, "y4m")
    one.wait_until("Statistics", lambda statistics: statistics["sent"] >= 1)
    sent = one.statistics["sent"]
    track.switch_source(wait=True)
    one.wait_until("Statistics", lambda statistics: statistics["sent"] > sent)
    ((late, joined),) = record(world, track, "webm")
    late.wait_until("Statistics", lambda statistics: statistics["sent"] >= 1)
    assert read(one, recording)[1] == [OLD, NEW]
    assert read(late, joined)[1] == [NEW]


def test_switches_again_and_again(world, track, screen):
    """Ten switches in a row: one session is left, no stream has ended, and the sources come in their order."""
    streams = record(world, track, "webm", "y4m")
    wanted = [OLD]
    for index in range(10):
        for one, _ in streams:
            wait_for_more(one, 3)
        wanted.append(((500 + 20 * index), 300))
        screen.configure(next_size=wanted[-1])
        track.switch_source(wait=True)
        assert track.get("Size") == wanted[-1]
    for one, _ in streams:
        wait_for_more(one, 3)
    screen.wait_until("OpenSessions", 1)
    for one, recording in streams:
        assert read(one, recording)[1] == wanted


def test_without_waiting(me, track, screen):
    """Without wait the call returns when the picker was asked for; the change of Sources says that it was done."""
    screen.configure(answer="never")
    mark = me.mark()
    track.switch_source()
    screen.wait_for_picker()
    assert (track.state, pixels(track)) == ("active", OLD)
    screen.answer_picker()
    track.wait_for_change("Size", NEW, mark)
    assert not signals(me, mark, track)


def test_hidden_parts_stay_hidden(world, track, screen):
    """Crop and masks are kept: no picture of the new source shows what they hide."""
    track.set("Masks", "a(iiuu)", [(0, 300, 800, 150)])
    track.set("Crop", "(iiuu)", (0, 0, 700, 4000))
    ((one, recording),) = record(world, track, "webm", max_size=(2000, 2000))
    wait_for_more(one, 5)
    track.switch_source(wait=True)
    assert track.get("Size") == (700, 450) and len(track.get("Masks")) == 1
    ((late, joined),) = record(world, track, "y4m", fps=59)
    for each in (one, late):
        wait_for_more(each, 5)
        each.unsubscribe()
    images = joined.wait_for_end().frames()
    assert images.shape[1:3] == (450, 700) and images[:, 302:].max() < 8 and all(image[:300].max() > 200 for image in images)
    # 700x450 and 640x360 in 640x360: below two thirds, nothing is ever seen.
    assert recording.wait_for_end().frames()[:, 310:].max() < 80


@pytest.mark.parametrize("form", ["webm", "y4m"])
def test_muted_meanwhile(world, track, screen, form):
    """Muted while the picker is open: it stays muted, the new source is not seen before it is unmuted, and then at once."""
    screen.configure(answer="never")
    ((one, recording),) = record(world, track, form)
    wait_for_more(one, 5)
    pending = track.begin_switch(wait=True)
    screen.wait_for_picker()
    track.mute()
    screen.answer_picker()
    pending.wait()
    assert track.get("Muted") and track.get("Size") == NEW
    received = track.statistics["received"]
    track.wait_until("Statistics", lambda statistics: statistics["received"] > received + 10)
    track.mute(False)
    wait_for_more(one, 5)
    assert read(one, recording)[1] == [OLD, None, NEW]


# It does not


@pytest.mark.parametrize("answer, name", [("cancel", "Cancelled"), ("fail", "Failed"), ("error", "Failed"), (None, "TimedOut")])
def test_no_choice(me, world, track, screen, answer, name):
    """A picker that is cancelled, fails or is not answered: the caller gets the error, StartFailed tells the others, the old source is still shown."""
    screen.configure(answer="never")
    ((one, recording),) = record(world, track, "webm")
    wait_for_more(one, 3)
    mark = me.mark()
    pending = track.begin_switch(wait=True, timeout=60 if answer else 1)
    if answer:
        screen.answer_picker(answer)
    assert refused(pending.wait).name == ERROR + name
    assert [(what, value[0]) for what, value in signals(me, mark, track)] == [("StartFailed", ERROR + name)]
    assert track.get("LastErrorName") == ERROR + name and track.get("LastError")
    goes_on(track, screen)
    # It can be tried again at once.
    screen.configure(answer="ok")
    track.switch_source(wait=True)
    assert (track.get("Size"), track.get("LastErrorName")) == (NEW, "")
    wait_for_more(one, 3)
    assert read(one, recording)[1] == [OLD, NEW]


@pytest.mark.parametrize("fault", ["no-streams", "dead-node", "vanished-node"])
def test_broken_choice(me, track, screen, fault):
    """What was chosen cannot be captured: Failed, and the old source is still shown."""
    screen.configure(fault=fault)
    mark = me.mark()
    assert refused(track.switch_source, wait=True).name == ERROR + "Failed"
    assert [what for what, _ in signals(me, mark, track)] == ["StartFailed"]
    goes_on(track, screen)


def test_no_picture(me, track, screen):
    """The new source sends no picture within 15 s: TimedOut, its session is closed, and the old source goes on."""
    screen.configure(first_frame=False, manual=True)
    mark = me.mark()
    error = refused(track.switch_source, wait=True)
    assert error.name == ERROR + "TimedOut" and "15 s" in error.message
    assert [what for what, _ in signals(me, mark, track)] == ["StartFailed"]
    screen.configure(first_frame=True, manual=False)
    goes_on(track, screen)


def test_not_active(me, world, track, screen):
    """Without a broadcast it is NotActive, with the remedy; other options than those of a start are InvalidArgs."""
    assert refused(track.switch_source, preset="h360p").name == BUS_ERROR + "InvalidArgs"
    assert refused(track.switch_source, wait=GLib.Variant("s", "x")).name == BUS_ERROR + "InvalidArgs"
    track.stop_broadcast()
    for act in (lambda: None, track.stop_capture):
        act()
        error = refused(track.switch_source)
        assert error.name == ERROR + "NotActive" and "StartBroadcast" in error.message


def test_one_picker_at_a_time(me, track, screen):
    """While another source is chosen, every other picker is Busy, and the other way round; the track stays active."""
    other = me.create_track()
    other.start_capture()
    screen.configure(answer="never")
    pending = track.begin_switch(wait=True)
    screen.wait_for_picker()
    assert track.state == "active"
    for call in (track.switch_source, track.start_broadcast, other.start_broadcast):
        assert refused(call).name == ERROR + "Busy"
    assert me.set_screen_share(True, wait=True).path == track.path
    screen.answer_picker("cancel")
    refused(pending.wait)
    other.start_broadcast()
    screen.wait_for_picker()
    error = refused(track.switch_source)
    assert error.name == ERROR + "Busy" and other.path in error.message
    other.destroy()
    goes_on(track, screen)


# It is overtaken


@pytest.mark.parametrize("stage", ["picker", "first picture"])
@pytest.mark.parametrize("how", ["StopBroadcast", "StopCapture", "SetScreenShare", "Destroy", "owner left"])
def test_stopped_meanwhile(me, world, track, own_or_desktop, screen, how, stage):
    """Stopped while another source is chosen: the picker is closed, who waits gets Cancelled, one Finished is told, and no session is left."""
    agent, shared = own_or_desktop(how)
    screen.configure(**({"answer": "never"} if stage == "picker" else {"first_frame": False, "manual": True}))
    mark = me.mark()
    pending = shared.begin_switch(wait=True)
    screen.wait_until("OpenSessions", 2)
    if stage == "picker":
        screen.wait_for_picker()
    else:
        screen.wait_until("Streams", lambda streams: len(streams) >= 2)
    mine = me.track(shared.path)
    if how == "owner left":
        agent.client.close()
    else:
        {"StopBroadcast": shared.stop_broadcast, "StopCapture": shared.stop_capture, "SetScreenShare": lambda: agent.set_screen_share(False),
         "Destroy": shared.destroy}[how]()
        assert refused(pending.wait).name == ERROR + "Cancelled"
    reason = "owner-left" if how == "owner left" else "stopped"
    mine.wait_for_signal("BroadcastFinished", lambda value: value[0] == reason, mark)
    assert [what for what, _ in signals(me, mark, mine)] == ["StartFailed", "BroadcastFinished"]
    screen.wait_until_closed()


@pytest.fixture
def own_or_desktop(me, world, screen):
    """The track that something is done to: the desktop track, or, where it must be, one whose owner is another client."""
    def make(how):
        if how not in ("Destroy", "owner left"):
            return me, me.desktop
        me.set_screen_share(False)
        screen.wait_until_closed()
        agent = world.agent()
        track = agent.create_track()
        track.start_capture()
        track.start_broadcast(wait=True)
        return agent, track

    return make


@pytest.mark.parametrize("how, reason", [("vanish", "source-removed"), ("end_session", "ended-by-desktop")])
def test_the_old_source_ends_meanwhile(me, world, track, screen, how, reason):
    """The old source ends while another is chosen: the broadcast ends with its reason, and the picker is closed; a stream with its broadcast ends too."""
    screen.configure(answer="never")
    streams = record(world, track, "webm", placeholder="end")
    wait_for_more(streams[0][0], 3)
    mark = me.mark()
    pending = track.begin_switch(wait=True)
    screen.wait_for_picker()
    getattr(screen, how)()
    error = refused(pending.wait)
    # A desktop that ends all sessions may end the new one first.
    assert error.name == ERROR + "Cancelled" and ("broadcast ended" in error.message or how == "end_session")
    assert track.wait_for_signal("BroadcastFinished", since=mark).value[0] == reason
    assert [what for what, _ in signals(me, mark, track)] == ["StartFailed", "BroadcastFinished"]
    assert runs(check(streams[0][1].wait_for_end())) == ["picture"]
    screen.wait_until("PickersOpen", 0)
    screen.wait_until("OpenSessions", 0)
    screen.configure(answer="ok")
    track.start_broadcast(wait=True)
    assert track.get("Size") == NEW


def choosing_another(session):
    """A share whose person chooses another source just now: the agent, its track, a mark, and the call that waits."""
    me, screen = session.agent(), TestScreen(session.client)
    track = me.set_screen_share(True, wait=True)
    screen.configure(answer="never")
    mark = me.mark()
    pending = track.begin_switch(wait=True)
    screen.wait_for_picker()
    return me, track, mark, pending


def test_pipewire_ends_meanwhile(session):
    """PipeWire ends while another source is chosen: pipewire-lost, and the picker is closed."""
    me, track, mark, pending = choosing_another(session)
    session.processes.end(session.pipewire)
    # The test screen leaves without PipeWire, and may do so before the agent has seen it.
    assert refused(pending.wait).name in (ERROR + "Cancelled", ERROR + "Failed")
    track.wait_for_signal("BroadcastFinished", lambda value: value[0] == "pipewire-lost", mark)


def test_the_portal_leaves_meanwhile(session):
    """The portal leaves the bus while another source is chosen: portal-lost."""
    me, track, mark, pending = choosing_another(session)
    session.processes.end(session.portal)
    refused(pending.wait)
    track.wait_for_signal("BroadcastFinished", lambda value: value[0] == "portal-lost", mark)
    assert [what for what, _ in signals(me, mark, track)] == ["StartFailed", "BroadcastFinished"]


# What readers see of it all


@pytest.mark.parametrize("form", ["webm", "y4m"])
@pytest.mark.parametrize("placeholder", ["picture", "hold", "end"])
def test_a_stream_through_it_all(world, track, screen, placeholder, form):
    """Muted, unmuted, another source, stopped, started again with a third one: one descriptor, one size, times that grow, the placeholder as asked."""
    ((one, recording),) = record(world, track, form, placeholder=placeholder)
    wait_for_more(one, 5)
    track.mute()
    received = track.statistics["received"]
    track.wait_until("Statistics", lambda statistics: statistics["received"] > received + 10)
    track.mute(False)
    wait_for_more(one, 5)
    track.switch_source(wait=True)
    wait_for_more(one, 5)
    track.stop_broadcast()
    gap = [None] if placeholder != "hold" else []
    if placeholder == "end":
        recording.wait_for_end()
        readings = check(recording) if form == "webm" else picture.read_all(recording.frames())
        assert runs(readings) == ["picture", "placeholder", "picture"] and {one.size for one in readings if one} == {OLD, NEW}
        return
    third = (320, 400)
    screen.configure(next_size=third)
    track.start_broadcast(wait=True)
    wait_for_more(one, 5)
    assert one.get("Size") == OLD
    assert read(one, recording)[1] == [OLD, *(gap + [OLD] if gap else []), NEW, *gap, third]
