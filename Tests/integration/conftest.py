# SPDX-License-Identifier: MIT
"""Fixtures of the integration tests: a world of its own for each test."""

import pytest

from harness import Session


class Maker:
    """Makes sessions, with the arguments of `Session`, and takes them all down after the test."""

    def __init__(self):
        self.worlds = []

    def __call__(self, **arguments):
        session = Session(**arguments)
        session.__enter__()
        self.worlds.append(session)
        return session


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
