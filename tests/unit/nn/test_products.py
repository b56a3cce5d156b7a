"""Whether a row of a product knows of the rows beside it."""

from itertools import product
from typing import get_args

import pytest
import torch

from dragoman.nn import Precision, autocast, row_invariant_products
from dragoman.nn.products import Linear, rows_are_independent


@pytest.mark.parametrize("precision", get_args(Precision))
def test_rows_are_independent_where_that_is_said(precision: Precision) -> None:
    """Where it is, no product of many shows otherwise; where it is not, one of them does."""
    found = []
    with torch.inference_mode(), row_invariant_products(), autocast(precision, torch.device("cpu")):
        for columns, rows in product((8, 32, 100, 128, 512, 1025, 2048), (5, 64, 256)):
            linear, x = Linear(columns, rows), torch.randn(130, columns)
            expected = linear(x)
            for count in (1, 2, 3, 5, 7, 9, 17, 31, 65):
                parts = [linear(part) for part in x.split(count)]
                found.append(torch.equal(torch.cat(parts), expected))
    assert all(found) is rows_are_independent(precision)
