"""How lines are taken, cut into chunks of ids that a model can take, and put together again."""

import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Any, TypeVar

from dragoman.text.sentences import split_long
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


def to_chunks(lines: Sequence[str], tokenizer: Tokenizer, limit: int) -> list[list[list[int]]]:
    """For each line its chunks, for each chunk its ids, at most `limit` of them.

    White space around a line means nothing and is dropped (so is a carriage return at its end); a
    line of nothing else has no chunk. A line within the limit is one chunk; a longer one is cut at
    ends of sentences if that suffices, else at finer places.
    """
    stripped = [line.strip() for line in lines]
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


def one_line(text: str) -> str:
    """`text` without line breaks of any kind (a model may write one) and outer white space."""
    return " ".join(text.splitlines()).strip()


def join(parts: Iterable[str]) -> str:
    """The parts in one line.

    A space stands between two parts unless one of the two letters that meet is Chinese or
    Japanese, scripts that write none.
    """
    joined = ""
    for part in parts:
        space = " " if joined and part and not (_wide(joined[-1]) or _wide(part[0])) else ""
        joined += space + part
    return joined


def _wide(letter: str) -> bool:
    return unicodedata.east_asian_width(letter) in "WF"
