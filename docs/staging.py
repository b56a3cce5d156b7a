"""Pages for the site, made from the pages for GitHub.

The Markdown of the repository is written to be read where it lies. For the site it is copied into
a folder of its own for each language, and on the way

- a link to a file of the repository becomes one to its page on the site: of pages in the same
  language where it is written in it, of sources a page with numbered lines;
- a heading in Chinese gets the anchor of its English twin, so that links to it lead there in both;
- lines of the source get their numbers, and the rest of their function (see docs/excerpts.py);
- a drawing becomes part of the page, so that its boxes are links;
- a picture leads to itself, so that it can be enlarged on a phone;
- formulas become MathML, which browsers draw by themselves, so that no script is needed;
- the line that leads to the same page in the other language goes: the site has a switch.

Whatever does not fit raises `Wrong`, with the page and what is wrong on it.
"""

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from xml.sax.saxutils import quoteattr

from latex2mathml.converter import convert

from excerpts import BLOCK, MARKER, ROOT, Wrong, fenced, staged_code

DOCS = ROOT / "docs"
CHINESE = DOCS / "zh"

BESIDE = {
    "README.md": "project/readme.md",
    "CONTRIBUTING.md": "project/contributing.md",
    "CHANGELOG.md": "project/changelog.md",
    "benchmarks/README.md": "project/benchmarks.md",
}
"""Pages that lie elsewhere in the repository, and where they are on the site."""

TRANSLATED_BESIDE = {"README.zh-CN.md": "project/readme.md"}
"""The same for those in Chinese."""

AS_THEY_ARE = tuple(
    DOCS / name for name in ("live/index.html", "live/model.js", "lesson/en.html", "lesson/zh.html")
)
"""The page that computes (live_page.py) and its model, and slides (slides.py), for the site too."""

UNTRANSLATED = '!!! note "本页尚无中文版"\n\n    以下是英文原文。\n\n'

FENCED = re.compile(
    r"^(?P<indent> *)(?P<fence>`{3,})(?P<info>.*)\n(?P<body>(?:.*\n)*?)(?P=indent)(?P=fence)$", re.M
)
_LANGUAGE = r"(?:English|中文|\[English\]\(\S+\)|\[中文\]\(\S+\))"
LANGUAGES = re.compile(rf"^{_LANGUAGE} · {_LANGUAGE}\n+", re.M)
_HEADING = re.compile(r"^#+ (.+)$", re.M)
_CHINESE = r"[\u3000-\u303f\u4e00-\u9fff\uff00-\uffef“”]"
BROKEN_CHINESE = re.compile(
    rf"(?<={_CHINESE})\n *(?={_CHINESE})|(?<=[，。；：、！？）])\n *(?!\d+\. )(?=[\w\[`$])"
    r"|(?<=\S)\n *(?=[（，。])"
)
_LISTS = re.compile(r"^ {1,3}(?:[-*]|\d+\.) .*|^(?![-*#|>\s]|\d+\. ).+\n(?:[-*]|1\.) .*", re.M)
_DRAWING = re.compile(r"^!\[(?P<alt>[^\]]*)\]\((?P<target>[^)\s]+\.svg)\)$", re.M)
_PICTURE = re.compile(r"^!\[[^\]]*\]\((?P<target>[^)\s]+\.png)\)$", re.M)
DISPLAYED = re.compile(r"^\$\$(?P<tex>.+?)\$\$$", re.M | re.S)
CODE_OR_MATH = re.compile(
    r"(?P<code>(?P<ticks>`+)(?!`).+?(?<!`)(?P=ticks)(?!`))|(?<![\w$\\])\$(?P<tex>[^\s$](?:[^$\n]*[^\s$\\])?)\$(?![\w$])",
    re.S,
)
LINK = re.compile(r"(?P<open>\]\(|<img [^>]*?src=\")(?P<target>[^)\s\"]+)(?=[)\s\"])")


@dataclass(frozen=True, slots=True)
class Tree:
    """The pages of the site in one language."""

    language: str
    """en or zh."""
    pages: dict[str, Path] = field(default_factory=dict)
    """Where each page on the site is written in the repository."""
    sources: set[str] = field(default_factory=set)
    """Files of the repository to which pages link: they get a page too."""


