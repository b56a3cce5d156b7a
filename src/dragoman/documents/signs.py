"""Text and tags written as Markdown, with a backslash before what would be read as another tag."""

import re
import unicodedata
from itertools import zip_longest

from dragoman.text.marked import Marked, Tag

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
