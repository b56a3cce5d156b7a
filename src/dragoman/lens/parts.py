"""The parts of an `Inspection` that all variants of the Transformer share."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from torch import Tensor

from dragoman.decode import Hypothesis
from dragoman.lens.inspection import Alignment, Alternative, AttentionMap, Note, Step
from dragoman.lens.search import MOST_PRUNED, Observed
from dragoman.lens.trace import ALL, MapName, Traced, Wanted
from dragoman.lens.weights import summarise
from dragoman.nn.cpu.ranking import IMPOSSIBLE, top_tokens
from dragoman.text.tokenizer import SPECIALS, Tokenizer
from dragoman.wording import counted

__all__ = [
    "Searched",
    "Subject",
    "alignment_of",
    "attention_map",
    "cut_maps",
    "cut_search",
    "logit_step",
    "searched_steps",
]

ALTERNATIVES = 5
"""Number of alternatives reported at each step."""

_NAMES: dict[MapName, tuple[str, str]] = {
    "encoder": ("encoder", "编码器"),
    "decoder": ("decoder", "解码器"),
    "cross": ("cross-attention", "交叉注意力"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """The model to inspect, and how much of it."""

    model: str
    """Path of the model folder."""
    src_tokenizer: Tokenizer
    """The tokenizer of the source."""
    tgt_tokenizer: Tokenizer
    """The tokenizer of the target."""
    src_lang: str | None = None
    """Code of the source language, if known."""
    tgt_lang: str | None = None
    """Code of the target language, if known."""
    wanted: Wanted = ALL
    """The layers and heads whose attention is kept."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Searched:
    """The result of a recorded search."""

    notes: Observed
    """The record of its steps."""
    best: Hypothesis
    """The best hypothesis."""
    text: str
    """The best hypothesis as text."""

    @property
    def ids(self) -> tuple[int, ...]:
        """All ids that were written, with eos if the model wrote it."""
        end = (self.notes.eos_id,) if self.best.stopped == "eos" else ()
        return (*self.best.ids, *end)


# ---------------------------------------------------------------- attention


def attention_map(
    name: MapName,
    traced: Traced,
    tokens: tuple[Sequence[str], Sequence[str]],
    lists: tuple[Literal["src", "tgt"], Literal["src", "tgt"]] = ("src", "src"),
) -> AttentionMap:
    """A map with its summaries; `tokens` stand at rows and columns, which count in `lists`."""
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
        layers=traced.kept.layers,
        heads=traced.kept.heads,
        weights_LHTS=traced.weights_LHTS.numpy(),
        summaries=summarise(traced.weights_LHTS, separators, crossing=name == "cross"),
    )


def alignment_of(cross: Traced, *, ended: bool) -> Alignment:
    """The last layer's cross-attention, averaged over its heads, and where each token looks most.

    As in translating: the ends of the sentences have no links, nor has a token that looks most at
    the end. `ended` says whether the last row is such an end.
    """
    weights_TS = cross.means[cross.num_layers - 1]
    end = weights_TS.shape[1] - 1
    most = weights_TS[:-1].max(dim=1) if ended else weights_TS.max(dim=1)
    pairs = enumerate(zip(most.indices.tolist(), most.values.tolist(), strict=True))
    return Alignment(
        links=tuple((t, s, weight) for t, (s, weight) in pairs if s != end),
        weights_TS=weights_TS.numpy(),
    )


# ---------------------------------------------------------------- steps


def searched_steps(found: Searched, tokenizer: Tokenizer, first: int) -> Iterator[Step]:
    """Each token that was written, and its alternatives.

    `first` is the index of the first one in its list of tokens.
    """
    rows = found.notes.rows_of(found.ids)
    columns = zip(found.ids, found.best.token_log_probs, rows, found.notes.expansions, strict=False)
    for index, (id_, log_prob, row, expansion) in enumerate(columns, start=first):
        parent = expansion.parents[row]
        yield Step(
            index=index,
            token=tokenizer.tokens([id_])[0],
            log_prob=log_prob,
            entropy=expansion.entropies[parent],
            alternatives=_alternatives(
                expansion.top_log_probs_Nk[parent], expansion.top_tokens_Nk[parent], tokenizer
            ),
        )


