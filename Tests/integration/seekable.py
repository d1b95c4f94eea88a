# SPDX-License-Identifier: MIT
"""Reads a finished WebM file, strictly: every size known, every position in place. And asks others where a seek leads."""

import dataclasses
import struct
import subprocess

import gi
import numpy

gi.require_version("Gst", "1.0")

from gi.repository import Gst

import picture
from harness import probe

Gst.init(None)

EBML, SEGMENT, SEEK_HEAD, SEEK_ID, SEEK_POSITION = 0x1A45DFA3, 0x18538067, 0x114D9B74, 0x53AB, 0x53AC
INFO, DURATION, TRACKS, CLUSTER, TIMESTAMP, SIMPLE_BLOCK = 0x1549A966, 0x4489, 0x1654AE6B, 0x1F43B675, 0xE7, 0xA3
CUES, CUE_TIME, CUE_POSITIONS, CUE_TRACK, CUE_CLUSTER = 0x1C53BB6B, 0xB3, 0xB7, 0xF7, 0xF1


@dataclasses.dataclass
class Finished:
    """Times are milliseconds."""

    duration: float
    times: list
    """Of all pictures and packets of sound."""
    keys: list
    """Of the key frames."""
    cues: list
    """Of the places that the index names."""


def _elements(data, position, end):
    """Identifier, where it begins, and the ends of its content; nothing may be left over and no size open."""
    while position < end:
        begin = position
        length = 9 - data[position].bit_length()
        identifier = int.from_bytes(data[position:position + length], "big")
        position += length
        length = 9 - data[position].bit_length()
        size = int.from_bytes(data[position:position + length], "big") & ((1 << 7 * length) - 1)
        assert size != (1 << 7 * length) - 1, f"{identifier:x} at {begin} has no size"
        position += length
        assert position + size <= end, f"{identifier:x} at {begin} goes beyond {end}"
        yield identifier, begin, position, position + size
        position += size


def read_finished(path):
    data = path.read_bytes()

    def children(element):
        return list(_elements(data, element[2], element[3]))

    def number(element):
        return int.from_bytes(data[element[2]:element[3]], "big")

    def one(elements, identifier):
        (found,) = [element for element in elements if element[0] == identifier]
        return found

    top = list(_elements(data, 0, len(data)))
    assert [element[0] for element in top] == [EBML, SEGMENT]
    segment = top[1]
    inside = children(segment)
    at = {element[1] - segment[2]: element for element in inside}
    sought = {}
    for seek in children(one(inside, SEEK_HEAD)):
        fields = {element[0]: element for element in children(seek)}
        sought[number(fields[SEEK_ID])] = at[number(fields[SEEK_POSITION])]
    assert all(element[0] == identifier for identifier, element in sought.items())
    assert set(sought) == {INFO, TRACKS, CUES}
    (duration,) = struct.unpack(">d", data[slice(*one(children(sought[INFO]), DURATION)[2:])])
    times, keys, first = [], [], {}
    for cluster in (element for element in inside if element[0] == CLUSTER):
        timestamp, *blocks = children(cluster)
        assert timestamp[0] == TIMESTAMP and blocks and all(block[0] == SIMPLE_BLOCK for block in blocks)
        for block in blocks:
            time = number(timestamp) + int.from_bytes(data[block[2] + 1:block[2] + 3], "big", signed=True)
            # Each packet of sound is one to begin with, and none to seek to.
            is_key = data[block[2]] == 0x81 and bool(data[block[2] + 3] & 0x80)
            first.setdefault(cluster[1] - segment[2], (time, is_key))
            times.append(time)
            if is_key:
                keys.append(time)
    assert times == sorted(times)
    cues = []
    for point in children(sought[CUES]):
        time, positions = children(point)
        fields = {element[0]: number(element) for element in children(positions)}
        assert (time[0], positions[0], fields[CUE_TRACK]) == (CUE_TIME, CUE_POSITIONS, 1)
        assert first[fields[CUE_CLUSTER]] == (number(time), True), "a cue that does not lead to a key frame of its time"
        cues.append(number(time))
    return Finished(duration, times, keys, cues)


def ffmpeg_seek(path, seconds):
    """The number of the picture that ffmpeg shows first after a seek."""
    stream = probe(path)["streams"][0]
    command = ["ffmpeg", "-v", "error", "-ss", f"{seconds:.3f}", "-i", str(path), "-frames:v", "1", "-pix_fmt", "rgb24", "-f", "rawvideo", "-"]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, check=True, timeout=60)
    assert done.stderr == b""
    return picture.read(numpy.frombuffer(done.stdout, numpy.uint8).reshape(stream["height"], stream["width"], 3)).number


def gstreamer_seek(path, seconds):
    """The same of GStreamer."""
    pipeline = Gst.parse_launch(
        f"filesrc location={path} ! matroskademux ! decodebin ! videoconvert ! video/x-raw,format=RGB ! appsink name=sink sync=false")
    sink = pipeline.get_by_name("sink")
    try:
        pipeline.set_state(Gst.State.PAUSED)
        assert pipeline.get_state(30 * Gst.SECOND)[0] == Gst.StateChangeReturn.SUCCESS
        flags = Gst.SeekFlags.FLUSH | Gst.SeekFlags.ACCURATE
        assert pipeline.seek_simple(Gst.Format.TIME, flags, round(seconds * 1000) * Gst.MSECOND)
        assert pipeline.get_state(30 * Gst.SECOND)[0] == Gst.StateChangeReturn.SUCCESS
        sample = sink.emit("pull-preroll")
        fields = sample.get_caps().get_structure(0)
        width, height = fields.get_value("width"), fields.get_value("height")
        data = sample.get_buffer().extract_dup(0, sample.get_buffer().get_size())
        rows = numpy.frombuffer(data, numpy.uint8).reshape(height, -1)[:, :width * 3]
        return picture.read(rows.reshape(height, width, 3)).number
    finally:
        pipeline.set_state(Gst.State.NULL)
