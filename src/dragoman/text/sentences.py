"""Splitting a text into sentences, and an over-long text into chunks; both join without loss.

Cuts are made at ends of sentences if that suffices, else at clauses, else at spaces, else anywhere:
after Latin punctuation only before a space (3.14 stays whole), after Chinese punctuation anywhere.

The Tibetan ། ends clauses and lines of verse as often as sentences, which contain several of them
in corpora and published models, so it ends a clause here; ༎ ends a sentence. Thai and Lao have no
such mark.
"""

import re
from bisect import bisect_right
from collections.abc import Callable, Iterator
from unicodedata import category

from dragoman.text.spans import clings

SPACED_ENDS = ".!?…۔؟⸮։"
"""Marks that end a sentence before a space; the last four are Arabic and Armenian. The Greek
question mark is missing: elsewhere it is a semicolon."""
_NATIVE = "።፧፨।॥။។៕༎᱾"
UNSPACED_ENDS = f"。！？｡{_NATIVE}"
"""Marks that need no space; the native ones are of Ethiopia, India, Burma, Cambodia and Tibet."""

_CUTS = tuple(
    re.compile(pattern, re.DOTALL)
    for pattern in (
        rf"(?<![{SPACED_ENDS}])[{SPACED_ENDS}]++[\"'”’»)\]]*+(?=\s)\s*|[。！？｡…]+[”’」』）｣]*\s*"
        rf"|\n\s*|(?:[{_NATIVE}]|፡፡)+[”’»)\]]*\s*",  # ፡፡ is two marks of a word, written for ።
        r"(?<![,;:–—،؛፣፤၊།])[,;:–—،؛፣፤၊།]++(?=\s)\s*|[，；：、]\s*",
        r"\s+",
        r".",  # not inside a letter with its signs, or joined emoji
        r".",
    )
)
"""A text may be cut after each match; better places come first. Linear time: a run of marks is
tried once, from its beginning."""

_ABBREVIATION = re.compile(
    r"(?<![^\W_])(?:[^\W\d_]|\d{1,2}|Mr|Mrs|Ms|Dr|Prof|St|Mt|Gen|Sen|Gov|Rep|Capt|Col|Lt|Sgt|Rev|Hon"
    r"|Jr|Sr|vs|Inc|Ltd|Co|Corp|Hr|Fr|Mme|Mlle|Str|bzw)$"
)
"""Before a full stop: an initial, a German ordinal, or what a name follows."""

_GOES_ON = re.compile(r"\d+\s*(?:॥|।।)|(?:ល|បេ)\s*។")
"""After an end: the number of a verse, and the letters between two ។ that are "etc." in Khmer."""
_OF_LIST = re.compile(r"(?<!\S)\(?\d{1,2}$")

_OF_NUMBER = re.compile(
    r"(?<![^\W_])(?:[Nn]os?|[Nn]rs?|(?P<part>[Vv]ols?|[Ff]igs?|Bde?|Abb|Tab|Taf|Kap|[CK]at|Pl|Ch"
    r"|Eqs?|Secs?|Art|Inv|Acc|Ref|pp))$"
)
"""Before a full stop: what a number with letters follows. The number of a part may be Roman."""
_NUMBER = re.compile(
    r"(?:N[or]s?\.\s?)?(?:[A-Z]{1,3}[-–./]?|(?![AI] )[A-Z]{1,3}\.? )?\d|[IVX]{2,}(?![\w'’])"
)
_ROMAN = re.compile(r"(?!I [a-z])[IVXLC]+(?![\w'’])")


def sentences_of(text: str) -> list[str]:
    """Return the sentences of a text, as far as can be told, each with the white space after it.

    `"".join(sentences) == text`. In doubt a sentence continues: after "Mr.", an initial or an
    ellipsis, before a lower-case letter, and between "no." and O 1234.
    """
    ends = [match.end() for match in _CUTS[0].finditer(text) if _ends_sentence(text, match)]
    starts = [0, *ends]
    return [text[start:end] for start, end in zip(starts, [*ends, len(text)], strict=True)]


