"""The logit lens and a logit's shares equal those of a plain loop over all parts in float64."""

from collections.abc import Callable
from functools import partial
from math import sqrt

import pytest
import torch
from tests.unit.models.family import DECODERS, make_decoder
from tests.unit.models.small import BOS, VARIANTS, distance, make_model, random_ids
from torch import Tensor, nn

from dragoman.lens import logits
from dragoman.lens.logits import early_probs, explain_logits
from dragoman.models import DecoderOnly, EncoderDecoder
from dragoman.nn import LayerNorm, MultiHeadAttention, PositionInfo, RMSNorm
from dragoman.nn.layers import Layer, Residual

CLOSE = 1e-13
Parts = dict[tuple[str, int | None, int | None], list[Tensor]]
"""The vector of each part at each position; their sum is the residual stream."""
BIASES = ("biases", None, None)


def stream(parts: Parts, t: int) -> Tensor:
    """Return the residual stream at a position."""
    return torch.stack([vectors[t] for vectors in parts.values()]).sum(0)


def normed(parts: Parts, norm: nn.Module, length: int) -> Parts:
    """Apply a norm to each part, with the scale of their sum."""
    if isinstance(norm, nn.Identity):
        return parts
    assert isinstance(norm, LayerNorm | RMSNorm)
    after: Parts = {key: [] for key in parts}
    for t in range(length):
        y = stream(parts, t).tolist()
        mean = sum(y) / len(y) if isinstance(norm, LayerNorm) else 0.0
        sigma = sqrt(sum((each - mean) ** 2 for each in y) / len(y) + norm.eps)
        for key, vectors in parts.items():
            own = vectors[t].mean() if isinstance(norm, LayerNorm) else 0.0
            after[key].append(norm.weight * (vectors[t] - own) / sigma)
        if isinstance(norm, LayerNorm) and norm.bias is not None:
            after[BIASES][t] = after[BIASES][t] + norm.bias
    return after