def logit_step(
    logits_V: Tensor, index: int, tokenizer: Tokenizer, given: int | None = None
) -> Step:
    """The step at a position with these logits: of the given token, or else the best one."""
    log_probs_V = logits_V.float().log_softmax(0)
    values_Nk, tokens_Nk = top_tokens(log_probs_V[None], min(ALTERNATIVES, len(log_probs_V)))
    id_ = int(tokens_Nk[0, 0]) if given is None else given
    probs_V = log_probs_V.exp()
    return Step(
        index=index,
        token=tokenizer.tokens([id_])[0],
        log_prob=float(log_probs_V[id_]),
        entropy=float(-(probs_V * log_probs_V.clamp(min=-1e4)).sum()),
        alternatives=_alternatives(values_Nk[0], tokens_Nk[0], tokenizer),
        given=given is not None,
    )


def _alternatives(
    log_probs_k: Tensor, tokens_k: Tensor, tokenizer: Tokenizer
) -> tuple[Alternative, ...]:
    """The best tokens with their probabilities, without impossible ones."""
    pairs = zip(tokenizer.tokens(tokens_k.tolist()), log_probs_k.tolist(), strict=True)
    probs = log_probs_k.exp().tolist()
    return tuple(
        Alternative(token=token, prob=prob)
        for (token, log_prob), prob in zip(pairs, probs, strict=True)
        if log_prob > IMPOSSIBLE
    )[:ALTERNATIVES]


# ---------------------------------------------------------------- what was cut


def cut_maps(traced: Mapping[MapName, Traced]) -> Iterator[Note]:
    """A note on which attention was kept, if not all of it."""
    kept_en, kept_zh = [], []
    for name, each in traced.items():
        layers, heads = each.kept
        if len(layers) == each.num_layers and len(heads) == each.num_heads:
            continue
        of_layers, of_heads = (layers, each.num_layers), (heads, each.num_heads)
        en, zh = _NAMES[name]
        kept_en.append(f"{en}: {_some(*of_layers, 'layer')}, {_some(*of_heads, 'head')}")
        kept_zh.append(f"{zh}：{_some_zh(*of_layers, '层')}，{_some_zh(*of_heads, '个头')}")
    if kept_en:
        yield Note(
            en=f"A part of the attention is kept, counted from 0 ({'; '.join(kept_en)}).",
            zh=f"只保留了一部分注意力，从 0 数起（{'；'.join(kept_zh)}）。",
        )


def _some(numbers: Sequence[int], total: int, word: str) -> str:
    """The kept numbers, out of how many."""
    if len(numbers) == total:
        return f"all {total} {word}s"
    return f"{word}{'s' if len(numbers) > 1 else ''} {', '.join(map(str, numbers))} of {total}"


def _some_zh(numbers: Sequence[int], total: int, word: str) -> str:
    """The same in Chinese."""
    if len(numbers) == total:
        return f"全部 {total} {word}"
    return f"{word[-1]} {'、'.join(map(str, numbers))}，共 {total} {word}"


def cut_search(found: Searched, *, tree: bool) -> Iterator[Note]:
    """Notes on what the length limit cut, and on what the tree leaves out."""
    if found.best.stopped == "length":
        limit = found.notes.max_length
        tokens = counted(limit, "token")
        yield Note(
            en=f"The text was cut at the limit of {tokens}: the model had not ended it.",
            zh=f"文本在 {limit} 个词元的上限处被截断：模型尚未结束它。",
        )
    if tree and found.notes.beam_size * (found.notes.beam_size - 1) > MOST_PRUNED:
        yield Note(
            en=f"Of the pruned continuations of each step the best {MOST_PRUNED} are kept.",
            zh=f"每一步只保留得分最高的 {MOST_PRUNED} 个被剪枝的续写。",
        )
