"""From a text to its `Inspection`.

The model of a folder translates, continues or labels the text as its task does, with the search
recorded by `Observed`. Then it reads the text and the result once more, watched.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from dragoman.decoding import ONE_BEST, Decoding, merged
from dragoman.errors import InputError
from dragoman.folder.format import ReadingDefaults
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
from dragoman.lens.search import MOST_PRUNED, Best, Observed, beam_tree, logit_step, searched_steps
from dragoman.lens.trace import (
    MapName,
    Traced,
    Wanted,
    attentions,
    trace_continuation,
    trace_text,
    trace_translation,
)
from dragoman.lens.weights import gradient_input, rollout, summarise
from dragoman.models import (
    DecoderOnly,
    DecoderOnlyConfig,
    EncoderDecoder,
    EncoderDecoderConfig,
    EncoderOnly,
    EncoderOnlyConfig,
)
from dragoman.models.heads import ClassificationHead, Head, MaskedLanguageHead, TaggingHead
from dragoman.nn.cpu.ranking import IMPOSSIBLE
from dragoman.tasks.generate.generator import Generator
from dragoman.tasks.lines import one_line
from dragoman.tasks.options import strategy_of
from dragoman.tasks.tag.batches import features_at
from dragoman.tasks.tag.tagger import Tagger
from dragoman.tasks.task import model_of
from dragoman.tasks.translate.translator import Translator
from dragoman.text.tokenizer import MASK, SPECIALS, Tokenizer
from dragoman.wording import counted

MAX_TOKENS = 16
"""Default maximum of generated tokens: each is a row to look at."""

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
class Choices(Wanted):
    """How to decode, and which attention to keep; None if not given."""

    src_lang: str | None = None
    tgt_lang: str | None = None
    beam_size: int | None = None
    max_tokens: int | None = None
    temperature: float | None = None
    seed: int | None = None


OPTIONS = {
    "encoder-decoder": {"beam_size", "src_lang", "tgt_lang"},
    "decoder-only": {"max_tokens", "temperature", "seed"},
    "encoder-only": set[str](),
}
"""Which options a kind of model has, beside layers and heads."""


def inspect_folder(folder: ModelFolder, text: str, choices: Choices) -> Inspection:
    """Look at what a model does with a text.

    Raises InputError for a text that is longer than what the model reads at once, an option that is
    not for its kind, and a layer or head that it does not have.
    """
    _check(folder, choices)
    match folder.config.model:
        case EncoderDecoderConfig():
            return _translation(folder, text.strip(), choices)
        case DecoderOnlyConfig():
            return _continuation(folder, text, choices)
        case EncoderOnlyConfig() as config:
            return _reading(folder, text.strip(), choices, config.head)


def _check(folder: ModelFolder, choices: Choices) -> None:
    """Raise InputError for an option of another kind, and a layer or head that does not exist."""
    kind = folder.config.model.kind
    for name in sorted(set[str]().union(*OPTIONS.values()) - OPTIONS[kind]):
        if getattr(choices, name) is not None:
            option = "--" + name.replace("_", "-")
            raise InputError(f"{folder.path} is {kind}, which has no {option}; leave it out.")
    found = attentions(folder.model).values()
    heads = max(modules[0].num_heads for modules in found)
    asked = (("layer", choices.layers, max(map(len, found))), ("head", choices.heads, heads))
    for what, numbers, count in asked:
        for number in numbers or ():
            if not 0 <= number < count:
                there = f"{what}s are 0 to {count - 1}" if count > 1 else f"only {what} is 0"
                raise InputError(f"{folder.path} has no {what} {number}; its {there}.")


def _check_length(folder: ModelFolder, length: int, most: int) -> None:
    if length > most:
        raise InputError(
            f"The text has {length} tokens and {folder.path} reads at most {most} at once; "
            "give a part of it, such as one sentence."
        )


def _translation(folder: ModelFolder, text: str, choices: Choices) -> Inspection:
    """Look at the translation of a text by beam search."""
    translator = Translator.of(folder).between(choices.src_lang, choices.tgt_lang)
    src_tokenizer, tgt_tokenizer = folder.src_tokenizer, folder.tgt_tokenizer
    given = Decoding.of({"length_norm": "gnmt", "beam_size": choices.beam_size})  # the paper's
    options = merged(given, ONE_BEST, translator.options)
    src_ids = src_tokenizer.encode(text)
    _check_length(folder, len(src_ids), options.max_src_tokens)
    notes = Observed(strategy_of(options))
    best = translator.watch(src_ids, options, notes)[0]
    tags = translator.specials.src_frame.before if folder.config.directions else ()
    src_ids, ids = [*tags, *src_ids, src_tokenizer.eos_id], notes.written(best)
    read_ids = [tgt_tokenizer.bos_id, *ids[:-1]]
    model, aligns = model_of(folder, EncoderDecoder), folder.config.alignment
    traced = trace_translation(model, src_ids, read_ids, choices, aligns)
    src, tgt = src_tokenizer.tokens(src_ids), tgt_tokenizer.tokens(ids)
    attention = (
        _attention_map("encoder", traced["encoder"], (src, src)),
        _attention_map(
            "decoder", traced["decoder"], (tgt, tgt_tokenizer.tokens(read_ids)), ("tgt", "tgt")
        ),
        _attention_map("cross", traced["cross"], (tgt, src), ("tgt", "src")),
    )
    return Inspection(
        kind="encoder-decoder",
        model=str(folder.path),
        src_lang=choices.src_lang or folder.config.src_lang,
        tgt_lang=choices.tgt_lang or folder.config.tgt_lang,
        src=Sentence(text=text, tokens=tuple(src)),
        tgt=Sentence(text=one_line(tgt_tokenizer.decode(best.ids)), tokens=tuple(tgt)),
        attention=attention,
        alignment=_alignment_of(traced["cross"], ended=best.stopped == "eos"),
        steps=tuple(searched_steps(notes, best, tgt_tokenizer, first=0)),
        beam=beam_tree(notes, best, lambda id_: tgt_tokenizer.tokens([id_])[0]),
        notes=(*_cut_maps(attention), *_cut_search(notes, best, tree=True)),
    )


def _continuation(folder: ModelFolder, text: str, choices: Choices) -> Inspection:
    """Look at a prompt and what the model writes after it."""
    generator, tokenizer = Generator.of(folder), folder.tgt_tokenizer
    prompt_ids = generator.encode(text)
    room = MAX_TOKENS if choices.max_tokens is None else choices.max_tokens
    if (context := generator.context) is not None:
        _check_length(folder, len(prompt_ids), context - 1)
        room = min(room, context - len(prompt_ids))
    given = {"max_tokens": room, "temperature": choices.temperature, "seed": choices.seed}
    options = merged(Decoding.of(given), generator.options)
    notes = Observed(strategy_of(options, (0,)))
    best = generator.watch(text, options, notes)
    ids = notes.written(best)
    model = model_of(folder, DecoderOnly)
    traced, logits_PV = trace_continuation(model, prompt_ids, ids[:-1], choices)
    tokens = tokenizer.tokens([*prompt_ids, *ids])
    never = torch.tensor(generator.never, dtype=torch.long, device=logits_PV.device)
    logits_PV = logits_PV.index_fill(1, never, IMPOSSIBLE)
    prompt = [
        logit_step(logits_PV[index - 1], index, tokenizer, given=id_)
        for index, id_ in enumerate(prompt_ids[1:], start=1)
    ]
    attention = (_attention_map("decoder", traced["decoder"], (tokens[:-1], tokens[:-1])),)
    return Inspection(
        kind="decoder-only",
        model=str(folder.path),
        src_lang=folder.config.src_lang,
        src=Sentence(text=text + best.text, tokens=tuple(tokens)),
        attention=attention,
        steps=(*prompt, *searched_steps(notes, best, tokenizer, first=len(prompt_ids))),
        notes=(*_cut_maps(attention), *_cut_search(notes, best, tree=False)),
    )


def _reading(folder: ModelFolder, text: str, choices: Choices, head: Head) -> Inspection:
    """Look at a text that an encoder reads, and what its head says of it."""
    model, tokenizer = model_of(folder, EncoderOnly), folder.src_tokenizer
    prediction: Prediction | None = None
    attributions: tuple[Attribution, ...] = ()
    steps: tuple[TokenChoice, ...] = ()
    words_BLF: Tensor | None = None
    match head:
        case TaggingHead():
            inner, tags, words_BLF = _tagged(folder, text)
            prediction = Prediction(tags=(None, *tags, None))
        case MaskedLanguageHead():
            inner = _with_gaps(tokenizer, text)
        case _:
            inner = tokenizer.encode(text)
    _check_length(folder, len(inner), (folder.config.reading or ReadingDefaults()).max_tokens)
    ids = [tokenizer.bos_id, *inner, tokenizer.eos_id]
    labelled = isinstance(head, ClassificationHead)
    traced, logits = trace_text(model, ids, choices, averaged=labelled, words_BLF=words_BLF)
    tokens = tokenizer.tokens(ids)
    attention = (_attention_map("encoder", traced["encoder"], (tokens, tokens)),)
    notes = tuple(_cut_maps(attention))
    if isinstance(head, ClassificationHead):
        prediction = _labels(logits, head.labels)
        attributions = _attributions(model, ids, traced["encoder"], head, int(logits.argmax()))
    elif isinstance(head, MaskedLanguageHead):
        gaps = [at for at, id_ in enumerate(ids) if id_ == tokenizer.specials.get(MASK)]
        steps = tuple(logit_step(logits[at], at, tokenizer) for at in gaps)
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


def _tagged(folder: ModelFolder, text: str) -> tuple[list[int], list[str | None], Tensor | None]:
    """The ids that a tagger reads, at the first one of each word its tag, and all words' looks."""
    tagger = Tagger.of(folder)
    words = tagger.tag(text).words
    places = [(word.start, word.end) for word in words]
    ((ids, starts),) = folder.src_tokenizer.encode_words([text], [places])
    tags: list[str | None] = [None] * len(ids)
    features = dict[int, tuple[int, ...]]()
    for word, start, looks in zip(words, starts, tagger.features_of(words), strict=True):
        if start is not None:
            tags[start] = tags[start] or word.tag
            features.setdefault(start, looks)
    first_BL = torch.tensor([[False, *(n in features for n in range(len(ids))), False]])
    return ids, tags, features_at(first_BL, [features[start] for start in sorted(features)])


def _with_gaps(tokenizer: Tokenizer, text: str) -> list[int]:
    """The ids of a text in which "<mask>" marks a gap; a gap is a piece with its space."""
    first, *rest = text.split(MASK)
    ids = tokenizer.encode(first.rstrip())
    for part in rest:
        ids += [tokenizer.special_id(MASK), *tokenizer.encode_rest([part.rstrip()])[0]]
    return ids


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


def _cut_search(notes: Observed, best: Best, *, tree: bool) -> Iterator[Note]:
    """Notes on what the length limit cut, and on what the tree leaves out."""
    if best.stopped == "length":
        limit = notes.max_length
        tokens = counted(limit, "token")
        yield Note(
            en=f"The text was cut at the limit of {tokens}: the model had not ended it.",
            zh=f"文本在 {limit} 个词元的上限处被截断：模型尚未结束它。",
        )
    if tree and notes.beam_size * (notes.beam_size - 1) > MOST_PRUNED:
        yield Note(
            en=f"Of the pruned continuations of each step the best {MOST_PRUNED} are kept.",
            zh=f"每一步只保留得分最高的 {MOST_PRUNED} 个被剪枝的续写。",
        )
