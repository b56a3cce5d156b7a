"""From a text to its `Inspection`: one function for each variant of the Transformer.

The caller has run the task itself (a translation, a continuation, a label), with its search
recorded by `Observed`, and passes what came out. Here the model reads it once more, watched.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from dragoman.folder.opening import ModelFolder
from dragoman.lens.inspection import (
    AlignmentMap,
    Alternative,
    AttentionMap,
    Attribution,
    Inspection,
    Note,
    Prediction,
    Sentence,
    TokenChoice,
)
from dragoman.lens.search import MOST_PRUNED, Best, Observed, beam_tree
from dragoman.lens.trace import (
    MapName,
    Traced,
    Wanted,
    trace_continuation,
    trace_text,
    trace_translation,
)
from dragoman.lens.weights import gradient_input, rollout, summarise
from dragoman.models import DecoderOnly, EncoderDecoder, EncoderOnly
from dragoman.models.heads import ClassificationHead, Head, MaskedLanguageHead
from dragoman.nn.cpu.ranking import IMPOSSIBLE, top_tokens
from dragoman.tasks.task import model_of
from dragoman.text.tokenizer import MASK, SPECIALS, Tokenizer
from dragoman.wording import counted

ALTERNATIVES = 5
"""Number of alternatives reported at each step."""

_NAMES: dict[MapName, tuple[str, str]] = {
    "encoder": ("encoder", "编码器"),
    "decoder": ("decoder", "解码器"),
    "cross": ("cross-attention", "交叉注意力"),
}

NO_GAP = Note(
    en=f'The text has no gap for the model to fill: write {MASK} for a word, as in "The {MASK} '
    'drinks tea."',
    zh=f"文本中没有可供模型填补的空位：用 {MASK} 代替一个词，例如“The {MASK} drinks tea.”。",
)
"""The note on a text without a gap, which a masked language model cannot fill."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Searched:
    """The result of a recorded search."""

    notes: Observed
    """The record of its steps."""
    best: Best
    """The best hypothesis."""
    text: str
    """The best hypothesis as text."""

    @property
    def ids(self) -> tuple[int, ...]:
        """All ids that were written, with eos if the model wrote it."""
        end = (self.notes.eos_id,) if self.best.stopped == "eos" else ()
        return (*self.best.ids, *end)


def inspect_translation(
    folder: ModelFolder, wanted: Wanted, text: str, src_ids: Sequence[int], found: Searched
) -> Inspection:
    """Look at a translation of a text, whose ids come without eos; `found` by a beam."""
    src_tokenizer, tgt_tokenizer = folder.src_tokenizer, folder.tgt_tokenizer
    src_ids = [*src_ids, src_tokenizer.eos_id]
    read_ids = [tgt_tokenizer.bos_id, *found.ids[:-1]]
    traced = trace_translation(model_of(folder, EncoderDecoder), src_ids, read_ids, wanted)
    src, tgt = src_tokenizer.tokens(src_ids), tgt_tokenizer.tokens(found.ids)
    read = tgt_tokenizer.tokens(read_ids)
    attention = (
        _attention_map("encoder", traced["encoder"], (src, src)),
        _attention_map("decoder", traced["decoder"], (tgt, read), ("tgt", "tgt")),
        _attention_map("cross", traced["cross"], (tgt, src), ("tgt", "src")),
    )
    return Inspection(
        kind="encoder-decoder",
        model=str(folder.path),
        src_lang=folder.config.src_lang,
        tgt_lang=folder.config.tgt_lang,
        src=Sentence(text=text, tokens=tuple(src)),
        tgt=Sentence(text=found.text, tokens=tuple(tgt)),
        attention=attention,
        alignment=_alignment_of(traced["cross"], ended=found.best.stopped == "eos"),
        steps=tuple(_searched_steps(found, tgt_tokenizer, first=0)),
        beam=beam_tree(found.notes, found.best, lambda id_: tgt_tokenizer.tokens([id_])[0]),
        notes=(*_cut_maps(attention), *_cut_search(found, tree=True)),
    )


