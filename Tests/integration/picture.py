# SPDX-License-Identifier: MIT
"""Reads the test screen's pictures back: the frame's number, its size and its orientation, from pixels that went through any codec or scaler.

The grid is described in Sources/vitrine-testscreen/Painter.swift; this file knows nothing else of it.
"""

import dataclasses

import numpy

COLUMNS, ROWS = 20, 18
BIT_COLUMN, BIT_ROW, BITS, BIT_ROWS = 2, 2, 16, 5

# Names as in SPA: what was done to the upright picture. Each entry undoes it.
ORIENTATIONS = {
    "normal": lambda a: a,
    "90": lambda a: numpy.rot90(a, -1),
    "180": lambda a: numpy.rot90(a, 2),
    "270": lambda a: numpy.rot90(a, 1),
    "flipped": lambda a: a[:, ::-1],
    "flipped-90": lambda a: numpy.rot90(a, -1)[:, ::-1],
    "flipped-180": lambda a: numpy.rot90(a, 2)[:, ::-1],
    "flipped-270": lambda a: numpy.rot90(a, 1)[:, ::-1],
}

CORNERS = ((0, 0, "red"), (COLUMNS - 2, 0, "green"), (0, ROWS - 2, "blue"), (COLUMNS - 2, ROWS - 2, "white"))


@dataclasses.dataclass(frozen=True)
class Reading:
    """What a picture says about itself."""

    number: int
    """The frame's number; the first of a source is 1 or more, each next one is greater."""
    width: int
    height: int
    """The size that the source painted, upright, in its own pixels."""
    orientation: str
    """`normal`, or which of SPA's transforms the picture still has to be rid of."""
    box: tuple
    """Where the picture is in the array: x, y, width, height; without bars around it."""
    channels: str
    """`rgb`, or `bgr` when red and blue are exchanged."""

    @property
    def size(self):
        return (self.width, self.height)


def rgb(luma, blue, red):
    """An RGB array from the planes of I420, limited range BT.601."""
    height, width = luma.shape
    spread = [numpy.repeat(numpy.repeat(plane, 2, 0), 2, 1)[:height, :width].astype(numpy.float32) - 128 for plane in (blue, red)]
    y = (luma.astype(numpy.float32) - 16) * 255 / 219
    planes = (y + 1.596 * spread[1], y - 0.392 * spread[0] - 0.813 * spread[1], y + 2.017 * spread[0])
    return numpy.clip(numpy.stack(planes, -1), 0, 255).astype(numpy.uint8)


def i420(data, width, height):
    """An RGB array from one packed I420 picture, as it is in a y4m frame."""
    half_width, half_height = (width + 1) // 2, (height + 1) // 2
    data = numpy.frombuffer(data, numpy.uint8)
    sizes = (width * height, half_width * half_height, half_width * half_height)
    assert data.size == sum(sizes), f"{data.size} bytes are no I420 picture of {width}x{height}"
    luma, blue, red = numpy.split(data, (sizes[0], sizes[0] + sizes[1]))
    return rgb(luma.reshape(height, width), blue.reshape(half_height, half_width), red.reshape(half_height, half_width))


def visible_box(image):
    """The part of an RGB array that is not black bars: x, y, width, height; None when all is black."""
    bright = image.max(axis=2) > 40
    # No edge of the picture is dark for more than the corners' width.
    rows = numpy.flatnonzero(bright.sum(axis=1) > bright.sum(axis=1).max() // 2)
    columns = numpy.flatnonzero(bright.sum(axis=0) > bright.sum(axis=0).max() // 2)
    if not bright.any() or not len(rows) or not len(columns):
        return None
    x, y = int(columns[0]), int(rows[0])
    return x, y, int(columns[-1]) - x + 1, int(rows[-1]) - y + 1


def read(image):
    """Reads an RGB array (rows, columns, 3); None when there is no whole picture in it."""
    box = visible_box(image)
    if box is None:
        return None
    x, y, width, height = box
    visible = image[y:y + height, x:x + width]
    for name, undo in ORIENTATIONS.items():
        upright = undo(visible)
        if upright.shape[0] < ROWS or upright.shape[1] < COLUMNS:
            continue
        channels = _channels(upright)
        words = channels and _words(upright)
        if words:
            return Reading(words[0] << 16 | words[1], words[2], words[3], name, box, channels)
    return None


def read_all(images):
    """Reads many; those that cannot be read are None."""
    return [read(image) for image in images]


def numbers(images):
    """The numbers of pictures that must all be readable."""
    readings = read_all(images)
    unreadable = [index for index, reading in enumerate(readings) if reading is None]
    assert not unreadable, f"unreadable pictures: {unreadable[:20]} of {len(readings)}"
    return [reading.number for reading in readings]


def check(words):
    """CRC-16/CCITT-FALSE of 16-bit words, high byte first."""
    crc = 0xFFFF
    for byte in (byte for word in words for byte in (word >> 8, word & 0xFF)):
        crc ^= byte << 8
        for _ in range(8):
            crc = (crc << 1 ^ 0x1021 if crc & 0x8000 else crc << 1) & 0xFFFF
    return crc


def cell(image, column, row, width=1, height=1):
    """The mean colour of the middle half of some cells of an upright picture."""
    left, right = column * image.shape[1] / COLUMNS, (column + width) * image.shape[1] / COLUMNS
    top, bottom = row * image.shape[0] / ROWS, (row + height) * image.shape[0] / ROWS
    x, y = (left + right) / 2, (top + bottom) / 2
    half_width, half_height = (right - left) / 4, (bottom - top) / 4
    part = image[int(y - half_height):int(y + half_height) + 1, int(x - half_width):int(x + half_width) + 1]
    return part.reshape(-1, 3).mean(axis=0)


def colour_name(colour):
    """One of black, grey, white, red, green, blue, or another colour that is none of these: None."""
    red, green, blue = (float(part) for part in colour)
    low, high = min(colour), max(colour)
    if high - low < 60:
        return "black" if high < 60 else "white" if low > 190 else "grey"
    strong = [part > 120 for part in (red, green, blue)]
    return {(True, False, False): "red", (False, True, False): "green", (False, False, True): "blue"}.get(tuple(strong))


def _channels(upright):
    found = [colour_name(cell(upright, column, row, 2, 2)) for column, row, _ in CORNERS]
    wanted = [name for _, _, name in CORNERS]
    if found == wanted:
        return "rgb"
    exchanged = {"red": "blue", "blue": "red"}
    return "bgr" if found == [exchanged.get(name, name) for name in wanted] else None


def _words(upright):
    words = []
    for row in range(BIT_ROW, BIT_ROW + BIT_ROWS):
        word = 0
        for column in range(BIT_COLUMN, BIT_COLUMN + BITS):
            level = cell(upright, column, row).mean()
            if 96 < level < 160:
                return None
            word = word << 1 | (level >= 128)
        words.append(int(word))
    return words[:4] if check(words[:4]) == words[4] else None
