"""Terms of a termbase in TBX (ISO 30042): versions 2 and 3, Basic, Min and other dialects."""

import re
import warnings
from collections.abc import Iterator, Mapping
from itertools import chain
from operator import itemgetter

from dragoman.errors import InputError
from dragoman.files.xml import CHUNK, Element, cut_elements
from dragoman.languages import LangCodes, base_of, resolve
from dragoman.wording import counted

LARGEST = 1 << 26
"""Maximum bytes of a termbase: its markup takes most of them."""
MOST = 100
"""Maximum number of terms of a concept in a language: each gets all targets."""
_ROOT = re.compile(rb"(?is)(?:\xef\xbb\xbf|\xff\xfe|\xfe\xff)?\s*<.*?(?<=<)(?:martif|tbx)\b")
_BEGINNING = 4096
"""Number of bytes in which the root element begins."""
_CONCEPTS = {"termEntry", "conceptEntry", "entry"}
_LANGUAGES = {"langSet", "langSec", "langGroup"}
_STATUS = re.compile("(?i)(administrative|normative|term)(Status|Authorization)")
_PREFERRED = re.compile("(?i)preferred")
_AVOIDED = re.compile("(?i)deprecated|superseded|obsolete|notRecommended|forbidden|rejected")
_NEVER = 2
_REGION = re.compile(r"[-_](?:[A-Za-z]{2}|\d{3})\b")


def is_termbase(content: bytes) -> bool:
    """Return whether the content of a file is TBX, in any encoding."""
    return _ROOT.match(content[:_BEGINNING].replace(b"\0", b"")) is not None


def read_termbase(
    content: bytes, name: str, languages: LangCodes
) -> Iterator[tuple[int, str, list[str]]]:
    """Yield the terms of each concept in the source language, of all regions unless it names one:
    their line, the term, and the terms in the target language, those that are preferred first.

    Terms that are deprecated, superseded or the like are no targets. Warns about concepts without a
    term in one of the languages. Raises InputError if the file is not well-formed, and if it is not
    clear, or not true, that it is in these languages.
    """
    concepts, line = list[tuple[int, dict[str, list[tuple[int, str]]]]](), 1
    chunks = (content[start : start + CHUNK] for start in range(0, len(content), CHUNK))
    for raw, element in cut_elements(chunks, _CONCEPTS, name):
        if element is not None:
            white = len(raw) - len(raw.lstrip())
            number, terms = line + raw[:white].count(b"\n"), dict[str, list[tuple[int, str]]]()
            for each in element.elements:
                code = each.attributes.get("xml:lang")
                if code and each.local in _LANGUAGES:
                    terms.setdefault(code, []).extend(_terms(each))
            if any(len(each) > MOST for each in terms.values()):
                raise InputError(
                    f"{name} line {number}: the concept has more than {MOST} terms in a language; "
                    "divide it."
                )
            concepts.append((number, terms))
        line += raw.count(b"\n")
    source, target = _named(languages, dict.fromkeys(chain(*(each for _, each in concepts))), name)
    unread, one_region = 0, _REGION.search(source) is not None
    for number, terms in concepts:
        written, best = resolve(target, terms), resolve(source, terms)
        read = [best] if one_region else [code for code in terms if resolve(source, [code])]
        sources = [*chain(*(terms[code] for code in read if code and code != written))]
        found = terms.get(written or "-", ())
        targets = [term for rank, term in sorted(found, key=itemgetter(0)) if rank < _NEVER]
        unread += not (sources and targets)
        yield from ((number, term, targets) for _, term in sources if targets)
    if unread:
        what = f"{counted(unread, 'concept')} not read, as one of the two languages is not in"
        warnings.warn(f"{name} has {what} {'it' if unread == 1 else 'them'}.", stacklevel=4)


def _named(languages: LangCodes, spoken: Mapping[str, None], name: str) -> tuple[str, ...]:
    """Return the source and target languages: those given, or else the only others of the file."""
    given = [*filter(None, languages)]
    others = [code for code in spoken if base_of(code) not in map(base_of, given)]
    is_clear = len(given) + len(others) == 2 or len(given) == 2
    if not (is_clear and all(resolve(code, spoken) for code in given)):
        raise InputError(
            f"{name} has terms in {', '.join(spoken) or 'no language'}; give a source and a target "
            "language that are among these."
        )
    rest = iter(others)
    return tuple(code or next(rest) for code in languages)


def _terms(section: Element) -> Iterator[tuple[int, str]]:
    """Yield the terms of a concept in a language, after 0 if they are preferred, `_NEVER` if they
    are to be avoided, else 1.
    """
    for group in section.elements:
        inside = [*_inside(group)]
        term = next((" ".join(each.text.split()) for each in inside if each.local == "term"), "")
        notes = (each for each in inside if _STATUS.search(each.attributes.get("type", each.local)))
        status = " ".join(each.text for each in notes)
        if term:
            yield _NEVER if _AVOIDED.search(status) else not _PREFERRED.search(status), term


def _inside(element: Element) -> Iterator[Element]:
    for each in element.elements:
        yield each
        yield from _inside(each)
