"""Attention weights as parts of an `Inspection`: maps, word alignment, attribution of a label.

docs/inspect.md defines the four numbers of a head, and the word for what they say of it. Clark et
al. (2019, section 3) and Voita et al. (2019, section 4) found heads that attend to the previous
token and heads that attend to separators in trained models.
"""

from collections.abc import Iterator, Sequence
from typing import Literal

import torch
from torch import Tensor

from dragoman.lens.inspection import (
    AlignmentMap,
    AttentionMap,
    HeadKind,
    HeadSummary,
    MapName,
    Note,
)
from dragoman.lens.trace import Traced
from dragoman.models import EncoderOnly
from dragoman.nn import evaluation_view, row_invariant_products
from dragoman.text.tokenizer import SPECIALS

BROAD = 0.9
"""Minimum share of the maximum entropy for a broad head."""
HALF = 0.5
"""Minimum share of the attention to one kind of place for a head to be named after it."""
_NAMES: dict[MapName, tuple[str, str]] = {
    "encoder": ("encoder", "编码器"),
    "decoder": ("decoder", "解码器"),
    "cross": ("cross-attention", "交叉注意力"),
}


def attention_map(
    name: MapName,
    traced: Traced,
    tokens: tuple[Sequence[str], Sequence[str]],
    lists: tuple[Literal["src", "tgt"], Literal["src", "tgt"]] = ("src", "src"),
) -> AttentionMap:
    """Return a map with its summaries; `tokens` are those of rows and columns, from `lists`."""
    query_tokens, key_tokens = tokens
    separators = [token in SPECIALS for token in key_tokens]
    return AttentionMap(
        name=name,
        queries=lists[0],
        keys=lists[1],
        query_tokens=tuple(query_tokens),
        key_tokens=tuple(key_tokens),
        num_layers=traced.num_layers,
        num_heads=traced.num_heads,
        layers=traced.layers,
        heads=traced.heads,
        weights_LHTS=traced.weights_LHTS.numpy(),
        summaries=summarise(traced.weights_LHTS, separators, crossing=name == "cross"),
    )


def alignment_of(cross: Traced, *, ended: bool) -> AlignmentMap:
    """Return the cross-attention that aligns words, and a link from each token to its maximum.

    As in translation, the ends of sentences have no links, nor does a token that attends most to
    the end. `ended` says whether the last row is such an end.
    """
    (weights_TS,) = cross.means.values()
    end = weights_TS.shape[1] - 1
    most = weights_TS[:-1].max(dim=1) if ended else weights_TS.max(dim=1)
    pairs = enumerate(zip(most.indices.tolist(), most.values.tolist(), strict=True))
    return AlignmentMap(
        links=tuple((t, s, weight) for t, (s, weight) in pairs if s != end),
        weights_TS=weights_TS.numpy(),
    )


def cut_maps(maps: Sequence[AttentionMap]) -> Iterator[Note]:
    """Yield a note on which attention was kept, if not all of it."""
    kept_en, kept_zh = [], []
    for each in maps:
        if not each.is_whole:
            en, zh = _NAMES[each.name]
            layers, layers_zh = _some(each.layers, each.num_layers, "layer", "层")
            heads, heads_zh = _some(each.heads, each.num_heads, "head", "个头")
            kept_en.append(f"{en}: {layers}, {heads}")
            kept_zh.append(f"{zh}：{layers_zh}，{heads_zh}")
    if kept_en:
        yield Note(
            en=f"A part of the attention is kept, counted from 0 ({'; '.join(kept_en)}).",
            zh=f"只保留了一部分注意力，从 0 数起（{'；'.join(kept_zh)}）。",
        )


def _some(numbers: Sequence[int], total: int, en: str, zh: str) -> tuple[str, str]:
    if len(numbers) == total:
        return f"all {total} {en}s", f"全部 {total} {zh}"
    kept = list(map(str, numbers))
    plural = "s" if len(kept) > 1 else ""
    return (
        f"{en}{plural} {', '.join(kept)} of {total}",
        f"{zh[-1]} {'、'.join(kept)}，共 {total} {zh}",
    )


