# SPDX-License-Identifier: MIT
"""Figures as people read them."""

import statistics


def number(value):
    """Three figures that matter."""
    if value is None:
        return "-"
    if value == 0 or abs(value) >= 100:
        return f"{value:.0f}"
    return f"{value:.1f}" if abs(value) >= 10 else f"{value:.2f}"


def spread(values):
    """The median, and the range where there is one."""
    values = [value for value in values if value is not None]
    if not values:
        return "-"
    middle = number(statistics.median(values))
    return middle if len(values) == 1 else f"{middle} ({number(min(values))}-{number(max(values))})"


def text(head, rows):
    """A table; the first column is words, the others are numbers. A row that is a text goes through all columns."""
    cells = [row if isinstance(row, str) else [str(cell) for cell in row] for row in [head, *rows]]
    widths = [max(len(row[index]) for row in cells if not isinstance(row, str)) for index in range(len(head))]
    return "\n".join(row if isinstance(row, str) else _line(row, widths) for row in cells)


def _line(row, widths):
    first, *others = (cell.ljust(width) if index == 0 else cell.rjust(width) for index, (cell, width) in enumerate(zip(row, widths)))
    return "  ".join([first, *others]).rstrip()