def find_pages(language: str) -> Tree:
    """Find what the site has in a language; what is not translated is there in English."""
    pages = {name_of(path): path for path in DOCS.rglob("*.md") if CHINESE not in path.parents}
    pages |= {name: ROOT / path for path, name in BESIDE.items()}
    if language == "zh":
        pages |= {name_of(path): path for path in CHINESE.rglob("*.md")}
        pages |= {name: ROOT / path for path, name in TRANSLATED_BESIDE.items()}
    return Tree(language, pages)


def name_of(path: Path) -> str:
    """The name on the site of a page of the repository."""
    here = path.relative_to(ROOT).as_posix()
    beside = BESIDE | TRANSLATED_BESIDE
    return (
        beside.get(here)
        or path.relative_to(CHINESE if CHINESE in path.parents else DOCS).as_posix()
    )


def stage(tree: Tree, folder: Path) -> None:
    """Write the pages of a language, the pictures and the page that computes.

    The sources to which pages link are noted.
    """
    for name, path in sorted(tree.pages.items()):
        text = staged_page(tree, name, path.read_text(encoding="utf-8"))
        if tree.language == "zh" and not is_chinese(path):
            text = with_note(text)
        _write(folder / name, text)
    for path in (*sorted((DOCS / "images").iterdir()), *AS_THEY_ARE):
        target = folder / path.relative_to(DOCS)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(path.read_bytes())


def is_chinese(path: Path) -> bool:
    """Whether a page is written in Chinese."""
    return CHINESE in path.parents or path.name.endswith(".zh-CN.md")


def with_note(text: str) -> str:
    """Say below the heading of an English page on the Chinese site that it is not translated."""
    heading, _, rest = text.partition("\n\n")
    return f"{heading}\n\n{UNTRANSLATED}{rest}"


def staged_page(tree: Tree, name: str, text: str) -> str:
    """Make the page of the site from the page of the repository."""
    text = BLOCK.sub(lambda found: found["marker"], LANGUAGES.sub("", text, count=1))
    try:
        return "".join(_staged_parts(tree, name, text))
    except Wrong as wrong:
        path = tree.pages[name].relative_to(ROOT)
        raise Wrong(f"{path}: {wrong}") from wrong


def _staged_parts(tree: Tree, name: str, text: str) -> Iterator[str]:
    """Blocks between fences as they are, except formulas, and everything else translated."""
    end = 0
    for block in FENCED.finditer(text):
        yield _staged_prose(tree, name, text[end : block.start()])
        is_math = block["info"].strip() == "math"
        yield displayed(block["body"]) if is_math else block[0]
        end = block.end()
    yield _staged_prose(tree, name, text[end:])


def _staged_prose(tree: Tree, name: str, text: str) -> str:
    if lists := _LISTS.search(text):
        raise Wrong(
            f"the list at {lists[0].strip()!r} would not be one on the site: an empty line stands "
            "before a list, and a list inside another is indented by four spaces"
        )
    if is_chinese(tree.pages[name]):
        text = BROKEN_CHINESE.sub("", text)
        anchors = twin_anchors(tree.pages[name])
        text = _HEADING.sub(lambda found: f"{found[0]} {{ #{anchors[slug(found[1])]} }}", text)
    kept: list[str] = []

    def keep(made: str) -> str:
        """Put a made part out of the reach of the next steps."""
        kept.append(made)
        return f"\ufffc{len(kept) - 1}\ufffc"

    text = MARKER.sub(lambda found: keep(_code(tree, name, found)), text)
    text = _DRAWING.sub(lambda found: keep(drawing(tree, name, found)), text)
    text = DISPLAYED.sub(lambda found: keep(displayed(found["tex"])), text)
    text = CODE_OR_MATH.sub(lambda found: keep(found["code"] or inline(found["tex"])), text)
    text = _PICTURE.sub(r"[\g<0>](\g<target>)", text)
    text = LINK.sub(lambda found: found["open"] + site_link(tree, name, found["target"]), text)
    return re.sub("\ufffc(\\d+)\ufffc", lambda found: kept[int(found[1])], text)


def _code(tree: Tree, name: str, found: re.Match[str]) -> str:
    """The lines of the source that a marker names, as the site has them."""
    own = tree.pages[name]
    link = site_link(tree, name, os.path.relpath(ROOT / found["file"], own.parent))
    return staged_code(found, link, "zh" if is_chinese(own) else "en")


