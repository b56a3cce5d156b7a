"""Where a token stands: schemes that are values, and what they make."""

from dragoman.nn.position.bias import ALiBi, ALiBiBias, RelativeBias, RelativeBiasTable
from dragoman.nn.position.learned import Learned, LearnedPositions
from dragoman.nn.position.rotary import (
    Angles,
    DynamicScaling,
    LinearScaling,
    Llama3Scaling,
    Rotary,
    RotaryScaling,
    Rotation,
    YaRN,
    rotate,
)
from dragoman.nn.position.scheme import NoPositions, Positions, Scheme
from dragoman.nn.position.sinusoidal import Sinusoidal, SinusoidalPositions, sinusoidal_table

__all__ = [
    "ALiBi",
    "ALiBiBias",
    "Angles",
    "DynamicScaling",
    "Learned",
    "LearnedPositions",
    "LinearScaling",
    "Llama3Scaling",
    "NoPositions",
    "PositionScheme",
    "Positions",
    "RelativeBias",
    "RelativeBiasTable",
    "Rotary",
    "RotaryScaling",
    "Rotation",
    "Scheme",
    "Sinusoidal",
    "SinusoidalPositions",
    "YaRN",
    "rotate",
    "sinusoidal_table",
]

PositionScheme = Sinusoidal | Learned | Rotary | RelativeBias | ALiBi | NoPositions
"""The schemes that a config can name: added to the embeddings (sinusoidal, learned), turning
queries and keys (rotary), added to the scores (relative bias, ALiBi), or nothing."""
