"""Glossaries: terms and their translations, read from a file and found in a text.

    heat pump   Wärmepumpe   Wärmepumpen|Wärmepumpe-
    Apple       Apple                                  case

The columns of a line are the source, the target, further forms of the target separated by "|",
each as correct as the target, and optionally the word `case`, which makes the source
case-sensitive. A term with an empty target, or its source as the target, is not translated.
"""

import re
import unicodedata
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass, replace
from functools import cached_property, lru_cache
from hashlib import sha256
from itertools import pairwise
from pathlib import Path
from typing import Self

from dragoman.errors import InputError
from dragoman.files.reading import read_file
from dragoman.languages import LangCodes
from dragoman.text import termbases
from dragoman.text.columns import read_columns
from dragoman.text.spans import Span

LARGEST = 10 << 20
"""Maximum bytes of a glossary, the same as DeepL's."""
LONGEST = 1024
"""Maximum bytes of a source or a target, the same as DeepL's."""
MOST = 100_000
"""Maximum number of terms of a glossary."""
CASE = "case"

_REFUSED = {
    "Cc": "a control character",
    "Cs": "an unpaired surrogate",
    "Zl": "a line break",
    "Zp": "a line break",
}
"""Categories of characters that a term must not contain."""

UNSPACED = (
    "\u0e00-\u0eff\u0f00-\u109f\u1100-\u11ff\u1780-\u17ff\u2e80-\u2fdf\u3005-\u3007\u3021-\u30ff"
    "\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\ua960-\ua97f\uac00-\ud7ff\uf900-\ufaff\uff66-\uffdc"
    "\U00020000-\U0003ffff"
)
"""Letters of scripts whose words are not separated by spaces or, as in Korean, are followed by
particles; in the syntax of a character class."""
UNSEEN = re.compile("[\xad\u061c\u200b\u200e\u200f\u202a-\u202e\u2060\u2066-\u2069\ufeff]+")
"""Soft hyphens, and marks that set a direction or allow or forbid a break: not part of a word."""
_UNSPACED_LETTER = re.compile(f"[{UNSPACED}]")
_TOKEN = re.compile(rf"[^\W{UNSPACED}]+|\S")


@dataclass(frozen=True, slots=True)
class GlossaryTerm:
    """A source and its translation. Raises InputError for what cannot be a term."""

    source: str
    target: str = ""
    forms: tuple[str, ...] = ()
    """Further forms of the target."""
    case: bool = False
    """Whether the source is case-sensitive."""

    def __post_init__(self) -> None:
        for text in (self.source, self.target, *self.forms):
            if not isinstance(text, str):
                raise TypeError(f"A term has {text!r:.40} for a source or a target; give a str.")
            size = len(text.encode(errors="replace"))
            if size > LONGEST:
                raise InputError(
                    f"{text[:20]!r}... has {size:,} bytes, and at most {LONGEST:,} can be a term; "
                    "shorten it"
                )
            kinds = {unicodedata.category(char) for char in text} & _REFUSED.keys()
            if kinds:
                raise InputError(f"{text[:40]!r} has {_REFUSED[min(kinds)]}; remove it")
        object.__setattr__(self, "source", UNSEEN.sub("", self.source).strip())
        object.__setattr__(self, "target", UNSEEN.sub("", self.target).strip())
        forms = (UNSEEN.sub("", form).strip() for form in self.forms)
        object.__setattr__(self, "forms", tuple(filter(None, forms)))
        if not self.source:
            raise InputError("the source is empty; write one, or remove the term")

    @property
    def kept(self) -> bool:
        """Whether the term is not translated."""
        return self.target in {"", self.source} and not self.forms

    @property
    def key(self) -> tuple[str, bool]:
        """The key, which must be unique in a glossary."""
        usual, _ = _usual(self.source)
        return (usual if self.case else fold(usual)), self.case


@dataclass(frozen=True)
class Occurrence:
    """A term in a text."""

    start: int
    end: int
    written: str
    """The source as written in the text."""
    term: GlossaryTerm

    @property
    def target(self) -> str:
        """The expected translation of the term."""
        return UNSEEN.sub("", self.written) if self.term.kept else self.term.target

    @cached_property
    def forms(self) -> tuple[str, ...]:
        """The target and its further forms, also with an initial capital, as sentences begin.

        Also in capitals, if the source is in capitals in the text but not in the glossary.
        """
        if self.term.kept:
            return (self.target,)
        forms = self.target, *self.term.forms
        capital = tuple(form[:1].upper() + form[1:] for form in forms)
        if self.is_in_capitals:
            capital += tuple(form.upper() for form in forms)
        return tuple(dict.fromkeys((*forms, *capital)))

    @property
    def is_in_capitals(self) -> bool:
        """Whether the source is in capitals in the text but not in the glossary."""
        is_one = self.written.isupper() and len(self.written) > 1
        return is_one and not self.term.source.isupper()

    @property
    def alone(self) -> str:
        """The translation of a text that is only this term: the target, capitalised like it."""
        target, is_small = self.target, self.term.source[:1].islower()
        if not self.term.kept and self.is_in_capitals:
            return in_capitals(target)
        is_raised = is_small and self.written[0].isupper() and target.split()[0].islower()
        return target[:1].upper() + target[1:] if is_raised else target


