"""What a scheme of positions can make; each scheme makes one of the three, or nothing."""

from dataclasses import dataclass
from typing import Literal

from dragoman.nn.position.bias import ALiBi, RelativeBias
from dragoman.nn.position.rotary import Rotary
from dragoman.nn.position.table import Learned, Sinusoidal


@dataclass(frozen=True, slots=True, kw_only=True)
class NoPositions:
    """No positions: without a mask, self-attention then treats a sentence as a set."""

    kind: Literal["none"] = "none"
    """Which of the schemes this is."""


PositionScheme = Sinusoidal | Learned | Rotary | RelativeBias | ALiBi | NoPositions
"""Added to the embeddings (sinusoidal, learned), turning queries and keys (rotary), added to the
scores (relative bias, ALiBi), or nothing."""