def drawing(tree: Tree, name: str, found: re.Match[str]) -> str:
    """A drawing as part of the page, so that its boxes are links, to pages of the site."""
    site_link(tree, name, found["target"])
    own = tree.pages[name].parent
    file = own / found["target"]

    def led(href: re.Match[str]) -> str:
        """From the page instead of from the picture."""
        target = os.path.relpath(file.parent / href[1], own)
        return f'href="{site_link(tree, name, target).removesuffix(".md")}.html"'

    lines = re.sub(r'href="([^"#]+)"', led, file.read_text(encoding="utf-8")).splitlines()
    labelled = f'<svg role="group" aria-label={quoteattr(found["alt"])} '
    return f'<div class="drawing">{"".join(lines).replace("<svg ", labelled, 1)}</div>'


def site_link(tree: Tree, name: str, target: str) -> str:
    """Where a link of the repository's page leads on the site."""
    if re.match(r"[a-z]+:", target):
        return target
    path, _, anchor = target.partition("#")
    own = tree.pages[name]
    file = Path(os.path.normpath(own.parent / path)) if path else own
    if not file.is_file() or ROOT not in file.parents:
        raise Wrong(f"the link {target} leads to no file of the repository")
    here = file.relative_to(ROOT).as_posix()
    if here in BESIDE | TRANSLATED_BESIDE or (DOCS in file.parents and file.suffix == ".md"):
        led = name_of(file)
        if led not in tree.pages:
            raise Wrong(f"the link {target} leads to a page that there is in Chinese only")
    elif DOCS / "images" in file.parents or file in AS_THEY_ARE:
        led = file.relative_to(DOCS).as_posix()
    else:
        tree.sources.add(here)
        led = source_page(here)
    relative = os.path.relpath(led, PurePosixPath(name).parent) if path else ""
    if anchor and is_chinese(file):
        anchor = twin_anchors(file).get(anchor, anchor)
    return f"{relative}#{anchor}" if anchor else relative


def slug(heading: str) -> str:
    """The name under which GitHub and the site link to a heading."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def twin_anchors(page: Path) -> dict[str, str]:
    """The headings of a Chinese page, and those of its English twin that they have on the site.

    So a link to a heading leads there in both languages, whichever it was written for.
    """
    beside = {english: name for name, english in BESIDE.items()}
    twin = ROOT / beside[name_of(page)] if CHINESE not in page.parents else DOCS / name_of(page)
    chinese, english = (
        [slug(title) for title in _HEADING.findall(FENCED.sub("", path.read_text("utf-8")))]
        for path in (page, twin)
    )
    if len(chinese) != len(english):
        raise Wrong(f"{page.name} has {len(chinese)} headings and its twin {len(english)}")
    return dict(zip(chinese, english, strict=True))


def source_page(source: str) -> str:
    """The name on the site of a file of the sources."""
    return f"source/{source}.md"


def stage_sources(sources: set[str], folder: Path) -> None:
    """Write a page for each source file: its lines, with their numbers."""
    for source in sorted(sources):
        _write(folder / source_page(source), _whole_source(source))


def _whole_source(source: str) -> str:
    text = (ROOT / source).read_text(encoding="utf-8")
    language = {".py": "python", ".toml": "toml", ".js": "javascript"}.get(
        Path(source).suffix, "text"
    )
    head = "---\nsearch:\n  exclude: true\n---\n"
    return f"{head}# {source}\n\n{fenced(text, language, first=1)}\n"


# ------------------------------------------------------------------------- formulas


def displayed(tex: str) -> str:
    """A formula in its own line, as MathML."""
    return f'<div class="formula">{mathml(tex, display="block")}</div>'


def inline(tex: str) -> str:
    """A formula in a line of text, as MathML that no rule of Markdown touches."""
    made = re.sub(r"(?<=>)[^<]+", lambda text: _spelt(text[0]), mathml(tex, display="inline"))
    return f'<span class="formula">{made}</span>'


def _spelt(text: str) -> str:
    """ASCII signs as character references, which mean nothing to Markdown."""
    return re.sub(r"[^\w\s&#;]|_", lambda sign: f"&#{ord(sign[0])};", text)


def mathml(tex: str, *, display: str) -> str:
    """Translate TeX to MathML; what the translator does not know is an error, not a gap."""
    made = convert(" ".join(tex.split()), display=display)
    unknown = re.findall(r"\\\w*|&(?![#\w]+;)", re.sub(r"<[^>]*>", " ", made))
    if unknown:
        raise Wrong(
            f"no MathML is known for {' '.join(sorted(set(unknown)))} in the formula {tex.strip()}"
        )
    return made


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
