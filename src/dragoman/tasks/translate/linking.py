"""Alignments in characters: the part of a line that each token of its translation comes from."""

from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import NamedTuple

from torch import Tensor

from dragoman.decode import Hypothesis
from dragoman.tasks.results import Alignment
from dragoman.tasks.translate.ids import Ids, Source
from dragoman.text.spans import Span, seen_in, spans_of
from dragoman.text.tokenizer import Tokenizer


class Rendered(NamedTuple):
    """A sentence of a line and its translation."""

    start: int
    """Where the sentence begins in the line."""
    place: Span
    """The span of its translation in that of the line."""
    pairs: Sequence[tuple[Source, Hypothesis]]
    """Each source, in order, and what was written for it."""


def alignments_of(
    line: str,
    text: str,
    sentences: Sequence[Rendered],
    tokenizers: tuple[Tokenizer, Tokenizer],
    attention: Callable[[Source, Hypothesis], Tensor],
) -> Iterator[Alignment]:
    """Yield the alignment of each pair of ids; `text` is the translation of `line`.

    `attention` returns the weights (T, S) of a pair.
    """
    src_tokenizer, tgt_tokenizer = tokenizers
    for start, place, pairs in sentences:
        src_spans = read_spans(line, start, [src.text for src, _ in pairs], src_tokenizer)
        tgt_spans = _written(text, place, [found.ids for _, found in pairs], tgt_tokenizer)
        for (src, found), read, written in zip(pairs, src_spans, tgt_spans, strict=True):
            yield Alignment(
                src_tokens=tuple(src_tokenizer.tokens([*src.ids, src_tokenizer.eos_id])),
                tgt_tokens=tuple(tgt_tokenizer.tokens([*found.ids, tgt_tokenizer.eos_id])),
                weights_TS=attention(src, found),
                src_spans=(*read, None),
                tgt_spans=(*written, None),
            )


def places_of(line: str, place: int, texts: Sequence[str], tokenizer: Tokenizer) -> Iterator[int]:
    """Yield where each text begins in the line, which contains them from `place` on.

    If texts begin with the mark of a language, the line may have it before the first one only.
    """
    for text in texts:
        mark = tokenizer.language_mark(text)
        place = max(place, line.find(text[len(mark) :], place))
        yield place - len(mark)
        place += len(text) - len(mark)


def read_spans(
    line: str, place: int, texts: Sequence[str], tokenizer: Tokenizer
) -> Iterator[list[Span | None]]:
    """Yield the spans of the pieces of each text in the line."""
    for start, text in zip(places_of(line, place, texts, tokenizer), texts, strict=True):
        yield [span and (span[0] + start, span[1] + start) for span in tokenizer.spans(text)]


def _written(
    text: str, place: Span, ids_of: Sequence[Ids], tokenizer: Tokenizer
) -> Iterator[list[Span | None]]:
    """Yield the spans of the tokens of each hypothesis in the part of the text that they form.

    Tokens are counted by the characters that remain when texts are joined: all but white space.
    """
    places = iter(seen_in(text[slice(*place)], place[0]))
    for ids in ids_of:
        lengths = tokenizer.lengths(ids)
        yield spans_of([*islice(places, sum(lengths))], lengths)
