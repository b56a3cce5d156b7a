"""What makes a translation doubtful, by its tokens and those of its source alone.

The thresholds are measured (docs/decisions.md): of the reference translations of five corpora,
either way, at most 0.03 % seem to loop and 0.22 % seem short. Attention is not asked: the coverage
of Tu et al. (2016) and Wu et al. (2016, section 7) finds no more truncated translations than their
length does, and costs another pass.
"""

from itertools import groupby
from operator import eq

from dragoman.decode import Hypothesis
from dragoman.tasks.translate.source import Ids, Source

REPEATS = 4
"""A translation repeats a cycle at least so many times more than its source does."""
SHORT = 3
"""A translation has less than one token for so many of its source."""
BROKEN = "\ufffd"
"""What bytes are read as that are no character."""
LONG_ENOUGH = 8
"""Tokens from which on a source is judged by its length, and may be cut."""

SEVERITIES = {"short": 1, "broken_characters": 2, "loop": 4, "max_length": 8, "no_output": 16}
"""How bad each flag is: more than those before it together."""


def quality_flags(src: Source, found: Hypothesis, text: str) -> set[str]:
    """The flags of a hypothesis, written as `text`: keys of `SEVERITIES`.

    `no_output`: the text is blank. `max_length`: the limit cut it. `loop`: it repeats one or more
    tokens over and over. `broken_characters`: it has bytes that are no character, each read as
    U+FFFD, more than its source has of these. `short`: it is much shorter than its source.
    """
    signs = {
        "short": len(src) >= LONG_ENOUGH and SHORT * len(found.ids) < len(src),
        "broken_characters": text.count(BROKEN) > src.text.count(BROKEN),
        "loop": loops(src.ids, found.ids),
        "max_length": found.stopped == "length",
        "no_output": not text.strip(),
    }
    return {flag for flag, holds in signs.items() if holds}


def severity(flags: set[str]) -> int:
    """A number that orders sets of flags: first by the worst in them, then by the next."""
    return sum(SEVERITIES[flag] for flag in flags)


def is_degenerate(flags: set[str]) -> bool:
    """Whether another search may help: a short translation may be right, the others are not."""
    return bool(flags - {"short"})


def loops(src: Ids, tgt: Ids) -> bool:
    """Whether the target repeats a cycle of tokens `REPEATS` times more than the source does.

    A source may say "no no no no", and a row of dots or digits repeats as well.
    """
    written = repeats(tgt, REPEATS + 1)
    return written > REPEATS and written >= repeats(src, 2) + REPEATS


def repeats(ids: Ids, least: int) -> int:
    """How often the most repeated cycle occurs in a row, where that is at least `least`; else 1.

    A cycle of p tokens occurs r times in a row where r * p - p tokens in a row equal the one p
    places after them. Costs O(n^2 / least) for n tokens.
    """
    most = 1
    for period in range(1, len(ids) // least + 1):
        same = groupby(map(eq, ids, ids[period:]))
        longest = max((sum(1 for _ in run) for equal, run in same if equal), default=0)
        if (times := longest // period + 1) >= least:
            most = max(most, times)
    return most
