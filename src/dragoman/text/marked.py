"""Text with markup in it: what is read and translated, and the tags that stand between.

    Marked(("a ", Tag("<b>", "open"), "bold", Tag("</b>", "close"), " word", Tag("<br/>")))

Its `text` is "a bold word". Each open tag has its close tag in the same `Marked`; a tag whose
partner is elsewhere, or that has none, is void.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Literal


@dataclass(frozen=True, slots=True)
class Tag:
    """Markup at a place in a text: it comes back as it was written, once."""

    raw: str
    """As it is written in the document."""
    kind: Literal["open", "close", "void"] = "void"
    """Whether it begins or ends what it encloses; a void one encloses nothing."""
    kept: bool = False
    """Of an open one: what it encloses is copied, not translated."""
    shown: str = ""
    """Of a void one: what is read in its place, such as a space for a line break."""


@dataclass(frozen=True)
class Marked:
    """A text and its tags, in order. Raises ValueError unless open and close tags are nested."""

    pieces: tuple[str | Tag, ...]

    def __post_init__(self) -> None:
        depth = 0
        for tag in self.tags:
            depth += {"open": 1, "close": -1, "void": 0}[tag.kind]
            if depth < 0:
                break
        if depth:
            raise ValueError(f"the tags of {self.pieces!r:.80} are not nested")

    @property
    def tags(self) -> Iterator[Tag]:
        """The tags, in order."""
        return (piece for piece in self.pieces if isinstance(piece, Tag))

    @cached_property
    def text(self) -> str:
        """What is read: the pieces of text, and what void tags show."""
        return "".join(p if isinstance(p, str) else p.shown for p in self.pieces)
