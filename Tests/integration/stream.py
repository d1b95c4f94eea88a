# SPDX-License-Identifier: MIT
"""The kinds of streams that there are, on their way into a file, and what is in it."""

import dataclasses

import matroska
import vpx


@dataclasses.dataclass(frozen=True)
class Kind:
    """A format and the codec in it; a raw format has none."""

    format: str
    codec: str = ""

    def __str__(self):
        return "-".join(filter(None, (self.format, self.codec)))

    @property
    def options(self):
        """Those of Subscribe."""
        return {"format": self.format, **({"codec": self.codec} if self.codec else {})}


COMPRESSED = [Kind("webm", "vp8"), Kind("webm", "vp9"), Kind("ivf", "vp8"), Kind("ivf", "vp9")]
# One for each format and each codec.
SOME = [Kind("webm", "vp8"), Kind("ivf", "vp9")]
RAW = Kind("y4m")


def read(path):
    """The pictures in a file, with their times; fails on anything that is not whole or not in place."""
    return read_ivf(path) if path.suffix == ".ivf" else matroska.read(path)


def read_ivf(path):
    """An IVF file, as `matroska.File`; that a picture is a key frame only the picture says."""
    data = path.read_bytes()
    assert data[:8] == b"DKIF\0\0\x20\0", data[:8]
    rate, scale = _number(data, 16, 4), _number(data, 20, 4)
    file = matroska.File(doc_type="ivf", codec=data[8:12].decode(), size=(_number(data, 12, 2), _number(data, 14, 2)))
    codec, position = {"VP80": "vp8", "VP90": "vp9"}[file.codec], 32
    while position < len(data):
        length, time = _number(data, position, 4), _number(data, position + 4, 8)
        position += 12
        assert 0 < length <= len(data) - position, f"a picture at {position} goes beyond the end"
        picture = data[position:position + length]
        file.blocks.append(matroska.Block(time * scale * 1000 // rate, vpx.is_key(codec, picture), picture))
        position += length
    return file


def _number(data, start, count):
    assert start + count <= len(data), "a header goes beyond the end"
    return int.from_bytes(data[start:start + count], "little")


# Streams that are read


def record(subscription, world, name="stream"):
    """Copies it into a file of the world."""
    return subscription.record(world.root / f"{name}.{subscription.get('Format')}")


def wait_for_sent(subscription, count, seconds=60.0):
    """Waits until so many pictures were sent."""
    subscription.wait_until("Statistics", lambda statistics: statistics["sent"] >= count, seconds)


def wait_for_more(subscription, count):
    """Waits until so many more pictures were sent."""
    wait_for_sent(subscription, subscription.statistics["sent"] + count)
