"""Where a token stands: schemes that are values, and what they make."""

from dragoman.nn.position.bias import ALiBi, ALiBiBias, RelativeBias, RelativeBiasTable
from dragoman.nn.position.place import NOWHERE, Bias, Place, Positions
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
from dragoman.nn.position.scheme import NoPositions, PositionScheme
from dragoman.nn.position.table import (
    Learned,
    LearnedPositions,
    Sinusoidal,
    SinusoidalPositions,
    sinusoidal_table,
)

__all__ = [
    "NOWHERE",
    "ALiBi",
    "ALiBiBias",
    "Angles",
    "Bias",
    "DynamicScaling",
    "Learned",
    "LearnedPositions",
    "LinearScaling",
    "Llama3Scaling",
    "NoPositions",
    "Place",
    "PositionScheme",
    "Positions",
    "RelativeBias",
    "RelativeBiasTable",
    "Rotary",
    "RotaryScaling",
    "Rotation",
    "Sinusoidal",
    "SinusoidalPositions",
    "YaRN",
    "rotate",
    "sinusoidal_table",
]
