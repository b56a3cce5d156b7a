"""The slides of a 90-minute lesson, docs/lesson/: one page of HTML in each language.

`python docs/make.py pages` puts them together from sections of the walk: `LESSON` names which, and
which paragraphs, formulas, pictures, lines of code and printed lines of each. Nothing is written
here a second time; both languages take the same places. A page needs no server, library or network.
"""

import re
from collections import Counter
from collections.abc import Iterator
from html import escape

import pyromark

from dragoman.lens.page import fill
from excerpts import Wrong
from staging import (
    BROKEN_CHINESE,
    CODE_OR_MATH,
    DISPLAYED,
    DOCS,
    FENCED,
    LANGUAGES,
    displayed,
    inline,
    slug,
)

FOLDER = DOCS / "lesson"


LESSON = """
10 walk/01-why-attention.md#1-and-2-why-leave-recurrence text1 list1
   walk/00b-one-vector.md#the-picture picture1
   walk/00b-one-vector.md#quality-by-length said1
   walk/01-why-attention.md#the-picture picture1
18 walk/03-scaled-dot-product.md#321-scaled-dot-product-attention text1
   walk/03-scaled-dot-product.md#the-formula formula1 text1
   walk/03-scaled-dot-product.md#our-lines text1 code1
   walk/03-scaled-dot-product.md#experiment-a-dictionary run1 said1
   walk/03-scaled-dot-product.md#experiment-one-sentence-every-number said1 text2
   walk/03-scaled-dot-product.md#experiment-why-divide-by-the-root-of-d said1 text2
   walk/03-scaled-dot-product.md#the-picture picture1
10 walk/04-multi-head.md#322-multi-head-attention text1
   walk/04-multi-head.md#322-multi-head-attention picture1
   walk/04-multi-head.md#the-formula formula1 text1
   walk/04-multi-head.md#experiment-one-head-cannot-look-in-two-directions text1 said1 text2
   walk/04-multi-head.md#the-picture picture2
 8 walk/05-three-uses.md#323-three-uses-and-masks text1 table1
   walk/05-three-uses.md#the-formula text1 formula1 text2
   walk/05-three-uses.md#the-picture picture1
   walk/05-three-uses.md#experiment-without-the-mask-the-model-cheats text1 said1 text2
 8 walk/08-positions.md#experiment-without-positions-a-sentence-is-a-set text1 said1 text2
   walk/08-positions.md#the-formula formula1 text1
   walk/08-positions.md#the-pictures picture1
 8 walk/02-stacks.md#31-encoder-and-decoder-stacks picture1
   walk/02-stacks.md#the-formula text1 formula1 formula2
   walk/02-stacks.md#the-picture picture1
 8 walk/10-training.md#adam-and-the-schedule-53 formula1 picture1
   walk/10-training.md#dropout-and-label-smoothing-54 formula1 picture1
 6 walk/11-results.md#the-formula formula1 text1
   walk/11-results.md#experiment-greedy-against-beam text1 said1 text2
 4 walk/13-mistakes.md#the-picture picture1
10 live.md#things-to-try table1:2
"""
"""A slide a line: a page, a heading of it, and which blocks below that (of a table perhaps only the
first columns, `table1:2`); before the first slide of a part its minutes. The title of that slide's
page is the part's."""

WHEN = {"en": "minutes {} to {}", "zh": "第 {} 到 {} 分钟"}
SLIDE = re.compile(r" *(\d*) +(\S+)#(\S+) (.+)")
_HEADING = re.compile(r"^#{1,3} (.+)$", re.M)
_COMMENT = re.compile(r"^<!--.*?-->\n", re.M)
_LINK = re.compile(r"(?<!!)\[([^\]]+)\]\([^)\s]+\)")
_PICTURE = re.compile(r"^!\[(?P<alt>[^\]]*)\]\((?:\.\./)*(?P<target>images/[^)\s]+)\)$")
KINDS = {"py": "code", "python": "run", "python3": "run", "text": "said", "math": "formula"}
"""What a fenced block is called in `LESSON`, by its language."""


