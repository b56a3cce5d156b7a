"""The proof of a conversion: both sides answer the same sentences, and agree.

A translator translates them greedily, a decoder alone goes on from them greedily, an encoder reads
them. Compared are the logits of every step, given the tokens that both sides have written so far,
and the texts. Our side is the readable model without a cache, and the search of `translate` and of
`generate`.
"""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from random import Random

import torch
from torch import Tensor

from dragoman.decode import Greedy
from dragoman.errors import DragomanError, InputError
from dragoman.models import DecoderOnly, EncoderDecoder, EncoderOnly, EncoderOnlyConfig
from dragoman.models.defaults import GenerationDefaults, ReadingDefaults
from dragoman.models.heads import ClassificationHead, TaggingHead
from dragoman.tasks.folders import Folder
from dragoman.tasks.generate.generator import Generator
from dragoman.tasks.lines import one_line
from dragoman.tasks.options import GenerationOptions
from dragoman.tasks.translate.translator import Translator

TOLERANCE = 1e-4
"""Greatest difference of logits in fp32, relative to the largest where that exceeds 1."""
LENGTHS = (1, 2, 3, 5, 8, 13, 21, 34)
"""Tokens of the sentences that are made where none are given."""
LOOKALIKES = "</s> <pad> <0x41> 😀"
"""A text of characters that look like special tokens, and one that no vocabulary may have."""
BEYOND = 8
"""Tokens that the other side may write after the end that ours has found."""
CONTINUED = 16
"""Tokens by which a decoder alone goes on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """A greedy translation; the prompt and how it goes on; or the labels of a text."""

    text: str
    ids: tuple[int, ...]
    """The tokens that were written, without bos and eos; of an encoder those that it read."""
    logits_TV: Tensor
    """What each step chose from (the last one may have chosen eos); of an encoder, each label."""


Answers = Callable[[str, int], Answer]
"""Answers a text, by at most so many tokens with the end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Proof:
    """How far the sides differ where they agree."""

    sentences: int
    worst: float
    """Greatest difference of logits, relative to the largest where that exceeds 1."""


def built_in_probe(folder: Folder) -> list[str]:
    """Make some sentences of random pieces of the source vocabulary, always the same ones."""
    tokenizer, draw = folder.src_tokenizer, Random(0)
    pieces = range(tokenizer.first_piece, tokenizer.vocab_size)
    drawn = [tokenizer.decode(draw.choices(pieces, k=length)) for length in LENGTHS]
    texts = [*map(one_line, drawn), LOOKALIKES]
    most = our_side(folder).most
    return [text for text in texts if 0 < len(tokenizer.encode(text)) <= most]


def compare(folder: Folder, theirs: Answers, sentences: Sequence[str], target: str) -> Proof:
    """Answer all sentences on both sides.

    Raises DragomanError that names the worst difference, InputError where there is no sentence or
    one is too long to be answered as a whole.
    """
    side = our_side(folder)
    worst, where, changed = 0.0, 0, ""
    texts = [text.strip() for text in sentences if text.strip()]
    if not texts:
        raise InputError("the probe has no sentence; give a file with some lines of source text")
    for number, text in enumerate(texts, start=1):
        if (length := len(folder.src_tokenizer.encode(text))) > side.most:
            raise InputError(
                f"sentence {number} of the probe has {length} tokens, more than the {side.most} "
                "that the model takes at once; give shorter ones"
            )
        ours, limit = side.answer(text)
        found = theirs(text, limit)
        steps = _common(ours.ids, found.ids) + 1
        columns = ours.logits_TV.shape[-1]
        allowed = [id_ for id_ in range(columns) if id_ not in side.never]
        ours_MV, theirs_MV = (a.logits_TV[:steps, allowed] for a in (ours, found))
        scale = ours_MV.abs().max().clamp(min=1.0)
        difference = float((ours_MV - theirs_MV).abs().max() / scale)
        if not difference <= worst:  # NaN is the worst
            worst, where = difference, number
        if not changed and (ours.ids, ours.text) != (found.ids, found.text):
            changed = f', and sentence {number} becomes "{found.text}", not "{ours.text}"'
    if changed or not worst <= TOLERANCE:
        raise DragomanError(
            f"the model converted to {target} is another one, so it was not written: its logits "
            f"differ by up to {worst:.1e} (sentence {where} of the probe){changed}"
        )
    return Proof(sentences=len(texts), worst=worst)


