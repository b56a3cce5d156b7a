"""Patterns are named in configs, layer by layer, and invalid combinations are refused."""

import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import pytest
import torch
from tests.unit.models.family import DECODER, ENCODER
from tests.unit.models.small import SMALL
from torch import Tensor, nn

from dragoman.errors import InputError
from dragoman.models import (
    DecoderOnly,
    DecoderOnlyConfig,
    EncoderDecoder,
    EncoderDecoderConfig,
    EncoderOnly,
    EncoderOnlyConfig,
)
from dragoman.nn import (
    ALiBi,
    AttentionPattern,
    Causal,
    Fixed,
    Full,
    LinearAttention,
    Longformer,
    Pattern,
    RelativeBias,
    Rotary,
    SlidingWindow,
    Strided,
    distances,
)
from dragoman.plain import to_plain
from dragoman.settings import parse_settings, read_settings

WRITTEN: dict[str, AttentionPattern] = {
    '{kind = "full"}': Full(),
    '{kind = "causal"}': Causal(),
    '{kind = "window", size = 4096}': SlidingWindow(size=4096),
    '{kind = "window", size = 9, causal = false}': SlidingWindow(size=9, causal=False),
    '{kind = "longformer", window = 64}': Longformer(window=64),
    '{kind = "longformer", window = 64, global_positions = [0, 7], causal = true}': Longformer(
        window=64, global_positions=(0, 7), causal=True
    ),
    '{kind = "strided", stride = 128}': Strided(stride=128),
    '{kind = "fixed", stride = 128, summary = 8}': Fixed(stride=128, summary=8),
    '{kind = "linear"}': LinearAttention(),
    '{kind = "linear", causal = false}': LinearAttention(causal=False),
    '{kind = "linear", decay = "retnet"}': LinearAttention(decay="retnet"),
    '{kind = "linear", decay = [0.9, 0.8, 1, 1, 1, 1, 1, 1]}': LinearAttention(
        decay=(0.9, 0.8, 1, 1, 1, 1, 1, 1)
    ),
}


@pytest.mark.parametrize("text", WRITTEN)
def test_a_file_can_name_every_pattern(text: str, tmp_path: Path) -> None:
    """TOML becomes the value, and its serialized form becomes the value again."""
    path = tmp_path / "model.toml"
    path.write_text(f"patterns = [{text}, {text}]")
    config = read_settings(path).build(EncoderOnlyConfig)
    assert config.patterns == (WRITTEN[text],) * 2
    assert parse_settings(EncoderOnlyConfig, to_plain(config), "again") == config


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ('{kind = "window", size = 0}', "size is 0"),
        ('{kind = "longformer", window = 0}', "window is 0"),
        ('{kind = "longformer", window = 1, global_positions = [1, 1]}', "must be different"),
        ('{kind = "longformer", window = 1, global_positions = [-1]}', "at least 0"),
        ('{kind = "strided", stride = 0}', "stride is 0"),
        ('{kind = "fixed", stride = 4, summary = 5}', "at most stride = 4"),
        ('{kind = "fixed", stride = 4, summary = 0}', "summary = 0"),
        ('{kind = "linear", causal = false, decay = "retnet"}', "causal = true"),
        ('{kind = "linear", decay = [0.5, 1.5]}', "at most 1"),
        ('{kind = "windows", size = 3}', "window"),
    ],
)
def test_a_pattern_that_cannot_be_is_refused(text: str, named: str, tmp_path: Path) -> None:
    """The error says what is wrong and where."""
    path = tmp_path / "model.toml"
    path.write_text(f"patterns = [{text}]")
    with pytest.raises(InputError, match=named) as caught:
        read_settings(path).build(EncoderOnlyConfig)
    assert "model.toml" in str(caught.value)


def test_a_kind_that_nothing_imported_has_is_refused(tmp_path: Path) -> None:
    """No module is searched for: a file cannot make the program run code."""
    path = tmp_path / "model.toml"
    path.write_text('patterns = [{kind = "antigravity.Pattern"}]')
    with pytest.raises(
        InputError, match=r'once its module is imported\), not "antigravity\.Pattern"'
    ):
        read_settings(path).build(DecoderOnlyConfig)
    assert "antigravity" not in sys.modules


@dataclass(frozen=True, slots=True, kw_only=True)
class Sighted(Pattern):
    """Claims to be causal, and hides keys more than `ahead` tokens later."""

    kind: Literal["sighted"] = "sighted"
    ahead: int | None = None
    is_causal = True

    def mask(self, num_queries: int, num_keys: int, device: torch.device) -> Tensor | None:  # noqa: ARG002
        """`j <= i + ahead` on the default device; None leaves hiding to `attend`."""
        if self.ahead is None:
            return None
        return distances(num_queries, num_keys) <= self.ahead


