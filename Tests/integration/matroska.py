# SPDX-License-Identifier: MIT
"""Reads WebM as the specifications of EBML and Matroska have it, strictly, so that what only a lenient player forgives is found."""

import dataclasses

SEGMENT, CLUSTER, TIMESTAMP, SIMPLE_BLOCK, TIMESTAMP_SCALE = 0x18538067, 0x1F43B675, 0xE7, 0xA3, 0x2AD7B1
INFO, TRACKS, TRACK_ENTRY, VIDEO = 0x1549A966, 0x1654AE6B, 0xAE, 0xE0
EBML, DOC_TYPE, CODEC, WIDTH, HEIGHT, TRACK_NUMBER = 0x1A45DFA3, 0x4282, 0x86, 0xB0, 0xBA, 0xD7
AUDIO, CODEC_PRIVATE, CODEC_DELAY, SEEK_PRE_ROLL = 0xE1, 0x63A2, 0x56AA, 0x56BB
INSIDE = {SEGMENT, CLUSTER, INFO, TRACKS, TRACK_ENTRY, VIDEO, AUDIO, EBML}


@dataclasses.dataclass
class Block:
    """A picture, or a packet of sound: its time in milliseconds, whether it is a key frame, its bytes, and where they end in the file."""

    time: int
    is_key: bool
    data: bytes
    end: int = 0


@dataclasses.dataclass
class File:
    doc_type: str = ""
    codec: str = ""
    size: tuple = (0, 0)
    blocks: list = dataclasses.field(default_factory=list)
    """The pictures."""
    sound_codec: str = ""
    opus_head: bytes = b""
    codec_delay: int = 0
    """Nanoseconds."""
    seek_pre_roll: int = 0
    sound: list = dataclasses.field(default_factory=list)
    """The packets of sound."""

    @property
    def times(self):
        return [block.time for block in self.blocks]


def read(path, may_be_cut=False):
    """The file; fails on anything that is not whole or not in place, but for the end of a file that `may_be_cut`."""
    data = path.read_bytes()
    file, end = File(), len(data)
    # A live stream's segment and clusters have unknown sizes: the next cluster ends the one before.
    position, cluster_time, scale, width, height, track, last = 0, None, 1_000_000, 0, 0, 0, 0
    while position < end:
        # An element's header has twelve bytes at most.
        if may_be_cut and position + 12 > end:
            break
        identifier, position = _identifier(data, position)
        size, position = _size(data, position)
        if may_be_cut and size is not None and identifier not in INSIDE and position + size > end:
            break
        if identifier in INSIDE:
            assert size is not None or identifier in (SEGMENT, CLUSTER), f"{identifier:x} of unknown size at {position}"
            if identifier == CLUSTER:
                cluster_time, last = None, 0
            continue
        assert size is not None and position + size <= end, f"{identifier:x} at {position} goes beyond the end"
        value = data[position:position + size]
        position += size
        if identifier == DOC_TYPE:
            file.doc_type = value.rstrip(b"\0").decode()
        elif identifier == CODEC:
            if track == 1:
                file.codec = value.decode()
            else:
                file.sound_codec = value.decode()
        elif identifier == TRACK_NUMBER:
            track += 1
            assert int.from_bytes(value, "big") == track <= 2, "a track of another number"
        elif identifier == CODEC_PRIVATE:
            file.opus_head = value
        elif identifier == CODEC_DELAY:
            file.codec_delay = int.from_bytes(value, "big")
        elif identifier == SEEK_PRE_ROLL:
            file.seek_pre_roll = int.from_bytes(value, "big")
        elif identifier == WIDTH:
            width = int.from_bytes(value, "big")
        elif identifier == HEIGHT:
            height = int.from_bytes(value, "big")
        elif identifier == TIMESTAMP_SCALE:
            scale = int.from_bytes(value, "big")
        elif identifier == TIMESTAMP:
            cluster_time = int.from_bytes(value, "big")
        elif identifier == SIMPLE_BLOCK:
            assert cluster_time is not None, "a block before its cluster's time"
            assert 1 <= value[0] - 0x80 <= track, "a block of another track"
            relative = int.from_bytes(value[1:3], "big", signed=True)
            assert relative >= last, "a block that is older than the one before it in its cluster"
            last = relative
            (file.blocks if value[0] == 0x81 else file.sound).append(Block((cluster_time + relative) * scale // 1_000_000, bool(value[3] & 0x80), value[4:], position))
    file.size = (width, height)
    return file


def _identifier(data, position):
    length = 9 - data[position].bit_length()
    assert 1 <= length <= 4, f"no element at {position}"
    return int.from_bytes(data[position:position + length], "big"), position + length


def _size(data, position):
    length = 9 - data[position].bit_length()
    assert 1 <= length <= 8, f"no size at {position}"
    value = int.from_bytes(data[position:position + length], "big") & ((1 << 7 * length) - 1)
    return None if value == (1 << 7 * length) - 1 else value, position + length