# ---------------------------------------------------------------- our side


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """How our model answers."""

    answer: Callable[[str], tuple[Answer, int]]
    """Answers a text, and says how many tokens the other side may write."""
    most: int
    """Tokens of a text, at most."""
    never: Collection[int] = ()
    """Ids that are never written, whose logits say nothing."""


def our_side(folder: Folder) -> Side:
    """Return how the model in a folder answers."""
    match folder.model:
        case EncoderDecoder():
            return _translating(folder)
        case DecoderOnly():
            return _continuing(folder)
        case EncoderOnly():
            return _reading(folder)


def _translating(folder: Folder) -> Side:
    translator = Translator.of(folder)
    src, tgt = folder.src_tokenizer, folder.tgt_tokenizer
    model = folder.model_of(EncoderDecoder)
    options = replace(translator.options, beam_size=1, n_best=1)

    def answer(text: str) -> tuple[Answer, int]:
        source = src.encode(text)
        (best,) = translator.watch(source, options, Greedy())
        steps = len(best.token_log_probs)
        written = torch.tensor([[tgt.bos_id, *best.ids][:steps]])
        with torch.inference_mode():
            logits_TV = model(torch.tensor([[*source, src.eos_id]]), written)[0]
        found = Answer(text=tgt.decode(best.ids), ids=best.ids, logits_TV=logits_TV)
        return found, steps if best.stopped == "length" else steps + BEYOND

    return Side(
        answer=answer, most=translator.options.max_src_tokens, never=set(translator.forbidden)
    )


def plain_generator(folder: Folder) -> Generator:
    """Return what goes on from a text as it stands, also where the model has learned dialogues."""
    defaults = replace(folder.config.generation or GenerationDefaults(), chat=None)
    return Generator(folder.model_of(DecoderOnly), folder.tgt_tokenizer, defaults=defaults)


def _continuing(folder: Folder) -> Side:
    generator, model = plain_generator(folder), folder.model_of(DecoderOnly)
    tokenizer = generator.tokenizer
    opening = (folder.config.generation or GenerationDefaults()).opening
    decode = tokenizer.decode if opening is None else tokenizer.decode_rest
    room = (generator.context or 256) - len(generator.encode("a"))
    steps = max(1, min(CONTINUED, room // 2))
    options = GenerationOptions(temperature=0.0, max_tokens=steps, context=generator.context)

    def answer(text: str) -> tuple[Answer, int]:
        prompt = generator.encode(text)
        best = generator.watch(text, options, Greedy())
        read = torch.tensor([[*prompt, *best.ids][: len(prompt) + len(best.token_log_probs) - 1]])
        with torch.inference_mode():
            logits_TV = model(read)[0, len(prompt) - 1 :]
        whole = decode([*prompt, *best.ids]).removeprefix(opening or "")
        return Answer(text=whole, ids=best.ids, logits_TV=logits_TV), steps

    return Side(answer=answer, most=max(1, room - steps), never=set(generator.never))


def labels_of(folder: Folder) -> Sequence[str]:
    """Return the labels that an encoder gives to texts or tokens; none where it gives none."""
    config = folder.config.model
    head = config.head if isinstance(config, EncoderOnlyConfig) else None
    return head.labels if isinstance(head, ClassificationHead | TaggingHead) else ()


def _reading(folder: Folder) -> Side:
    tokenizer, labels = folder.src_tokenizer, labels_of(folder)
    model = folder.model_of(EncoderOnly)
    reading = folder.config.reading or ReadingDefaults()
    places = model.embedding.num_positions or reading.max_tokens + 2

    def answer(text: str) -> tuple[Answer, int]:
        ids = (tokenizer.bos_id, *tokenizer.encode(text), tokenizer.eos_id)
        with torch.inference_mode():
            logits = model(torch.tensor([ids]))
        return read_answer(ids, logits, labels), 0

    return Side(answer=answer, most=min(reading.max_tokens, places - 2))


def read_answer(ids: Sequence[int], logits: Tensor, labels: Sequence[str]) -> Answer:
    """Make the answer of logits `(1, C)` or `(1, L, C)`: the best label of each row."""
    rows_TV = logits.reshape(-1, logits.shape[-1])
    text = " ".join(labels[index] for index in rows_TV.argmax(-1)) if labels else ""
    return Answer(text=text, ids=tuple(ids), logits_TV=rows_TV)


def _common(first: Sequence[int], second: Sequence[int]) -> int:
    """How many tokens both begin with."""
    same = (a == b for a, b in zip(first, second, strict=False))
    return next((n for n, equal in enumerate(same) if not equal), min(len(first), len(second)))
