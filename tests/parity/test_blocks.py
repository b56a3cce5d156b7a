"""Each block against its formula, written in NumPy in float64."""

import math
from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pytest
import torch
from tests.unit.models.small import stir
from torch import nn

from dragoman.nn import FeedForward, LayerNorm, MultiHeadAttention, RMSNorm, TokenEmbedding
from dragoman.nn.feedforward import ACTIVATIONS, Activation
from dragoman.nn.norm import make_norm

Array = npt.NDArray[np.float64]

erf = np.vectorize(math.erf)


def sigmoid(x: Array) -> Array:
    """`1 / (1 + e^-x)`."""
    result: Array = 1 / (1 + np.exp(-x))
    return result


FORMULAS: dict[str, Callable[[Array], Array]] = {
    "relu": lambda x: np.maximum(x, 0),
    "gelu": lambda x: x * (1 + erf(x / math.sqrt(2))) / 2,
    "gelu_tanh": lambda x: x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))) / 2,
    "silu": lambda x: x * sigmoid(x),
    "sigmoid": sigmoid,
}


def weights(module: nn.Module) -> dict[str, Array]:
    """Return the parameters as arrays."""
    return {name: p.detach().numpy() for name, p in module.named_parameters()}


def inputs(*shape: int) -> torch.Tensor:
    """Return normal numbers with a scale of 2."""
    return 2 * torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(1))


def softmax(scores: Array) -> Array:
    """Compute softmax over the last axis; a row of minus infinities gives zeros."""
    top = scores.max(-1, keepdims=True)
    exps = np.exp(scores - np.where(np.isfinite(top), top, 0))
    result: Array = exps / np.maximum(exps.sum(-1, keepdims=True), 1e-300)
    return result


@pytest.mark.parametrize(("heads", "kv_heads", "head_dim"), [(4, 4, 3), (4, 2, 3), (3, 1, 5)])
@pytest.mark.parametrize("bias", [True, False], ids=["bias", "no-bias"])
@pytest.mark.parametrize("masked", [True, False], ids=["mask", "no-mask"])
def test_attention_is_the_formula(
    heads: int, kv_heads: int, head_dim: int, *, bias: bool, masked: bool
) -> None:
    """`Concat(softmax(Q_i K_i^T / sqrt(d)) V_i) W_O`, with heads that share keys and values."""
    num_rows, num_queries, num_keys, d_model = 2, 3, 5, 12
    attn = MultiHeadAttention(
        d_model, heads, num_kv_heads=kv_heads, head_dim=head_dim, bias=bias
    ).double()
    stir(attn)
    x, source = inputs(num_rows, num_queries, d_model), inputs(num_rows, num_keys, d_model)
    mask = torch.rand(num_rows, 1, num_queries, num_keys) < 0.5 if masked else None
    if mask is not None:
        mask[0, 0, 1] = False
    kv = attn.project_kv(source)
    got = attn(x, kv, mask).detach().numpy()
    got_weights = attn.weights(x, kv, mask).detach().numpy()

    w = weights(attn)
    half = kv_heads * head_dim
    zero = np.zeros(1)
    q = x.numpy() @ w["q_proj.weight"].T + w.get("q_proj.bias", zero)
    kv_flat = source.numpy() @ w["kv_proj.weight"].T + w.get("kv_proj.bias", zero)
    k, v = kv_flat[..., :half], kv_flat[..., half:]
    joined = np.empty((num_rows, num_queries, heads * head_dim))
    for head in range(heads):
        own = slice(head * head_dim, (head + 1) * head_dim)
        group = head // (heads // kv_heads)
        shared = slice(group * head_dim, (group + 1) * head_dim)
        scores = q[..., own] @ k[..., shared].transpose(0, 2, 1) / math.sqrt(head_dim)
        if mask is not None:
            scores = np.where(mask[:, 0].numpy(), scores, -np.inf)
        np.testing.assert_allclose(got_weights[:, head], softmax(scores), atol=1e-12)
        joined[..., own] = softmax(scores) @ v[..., shared]
    expected = joined @ w["out_proj.weight"].T + w.get("out_proj.bias", zero)
    np.testing.assert_allclose(got, expected, atol=1e-12)