def slides_page(language: str) -> str:
    """The page of all slides in a language, en or zh."""
    template = (FOLDER / "template.html").read_text(encoding="utf-8")
    first, slides = 0, []
    for line in LESSON.strip().splitlines():
        minutes, page, anchor, picks = SLIDE.findall(line)[0]
        if minutes:
            last = first + int(minutes)
            title = _line(sections(page, language)[0][0])
            when = WHEN[language].format(first, last)
            slides.append(f'<section class="part"><p>{when}</p><h1>{title}</h1></section>')
            first = last
        slides.append(_slide(page, anchor, picks.split(), language))
    title = sections("lesson.md", language)[0][0]
    lang = {"en": "en", "zh": "zh-CN"}[language]
    made = {"LANG": lang, "TITLE": escape(title), "SLIDES": "\n".join(slides)}
    return fill(template, made)


def sections(page: str, language: str) -> list[tuple[str, str]]:
    """The headings of a page and the text below each, the page's own title first."""
    path = (DOCS / "zh" if language == "zh" else DOCS) / page
    text = LANGUAGES.sub("", path.read_text(encoding="utf-8"), count=1)
    hidden = FENCED.sub(lambda found: re.sub(r"(?m)^#", " ", found[0]), text)  # comments in code
    heads = list(_HEADING.finditer(hidden))
    ends = [*(head.start() for head in heads[1:]), len(text)]
    return [(head[1], text[head.end() : end]) for head, end in zip(heads, ends, strict=True)]


def blocks(text: str) -> Iterator[tuple[str, str]]:
    """The blocks of a section, each with its kind and number: text1, formula1, text2, picture1."""
    seen = Counter[str]()
    for block in _blocks(_COMMENT.sub("", text)):
        fenced = FENCED.fullmatch(block)
        if fenced:
            kind = KINDS[fenced["info"].strip()]
        elif DISPLAYED.fullmatch(block):
            kind = "formula"
        elif _PICTURE.match(block):
            kind = "picture"
        else:
            kind = {"|": "table", "-": "list", "1": "list"}.get(block[0], "text")
        seen[kind] += 1
        yield f"{kind}{seen[kind]}", block


def _blocks(text: str) -> Iterator[str]:
    """What blank lines separate, except within fences."""
    end = 0
    for fenced in FENCED.finditer(text):
        yield from filter(None, map(str.strip, text[end : fenced.start()].split("\n\n")))
        yield fenced[0]
        end = fenced.end()
    yield from filter(None, map(str.strip, text[end:].split("\n\n")))


def _slide(page: str, anchor: str, picks: list[str], language: str) -> str:
    """A section's heading, below its page's, and the blocks of it that are picked."""
    (number,) = (n for n, (head, _) in enumerate(sections(page, "en")) if slug(head) == anchor)
    here = sections(page, language)
    heading, text = here[number]
    found = dict(blocks(text))
    chosen = [pick.partition(":")[::2] for pick in picks]
    if missing := [name for name, _ in chosen if name not in found]:
        raise Wrong(f"docs/slides.py: {page}#{anchor} has {', '.join(found)}, and no {missing[0]}")
    body = "\n".join(
        _html(name, _first(columns, found[name]), language) for name, columns in chosen
    )
    above = f"<p>{_line(here[0][0])}</p>" if number else ""
    return f"<section>{above}<h2>{_line(heading)}</h2>\n{body}</section>"


def _first(columns: str, table: str) -> str:
    """The first columns of a table, so many; with no number the whole block."""
    if not columns:
        return table
    rows = (row.split("|")[: int(columns) + 1] for row in table.splitlines())
    return "\n".join(f"{'|'.join(row)}|" for row in rows)


def _html(kind: str, block: str, language: str) -> str:
    """A block as HTML: formulas are MathML, links only their words."""
    if fenced := FENCED.fullmatch(block):
        if kind.startswith("formula"):
            return displayed(fenced["body"])
        return f'<pre class="{kind.rstrip("0123456789")}">{escape(fenced["body"])}</pre>'
    if formula := DISPLAYED.fullmatch(block):
        return displayed(formula["tex"])
    if picture := _PICTURE.match(block):
        return f'<img src="../{picture["target"]}" alt="{escape(picture["alt"])}">'
    if language == "zh":
        block = BROKEN_CHINESE.sub("", block)
    return _prose(block)


def _prose(text: str) -> str:
    text = _LINK.sub(r"\1", text)
    text = CODE_OR_MATH.sub(lambda found: found["code"] or inline(found["tex"]), text)
    return pyromark.html(text, options=pyromark.Options.ENABLE_TABLES).strip()


def _line(text: str) -> str:
    """A heading as HTML."""
    return _prose(text).removeprefix("<p>").removesuffix("</p>")
