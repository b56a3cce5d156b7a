r"""How spans are written as one tag a word, and how each way becomes BIO.

A span of type X over words is written

    IOB1    I-X for all words; B-X only where a span of the same type ends right before
    BIO     B-X for the first word, I-X for the others (IOB2)
    BIOES   S-X for a span of one word; else B-X, I-X (or M-X), and E-X for the last
            (BILOU writes U and L, BMESO writes M)

and O outside. Tjong Kim Sang and Veenstra (1999) compare them. Real files break their own rules;
a broken span is read as `conlleval`, the script of the CoNLL shared tasks, reads it, and counted.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

__all__ = ["Scheme", "Span", "bio_labels", "detect_scheme", "find_spans", "parted", "to_bio"]

Scheme = Literal["bio", "iob1", "bioes", "plain"]
"""``plain``: each tag stands for its own word alone, as parts of speech do."""

OUTSIDE = "O"
_MEANING = {"B": "B", "I": "I", "M": "I", "E": "E", "L": "E", "S": "S", "U": "S"}


@dataclass(frozen=True, slots=True)
class Span:
    """Words ``start`` to ``stop - 1`` of a sentence are one thing of that type."""

    start: int
    stop: int
    type: str


def detect_scheme(sentences: Iterable[Sequence[str]]) -> Scheme:
    """The scheme that the tags of a whole file follow.

    Plain where no tag has a prefix. Any E, S, L or U: BIOES. With B and I alone those spans decide
    that follow none of their own type: IOB1 if most of them begin with I, BIO if with B.
    """
    letters: set[str | None] = set()
    begun = Counter[str | None]()
    for tags in sentences:
        before = OUTSIDE
        for tag in tags:
            letter, type_ = parted(tag)
            letters.add(letter)
            begun[letter] += before == OUTSIDE or before[2:] != type_
            before = tag
    if None in letters and letters <= {OUTSIDE, None}:
        return "plain"
    if letters & {"E", "S"}:
        return "bioes"
    return "iob1" if begun["I"] > begun["B"] else "bio"


def find_spans(tags: Sequence[str], scheme: Scheme = "bio") -> tuple[list[Span], int]:
    """The spans of a sentence, and how many tags stand where the scheme forbids them.

    A tag that goes on with a span that is not there begins it; a span that is not ended ends
    before the next tag that is not its own.
    """
    spans: list[Span] = []
    malformed = 0
    start, open_type = 0, None
    for i, tag in enumerate((*tags, OUTSIDE)):
        letter, type_ = parted(tag)
        goes_on = letter in ("I", "E") and type_ == open_type
        if not goes_on and open_type is not None:
            spans.append(Span(start, i, open_type))
            malformed += scheme == "bioes"  # its E is missing
            open_type = None
        if letter in (None, OUTSIDE):
            continue
        if not goes_on:
            start, open_type = i, type_
            parts = bool(spans) and (spans[-1].stop, spans[-1].type) == (i, type_)
            malformed += letter in ("I", "E") if scheme != "iob1" else letter == "B" and not parts
        if letter in ("E", "S") and open_type is not None:
            spans.append(Span(start, i + 1, open_type))
            open_type = None
    return spans, malformed


def to_bio(spans: Iterable[Span], length: int) -> list[str]:
    """The tags of a sentence of ``length`` words with these spans."""
    tags = [OUTSIDE] * length
    for span in spans:
        tags[span.start] = f"B-{span.type}"
        tags[span.start + 1 : span.stop] = [f"I-{span.type}"] * (span.stop - span.start - 1)
    return tags


def bio_labels(types: Iterable[str]) -> Iterator[str]:
    """Every tag that spans of these types can need, O first."""
    yield OUTSIDE
    for type_ in sorted(set(types)):
        yield f"B-{type_}"
        yield f"I-{type_}"


def parted(tag: str) -> tuple[str | None, str]:
    """The meaning of the prefix (None when there is none) and the type."""
    if tag == OUTSIDE:
        return OUTSIDE, ""
    prefix, hyphen, type_ = tag.partition("-")
    return (_MEANING.get(prefix), type_) if hyphen and type_ else (None, tag)