@pytest.mark.parametrize("bias", [True, False], ids=["bias", "no-bias"])
def test_layer_norm_is_the_formula(*, bias: bool) -> None:
    """The variance is divided by D, and eps is inside the root."""
    norm = LayerNorm(6, eps=0.3, bias=bias).double()
    stir(norm)
    x, w = inputs(2, 3, 6), weights(norm)
    mean, var = x.numpy().mean(-1, keepdims=True), x.numpy().var(-1, keepdims=True)
    expected = (x.numpy() - mean) / np.sqrt(var + 0.3) * w["weight"] + w.get("bias", 0.0)
    np.testing.assert_allclose(norm(x).detach().numpy(), expected, atol=1e-13)


def test_rms_norm_is_the_formula() -> None:
    """`x / sqrt(mean(x^2) + eps) * weight`."""
    norm = RMSNorm(6, eps=0.3).double()
    stir(norm)
    x = inputs(2, 3, 6)
    root = np.sqrt((x.numpy() ** 2).mean(-1, keepdims=True) + 0.3)
    expected = x.numpy() / root * weights(norm)["weight"]
    np.testing.assert_allclose(norm(x).detach().numpy(), expected, atol=1e-13)


@pytest.mark.parametrize("activation", list(FORMULAS))
@pytest.mark.parametrize("gated", [True, False], ids=["gated", "plain"])
@pytest.mark.parametrize("bias", [True, False], ids=["bias", "no-bias"])
def test_feed_forward_is_the_formula(activation: Activation, *, gated: bool, bias: bool) -> None:
    """`act(x W1 + b1) W2 + b2`, gated `(act(x W1 + b1) * (x W3 + b3)) W2 + b2`, in both modes."""
    ffn = FeedForward(6, 10, activation=activation, gated=gated, bias=bias).double()
    stir(ffn)
    x, w = inputs(2, 3, 6), weights(ffn)
    hidden = FORMULAS[activation](x.numpy() @ w["up.weight"].T + w.get("up.bias", 0.0))
    if gated:
        hidden = hidden * (x.numpy() @ w["value.weight"].T + w.get("value.bias", 0.0))
    expected = hidden @ w["down.weight"].T + w.get("down.bias", 0.0)
    np.testing.assert_allclose(ffn(x).detach().numpy(), expected, atol=1e-12)
    with torch.no_grad():
        np.testing.assert_allclose(ffn(x).numpy(), expected, atol=1e-12)


def test_what_is_meant_where_nothing_is_said() -> None:
    """Defaults are an eps of 1e-5 as in torch, visible in small numbers, and the paper's ReLU."""
    x = 1e-3 * inputs(2, 3, 6)
    for ours, theirs in (
        (LayerNorm(6), torch.nn.LayerNorm(6)),
        (RMSNorm(6), torch.nn.RMSNorm(6, eps=1e-5)),
        (make_norm("rms", 6, eps=0.3, bias=False), torch.nn.RMSNorm(6, eps=0.3)),
    ):
        torch.testing.assert_close(ours.double()(x), theirs.double()(x), rtol=1e-9, atol=0.0)
    ffn = FeedForward(6, 10).double()
    torch.testing.assert_close(ffn(x), ffn.down(ffn.up(x).relu()))


@pytest.mark.parametrize("activation", list(FORMULAS))
def test_activations_hold_at_the_ends_of_the_range(activation: str) -> None:
    """Numbers whose exponential overflows give the limit, with and without gradients."""
    x = torch.tensor([-1e4, -200.0, -90.0, 0.0, 90.0, 1e4], requires_grad=True)
    y = ACTIVATIONS[activation](x)
    (slope,) = torch.autograd.grad(y.sum(), x)
    with torch.no_grad():
        torch.testing.assert_close(ACTIVATIONS[activation](x), y, atol=1e-30, rtol=1e-6)
    assert bool(slope.isfinite().all())
    assert bool(y.isfinite().all())


@pytest.mark.parametrize(("scale", "factor"), [(True, 4.0), (False, 1.0)])
def test_embedding_is_a_scaled_row(*, scale: bool, factor: float) -> None:
    """`E[ids] * sqrt(D)`, or `E[ids]`; the padding row is zeros."""
    embedding = TokenEmbedding(7, 16, pad_id=1, scale=scale).double()
    ids = torch.tensor([[3, 1, 6], [6, 6, 0]])
    expected = weights(embedding)["weight"][ids.numpy()] * factor
    np.testing.assert_allclose(embedding(ids).detach().numpy(), expected, atol=1e-14)
    assert not expected[0, 1].any()
