# SPDX-License-Identifier: MIT
"""Fixtures of the integration tests: a world of its own for each test, or one that the tests of a file leave as they found it."""

import subprocess

import pytest

from harness import BIN, DESKTOP_TRACK, SERVICE, SUBSCRIPTION, TOP, Session
from processes import wait_until
from screen import TestScreen


class Maker:
    """Makes sessions, with the arguments of `Session`, and takes them all down after the test."""

    def __init__(self):
        self.worlds = []

    def __call__(self, **arguments):
        session = Session(**arguments)
        session.__enter__()
        self.worlds.append(session)
        return session


@pytest.fixture(scope="session")
def tree(tmp_path_factory):
    """What `make install` puts in place, for tests that leave it as it is; its activation files name the tree's own programs."""
    # PREFIX has the tree in it, as on a machine on which it is the root: what is installed must name programs that are there.
    root = tmp_path_factory.mktemp("installed")
    prefix = root / "usr"
    subprocess.run(["make", "-s", "install", f"PREFIX={prefix}", f"BIN={BIN}", f"autostartdir={root}/etc/xdg/autostart",
                    f"unitdir={prefix}/lib/systemd/user"], cwd=TOP, check=True, stdin=subprocess.DEVNULL)
    return root


@pytest.fixture
def make_session():
    """`make_session(portal="activated", agent="absent")` is a world that differs from the usual one."""
    maker = Maker()
    yield maker
    for session in maker.worlds:
        session.close()


@pytest.fixture
def session():
    """The usual world: everything runs, nothing is shared yet."""
    with Session() as session:
        yield session


@pytest.fixture
def agent(session):
    """The agent as a new client sees it."""
    return session.agent()


@pytest.fixture(scope="module")
def shared():
    """The usual world, one for all tests of a file; they reach it through `world`."""
    with Session() as session:
        yield session


@pytest.fixture(scope="module")
def overseer(shared):
    """A client that sees all and tidies up."""
    return shared.agent()


@pytest.fixture(scope="module")
def shared_screen(shared):
    return TestScreen(shared.client)


@pytest.fixture
def world(shared, overseer, shared_screen):
    """The shared world. After the test it is as it was before: nothing is shared, and nothing is left open in the portal."""
    with shared.clients_of_their_own():
        yield shared
    desktop = overseer.desktop
    overseer.set_screen_share(False)
    for path in desktop.get("Subscriptions"):
        desktop.unsubscribe_all(overseer.client.get(SERVICE, path, SUBSCRIPTION, "Subscriber"))
    desktop.mute(False)
    desktop.set("Preset", "s", "h1080p")
    desktop.set("Crop", "(iiuu)", (0, 0, 0, 0))
    desktop.set("Masks", "a(iiuu)", [])
    desktop.set("Layout", "s", "grid")
    shared_screen.wait_until_closed()
    shared_screen.reset()
    wait_until(lambda: set(overseer.objects()) == {DESKTOP_TRACK}, "no object but the desktop track")


@pytest.fixture
def me(world):
    """The agent as a new client of the shared world sees it."""
    return world.agent()


@pytest.fixture
def screen(world, shared_screen):
    """The shared world's test screen, with the settings that it was started with."""
    return shared_screen


@pytest.fixture
def track(me, screen):
    """The desktop track, listening, in front of a small screen."""
    screen.configure(size=(640, 360))
    me.desktop.start_capture()
    return me.desktop
