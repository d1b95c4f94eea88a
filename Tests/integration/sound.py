# SPDX-License-Identifier: MIT
"""Sound devices that are none, tones to play on them, and what is heard in a file."""

import json
import subprocess

import numpy

from harness import TOP
from processes import wait_until

RATE = 48_000


def add_device(session, name, kind="Audio/Sink"):
    """A device of PipeWire's own making: `Audio/Sink`, or `Audio/Source/Virtual` for a microphone."""
    session.run(["pw-cli", "create-node", "adapter",
                 f"{{ factory.name=support.null-audio-sink node.name={name} media.class={kind} object.linger=true audio.position=[FL FR] }}"])
    wait_until(lambda: node(session, name), f"the device {name}")


def add_microphone(session, name):
    add_device(session, name, "Audio/Source/Virtual")


def nodes(session):
    """Number, name and state of all nodes."""
    # What changes while it is listed comes behind the list.
    found, _ = json.JSONDecoder().raw_decode(session.run(["pw-dump", "--no-colors"], timeout=20).stdout)
    return [(one["id"], one["info"]["props"].get("node.name", ""), one["info"]["state"]) for one in found
            if one["type"] == "PipeWire:Interface:Node" and one.get("info")]


def node(session, name):
    return next((number for number, its_name, _ in nodes(session) if its_name == name), None)


def remove_device(session, name):
    session.run(["pw-cli", "destroy", str(node(session, name))])
    wait_until(lambda: node(session, name) is None, f"{name} gone")


def set_default(session, kind, name):
    """Makes a device the default: `sink` or `source`."""
    session.run(["pw-metadata", "0", f"default.configured.audio.{kind}", f'{{"name":"{name}"}}', "Spa:String:JSON"])
    wait_until(lambda: f'default.audio.{kind}\' value:\'{{"name":"{name}"}}' in session.run(["pw-metadata"]).stdout, f"{name} as the default")


def linked(session, stream, device):
    """Whether a stream of ours hears a device."""
    lines = session.run(["pw-link", "-l"]).stdout.splitlines()
    heading = ""
    for line in lines:
        if not line.startswith(" "):
            heading = line
        elif heading.startswith(f"{stream}:") and f"|<- {device}:" in line:
            return True
    return False


def write_tone(path, left, right, seconds=120, level=0.25):
    """A WAV file with a tone in each channel; a frequency of 0 is silence."""
    subprocess.run(["ffmpeg", "-v", "error", "-y", "-f", "lavfi", "-i",
                    f"aevalsrc={level}*sin(2*PI*{left}*t)|{level}*sin(2*PI*{right}*t):d={seconds}:s={RATE}", "-c:a", "pcm_f32le", str(path)], check=True)
    return path


def play(session, path, name="player", target=None):
    """Plays a file on the default output, or into a device, until it is ended."""
    return session.start(name, ["pw-play", *(["--target", target] if target else []), str(path)])


def speak(session, path, microphone):
    """Plays a file into a microphone, to which the session manager would link no player."""
    session.start("speech", ["pw-play", "--target", "0", "-P", "{ node.name=speech }", str(path)])
    for side in ("FL", "FR"):
        wait_until(lambda: session.run(["pw-link", f"speech:output_{side}", f"{microphone}:input_{side}"], check=False).returncode == 0,
                   "speech in the microphone")


def decode(path):
    """The sound of a file at its times: an array (sample, channel) that begins with the stream; where nothing was sent it is silent."""
    done = subprocess.run(["ffmpeg", "-v", "error", "-i", str(path), "-map", "0:a", "-af", "aresample=async=1:min_comp=0.001:first_pts=0", "-f", "f32le",
                           "-ac", "2", "-"], capture_output=True, timeout=300, stdin=subprocess.DEVNULL)
    assert done.returncode == 0, done.stderr.decode(errors="replace")
    return numpy.frombuffer(done.stdout, "<f4").reshape(-1, 2)


def level(samples, frequency, channel, length=4_096):
    """The level of a frequency, 1 at full scale: the median of parts of 85 ms, so that one sample that a busy machine lost is not all."""
    wave = numpy.hanning(length) * numpy.exp(-2j * numpy.pi * frequency * numpy.arange(length) / RATE)
    parts = samples[:len(samples) // length * length, channel].reshape(-1, length)
    return float(numpy.median(4 * abs(parts @ wave) / length))


def loudest(samples, channel):
    """The frequency that is loudest, by FFT."""
    spectrum = numpy.abs(numpy.fft.rfft(samples[:, channel] * numpy.hanning(len(samples))))
    return float(spectrum.argmax() * RATE / len(samples))


def build_clicker(folder):
    """Compiles `clicker.c`."""
    flags = subprocess.run(["pkg-config", "--cflags", "--libs", "libpipewire-0.3"], check=True, capture_output=True, text=True).stdout.split()
    subprocess.run(["cc", "-o", str(folder / "clicker"), str(TOP / "Tests/integration/clicker.c"), *flags], check=True)
    return folder / "clicker"
