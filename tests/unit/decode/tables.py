"""A model that is a table, and two slow searches over it that can be checked by eye.

The logits of the next token are a function of the source and the prefix, both tuples of ids, so
the right answer of every search is known without a network.
"""

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor
from torch.nn import functional as F

from dragoman.decode import Hypothesis, Limits

PAD, BOS, EOS = 0, 1, 2
Ids = tuple[int, ...]
Table = Callable[[Ids, Ids], Sequence[float]]


def random_table(seed: int, vocab_size: int, *, levels: int | None = None) -> Table:
    """Return a table of arbitrary logits; `levels` limits the distinct values, for many ties."""

    def logits(src: Ids, prefix: Ids) -> list[float]:
        numbers = random.Random(f"{seed}|{src}|{prefix}")
        if levels is not None:
            return [float(numbers.randrange(levels)) for _ in range(vocab_size)]
        return [numbers.gauss(0, 2) for _ in range(vocab_size)]

    return logits


def log_probs(table: Table, src: Ids, prefix: Ids) -> list[float]:
    """Return the log-softmax of an entry, in float32 as in the search."""
    row: list[float] = F.log_softmax(torch.tensor([table(src, prefix)]), dim=1)[0].tolist()
    return row


@dataclass
class TableState:
    """The prefixes of all rows."""

    beam_size: int
    sources: list[Ids]
    prefixes: list[Ids]
    sizes: list[int] = field(default_factory=list)
    """Number of rows after each selection."""

    def select(self, rows_N: Tensor) -> None:
        """Reorder, and check that the caller follows the protocol."""
        rows = rows_N.tolist()
        groups = [row // self.beam_size for row in rows]
        assert len(rows) % self.beam_size == 0
        for start in range(0, len(rows), self.beam_size):
            assert len(set(groups[start : start + self.beam_size])) == 1
        kept = groups[:: self.beam_size]
        assert kept == sorted(set(kept))
        self.sources = [self.sources[row] for row in rows]
        self.prefixes = [self.prefixes[row] for row in rows]
        self.sizes.append(len(rows))


@dataclass
class TableModel:
    """The protocol's model over a table; padding of the source is ignored."""

    table: Table
    states: list[TableState] = field(default_factory=list)
    steps: int = 0

    def start(self, src_BS: Tensor, beam_size: int) -> TableState:
        """Start one row for each beam of each sentence, all prefixes empty."""
        sources = [tuple(token for token in row if token != PAD) for row in src_BS.tolist()]
        rows = [source for source in sources for _ in range(beam_size)]
        self.states.append(TableState(beam_size, rows, [()] * len(rows)))
        return self.states[-1]

    def step(self, ids_N: Tensor, state: TableState) -> Tensor:
        """Read a token for each row; the first is bos and is not part of the prefix."""
        self.steps += 1
        state.prefixes = [
            (*prefix, token) for prefix, token in zip(state.prefixes, ids_N.tolist(), strict=True)
        ]
        assert all(prefix[0] == BOS for prefix in state.prefixes)
        return torch.tensor(
            [
                self.table(src, prefix[1:])
                for src, prefix in zip(state.sources, state.prefixes, strict=True)
            ]
        )


@dataclass
class PromptState:
    """The tokens that each row has read."""

    read: list[Ids]

    def select(self, rows_N: Tensor) -> None:
        """Reorder."""
        self.read = [self.read[row] for row in rows_N.tolist()]


@dataclass
class PromptModel:
    """The protocol's model over a table, decoder-only: the source is a prompt to continue."""

    table: Table
    prompts: list[list[Ids]] = field(default_factory=list)
    """The prompts of every start."""

    def start(self, src_BS: Tensor, beam_size: int) -> PromptState:
        """Read all but the last token of each prompt, for each of its beams."""
        self.prompts.append([tuple(row) for row in src_BS.tolist()])
        return PromptState([row[:-1] for row in self.prompts[-1] for _ in range(beam_size)])

    def step(self, ids_N: Tensor, state: PromptState) -> Tensor:
        """Read a token for each row; the table is asked about all that was read."""
        rows = zip(state.read, ids_N.tolist(), strict=True)
        state.read = [(*read, token) for read, token in rows]
        return torch.tensor([self.table((), read) for read in state.read])


def sources(*rows: Sequence[int]) -> Tensor:
    """Return padded sources (B, S)."""
    length = max((len(row) for row in rows), default=0)
    padded = [[*row, *[PAD] * (length - len(row))] for row in rows]
    return torch.tensor(padded, dtype=torch.long).reshape(len(rows), length)


def limits(*most: int) -> Limits:
    """Return limits with the special ids of these tables."""
    return Limits(bos_id=BOS, eos_id=EOS, max_B=torch.tensor(most, dtype=torch.long))


@dataclass(frozen=True)
class Leaf:
    """A complete sequence: its tokens (eos included), its log-probability and its score."""

    tokens: Ids
    log_prob: float
    score: float


def penalty(length: int, alpha: float) -> float:
    """Return GNMT's length penalty."""
    return float(((5 + length) / 6) ** alpha)


def leaves(table: Table, src: Ids, most: int, alpha: float) -> list[Leaf]:
    """Return all complete sequences of at most `most` tokens, best score first."""

    def walk(prefix: Ids, log_prob: float) -> Iterator[Leaf]:
        for token, value in enumerate(log_probs(table, src, prefix)):
            tokens, total = (*prefix, token), log_prob + value
            if total == float("-inf"):
                continue
            if token == EOS or len(tokens) == most:
                yield Leaf(tokens, total, total / penalty(len(tokens), alpha))
            else:
                yield from walk(tokens, total)

    return sorted(walk((), 0.0), key=lambda leaf: -leaf.score)


def slow_beams(
    table: Table,
    src: Ids,
    most: int,
    beam: tuple[int, float],
    *,
    groups: int = 1,
    diversity: float = 0.0,
) -> list[list[Leaf]]:
    """Run beam search in plain Python; return each group's complete sequences, best first.

    It runs to the end: no early stopping, no batch; a complete group takes no more tokens.
    Sums are rounded to float32, as in the search, so that ties are ties here too.
    """
    width, alpha = beam[0] // groups, beam[1]
    beams: list[list[tuple[Ids, float]]] = [[((), 0.0)] for _ in range(groups)]
    complete: list[list[Leaf]] = [[] for _ in range(groups)]
    for length in range(1, most + 1):
        taken: list[int] = []
        for group in range(groups):
            ranked = [
                ((*prefix, token), torch.tensor(log_prob).add(value).item())
                for prefix, log_prob in beams[group]
                for token, value in sorted(
                    enumerate(log_probs(table, src, prefix)), key=lambda entry: -entry[1]
                )
            ]
            ranked.sort(key=lambda entry: diversity * taken.count(entry[0][-1]) - entry[1])
            chosen = ranked[: width - len(complete[group])]
            taken += [tokens[-1] for tokens, _ in chosen]
            beams[group] = []
            for tokens, total in chosen:
                if tokens[-1] == EOS or length == most:
                    complete[group].append(Leaf(tokens, total, total / penalty(length, alpha)))
                else:
                    beams[group].append((tokens, total))
    return [sorted(found, key=lambda leaf: -leaf.score) for found in complete]


def tokens_of(hypothesis: Hypothesis) -> Ids:
    """Return the generated tokens, eos included."""
    return (*hypothesis.ids, EOS) if hypothesis.stopped == "eos" else hypothesis.ids
