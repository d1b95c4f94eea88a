# SPDX-License-Identifier: MIT
"""Sound devices that are none, tones to play on them, and what is heard in a file."""

import dataclasses
import json
import signal
import subprocess

import numpy

import matroska
import picture
from harness import TOP, frames
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
    # What changes while it is listed comes behind the list; what goes has no type any more.
    found, _ = json.JSONDecoder().raw_decode(session.run(["pw-dump", "--no-colors"], timeout=20).stdout)
    return [(one["id"], one["info"]["props"].get("node.name", ""), one["info"]["state"]) for one in found
            if one.get("type") == "PipeWire:Interface:Node" and one.get("info")]


def node(session, name):
    return next((number for number, its_name, _ in nodes(session) if its_name == name), None)


def remove_device(session, name):
    def is_gone():
        number = node(session, name)
        if number is not None:
            # Now and then it leaves before PipeWire has heard it.
            session.run(["pw-cli", "destroy", str(number)])
        return number is None

    wait_until(is_gone, f"{name} gone")


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


@dataclasses.dataclass(frozen=True)
class Offset:
    """A flash and a click of one moment: when that was in the stream, and how much later than that each is in the file, in seconds."""

    moment: float
    flash: float
    click: float

    @property
    def between(self):
        return self.click - self.flash


class FlashesAndClicks:
    """Makes pictures and clicks at the same moments, and finds them in a file. The test screen sends by hand; nothing else is louder than 0.2."""

    def __init__(self, session, screen, folder, tone=0.0):
        """`tone`: the level of a tone of 400 Hz between the clicks."""
        self._session, self._screen = session, screen
        self._numbers, self._sent = [], {}
        self._clicker = session.start("clicker", [_build_clicker(folder), str(tone)])
        wait_until(lambda: "ready" in session.processes.log("clicker"), "the clicker")
        wait_until(lambda: ("clicker", "running") in [(name, state) for _, name, state in nodes(session)], "the clicker in the graph")

    @property
    def _clicked(self):
        """The times of all clicks, as the player took them."""
        return [int(line) / 1e9 for line in self._session.processes.log("clicker").split() if line.isdigit()]

    def make(self):
        """Makes one of each."""
        self._clicker.send_signal(signal.SIGUSR1)
        self._numbers.append(self._screen.push_frames(1))
        wait_until(lambda: len(self._clicked) >= len(self._numbers), f"click {len(self._numbers)}")
        # The screen keeps the latest only.
        self._sent[self._numbers[-1]] = dict(self._screen.get("Timeline"))[self._numbers[-1]] / 1e9

    def find(self, path, epoch, read=lambda image: [picture.read(image)]):
        """Where they are in a file whose time 0 was at `epoch`, in seconds; `read` finds the readings in a picture. What a busy machine lost is left out."""
        file = matroska.read(path)
        pictures = {}
        for readings, block in zip(map(read, frames(path)), file.blocks):
            for reading in filter(None, readings):
                # The same picture may come again, sharper.
                pictures.setdefault(reading.number, block.time / 1e3)
        clicks, found = click_times(path, file), []
        for number, clicked in zip(self._numbers, self._clicked):
            moment = clicked - epoch
            near = [time for time in clicks if abs(time - moment) < 0.25]
            if near and number in pictures:
                found.append(Offset(moment, pictures[number] - (self._sent[number] - epoch), near[0] - moment))
        return found


def click_times(path, file):
    """When each loud moment of a file begins, in seconds, by the times of its packets and the samples in them."""
    done = subprocess.run(["ffmpeg", "-v", "error", "-i", str(path), "-map", "0:a", "-f", "f32le", "-ac", "1", "-"], capture_output=True, timeout=600,
                          stdin=subprocess.DEVNULL)
    assert done.returncode == 0, done.stderr.decode(errors="replace")
    # What a decoder makes before the first sample is not among its samples.
    skipped, length = file.codec_delay * RATE // 10**9, RATE // 50
    samples = numpy.frombuffer(done.stdout, "<f4")
    assert abs(len(samples) + skipped - length * len(file.sound)) <= length, "not 20 ms a packet"
    loud = numpy.flatnonzero(numpy.abs(samples) > 0.3)
    starts = [place for index, place in enumerate(loud) if index == 0 or place - loud[index - 1] > RATE // 10]
    return [file.sound[(place + skipped) // length].time / 1e3 + ((place + skipped) % length - skipped) / RATE for place in starts]


def _build_clicker(folder):
    """Compiles `clicker.c`."""
    flags = subprocess.run(["pkg-config", "--cflags", "--libs", "libpipewire-0.3"], check=True, capture_output=True, text=True).stdout.split()
    subprocess.run(["cc", "-o", str(folder / "clicker"), str(TOP / "Tests/integration/clicker.c"), *flags, "-lm"], check=True)
    return folder / "clicker"
