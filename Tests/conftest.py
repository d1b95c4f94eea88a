# SPDX-License-Identifier: MIT
"""What all Python tests share: the logs of a failed test's processes are part of its report; what tests have measured is printed behind them."""

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


@pytest.fixture
def measured(record_property):
    """`measured("ms until it is so", "portal", "active", "12")` puts a cell into a table, by its row and column."""
    return lambda *cell: record_property("measured", cell)


def pytest_terminal_summary(terminalreporter):
    tables = {}
    for report in terminalreporter.stats.get("passed", []):
        for table, row, column, cell in [value for name, value in report.user_properties if name == "measured"]:
            tables.setdefault(table, {}).setdefault(row, {})[column] = cell
    for table, rows in tables.items():
        columns = list(dict.fromkeys(column for row in sorted(rows.values(), key=len, reverse=True) for column in row))
        terminalreporter.section(table)
        for name, row in [("", {column: column for column in columns}), *rows.items()]:
            terminalreporter.line(f"{name:<16}" + "".join(f"{row.get(column, '-'):>11}" for column in columns))
