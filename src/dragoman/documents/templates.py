"""Code of other languages inside text: templates.

Jinja, Liquid, Twig, Handlebars, Go, Hugo, ERB, Vue and MDX. Printed code, `{{ name }}`, is a word
that is copied; a comment is not part of the sentence; a statement is a tag, which encloses the text
between it and its end: `{% if a %}...{% endif %}`. All are restored letter for letter.
"""

import re
from collections.abc import Iterable, Iterator, Sequence

from dragoman.text.glossary import joins
from dragoman.text.marked import Tag, verbatim

Named = tuple[str, str | Tag]
"""A piece of a sentence and its name, which is a space for text."""


def _between(begin: str, end: str, other: str = "(?!)") -> str:
    """Return a pattern from `begin` to `end`, without another `begin` inside, or `other`.

    A sign directly before an end tag, as in <code>{{</code>, begins nothing.
    """
    return rf"{begin}(?!</)(?:(?!{begin}|{end}|{other})(?s:.))*+{end}"


_BLANK = r"\n[ \t>]*+\r?\n"
_APART = rf"{_BLANK}|</(?:code|h[1-6]|li|p|t[dh])\b|\n(?:[-+*]|#{{1,6}})[ \t]"
"""What ends a sentence; code inside a sentence cannot contain it."""
_COMMENT = "|".join(
    _between(*edges)
    for edges in (
        (r"\{\{~?!--", r"--~?\}\}"),
        (r"\{\{-?[ ]?/\*", r"\*/[ ]?-?\}\}"),
        (r"\{\{~?!", r"\}\}"),
        (r"\{#(?![}\w-]+\})", r"#\}"),
        (r"\{/\*", r"\*/\}"),
        ("<%#", "%>"),
        ("<%--", "--%>"),
        (r"\{%-?[ ]?comment[ ]?-?%\}", r"\{%-?[ ]?endcomment[ ]?-?%\}"),
    )
)
_STATEMENT = "|".join(
    (
        _between(r"\{\{<(?!/\w+>(?!\}\}))", r">\}\}", _BLANK),
        _between(r"\{\{%", r"%\}\}", _BLANK),
        _between(r"\{%", r"%\}", _APART),
        _between("<%(?![=%])", "%>", _BLANK),
        r"\{\{[-~]?[ ]?(?:[#/^>][^{}]*+|else\b[^{}]*+)\}\}",
    )
)
_PRINTED = "|".join(
    (
        r"\$?" + _between(r"\{\{", r"\}\}", _APART) + r"\}?",
        _between("<%=", "%>", _BLANK),
        r"\$\{(?!%|</)[^{}\r\n]*+\}",
    )
)
CODE = rf"(?:{_COMMENT}|{_STATEMENT}|{_PRINTED})"
"""Any of these. No pattern here has groups."""
LINES = rf"(?m:^)[ \t]*+(?:(?:{_COMMENT}|{_STATEMENT})[ \t]*+)++(?=[\r\n]|\Z)"
"""A line that contains only statements and comments."""
_CODE = re.compile(CODE)
_KIND = re.compile(rf"(?P<comment>{_COMMENT})|(?P<statement>{_STATEMENT})|{_PRINTED}")
_NAME = re.compile(
    r"(?:\{\{[<%]|\{%|<%|\{\{)[-~+]?\s*+(?:(?P<end>end_?|/)|[#^>])?\s*+(?P<name>[^\s<>{}%/]*)"
)
_OF_GO = re.compile(r"\{\{-?\s*+(?:(?P<begin>(?:if|range|with|block|define)\s)|end\s*+-?\}\})")
_SILENT = re.compile(
    "assign|autoescape|block|break|cache|call|capture|case|continue|cycle|decrement|default|do|"
    "extends|filter|for|form|from|if|ifchanged|import|increment|layout|load|macro|paginate|raw|set|"
    r"spaceless|switch|tablerow|unless|verbatim|with|\."
)
"""Statements that print nothing."""
_BRANCHES = ("elif", "else", "elseif", "elsif", "empty", "when")
COPIED, STATEMENT = "{{", "{%"
"""The name of printed code, and the prefix of all other names of code."""
_GO = f"{STATEMENT}."
"""The name of Go's statements."""
_LINE_END = re.compile(r"\s*\n\s*")


