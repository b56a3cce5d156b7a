"""What a config refuses, and that it counts the parameters of what is built from it."""

import math
from dataclasses import replace
from typing import get_args

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from dragoman.errors import InputError
from dragoman.models import (
    PRESETS,
    DecoderOnlyConfig,
    EncoderDecoderConfig,
    EncoderOnlyConfig,
    Model,
    ModelConfig,
    build,
    count_parameters,
    decoder_preset,
    encoder_preset,
    preset,
)
from dragoman.models.config import Tying
from dragoman.models.heads import ClassificationHead, MaskedLanguageHead, NoHead, TaggingHead
from dragoman.nn import (
    ALiBi,
    Causal,
    Full,
    Learned,
    NoPositions,
    RelativeBias,
    Rotary,
    Sinusoidal,
)
from dragoman.nn.config import NormPosition
from dragoman.nn.feedforward import Activation
from dragoman.nn.norm import NormName


def built(config: ModelConfig) -> Model:
    """Build without memory for the weights."""
    with torch.device("meta"):
        return build(config)


PARTS = {
    "source embedding": "src_embedding",
    "target embedding": "tgt_embedding",
    "embedding": "embedding",
    "encoder": "encoder",
    "decoder": "decoder",
    "output": "output",
    "head": "head",
}


def parts(model: nn.Module) -> dict[str, int]:
    """Count the parameters of each part of a module by name, shared ones where they come first."""
    seen: set[int] = set()
    counts = {}
    for name, attribute in PARTS.items():
        if hasattr(model, attribute):
            part = model.get_submodule(attribute)
            new = {id(p): p.numel() for p in part.parameters() if id(p) not in seen}
            seen |= new.keys()
            counts[name] = sum(new.values())
    assert sum(counts.values()) == sum(p.numel() for p in model.parameters())
    return counts


LAYER = {
    "d_model": st.sampled_from([8, 24]),
    "num_heads": st.sampled_from([2, 4]),
    "num_kv_heads": st.sampled_from([None, 1, 2]),
    "head_dim": st.sampled_from([None, 6]),
    "d_ff": st.integers(1, 9),
    "activation": st.sampled_from(get_args(Activation)),
    "gated": st.booleans(),
    "bias": st.booleans(),
    "qkv_bias": st.sampled_from([None, True, False]),
    "qk_norm": st.booleans(),
    "positions": st.sampled_from(
        [Sinusoidal(), Learned(max_length=5), Rotary(), RelativeBias(), ALiBi(), NoPositions()]
    ),
    "norm": st.sampled_from(get_args(NormName)),
    "norm_position": st.sampled_from(get_args(NormPosition)),
    "final_norm": st.sampled_from([None, True, False]),
    "embedding_norm": st.booleans(),
}
CONFIGS = st.builds(
    EncoderDecoderConfig,
    src_vocab_size=st.just(11),
    tgt_vocab_size=st.just(11),
    num_encoder_layers=st.integers(1, 3),
    num_decoder_layers=st.integers(1, 3),
    tie_embeddings=st.sampled_from(get_args(Tying)),
    output_bias=st.booleans(),
    **LAYER,
)
LABELS = ("a", "b", "c")
SINGLES: st.SearchStrategy[DecoderOnlyConfig | EncoderOnlyConfig] = st.one_of(
    st.builds(
        DecoderOnlyConfig,
        vocab_size=st.just(11),
        num_layers=st.integers(1, 3),
        tie_embeddings=st.booleans(),
        output_bias=st.booleans(),
        **LAYER,
    ),
    st.builds(
        EncoderOnlyConfig,
        vocab_size=st.just(11),
        num_layers=st.integers(1, 3),
        num_token_types=st.integers(0, 2),
        head=st.sampled_from(
            [
                NoHead(),
                MaskedLanguageHead(),
                ClassificationHead(labels=LABELS),
                ClassificationHead(labels=LABELS, pooler=True),
                TaggingHead(labels=LABELS),
            ]
        ),
        **LAYER,
    ),
)


@given(SINGLES)
@settings(max_examples=150)
def test_a_stack_alone_counts_what_is_built(config: DecoderOnlyConfig | EncoderOnlyConfig) -> None:
    """The same of the decoder alone and of the encoder alone with every head."""
    assert count_parameters(config) == parts(built(config))


@pytest.mark.parametrize(
    ("config", "size"),
    [
        (replace(decoder_preset("gpt2-small"), vocab_size=50_257), 124_439_808),
        (replace(encoder_preset("bert-base"), vocab_size=30_522, num_token_types=2), 108_891_648),
    ],
    ids=["gpt2", "bert"],
)
def test_presets_in_the_style_of_others_have_their_size(
    config: DecoderOnlyConfig | EncoderOnlyConfig, size: int
) -> None:
    """GPT-2 small, and BERT base without its pooler, as published."""
    assert sum(count_parameters(config).values()) == size


def test_a_decoder_refuses_a_pattern_that_sees_ahead() -> None:
    """What a decoder must predict may not be seen: the pattern and its place are named."""
    with pytest.raises(InputError, match=r'patterns\[1\] = "full".*causal'):
        DecoderOnlyConfig(patterns=(Causal(), Full()))
    with pytest.raises(InputError, match=r'decoder_patterns\[0\] = "full".*causal'):
        EncoderDecoderConfig(decoder_patterns=(Full(),))