class Glossary:
    """Terms to use in translations: `translator.translate(text, glossary=...)`."""

    def __init__(self, terms: Iterable[GlossaryTerm] | Mapping[str, str]) -> None:
        """Take terms, or targets by their sources. Raises InputError for a duplicate term."""
        if isinstance(terms, Mapping):
            terms = [GlossaryTerm(*pair) for pair in terms.items()]
        self._terms = dict[tuple[str, bool], GlossaryTerm]()
        for term in terms:
            if not isinstance(term, GlossaryTerm):
                raise TypeError(
                    f"A term is {term!r:.40}; give GlossaryTerm, or a mapping from sources to "
                    "targets."
                )
            self._add(term, "another")

    def _add(self, term: GlossaryTerm, other: str) -> None:
        """Add a term. Raises InputError for a duplicate, and calls the first one `other`."""
        before = self._terms.setdefault(term.key, term)
        if before is not term:
            same = before.target == term.target
            becomes = f", where {before.source!r} becomes {before.target!r}"
            what = f"repeats {other}" if same else f"contradicts {other}{becomes}"
            raise InputError(f"the term {what}; remove one of them")
        if len(self) > MOST:
            raise InputError(f"there are more than {MOST:,} terms; make two glossaries")

    @classmethod
    def read(cls, path: Path | str, languages: LangCodes = (None, None)) -> Self:
        """Read a file: TBX, or CSV if its name ends with .csv, or else tab-separated columns.

        If the first row names columns after the `languages`, they are read, and any others are not.
        Raises InputError, with the line, for a file that is not a glossary, and for a term that is
        empty, too long or a duplicate.
        """
        path = Path(path)
        as_csv, is_tbx = (path.suffix.lower() == suffix for suffix in (".csv", ".tbx"))
        content = read_file(path, termbases.LARGEST if is_tbx else LARGEST)
        return cls.parse(content, str(path), csv=as_csv, languages=languages)

    @classmethod
    def parse(
        cls, content: bytes, name: str, *, csv: bool = False, languages: LangCodes = (None, None)
    ) -> Self:
        """Parse the content of a file like `read`; messages call the file `name`."""
        if termbases.is_termbase(content):
            return cls._of_termbase(content, name, languages)
        glossary, lines = cls(()), dict[tuple[str, bool], int]()
        for number, cells in read_columns(content, name, languages, as_csv=csv):
            source, target, forms, case = cells
            try:
                if case.lower() not in {"", CASE}:
                    raise InputError(
                        f"the column for {CASE} has {case[:40]!r}; write {CASE}, or nothing, and "
                        "name the columns in the first line if they are others"
                    )
                term = GlossaryTerm(source, target, tuple(forms.split("|")), bool(case))
                glossary._add(term, f"line {lines.setdefault(term.key, number)}")
            except InputError as error:
                raise InputError(f"{name} line {number}: {error}.") from None
        odd = (lines[term.key] for term in glossary if term.forms == (CASE,) and not term.case)
        if number := next(odd, 0):
            warnings.warn(
                f"{name} line {number} has {CASE} in the third column, where it is another form of "
                "the target; if the source is to be found as it is written only, write it in the "
                "fourth.",
                stacklevel=2,
            )
        if not glossary:
            raise InputError(f"{name} has no terms; write a source, a tab and a target in a line.")
        return glossary

    @classmethod
    def _of_termbase(cls, content: bytes, name: str, languages: LangCodes) -> Self:
        """Read TBX: the targets of a term in one or several concepts are equally correct.

        What is written in capitals is an abbreviation, such as IT: found in capitals only.
        """
        terms = dict[tuple[str, bool], GlossaryTerm]()
        found = dict[tuple[str, bool], dict[str, None]]()
        for number, source, targets in termbases.read_termbase(content, name, languages):
            try:
                term = GlossaryTerm(source, targets[0], tuple(targets[1:]), source.isupper())
            except InputError as error:
                raise InputError(f"{name} line {number}: {error}.") from None
            key = term.key
            terms.setdefault(key, term)
            found.setdefault(key, {}).update(dict.fromkeys((term.target, *term.forms)))
        return cls(replace(term, forms=(*found[key],)[1:]) for key, term in terms.items())

    def __len__(self) -> int:
        return len(self._terms)

    def __iter__(self) -> Iterator[GlossaryTerm]:
        return iter(self._terms.values())

    @cached_property
    def content_hash(self) -> str:
        """A hash of all terms."""
        return sha256(repr(sorted(map(astuple, self))).encode()).hexdigest()

    @cached_property
    def _tree(self) -> tuple[dict[tuple[int, str], int], set[int]]:
        """A trie of all terms: the node after each node and token, and the nodes that end terms."""
        nodes, ends = dict[tuple[int, str], int](), set[int]()
        for source, _ in self._terms:
            node = 0
            for token in _TOKEN.findall(fold(source)):
                node = nodes.setdefault((node, token), len(nodes) + 1)
            ends.add(node)
        return nodes, ends

    def _stops(self, tokens: Sequence[re.Match[str]], first: int) -> list[int]:
        """Return where terms that begin at token `first` of a text may end, longest first."""
        (nodes, ends), node, stops = self._tree, 0, list[int]()
        for number in range(first, len(tokens)):
            after = nodes.get((node, tokens[number][0]))
            if after is None:
                break
            node = after
            if node in ends:
                stops.append(tokens[number].end())
        return stops[::-1]

    def find(self, text: str, protected: Sequence[Span] = ()) -> list[Occurrence]:
        """Find the terms of a text as whole words, from left to right, the longest at each place.

        Composed and decomposed letters count as the same, and so do both apostrophes and all white
        space. A part of a `protected` span, such as a URL, is not a term.
        """
        longest_last = sorted(protected, key=lambda span: span[1] - span[0])
        around = {place: span for span in longest_last for place in range(*span)}
        usual, places = _usual(text)
        folded, (nodes, _), end = fold(usual), self._tree, 0
        found, tokens = [], [*_TOKEN.finditer(folded)]
        for number, token in enumerate(tokens):
            start = token.start()
            if start < end or (0, token[0]) not in nodes or not is_boundary(usual, start):
                continue
            for stop in self._stops(tokens, number):
                term = self._terms.get((usual[start:stop], True)) or self._terms.get(
                    (folded[start:stop], False)
                )
                if term is None or not is_boundary(usual, stop):
                    continue
                span = places[start], places[stop]
                whole = around.get(span[0], span)
                if whole == span or whole[1] < span[1]:
                    found.append(Occurrence(*span, text[slice(*span)], term))
                    end = stop
                    break
        return found


