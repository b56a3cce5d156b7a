"""Doubts about a translation: loops, limits, nothing at all, much too short."""

from itertools import product
from typing import Literal

import pytest

from dragoman.decode import Hypothesis
from dragoman.tasks.translate.retries import (
    LONG_ENOUGH,
    REPEATS,
    SEVERITIES,
    is_degenerate,
    loops,
    quality_flags,
    repeats,
    severity,
)
from dragoman.tasks.translate.source import Source


def hypothesis(ids: list[int], stopped: Literal["eos", "length"] = "eos") -> Hypothesis:
    """One with these ids."""
    return Hypothesis(
        ids=tuple(ids), score=-1.0, log_prob=-1.0, token_log_probs=(-1.0,), stopped=stopped
    )


def count_slowly(ids: list[int]) -> int:
    """The most repeated cycle, by trying each place and period."""
    most = 1
    for start, period in product(range(len(ids)), range(1, len(ids) + 1)):
        times = 1
        cycle = ids[start : start + period]
        while ids[start + times * period : start + (times + 1) * period] == cycle:
            times += 1
        if len(cycle) == period:
            most = max(most, times)
    return most


@pytest.mark.parametrize("length", range(9))
def test_repeats_are_those_that_one_counts(length: int) -> None:
    """For every row of two tokens, and each least number."""
    for ids in product((5, 6), repeat=length):
        expected = count_slowly(list(ids))
        for least in (2, 3, 5):
            assert repeats(ids, least) == (expected if expected >= least else 1)


@pytest.mark.parametrize("period", [1, 2, 7])
def test_a_cycle_loops_wherever_it_stands(period: int) -> None:
    """From one repetition more than REPEATS on; at the end, the beginning, and in the middle."""
    cycle = list(range(10, 10 + period))
    for before, after in (([], []), ([1, 2], []), ([1], [2, 3])):
        assert loops([1, 2, 3], [*before, *cycle * (REPEATS + 1), *after])
        assert not loops([1, 2, 3], [*before, *cycle * REPEATS, *after])


def test_a_source_that_repeats_may_be_answered_alike() -> None:
    """Also in cycles of another length; what goes far beyond the source is a loop."""
    laughing = [4, 5] * 6
    assert not loops(laughing, [7] * 9)
    assert loops(laughing, [7] * 10)
    assert not loops([8] * 20, [9, 10] * 20)


def test_each_doubt_has_its_cause() -> None:
    """And a translation without any has none."""
    src = list(range(20, 20 + 3 * LONG_ENOUGH))
    enough = list(range(LONG_ENOUGH))
    assert quality_flags(Source(src), hypothesis(enough), "text") == set()
    assert quality_flags(Source(src), hypothesis(enough[1:]), "text") == {"short"}
    assert quality_flags(Source(src[: LONG_ENOUGH - 1]), hypothesis([5]), "text") == set()
    assert quality_flags(Source(src), hypothesis(enough, "length"), "text") == {"max_length"}
    assert quality_flags(Source(src[:5]), hypothesis([5]), " \n") == {"no_output"}
    assert quality_flags(Source(src[:5]), hypothesis([5] * 9, "length"), "a") == {
        "loop",
        "max_length",
    }


def test_bytes_that_are_no_character_are_flagged() -> None:
    """Unless the source has as many of what stands for them."""
    source = Source([5, 6], text="a \ufffd b")
    for text, flags in {
        "x": set(),
        "\ufffd x": set(),
        "\ufffdx\ufffd": {"broken_characters"},
    }.items():
        assert quality_flags(source, hypothesis([5]), text) == flags
    assert quality_flags(Source([5]), hypothesis([5]), "\ufffd") == {"broken_characters"}


def test_severity_orders_by_the_worst() -> None:
    """One worse doubt weighs more than all lesser ones; only a short one is no reason to retry."""
    names = list(SEVERITIES)
    for place, name in enumerate(names):
        assert severity({name}) > severity(set(names[:place]))
        assert is_degenerate({name}) == (name != "short")
    assert not is_degenerate(set())
