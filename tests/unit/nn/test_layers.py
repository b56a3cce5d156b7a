"""What a stack does apart from running its layers: LayerDrop, checkpointing, scaling, init."""

from collections.abc import Callable
from dataclasses import replace
from typing import Literal, TypeVar

import pytest
import torch
from tests.unit.models.family import DECODER, ENCODER
from tests.unit.models.small import SMALL, random_ids, stir
from torch import Tensor, nn

from dragoman.models import DecoderOnly, EncoderDecoder, EncoderOnly
from dragoman.nn import (
    Causal,
    Encoder,
    LayerConfig,
    LinearAttention,
    MultiHeadAttention,
    NoPositions,
    Residual,
    Rwkv,
    SlidingWindow,
    deepnorm,
    deepnorm_pair,
)
from dragoman.nn.feedforward import FeedForward
from dragoman.nn.layers import Stack

SHAPE = LayerConfig(
    d_model=16, num_heads=4, d_ff=24, dropout=0.0, norm_position="pre", final_norm=False
)

Config = TypeVar("Config", bound=LayerConfig)


def noisy(config: Config, layer_drop: float = 0.2) -> Config:
    """Switch every dropout on."""
    return replace(
        config, dropout=0.3, attention_dropout=0.2, ffn_dropout=0.2, layer_drop=layer_drop
    )


def counting(stack: nn.Module) -> list[int]:
    """Make the layers of a stack record their number when they run."""
    ran: list[int] = []
    for index, layer in enumerate(stack.get_submodule("layers").children()):
        layer.register_forward_hook(lambda *_, index=index: ran.append(index))
    return ran


def test_layer_drop_leaves_out_its_share_in_training() -> None:
    """Of 1,000 layers with probability 0.3 about 700 run (4 standard deviations: 58)."""
    torch.manual_seed(0)
    encoder = Encoder(replace(SHAPE, layer_drop=0.3), 20)
    ran, x = counting(encoder), torch.randn(1, 1, 16)
    with torch.no_grad():
        for _ in range(50):
            encoder(x)
    assert abs(len(ran) - 700) < 58
    assert set(ran) == set(range(20))


def test_a_dropped_layer_is_no_layer() -> None:
    """The output is that of the layers that ran; the others get no gradient."""
    torch.manual_seed(3)
    encoder = Encoder(replace(SHAPE, layer_drop=0.5), 8)
    ran, x = counting(encoder), torch.randn(2, 3, 16)
    out = encoder(x)
    out.sum().backward()
    expected = x
    for index in list(ran):
        expected = encoder.layers[index](expected)
    assert 0 < len(set(ran)) < 8
    assert torch.equal(out, expected)
    layers = [dict(layer.named_parameters()) for layer in encoder.layers]
    learnt = {i for i, layer in enumerate(layers) if layer["ffn.up.weight"].grad is not None}
    assert learnt == set(ran)


POSITIONS: tuple[Literal["post"], Literal["deepnorm"]] = ("post", "deepnorm")
IDS = random_ids(0, 2, 12)
MODELS: dict[str, tuple[Callable[[], nn.Module], tuple[Tensor, ...]]] = {
    "encoder-decoder": (lambda: EncoderDecoder(noisy(SMALL)), (IDS, random_ids(1, 2, 7))),
    "decoder": (lambda: DecoderOnly(noisy(DECODER)), (IDS,)),
    "patterns": (
        lambda: DecoderOnly(
            replace(
                DECODER,
                dropout=0.2,
                patterns=(SlidingWindow(size=3), LinearAttention(decay="retnet"), Causal()),
                num_layers=3,
            )
        ),
        (IDS,),
    ),
    "rwkv": (
        lambda: DecoderOnly(
            replace(
                DECODER, dropout=0.3, layer_drop=0.2, patterns=(Rwkv(),), positions=NoPositions()
            )
        ),
        (IDS,),
    ),
    "encoder": (lambda: EncoderOnly(noisy(ENCODER, 0.0)), (IDS,)),
}


def gradients_of(model: nn.Module, inputs: tuple[Tensor, ...]) -> tuple[Tensor, list[Tensor]]:
    """Run forward and backward from a fixed state of the random generator."""
    torch.manual_seed(5)
    model.zero_grad()
    out = model(*inputs)
    out.square().sum().backward()
    return out, [torch.zeros(()) if p.grad is None else p.grad for p in model.parameters()]


def set_checkpointing(model: nn.Module) -> None:
    """Switch checkpointing on in every stack."""
    for module in model.modules():
        if isinstance(module, Stack):
            module.checkpointing = True


