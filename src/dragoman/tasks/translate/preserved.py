r"""What a translation should preserve: numbers, URLs, placeholders, tags and emoji.

Each kind is compared as a multiset. Numbers are compared without separators and in the digits of
any script: 1,234.56 and 1.234,56 are 1234 and 56. Other languages write small numbers as words, so
one that is only missing is ignored unless it is a fraction, and large ones with words (1.5 million,
150万), which are always ignored. The rules are measured on reference translations
(docs/decisions.md).
"""

import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from html.entities import name2codepoint
from typing import Any

from dragoman.text.glossary import UNSPACED
from dragoman.text.spans import Span

PRESERVED = ("urls", "tags", "placeholders", "symbols", "numbers")
"""The flags; text of one kind is not searched for the next ones."""

_PICTURE = (  # with its variation, skin colour, and tags, as in flags of regions (UTS 51)
    "(?:[⌀-⏿■-➿⬀-⯿\U0001f000-\U0001faff][\ufe0e\ufe0f]?|[©®‼⁉™ℹ↔-↪Ⓜ⤴⤵〰〽㊗㊙]\ufe0f)"
    "[\U0001f3fb-\U0001f3ff]?[\U000e0020-\U000e007f]*"
)
_BRANCH = r"(?:[^{}]++|\{[^{}]*+\})*+"
for _ in range(3):  # four levels of braces
    _BRANCH = rf"(?:[^{{}}]++|\{{{_BRANCH}\}})*+"
