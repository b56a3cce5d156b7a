"""How lines are read, cut into chunks of ids that a model can take, and put together again."""

import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, islice, repeat
from typing import Any, NamedTuple, TypeVar

from dragoman.errors import InputError
from dragoman.files.arriving import InputLines
from dragoman.ranges import Count, check_range
from dragoman.text.sentences import sentences_of, split_long
from dragoman.text.tokenizer import Tokenizer
from dragoman.text.unreadable import UnreadableText

Item = TypeVar("Item")
Encoded = TypeVar("Encoded")


def as_texts(given: Any) -> list[str]:  # noqa: ANN401 -- whatever was given is looked at
    """Return a text, or any number of them, as a list. Raises TypeError for anything else."""
    alone = isinstance(given, str | bytes | Mapping) or not isinstance(given, Iterable)
    texts = [given] if alone else list(given)
    check_texts(texts, 0)
    return texts


def check_texts(texts: Iterable[Any], before: int) -> None:
    """Raise TypeError for anything that is not a text, with its number, `before` included."""
    for number, text in enumerate(texts, start=before + 1):
        if not isinstance(text, str):
            raise TypeError(f"Text {number} is {text!r:.40}; give a str, or an iterable of str.")


def several(items: Iterable[Item]) -> Iterable[Item]:
    """Return the items. Raises TypeError for a single str, whose items are letters."""
    if isinstance(items, str):
        raise TypeError(f"{items!r:.40} is one str; give an iterable of str, such as [text].")
    return items


def as_pairs(given: Any) -> list[tuple[str, str]]:  # noqa: ANN401 -- whatever was given is looked at
    """Return pairs of texts as a list. Raises TypeError for others, such as a two-letter str."""
    pairs = [*given] if isinstance(given, Iterable) else [given]
    for number, pair in enumerate(pairs, start=1):
        texts = [*pair] if isinstance(pair, Iterable) and not isinstance(pair, str) else []
        if len(texts) != 2 or not all(isinstance(text, str) for text in texts):
            raise TypeError(
                f"Pair {number} is {pair!r:.40}; give two str, as in [(first, second)]."
            )
    return pairs


def windows(items: Iterable[Item], most: int) -> Iterator[list[Item]]:
    """Split items that may never end: the first windows are small, so that output begins early.

    A window also ends when the lines of a pipe pause. Raises TypeError for a single str, and
    InputError unless `most` is at least 1.
    """
    check_range("window", most, Count)
    rest = iter(several(items))
    pauses = items.pauses if isinstance(items, InputLines) else lambda: False
    size = min(64, most)
    while taken := list(_until_pause(islice(rest, size), pauses)):
        yield taken
        size = min(4 * size, most)


def _until_pause(items: Iterator[Item], pauses: Callable[[], bool]) -> Iterator[Item]:
    for item in items:
        yield item
        if pauses():
            return


def is_blank(text: str) -> bool:
    """Return whether a text shows nothing: only white space, control and zero-width characters."""
    return all(unicodedata.category(char) in _UNSEEN or _IGNORABLE.match(char) for char in text)


_UNSEEN = {"Cc", "Cf", "Zl", "Zp", "Zs"}
_IGNORABLE = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u3164\ufe00-\ufe0f\uffa0\U000e0100-\U000e01ef]"
)
"""Unicode's Default_Ignorable_Code_Point, except for the categories above."""


def encode_each(
    encode: Callable[[Sequence[Item]], Sequence[Encoded]], texts: Sequence[Item]
) -> list[Encoded | None]:
    """Return the result of `encode` for each text, such as its ids; None for an unreadable one."""
    try:
        return [*encode(texts)]
    except UnreadableText:
        if len(texts) == 1:
            return [None]
        return [encode_each(encode, [text])[0] for text in texts]


def encode_prefixes(
    texts: list[str] | None, count: int, tokenizer: Tokenizer, most: int | None
) -> list[list[int]]:
    """Return the ids that the translations of `count` lines begin with, each fewer than `most`."""
    if texts is None:
        return [[]] * count
    if len(texts) != count:
        fewer = "fewer" if len(texts) < count else "more"
        raise InputError(f"There are {fewer} prefixes than lines; give one for each line.")
    prefixes = tokenizer.encode_batch([trimmed(text, tokenizer) for text in texts])
    for text, ids in zip(texts, prefixes, strict=True):
        if most is not None and len(ids) >= most:
            raise InputError(
                f"The prefix {text[:40]!r} has {len(ids)} tokens and the model writes at most "
                f"{most}; give a shorter one."
            )
    return prefixes


class Chunk(NamedTuple):
    """A text and its ids: at least one."""

    text: str
    ids: list[int]


@dataclass(frozen=True, slots=True)
class LinePart:
    """A part translated separately: a sentence of a line, in one chunk unless it is too long."""

    start: int
    """Where it begins in the line."""
    end: int
    """Where it ends, without the white space after it."""
    chunks: list[Chunk]
    """At least one."""


