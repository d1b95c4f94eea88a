# SPDX-License-Identifier: MIT
"""Fixtures of the desktop tests: a desktop of its own for each test, with two monitors that show different things."""

import pytest

from desktop import Desktop


@pytest.fixture
def desktop():
    with Desktop() as desktop:
        desktop.open_window("crimson", "c02020", monitor=0)
        desktop.open_window("teal", "008080", monitor=1)
        yield desktop


@pytest.fixture
def agent(desktop):
    """The agent as a new client sees it."""
    _, agent = desktop.start_agent()
    return agent
