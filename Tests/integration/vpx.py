# SPDX-License-Identifier: MIT
"""What VP8 and VP9 pictures say of themselves in their first bytes, read as the specifications have it."""


class Bits:
    """Bits of some bytes, the highest of each byte first."""

    def __init__(self, data):
        self._value, self._left = int.from_bytes(data, "big"), 8 * len(data)

    def take(self, count):
        self._left -= count
        assert self._left >= 0, "the header goes beyond the end"
        return self._value >> self._left & ((1 << count) - 1)


def is_key(codec, data):
    """Whether a picture is a key frame."""
    if codec == "vp8":
        return not data[0] & 1
    bits = Bits(data[:1])
    assert bits.take(2) == 2 and bits.take(2) == 0, "not a VP9 picture of profile 0"
    return not bits.take(1) and not bits.take(1)


def size(codec, data):
    """The size in the header of a key frame."""
    if codec == "vp8":
        assert data[3:6] == b"\x9d\x01\x2a"
        return int.from_bytes(data[6:8], "little") & 0x3FFF, int.from_bytes(data[8:10], "little") & 0x3FFF
    bits = _after_vp9_sync(data)
    bits.take(4)
    return bits.take(16) + 1, bits.take(16) + 1


def colour(data):
    """The colour space of a VP9 key frame, 1 of BT.601, and whether its range is full."""
    bits = _after_vp9_sync(data)
    return bits.take(3), bool(bits.take(1))


def _after_vp9_sync(data):
    assert is_key("vp9", data)
    bits = Bits(data[:16])
    bits.take(8)
    assert bits.take(24) == 0x498342
    return bits
