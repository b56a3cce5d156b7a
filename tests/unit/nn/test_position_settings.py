"""Position schemes reject what they cannot compute, in a sentence that names the setting."""

from collections.abc import Callable

import pytest

from dragoman.errors import InputError
from dragoman.nn import DynamicScaling, LayerConfig, Llama3Scaling, RelativeBias, Rotary, YaRN

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
