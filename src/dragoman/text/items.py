"""The numbers of list items, before their text: `2)`, `（二）`, `二、`, `②`.

A model drops such a number, or reads it as a quantity. `2.` may also begin a sentence, as in
"2. Liga", except in scripts without capitals, or if the same document has the numbers before it.
"""

import re
import unicodedata
from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from dragoman.text.glossary import UNSPACED
from dragoman.text.marked import CIRCLED
from dragoman.text.spans import Span

_HAN = "[一二三四五六七八九]?十[一二三四五六七八九]?|[一二三四五六七八九]"
_SIGN = re.compile(
    rf"(?P<bracket>[(（]?)(?:(?P<number>\d{{1,3}}|{_HAN})|[A-Za-z])(?P<end>[)）])"
    rf"|(?P<counted>\d{{1,3}}|{_HAN})(?P<mark>[、．.])|{CIRCLED.pattern}"
)
_APART = re.compile(rf"[\s{UNSPACED}“‘「『《]")
"""What follows a number that does not end in a wide mark."""
_GOES_ON = re.compile(r"\s*(?:(?:and|or|to|und|oder|bis)\b|[-–,.;:和与及或至到、，。)）(（①-⑳])")
"""What follows a number that is part of a sentence."""
_NUMBERED = re.compile(r"(?P<sign>(?P<number>\d{1,3})\.\s+)\W*(?P<words>[^\W\d_]\w*(?: \w+)?)")
_MONTH = re.compile(
    r"jan(uar)?|jänner|feb(ruar)?|märz|mars|marts|april|ma[ij]|juni?|juli?|aug(usti?)?"
    r"|sept?(ember)?|okt(ober)?|nov(ember)?|de[zs](ember)?",
    re.IGNORECASE,
)


def sign_of(text: str) -> Span | None:
    """Return the span of an item's number with the white space after it; None if it may have
    another meaning, or if no text follows.
    """
    start = len(text) - len(text.lstrip())
    found = _SIGN.match(text, start)
    rest = "" if found is None else text[found.end() :]
    if found is None or not any(map(str.isalpha, rest)) or _GOES_ON.match(rest):
        return None
    if found[0][-1].isascii() and not _APART.match(rest):
        return None
    if found["mark"] == "." and not any(map(_is_without_capitals, rest)):
        return None
    following = re.match(rf"\d+|{_HAN}|两", rest)
    if found["mark"] and following and (following[0].isdecimal() or _follows(found, following[0])):
        return None  # 1.5, and 三、四个人
    return start, found.end() + len(rest) - len(rest.lstrip())


def _is_without_capitals(char: str) -> bool:
    return unicodedata.category(char) == "Lo" and char not in "ªº"


def _follows(found: re.Match[str], number: str) -> bool:
    return _value("二" if number == "两" else number) > _value(found["counted"])


def _value(number: str) -> int:
    """Return the value of a number in digits, or in Chinese characters up to 99."""
    if number.isdecimal():
        return int(number)
    tens, ten, ones = number.rpartition("十")
    values = [int(unicodedata.numeric(char)) if char else 0 for char in (tens, ones)]
    return 10 * ((values[0] or 1) if ten else 0) + values[1]


def in_digits(sign: str) -> str:
    """Return an item's number in the form of languages not written in Chinese characters."""
    found = _SIGN.fullmatch(sign.rstrip())
    if found is None or sign.isascii():
        return sign
    number = found["number"] or found["counted"]
    if number is None:
        return sign if found["end"] is None else f"{unicodedata.normalize('NFKC', sign).rstrip()} "
    return f"{'(' * bool(found['bracket'])}{_value(number)}{')' if found['end'] else '.'} "


class Item(NamedTuple):
    """The beginning of a text that may be an item of a list."""

    number: int
    words: str
    """The first one or two words after the number."""
    span: Span
    """The span of the number, with the white space after it."""


def numbered(text: str) -> Item | None:
    """Return the item that the text begins with: a number with a full stop that is not a date."""
    found = _NUMBERED.match(text)
    if found is None or _MONTH.fullmatch(found["words"].split()[0]):
        return None
    return Item(int(found["number"]), found["words"], found.span("sign"))


def in_lists(texts: Iterable[tuple[int, Item]]) -> Iterator[tuple[int, Span]]:
    """Yield the items of a document that are in lists, each with its position.

    Their numbers count up from 0 or 1, perhaps with other lists in between. If all begin with the
    same words, they may be the first, second and third of something, and are skipped.
    """
    waiting, lists = defaultdict[int, list[list[tuple[int, Item]]]](list), []
    for place, item in texts:
        known = waiting[item.number]
        if not known and item.number <= 1:
            lists.append(list[tuple[int, Item]]())
            known.append(lists[-1])
        if known:
            waiting[item.number + 1].append(known.pop())
            waiting[item.number + 1][-1].append((place, item))
    for items in lists:
        if len({item.words for _, item in items}) > 1:
            yield from ((place, item.span) for place, item in items)
