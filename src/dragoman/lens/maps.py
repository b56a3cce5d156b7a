"""Maps of attention and the word alignment: traced weights as parts of an `Inspection`."""

from collections.abc import Iterator, Sequence
from typing import Literal

from dragoman.lens.inspection import AlignmentMap, AttentionMap, MapName, Note
from dragoman.lens.trace import Traced
from dragoman.lens.weights import summarise
from dragoman.text.tokenizer import SPECIALS

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
    """A map with its summaries; `tokens` are those of rows and columns, which count in `lists`."""
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
    """The cross-attention that aligns words, and where each token looks most.

    As in translating: the ends of the sentences have no links, nor has a token that looks most at
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
    """A note on which attention was kept, if not all of it."""
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
