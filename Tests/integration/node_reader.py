# SPDX-License-Identifier: MIT
"""Reads a PipeWire node with GStreamer and prints one line of JSON for each buffer: what the picture in it says, its size and time.

Usage: node_reader.py NODE DESCRIPTOR FORMAT STRIDE, where FORMAT may be empty and STRIDE 0. A process of its own, so that nothing that a node does can take the tests down.
It ends when its standard input does.
"""

import json
import sys
import threading
import zlib

import gi
import numpy

gi.require_version("Gst", "1.0")

from gi.repository import Gst

import picture


def say(**event):
    print(json.dumps(event), flush=True)


def rgb(data, width, height, stride):
    data = numpy.frombuffer(data, numpy.uint8)
    if stride:
        # BGRx as it is in the node's buffer: this version of GStreamer's source knows no strides of others.
        return data.reshape(height, stride)[:, :width * 4].reshape(height, width, 4)[:, :, 2::-1]
    # Rows of GStreamer's own RGB end at a multiple of four bytes.
    return data.reshape(height, (width * 3 + 3) // 4 * 4)[:, :width * 3].reshape(height, width, 3)


def describe(sample, stride):
    shape = sample.get_caps().get_structure(0)
    width, height = shape.get_value("width"), shape.get_value("height")
    buffer = sample.get_buffer()
    ok, memory = buffer.map(Gst.MapFlags.READ)
    if not ok:
        return {"width": width, "height": height, "number": None}
    try:
        image = rgb(memory.data, width, height, stride)
        reading = picture.read(image)
        return {
            "width": width, "height": height, "pts": buffer.pts, "number": reading and reading.number, "size": reading and reading.size,
            "orientation": reading and reading.orientation, "box": reading and reading.box, "channels": reading and reading.channels,
            "red": int(((image[:, :, 0] > 200) & (image[:, :, 1:].max(axis=2) < 60)).sum()),
            "crc": zlib.crc32(image.tobytes()), "mean": [round(float(part)) for part in image.reshape(-1, 3).mean(axis=0)],
        }
    finally:
        buffer.unmap(memory)


def main(node, descriptor, wanted, stride):
    Gst.init(None)
    steps = f"video/x-raw,format={wanted} ! " if wanted else ""
    if not stride:
        steps += "videoconvert ! video/x-raw,format=RGB ! "
    pipeline = Gst.parse_launch(
        f"pipewiresrc path={node} fd={descriptor} min-buffers=1 always-copy=true ! {steps}"
        "appsink name=sink sync=false max-buffers=8")
    sink = pipeline.get_by_name("sink")
    done = threading.Event()
    threading.Thread(target=lambda: (sys.stdin.read(), done.set()), daemon=True).start()
    pipeline.set_state(Gst.State.PLAYING)
    bus = pipeline.get_bus()
    while not done.is_set():
        sample = sink.emit("try-pull-sample", 50 * Gst.MSECOND)
        if sample is not None:
            say(**describe(sample, stride))
        while message := bus.pop_filtered(Gst.MessageType.ERROR | Gst.MessageType.EOS):
            if message.type == Gst.MessageType.EOS:
                say(message="eos")
            else:
                say(message="error", text=message.parse_error()[0].message)
            done.wait()
    pipeline.set_state(Gst.State.NULL)


main(sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4]))
