"""What numbers an item of a list, before its text: `2)`, `（二）`, `二、`, `②`.

A model loses it, or reads it as a quantity. `2.` may also begin a sentence, as in "2. Liga", but in
scripts without capitals, and where the numbers before it stand in the same document.
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
"""What stands behind one that does not end in a wide mark."""
_GOES_ON = re.compile(r"\s*(?:(?:and|or|to|und|oder|bis)\b|[-–,.;:和与及或至到、，。)）(（①-⑳])")
"""What follows a number of an item that is a part of a sentence."""
_NUMBERED = re.compile(r"(?P<sign>(?P<number>\d{1,3})\.\s+)\W*(?P<words>[^\W\d_]\w*(?: \w+)?)")
_MONTH = re.compile(
    r"jan(uar)?|jänner|feb(ruar)?|märz|mars|marts|april|ma[ij]|juni?|juli?|aug(usti?)?"
    r"|sept?(ember)?|okt(ober)?|nov(ember)?|de[zs](ember)?",
    re.IGNORECASE,
)


def sign_of(text: str) -> Span | None:
    """Where a text has the number of an item, and the white space after it; None where it may have
    another meaning, and where no text follows.
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
    """The value of a number in digits, or of one up to 99 in Chinese characters."""
    if number.isdecimal():
        return int(number)
    tens, ten, ones = number.rpartition("十")
    values = [int(unicodedata.numeric(char)) if char else 0 for char in (tens, ones)]
    return 10 * ((values[0] or 1) if ten else 0) + values[1]


def in_digits(sign: str) -> str:
    """A number of an item as languages have it that are not written in Chinese characters."""
    found = _SIGN.fullmatch(sign.rstrip())
    if found is None or sign.isascii():
        return sign
    number = found["number"] or found["counted"]
    if number is None:
        return sign if found["end"] is None else f"{unicodedata.normalize('NFKC', sign).rstrip()} "
    return f"{'(' * bool(found['bracket'])}{_value(number)}{')' if found['end'] else '.'} "


class Item(NamedTuple):
    """What a text begins with that may be an item of a list."""

    number: int
    words: str
    """The first one behind it, or two."""
    span: Span
    """Where the number stands, with the white space after it."""


def numbered(text: str) -> Item | None:
    """What the text begins with, if that is a number with a full stop, and no date."""
    found = _NUMBERED.match(text)
    if found is None or _MONTH.fullmatch(found["words"].split()[0]):
        return None
    return Item(int(found["number"]), found["words"], found.span("sign"))


def in_lists(texts: Iterable[tuple[int, Item]]) -> Iterator[tuple[int, Span]]:
    """Those of the texts of a document, each with its place, that are in lists.

    Their numbers go on from 0 or 1, perhaps with other lists between them; but if all begin with
    the same words, they may be the first, second and third of something.
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
