"""What the pages for people say: their code blocks and their links."""

import io
import re
from collections.abc import Mapping
from contextlib import redirect_stdout
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
READMES = (ROOT / "README.md", ROOT / "README.zh-CN.md")
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *ROOT.glob("benchmarks/*.md")])

_BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_COMMENT = re.compile(r"\s+#.*$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Block:
    """A block of code between fences."""

    language: str
    """The word behind the first fence."""
    text: str
    """What is between the fences."""

    @property
    def commands(self) -> list[str]:
        """Of a block for the shell: a command a line, a continued line joined with the next."""
        lines = self.text.replace("\\\n", " ").splitlines()
        return [line for line in lines if line.strip() and not line.startswith("#")]

    @property
    def code(self) -> str:
        """The block without its comments, which differ between languages."""
        return _COMMENT.sub("", self.text)


def name_of(page: Path) -> str:
    """The page by its path in the repository."""
    return page.relative_to(ROOT).as_posix()


def blocks(page: Path, *languages: str) -> list[Block]:
    """The blocks of a page in these languages, in order."""
    found = _BLOCK.findall(page.read_text(encoding="utf-8"))
    return [Block(language, text) for language, text in found if language in languages]


def chinese(page: Path) -> Path:
    """The same page in Chinese."""
    if page == READMES[0]:
        return READMES[1]
    return ROOT / "docs" / "zh" / page.relative_to(ROOT / "docs")


def english(page: Path) -> Path:
    """The page that one of the Chinese pages of docs/ is a translation of."""
    return ROOT / "docs" / page.relative_to(ROOT / "docs" / "zh")


def links(page: Path) -> list[str]:
    """Where the links and pictures of a page lead, except into the network or into the page."""
    text = _BLOCK.sub("", page.read_text(encoding="utf-8"))
    found = re.findall(r"\]\(([^)\s]+)\)", text) + re.findall(r'<img [^>]*src="([^"]+)"', text)
    return [target for target in found if not target.startswith(("http", "mailto:", "#"))]


def shortened(code: str, changes: Mapping[str, str]) -> str:
    """Code of a page with other text for what each of these patterns finds, which is there."""
    for pattern, instead in changes.items():
        code, count = re.subn(pattern, instead, code, flags=re.MULTILINE)
        assert count, pattern
    return code


def run(code: str, page: str, names: dict[str, object] | None = None) -> str:
    """Run code of a page, with `names` if others need them, and return what it prints."""
    heard = io.StringIO()
    with redirect_stdout(heard):
        own = {"__name__": page} if names is None else names
        exec(compile(code, page, "exec"), own)  # noqa: S102 (the page is ours)
    return heard.getvalue()
