"""Settings of batches and options of decoding that cannot be."""

from collections.abc import Callable
from typing import Any

import pytest

from dragoman.data.batches import BatchConfig
from dragoman.errors import InputError
from dragoman.models.defaults import WIDEST
from dragoman.tasks.encoders import NoisyBatchConfig
from dragoman.tasks.generate.batches import PackConfig
from dragoman.tasks.options import DecodingOptions, GenerationOptions
from dragoman.tasks.pretrain.batches import MaskConfig

BATCHES = (BatchConfig, PackConfig, NoisyBatchConfig)
COUNTS = [
    *((BatchConfig, name) for name in ("max_tokens", "max_length")),
    *((PackConfig, name) for name in ("length", "rows", "stride")),
    *((DecodingOptions, name) for name in ("beam_size", "n_best", "max_length_constant")),
    *((DecodingOptions, name) for name in ("max_batch_tokens", "max_src_tokens")),
    (GenerationOptions, "max_tokens"),
]
WRONG = [
    *((NoisyBatchConfig, {"token_dropout": share}, "token_dropout is") for share in (-0.1, 1.0)),
    *((one, {"subword_sampling": 1.5}, "subword_sampling is 1.5") for one in BATCHES),
    (PackConfig, {"length": 8, "stride": 9}, r"stride \(9\) is above length \(8\)"),
    *((MaskConfig, {"share": share}, "share is") for share in (0.0, 1.1)),
    (MaskConfig, {"masked": -0.1}, "masked is -0.1"),
    (MaskConfig, {"masked": 0.8, "random": 0.3}, "are more than 1 together"),
    *((GenerationOptions, {"temperature": t}, "temperature is") for t in (-1.0, float("nan"))),
    (GenerationOptions, {"beam_size": 2}, "beam_size is 2 with temperature 0.8"),
    (DecodingOptions, {"temperature": 1.0}, "beam_size is 5 with temperature 1.0"),
    (DecodingOptions, {"top_k": 5}, "top_k is 5 with temperature 0"),
    (DecodingOptions, {"top_p": 0.5}, "top_p is 0.5 with temperature 0"),
    (DecodingOptions, {"min_p": 0.5}, "min_p is 0.5 with temperature 0"),
    (DecodingOptions, {"n_best": 6}, "n_best is 6 with beam_size 5"),
    (DecodingOptions, {"mbr": 6}, "mbr is 6 with beam_size 5"),
    (DecodingOptions, {"mbr": 2, "n_best": 3}, "n_best is 3 with mbr 2"),
    (DecodingOptions, {"mbr": -1}, "mbr is -1"),
    (DecodingOptions, {"beam_groups": 2}, "beam_size is 5 with beam_groups 2"),
    (DecodingOptions, {"diversity": 0.7}, "diversity is 0.7 with beam_groups 1"),
    (DecodingOptions, {"beam_groups": 5, "diversity": 1e9}, "diversity is 1000000000.0"),
    (
        DecodingOptions,
        {"temperature": 1.0, "beam_size": 1, "beam_groups": 2},
        "beam_groups is 2 with temperature 1.0",
    ),
    (GenerationOptions, {"context": 1}, "context is 1"),
    (GenerationOptions, {"stop": ("",)}, "a stop string is empty"),
    (GenerationOptions, {"no_repeat_ngrams": -1}, "no_repeat_ngrams is -1"),
    (GenerationOptions, {"top_p": 2.0}, "top_p is 2.0"),
    (GenerationOptions, {"repetition_penalty": 0.0}, "repetition_penalty is 0.0"),
]


@pytest.mark.parametrize(
    ("config", "change", "message"),
    [*WRONG, *((one, {name: 0}, f"{name} is 0; it must be at least 1") for one, name in COUNTS)],
)
def test_impossible_settings_are_refused(
    config: Callable[..., object], change: dict[str, Any], message: str
) -> None:
    """One sentence with the setting and its bound."""
    with pytest.raises(InputError, match=message):
        config(**change)


@pytest.mark.parametrize(
    ("options", "greedy"), [(DecodingOptions, {}), (GenerationOptions, {"temperature": 0})]
)
def test_a_beam_that_nobody_would_wait_for_is_refused(
    options: Callable[..., DecodingOptions | GenerationOptions], greedy: dict[str, float]
) -> None:
    """The widest one is taken, one more is not, in translating and in generating."""
    assert options(beam_size=WIDEST, **greedy).beam_size == WIDEST
    too_wide = f"beam_size is {WIDEST + 1}; it must be at least 1 and at most {WIDEST}"
    with pytest.raises(InputError, match=too_wide):
        options(beam_size=WIDEST + 1, **greedy)
