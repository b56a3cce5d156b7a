"""How lines are taken, cut into chunks of ids that a model can take, and put together again."""

import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice, repeat
from typing import Any, TypeVar

from dragoman.text.sentences import sentences_of, split_long
from dragoman.text.tokenizer import Tokenizer

Item = TypeVar("Item")


def as_texts(given: Any) -> list[str]:  # noqa: ANN401 -- whatever was given is looked at
    """A text, or any number of them, as a list. Raises TypeError for anything else."""
    alone = isinstance(given, str | bytes) or not isinstance(given, Iterable)
    texts = [given] if alone else list(given)
    for number, text in enumerate(texts, start=1):
        if not isinstance(text, str):
            raise TypeError(f"Text {number} is {text!r:.40}; give a str, or an iterable of str.")
    return texts


def windows(items: Iterable[Item], most: int) -> Iterator[list[Item]]:
    """Part what may never end: the first windows are small, so that output begins early.

    Raises TypeError for a single str, whose items are letters.
    """
    if isinstance(items, str):
        raise TypeError(f"{items!r:.40} is one str; give an iterable of str, such as [text].")
    rest = iter(items)
    size = min(64, most)
    while taken := list(islice(rest, size)):
        yield taken
        size = min(4 * size, most)


@dataclass(frozen=True, slots=True)
class Part:
    """What is translated by itself: a sentence of a line, in one chunk unless it is too long."""

    start: int
    """Where it begins in its line."""
    end: int
    """Where it ends, without the white space behind it."""
    chunks: list[list[int]]
    """Its ids."""


def to_parts(
    lines: Sequence[str], tokenizer: Tokenizer, limit: int, *, split: bool
) -> list[list[Part]]:
    """For each line its sentences, or with `split` off the line as one; chunks as `to_chunks`.

    A line of nothing but white space has no part.
    """
    leading = tokenizer.reads_leading_space
    spans = [_spans(sentences_of(line) if split else [line], leading=leading) for line in lines]
    texts = [line[a:b] for line, of in zip(lines, spans, strict=True) for a, b in of]
    chunks = iter(to_chunks(texts, tokenizer, limit))
    return [[Part(start, end, next(chunks)) for start, end in of] for of in spans]


def _spans(sentences: Iterable[str], *, leading: bool) -> list[tuple[int, int]]:
    """Where sentences begin and end, without the white space around them (see `_trimmed`)."""
    spans, place = [], 0
    for sentence in sentences:
        if inner := _trimmed(sentence, leading=leading and not place):
            start = place + sentence.index(inner)
            spans.append((start, start + len(inner)))
        place += len(sentence)
    return spans


def to_chunks(lines: Sequence[str], tokenizer: Tokenizer, limit: int) -> list[list[list[int]]]:
    """For each line its chunks, for each chunk its ids, at most `limit` of them.

    White space around a line means nothing and is dropped (so is a carriage return at its end),
    unless the tokenizer reads that at the beginning; a line of nothing else has no chunk. A line
    within the limit is one chunk; a longer one is cut at ends of sentences if that suffices, else
    at finer places.
    """
    stripped = [_trimmed(line, leading=tokenizer.reads_leading_space) for line in lines]
    encoded = tokenizer.encode_batch(stripped)
    return [
        _chunks(line, ids, tokenizer, limit) for line, ids in zip(stripped, encoded, strict=True)
    ]


def _chunks(line: str, ids: list[int], tokenizer: Tokenizer, limit: int) -> list[list[int]]:
    if not line:
        return []
    if len(ids) <= limit:
        return [ids]
    chunks = map(str.rstrip, split_long(line, limit, lambda text: len(tokenizer.encode(text))))
    return tokenizer.encode_batch(list(filter(None, chunks)))


def _trimmed(text: str, *, leading: bool) -> str:
    """`text` without outer white space; with `leading`, that at its beginning stays."""
    inner = text.strip()
    return text.rstrip() if leading and inner else inner


def one_line(text: str) -> str:
    """`text` without line breaks of any kind (a model may write one) and outer white space."""
    return " ".join(text.splitlines()).strip()


def decode_line(tokenizer: Tokenizer, ids: Iterable[int]) -> str:
    """The text of `ids` in one line, with the space before it if the tokenizer reads one."""
    text = tokenizer.decode(ids)
    line = one_line(text)
    return f" {line}" if line and tokenizer.reads_leading_space and text[0] == " " else line


def joined(
    parts: Iterable[str], spaces: Iterable[str] = repeat("")
) -> tuple[str, list[tuple[int, int]]]:
    """The parts in one line, and where in it each begins and ends.

    Between two parts stands the white space of `spaces`, one for each part but the first, or a
    space where there is none. If one of the two letters that meet is Chinese or Japanese, scripts
    that write none, there is none.
    """
    text, spans = "", list[tuple[int, int]]()
    for written, space in zip(parts, chain([""], spaces), strict=False):
        part = written.lstrip() if text else written
        if text and part and not (_wide(text[-1]) or _wide(part[0])):
            text += "".join(" " if len(f"{c}.".splitlines()) > 1 else c for c in space) or " "
        spans.append((len(text), len(text) + len(part)))
        text += part
    return text, spans


def _wide(letter: str) -> bool:
    return unicodedata.east_asian_width(letter) in "WF"
