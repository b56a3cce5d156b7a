"""Verification of a conversion: both sides must give the same answers to the same sentences.

A translator translates them greedily, a decoder-only model continues them greedily, an encoder
reads them. The texts are compared, and the logits of each step, given the same previous tokens on
both sides. Our side is the readable model without a cache, with the search of `translate` and
`generate`.
"""

from collections.abc import Callable, Collection, Sequence
from copy import copy
from dataclasses import dataclass, replace
from random import Random

import torch
from torch import Tensor

from dragoman.decode import Greedy
from dragoman.decoding import GENERATING, ONE_BEST, Decoding, merged
from dragoman.errors import DragomanError, InputError
from dragoman.folder.format import GENERATION, ReadingDefaults
from dragoman.folder.opening import ModelFolder
from dragoman.models import DecoderOnly, EncoderDecoder, EncoderOnly, EncoderOnlyConfig
from dragoman.models.heads import ClassificationHead, TaggingHead
from dragoman.tasks.generate.generator import Generator
from dragoman.tasks.lines import one_line
from dragoman.tasks.task import model_of
from dragoman.tasks.translate.translator import Translator
from dragoman.text.spans import in_common

TOLERANCE = 1e-4
"""Maximum difference of logits in fp32, relative to the largest if that exceeds 1."""
LENGTHS = (1, 2, 3, 5, 8, 13, 21, 34)
"""Lengths of the built-in sentences in tokens."""
LOOKALIKES = ("</s> <0x41> 😀", "<pad>")
"""Texts that look like special tokens, or that a vocabulary may not cover. The last is only for our
own tokenizers, which do not treat it as padding."""
BEYOND = 8
"""Number of tokens that the other side may write after our end."""
CONTINUED = 16
"""Number of tokens that a decoder-only model adds."""
LONGEST = 100
"""Maximum number of tokens in a translation."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """A greedy translation; the prompt and its continuation; or the labels of a text."""

    text: str
    ids: tuple[int, ...]
    """The generated tokens without bos and eos; for an encoder, the tokens that it read."""
    logits_TV: Tensor
    """The logits of each step (the last may have chosen eos); for an encoder, of the labels."""


Answers = Callable[[str, int], Answer]
"""Answers a text, with at most the given number of tokens, including the end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Proof:
    """The result of a successful comparison."""

    sentences: int
    worst: float
    """The greatest difference of logits, relative to the largest if that exceeds 1."""


def built_in_probe(folder: ModelFolder) -> list[str]:
    """Return sentences of random pieces from the source vocabulary, the same in each call."""
    tokenizer, draw = folder.src_tokenizer, Random(0)
    pieces = range(tokenizer.first_piece, tokenizer.vocab_size)
    drawn = [tokenizer.decode(draw.choices(pieces, k=length)) for length in LENGTHS]
    texts = [*map(one_line, drawn), *LOOKALIKES[: 2 if folder.config.published is None else 1]]
    most = our_side(folder).most
    return [text for text in texts if 0 < len(tokenizer.encode(text)) <= most]


