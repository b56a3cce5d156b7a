"""Whether a row of a product knows of the rows beside it."""

from itertools import product
from typing import get_args

import pytest
import torch
from torch import Tensor

from dragoman.nn import Precision, autocast, row_invariant_products
from dragoman.nn.cpu.products import TRIED, Linear, rows_are_independent


def agree(linear: Linear, x: Tensor) -> bool:
    """Whether the rows of x have the same results in parts of any size."""
    expected = linear(x)
    counts = (1, 2, 3, 5, 7, 8, 9, 17, 31, 33, 65)
    parts = ([linear(part) for part in x.split(count)] for count in counts)
    return all(torch.equal(torch.cat(part), expected) for part in parts)


def sines(*size: int) -> Tensor:
    """The numbers that are tried."""
    return torch.arange(float(size[0] * size[1])).sin().view(size)


@pytest.mark.parametrize("precision", get_args(Precision))
def test_rows_are_independent_where_that_is_said(precision: Precision) -> None:
    """Where it is, random products agree too; where it is not, one of those tried shows it."""
    with torch.inference_mode(), row_invariant_products(), autocast(precision, torch.device("cpu")):
        if rows_are_independent(precision):
            for columns, rows in product((8, 32, 100, 128, 512, 1025, 2048), (5, 64, 256)):
                assert agree(Linear(columns, rows), torch.randn(130, columns)), (columns, rows)
        else:
            found = []
            for columns, rows in TRIED:
                linear = Linear(columns, rows, bias=False)
                linear.weight.copy_(sines(rows, columns))
                found.append(agree(linear, sines(66, columns)))
            assert not all(found)
