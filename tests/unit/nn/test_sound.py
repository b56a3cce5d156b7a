"""The front end of sound: bands, frames, and what cannot be computed."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from dragoman.errors import InputError
from dragoman.nn import SoundEmbedding, log_mel, mel_filters
from dragoman.nn.sound import hertz_to_mel, mel_to_hertz


@given(st.floats(0, 24_000))
def test_the_scale_has_an_inverse(hertz: float) -> None:
    """There and back; 200 Hz are 3 mel, 1 kHz is 15 and 6.4 kHz 42."""
    pitch = torch.tensor([200.0, 1000.0, 6400.0, hertz], dtype=torch.float64)
    mel = hertz_to_mel(pitch)
    assert mel[:3].tolist() == pytest.approx([3, 15, 42])
    assert mel_to_hertz(mel).tolist() == pytest.approx(pitch.tolist())


@given(st.integers(2, 40), st.sampled_from([8_000, 16_000, 44_100]))
def test_a_tone_is_loudest_in_the_band_of_its_pitch(num_mels: int, rate: int) -> None:
    """The centre of a band, played, gives the greatest value there in every frame."""
    top = float(hertz_to_mel(torch.tensor(rate / 2)))
    centres = mel_to_hertz(torch.linspace(0, top, num_mels + 2))[1:-1]
    band = num_mels // 2
    tone = (2 * torch.pi * float(centres[band]) * torch.arange(rate // 4) / rate).sin()
    frames = log_mel(tone, rate, num_mels=num_mels)
    assert frames.shape == (num_mels, len(tone) // (rate // 100))
    assert set(frames[:, 2:-2].argmax(0).tolist()) == {band}


@given(st.floats(1e-3, 1))
def test_loudness_moves_all_frames_alike(factor: float) -> None:
    """A tenth of the amplitude is half a unit less (two powers of ten are four quarters)."""
    samples = torch.randn(4_000, dtype=torch.float64)
    moved = log_mel(samples) - log_mel(factor * samples)
    expected = torch.full_like(moved, -math.log10(factor) / 2)
    torch.testing.assert_close(moved, expected, rtol=0, atol=1e-6)


def test_the_area_of_a_band_is_one() -> None:
    """With frequencies dense enough to integrate over."""
    areas = mel_filters(80, 16_000, 160_000).sum(1) * 16_000 / 160_000
    assert areas.tolist() == pytest.approx([1] * 80, abs=1e-3)


def test_silence_has_one_value() -> None:
    """1e-10 is what power is not below: (-10 + 4) / 4."""
    assert log_mel(torch.zeros(2, 1_000)).unique().tolist() == [-1.5]


@given(st.integers(1, 12))
def test_there_is_a_vector_for_every_two_frames(length: int) -> None:
    """Half as many, rounded up, and each sees five frames: two before its own and two behind."""
    sounds = SoundEmbedding(3, 4)
    mels = torch.randn(1, 3, length, requires_grad=True)
    vectors = sounds(mels)
    assert vectors.shape == (1, (length + 1) // 2, 4)
    vectors[0, -1].sum().backward()
    assert mels.grad is not None
    seen = mels.grad[0].abs().sum(0).nonzero()[:, 0].tolist()
    last = 2 * (vectors.shape[1] - 1)
    assert seen == [i for i in range(last - 2, last + 3) if 0 <= i < length]


def test_what_is_too_short_or_too_narrow_is_refused() -> None:
    """Both in one sentence that names the number."""
    with pytest.raises(InputError, match=r"200 samples; at 16,000 per second .* more than 200"):
        log_mel(torch.zeros(200))
    with pytest.raises(InputError, match=r"num_mels = 300 is too many .* narrower than 40 Hz"):
        log_mel(torch.zeros(400), num_mels=300)
