"""Weights in 8 bits: what is rounded, how far, and that int8 decoding gives the same numbers."""

from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.torch import load_file
from tests.unit.models.family import DECODERS, ENCODERS
from tests.unit.models.saved import JOINT, TINY
from tests.unit.models.small import VARIANTS, stir

from dragoman.engine.quantized import QuantizedLinear
from dragoman.folder.format import FolderConfig, save_model
from dragoman.folder.opening import open_folder
from dragoman.models import ModelConfig, build
from dragoman.models.eight_bits import rounded
from dragoman.nn import Linear
from dragoman.nn.embedding import TokenEmbedding

TYINGS = ("two-vocabularies", "one-embedding", "untied", "paper")
CONFIGS: dict[str, ModelConfig] = {
    **{name: VARIANTS[name] for name in (*TYINGS, "learned")},
    **{name: DECODERS[name] for name in ("gpt2", "llama", "relative-bias")},
    **{name: ENCODERS[name] for name in ("bert", "first", "tags")},
}
SEEDS = st.integers(0, 2**31)
SOURCE = "src_embedding.weight"


def matrix(seed: int, rows: int, smallest: int) -> torch.Tensor:
    """Return rows from 10 ** smallest to 1e30, one of zeros; most are halfway between integers."""
    generator = torch.Generator().manual_seed(seed)
    weight_OI = torch.randint(-127, 127, (rows, 8), generator=generator) + 0.5
    weight_OI[torch.rand(rows, 8, generator=generator) < 0.2] /= 3
    weight_OI[:, 0] = 127.0
    weight_OI *= 10.0 ** (torch.rand(rows, 1, generator=generator) * (28 - smallest) + smallest)
    weight_OI[rows // 2] = 0.0
    return weight_OI


@pytest.mark.parametrize("name", CONFIGS)
def test_every_matrix_is_rounded_and_nothing_else(tmp_path: Path, name: str) -> None:
    """The error is at most half a step of a row; biases, norms and positions keep their bits."""
    config = CONFIGS[name]
    torch.manual_seed(0)
    model = build(config)
    stir(model)
    about = FolderConfig(model=config)
    save_model(tmp_path, model.state_dict(), about, tokenizers=JOINT, eight_bits=True)
    opened = open_folder(tmp_path)
    loaded, found = opened.model, opened.config
    kinds, exact = (torch.nn.Linear, TokenEmbedding), dict(model.named_parameters())
    chosen = {id(part.weight) for part in model.modules() if isinstance(part, kinds)}
    names = {name for name, weight in exact.items() if id(weight) in chosen}
    stored = load_file(tmp_path / "model.safetensors")
    assert found.format == 3
    assert set(stored) == {*exact, *(f"{each}.scale" for each in names)}
    assert [each for each, _ in loaded.named_parameters()] == list(exact)  # tied as before
    for each, weight in loaded.named_parameters():
        assert weight.dtype is torch.float32
        assert weight.requires_grad
        error = (weight.double() - exact[each].double()).abs()
        if each in names:
            step_O1 = exact[each].double().abs().amax(dim=1, keepdim=True) / 127
            assert stored[each].dtype is torch.int8
            assert stored[f"{each}.scale"].shape == (len(weight),)
            assert error.any()
            assert (error <= 0.5001 * step_O1).all()
        else:
            assert not error.any()
    assert not {each for each in names if each.endswith("bias") or "norm" in each}


@given(SEEDS)
@settings(max_examples=60, deadline=None)
def test_rows_of_any_size(seed: int) -> None:
    """Also of zeros, of numbers so small that a scale has lost its digits, and of huge ones."""
    weight_OI = matrix(seed, rows=12, smallest=-44)
    once = rounded({SOURCE: weight_OI}, TINY)
    found_OI = once[SOURCE] * once[f"{SOURCE}.scale"][:, None]
    step_O1 = weight_OI.double().abs().amax(dim=1, keepdim=True) / 127
    error_OI = (found_OI.double() - weight_OI.double()).abs()
    assert (error_OI <= 0.5001 * step_O1 + 1e-30).all()
    twice = rounded({SOURCE: found_OI}, TINY)
    assert all(torch.equal(twice[name], once[name]) for name in once)


@given(SEEDS, st.floats(0.01, 3.0))
@settings(max_examples=60, deadline=None)
@torch.inference_mode()
def test_a_product_has_the_integers_of_the_original(seed: int, scale: float) -> None:
    """Rounding what was rounded finds the same integers and scales, also beside another matrix."""
    first, second = Linear(8, 12), Linear(8, 5)
    weight_OI = matrix(seed, rows=17, smallest=-20)
    once = rounded({SOURCE: weight_OI}, TINY)
    found = []
    for weights in (weight_OI, once[SOURCE] * once[f"{SOURCE}.scale"][:, None]):
        first.weight.copy_(weights[:12])
        second.weight.copy_(weights[12:])
        found.append(QuantizedLinear(first, second, first_scale=scale)._parts)
    assert all(torch.equal(one, other) for one, other in zip(*found, strict=True))
    expected_O = once[f"{SOURCE}.scale"].clone()
    expected_O[:12] *= scale
    assert torch.equal(found[1][2][:17], expected_O)


def test_saving_goes_between_the_formats(tmp_path: Path) -> None:
    """A folder contains the last save; weights of the other format are never taken as its own."""
    model, older = build(TINY), (0, "")
    for eight_bits, number in ((False, 2), (True, 3), (True, 3), (False, 2)):
        about = FolderConfig(model=TINY)
        save_model(tmp_path, model, about, tokenizers=JOINT, eight_bits=eight_bits)
        opened = open_folder(tmp_path)
        loaded, found = opened.model, opened.config
        assert found.format == number
        assert found.replaced_sha256 == (older[1] if older[0] == number else None)
        older = found.format, str(found.weights_sha256)
        kept = torch.equal(loaded.get_parameter(SOURCE), model.get_parameter(SOURCE))
        assert kept == (not eight_bits)