@pytest.mark.parametrize("name", MODELS)
def test_activation_checkpointing_changes_no_number(name: str) -> None:
    """Outputs and gradients are the same bit for bit, with all dropouts and LayerDrop on."""
    torch.manual_seed(0)
    build, inputs = MODELS[name]
    model = build().train()
    stir(model)
    out, gradients = gradients_of(model, inputs)
    set_checkpointing(model)
    again, computed_again = gradients_of(model, inputs)
    assert torch.equal(out, again)
    assert all(torch.equal(a, b) for a, b in zip(gradients, computed_again, strict=True))
    assert any(bool(g.any()) for g in gradients)


@pytest.mark.parametrize("name", MODELS)
def test_activation_checkpointing_keeps_less(name: str) -> None:
    """Autograd keeps less than half as many numbers for the backward pass."""
    torch.manual_seed(0)
    build, inputs = MODELS[name]
    model = build().eval()  # no layer is dropped
    kept: list[int] = []

    def keep(x: Tensor) -> Tensor:
        kept.append(x.numel())
        return x

    sums = []
    for _ in range(2):
        with torch.autograd.graph.saved_tensors_hooks(keep, lambda x: x):
            model(*inputs)
        sums.append(sum(kept))
        kept.clear()
        set_checkpointing(model)
    assert sums[1] < sums[0] / 2


@pytest.mark.parametrize("alpha", [1.0, 2.5])
def test_a_deepnorm_residual_is_its_formula(alpha: float) -> None:
    """`norm(alpha x + f(x))`."""
    residual = Residual(replace(SHAPE, norm_position="deepnorm"), alpha)
    x = torch.randn(2, 3, 16)
    expected = nn.functional.layer_norm(alpha * x + x.sin(), (16,), eps=SHAPE.norm_eps)
    torch.testing.assert_close(residual(x, torch.sin), expected)


def test_deepnorm_constants_are_the_papers() -> None:
    """Figure 2 of the paper, at N = M = 18, and for 100 encoder and 100 decoder layers."""
    assert deepnorm(18) == pytest.approx((36**0.25, 144**-0.25))
    encoder, decoder = deepnorm_pair(18, 6)
    share = (18**4 * 6) ** (1 / 16)
    assert encoder == pytest.approx((0.81 * share, 0.87 / share))
    assert decoder == pytest.approx((18**0.25, 72**-0.25))


def test_deepnorm_scales_values_outputs_and_feed_forward_alone() -> None:
    """By `beta`; queries and keys are drawn as usual, and the layers know their `alpha`."""
    models = []
    for position in POSITIONS:
        torch.manual_seed(0)
        models.append(EncoderOnly(replace(ENCODER, norm_position=position, num_layers=3)))
    plain, deep = (dict(model.named_parameters()) for model in models)
    alpha, beta = deepnorm(3)
    for name, weight in plain.items():
        scaled = name.endswith(("out_proj.weight", "ffn.up.weight", "ffn.down.weight"))
        expected = beta * weight if scaled else weight
        if name.endswith("kv_proj.weight"):
            keys, values = weight.chunk(2)
            expected = torch.cat([keys, beta * values])
        torch.testing.assert_close(deep[name], expected)
    residuals = [m for m in models[1].modules() if isinstance(m, Residual)]
    assert {r.alpha for r in residuals} == {alpha}
    assert {r.alpha for m in [models[0]] for r in m.modules() if isinstance(r, Residual)} == {1.0}


def test_gpt2_draws_with_two_deviations() -> None:
    """0.02 everywhere, and `0.02 / sqrt(2 N)` where a sublayer ends (within 4 deviations)."""
    torch.manual_seed(0)
    config = replace(DECODER, d_model=128, d_ff=256, num_layers=8, init="gpt2", gated=True)
    model = DecoderOnly(config)
    inner, ends = [], []
    for module in model.modules():
        if isinstance(module, MultiHeadAttention):
            inner += [module.q_proj, module.kv_proj]
            ends.append(module.out_proj)
        elif isinstance(module, FeedForward):
            assert module.value is not None
            inner += [module.up, module.value]
            ends.append(module.down)
    for linears, deviation in ((inner, 0.02), (ends, 0.02 / 16**0.5)):
        assert len(linears) in {16, 32}
        for linear in linears:
            numbers = linear.weight.numel()
            found = float(linear.weight.detach().double().std())
            assert abs(found / deviation - 1) < 4 / (2 * numbers) ** 0.5
            assert abs(float(linear.weight.detach().double().mean())) < 4 * deviation / numbers**0.5
            assert not bool(linear.bias.any())