def _ends_sentence(text: str, match: re.Match[str]) -> bool:
    marks = match.group().rstrip()
    following = text[match.end() : match.end() + 4].lstrip("\"'“‘«„([¿¡「『（《")[:1]
    if not marks:  # a line feed
        return bool(following)
    before = text[max(0, match.start() - 8) : match.start()]
    if marks[0] in f"{UNSPACED_ENDS}፡":  # a sentence may continue after a quotation
        ended = following.isalnum() and marks[-1] in f"{UNSPACED_ENDS}፡…"
        goes_on = marks[0] not in "。！？｡" and _goes_on(before, marks, text, match.end())
        return ended and not (goes_on or _is_inside(text, match))
    if not following.isalpha() or following.islower() or marks[0] == "…":
        return False
    marks = marks.rstrip("\"'”’»)]")
    if marks not in {".", "۔"}:
        return bool(marks.strip(".۔"))
    return not (_is_abbreviated(before) or _is_of_number(before, text, match.end()))


def _goes_on(before: str, marks: str, text: str, end: int) -> bool:
    """Return whether marks follow a list number, precede a verse number, or stand for dots."""
    listed = len(marks) == 1 and marks != "॥" and _OF_LIST.search(before)
    return bool(listed or _GOES_ON.match(text, end) or marks.startswith("।।।"))


def _is_abbreviated(before: str) -> bool:
    """Return whether text ends in an abbreviation; a letter after a vowel sign is not one."""
    found = _ABBREVIATION.search(before)
    return (
        found is not None and category(before[found.start() - 1 : found.start()] or " ")[0] != "M"
    )


def _is_of_number(before: str, text: str, start: int) -> bool:
    """Return whether a full stop comes between "no" and its number: no. O 1234, vol. II."""
    found = _OF_NUMBER.search(before)
    of_part = found is not None and found["part"] and _ROMAN.match(text, start)
    return bool(found and (of_part or _NUMBER.match(text, start)))


def _is_inside(text: str, match: re.Match[str]) -> bool:
    """Return whether a mark is in a book title, or a straight quotation mark closes after it.

    If a text has an odd number of these, one after a digit stands for inches.
    """
    before = text[max(0, match.start() - NEAR) : match.start()]
    after = text[match.end() : match.end() + NEAR]
    quotes = before.count('"')
    if len(text) <= NEAR and text.count('"') % 2:
        quotes -= len(_INCHES.findall(before))
    if after.startswith('"') and quotes % 2:
        return True
    return before.rfind("《") > before.rfind("》") and "》" in after.partition("《")[0]


_INCHES = re.compile(r'\d"')
"""Straight quotation marks that may stand for inches: 27"."""
NEAR = 200
"""Maximum distance, in characters, of the beginning or end of a quotation or title."""


def split_long(text: str, limit: int, length: Callable[[str], int]) -> list[str]:
    """Split a text into chunks of `length(chunk.rstrip()) <= limit`, as few as good cuts allow.

    `"".join(chunks) == text`: the space after a chunk is at its end. A text within the limit is one
    chunk; a single character over the limit is also one chunk. `length` is expected to grow with
    the text.
    """
    if limit < 1:
        raise ValueError(f"limit is {limit}; it must be at least 1")
    return list(_parts(text, _CUTS, limit, length))


def _parts(
    text: str, cuts: tuple[re.Pattern[str], ...], limit: int, length: Callable[[str], int]
) -> Iterator[str]:
    """Yield parts within the limit, at the first kind of cut if possible, else at finer ones."""
    if not cuts or length(text.rstrip()) <= limit:
        yield text
        return
    ends = [match.end() for match in cuts[0].finditer(text)]
    if len(cuts) == 2:
        ends = [end for end in ends if end == len(text) or not clings(text, end)]
    if not ends or ends[-1] < len(text):
        ends.append(len(text))
    start = first = 0
    while first < len(ends):
        last = _furthest(text, start, ends, first, limit, length)
        if last < first:  # not even up to the next cut
            last = first
            yield from _parts(text[start : ends[last]], cuts[1:], limit, length)
        else:
            yield text[start : ends[last]]
        start, first = ends[last], last + 1


def _furthest(
    text: str, start: int, ends: list[int], first: int, limit: int, length: Callable[[str], int]
) -> int:
    """Return the index of the last of `ends[first:]` up to which the text is within the limit.

    Returns `first - 1` if there is none. The distance is doubled until it is too far, then halved:
    a long text is measured a few times, not once for each end.
    """

    def measure(end: int) -> int:
        return length(text[start:end].rstrip())

    reach = 1
    while first + reach < len(ends) and measure(ends[first + reach - 1]) <= limit:
        reach *= 2
    last = min(first + reach, len(ends))
    return bisect_right(ends, limit, first, last, key=measure) - 1
