# SPDX-License-Identifier: MIT
"""Fixtures of the integration tests: a world of its own for each test, and its logs when the test fails."""

import pytest

from harness import Session


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    outcome = yield
    report = outcome.get_result()
    if report.failed:
        for session in item.stash.get(SESSIONS, []):
            report.sections.append(("logs of the session", session.processes.report()))


SESSIONS = pytest.StashKey()


@pytest.fixture
def make_session(request):
    """Makes sessions: `make_session(portal="activated", agent="absent")`. All are taken down after the test."""
    sessions = request.node.stash.setdefault(SESSIONS, [])

    def make(**arguments):
        session = Session(**arguments)
        session.__enter__()
        sessions.append(session)
        return session

    yield make
    for session in sessions:
        session.close()


@pytest.fixture
def session(make_session):
    """The usual world: everything runs, nothing is shared yet."""
    return make_session()


@pytest.fixture
def agent(session):
    """The agent as a new client sees it."""
    return session.agent()
