"""What other tools have in Markdown, where readers of CommonMark see text.

Pandoc, Quarto, Obsidian, Material, kramdown, Hugo, Liquid and MDX.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import groupby
from typing import Literal

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
_PATTERNS = {
    "gone": (
        r"(?:(?<=\S) )?(?:\[(?:[\w.]+,? ){0,2}-?@[\w{][^][\r\n]*\]|!\[\[[^][\r\n]+\]\]"
        r"|(?<![\w%])%%(?!%)[^%\r\n]+%%(?![\w%]))|(?<=\S) \^[A-Za-z0-9-]+\Z"
        r"|\{(?::[^{}\r\n]*|[ \t]*[.#=][^{}\r\n]*)\}"
        r"|(?<![\w:]):(?:[a-z][a-z0-9_+-]+|[+-]1|100):(?![\w:])"
    ),
    "named": r"\[\[[^][|\r\n]+\|(?P<shown>[^][|\r\n]+)\]\]",
    "copied": (
        r"\[\[[^][|\r\n]+\]\]|\{\{[<%][^{}\r\n]*[>%]\}\}"
        r"|(?<![\w.@/+-])-?@[A-Za-z_]\w*(?:[:.#$%&+?<>~/-]\w+)*"
        r"(?: \[[^][\r\n]{0,40}\d[^][\r\n]{0,40}\])?"
        r"|(?<![A-Za-z0-9])[A-Za-z0-9]{1,20}"
        r"(?:(?:~[^\s~^\\]{1,20}~|\^[^\s~^\\]{1,20}\^)[A-Za-z0-9]{0,20})+"
        r"|(?:https?://|www\.)[!-;=?-~]*[A-Za-z0-9_/#&=]"
    ),
    "highlight": r"(?<![=A-Za-z0-9_)])==(?![\s=])|(?<![\s=])==(?![=A-Za-z0-9_(])",
}
_KEPT = re.compile("|".join(f"(?P<{kind}>{pattern})" for kind, pattern in _PATTERNS.items()))
"""What is gone from the sentence: citations of Pandoc, `[see @a, p. 3]`, what Obsidian embeds, its
comments and the name of a paragraph, `![[a]]`, `%%a%%`, ` ^a`, attributes and emoji. Links of a
wiki with words, `[[a|words]]`; what is copied: those without, shortcodes, `@a [p. 3]`, `H~2~O`,
addresses. Signs of Obsidian's highlights, `==words==`."""
ATTRIBUTES = re.compile(r"\{[ \t]*(?:[.#:=]|[\w-]+=)[^{}\r\n]*\}")
"""Those of what stands right before, which is a link, a picture, code, or words in brackets."""
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
    """The pieces, where what other tools read otherwise is tags, or copied.

    In texts that have no escapes, whose name is a space. Attributes are a part of the tag before.
    """
    held, is_lit = list[tuple[str, str | Tag]](), False
    for is_text, group in groupby(pieces, lambda piece: piece[0] == " "):
        if not is_text:
            yield from held
            *others, last = group
            held = [last]
            yield from others
            continue
        text, place = "".join(str(text) for _, text in group), 0
        name, tag = held[0] if held else ("", "")
        if isinstance(tag, Tag) and tag.kind != "open" and (found := ATTRIBUTES.match(text)):
            held, place = [(name, replace(tag, raw=tag.raw + found[0]))], found.end()
        yield from held
        held = []
        for found in _KEPT.finditer(text, place):
            yield " ", text[place : found.start()]
            place = found.end()
            is_lit ^= found.lastgroup == "highlight"
            yield from _tags_of(found, "open" if is_lit else "close")
        yield " ", text[place:]
    yield from held


def _tags_of(
    found: re.Match[str], kind: Literal["open", "close"]
) -> Iterable[tuple[str, str | Tag]]:
    """What stands for a match; a sign of a highlight is of this kind."""
    raw = found[0]
    if found.lastgroup == "copied":
        return as_written(raw)
    if found.lastgroup == "named":
        page = raw[: found.start("shown") - found.start()]
        return ("[[", Tag(page, "open")), (" ", found["shown"]), ("[[", Tag("]]", "close"))
    return [("==", Tag(raw, kind)) if found.lastgroup == "highlight" else ("", Tag(raw))]


def as_written(raw: str) -> tuple[tuple[str, str | Tag], ...]:
    """What is written as it is."""
    return tuple(("" if isinstance(piece, str) else "=", piece) for piece in verbatim(raw))