_FORMS = rf"\{{\s*[^\s{{}},]+\s*,\s*(?:plural|select|selectordinal|choice)\s*,{_BRANCH}\}}"
"""A choice in an ICU message, `{n, plural, one {# file} other {# files}}`, possibly nested."""
_FORMATTED = r"\{\s*[^\s{},]+\s*,\s*(?:number|date|time|spellout|ordinal|duration)\s*(?:,[^{}]*)?\}"
"""An argument with its format, `{p, number, percent}`."""
_NO_LETTER = rf"(?!(?u:[^\W\d_{UNSPACED}]))"
"""Not before a letter of a script with spaces: %80a is 80 % in Basque, and %5'i in Turkish."""
_BESIDE, _SPACED = r"(?u:[\w:])", rf"(?u:[^\W{UNSPACED}]|:)"
_NAMED = r":(?!(?:https?|s?ftp|file|mailto|ssh|tcp|udp|localhost):)(?:[a-z][a-z0-9_+-]+|[+-]1|100):"
_EMOJI = rf"(?<!{_BESIDE}){_NAMED}(?!{_SPACED})|(?<!{_SPACED}){_NAMED}(?!{_BESIDE})"
"""`:smile:`, neither next to a letter of a script with spaces nor between others, and not the name
of a protocol (端口:http: 8080)."""
_VALUE = rf"(?<![^\s\"'(>“„«])(?<!\d ):[a-z]\w+(?!{_SPACED})"
"""`:name`, as in Laravel: an ordinary colon directly follows a word, or precedes a space."""
_NOTE = rf"(?u:(?<=[^\W\d_])(?:\[\d{{1,3}}\]|[†‡])(?![^\W{UNSPACED}]|[\[(]|\.\w))"
"""The mark of a footnote, directly after a word."""
_PATTERNS = {
    "urls": r"(?:https?://|ftp://|www\.)[!-;=?-~]*[\w/#&=]\}?|(?<![\w.+-])[\w.+-]+@[\w-]+(?:\.[\w-]+)+",
    "tags": r"</?[A-Za-z][\w:.-]*(?:[\s=][^<>]*)?/?>|</?\d+/?>",
    "placeholders": (
        rf"{_FORMS}|{_FORMATTED}|\{{%[^{{}}]*%\}}|<%[^<]*?%>|"  # the last two are for templates
        r"\{\{\{?[^{}]*\}\}\}?|\$\{[^{}]*\}|[%#]?\{[\w.:!#<>^+-]*\}|\{ ?\$[\w-]+ ?\}"
        r"|\$t\([^()]*\)|\$\([a-z][\w~-]*\)|\$[A-Z][A-Z\d_@]+\$|(?<![\w$])\$[A-Za-z_]\w*\$(?!\w)"
        r"|(?<![\w$])(?<!\d )\$[a-z_]\w+|@(?:\.\w+)?:[\w.]*\w"
        rf"|{_EMOJI}|{_VALUE}"
        rf"|&(?:#\d+|#[xX][\da-fA-F]+|apos|{'|'.join(name2codepoint)});|%%"
        r"|%(?:\d+\$)?#@\w+@|(?<![\w%])(?<!\d )%[A-Za-z_]\w+(?:[.-]\w+)*%(?![\w%])"
        rf"|(?<![\d%])%(?:\(\w+\)|\d+\$)?[-+#]*\d*(?:\.\d+)?(?:hh?|ll?|z)?[sdiufgxXc@]{_NO_LETTER}"
        rf"|(?<![\d%])(?<!\d )%(?:-?|\(\w+\))[A-Za-z]{_NO_LETTER}"  # such as %H in formats of times
    ),
    "symbols": (  # country flags, keycaps, and pictures, which joiners can combine
        "[\U0001f1e6-\U0001f1ff]{2}|[0-9#*]\ufe0f?\u20e3"
        rf"|{_PICTURE}(?:\u200d{_PICTURE})*|{_NOTE}"
    ),
}
_KINDS = {kind: re.compile(pattern, re.ASCII) for kind, pattern in _PATTERNS.items()}
_CHOICE = re.compile(_FORMS, re.ASCII)
_ANY = re.compile(rf"[\d<{{%@$&]|:[a-z]|://|www\.|{_PATTERNS['symbols']}")
"""Matches in every text that contains one of these kinds, or a number."""
_ATTRIBUTES = re.compile(r"^(</?[\w:.-]+)\s.*?(/?>)$", re.ASCII | re.DOTALL)
_VARIATIONS = str.maketrans("", "", "\ufe0e\ufe0f")
_SEPARATOR = "[.,٬'’ \u00a0\u2009\u202f]"
_NUMBER = re.compile(
    rf"(?<!\d)(?<!\d[.,])[1-9]\d{{0,2}}({_SEPARATOR})(?:\d{{2,3}}\1){{0,6}}\d{{3}}(?!\d)|\d+"
)
"""Digits in groups of three, or of two as in India, or any number of digits. All patterns here take
linear time."""
_DECIMAL = re.compile(
    rf"(?<![\d.,])(?!\d\d?\.\d\d?\.)(\d++)[.,٫](\d++)(?!{_SEPARATOR}?\d)", re.ASCII
)
"""A number with a fraction; not a day and month, 3.10., as other languages write that in words."""
_HALF = re.compile("hal[bfv]|quarter|viert|dritt|third|半|刻|分之|[¼-¾⅐-⅞]", re.IGNORECASE)
"""What a fraction may be written as."""
_WIDE = re.compile("(?<=[０-９])[，．](?=[０-９])")
"""Full-width separators between full-width digits; between others, they separate two numbers."""
_SCALED = re.compile(
    r"\d\s?-?(?:[万亿萬億千百兆]|(?:[mb]illi|trilli|thousand|tausend|mio|mrd|lakh|crore|bn\b|m\b|k\b))",
    re.IGNORECASE,
)
"""A number that continues in words."""
_METRES = re.compile(r"(\d\s?-?)(?:m\b|米)", re.IGNORECASE)
"""Metres, not millions, if both texts have them."""
SAID = 10
"""Smallest number that is a difference if another one replaced it."""
WRITTEN = 100
"""Smallest number that is a difference if it is missing or replaced any other: few languages write
it as a word."""


def differences(source: str, translation: str) -> set[str]:
    """Return the kinds of `PRESERVED` in which a translation differs from its source."""
    if not _ANY.search(source) and not _ANY.search(translation):
        return set()  # as for most lines
    (ours, source), (theirs, translation) = _parts(source), _parts(translation)
    found = {kind for kind in _KINDS if _names(ours[kind]) != _names(theirs[kind])}
    return found | ({"numbers"} if _numbers_differ(source, translation) else set())


def missing(source: str, translation: str) -> list[Span]:
    """Return the spans of the source that `differences` finds missing in the translation."""
    spans, told = list[Span](), differences(source, translation)
    if not told:
        return spans
    (ours, source), (theirs, translation) = _parts(source), _parts(translation)
    for kind in told - {"numbers"}:
        spans += (match.span() for match in _beyond(ours[kind], _names(theirs[kind]), _name))
    if "numbers" not in told:
        return spans
    if lost := _lost_fractions(source, translation):
        return [*spans, *lost]
    numbers = _beyond(_NUMBER.finditer(_in_ascii(source)), _numbers(translation), _number)
    return [*spans, *(match.span() for match in numbers if _number(match) >= SAID)]


