"""Minimum Bayes risk: the order of candidates, and the translations that it selects."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from sacrebleu import sentence_chrf
from tests.unit.tasks.tiny import random_lines

from dragoman.tasks.results import Translation
from dragoman.tasks.translate.risk import chrf_pairs, least_risk
from dragoman.tasks.translate.translator import Translator

TEXTS = st.lists(st.text("ab c我", max_size=12), min_size=1, max_size=6)
SAMPLES: dict[str, Any] = {"beam_size": 1, "temperature": 0.5, "seed": 3}
BEAM: dict[str, Any] = {"beam_size": 12}
GROUPS: dict[str, Any] = {"beam_size": 12, "beam_groups": 3, "diversity": 2.0}


def slow_utilities(texts: list[str]) -> list[float]:
    """Return the mean chrF of each text against all, pair by pair."""
    return [sum(sentence_chrf(h, [r]).score for r in texts) / len(texts) for h in texts]


@given(TEXTS)
@example(["", ""])
@example(random_lines(6))
def test_the_order_is_that_of_the_mean_utility(texts: list[str]) -> None:
    """By sacreBLEU's chrF of every text against every text, empty and short ones too.

    Each different text once, in falling order; copies count.
    """
    expected = np.array([[sentence_chrf(h, [r]).score for r in texts] for h in texts])
    np.testing.assert_allclose(chrf_pairs(texts), expected, rtol=1e-12, atol=1e-12)
    order = least_risk(texts)
    assert sorted(order) == sorted({texts.index(text) for text in texts})
    found = expected.mean(1)[order].tolist()
    assert found == pytest.approx(sorted(found, reverse=True), abs=1e-9)


def test_equals_keep_their_order() -> None:
    """Copies are merged, and equally good texts keep their order."""
    assert least_risk(["the cat"] * 5) == [0]
    assert least_risk(["aaa", "bbb", "ccc"]) == [0, 1, 2]
    assert least_risk(["ab", "ba", "ab", "ba"]) == [0, 1]
    assert least_risk(["", "  ", ""]) == [0, 1]


def every(translation: Translation) -> list[Translation]:
    """Return the n best translations."""
    return [translation, *translation.alternatives]


@pytest.mark.parametrize("choices", [BEAM, GROUPS, SAMPLES], ids=["beam", "groups", "samples"])
def test_the_candidates_are_those_of_the_search(
    translator: Translator, choices: dict[str, Any]
) -> None:
    """Candidates and scores are unchanged, ordered as by a double loop, and n are returned."""
    plain = replace(translator.options, retry=False, **choices)
    moved = 0
    for line in random_lines(8, seed=2):
        candidates = every(translator.translate(line, options=replace(plain, n_best=12)))
        texts = [one.text for one in candidates]
        utilities = dict(zip(texts, slow_utilities(texts), strict=True))
        for n_best in (1, 4, 12):
            options = replace(plain, mbr=12, n_best=n_best)
            found = every(translator.translate(line, options=options))
            assert len(found) == min(n_best, len(utilities))
            values = [utilities[one.text] for one in found]
            wanted = sorted(utilities.values(), reverse=True)[: len(found)]
            assert values == pytest.approx(wanted, abs=1e-9)
            for one in found:
                same = candidates[texts.index(one.text)]
                assert (one.score, one.tokens) == (same.score, same.tokens)
        moved += found[0].text != texts[0]
    assert moved


def test_groups_find_more_than_a_beam(translator: Translator) -> None:
    """The first tokens of the n best are more diverse."""
    lines = random_lines(10, seed=5)
    plain = replace(translator.options, retry=False, n_best=12, **BEAM)
    beam, groups = (
        sum(len({one.tokens[:1] for one in every(found)}) for found in some)
        for some in (
            translator.translate(lines, options=options)
            for options in (plain, replace(plain, **GROUPS))
        )
    )
    assert groups > beam
