"""RWKV: its scan against the recurrence, and a whole model against Hugging Face's."""

from dataclasses import replace
from functools import cache
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.models.small import distance, random_ids, stir
from torch import Tensor

from dragoman.models import DecoderOnly, DecoderOnlyConfig
from dragoman.nn import NoPositions, Rwkv, wkv

CONFIG = DecoderOnlyConfig(
    vocab_size=40,
    d_model=24,
    num_heads=1,
    d_ff=36,
    num_layers=3,
    patterns=(Rwkv(),),
    positions=NoPositions(),
    norm_position="pre",
    embedding_norm=True,
    tie_embeddings=False,
    dropout=0.0,
)
SEEDS = st.integers(0, 2**32)
NAMES = {
    "embedding.weight": "embeddings.weight",
    "embedding.norm": "blocks.0.pre_ln",
    "decoder.final_norm": "ln_out",
    "decoder.layers": "blocks",
    "time_mix_residual.norm": "ln1",
    "channel_mix_residual.norm": "ln2",
    "channel_mix.output": "feed_forward.value",
    "time_mix": "attention",
    "channel_mix": "feed_forward",
    "decay": "time_decay",
    "bonus": "time_first",
    "mix_": "time_mix_",
}


def recurrence(k: Tensor, v: Tensor, decay: Tensor, bonus: Tensor, state: Tensor) -> Any:  # noqa: ANN401
    """Compute position by position, as in the paper's appendix on stability, with gradients."""
    numerator, denominator, largest = state.unbind(1)
    outs = []
    for k_t, v_t in zip(k.unbind(1), v.unbind(1), strict=True):
        top = torch.maximum(largest, k_t + bonus)
        past, now = torch.exp(largest - top), torch.exp(k_t + bonus - top)
        outs.append((past * numerator + now * v_t) / (past * denominator + now))
        top = torch.maximum(largest - decay.exp(), k_t)
        past, now = torch.exp(largest - decay.exp() - top), torch.exp(k_t - top)
        numerator, denominator = past * numerator + now * v_t, past * denominator + now
        largest = top
    return torch.stack(outs, 1), torch.stack([numerator, denominator, largest], 1)


def start(k: Tensor) -> Tensor:
    """Return the state before the first token; a finite minus infinity allows gradients."""
    return torch.stack([torch.zeros_like(k[:, 0])] * 2 + [torch.full_like(k[:, 0], -1e38)], 1)


def draw(seed: int, length: int, spread: float) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Draw keys that differ by about `spread`, values, slow to sudden decays, and bonuses."""
    torch.manual_seed(seed)
    k, v = (torch.randn(2, length, 5, dtype=torch.float64) for _ in range(2))
    decay, bonus = 3 * torch.randn(2, 5, dtype=torch.float64)
    return k * spread, v, decay.clamp(max=4), bonus


@given(SEEDS, st.integers(1, 70), st.sampled_from([1.0, 30.0, 2000.0]), st.booleans())
@settings(max_examples=60)
def test_the_scan_is_the_recurrence(
    seed: int,
    length: int,
    spread: float,
    continued: bool,  # noqa: FBT001 (drawn)
) -> None:
    """Outputs, state and all gradients in float64, also for keys whose exponentials overflow."""
    inputs = draw(seed, length, spread)
    for each in inputs:
        each.requires_grad_()
    state = start(inputs[0])
    if continued:
        state = recurrence(*draw(seed + 1, 3, spread), state)[1]
    slopes = torch.randn_like(inputs[0]), torch.randn(2, 2, 5).double()
    grads = []
    found = [f(*inputs, state) for f in (recurrence, wkv)]
    for out, after in found:
        # numerator and denominator alone depend on the exponent that was taken out of both
        loss = (out * slopes[0]).sum() + (after[:, 0] / after[:, 1] * slopes[1][:, 0]).sum()
        grads.append(torch.autograd.grad(loss, inputs))
    assert distance(found[1][0], found[0][0]) < 1e-10
    assert distance(found[1][1], found[0][1]) < 1e-10 * spread
    for one, other in zip(*grads, strict=True):
        assert distance(one, other) < 1e-9


def test_large_keys_stay_finite_in_float32() -> None:
    """`exp` of these keys is infinite or zero; the means equal those of float64."""
    k, v, decay, bonus = draw(0, 300, 100.0)
    wanted, _ = recurrence(k, v, decay, bonus, start(k))
    k, v, decay, bonus = (x.float() for x in (k, v, decay, bonus))
    out, state = wkv(k, v, decay, bonus, start(k))
    assert out.isfinite().all()
    assert state.isfinite().all()
    assert distance(out.double(), wanted) < 1e-3


@cache
def models() -> tuple[DecoderOnly, Any]:
    """Build ours and Hugging Face's with the same random weights, in float32."""
    from transformers import RwkvConfig, RwkvModel

    torch.manual_seed(0)
    ours = DecoderOnly(CONFIG).eval()
    stir(ours)
    config = RwkvConfig(
        vocab_size=40, hidden_size=24, intermediate_size=36, num_hidden_layers=3, rescale_every=0
    )
    theirs = RwkvModel(config).eval()
    weights = {}
    for name, weight in ours.state_dict().items():
        for mine, other in NAMES.items():
            name = name.replace(mine, other)  # noqa: PLW2901
        weights[name] = weight
    del weights["output.weight"]
    shapes = {name: weight.shape for name, weight in theirs.state_dict().items()}
    assert weights.keys() == shapes.keys()
    theirs.load_state_dict({name: w.view(shapes[name]) for name, w in weights.items()})
    return ours, theirs


def test_a_whole_text_is_theirs() -> None:
    """Hidden states equal those of `RwkvModel`, and so do all gradients from its autograd."""
    ours, theirs = models()
    ids, slopes = random_ids(0, 3, 50) % 40, torch.randn(3, 50, 24)
    mine, other = ours.hidden(ids), theirs(ids, use_cache=False).last_hidden_state
    assert distance(mine, other) < 2e-5
    (mine * slopes).sum().backward()
    (other * slopes).sum().backward()
    grads = {name: p.grad for name, p in theirs.named_parameters()}
    for name, weight in ours.named_parameters():
        if name.startswith("output"):
            continue
        for mine_name, other_name in NAMES.items():
            name = name.replace(mine_name, other_name)  # noqa: PLW2901
        assert weight.grad is not None
        wanted = grads[name].view(weight.shape)
        assert distance(weight.grad, wanted) < 1e-4 * (1 + wanted.abs().max())


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float64])
def test_the_state_is_summed_in_full(dtype: torch.dtype) -> None:
    """Under autocast a text's sums stay in float32; a model in float64 stays in float64."""
    model = DecoderOnly(replace(CONFIG, num_layers=1)).eval()
    ids = random_ids(2, 1, 40) % 40
    model = model.double() if dtype is torch.float64 else model
    with (
        torch.no_grad(),
        torch.autocast("cpu", dtype=torch.bfloat16, enabled=dtype is not torch.float64),
    ):
        state = model.start(ids, 1)
    storage: Any = state.past.storages[0]
    assert storage.state_BKde.shape == (1, 5, 24)
    assert storage.state_BKde.dtype == (torch.float64 if dtype is torch.float64 else torch.float32)
