# SPDX-License-Identifier: MIT
"""Where several sources lie in one picture. It knows the contract alone."""


def arranged(sizes, layout="grid"):
    """Where sources lie in the picture, as the documentation of Layout says: the whole size, and x, y, width, height of each."""
    columns = len(sizes) if layout == "row" else next(n for n in range(1, 10) if n * n >= len(sizes))
    columns = min(columns, len(sizes))
    rows = -(-len(sizes) // columns)
    even = [(width + width % 2, height + height % 2) for width, height in sizes]
    widths = [max(width for width, _ in even[column::columns]) for column in range(columns)]
    heights = [max(height for _, height in even[row * columns:(row + 1) * columns]) for row in range(rows)]
    places = []
    for index, (width, height) in enumerate(sizes):
        column, row = index % columns, index // columns
        x = sum(widths[:column]) + ((widths[column] - width) // 2 & ~1)
        y = sum(heights[:row]) + ((heights[row] - height) // 2 & ~1)
        places.append((x, y, width, height))
    return (sum(widths), sum(heights)), places
