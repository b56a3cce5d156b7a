"""The proof of a conversion: both sides translate the same sentences greedily, and agree.

Compared are the logits of every step, given the tokens that both sides have written so far, and
the translations. Our side is the readable model without a cache, and the search of `translate`.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from random import Random

import torch
from torch import Tensor

from dragoman.decode import Greedy
from dragoman.errors import DragomanError, InputError
from dragoman.models import EncoderDecoder
from dragoman.tasks.folders import Folder
from dragoman.tasks.lines import one_line
from dragoman.tasks.translate.translator import Translator

TOLERANCE = 1e-4
"""Greatest difference of logits in fp32, relative to the largest where that exceeds 1."""
LENGTHS = (1, 2, 3, 5, 8, 13, 21, 34)
"""Tokens of the sentences that are made where none are given."""
LOOKALIKES = "</s> <pad> <0x41> 😀"
"""A text of characters that look like special tokens, and one that no vocabulary may have."""
BEYOND = 8
"""Tokens that the other side may write after the end that ours has found."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """A greedy translation."""

    text: str
    ids: tuple[int, ...]
    """Its tokens, without bos and eos."""
    logits_TV: Tensor
    """What each step chose from; the last step may have chosen eos."""


Answers = Callable[[str, int], Answer]
"""Translates a text, into at most so many tokens with the end."""


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
    limit = folder.config.decoding.max_src_tokens
    return [text for text in texts if 0 < len(tokenizer.encode(text)) <= limit]


def compare(folder: Folder, theirs: Answers, sentences: Sequence[str], target: str) -> Proof:
    """Translate all sentences on both sides.

    Raises DragomanError that names the worst difference, InputError where there is no sentence or
    one is too long to be translated as a whole.
    """
    translator = Translator.of(folder)
    rows = range(len(folder.model_of(EncoderDecoder).output.weight))
    allowed = [id_ for id_ in rows if id_ not in translator.forbidden]
    worst, where, changed = 0.0, 0, ""
    texts = [text.strip() for text in sentences if text.strip()]
    if not texts:
        raise InputError("the probe has no sentence; give a file with some lines of source text")
    for number, text in enumerate(texts, start=1):
        ours, limit = _ours(folder, translator, text, number)
        found = theirs(text, limit)
        steps = _common(ours.ids, found.ids) + 1
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


def _ours(folder: Folder, translator: Translator, text: str, number: int) -> tuple[Answer, int]:
    """Our answer, and what limits the length of the other."""
    src, tgt, most = folder.src_tokenizer, folder.tgt_tokenizer, translator.options.max_src_tokens
    source = src.encode(text)
    if len(source) > most:
        raise InputError(
            f"sentence {number} of the probe has {len(source)} tokens, more than max_src_tokens = "
            f"{most}; give shorter ones"
        )
    options = replace(translator.options, beam_size=1, n_best=1)
    (best,) = translator.watch(source, options, Greedy())
    steps = len(best.token_log_probs)
    model = folder.model_of(EncoderDecoder)
    written = torch.tensor([[tgt.bos_id, *best.ids][:steps]])
    with torch.inference_mode():
        logits_TV = model(torch.tensor([[*source, src.eos_id]]), written)[0]
    answer = Answer(text=tgt.decode(best.ids), ids=best.ids, logits_TV=logits_TV)
    return answer, steps if best.stopped == "length" else steps + BEYOND


def _common(first: Sequence[int], second: Sequence[int]) -> int:
    """How many tokens both begin with."""
    same = (a == b for a, b in zip(first, second, strict=False))
    return next((n for n, equal in enumerate(same) if not equal), min(len(first), len(second)))
