"""Initialisation of weights before training."""

from collections.abc import Iterable
from typing import Literal, NamedTuple

import torch
from torch import Tensor, nn

InitName = Literal["xavier", "gpt2"]


def init_linear(linear: nn.Linear, *, parts: int = 1) -> None:
    """Draw the matrix from Xavier-uniform (Glorot and Bengio, 2010) and zero the bias.

    A matrix that stacks several projections is drawn part by part, as if each were a matrix of its
    own: the fan of the whole would make the weights too small.
    """
    for weight in linear.weight.chunk(parts):
        nn.init.xavier_uniform_(weight)
    if linear.bias is not None:
        nn.init.zeros_(linear.bias)


def init_gpt2(linears: Iterable[nn.Linear], ends: Iterable[nn.Linear], depth: int) -> None:
    """Draw matrices from `N(0, 0.02^2)`, `ends` of sublayers from `N(0, 0.02^2 / (2 depth))`.

    The residual stream is a sum of `2 depth` sublayers; this way its variance does not grow with
    their number (Radford et al., 2019, section 2.3).
    """
    for linear in linears:
        nn.init.normal_(linear.weight, std=0.02)
    for linear in ends:
        nn.init.normal_(linear.weight, std=0.02 * (2 * depth) ** -0.5)


class DeepNorm(NamedTuple):
    """`alpha` multiplies the residual branch, `beta` the weights of values, outputs and FFN."""

    alpha: float
    beta: float


def deepnorm(num_layers: int) -> DeepNorm:
    """Return the constants of a single stack (Wang et al., 2022, figure 2)."""
    return DeepNorm((2 * num_layers) ** 0.25, (8 * num_layers) ** -0.25)


def deepnorm_pair(num_encoder_layers: int, num_decoder_layers: int) -> tuple[DeepNorm, DeepNorm]:
    """Return the constants of an encoder and a decoder that are trained together."""
    both = (num_encoder_layers**4 * num_decoder_layers) ** (1 / 16)
    encoder = DeepNorm(0.81 * both, 0.87 / both)
    return encoder, DeepNorm((3 * num_decoder_layers) ** 0.25, (12 * num_decoder_layers) ** -0.25)


@torch.no_grad()
def scale_weights(weights: Iterable[Tensor], factor: float) -> None:
    """Multiply initialised matrices, or parts of them, by a gain."""
    for weight in weights:
        weight.mul_(factor)