def fold(text: str) -> str:
    """Return the text in lower case, with each character at its old position."""
    small = text.lower()
    if len(small) == len(text):
        return small
    return "".join(char.lower() if len(char.lower()) == 1 else char for char in text)


_UNUSUAL = re.compile(rf"[’‐‑]|\s\s|[^\S ]|{UNSEEN.pattern}")
_EQUAL = str.maketrans("’‐‑", "'--")


def _usual(text: str) -> tuple[str, Sequence[int]]:
    """Return the text in NFC, with ' for ’, one kind of hyphen, single spaces and no invisible
    characters, and each character's old position.
    """
    if not _UNUSUAL.search(text) and unicodedata.is_normalized("NFC", text):
        return text, range(len(text) + 1)
    seen = [n for n, char in enumerate(text) if not UNSEEN.match(char)]
    plain = UNSEEN.sub("", text)
    starts = [n for n in range(len(plain)) if not n or not _continues(plain[n - 1], plain[n])]
    parts, places = list[str](), list[int]()
    for start, end in pairwise([*starts, len(plain)]):
        some = plain[start:end]
        part = " " if some.isspace() else unicodedata.normalize("NFC", some).translate(_EQUAL)
        parts.append(part)
        places += (seen[min(start + n, end - 1)] for n in range(len(part)))
    return "".join(parts), [*places, len(text)]


def _continues(before: str, char: str) -> bool:
    """Return whether a character can form one letter or one space with the one before it."""
    joins = unicodedata.combining(char) or "\u1160" <= char <= "\u11ff"  # the latter in Korean
    return bool(joins) or (before.isspace() and char.isspace())


def is_boundary(text: str, place: int) -> bool:
    """Return whether no word continues across this position."""
    return not (0 < place < len(text) and joins(text[place - 1]) and joins(text[place]))


def is_spaced(text: str) -> bool:
    """Return whether a space precedes such a text in a sentence, by its first letter's script."""
    return not _UNSPACED_LETTER.match(text)


@lru_cache(4096)
def joins(char: str) -> bool:
    """Return whether a character forms a word with its neighbours."""
    word = char.isalnum() or unicodedata.category(char)[0] == "M" or char == "_"
    return word and not _UNSPACED_LETTER.match(char)


def in_capitals(form: str) -> str:
    """Return a form in capitals; ß becomes the capital ẞ."""
    return form.replace("ß", "ẞ").upper()
