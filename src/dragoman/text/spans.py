"""The spans of the pieces of a text, in characters.

White space belongs to no piece: tokenizers drop it, add it and join it, and a translation is put on
one line. The other characters, called seen here, remain and keep their order.
"""

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import accumulate, chain, pairwise
from unicodedata import category

BYTES = 4
"""Maximum bytes of a character in UTF-8."""
Span = tuple[int, int]
"""Start and end of something; the characters at both ends are seen."""


_CLINGING = frozenset(
    "\u200c\u200dะาำๅະາຳ🏻🏼🏽🏾🏿" + "".join(map(chr, range(0xE0020, 0xE0080)))  # of emoji, flags
)
_HOLDING = frozenset("\u200d\u1039\u17d2เแโใไເແໂໃໄ")
"""A joiner, signs that stack a Burmese or Khmer letter below the one before, leading vowels."""


def clings(text: str, place: int) -> bool:
    """Return whether the character at a place forms a letter or emoji with the one before it."""
    char, before = text[place], text[place - 1 : place]
    return category(char)[0] == "M" or char in _CLINGING or before in _HOLDING


def places_in(spans: Iterable[Span]) -> set[int]:
    """All places of spans, which may overlap."""
    return {place for span in spans for place in range(*span)}


def as_one(spans: Iterable[Span], is_joined: Callable[[Span, Span], bool]) -> Iterator[Span]:
    """The spans in order; one that is joined to that before it makes one with it."""
    begun: Span | None = None
    for span in sorted(spans):
        if begun is not None and is_joined(begun, span):
            begun = begun[0], max(begun[1], span[1])
            continue
        if begun is not None:
            yield begun
        begun = span
    if begun is not None:
        yield begun


def seen_in(text: str, start: int = 0) -> list[int]:
    """Return the places of the seen characters of a text that begins at `start`."""
    return [start + n for n, char in enumerate(text) if not char.isspace()]


def spans_of(places: Sequence[int], lengths: Iterable[int]) -> list[Span | None]:
    """Return the span of each piece, given the places of the seen characters and each one's number.

    A piece without any, such as a byte of a character, gets the span of the next one that has some;
    None if there is none.
    """
    ends = pairwise(accumulate(lengths, initial=0))
    return _with_next((places[a], places[b - 1] + 1) if a < b else None for a, b in ends)


def trimmed_spans(text: str, offsets: Iterable[Span]) -> list[Span | None]:
    """Return the spans of pieces whose offsets may include white space at the ends, or be empty.

    A piece without seen characters gets the span of the next one, as in `spans_of`.
    """
    spans = list[Span | None]()
    for start, end in offsets:
        inner = text[start:end].strip()
        first = start + text[start:end].find(inner)
        spans.append((first, first + len(inner)) if inner else None)
    return _with_next(spans)


def _with_next(spans: Iterable[Span | None]) -> list[Span | None]:
    following: Span | None = None
    found = []
    for span in reversed([*spans]):
        following = span or following
        found.append(following)
    return found[::-1]


def lengths_of(
    ids: Sequence[int],
    decode: Callable[[Sequence[int]], str],
    decode_rest: Callable[[Sequence[int]], str],
) -> list[int]:
    """Return how many seen characters each of `ids` adds to the decoded text.

    If the ids decode differently together than one by one, a character belongs to the piece with
    which it and all before it are complete.
    """
    text, found, place = _seen(decode(ids)), list[int](), 0
    alone = [_seen(decode_rest([id_])) for id_ in ids]
    if "".join(alone) == text:
        return [*map(len, alone)]
    while len(found) < len(ids):
        first = len(found)
        counts = [1, 2, 3, BYTES]
        if "\ufffd" in alone[first]:  # a part of a character, mostly
            counts.reverse()
        for count in chain(counts, range(BYTES + 1, len(ids) - first + 1)):
            run = ids[first : first + count]
            part = alone[first] if count == 1 else _seen(decode_rest(run))
            if text.startswith(part, place):
                found += _growing(part, run, decode_rest)
                place += len(part)
                break
        else:
            return _growing(text, ids, decode)
    return found if place == len(text) else _growing(text, ids, decode)


def _growing(text: str, ids: Sequence[int], decode: Callable[[Sequence[int]], str]) -> list[int]:
    """Return how many more characters of `text` are decoded with each of `ids`."""
    begun = [in_common(text, _seen(decode(ids[:n]))) for n in range(1, len(ids))]
    return [b - a for a, b in pairwise(accumulate([*begun, len(text)], max, initial=0))]


def in_common(first: Sequence[object], second: Sequence[object]) -> int:
    """Return the length of the common prefix."""
    pairs = enumerate(zip(first, second, strict=False))
    return next((n for n, (one, two) in pairs if one != two), min(len(first), len(second)))


def nearest(shares: Sequence[float], widths: Sequence[int], places: list[int]) -> list[int]:
    """Return the places nearest to these shares, in order: one each, while there are any."""
    found, first, at = list[int](), 0, [widths[place] for place in places]
    for number, share in enumerate(shares):
        last = max(first, len(places) - len(shares) + number)
        if last < len(places):
            right = bisect_left(at, share, first, last)
            left = max(first, right - 1)
            nearer = left if share - at[left] < at[right] - share else right
            found.append(places[nearer])
            first = nearer + 1
    return found


def _seen(text: str) -> str:
    return "".join(text.split())
