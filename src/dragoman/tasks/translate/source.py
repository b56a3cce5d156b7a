"""What a search is asked for: a source of ids, and what its translation is to have."""

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import blake2b

from dragoman.decode.constrained import Term

Ids = Sequence[int]


@dataclass(frozen=True, slots=True)
class Source:
    """What is translated; its length is that of its ids."""

    ids: Ids
    prefix: Ids = ()
    """The ids that its translation begins with."""
    draw: int = 0
    """Which of its samples this is."""
    text: str = ""
    """What the ids are of, by which a retry cuts it."""
    terms: tuple[Term, ...] = ()
    """What its translation is to have, by the places of its ids."""

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def number(self) -> int:
        """What its random numbers follow from, beside the seed; independent of its place."""
        content = repr((list(self.ids), list(self.prefix), self.draw)).encode()
        return int.from_bytes(blake2b(content, digest_size=8).digest())
