"""Position schemes as values, and the modules that they make."""

from dragoman.nn.position.bias import ALiBi, RelativeBias
from dragoman.nn.position.rotary import Rotary
from dragoman.nn.position.scheme import Learned, NoPositions
from dragoman.nn.position.sinusoidal import Sinusoidal

__all__ = ["PositionScheme"]

PositionScheme = Sinusoidal | Learned | Rotary | RelativeBias | ALiBi | NoPositions
"""The schemes that a config can name: added to the embeddings (sinusoidal, learned), rotating
queries and keys (rotary), added to the scores (relative bias, ALiBi), or none."""
