"""From a text to its `Inspection`.

The model of a folder translates, continues or labels the text as its task does, and `Observed`
records the search. Then the model reads the text and the result again, with its attention recorded.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

import torch
from torch import Tensor

from dragoman.decoding import ONE_BEST, Decoding, merged
from dragoman.errors import InputError
from dragoman.folder.format import ReadingDefaults
from dragoman.folder.opening import ModelFolder
from dragoman.lens.choices import MAX_TOKENS, Choices
from dragoman.lens.inspection import (
    Alternative,
    Attribution,
    Inspection,
    LogitPart,
    Note,
    Prediction,
    Sentence,
    TokenChoice,
)
from dragoman.lens.logits import Writer, explain_logits
from dragoman.lens.search import MOST_PRUNED, Best, Observed, beam_tree, logit_step, searched_steps
from dragoman.lens.switching import switch_off
from dragoman.lens.trace import (
    Traced,
    attentions,
    trace_continuation,
    trace_text,
    trace_translation,
)
from dragoman.lens.weights import alignment_of, attention_map, cut_maps, gradient_input, rollout
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
from dragoman.tasks.tag.tagger import Tagger, features_at
from dragoman.tasks.task import model_of
from dragoman.tasks.translate.translator import Translator
from dragoman.text.tokenizer import MASK, Tokenizer
from dragoman.wording import counted

NO_GAP = Note(
    en=f'The text has no gap for the model to fill: write {MASK} for a word, as in "The {MASK} '
    'drinks tea."',
    zh=f"文本中没有可供模型填补的空位：用 {MASK} 代替一个词，例如“The {MASK} drinks tea.”。",
)
"""The note on a text without a gap, which a masked language model cannot fill."""

OPTIONS = {
    "encoder-decoder": {"beam_size", "src_lang", "tgt_lang", "switch_off"},
    "decoder-only": {"max_tokens", "temperature", "seed"},
    "encoder-only": set[str](),
}
"""The options of each kind of model, in addition to layers and heads."""


def inspect_folder(folder: ModelFolder, text: str, choices: Choices) -> Inspection:
    """Inspect what a model does with a text.

    Raises InputError for a text that is longer than the model reads at once, an option for another
    kind of model, and a layer or head that the model does not have.
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
    """Raise InputError for an option of another kind or a layer or head that does not exist."""
    kind = folder.config.model.kind
    for name in sorted({*choices.given()} - OPTIONS[kind] - {"layers", "heads"}):
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
    translator = Translator.of(folder).between(*choices.languages)
    src_tokenizer, tgt_tokenizer = folder.src_tokenizer, folder.tgt_tokenizer
    given = Decoding.of({"length_norm": "gnmt", "beam_size": choices.beam_size})  # the paper's
    options = merged(given, ONE_BEST, translator.options)
    inner = src_tokenizer.encode(text)
    _check_length(folder, len(inner), options.max_src_tokens)
    notes = Observed(strategy_of(options))
    best = translator.watch(inner, options, notes)[0]
    tags = translator.specials.src_frame.before if folder.config.directions else ()
    src_ids, ids = [*tags, *inner, src_tokenizer.eos_id], notes.written(best)
    read_ids = [tgt_tokenizer.bos_id, *ids[:-1]]
    model, aligns = model_of(folder, EncoderDecoder), folder.config.alignment
    traced = trace_translation(model, src_ids, read_ids, choices, aligns)
    src, tgt = src_tokenizer.tokens(src_ids), tgt_tokenizer.tokens(ids)
    attention = (
        attention_map("encoder", traced["encoder"], (src, src)),
        attention_map(
            "decoder", traced["decoder"], (tgt, tgt_tokenizer.tokens(read_ids)), ("tgt", "tgt")
        ),
        attention_map("cross", traced["cross"], (tgt, src), ("tgt", "src")),
    )
    chosen = searched_steps(notes, best, tgt_tokenizer, first=0)
    steps, logits = _explained(model, (src_ids, read_ids), ids, chosen, tgt_tokenizer)
    silent = switch_off(folder, choices.languages, inner, best, options, attention)
    return Inspection(
        kind="encoder-decoder",
        model=str(folder.path),
        src_lang=choices.src_lang or folder.config.src_lang,
        tgt_lang=choices.tgt_lang or folder.config.tgt_lang,
        src=Sentence(text=text, tokens=tuple(src)),
        tgt=Sentence(text=one_line(tgt_tokenizer.decode(best.ids)), tokens=tuple(tgt)),
        attention=attention,
        alignment=alignment_of(traced["cross"], ended=best.stopped == "eos"),
        steps=steps,
        logits=logits,
        beam=beam_tree(notes, best, lambda id_: tgt_tokenizer.tokens([id_])[0]),
        switched_off=tuple(silent) if choices.switch_off else (),
        notes=(*cut_maps(attention), *_cut_search(notes, best, tree=True)),
    )


