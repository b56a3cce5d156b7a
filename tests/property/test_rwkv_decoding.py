"""RWKV in a decoder: search over its state, and what it refuses.

`test_pattern_decoding` tests that its state equals the full pass.
"""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from tests.processors import needs_independent_rows
from tests.unit.models.family import RWKV, make_decoder
from tests.unit.models.small import distance, random_ids
from tests.unit.tasks.tiny import make_tokenizer
from tests.unit.tasks.tiny_generator import PROMPTS, make_config, make_generator

from dragoman.convert.eight_bits import quantize
from dragoman.cost.counting import decoding_memory, decoding_step
from dragoman.data.shape import Shape
from dragoman.engine import freeze
from dragoman.errors import InputError
from dragoman.folder.format import FolderConfig, save_model
from dragoman.folder.opening import open_folder
from dragoman.lens.trace import trace_continuation
from dragoman.models import (
    DecoderOnly,
    DecoderOnlyConfig,
    EncoderDecoderConfig,
    EncoderOnlyConfig,
    count_parameters,
)
from dragoman.nn import Causal, Documents, NoPositions, Rotary, Rwkv, RwkvDecoder
from dragoman.plain import to_plain
from dragoman.settings import parse_settings, read_settings
from dragoman.tasks.generate.batches import PackConfig
from dragoman.tasks.generate.recipe import GenerateRecipe


def tiny() -> DecoderOnlyConfig:
    """Return the config of the small generator, with RWKV layers."""
    return replace(
        make_config(make_tokenizer()),
        num_kv_heads=None,
        patterns=(Rwkv(),),
        positions=NoPositions(),
    )


@needs_independent_rows
def test_no_text_depends_on_its_neighbours() -> None:
    """Prompts of all lengths, beams, sampling, a rolling context: the same in a batch as alone."""
    generator = make_generator(config=tiny())
    changes: list[dict[str, Any]] = [{"beam_size": 3, "temperature": 0.0}, {"context": 8}, {}]
    for change in changes:
        options = replace(generator.options, **change)
        expected = generator.generate(PROMPTS, options=options)
        alone = replace(options, max_batch_tokens=1)
        assert generator.generate(PROMPTS, options=alone) == expected
        assert len({one.text for one in expected}) > 4


@pytest.mark.parametrize("arithmetic", ["fp32", "bf16"])
def test_the_readable_path_serves(arithmetic: Any) -> None:  # noqa: ANN401
    """The readable path works with any arithmetic."""
    model = make_decoder(RWKV).float()
    assert freeze(model, arithmetic) is model


def test_a_folder_gives_the_model_back(tmp_path: Path) -> None:
    """Weights and config come back, in 32 bits and with matrices in 8 bits."""
    tokenizer = make_tokenizer()
    model = DecoderOnly(tiny()).eval()
    save_model(tmp_path / "a", model, FolderConfig(model=tiny()), tokenizers=(tokenizer, tokenizer))
    assert json.loads((tmp_path / "a/config.json").read_text())["model"]["patterns"] == [
        {"kind": "rwkv"}
    ]
    quantize(tmp_path / "a", tmp_path / "b")
    ids = random_ids(0, 2, 9)
    same, near = (open_folder(tmp_path / name).model.eval() for name in "ab")
    assert torch.equal(same(ids), model(ids))
    assert 0 < distance(near(ids), model(ids)) < 0.5


def test_a_recipe_names_it(tmp_path: Path) -> None:
    """The kind alone is enough, and the serialized form becomes the value again."""
    path = tmp_path / "model.toml"
    path.write_text('patterns = ["rwkv"]\npositions = "none"\n')
    config = read_settings(path).build(DecoderOnlyConfig)
    assert config.patterns == (Rwkv(),)
    assert parse_settings(DecoderOnlyConfig, to_plain(config), "again") == config


