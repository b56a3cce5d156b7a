"""What was found in a corpus: counts, and the first lines of each kind to look at."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from dragoman.wording import counted

__all__ = ["EXAMPLES", "CorpusReport", "Finding"]

EXAMPLES = 5
"""How many line numbers a finding keeps."""


@dataclass(slots=True)
class Finding:
    """How many lines have a property, and the first of them."""

    count: int = 0
    lines: list[int] = field(default_factory=list)
    """Line numbers, from 1; at most ``EXAMPLES``."""

    def add(self, line: int) -> None:
        """Count the line."""
        self.count += 1
        if len(self.lines) < EXAMPLES:
            self.lines.append(line)

    @classmethod
    def of(cls, lines: Sequence[int]) -> "Finding":
        """From all lines that have the property."""
        return cls(count=len(lines), lines=list(lines[:EXAMPLES]))

    def __str__(self) -> str:
        shown = ", ".join(f"{line:,}" for line in self.lines)
        more = ", ..." if self.count > len(self.lines) else ""
        return f"{self.count:,} (line{'s' * (self.count > 1)} {shown}{more})" if self.count else "0"


@dataclass(frozen=True, slots=True, kw_only=True)
class CorpusReport:
    """What a corpus holds, and what of it is used for training."""

    name: str
    """The corpus."""
    num_pairs: int
    """Lines in its files."""
    num_used: int
    """Pairs that training sees: all but the empty and the over-long ones."""
    empty: Finding
    """Pairs with nothing but spaces on one side or both; left out of training."""
    too_long: Finding
    """Pairs with more than ``max_length`` tokens on a side; left out of training."""
    identical: Finding
    """Pairs whose source is their target, letter by letter; kept."""
    max_length: int
    """The limit in tokens, of each side, that ``too_long`` was counted with."""

    def sentences(self) -> Iterator[str]:
        """The report in words: one line on the whole, one for each thing that was found."""
        pairs = counted(self.num_pairs, "pair is", "pairs are")
        yield f"{self.name}: {self.num_used:,} of {pairs} used."
        if self.empty.count:
            yield f"{self.name}: an empty side, left out: {self.empty}."
        if self.too_long.count:
            limit = f"more than {counted(self.max_length, 'token')} on a side"
            yield f"{self.name}: {limit}, left out: {self.too_long}."
        if self.identical.count:
            yield f"{self.name}: source and target are identical, kept: {self.identical}."
