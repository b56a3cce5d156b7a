"""Weights in 8 bits: linear and embedding matrices as integers with a scale for each row.

    W[o, i] = scale[o] * q[o, i],  |q| <= 127

Rows are the outputs of a product, as in int8 decoding, which computes the same integers again.
Biases, norms and positions stay in fp32: they are small.
"""

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn

from dragoman.models.build import SCALE, build_on_meta
from dragoman.models.config import ModelConfig
from dragoman.nn.cpu.rounding import quantized
from dragoman.nn.embedding import TokenEmbedding

TINY = 1e-30
"""Rows with no larger weight are stored as zeros: their scales would lose digits."""


def rounded(state: Mapping[str, Tensor], config: ModelConfig) -> dict[str, Tensor]:
    """Return the weights with each matrix `NAME` replaced by integers `NAME` and `NAME.scale`."""
    parts = build_on_meta(config).named_modules(remove_duplicate=False)
    matrices = {f"{name}.weight" for name, p in parts if isinstance(p, nn.Linear | TokenEmbedding)}
    found = dict(state)
    for name in matrices & state.keys():
        weight_OI = state[name]
        kept_O1 = weight_OI.abs().amax(dim=1, keepdim=True) > TINY
        q_OI, scale_O1 = quantized(weight_OI * kept_O1)
        found |= {name: q_OI, name + SCALE: scale_O1[:, 0]}
    return found


def in_float32(stored: Any, name: str) -> Tensor:  # noqa: ANN401 -- the library's handle
    """Return a copy of a stored weight in fp32."""
    tensor: Tensor = stored.get_tensor(name)
    if tensor.dtype is torch.int8:
        scale_O: Tensor = stored.get_tensor(name + SCALE)
        return tensor * scale_O[:, None]
    return tensor.to(torch.float32, copy=True)