def test_the_cost_is_five_vectors_and_the_matrices() -> None:
    """State bytes and FLOPs of a step do not depend on the length; parameters are counted."""
    D, F, layers = RWKV.d_model, RWKV.d_ff, RWKV.num_layers
    matrices = layers * (5 * D * D + 2 * D * F)
    counted = count_parameters(RWKV)
    assert counted["decoder"] == matrices + layers * (7 * D + 4 * D) + 2 * D
    flops = set()
    for length in (10, 1000):
        step = decoding_step(RWKV, Shape(rows=1, length=1), cached=length)
        assert step.read == layers * 5 * D * 4
        flops.add(step.flops)
    model = make_decoder(RWKV).float()
    state = model.start(random_ids(0, 1, 8), 1)
    held = [storage.state_BKde for storage in state.past.storages]  # type: ignore[attr-defined]
    assert sum(each.nbytes for each in held) == step.read
    big = replace(RWKV, d_model=64, d_ff=128, vocab_size=500)
    assert decoding_step(big, Shape(rows=64, length=1), cached=9).flops == 2 * 64 * (
        layers * (5 * 64 * 64 + 2 * 64 * 128) + 64 * 500
    )
    assert len(flops) == 1
    assert decoding_memory(RWKV, Shape(rows=2, length=40, src_length=3)).cache == 2 * step.read


REFUSED: dict[str, dict[str, Any]] = {
    "replaces all layers or none": {"patterns": (Rwkv(), Causal())},
    "no use for positions": {"positions": Rotary()},
    "no use for num_kv_heads = 1": {"num_kv_heads": 1},
    "no use for head_dim = 4": {"head_dim": 4},
    "no use for activation = gelu": {"activation": "gelu"},
    "no use for gated": {"gated": True},
    "no use for qk_norm": {"qk_norm": True},
    "no use for qkv_bias": {"qkv_bias": True},
    "no use for ffn_bias": {"ffn_bias": True},
    "no use for ffn_dropout = 0.1": {"ffn_dropout": 0.1},
    "no use for norm_position = deepnorm": {"norm_position": "deepnorm"},
    "no use for attention_dropout = 0.1": {"attention_dropout": 0.1},
    "no use for score_soft_cap = 9.0": {"score_soft_cap": 9.0},
}


@pytest.mark.parametrize("named", REFUSED)
def test_settings_of_other_parts_are_refused(named: str) -> None:
    """Options that RWKV lacks are named, and so is a place where it cannot be used."""
    with pytest.raises(InputError, match=named):
        replace(RWKV, **REFUSED[named])


def test_other_places_are_refused() -> None:
    """Encoders, decoders with cross-attention, packed batches and the inspector refuse it."""
    for cls, key in (
        (EncoderOnlyConfig, "patterns"),
        (EncoderDecoderConfig, "encoder_patterns"),
        (EncoderDecoderConfig, "decoder_patterns"),
    ):
        with pytest.raises(InputError, match=r'kind must be one of .*, not "rwkv"'):
            parse_settings(cls, {key: ["rwkv"]}, "here")
    with pytest.raises(InputError, match=r'batch\.packing = "documents"'):
        GenerateRecipe(description="x", model=RWKV, batch=PackConfig(packing="documents")).check()
    with pytest.raises(InputError, match="no attention to look at"):
        trace_continuation(make_decoder(RWKV), [4, 5], [6])


def test_what_a_layer_cannot_hide_is_refused() -> None:
    """It refuses padding in front, packed documents, and masks other than the end of a row."""
    model, ids_BL = make_decoder(RWKV), random_ids(0, 2, 9)
    ids_BL[0, :2] = model.pad_id
    with pytest.raises(ValueError, match="padded in front"):
        model.start(ids_BL, 1)
    with pytest.raises(ValueError, match="no packed documents"):
        model(ids_BL[1:], None, Documents((4, 5)))
    decoder, x = RwkvDecoder(RWKV, 1), torch.zeros(2, 3, 16)
    for hidden in ([[False, True, True]], [[True, False, True]]):
        with pytest.raises(ValueError, match="cannot hide"):
            decoder(x, mask=torch.tensor(hidden)[:, None, None])
    with pytest.raises(ValueError, match="cannot hide"):
        decoder(x, mask=torch.ones(3, 3, dtype=torch.bool).tril())