@given(CONFIGS, st.sampled_from([11, 14]))
@settings(max_examples=150)
def test_a_config_counts_what_is_built(config: EncoderDecoderConfig, vocab_size: int) -> None:
    """Part by part, whatever the options, `count_parameters` is the module's count."""
    if config.tie_embeddings in ("none", "target-output"):
        config = replace(config, tgt_vocab_size=vocab_size)
    assert count_parameters(config) == parts(built(config))


@pytest.mark.parametrize("name", PRESETS)
def test_a_preset_counts_what_is_built(name: str) -> None:
    """The sizes with names, with a shared vocabulary of 37,000."""
    config = replace(preset(name), src_vocab_size=37_000, tgt_vocab_size=37_000)
    assert count_parameters(config) == parts(built(config))


@pytest.mark.parametrize(("name", "millions"), [("base", 65), ("big", 213)])
def test_the_papers_models_have_the_papers_size(name: str, millions: int) -> None:
    """Table 3 says 65 and 213 million with about 37,000 tokens, rounded generously."""
    config = replace(preset(name), src_vocab_size=37_000, tgt_vocab_size=37_000)
    assert sum(count_parameters(config).values()) == pytest.approx(millions * 1e6, rel=0.03)


def test_base_is_torchs_default_transformer() -> None:
    """`torch.nn.Transformer()` is the base model, but for two last norms that the paper lacks."""
    config = replace(preset("base"), src_vocab_size=37_000, tgt_vocab_size=37_000)
    with torch.device("meta"):
        stacks = nn.Transformer(batch_first=True)
    size = sum(p.numel() for p in stacks.parameters()) - 2 * 2 * 512 + 37_000 * 512
    assert sum(count_parameters(config).values()) == size == 63_082_496


def test_an_unknown_preset_names_the_nearest() -> None:
    """The error lists what is known and what was probably meant."""
    with pytest.raises(InputError, match=r"'bas'.*tiny, small, base, big, deep.*mean base"):
        preset("bas")


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"d_model": 10, "num_heads": 4}, ("d_model = 10", "num_heads = 4", "head_dim")),
        ({"num_heads": 8, "num_kv_heads": 3}, ("num_heads = 8", "num_kv_heads = 3")),
        ({"num_heads": 2, "num_kv_heads": 4}, ("num_heads = 2", "num_kv_heads = 4")),
        ({"d_model": 9, "num_heads": 3}, ("d_model = 9", "sinusoidal")),
        (
            {"src_vocab_size": 5, "tgt_vocab_size": 6},
            ('tie_embeddings = "all"', "src_vocab_size = 5", "tgt_vocab_size = 6"),
        ),
        (
            {"src_vocab_size": 5, "tgt_vocab_size": 6, "tie_embeddings": "source-target"},
            ('tie_embeddings = "source-target"', "src_vocab_size = 5", "tgt_vocab_size = 6"),
        ),
        ({"pad_id": 3, "eos_id": 3}, ("pad_id = 3", "eos_id = 3")),
        ({"num_heads": 0}, ("num_heads is 0; it must be",)),
        ({"num_kv_heads": 0}, ("num_kv_heads is 0; it must be",)),
        ({"head_dim": 0}, ("head_dim is 0; it must be",)),
        ({"d_ff": -1}, ("d_ff is -1; it must be",)),
        ({"num_encoder_layers": 0}, ("num_encoder_layers is 0; it must be",)),
        ({"num_decoder_layers": 0}, ("num_decoder_layers is 0; it must be",)),
        (
            {"num_encoder_layers": 1_000_000},
            ("num_encoder_layers is 1000000; it must be at least 1",),
        ),
        ({"dropout": 1.0}, ("dropout is 1.0; it must be",)),
        ({"attention_dropout": -0.1}, ("attention_dropout is -0.1; it must be",)),
        ({"ffn_dropout": 2.0}, ("ffn_dropout is 2.0; it must be",)),
        ({"norm_eps": 0.0}, ("norm_eps is 0.0; it must be",)),
        ({"attention_scale": math.inf}, ("attention_scale is inf; it must be",)),
        ({"score_soft_cap": math.nan}, ("score_soft_cap is nan; it must be",)),
        ({"logit_scale": 0.0}, ("logit_scale is 0.0; it must be",)),
    ],
    ids=str,
)
def test_what_cannot_be_built_is_named(options: dict[str, object], named: tuple[str, ...]) -> None:
    """A conflict names both options with their values; a bad number names itself."""
    with pytest.raises(InputError) as caught:
        replace(EncoderDecoderConfig(), **options)  # type: ignore[arg-type]
    for words in named:
        assert words in str(caught.value)


@pytest.mark.parametrize("cap", [0.0, -1.0, math.inf, math.nan])
def test_a_cap_of_the_logits_is_a_number_above_zero(cap: float) -> None:
    """Any other makes NaN of the logits, which nobody would see before the first loss."""
    for config in (DecoderOnlyConfig, EncoderDecoderConfig):
        with pytest.raises(InputError, match=f"logit_soft_cap is {cap}; it must be"):
            config(logit_soft_cap=cap)


def test_the_deep_preset_is_pre_norm() -> None:
    """Twelve encoder layers under two decoder layers, pre-norm so that they train."""
    deep = preset("deep")
    assert (deep.num_encoder_layers, deep.num_decoder_layers) == (12, 2)
    assert deep.norm_position == "pre"
    assert deep.ends_in_norm