@dataclass(frozen=True, slots=True, kw_only=True)
class Additive(Causal):
    """Has an additive mask."""

    def mask(self, num_queries: int, num_keys: int, device: torch.device) -> Tensor | None:  # noqa: ARG002
        """0 for visible keys."""
        return distances(num_queries, num_keys).le(0).double().log()


@pytest.mark.parametrize("ahead", [{"ahead": 1}, {"ahead": 50}])
def test_a_decoder_believes_the_mask_and_not_the_flag(ahead: dict[str, int]) -> None:
    """A custom pattern that is off by one would learn to copy the token it predicts."""
    patterns = [{"kind": "sighted", **ahead}]
    back = parse_settings(DecoderOnlyConfig, {"patterns": [{"kind": "sighted", "ahead": 0}]}, "a")
    assert to_plain(back)["patterns"] == [{"kind": "sighted", "ahead": 0}]
    assert parse_settings(EncoderOnlyConfig, {"patterns": patterns}, "a").patterns
    for config, key in (DecoderOnlyConfig, "patterns"), (EncoderDecoderConfig, "decoder_patterns"):
        with pytest.raises(InputError, match=rf'{key}\[0\] = "sighted" lets a token see later'):
            parse_settings(config, {key: patterns}, "a")


@pytest.mark.parametrize("device", ["cpu", "meta"])
def test_a_decoder_looks_at_boolean_masks_alone(device: str) -> None:
    """On any device models are made on; a flag without a mask is accepted."""
    with torch.device(device):
        for sighted in {"kind": "sighted", "ahead": 0}, {"kind": "sighted"}:
            assert parse_settings(DecoderOnlyConfig, {"patterns": [sighted]}, "a").patterns
        with pytest.raises(InputError, match=r'"causal" has a mask of torch.float64: make it bool'):
            DecoderOnlyConfig(patterns=(Additive(),))


def _patterns_of(stack: nn.Module) -> list[object]:
    return [part.pattern for name, part in stack.named_modules() if name.endswith(".self_attn")]


def test_patterns_are_repeated_over_the_layers() -> None:
    """They repeat from the first, in each variant; encoder and decoder have their own."""
    near, far = SlidingWindow(size=4, causal=False), Full()
    back, all_before = SlidingWindow(size=3), Causal()
    decoder = DecoderOnly(replace(DECODER, num_layers=4, patterns=(back, back, all_before)))
    assert _patterns_of(decoder.decoder) == [back, back, all_before, back]
    encoder = EncoderOnly(replace(ENCODER, num_layers=3, patterns=(near, far)))
    assert _patterns_of(encoder.encoder) == [near, far, near]
    deep = replace(SMALL, num_encoder_layers=3, num_decoder_layers=2)
    both = EncoderDecoder(
        replace(deep, encoder_patterns=(far, near), decoder_patterns=(back, all_before))
    )
    assert _patterns_of(both.encoder) == [far, near, far]
    assert _patterns_of(both.decoder) == [back, all_before]


def test_linear_attention_refuses_what_needs_scores() -> None:
    """A bias, a cap, a scale or dropout of weights would be silently ignored."""
    patterns = (Causal(), LinearAttention())
    with pytest.raises(InputError, match=r'patterns\[1\] = "linear".*positions = "alibi"'):
        DecoderOnlyConfig(patterns=patterns, positions=ALiBi())
    with pytest.raises(InputError, match=r'decoder_patterns\[1\] = "linear".*"relative-bias"'):
        EncoderDecoderConfig(decoder_patterns=patterns, positions=RelativeBias())
    with pytest.raises(InputError, match=r"score_soft_cap = 50"):
        DecoderOnlyConfig(patterns=patterns, score_soft_cap=50.0)
    with pytest.raises(InputError, match=r"attention_dropout = 0.1"):
        EncoderOnlyConfig(patterns=patterns, attention_dropout=0.1)
    with pytest.raises(InputError, match=r"encoder_patterns\[1\].*attention_scale = 1"):
        EncoderDecoderConfig(encoder_patterns=patterns, attention_scale=1.0)
    with pytest.raises(InputError, match=r"decay has 2 numbers, but there are 4 key-value heads"):
        DecoderOnlyConfig(patterns=(LinearAttention(decay=(0.5, 0.5)),), num_kv_heads=4)


def test_a_rotation_before_a_norm_has_one() -> None:
    """Without `qk_norm` its place would be ignored."""
    with pytest.raises(InputError, match=r"before_norm is the place of qk_norm"):
        DecoderOnlyConfig(positions=Rotary(before_norm=True))
