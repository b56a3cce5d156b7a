"""What a config refuses, and its count of the parameters of the model built from it."""

from dataclasses import replace

import pytest
import torch
from tests.unit.models.family import DECODERS, ENCODERS
from tests.unit.models.small import VARIANTS
from torch import nn

from dragoman.errors import InputError
from dragoman.models import (
    PRESETS,
    DecoderOnlyConfig,
    EncoderDecoderConfig,
    EncoderOnlyConfig,
    ModelConfig,
    build,
    count_parameters,
    decoder_preset,
    encoder_preset,
    preset,
)
from dragoman.nn import Causal, Full

PARTS = {"src_embedding": "source embedding", "tgt_embedding": "target embedding"}
SIZES = {name: replace(size, src_vocab_size=9, tgt_vocab_size=9) for name, size in PRESETS.items()}
CONFIGS = [*VARIANTS.values(), *DECODERS.values(), *ENCODERS.values(), *SIZES.values()]


@pytest.mark.parametrize("config", CONFIGS, ids=[str(n) for n in range(len(CONFIGS))])
def test_a_config_counts_what_is_built(config: ModelConfig) -> None:
    """Part by part; a shared matrix counts where it comes first."""
    with torch.device("meta"):
        model = build(config)
    counts = count_parameters(config)
    assert list(counts) == [PARTS.get(part, part) for part, _ in model.named_children()]
    seen: set[int] = set()
    for count, part in zip(counts.values(), model.children(), strict=True):
        new = {id(p): p.numel() for p in part.parameters() if id(p) not in seen}
        seen |= new.keys()
        assert count == sum(new.values())
    assert sum(counts.values()) == sum(p.numel() for p in model.parameters())


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
    """A decoder must not see what it predicts: the error names the pattern and its place."""
    with pytest.raises(InputError, match=r'patterns\[1\] = "full".*causal'):
        DecoderOnlyConfig(patterns=(Causal(), Full()))
    with pytest.raises(InputError, match=r'decoder_patterns\[0\] = "full".*causal'):
        EncoderDecoderConfig(decoder_patterns=(Full(),))


@pytest.mark.parametrize(("name", "millions"), [("base", 65), ("big", 213)])
def test_the_papers_models_have_the_papers_size(name: str, millions: int) -> None:
    """Table 3 gives 65 and 213 million with about 37,000 tokens, roughly rounded."""
    config = replace(preset(name), src_vocab_size=37_000, tgt_vocab_size=37_000)
    assert sum(count_parameters(config).values()) == pytest.approx(millions * 1e6, rel=0.03)


def test_base_is_torchs_default_transformer() -> None:
    """`torch.nn.Transformer()` is the base model, except for two final norms the paper lacks."""
    config = replace(preset("base"), src_vocab_size=37_000, tgt_vocab_size=37_000)
    with torch.device("meta"):
        stacks = nn.Transformer(batch_first=True)
    size = sum(p.numel() for p in stacks.parameters()) - 2 * 2 * 512 + 37_000 * 512
    assert sum(count_parameters(config).values()) == size == 63_082_496


def test_an_unknown_preset_names_the_nearest() -> None:
    """The error lists the known presets and the one probably meant."""
    with pytest.raises(InputError, match=r"'bas'.*tiny, small, base, big, deep.*mean base"):
        preset("bas")


@pytest.mark.parametrize(
    ("options", "named"),
    [
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
    ],
    ids=str,
)
def test_what_cannot_be_built_is_named(options: dict[str, object], named: tuple[str, ...]) -> None:
    """A conflict names both options with their values; a bad number names itself."""
    with pytest.raises(InputError) as caught:
        replace(EncoderDecoderConfig(), **options)  # type: ignore[arg-type]
    for words in named:
        assert words in str(caught.value)
