"""Lines of the source on a page: the few that carry an idea, and the rest of their function.

An author names a file of the repository and a class, function, method or constant in it, and, where
all of it would be too long, a piece of text of the first and of the last line to show:

    <!-- code: src/dragoman/nn/attention.py:MultiHeadAttention.forward -->
    <!-- code: src/dragoman/nn/dot_product.py:additive from "zeros =" to "return" -->

`python docs/make.py pages` writes the lines below the marker, with a link to their file, and an end
marker; it writes them again whenever the source has changed, and a test compares the two. (`fmt`
keeps the formatter of code in Markdown away.) They are found by parsing the file. A docstring of
several lines is left out. A paragraph that is nothing but a link such as
[`src/dragoman/nn/norm.py:RMSNorm`](../src/dragoman/nn/norm.py) becomes such a block. On the site
what is left out is folded away in its place, and the lines have their numbers.
"""

import ast
import os
import re
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
MOST_LINES = 15
"""Of the lines on a page: more is for the file."""

MARKER = re.compile(
    r'^<!-- code: (?P<file>[\w./-]+\.py):(?P<name>[\w.]+)(?: from "(?P<start>[^"\n]+)")?'
    r'(?: to "(?P<stop>[^"\n]+)")? -->$',
    re.M,
)
BLOCK = re.compile(
    rf"(?P<marker>{MARKER.pattern})(?:\n(?:(?!<!-- code: ).)*?^<!-- end -->$)?", re.M | re.S
)
_BARE = re.compile(r"(?<=\n\n)\[`(?P<what>[\w./-]+\.py:[\w.]+)`\]\([^)\s]+\)(?=\n\n|\n?\Z)", re.M)
_FOLDED = {"en": "{} more lines", "zh": "其余 {} 行"}


class Wrong(Exception):  # noqa: N818 (a sentence about a page, not an error of the program)
    """What is wrong on a page, in a sentence."""


@dataclass(frozen=True, slots=True)
class Lines:
    """Lines of a source file, one after another."""

    code: str
    """The lines, without the indentation that they share."""
    first: int
    """The number of the first one."""
    shown: bool = True
    """Whether they are on the page, or folded away on the site."""


def filled(page: Path) -> str:
    """The text of a page with the lines of the source that its markers name, as they are now."""
    text = _BARE.sub(lambda found: f"<!-- code: {found['what']} -->", page.read_text("utf-8"))
    try:
        return BLOCK.sub(lambda found: _written(page, found), text)
    except Wrong as wrong:
        raise Wrong(f"{page.relative_to(ROOT)}: {wrong}") from wrong


def _written(page: Path, found: re.Match[str]) -> str:
    """A marker and, below it, the lines that it names."""
    code = "\n".join(part.code for part in parts_of(found) if part.shown)
    code = textwrap.dedent(code)
    count = code.count("\n") + 1
    if count > MOST_LINES:
        raise Wrong(
            f"{found['file']}:{found['name']} shows {count} lines, at most {MOST_LINES} fit; "
            'say from "..." to "..." which'
        )
    target = os.path.relpath(ROOT / found["file"], page.parent)
    link = f"[`{found['file']}:{found['name']}`]({target})"
    shown = f"<!-- fmt: off -->\n{fenced(code, 'py')}\n<!-- fmt: on -->"
    return f"{found['marker']}\n{shown}\n\n{link}\n<!-- end -->"


def staged_code(found: re.Match[str], link: str, language: str) -> str:
    """What the site has for a marker: the lines with their numbers, what is left out folded away.

    `link` leads to the page of the file.
    """
    parts = list(parts_of(found))
    made = [_staged_part(part, language) for part in parts]
    first = next(part.first for part in parts if part.shown)
    place = f"[{found['file']}:{first}]({link}#__codelineno-0-{first})"
    return "\n\n".join([*made, f"{place}{{ .source }}"])


def _staged_part(part: Lines, language: str) -> str:
    code = fenced(part.code, "python", first=part.first)
    if part.shown:
        return code
    summary = _FOLDED[language].format(part.code.count("\n") + 1)
    head = f'<details class="rest" markdown="1">\n<summary>{summary}</summary>'
    return f"{head}\n\n{code}\n\n</details>"


def parts_of(found: re.Match[str]) -> Iterator[Lines]:
    """Cut the lines of a name into those on the page and those that are left out, in order."""
    lines = lines_of(found["file"], found["name"])
    code = lines.code.splitlines()
    where = f"{found['file']}:{found['name']}"
    start = _line_with(code, found["start"], 0, where) if found["start"] else 0
    stop = _line_with(code, found["stop"], start, where) if found["stop"] else len(code) - 1
    hidden = {*range(start), *range(stop + 1, len(code))}
    if not found["start"]:
        hidden |= docstring_of(lines)
    begin = 0
    for number in range(1, len(code) + 1):
        if number == len(code) or (number in hidden) != (begin in hidden):
            while not code[begin]:
                begin += 1
            run = "\n".join(code[begin:number]).rstrip()
            yield Lines(run, lines.first + begin, begin not in hidden)
            begin = number


def _line_with(code: list[str], text: str, begin: int, where: str) -> int:
    """The number of the first line from `begin` on that holds a text."""
    for number in range(begin, len(code)):
        if text in code[number]:
            return number
    raise Wrong(f"{where} has no line with {text!r}")


def lines_of(file: str, name: str) -> Lines:
    """Find the lines of a class, a function, a method or a constant, by parsing the file."""
    path = ROOT / file
    if not path.is_file():
        raise Wrong(f"there is no file {file}")
    text = path.read_text(encoding="utf-8")
    found = ast.parse(text).body
    for part in name.split("."):
        named = [node for node in found if part in _names(node)]
        if not named:
            raise Wrong(f"{file} has no {name}")
        found = getattr(named[0], "body", [])
    node = named[0]
    first = min([node.lineno, *(d.lineno for d in getattr(node, "decorator_list", []))])
    lines = text.splitlines()[first - 1 : node.end_lineno]
    return Lines(textwrap.dedent("\n".join(lines)), first)


def _names(node: ast.stmt) -> set[str]:
    """The names that a statement defines."""
    match node:
        case ast.ClassDef() | ast.FunctionDef() | ast.AsyncFunctionDef():
            return {node.name}
        case ast.Assign():
            return {target.id for target in node.targets if isinstance(target, ast.Name)}
        case ast.AnnAssign(target=ast.Name(id=name)):
            return {name}
        case _:
            return set()


def docstring_of(lines: Lines) -> set[int]:
    """The lines, from 0, of the docstring of a class or function, if it has more than one."""
    node = ast.parse(lines.code).body[0]
    if not isinstance(node, ast.ClassDef | ast.FunctionDef) or ast.get_docstring(node) is None:
        return set()
    told = node.body[0]
    end = told.end_lineno or told.lineno
    return set(range(told.lineno - 1, end)) if end > told.lineno else set()


def fenced(code: str, language: str, *, first: int | None = None) -> str:
    """Code between fences that are longer than any run of backticks in it, with line numbers."""
    fence = "`" * max([3, *(len(run) + 1 for run in re.findall("`{3,}", code))])
    numbers = "" if first is None else f' linenums="{first}"'
    return f"{fence}{language}{numbers}\n{code.rstrip()}\n{fence}"
