"""Position schemes reject what they cannot compute, in a sentence that names the setting."""

from collections.abc import Callable

import pytest
import torch

from dragoman.errors import InputError
from dragoman.nn import (
    DynamicScaling,
    LayerConfig,
    Llama3Scaling,
    RelativeBias,
    Rotary,
    YaRN,
)

REJECTED: dict[str, Callable[[], object]] = {
    "num_buckets is 3": lambda: RelativeBias(num_buckets=3),
    "max_distance = 16": lambda: RelativeBias(num_buckets=32, max_distance=16),
    "beta_fast = 1.0": lambda: YaRN(factor=2.0, trained_length=8, beta_fast=1.0, beta_slow=1.0),
    "high_freq_factor = 1.0": lambda: Llama3Scaling(low_freq_factor=1.0, high_freq_factor=1.0),
    "head_dim = 2": lambda: LayerConfig(
        head_dim=2, positions=Rotary(scaling=DynamicScaling(factor=2.0, trained_length=8))
    ),
}


@pytest.mark.parametrize("named", REJECTED)
def test_what_cannot_be_computed_is_refused(named: str) -> None:
    """The error names the setting and its value, before anything is divided by it."""
    with pytest.raises(InputError) as caught:
        REJECTED[named]()
    assert named in str(caught.value)


@pytest.mark.parametrize("bidirectional", [False, True])
def test_the_smallest_table_has_a_bias_for_every_distance(*, bidirectional: bool) -> None:
    """The smallest accepted table has a finite bias for every distance, near and far."""
    table = RelativeBias(num_buckets=4, max_distance=3).make_bias(2, bidirectional=bidirectional)
    buckets = table.buckets(torch.arange(-300, 301)[None])
    assert int(buckets.min()) >= 0
    assert int(buckets.max()) < 4