def protected(text: str) -> list[Span]:
    """Return the spans of URLs, addresses, tags, placeholders and emoji; none overlap."""
    if not _ANY.search(text):
        return []  # as for most lines
    return [match.span() for some in _parts(text)[0].values() for match in some]


def _parts(text: str) -> tuple[dict[str, list[re.Match[str]]], str]:
    """Return the matches of each kind in a text, and the text with these blanked out."""
    found = dict[str, list[re.Match[str]]]()
    for kind, pattern in _KINDS.items():
        found[kind] = [*pattern.finditer(text)]
        text = pattern.sub(lambda match: " " * len(match[0]), text)
    return found, text


def _beyond(
    matches: Iterable[re.Match[str]], there: Counter[Any], value_of: Callable[[re.Match[str]], Any]
) -> Iterator[re.Match[str]]:
    """Yield the matches in excess of `there`; of those with equal values, the last ones."""
    left = Counter(there)
    for match in matches:
        left[value_of(match)] -= 1
        if left[value_of(match)] < 0:
            yield match


def count_numbers(text: str) -> int:
    """Return how many numbers a text contains."""
    return _numbers(text).total()


def of_kind(kind: str, text: str) -> list[Span]:
    """Return the spans in a text that belong to a kind of `PRESERVED` other than numbers."""
    return [match.span() for match in _KINDS[kind].finditer(text)]


def forms(text: str) -> Iterator[str]:
    """Return the choices of a form in a text, `{n, plural, ...}` or `{x, select, ...}`."""
    return (m[0] for m in _CHOICE.finditer(text)) if "{" in text else iter(())


def _names(matches: Iterable[re.Match[str]]) -> Counter[str]:
    return Counter(map(_name, matches))


def _name(match: re.Match[str]) -> str:
    """Return the matched text, but of a tag only its name, as attributes may be translated.

    Variation selectors, which choose whether a symbol is in colour, are removed.
    """
    return _ATTRIBUTES.sub(r"\1\2", match[0]).translate(_VARIATIONS)


def _numbers_differ(source: str, translation: str) -> bool:
    texts = [source, translation]
    if all(map(_METRES.search, texts)):
        texts = [_METRES.sub(r"\1", text) for text in texts]
    if any(map(_SCALED.search, texts)):
        return False
    before, after = _numbers(source), _numbers(translation)
    missing, extra = max(before - after, default=0), max(after - before, default=0)
    replaced = bool(before - after) and extra >= WRITTEN
    said = missing >= SAID and extra >= SAID
    lost = _lost_fractions(source, translation) or _lost_fractions(translation, source)
    return missing >= WRITTEN or replaced or said or bool(lost) or _one_for_one(before, after)


def _lost_fractions(source: str, translation: str) -> list[Span]:
    """Return the spans of decimals that lost their fraction, if no other number differs."""
    before, after = _numbers(source), _numbers(translation)
    if not after < before or _HALF.search(translation):
        return []
    decimals = _DECIMAL.finditer(_in_ascii(source))
    kept = Counter(_DECIMAL.findall(_in_ascii(translation)))
    lost = {m.span(): int(m[2][:100]) for m in _beyond(decimals, kept, re.Match.groups)}
    is_all = before - after <= Counter(lost.values())
    return [span for span, fraction in lost.items() if fraction and is_all]


def _one_for_one(before: Counter[int], after: Counter[int]) -> bool:
    """Return whether one number differs and is from 1 to 9 in both, or in one of them.

    In the latter case the greater one begins with it, or there is no other number: otherwise, names
    of months and numbers in words come and go. 0 and a difference of 12, as in times of day, do not
    count.
    """
    differ = [*(before - after).elements(), *(after - before).elements()]
    if before.total() != after.total() or len(differ) != 2:
        return False
    small, large = sorted(differ)
    longer = before.total() == 1 or str(large).startswith(str(small))
    return 0 < small < SAID and (large < SAID or (longer and large - small != 12))


def _numbers(text: str) -> Counter[int]:
    return Counter(map(_number, _NUMBER.finditer(_in_ascii(text))))


def _in_ascii(text: str) -> str:
    """Return the text with digits and full-width separators in ASCII, in the same places."""
    if text.isascii():
        return text
    text = _WIDE.sub(lambda match: "," if match[0] == "，" else ".", text)
    return "".join(str(unicodedata.decimal(c, c)) for c in text)


def _number(match: re.Match[str]) -> int:
    return int(re.sub(r"\D", "", match[0])[:100])
