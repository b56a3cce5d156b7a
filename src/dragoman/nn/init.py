"""How weights are drawn before training."""

from torch import nn


def init_linear(linear: nn.Linear, *, parts: int = 1) -> None:
    """Draw the matrix from Xavier-uniform (Glorot and Bengio, 2010) and zero the bias.

    A matrix that holds several projections, one above the other, is drawn part by part, as if each
    stood alone: the fan of the whole would make them too small.
    """
    for weight in linear.weight.chunk(parts):
        nn.init.xavier_uniform_(weight)
    if linear.bias is not None:
        nn.init.zeros_(linear.bias)