def to_parts(
    lines: Sequence[str], tokenizer: Tokenizer, limit: int, *, split: bool
) -> list[list[LinePart] | None]:
    """Return the sentences of each line or, unless `split`, the whole line; chunks as `to_chunks`.

    A line without ids has no part. None marks a line that cannot be encoded. A language mark at the
    beginning of a line applies to all its sentences.
    """
    leading = tokenizer.reads_leading_space
    spans = [_spans(sentences_of(line) if split else [line], leading=leading) for line in lines]
    texts = []
    for line, of in zip(lines, spans, strict=True):
        mark = tokenizer.language_mark(line.lstrip())
        texts += [mark * (number > 0) + line[a:b] for number, (a, b) in enumerate(of)]
    found = iter(to_chunks(texts, tokenizer, limit))
    return [_parts(of, [*islice(found, len(of))]) for of in spans]


def _parts(
    spans: list[tuple[int, int]], chunks_of: list[list[Chunk] | None]
) -> list[LinePart] | None:
    if None in chunks_of:
        return None
    columns = zip(spans, chunks_of, strict=True)
    return [LinePart(start, end, chunks) for (start, end), chunks in columns if chunks]


def _spans(sentences: Iterable[str], *, leading: bool) -> list[tuple[int, int]]:
    """Return where sentences begin and end, without outer white space (see `_trimmed`)."""
    spans, place = [], 0
    for sentence in sentences:
        if inner := _trimmed(sentence, leading=leading and not place):
            start = place + sentence.index(inner)
            spans.append((start, start + len(inner)))
        place += len(sentence)
    return spans


def to_chunks(lines: Sequence[str], tokenizer: Tokenizer, limit: int) -> list[list[Chunk] | None]:
    """Split each line into chunks of at most `limit` ids; None if a line cannot be encoded.

    White space around a line means nothing and is dropped (so is a carriage return at its end),
    unless the tokenizer reads it at the beginning. A line that shows nothing, or of which the
    tokenizer leaves nothing, has no chunk. A line within the limit is one chunk; a longer one is
    cut at sentence ends if that suffices, otherwise at finer places.
    """

    def encode(stripped: Sequence[str]) -> list[list[Chunk]]:
        encoded = tokenizer.encode_batch(stripped)
        pairs = zip(stripped, encoded, strict=True)
        return [_chunks(line, ids, tokenizer, limit) for line, ids in pairs]

    return encode_each(encode, [trimmed(line, tokenizer) for line in lines])


def _chunks(line: str, ids: list[int], tokenizer: Tokenizer, limit: int) -> list[Chunk]:
    mark = tokenizer.language_mark(line)
    texts, encoded = [line], [ids]
    if len(ids) > limit:
        rest = line.removeprefix(mark)
        cut = split_long(rest, limit, lambda text: len(tokenizer.encode(mark + text)))
        texts = [mark + text for text in map(str.rstrip, cut) if text]
        encoded = tokenizer.encode_batch(texts)
    chunks = map(Chunk, texts, encoded)
    return [each for each in chunks if each.ids and not is_blank(each.text.removeprefix(mark))]


def trimmed(text: str, tokenizer: Tokenizer) -> str:
    """Return `text` without outer white space, except a start that `tokenizer` reads."""
    return _trimmed(text, leading=tokenizer.reads_leading_space)


def _trimmed(text: str, *, leading: bool) -> str:
    """Return `text` without outer white space; with `leading`, that at its beginning stays."""
    inner = text.strip()
    return text.rstrip() if leading and inner else inner


def one_line(text: str) -> str:
    """Return `text` without line breaks (a model may write one) and outer white space."""
    return " ".join(text.splitlines()).strip()


def decode_line(tokenizer: Tokenizer, ids: Iterable[int]) -> str:
    """Return the text of `ids` in one line, with the space before it if the tokenizer reads one."""
    text = tokenizer.decode(ids)
    line = one_line(text)
    return f" {line}" if line and tokenizer.reads_leading_space and text[0] == " " else line


def joined(
    parts: Iterable[str], spaces: Iterable[str] = repeat("")
) -> tuple[str, list[tuple[int, int]]]:
    """Return the parts joined in one line, and where in it each begins and ends.

    `spaces` has the white space before each part but the first; an empty one becomes a space. If
    one of the two adjacent letters is Chinese or Japanese, which are written without spaces,
    nothing is inserted.
    """
    text, spans = "", list[tuple[int, int]]()
    for written, space in zip(parts, chain([""], spaces), strict=False):
        part = written.lstrip() if text else written
        if text and part and not (is_wide(text[-1]) or is_wide(part[0])):
            text += "".join(" " if len(f"{c}.".splitlines()) > 1 else c for c in space) or " "
        spans.append((len(text), len(text) + len(part)))
        text += part
    return text, spans


def is_wide(char: str) -> bool:
    """Return whether a character is Chinese or Japanese; hangul is as wide but has spaces."""
    wide = bool(char) and unicodedata.east_asian_width(char) in {"W", "F"}
    return wide and "HANGUL" not in unicodedata.name(char, "")
