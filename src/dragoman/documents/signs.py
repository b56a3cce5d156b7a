"""Text and tags written as Markdown, with a backslash before what would be read as another tag.

Whether a translation is then read as it is meant is checked with the parser.
"""

import re
import unicodedata
from collections import Counter
from collections.abc import Container, Iterable, Iterator
from itertools import zip_longest
from typing import Any

from dragoman.documents.dialects import (
    LINE_END,
    PLAIN_TITLE,
    with_plain_code,
    with_plain_targets,
)
from dragoman.text.marked import Marked, Tag

TEXTS = {"Text", "Code", "InlineMath", "DisplayMath"}
"""Events with text that is read."""
MISREAD = "Markdown would read its translation as markup"
EMPHASIS = {"*": "em", "**": "strong", "~": "del", "~~": "del"}
"""Marks that cannot be empty or stand between a letter and a sign, and elements that can."""
_SIGNS = re.compile(
    r"\\(?=[!-/:-@\[-`{-~]|$)|[`\[\]~$|]|(?<!\s)\*|\*(?!\s)|(?<![^\W_])_|_(?![^\W_])|<(?=[A-Za-z/!?%])"
    r"|&(?=#?\w+;)|(?<=\s)#+$|\{(?=[{%])"
)
"""What would be read as markup if it were written unchanged."""
_OF_HEADING, _OF_MDX = (
    re.compile(rf"{_SIGNS.pattern}|(?<!\}})\}}$"),
    re.compile(rf"{_SIGNS.pattern}|[<{{]"),
)
"""The same for a heading, which may end with attributes, and for MDX."""
_FIRST = re.compile(r"\d{1,9}(?=[.)](?:\s|$))|(?=#{1,6}(?:\s|$)|[-+*:](?:\s|$)|>|[-*_=][\s*_=-]*$)")
"""The same at the start of a line."""


def written(marked: Marked, *, is_heading: bool = False, is_mdx: bool = False) -> str:
    """Write a paragraph or a heading."""
    signs = _OF_MDX if is_mdx else _OF_HEADING if is_heading else _SIGNS
    made, opened, copied, begins = list[str](), list[int](), [False], True
    for piece, following in zip_longest(marked.pieces, marked.pieces[1:], fillvalue=""):
        if isinstance(piece, Tag):
            made.append(piece.raw)
            if piece.kind == "open":
                opened.append(len(made) - 1)
                copied.append(copied[-1] or piece.kept)
            elif piece.kind == "close":
                copied.pop()
                after = following.raw if isinstance(following, Tag) else following
                _mend(made, opened, after[:1])
            begins = "\n" in piece.raw or (begins and not piece.raw)
            continue
        text = piece
        if not copied[-1]:
            text = signs.sub(r"\\\g<0>", text)
            if text.endswith("!") and isinstance(following, Tag) and following.raw == "[":
                text = f"{text[:-1]}\\!"
            if begins and (found := _FIRST.match(text)):
                text = f"{text[: found.end()]}\\{text[found.end() :]}"
        made.append(text)
        begins = False
    return "".join(made)


def written_alt(marked: Marked, label: str) -> str:
    """Write the text of a picture that is also its label."""
    return f"{written(marked)}][{label}"


def written_title(marked: Marked, end: str) -> str:
    """Write a title that ends with this sign."""
    signs = re.compile(rf"[\\`|$()<&{re.escape(end)}]")
    return marked.written(lambda text: signs.sub(r"\\\g<0>", text))


def _mend(made: list[str], opens: list[int], after: str) -> None:
    """Omit empty emphasis; write it as HTML if its marks would be read as text."""
    start = opens.pop()
    if made[start] not in EMPHASIS:
        return
    before = next((made[n][-1] for n in range(start - 1, -1, -1) if made[n]), "")
    inner = "".join(made[start + 1 : -1])
    beside = before == made[start][0] and opens[-1:] != [start - 1]  # other emphasis has ended
    if not inner:
        del made[start:]
    elif beside or not (_may_stand(before, inner[0]) and _may_stand(after, inner[-1])):
        name = EMPHASIS[made[start]]
        made[start], made[-1] = f"<{name}>", f"</{name}>"


def _may_stand(outside: str, inside: str) -> bool:
    """Return whether marks of emphasis are read as such between these two letters."""
    inner, outer = (
        bool(letter) and unicodedata.category(letter)[0] in "LMN" for letter in (inside, outside)
    )
    return not inside.isspace() and (inner or not outer)


def events_of(text: str) -> Iterator[tuple[str, str, Any, int, int]]:
    """Yield the parser's events: kind, name, data, and start and end in bytes."""
    import pyromark

    options = pyromark.Options
    chosen = options.ENABLE_TABLES | options.ENABLE_FOOTNOTES | options.ENABLE_STRIKETHROUGH
    chosen |= options.ENABLE_TASKLISTS | options.ENABLE_GFM | options.ENABLE_MATH
    chosen |= options.ENABLE_HEADING_ATTRIBUTES | options.ENABLE_YAML_STYLE_METADATA_BLOCKS
    chosen |= options.ENABLE_PLUSES_DELIMITED_METADATA_BLOCKS | options.ENABLE_DEFINITION_LIST
    for event, place in pyromark.events_with_range(text, options=chosen):
        kind, more = _only(event)
        name, more = _only(more) if kind in ("Start", "End") else (kind, more)
        yield kind, name, more, place["start"], place["end"]


def fault_of(raw: str, source: Marked, made: Marked, *, end: str = "") -> str:
    """Return why a text cannot be written: Markdown would read different letters.

    The same applies to marks of emphasis that have their partners in another text. `end` is a
    suffix of `raw` that is not part of the text.
    """
    raw = raw.removesuffix(end)
    labels = {tag.raw[1:] for tag in source.tags if tag.raw.startswith("][")}
    text = source.text
    formulas = {text[start:end] for start, end in source.kept}
    before, after = (_read(text, labels, formulas) for text in (f"x {raw}", written(made)))
    same = before + _letters(made.text) == after + _letters(f"x{text}")
    tags = source.trimmed()[1].tags  # those that may move
    is_cut = any(tag.kind == "void" and tag.raw.strip() in EMPHASIS for tag in tags)
    return "" if same and not is_cut else MISREAD


def fault_of_title(_raw: str, _source: Marked, made: Marked) -> str:
    """Return why the title of a note cannot be written: its tool may read a sign as markup."""
    return "" if re.fullmatch(f"{PLAIN_TITLE}*", made.written()) else MISREAD


def _read(paragraph: str, labels: Iterable[str], formulas: Container[str]) -> Counter[str]:
    """Return the letters of a paragraph in which links have these labels."""
    targets = "".join(f"\n\n{label}: x" for label in labels)
    plain = with_plain_targets(LINE_END.sub(" ", paragraph))
    plain = with_plain_code(plain, formulas=formulas)
    events = events_of(plain + targets)
    return _letters("".join(more for _, name, more, *_ in events if name in TEXTS))


def _letters(text: str) -> Counter[str]:
    return Counter("".join(text.split()))


def _only(event: Any) -> tuple[str, Any]:  # noqa: ANN401 -- a name, or it and more in a dict
    ((name, more),) = event.items() if isinstance(event, dict) else [(event, None)]
    return name, more
