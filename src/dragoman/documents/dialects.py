"""What other tools have in Markdown, where readers of CommonMark see text.

Pandoc, Quarto, Obsidian, Material, kramdown, Hugo, Liquid and MDX.
"""

import re
from collections.abc import Iterable, Iterator
from itertools import groupby

from dragoman.text.marked import Tag, verbatim

ENDS = r"[ \t]*+(?=[\r\n]|\Z)"
DIRECTIVE = re.compile(
    r"^(?:(?P<start>[ \t>]*)(?:(?P<note>(?:!!!|\?\?\?\+?|===[!+]?(?=[ \t]+\"))[ \t][^\r\n]*)"
    rf"|(?::{{3,}}|-+8<-+|\*\[[^]\r\n]+\]:(?![^\r\n]*(?<!\\)\*{ENDS})"
    rf"|(?<=[> ])\[!(?!(?i:note|tip|important|warning|caution)\]{ENDS})[\w-]+\])[^\r\n]*"
    rf"|(?:(?:\{{\{{[<%](?:(?![>%]\}}\}})[^\r\n])*+[>%]\}}\}}[ \t]*+)++|\{{:[^{{}}\r\n]*+\}}"
    rf"|\[\[?_?(?i:toc)_?\]?\]){ENDS}"
    rf"|(?:\{{%(?:(?!%\}})[^\r\n])*+%\}}[ \t]*+(?:\r?\n(?=\{{%))?)+{ENDS})"
    r"|(?P<code>(?:import[ \t]+(?:[{\"']|[^\r\n]*\bfrom[ \t]*[\"'])"
    r"|export[ \t]+(?:(?:const|let|var|default|async|function|class)\b|[{*]))[^\r\n]*"
    r"(?:\r?\n(?![ \t]*[`~]{3})(?:import\b|export\b|[ \t]+\S|\})[^\r\n]*)*))",
    re.MULTILINE,
)
"""A line of Pandoc, Material, kramdown, Obsidian, Hugo or Liquid, or lines of MDX."""
_KEPT = re.compile(
    r"(\{(?::[^{}\r\n]*|[ \t]*[.#][^{}\r\n]*)\}"
    r"|(?<![\w:]):(?:[a-z][a-z0-9_+-]+|[+-]1|100):(?![\w:])"
    r"|(?:https?://|www\.)[!-;=?-~]*[A-Za-z0-9_/#&=])"
)
"""Attributes of what stands before, the name of an emoji; an address, which is a link so."""
_TARGET = re.compile(
    r"(\]\([ \t]*+|^[ \t>]*\[(?!\^)[^][\r\n]+\]:[ \t]*+)"
    r"((?:[^\s(){}]*+\{[{%](?:(?!\{[{%]|[}%]\})[^\r\n])*+[}%]\}++)++)",
    re.MULTILINE,
)
"""Where a link leads in Hugo or Liquid: `[a]({{< ref "b.md" >}}#c)`, `[a]: {% link b.md %}`."""
NO_DEFINITION = re.compile(r"^([ \t>]*):(?=\S)(?![-: \t]*\|[-:| \t]*\r?$)", re.MULTILINE)
"""Where the parser would read one in `:smile:`, which other tools do not; `:--|--:` is a row."""
ONE_CELL = re.compile(r"(?<!\|\n)(?<!\|\r\n)^[ \t>]*:-+:?[ \t]*\|?(?=[ \t]*\r?$)", re.MULTILINE)
"""A row by which GFM makes a table of the line above; the parser does where that ends with `|`, and
reads a definition elsewhere."""


def with_plain_targets(text: str) -> str:
    """As many letters for addresses that other tools write, whose spaces would end the link."""
    return _TARGET.sub(lambda found: found[1] + "x" * len(found[2]), text)


def with_kept(pieces: Iterable[tuple[str, str | Tag]]) -> Iterator[tuple[str, str | Tag]]:
    """The pieces, where addresses are copied, and attributes and emoji are tags.

    Those of texts that have no escapes, whose name is a space.
    """
    for is_text, group in groupby(pieces, lambda piece: piece[0] == " "):
        if not is_text:
            yield from group
            continue
        for number, text in enumerate(_KEPT.split("".join(str(text) for _, text in group))):
            if number % 2 and text[0] in "{:":
                yield "", Tag(text)
            else:
                yield from as_written(text) if number % 2 else [(" ", text)]


def as_written(raw: str) -> tuple[tuple[str, str | Tag], ...]:
    """What is written as it is."""
    return tuple(("" if isinstance(piece, str) else "=", piece) for piece in verbatim(raw))
