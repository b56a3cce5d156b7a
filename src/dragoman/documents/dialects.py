"""Markdown extensions of other tools, which CommonMark parsers read as text.

Pandoc, Quarto, Obsidian, Material, kramdown, Hugo, Liquid, MyST, Vue and MDX.
"""

import re
from collections.abc import Container, Iterable, Iterator
from dataclasses import replace
from functools import partial
from itertools import groupby
from typing import Literal

from dragoman.documents.lines import unwrapped
from dragoman.documents.templates import CODE, COPIED, as_written, code_at, settled
from dragoman.text.glossary import UNSPACED
from dragoman.text.marked import Tag

ENDS = r"[ \t]*+(?=[\r\n]|\Z)"
DIRECTIVE = re.compile(
    r"^(?:(?P<start>[ \t>]*)(?:(?P<note>(?:!!!|\?\?\?\+?|===[!+]?(?=[ \t]+\"))[ \t][^\r\n]*)"
    rf"|:{{3,}}[ \t]*\{{[\w-]+\}}[^\r\n]*(?:\r?\n[ \t>]*:[\w-]+:(?=[ \t\r\n])[^\r\n]*+)+"
    rf"|(?::{{3,}}|<<<[ \t]|@import[ \t]+[\"']|-+8<-+|\*\[[^]\r\n]+\]:(?![^\r\n]*(?<!\\)\*{ENDS})"
    rf"|(?<=[> ])\[!(?!(?i:note|tip|important|warning|caution)\]{ENDS})[\w-]+\])[^\r\n]*"
    rf"|(?:(?:\{{\{{[<%](?:(?![>%]\}}\}})[^\r\n])*+[>%]\}}\}}[ \t]*+)++|\{{:[^{{}}\r\n]*+\}}"
    rf"|\[\[?_?(?i:toc)_?\]?\]){ENDS}"
    rf"|(?:\{{%(?:(?!%\}})[^\r\n])*+%\}}[ \t]*+(?:\r?\n(?=\{{%))?)+{ENDS})"
    r"|(?:(?<=\n\n)|(?<=\n\r\n))%[ \t]+\S[^\r\n]*(?:\r?\n%[ \t][^\r\n]*+)*"
    r"|(?P<code>(?:import[ \t]+(?:[{\"']|[^\r\n]*\bfrom[ \t]*[\"'])"
    r"|export[ \t]+(?:(?:const|let|var|default|async|function|class)\b|[{*]))[^\r\n]*"
    r"(?:\r?\n(?![ \t]*[`~]{3})(?:import\b|export\b|[ \t]+\S|\})[^\r\n]*)*))",
    re.MULTILINE,
)
"""A line of Pandoc, Material, kramdown, Obsidian, Hugo, Liquid, VitePress or MyST, with its options
or as a comment; or lines of MDX."""
PLAIN_TITLE = r"[^][\r\n\"`*_<>{}|\\]"
TITLE_OF_NOTE = re.compile(
    rf"[ \t>]*(?:(?:!!!|\?\?\?\+?|===[!+]?)[ \t][^\r\n\"]*\"({PLAIN_TITLE}++)\"{ENDS}"
    r"|:{3,}[ \t]*(?i:note|tip|info|warning|danger|caution|important|details|success|error|question"
    rf"|example)(?:\[({PLAIN_TITLE}++)\]|[ \t]++({PLAIN_TITLE}++)){ENDS}"
    rf"|(?:\[![\w-]+\][+-]?[ \t]|\*\[[^]\r\n]+\]:)[ \t]*+({PLAIN_TITLE}++){ENDS})"
)
"""The title of a note or a tab of Material, Docusaurus, VitePress or Obsidian, without markup, or
the meaning of an abbreviation; the last group."""
_BRACES = r"\{[^{}]*+\}"
for _ in range(3):  # nested
    _BRACES = rf"\{{(?:[^{{}}]++|{_BRACES})*+\}}"