def summarise(
    weights_LHTS: Tensor, separators: Sequence[bool], *, crossing: bool
) -> tuple[tuple[HeadSummary, ...], ...]:
    """Summarise each layer's heads; `separators` marks the special tokens among the S keys."""
    weights_LHTS = weights_LHTS.double()
    entropies_LHT = torch.special.entr(weights_LHTS).sum(-1)
    greatest_LH = (weights_LHTS > 0).sum(-1).clamp(min=1).log().mean(-1)
    special_S = torch.tensor(list(separators), dtype=torch.bool)
    shares = {
        "entropy": entropies_LHT.mean(-1),
        "previous": _diagonal(weights_LHTS, -1) * (not crossing),
        "diagonal": _near(weights_LHTS) if crossing else _diagonal(weights_LHTS, 0),
        "separator": weights_LHTS[..., special_S].sum(-1).mean(-1),
    }
    by_head = torch.stack([*shares.values(), greatest_LH], dim=-1).tolist()
    return tuple(tuple(_named(*numbers) for numbers in layer) for layer in by_head)


def _diagonal(weights_LHTS: Tensor, offset: int) -> Tensor:
    """Return the mean of a diagonal; 0 if it is empty."""
    diagonal_LHn = weights_LHTS.diagonal(offset, dim1=-2, dim2=-1)
    return diagonal_LHn.sum(-1) / max(1, diagonal_LHn.shape[-1])


def _near(weights_LHTS: Tensor) -> Tensor:
    """Return the share at the same relative position."""
    num_queries, num_keys = weights_LHTS.shape[-2:]
    places_T = torch.linspace(0, num_keys - 1, num_queries, dtype=torch.float64).round()
    near_TS = (torch.arange(num_keys) - places_T[:, None]).abs() <= 1
    return (weights_LHTS * near_TS).sum(-1).mean(-1)


def _named(
    entropy: float, previous: float, diagonal: float, separator: float, greatest: float
) -> HeadSummary:
    shares: dict[HeadKind, float] = {
        "previous-token": previous,
        "diagonal": diagonal,
        "separator": separator,
    }
    most = max(shares, key=lambda name: shares[name])
    kind: HeadKind = most if shares[most] >= HALF else "mixed"
    if greatest > 0 and entropy >= BROAD * greatest:
        kind = "broad"
    return HeadSummary(
        entropy=entropy, previous=previous, diagonal=diagonal, separator=separator, kind=kind
    )


def rollout(mean_LSS: Tensor, pooling: Literal["first", "mean"]) -> Tensor:
    """Return each token's share in the pooled vector, (S); the shares sum to one.

    `R = A'_L ... A'_2 A'_1` with `A'_l = (A_l + I) / 2` (Abnar and Zuidema, 2020, section 3): the
    residual connection passes on half of everything. `mean_LSS` is each layer's attention `A_l`,
    averaged over its heads; `pooling` is the head's.
    """
    size = mean_LSS.shape[-1]
    identity_SS = torch.eye(size, dtype=torch.float64)
    rolled_SS = identity_SS
    for layer_SS in mean_LSS.double():
        rolled_SS = (layer_SS + identity_SS) / 2 @ rolled_SS
    return rolled_SS[0] if pooling == "first" else rolled_SS.mean(0)


def gradient_input(model: EncoderOnly, ids: Sequence[int], label: int) -> Tensor:
    """Return `x_i . d logit_label / d x_i` for each token of one text, (S); either sign.

    To first order, it is what the logit would lose if `x_i`, the vector that the model looks up,
    went to zero (Shrikumar et al., 2016, section 3.2). Computed in evaluation mode; the weights get
    no gradients.
    """
    model = evaluation_view(model)
    ids_BL = torch.tensor([ids], device=model.embedding.weight.device)
    with torch.enable_grad(), row_invariant_products():
        x_BLD = model.embedding(ids_BL).detach().requires_grad_()
        logits_BC = model.encode(x_BLD)
        (slope_BLD,) = torch.autograd.grad(logits_BC[0, label], x_BLD)
    scores_BL: Tensor = (x_BLD * slope_BLD).sum(-1)
    return scores_BL[0].detach().double().cpu()