def _continuation(folder: ModelFolder, text: str, choices: Choices) -> Inspection:
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
    attention = (attention_map("decoder", traced["decoder"], (tokens[:-1], tokens[:-1])),)
    all_ids = [*prompt_ids, *ids]
    chosen = (*prompt, *searched_steps(notes, best, tokenizer, first=len(prompt_ids)))
    steps, logits = _explained(model, (all_ids[:-1],), all_ids[1:], chosen, tokenizer)
    return Inspection(
        kind="decoder-only",
        model=str(folder.path),
        src_lang=folder.config.src_lang,
        src=Sentence(text=text + best.text, tokens=tuple(tokens)),
        attention=attention,
        steps=steps,
        logits=logits,
        notes=(*cut_maps(attention), *_cut_search(notes, best, tree=False)),
    )


def _explained(
    model: Writer,
    inputs: Sequence[Sequence[int]],
    ids: Sequence[int],
    steps: Iterable[TokenChoice],
    tokenizer: Tokenizer,
) -> tuple[tuple[TokenChoice, ...], tuple[LogitPart, ...]]:
    """Return the steps that generated `ids`, with the logit lens, and the parts of their logits."""
    lens, parts = explain_logits(model, inputs, ids)
    columns = []
    for probs_T, best_T in lens:
        pairs = zip(tokenizer.tokens(best_T.tolist()), probs_T.tolist(), strict=True)
        columns.append([Alternative(token=token, prob=prob) for token, prob in pairs])
    seen = zip(steps, zip(*columns, strict=True), strict=True)
    return tuple(replace(step, lens=guesses) for step, guesses in seen), parts


def _reading(folder: ModelFolder, text: str, choices: Choices, head: Head) -> Inspection:
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
    attention = (attention_map("encoder", traced["encoder"], (tokens, tokens)),)
    notes = tuple(cut_maps(attention))
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
    """Return the ids that a tagger reads, each word's tag at its first id, and word features."""
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
    """Return the ids of a text in which "<mask>" marks a gap; a gap is a piece with its space."""
    first, *rest = text.split(MASK)
    ids = tokenizer.encode(first.rstrip())
    for part in rest:
        ids += [tokenizer.special_id(MASK), *tokenizer.encode_rest([part.rstrip()])[0]]
    return ids


def _labels(logits_C: Tensor, labels: Sequence[str]) -> Prediction:
    probs_C = logits_C.softmax(0)
    order = probs_C.argsort(descending=True, stable=True).tolist()
    found = (Alternative(token=labels[index], prob=float(probs_C[index])) for index in order)
    return Prediction(labels=tuple(found))


def _attributions(
    model: EncoderOnly, ids: Sequence[int], traced: Traced, head: ClassificationHead, label: int
) -> tuple[Attribution, ...]:
    mean_LSS = torch.stack([traced.means[layer] for layer in range(traced.num_layers)])
    rolled_S = rollout(mean_LSS, head.pooling)
    slopes_S = gradient_input(model, ids, label)
    return (
        Attribution(method="rollout", scores=tuple(rolled_S.tolist())),
        Attribution(method="gradient-input", scores=tuple(slopes_S.tolist())),
    )


# ---------------------------------------------------------------- what was cut


def _cut_search(notes: Observed, best: Best, *, tree: bool) -> Iterator[Note]:
    """Yield notes on what the length limit cut off, and on what the tree leaves out."""
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
