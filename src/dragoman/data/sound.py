"""Sound from WAV files, with only the standard library, at the sampling rate of a model."""

import math
import wave
from pathlib import Path

import torch
from torch import Tensor

from dragoman.errors import InputError

CONVERT = "convert it: ffmpeg -i OLD -c:a pcm_s16le NEW.wav."


def read_wav(path: Path | str, rate: int = 16_000) -> Tensor:
    """Return the samples `(L)` of a WAV file, float32 from -1 to 1, at `rate` samples per second.

    The file must contain 16-bit PCM. Channels are averaged, and other rates are converted by
    `resample`. Raises InputError for a file that is missing, damaged, truncated, empty or of
    another format.
    """
    path = Path(path)
    try:
        with path.open("rb") as stream, wave.open(stream) as sound:
            channels, width, old_rate, length = sound.getparams()[:4]
            content = sound.readframes(length)
    except (wave.Error, EOFError) as error:
        why = str(error) or "it ends too soon"
        raise InputError(f"{path} is not a WAV file with PCM samples ({why}); {CONVERT}") from None
    except OSError as error:
        raise InputError(f"Cannot read {path}: {error.strerror or error}.") from error
    if width != 2:
        raise InputError(f"{path} has {8 * width} bits per sample instead of 16; {CONVERT}")
    if not length or not old_rate:
        raise InputError(
            f"{path} has {length} samples, {old_rate} per second; record it again, or {CONVERT}"
        )
    if len(content) != length * width * channels:
        raise InputError(
            f"{path} is cut short: of {length:,} samples there are "
            f"{len(content) // (width * channels):,}; copy it again, or {CONVERT}"
        )
    samples = torch.frombuffer(bytearray(content), dtype=torch.int16).view(-1, channels)
    return resample(samples.float().mean(1) / 32768, old_rate, rate)


def resample(samples: Tensor, old: int, new: int) -> Tensor:
    """Resample `(..., L)` from `old` to `new` samples per second: `(..., ceil(L new / old))`.

    Frequencies below half of both rates are preserved and the others removed, by truncating or
    zero-padding the spectrum. A sound that begins or ends abruptly rings there.
    """
    if old == new:
        return samples
    length, step = samples.shape[-1], old // math.gcd(old, new)
    padded = (length // step + 2) * step  # a whole number of samples at both rates
    target = padded * new // old
    spectrum = torch.fft.rfft(samples, padded)
    resampled: Tensor = torch.fft.irfft(spectrum, target) * (new / old)  # truncates or zero-pads
    return resampled[..., : -(-length * new // old)]
