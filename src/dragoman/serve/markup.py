"""Texts with tags in requests, parsed as documents."""

from collections.abc import Iterable, Sequence, Set
from itertools import islice
from typing import Any, NamedTuple
from xml.parsers import expat

import msgspec

from dragoman.documents import html
from dragoman.documents.document import Document, WrittenPart
from dragoman.documents.markup import Page, Rules, tokens_of
from dragoman.documents.translate import Draft
from dragoman.errors import InputError
from dragoman.tasks.results import TermUse
from dragoman.text.putback import Link


class MarkedResult(NamedTuple):
    """The translation of a text of a document: the arguments of `Draft.put`, and its terms."""

    text: str
    links: Sequence[Link]
    flags: Sequence[str]
    terms: Sequence[TermUse]


class MarkedAnswer(msgspec.Struct):
    """A translated text with tags, and the flags and terms of its segments."""

    text: str
    flags: list[str] = []
    terms: list[dict[str, Any]] = []

    def take(self, found: MarkedResult | None, flagged: Sequence[str]) -> None:
        """Add a segment's flags and terms, and the flags of its document; None means it failed."""
        flags = ("failed",) if found is None else dict.fromkeys([*found.flags, *flagged])
        self.flags += [flag for flag in flags if flag not in self.flags]
        self.terms += [each.to_dict() for each in (found.terms if found else ())]


def in_html(text: str, rules: Rules = html.RULES) -> Document:
    """Parse a text as HTML."""
    return Page(text, rules, "text").document(_as_utf8)


def in_xml(
    text: str,
    *,
    copied: frozenset[str] = frozenset(),
    splitting: Set[str] = frozenset(),
    joining: Set[str] = frozenset(),
    outline: bool = True,
) -> Document:
    """Parse a text as XML of any kind, given names of elements in small letters.

    The text of those in `copied` is copied; those in `splitting` begin and end a sentence, those in
    `joining` do not. With `outline`, elements that never occur next to text begin and end a
    sentence, too.
    """
    apart = {name.lower() for name in outline_of(text)} if outline else set[str]()

    def block(name: str) -> bool:
        return (name in apart or name in splitting) and name not in joining and name not in copied

    return Page(text, Rules(block=block, copied=copied), "text").document(_as_utf8)


def _as_utf8(pieces: Iterable[str]) -> bytes:
    return "".join(pieces).encode()


def outline_of(text: str) -> set[str]:
    """Return the names of elements that never occur next to text."""
    inside: list[set[str]] = [set()]  # the names of each open element's children
    beside, inline = [False], set[str]()
    seen = set[str]()
    for token in tokens_of(text, Rules(block=lambda _: False)):
        if token.kind == "open":
            inside[-1].add(token.name)
            inside.append(set())
            beside.append(False)
        elif token.kind == "close" and len(inside) > 1:
            names = inside.pop()
            seen |= names
            inline |= names if beside.pop() else set()
        elif token.kind == "text" and not token.raw.isspace():
            beside[-1] = True
        elif token.kind == "void" and token.name:
            inside[-1].add(token.name)
    for names, has_text in zip(inside, beside, strict=True):
        seen |= names
        inline |= names if has_text else set()
    return seen - inline


def check_xml(text: str) -> None:
    """Raise InputError unless a text is well-formed XML; it needs no single root element."""
    parser = expat.ParserCreate()
    try:
        parser.Parse(f"<x>{text}</x>".encode(), True)  # noqa: FBT003 -- expat's
    except expat.ExpatError as error:
        raise InputError(f"the text is not XML: {error}; close its tags") from None


def joined(documents: Sequence[Document]) -> Document:
    """Join documents into one, which is written as a JSON list of their contents."""

    def assemble(parts: Sequence[WrittenPart]) -> bytes:
        rest = iter(parts)
        written = (each.assemble([*islice(rest, len(each.parts))]) for each in documents)
        return msgspec.json.encode([each.decode() for each in written])

    return Document(tuple(part for each in documents for part in each.parts), assemble)


def answers_of(
    documents: Sequence[Document], draft: Draft, found: Sequence[MarkedResult | None]
) -> list[MarkedAnswer]:
    """Return the answers for `joined` documents from the results of a draft's texts."""
    draft.put(one and one[:3] for one in found)
    texts = msgspec.json.decode(draft.written(), type=list[str])
    answers = [*map(MarkedAnswer, texts)]
    result_of = {n: one for one, at in zip(found, draft.places, strict=True) for n in at}
    owners = (answers[n] for n, each in enumerate(documents) for _ in each.segments)
    for number, answer in enumerate(owners):
        if number in result_of:
            answer.take(result_of[number], draft.flagged.get(number, ()))
    return answers