def inspect_continuation(
    folder: ModelFolder,
    wanted: Wanted,
    prompt_ids: Sequence[int],
    found: Searched,
    never: Sequence[int] = (),
) -> Inspection:
    """Look at a prompt and what the model wrote after it.

    `found.text` is both, and `never` are the ids that the model may not write.
    """
    model, tokenizer = model_of(folder, DecoderOnly), folder.tgt_tokenizer
    traced, logits_PV = trace_continuation(model, prompt_ids, found.ids[:-1], wanted)
    tokens = tokenizer.tokens([*prompt_ids, *found.ids])
    logits_PV = _without(logits_PV, never)
    given = [
        _logit_step(logits_PV[index - 1], index, tokenizer, given=id_)
        for index, id_ in enumerate(prompt_ids[1:], start=1)
    ]
    attention = (_attention_map("decoder", traced["decoder"], (tokens[:-1], tokens[:-1])),)
    return Inspection(
        kind="decoder-only",
        model=str(folder.path),
        src_lang=folder.config.src_lang,
        src=Sentence(text=found.text, tokens=tuple(tokens)),
        attention=attention,
        steps=(*given, *_searched_steps(found, tokenizer, first=len(prompt_ids))),
        notes=(*_cut_maps(attention), *_cut_search(found, tree=False)),
    )


def inspect_reading(
    folder: ModelFolder,
    wanted: Wanted,
    text: str,
    ids: Sequence[int],
    head: Head,
    tags: Sequence[str | None] = (),
) -> Inspection:
    """Look at a text that an encoder reads, whose ids come with both ends.

    `head` is the one of the config; `tags` are those of the tokens if it is a tagger's.
    """
    model, tokenizer = model_of(folder, EncoderOnly), folder.src_tokenizer
    labelled = isinstance(head, ClassificationHead)
    traced, logits = trace_text(model, ids, wanted, averaged=labelled)
    tokens = tokenizer.tokens(ids)
    attention = (_attention_map("encoder", traced["encoder"], (tokens, tokens)),)
    prediction = Prediction(tags=tuple(tags)) if tags else None
    attributions: tuple[Attribution, ...] = ()
    steps: tuple[TokenChoice, ...] = ()
    notes = tuple(_cut_maps(attention))
    if isinstance(head, ClassificationHead):
        prediction = _labels(logits, head.labels)
        attributions = _attributions(model, ids, traced["encoder"], head, int(logits.argmax()))
    elif isinstance(head, MaskedLanguageHead):
        gaps = [at for at, id_ in enumerate(ids) if id_ == tokenizer.specials.get(MASK)]
        steps = tuple(_logit_step(logits[at], at, tokenizer) for at in gaps)
        notes += () if steps else (NO_GAP,)
    return Inspection(
        kind="encoder-only",
        model=str(folder.path),
        src_lang=folder.config.src_lang,
        src=Sentence(text=text, tokens=tuple(tokens)),
        attention=attention,
        steps=steps,
        prediction=prediction,
        attributions=attributions,
        notes=notes,
    )


def _without(logits_PV: Tensor, never: Sequence[int]) -> Tensor:
    """The logits of a model that may not write these ids."""
    columns = torch.tensor(never, dtype=torch.long, device=logits_PV.device)
    return logits_PV.index_fill(1, columns, IMPOSSIBLE)


def _labels(logits_C: Tensor, labels: Sequence[str]) -> Prediction:
    """The labels with their probabilities, most probable first."""
    probs_C = logits_C.softmax(0)
    order = probs_C.argsort(descending=True, stable=True).tolist()
    found = (Alternative(token=labels[index], prob=float(probs_C[index])) for index in order)
    return Prediction(labels=tuple(found))