def attended(
    key: tuple[str, int], attention: MultiHeadAttention, weights_HTS: Tensor, v_KSd: Tensor
) -> Parts:
    """Return what each head of an attention adds, and its bias."""
    group, d = attention.num_heads // attention.num_kv_heads, attention.head_dim
    added: Parts = {}
    for head, weights_TS in enumerate(weights_HTS):
        w_out_Dd = attention.out_proj.weight[:, head * d : (head + 1) * d]
        added[*key, head] = [
            sum((w * (w_out_Dd @ v) for w, v in zip(weights_S, v_KSd[head // group], strict=True)))
            for weights_S in weights_TS
        ]
    if attention.out_proj.bias is not None:
        added[BIASES] = [attention.out_proj.bias] * weights_HTS.shape[1]
    return added


def look(layer: Layer, info: PositionInfo, x_TD: Tensor) -> Parts:
    """Return what self-attention adds."""
    info = info.of_layer(layer.index)
    kv = layer.self_attn.project_kv(x_TD[None], info)
    weights_HTS = layer.self_attn.weights(x_TD[None], kv, None, info)[0]
    return attended(("decoder", layer.index), layer.self_attn, weights_HTS, kv.v_BKSd[0])


def cross(layer: Layer, memory_SD: Tensor, x_TD: Tensor) -> Parts:
    """Return what cross-attention adds."""
    assert layer.cross_attn is not None
    kv = layer.project_memory(memory_SD[None])
    weights_HTS = layer.cross_attn.weights(x_TD[None], kv)[0]
    return attended(("cross", layer.index), layer.cross_attn, weights_HTS, kv.v_BKSd[0])


def feed(layer: Layer, x_TD: Tensor) -> Parts:
    """Return what the feed-forward network adds."""
    return {("feed-forward", layer.index, None): [*layer.ffn(x_TD)]}


def passed(parts: Parts, residual: Residual, length: int, f: Callable[[Tensor], Parts]) -> Parts:
    """Return the parts after a sublayer `f` of a layer."""
    read = normed(parts, residual.norm, length) if residual.pre else parts
    alpha = 1.0 if residual.pre else residual.alpha
    after = {key: [alpha * vector for vector in vectors] for key, vectors in parts.items()}
    added = f(torch.stack([stream(read, t) for t in range(length)]))
    if not isinstance(residual.out_norm, nn.Identity):
        added.setdefault(BIASES, [torch.zeros_like(parts[BIASES][0])] * length)
        added = normed(added, residual.out_norm, length)
    for key, vectors in added.items():
        old = after.get(key, [torch.zeros_like(vector) for vector in vectors])
        after[key] = [one + other for one, other in zip(old, vectors, strict=True)]
    return after if residual.pre else normed(after, residual.norm, length)


def by_hand(model: EncoderDecoder | DecoderOnly, src: list[int], ids: list[int]) -> list[Parts]:
    """Return the parts of the residual stream after each decoder layer."""
    if isinstance(model, DecoderOnly):
        embedding, memory_SD = model.embedding, torch.empty(0)
    else:
        embedding, memory_SD = model.tgt_embedding, model.encode(torch.tensor([src]))[0][0]
    length = len(ids)
    x_TD = embedding.embed(torch.tensor([ids]), range(length))[0]
    info = model.decoder.position_info(x_TD[None], range(length))
    parts: Parts = {
        ("embedding", None, None): [*x_TD],
        BIASES: [torch.zeros_like(x_TD[0])] * length,
    }
    found = []
    for layer in model.decoder.each_layer():
        for residual, f in (
            (layer.self_attn_residual, partial(look, layer, info)),
            (layer.cross_attn_residual, partial(cross, layer, memory_SD)),
            (layer.ffn_residual, partial(feed, layer)),
        ):
            if residual is not None:
                parts = passed(parts, residual, length, f)
        found.append(parts)
    return found


MODELS = {
    **{f"translator {name}": (make_model, config) for name, config in VARIANTS.items()},
    **{f"generator {name}": (make_decoder, config) for name, config in DECODERS.items()},
}


@pytest.mark.parametrize("name", MODELS)
@torch.no_grad()
def test_lens_and_shares_are_those_of_a_plain_loop(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """For pre-norm, the paper's post-norm and DeepNorm; all shares sum to the logit."""
    monkeypatch.setattr(logits, "TOKENS_AT_ONCE", 2)
    make, config = MODELS[name]
    model: EncoderDecoder | DecoderOnly = make(config)  # type: ignore[operator]
    src, ids, wanted = random_ids(1, 4).tolist(), [BOS, *random_ids(2, 2).tolist()], [5, 9, 7]
    inputs = [ids] if isinstance(model, DecoderOnly) else [src, ids]
    lens, found = explain_logits(model, inputs, wanted)
    streams = by_hand(model, src, ids)
    assert len(lens) == len(streams)
    for (probs_T, best_T), parts in zip(lens, streams, strict=True):
        after = normed(parts, model.decoder.final_norm, len(ids))
        hidden_TD = torch.stack([stream(after, t) for t in range(len(ids))])
        expected_TV = model.project(hidden_TD * model.logit_scale).softmax(-1)
        x_TD = torch.stack([stream(parts, t) for t in range(len(ids))])
        assert distance(early_probs(model, x_TD), expected_TV) < CLOSE
        assert best_T.tolist() == expected_TV.argmax(-1).tolist()
        assert distance(probs_T, expected_TV.amax(-1)) < CLOSE
    assert {(each.name, each.layer, each.head) for each in found} == {*after}
    assert len(found) == len(after)
    for each in found:
        rows = [model.output.weight[id_] * model.logit_scale for id_ in wanted]
        vectors = after[each.name, each.layer, each.head]
        shares = [row @ vector for row, vector in zip(rows, vectors, strict=True)]
        if each.name == "biases" and model.output.bias is not None:
            shares = [
                share + model.output.bias[id_] for share, id_ in zip(shares, wanted, strict=True)
            ]
        assert distance(torch.tensor(each.shares, dtype=torch.float64), torch.stack(shares)) < CLOSE
    model.logit_soft_cap = None
    logits_T = model(*(torch.tensor([each]) for each in inputs))[0, range(len(ids)), wanted]
    sums_T = torch.tensor([each.shares for each in found], dtype=torch.float64).sum(0)
    assert distance(sums_T, logits_T) < CLOSE


@pytest.mark.parametrize("make", [make_model, make_decoder])
def test_few_distributions_are_in_memory_at_once(
    make: Callable[[], EncoderDecoder | DecoderOnly], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Logits of all tokens are never computed at once: for a long text they can take gigabytes."""
    model, made = make(), list[int]()
    project = model.project

    def watched(hidden_TD: Tensor) -> Tensor:
        made.append(hidden_TD.shape[-2])
        return project(hidden_TD)

    monkeypatch.setattr(type(model), "project", staticmethod(watched))
    monkeypatch.setattr(logits, "TOKENS_AT_ONCE", 2)
    explain_logits(model, [[5, 6, 7]] * (2 - isinstance(model, DecoderOnly)), [6, 7, 5])
    assert made == [2, 1] * len(model.decoder.each_layer())
