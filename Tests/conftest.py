# SPDX-License-Identifier: MIT
"""What all Python tests share: the logs of a failed test's processes are part of its report."""

import pytest


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    outcome = yield
    report = outcome.get_result()
    if not report.failed:
        return
    for value in getattr(item, "funcargs", {}).values():
        # A session or desktop, or a fixture that makes several.
        for world in getattr(value, "worlds", [value]):
            processes = getattr(world, "processes", None)
            if hasattr(processes, "report"):
                report.sections.append((f"logs of {world.root}", processes.report()))