def _attributions(
    model: EncoderOnly,
    ids: Sequence[int],
    traced: Traced,
    head: ClassificationHead,
    label: int,
) -> tuple[Attribution, ...]:
    """Both methods, for the label that the model gives."""
    mean_LSS = torch.stack([traced.means[layer] for layer in range(traced.num_layers)])
    rolled_S = rollout(mean_LSS, head.pooling)
    slopes_S = gradient_input(model, ids, label)
    return (
        Attribution(method="rollout", scores=tuple(rolled_S.tolist())),
        Attribution(method="gradient-input", scores=tuple(slopes_S.tolist())),
    )


# ---------------------------------------------------------------- attention


def _attention_map(
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


def _alignment_of(cross: Traced, *, ended: bool) -> AlignmentMap:
    """The last layer's cross-attention, averaged over its heads, and where each token looks most.

    As in translating: the ends of the sentences have no links, nor has a token that looks most at
    the end. `ended` says whether the last row is such an end.
    """
    weights_TS = cross.means[cross.num_layers - 1]
    end = weights_TS.shape[1] - 1
    most = weights_TS[:-1].max(dim=1) if ended else weights_TS.max(dim=1)
    pairs = enumerate(zip(most.indices.tolist(), most.values.tolist(), strict=True))
    return AlignmentMap(
        links=tuple((t, s, weight) for t, (s, weight) in pairs if s != end),
        weights_TS=weights_TS.numpy(),
    )


# ---------------------------------------------------------------- steps


def _searched_steps(found: Searched, tokenizer: Tokenizer, first: int) -> Iterator[TokenChoice]:
    """Each token that was written, and its alternatives.

    `first` is the index of the first one in its list of tokens.
    """
    rows = found.notes.rows_of(found.ids)
    columns = zip(found.ids, found.best.token_log_probs, rows, found.notes.expansions, strict=False)
    for index, (id_, log_prob, row, expansion) in enumerate(columns, start=first):
        parent = expansion.parents[row]
        yield TokenChoice(
            index=index,
            token=tokenizer.tokens([id_])[0],
            log_prob=log_prob,
            entropy=expansion.entropies[parent],
            alternatives=_alternatives(
                expansion.top_log_probs_Nk[parent], expansion.top_tokens_Nk[parent], tokenizer
            ),
        )


def _logit_step(
    logits_V: Tensor, index: int, tokenizer: Tokenizer, given: int | None = None
) -> TokenChoice:
    """The step at a position with these logits: of the given token, or else the best one."""
    log_probs_V = logits_V.float().log_softmax(0)
    values_Nk, tokens_Nk = top_tokens(log_probs_V[None], min(ALTERNATIVES, len(log_probs_V)))
    id_ = int(tokens_Nk[0, 0]) if given is None else given
    probs_V = log_probs_V.exp()
    return TokenChoice(
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
    possible_k = log_probs_k > IMPOSSIBLE
    tokens = tokenizer.tokens(tokens_k[possible_k].tolist())
    probs = log_probs_k.exp()[possible_k].tolist()
    found = zip(tokens[:ALTERNATIVES], probs[:ALTERNATIVES], strict=True)
    return tuple(Alternative(token=token, prob=prob) for token, prob in found)


# ---------------------------------------------------------------- what was cut


def _cut_maps(maps: Sequence[AttentionMap]) -> Iterator[Note]:
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
    """The kept numbers, out of how many, in English and Chinese."""
    if len(numbers) == total:
        return f"all {total} {en}s", f"全部 {total} {zh}"
    kept = list(map(str, numbers))
    plural = "s" if len(kept) > 1 else ""
    return (
        f"{en}{plural} {', '.join(kept)} of {total}",
        f"{zh[-1]} {'、'.join(kept)}，共 {total} {zh}",
    )


def _cut_search(found: Searched, *, tree: bool) -> Iterator[Note]:
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
