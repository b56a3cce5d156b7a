"""The front end for sound: bands, frames, and rejected input."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from dragoman.errors import InputError
from dragoman.nn import SoundEmbedding, log_mel
from dragoman.nn.sound import hertz_to_mel, mel_to_hertz


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
    """The error is one sentence that names the number."""
    with pytest.raises(InputError, match=r"200 samples; at 16,000 per second .* more than 200"):
        log_mel(torch.zeros(200))
    with pytest.raises(InputError, match=r"num_mels = 300 is too many .* narrower than 40 Hz"):
        log_mel(torch.zeros(400), num_mels=300)
