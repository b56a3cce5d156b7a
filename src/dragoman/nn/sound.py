"""From sound to the vectors of an encoder: the log-mel spectrogram and two convolutions.

The front end of Whisper (Radford et al., 2023, section 2.2), which has the same two parts as most
speech recognizers: energies on a pitch scale, and convolutions that halve their number.
"""

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from dragoman.errors import InputError

BREAK_HZ, BREAK_MEL = 1000.0, 15.0
"""Where the scale changes from linear to logarithmic."""
STEP = 27 / math.log(6.4)
"""Mels per factor `e` in frequency above the break: 27 from 1 to 6.4 kHz."""


def hertz_to_mel(hertz: Tensor) -> Tensor:
    """Compute `3 f / 200` below 1 kHz, else `15 + 27 log(f / 1000) / log(6.4)`.

    The scale of Slaney's Auditory Toolbox (1998): equal steps sound about equally far apart.
    """
    above = BREAK_MEL + STEP * (hertz.clamp(min=BREAK_HZ) / BREAK_HZ).log()
    return torch.where(hertz < BREAK_HZ, hertz * BREAK_MEL / BREAK_HZ, above)


def mel_to_hertz(mel: Tensor) -> Tensor:
    """Compute the inverse of `hertz_to_mel`."""
    above = BREAK_HZ * ((mel.clamp(min=BREAK_MEL) - BREAK_MEL) / STEP).exp()
    return torch.where(mel < BREAK_MEL, mel * BREAK_HZ / BREAK_MEL, above)


def mel_filters(num_mels: int, rate: int, window: int) -> Tensor:
    """Return the matrix `(M, window / 2 + 1)`, float64, from frequency powers to mel bands.

    Band `i` is a triangle over points `i`, `i + 1` and `i + 2` of the `M + 2` that divide 0 to
    `rate / 2` Hz into equal steps of mel. Its area is 1, so that wide bands are not louder.
    Raises InputError if a band is so narrow that it contains no frequency.
    """
    top = float(hertz_to_mel(torch.tensor(rate / 2, dtype=torch.float64)))
    points = mel_to_hertz(torch.linspace(0, top, num_mels + 2, dtype=torch.float64))[:, None]
    low, centre, high = points[:-2], points[1:-1], points[2:]
    hertz = torch.arange(window // 2 + 1, dtype=torch.float64) * rate / window
    triangles = torch.minimum((hertz - low) / (centre - low), (high - hertz) / (high - centre))
    filters = triangles.clamp(min=0) * 2 / (high - low)
    if not bool(filters.any(dim=1).all()):
        raise InputError(
            f"num_mels = {num_mels} is too many at {rate:,} samples per second: a band is narrower "
            f"than {rate / window:g} Hz, the step between frequencies; take fewer bands"
        )
    return filters


def log_mel(samples: Tensor, rate: int = 16_000, *, num_mels: int = 80) -> Tensor:
    """Compute the log-mel spectrogram `(B, M, frames)` of sounds `(B, L)`; `B` is optional.

    Samples are between -1 and 1. There is one frame every 10 ms, `L // (rate // 100)` in all, each
    of 25 ms under a Hann window (lengths are rounded down to whole samples):

        x = log10(max(mel_filters |STFT|^2, 1e-10));  (max(x, max(x) - 8) + 4) / 4

    The floor is eight powers of ten below the greatest value of a sound. As in Whisper (Radford et
    al., 2023), where sounds are at 16 kHz and padded with zeros to 30 s. Raises InputError if a
    sound is not longer than half a window or if there are too many bands (`mel_filters`).
    """
    window, hop = rate // 80 * 2, rate // 100
    if samples.shape[-1] <= window // 2:
        raise InputError(
            f"the sound has {samples.shape[-1]:,} samples; at {rate:,} per second a spectrogram "
            f"needs more than {window // 2:,}: take a longer one, or append zeros"
        )
    hann = torch.hann_window(window, dtype=samples.dtype, device=samples.device)
    stft = torch.stft(samples, window, hop, window=hann, return_complex=True)
    power = stft[..., :-1].abs() ** 2  # the last frame begins where the sound ends
    logs = (mel_filters(num_mels, rate, window).to(samples) @ power).clamp(min=1e-10).log10()
    floor = logs.amax(dim=(-2, -1), keepdim=True) - 8
    return (torch.maximum(logs, floor) + 4) / 4


class SoundEmbedding(nn.Module):
    """`gelu(conv_2(gelu(conv_1(mels))))`: a vector for every two frames, instead of words.

    Both kernels are three frames wide with one zero on each side; the second has stride 2.
    `EncoderOnly.encode` adds positions to the vectors; Whisper's are `Sinusoidal(layout="halves",
    exponent="d/2-1")`. Silence is encoded like any sound, so there is no mask.
    """

    def __init__(self, num_mels: int, d_model: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv1d(num_mels, d_model, kernel_size=3, padding=1)
        self.conv2 = nn.Conv1d(d_model, d_model, kernel_size=3, stride=2, padding=1)

    def forward(self, mels_BML: Tensor) -> Tensor:
        """Map log-mel frames `(B, M, L)` to vectors `(B, S, D)`, `S = ceil(L / 2)`."""
        x_BDL = F.gelu(self.conv1(mels_BML))
        x_BDS = F.gelu(self.conv2(x_BDL))
        return x_BDS.transpose(1, 2)
