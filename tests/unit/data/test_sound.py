"""WAV files as samples: formats, sample rates and errors."""

import struct
import wave
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from dragoman.data.sound import read_wav, resample
from dragoman.errors import InputError


def write(
    path: Path, content: bytes, *, rate: int = 16_000, channels: int = 1, width: int = 2
) -> Path:
    """Write a WAV file with these bytes as samples."""
    with wave.open(str(path), "wb") as sound:
        sound.setparams((channels, width, rate, 0, "NONE", "not compressed"))
        sound.writeframes(content)
    return path


def tone(hertz: float, rate: int, seconds: float = 0.5) -> Tensor:
    """Return a sine in float64."""
    return (
        2 * torch.pi * hertz * torch.arange(int(rate * seconds), dtype=torch.float64) / rate
    ).sin()


def test_samples_are_read_as_they_are(tmp_path: Path) -> None:
    """Samples are from -1 to almost 1, in order; two channels, interleaved, are averaged."""
    numbers = [0, 1, -1, 12_345, 32_767, -32_768]
    path = write(tmp_path / "a.wav", struct.pack("<6h", *numbers))
    samples = read_wav(path)
    assert samples.dtype == torch.float32
    assert samples.tolist() == [number / 32768 for number in numbers]
    assert read_wav(str(path)).tolist() == samples.tolist()
    path = write(tmp_path / "a.wav", struct.pack("<4h", 100, 300, -500, 100), channels=2)
    assert (read_wav(path) * 32768).tolist() == [200, -200]


def test_another_rate_is_converted(tmp_path: Path) -> None:
    """A tone recorded at 44.1 kHz is the same tone at 16 kHz."""
    recorded = (tone(440, 44_100) * 30_000).round().to(torch.int16)
    path = write(tmp_path / "a.wav", recorded.numpy().tobytes(), rate=44_100)
    samples = read_wav(path)
    assert len(samples) == 8_000
    inside = slice(1_000, -1_000)
    wanted = tone(440, 16_000)[inside].float() * 30_000 / 32768
    torch.testing.assert_close(samples[inside], wanted, rtol=0, atol=1e-3)


@given(
    st.sampled_from([8_000, 11_025, 16_000, 22_050, 44_100, 48_000]),
    st.sampled_from([8_000, 16_000, 22_050]),
    st.floats(200, 3_000),
)
def test_tones_below_both_limits_are_kept(old: int, new: int, hertz: float) -> None:
    """What the new rate samples is what resampling gives, away from the abrupt ends."""
    got = resample(tone(hertz, old), old, new)
    inside = slice(len(got) // 4, len(got) // 2)
    assert float((got[inside] - tone(hertz, new)[inside]).abs().max()) < 2e-3


def test_tones_above_the_new_limit_are_removed() -> None:
    """7 kHz would alias to 1 kHz at 8,000 samples per second."""
    got = resample(tone(7_000, 44_100), 44_100, 8_000)
    assert float(got[500:-500].abs().max()) < 2e-3


@given(st.integers(1, 500), st.integers(1, 48_000), st.integers(1, 48_000))
def test_the_length_is_that_of_the_time(length: int, old: int, new: int) -> None:
    """As many samples as fit, rounded up, whatever the two rates have in common."""
    assert len(resample(torch.ones(length), old, new)) == -(-length * new // old)


def test_what_is_no_such_sound_is_refused(tmp_path: Path) -> None:
    """One sentence names the file and what to do."""
    path = tmp_path / "a.wav"
    whole = write(path, bytes(200)).read_bytes()
    for content, message in (
        (b"", "not a WAV file with PCM samples .it ends too soon.; convert it: ffmpeg"),
        (b"no sound, but text\n", "not a WAV file with PCM samples .file does not start with"),
        (whole.replace(struct.pack("<HH", 1, 1), struct.pack("<HH", 3, 1)), "unknown format: 3."),
        (whole[:-50], "cut short: of 100 samples there are 75; copy it again"),
        (write(path, bytes(6), width=3).read_bytes(), "has 24 bits per sample instead of 16; conv"),
        (write(path, b"").read_bytes(), "has 0 samples, 16000 per second; record"),
    ):
        path.write_bytes(content)
        with pytest.raises(InputError, match=rf"a\.wav .*{message}"):
            read_wav(path)
    with pytest.raises(InputError, match=r"Cannot read .*b\.wav: No such file"):
        read_wav(tmp_path / "b.wav")