_BLANK = r"\n[ \t>]*+\r?\n"
_TICKS = r"(?<!`)(?P<{0}>`{{1,9}}+)(?!`)(?:(?!{1}|(?<!`)(?P={0})(?!`))(?s:.))++(?P={0})(?!`)"
"""A code span; longer marks are not searched for their ends, as each search takes linear time."""
_FORMULA = "|".join(rf"\\\{a}(?:(?!\\[][()]|{_BLANK})(?s:.))++\\\{b}" for a, b in ("()", "[]"))
_OF_TOOLS = (
    rf"{CODE}|\{{[A-Za-z][\w:.+-]*\}}{_TICKS.format('role', _BLANK)}|(?P<formula>{_FORMULA})"
)
"""Template code, MyST roles, and formulas of Material and Sphinx."""
_OF_MDX = rf"(?!\{{[#.:]){_BRACES}|</?>"
_ATTRIBUTE = (
    r"(?:[@:#A-Za-z_][\w.:@-]*+(?:\s*+=\s*+(?:\"[^\"]*+\"|'[^']*+'|"
    + _BRACES
    + r"|[^\s\"'=<>`{}]++))?"
    rf"|{_BRACES})"
)
_SKIPPED = (
    r"\\[\\`{<]|^[ \t>]*(?P<fence>`{3,}|~{3,})(?=[^`\r\n]*$)[^\r\n]*+"
    r"(?:\r?\n(?![ \t>]*(?P=fence))[^\r\n]*+)*+(?:\r?\n[ \t>]*[`~]++)?"
)
_UNREAD, _UNREAD_MDX = (
    re.compile(
        rf"(?P<skipped>{_SKIPPED}|{_TICKS.format('span', _BLANK)})|(?P<code>{code})"
        rf"|<(?P<tag>[A-Za-z][\w.-]*+|/[A-Za-z]\w*\.[\w.-]++)(?P<rest>(?:\s++{_ATTRIBUTE})*+\s*+/?)>",
        re.MULTILINE,
    )
    for code in (_OF_TOOLS, f"{_OF_TOOLS}|{_OF_MDX}")
)
_MEMBER = re.compile(r"(?:</|(?<!\w)<)[A-Z]\w*\.")
"""A JSX component such as <Tabs.Item>; <file.txt> and List<Map.Entry> are text."""
_OF_MATH = re.compile(r"\\[A-Za-z]|[=^]|[A-Za-z0-9}]_[A-Za-z0-9{]")
_LONE = re.compile(r"\\\((?:[^\W\d_](?![^\W\d_])|[\s\d+*/<>,.|'()-])+\\\)")
"""A formula without two adjacent letters."""
_WORDS = re.compile(r"[^{}\\]*(?<![\\A-Za-z])[A-Za-z]{3,}\s+[A-Za-z]{2,}")
_PATTERNS = {
    "code": _OF_TOOLS,
    "gone": (
        r"(?:(?<=\S) )?(?:\[(?:[\w.]+,? ){0,2}-?@[\w{][^][\r\n]*\]|!\[\[[^][\r\n]+\]\]"
        r"|(?<![\w%])%%(?!%)[^%\r\n]+%%(?![\w%]))|(?<=\S) \^[A-Za-z0-9-]+\Z"
        r"|\{(?::[^{}\r\n]*|[ \t]*[.#=][^{}\r\n]*)\}"
        r"|(?<![\w:]):(?:[a-z][a-z0-9_+-]+|[+-]1|100):(?![\w:])|\A\[[/<>!?*-]\](?= )"
    ),
    "named": r"\[\[[^][|\r\n]+\|(?P<shown>[^][|\r\n]+)\]\]",
    "copied": (
        r"\[\[[^][|\r\n]+\]\]"
        r"|(?<![\w.@/+-])-?@[A-Za-z_]\w*(?:[:.#$%&+?<>~/-]\w+)*"
        r"(?: \[[^][\r\n]{0,40}\d[^][\r\n]{0,40}\])?"
        r"|(?<![A-Za-z0-9])[A-Za-z0-9]{1,20}"
        r"(?:(?:~[^\s~^\\]{1,20}~|\^[^\s~^\\]{1,20}\^)[A-Za-z0-9]{0,20})+"
        rf"|(?<=[\s(])#(?=[\w/-]*[^\W\d_])(?:[^\W{UNSPACED}]|[/-])+(?!\w)"
        r"|(?:https?://|www\.)[!-;=?-~]*[A-Za-z0-9_/#&=]"
    ),
    "highlight": r"(?<![=A-Za-z0-9_)])==(?![\s=])|(?<![\s=])==(?![=A-Za-z0-9_(])",
}
_KEPT, _KEPT_MDX = (
    re.compile("|".join(f"(?P<{kind}>{pattern})" for kind, pattern in patterns.items()))
    for patterns in (_PATTERNS, {**_PATTERNS, "code": f"{_OF_TOOLS}|{_OF_MDX}"})
)
"""Removed from the sentence: Pandoc citations, `[see @a, p. 3]`, Obsidian embeds, comments,
paragraph names and task states, `![[a]]`, `%%a%%`, ` ^a`, `[/]`, attributes and emoji. Wiki links
with words: `[[a|words]]`. Copied: wiki links without words, `@a [p. 3]`, `H~2~O`, `#tag`,
addresses. Marks of Obsidian highlights, `==words==`; code."""
ATTRIBUTES = re.compile(r"\{[ \t]*(?:[.#:=]|[\w-]+=)[^{}\r\n]*\}")
"""Attributes of what precedes them directly: a link, a picture, code, or words in brackets."""
_TARGET = re.compile(
    r"(\]\([ \t]*+|^[ \t>]*\[(?!\^)[^][\r\n]+\]:[ \t]*+)"
    r"((?:[^\s(){}]*+\{[{%](?:(?!\{[{%]|[}%]\})[^\r\n])*+[}%]\}++)++)",
    re.MULTILINE,
)
"""The target of a link in Hugo or Liquid: `[a]({{< ref "b.md" >}}#c)`, `[a]: {% link b.md %}`."""
LINE_END = re.compile(r"(?<!\s)\s*\n[>\s]*")
"""The end of a line, also in a quotation."""
_LABEL = re.compile(rf"(?<=\$\$)[ \t]+\([\w:.-]+\){ENDS}", re.MULTILINE)
"""The label of a MyST formula: `$$ (name)`."""
NO_DEFINITION = re.compile(r"^([ \t>]*):(?=\S)(?![-: \t]*\|[-:| \t]*\r?$)", re.MULTILINE)
"""Where the parser would read a definition in `:smile:`; other tools do not. `:--|--:` is a row."""
ONE_CELL = re.compile(r"(?<!\|\n)(?<!\|\r\n)^[ \t>]*:-+:?[ \t]*\|?(?=[ \t]*\r?$)", re.MULTILINE)
"""A row by which GFM makes a table of the line above; the parser does so only if that line ends
with `|`, and reads a definition otherwise."""


