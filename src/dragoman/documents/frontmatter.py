"""Front matter of a page, in YAML or TOML: the titles and descriptions that its readers see."""

import json
import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from functools import partial
from itertools import chain
from pathlib import PurePath

from dragoman.documents import html, yaml
from dragoman.documents.document import MARKS, Document, Keys, Left, Part, Segment, Segments
from dragoman.documents.fragments import with_elements
from dragoman.errors import InputError
from dragoman.languages import LangCodes
from dragoman.text.spans import Span

LEFT = "front matter, but for titles and descriptions"
"""What is left alone."""
_SHOWN = (
    *("title", "subtitle", "linkTitle", "sidebar_label", "tagline"),
    *("description", "summary", "excerpt", "abstract"),
)
"""The keys of Jekyll, Hugo, MkDocs, Docusaurus, VitePress and Pandoc whose values are shown."""
_TOML = re.compile(
    rf"^[ \t]*(?:{'|'.join(_SHOWN)})[ \t]*=[ \t]*(\"(?:[^\"\\\r\n]|\\.)*+\"|'[^'\r\n]*+')"
    r"[ \t]*(?:#[^\r\n]*)?\r?$",
    re.MULTILINE,
)
_FENCE = re.compile(r"(?:---|\+\+\+)[ \t]*\r?\n")
_AT_START = re.compile(
    rf"\ufeff?((---|\+\+\+)[ \t]*\r?\n[^{''.join(MARKS)}]*?^\2[ \t]*\r?$)", re.MULTILINE
)
"""Front matter without the marks by which a page finds its texts."""


class _Shown(Keys):
    """Values directly under a key that is shown, also in lists: not `type: main` under `title`."""

    def enter(self, key: str, depth: int) -> None:
        self.leave(0)
        super().enter(key, depth)


def read_matter(text: str, plain: str, place: Span, line: int) -> list[Segment]:
    """Return the titles and descriptions of front matter, as far as they are in `plain` unchanged.

    Return none of front matter that is not valid. `line` is the number of its first line.
    """
    found, fence = list[Segment](), _FENCE.match(plain, *place)
    read = _of_toml if plain.startswith("+++", place[0]) else _of_yaml
    with suppress(InputError):
        found = [*read(plain, (fence.end(), place[1]), line)] if fence else []
    return [each for each in found if text[each.start : each.end] == plain[each.start : each.end]]


def _of_yaml(text: str, place: Span, line: int) -> Iterator[Segment]:
    inner = text[slice(*place)].rstrip().removesuffix("---")
    for each in yaml.values(inner, "", _Shown(_SHOWN), Left(), line + 1):
        yield replace(each, start=each.start + place[0], end=each.end + place[0])


def _of_toml(text: str, place: Span, line: int) -> Iterator[Segment]:
    begun = place[0]
    for found in _TOML.finditer(text, *place):
        line, begun = line + text.count("\n", begun, found.start(1)), found.start(1)
        with suppress(ValueError):  # an escape that JSON does not have
            value = json.loads(found[1]) if found[1][0] == '"' else found[1][1:-1]
            where = f"line {line + 1}"
            write = partial(yaml.written, style='"', flow=False, after="")
            yield Segment(*found.span(1), with_elements((value,)), write, where)


def read(data: bytes, name: str, languages: LangCodes = (None, None)) -> Document:
    """Read an HTML page as `html.read` does, and the front matter that it begins with, if any."""
    if PurePath(name).suffix.lower() == ".xhtml":
        return html.read_xhtml(data, name, "", languages)
    text, encode = html.decode(data, name)
    matter = _AT_START.match(text)
    end = matter.end() if matter else 0
    blank = re.sub(r"[^\r\n]", " ", text[:end])
    document = html.read(blank + text[end:], encode, name, languages)
    if matter is None:
        return document
    first, *others = document.parts
    found = read_matter(text, text, matter.span(1), 1)
    part = Part(text[:end] + first.text[end:], Segments(name, chain(found, first.segments)))
    return replace(document, parts=(part, *others), left=(*document.left, f"{LEFT}: line 1"))