def pieces_of(text: str) -> Iterator[Named]:
    """Yield a text and the code in it, for `settled`."""
    place = 0
    for found in _CODE.finditer(text):
        yield " ", text[place : found.start()]
        yield code_at(text, *found.span())
        place = found.end()
    yield " ", text[place:]


def code_at(text: str, start: int, end: int) -> tuple[str, Tag]:
    """Return the code at a place of a text; anything else there is copied."""
    raw = text[start:end]
    kind = _KIND.fullmatch(raw)
    if kind and kind["comment"]:
        return STATEMENT, Tag(raw)
    if go := _OF_GO.match(raw):
        return _GO, Tag(raw, "open" if go["begin"] else "close")
    name = _NAME.match(raw) if kind and kind["statement"] else None
    around = text[max(0, start - 1) : start], text[end : end + 1]
    is_in_word = raw[1] == "%" and all(around) and all(map(joins, around))
    if name is None or (is_in_word and name["name"] not in _BRANCHES):
        return COPIED, Tag(raw)  # as in dog{% if n %}s{% endif %}
    if name["name"] in _BRANCHES:
        return STATEMENT, Tag(raw, shown="" if any(map(str.isspace, around)) else " ")
    return STATEMENT + name["name"], Tag(raw, "close" if name["end"] else "open")


def inner(pieces: Sequence[Named]) -> slice:
    """Return the pieces without white space, comments and statements at the edges of a sentence.

    A statement whose partner is in the sentence is part of it, and so is a shortcode.
    """
    partners = _partners(pieces)

    def is_edge(name: str, piece: str | Tag) -> bool:
        if isinstance(piece, str):
            return not piece.strip()
        is_code = name.startswith(STATEMENT) and not _may_print(name, piece)
        return is_code and name not in partners[piece.kind]

    inside = [number for number, each in enumerate(pieces) if not is_edge(*each)]
    return slice(inside[0], inside[-1] + 1) if inside else slice(0, 0)


def settled(pieces: Iterable[Named]) -> Iterator[Named]:
    """Yield the pieces of a sentence, with printed code copied.

    So is a statement inside it that has no end there and prints something: `{% include a %}`.
    """
    items = [*pieces]
    within, partners = inner(items), _partners(items)
    for number, (name, piece) in enumerate(items):
        if isinstance(piece, str) or not name.startswith((COPIED, STATEMENT)):
            yield name, piece
            continue
        word = name.removeprefix(STATEMENT)
        is_alone = name not in partners[piece.kind]
        is_inside = within.start <= number < within.stop and piece.kind == "open"
        prints = is_alone and (
            _may_print(name, piece) or (is_inside and not _SILENT.fullmatch(word))
        )
        if name == COPIED or prints:
            yield from as_written(_LINE_END.sub(" ", piece.raw))
        else:
            yield name, piece


def as_written(raw: str) -> tuple[Named, ...]:
    """Return the pieces of what is written unchanged."""
    return tuple(("" if isinstance(piece, str) else "=", piece) for piece in verbatim(raw))


def _partners(pieces: Iterable[Named]) -> dict[str, set[str]]:
    """Return the names of statements that can be partners of tags, by the kind of tag."""
    found: dict[str, set[str]] = {"open": set(), "close": set(), "void": set()}
    for name, piece in pieces:
        if isinstance(piece, Tag) and name.startswith(STATEMENT) and piece.kind != "void":
            found["open" if piece.kind == "close" else "close"].add(name)
    return found


def _may_print(name: str, tag: Tag) -> bool:
    """Return whether a tag is a word when it is alone: a shortcode, or {{ end }}."""
    return (tag.kind == "open" and tag.raw[:3] in ("{{<", "{{%")) or (tag.kind, name) == (
        "close",
        _GO,
    )