def with_plain_targets(text: str) -> str:
    """Replace addresses of other tools, whose spaces would end the link, with as many letters."""
    text = _LABEL.sub(lambda found: " " * len(found[0]), text)
    return _TARGET.sub(lambda found: found[1] + "x" * len(found[2]), text)


def with_plain_code(
    text: str, *, is_mdx: bool = False, formulas: Container[str] | None = None
) -> str:
    """Replace code of other languages, whose signs Markdown would read, with as many letters.

    Tags with JSX or Vue attributes are replaced by other tags. `formulas` are the only ones: in a
    translation, the brackets of `[a=b]` have backslashes too.
    """
    unread = _UNREAD_MDX if is_mdx else _UNREAD
    return unread.sub(partial(_plain, formulas=formulas), text)


def _plain(found: re.Match[str], formulas: Container[str] | None) -> str:
    raw = found[0]
    is_text = formulas is not None and raw not in formulas
    if found["skipped"] or (found["formula"] and (is_text or not _is_formula(found))):
        return raw
    if not found["tag"]:
        return "x" * len(raw)
    name, rest = found["tag"], found["rest"]
    is_member = _MEMBER.match(found.string, found.start())
    if not (re.search("[{@#]", rest) or is_member) or re.search(_BLANK, rest):
        return raw
    rest = " " * bool(rest) + "x" * (len(rest) - 1)
    return f"<{name.replace('.', '-').replace('_', '-')}{rest}>"


def _is_formula(found: re.Match[str]) -> bool:
    r"""Return whether it is a formula, not text in brackets with backslashes, as in dog\(s\)."""
    raw, before = found[0], found.string[max(0, found.start() - 1) : found.start()]
    is_math = _OF_MATH.search(raw[2:-2]) or _LONE.fullmatch(raw)
    return bool(is_math) and not (before.isalnum() or _WORDS.match(raw[2:-2]))


def with_kept(
    pieces: Iterable[tuple[str, str | Tag]], *, is_mdx: bool = False
) -> Iterator[tuple[str, str | Tag]]:
    """Yield the pieces, with what other tools read differently as tags or copied text.

    Only texts without escapes, named " ", are changed. Attributes join the tag before them.
    """
    return settled(_with_kept(unwrapped(pieces), _KEPT_MDX if is_mdx else _KEPT))


def _with_kept(
    pieces: Iterable[tuple[str, str | Tag]], kept: re.Pattern[str]
) -> Iterator[tuple[str, str | Tag]]:
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
        for found in kept.finditer(text, place):
            yield " ", text[place : found.start()]
            place = found.end()
            is_lit ^= found.lastgroup == "highlight"
            yield from _tags_of(found, "open" if is_lit else "close")
        yield " ", text[place:]
    yield from held


def _tags_of(
    found: re.Match[str], kind: Literal["open", "close"]
) -> Iterable[tuple[str, str | Tag]]:
    """Return what replaces a match; a highlight mark gets this kind."""
    raw = found[0]
    if found["code"]:
        name, tag = code_at(found.string, *found.span())
        if raw in ("<>", "</>"):
            name = ""
        return [(name, replace(tag, raw=LINE_END.sub(" ", raw)) if name == COPIED else tag)]
    if found.lastgroup == "copied":
        return as_written(raw)
    if found.lastgroup == "named":
        page = raw[: found.start("shown") - found.start()]
        return ("[[", Tag(page, "open")), (" ", found["shown"]), ("[[", Tag("]]", "close"))
    return [("==", Tag(raw, kind)) if found.lastgroup == "highlight" else ("", Tag(raw))]