def compare(folder: ModelFolder, theirs: Answers, sentences: Sequence[str], target: str) -> Proof:
    """Answer all sentences on both sides.

    Raises DragomanError, naming the worst difference, if they differ; InputError if there are no
    sentences, or one is too long to be answered as a whole.
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
        steps = in_common(ours.ids, found.ids) + 1
        columns = ours.logits_TV.shape[-1]
        allowed = [id_ for id_ in range(columns) if id_ not in side.never]
        ours_MV, theirs_MV = (a.logits_TV[:steps, allowed] for a in (ours, found))
        scale = ours_MV.abs().max().clamp(min=1.0)
        difference = float((ours_MV - theirs_MV).abs().max() / scale)
        if not difference <= worst:  # NaN is the worst
            worst, where = difference, number
        if not changed and ours.text != found.text:
            changed = f', and sentence {number} becomes "{found.text}", not "{ours.text}"'
        elif not changed and ours.ids != found.ids:
            changed = f", and the tokens of sentence {number} are others"
    if changed or not worst <= TOLERANCE:
        raise DragomanError(
            f"the model converted to {target} is not equal, so it was not written: its logits "
            f"differ by up to {worst:.1e} (sentence {where} of the probe){changed}"
        )
    return Proof(sentences=len(texts), worst=worst)


# ---------------------------------------------------------------- our side


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """How our model answers."""

    answer: Callable[[str], tuple[Answer, int]]
    """Answers a text, and returns how many tokens the other side may write."""
    most: int
    """Maximum number of tokens in a text."""
    encode: Callable[[str], list[int]]
    """Returns the ids that the model reads for a text."""
    decode: Callable[[Sequence[int], Sequence[int]], str] = lambda _, __: ""
    """Returns the text of the ids that were read and written."""
    never: Collection[int] = ()
    """Ids that are never written, whose logits are ignored."""
    begin: Sequence[int] = ()
    """Ids that every translation begins with."""
    ends: Sequence[int] = ()
    """Ids that end an output."""


def our_side(folder: ModelFolder) -> Side:
    """Return how the model in a folder answers."""
    match folder.model:
        case EncoderDecoder():
            return _translating(folder)
        case DecoderOnly():
            return _continuing(folder)
        case EncoderOnly():
            return _reading(folder)


def two_languages(folder: ModelFolder) -> tuple[str, ...]:
    """Return two languages for a model that requires them; none for others."""
    if folder.config.directions:
        return folder.config.directions[0]
    codes = sorted(folder.src_tokenizer.languages)
    if not codes or folder.config.published is None or folder.src_tokenizer.lang_in_source:
        return ()
    return codes[0], codes[-1]


def starts_with_language(folder: ModelFolder) -> bool:
    """Whether the target language is the first token that a decoder reads."""
    bos_id = folder.config.model.bos_id
    return bos_id < 0 or bos_id in folder.src_tokenizer.languages.values()


def _translating(folder: ModelFolder) -> Side:
    translator = Translator.of(folder).between(*two_languages(folder))
    src, tgt = folder.src_tokenizer, folder.tgt_tokenizer
    model, specials = model_of(folder, EncoderDecoder), translator.specials
    begin = [id_ for id_ in (specials.bos_id, *specials.begin) if id_ >= 0]
    greedy = Decoding(
        beam_size=1,
        min_length=0,
        no_repeat_ngrams=0,
        repetition_penalty=1.0,
        forbidden_words=(),
        max_length_constant=min(translator.options.max_length_constant, LONGEST),
    )
    options = merged(greedy, ONE_BEST, translator.options)

    def encode(text: str) -> list[int]:
        frame = specials.src_frame
        return [*frame.before, *src.encode(text), *frame.after]

    def answer(text: str) -> tuple[Answer, int]:
        (best,) = translator.watch(src.encode(text), options, Greedy())
        steps = len(best.token_log_probs)
        written = torch.tensor([[*begin, *best.ids]])
        with torch.inference_mode():
            logits_TV = model(torch.tensor([encode(text)]), written)[0, len(begin) - 1 :][:steps]
        found = Answer(text=tgt.decode(best.ids), ids=best.ids, logits_TV=logits_TV)
        return found, steps if best.stopped == "length" else steps + BEYOND

    return Side(
        answer=answer,
        most=translator.options.max_src_tokens,
        encode=encode,
        decode=lambda _, ids: tgt.decode(ids),
        never=set(translator.specials.forbidden),
        begin=begin if starts_with_language(folder) else specials.begin,
        ends=(specials.eos_id,),
    )


def plain_generator(folder: ModelFolder) -> Generator:
    """Return a generator that continues plain text, even for a dialogue model."""
    defaults = replace(folder.config.generation or GENERATION, chat=None)
    plain = copy(folder)
    plain.config = replace(folder.config, generation=defaults)
    return Generator.of(plain)


def _continuing(folder: ModelFolder) -> Side:
    generator, model = plain_generator(folder), model_of(folder, DecoderOnly)
    tokenizer, published = generator.tokenizer, folder.config.published
    opening = (folder.config.generation or GENERATION).opening
    joined = tokenizer.decode if opening is None else tokenizer.decode_rest
    room = (generator.context or 256) - len(generator.encode("a"))
    steps = max(1, min(CONTINUED, room // 2))
    given = Decoding(temperature=0.0, max_tokens=steps, context=generator.context)
    options = merged(given, GENERATING)

    def decode(prompt: Sequence[int], ids: Sequence[int]) -> str:
        return joined([*prompt, *ids]).removeprefix(opening or "")

    def answer(text: str) -> tuple[Answer, int]:
        prompt = generator.encode(text)
        best = generator.watch(text, options, Greedy())
        read = torch.tensor([[*prompt, *best.ids][: len(prompt) + len(best.token_log_probs) - 1]])
        with torch.inference_mode():
            logits_TV = model(read)[0, len(prompt) - 1 :]
        return Answer(text=decode(prompt, best.ids), ids=best.ids, logits_TV=logits_TV), steps

    return Side(
        answer=answer,
        most=max(1, room - steps),
        encode=generator.encode,
        decode=decode,
        never=set(generator.never),
        ends=(published and published.ends) or (tokenizer.eos_id,),
    )


def labels_of(folder: ModelFolder) -> Sequence[str]:
    """Return an encoder's labels for texts or tokens; none if it has none."""
    config = folder.config.model
    head = config.head if isinstance(config, EncoderOnlyConfig) else None
    return head.labels if isinstance(head, ClassificationHead | TaggingHead) else ()


def _reading(folder: ModelFolder) -> Side:
    tokenizer, labels = folder.src_tokenizer, labels_of(folder)
    model = model_of(folder, EncoderOnly)
    reading = folder.config.reading or ReadingDefaults()
    places = model.embedding.num_positions or reading.max_tokens + 2

    def encode(text: str) -> list[int]:
        return [tokenizer.bos_id, *tokenizer.encode(text), tokenizer.eos_id]

    def answer(text: str) -> tuple[Answer, int]:
        ids = encode(text)
        with torch.inference_mode():
            logits = model(torch.tensor([ids]))
        return read_answer(ids, logits, labels), 0

    return Side(answer=answer, most=min(reading.max_tokens, places - 2), encode=encode)


def read_answer(ids: Sequence[int], logits: Tensor, labels: Sequence[str]) -> Answer:
    """Return the answer for logits `(1, C)` or `(1, L, C)`: the best label of each row."""
    rows_TV = logits.reshape(-1, logits.shape[-1])
    text = " ".join(labels[index] for index in rows_TV.argmax(-1)) if labels else ""
    return Answer(text=text, ids=tuple(ids), logits_TV=rows_TV)
