"""What attention is told about where the tokens of one call stand."""

from collections.abc import Callable
from typing import NamedTuple

from torch import Tensor

from dragoman.nn.mask import Documents
from dragoman.nn.position.rotary import Angles

Positions = range | Tensor
"""Of the tokens of a call: consecutive ones as a range, others as a tensor `(L)` or `(B, L)`."""

Bias = Callable[[Tensor], Tensor]
"""From distances `j - i`, key minus query, `(T, S)`, to what the scores get, `(H, T, S)`."""


class Place(NamedTuple):
    """Made once for each call of a stack and handed to all of its layers."""

    angles: Angles | None = None
    """By which queries and keys are rotated."""
    bias: Bias | None = None
    """What is added to the scores."""
    documents: Documents | None = None
    """The documents that are packed into the row, which do not see each other."""


NOWHERE = Place()
"""No rotation, no bias, one document: what cross-attention is told."""
