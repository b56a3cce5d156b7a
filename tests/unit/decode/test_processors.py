"""Processors on their own."""

import math

import pytest
import torch

from dragoman.decode import (
    Forbid,
    ForbidSequences,
    ForcedPrefix,
    MinimumLength,
    NoRepeatedNgrams,
    Prefixes,
    RepetitionPenalty,
    relative_lengths,
)
from dragoman.errors import InputError

NEVER = float("-inf")


def prefixes(length: int, *sentences: int) -> Prefixes:
    """Return rows of so many tokens, of these sentences."""
    return Prefixes(torch.zeros(len(sentences), length).long(), torch.tensor(sentences))


def test_forbid_excludes_its_tokens_and_nothing_else() -> None:
    """Their columns are minus infinity in every row; the rest is unchanged."""
    logits_NV = Forbid((0, 3))(torch.ones(2, 5), prefixes(4, 0, 1))
    assert logits_NV.tolist() == [[NEVER, 1.0, 1.0, NEVER, 1.0]] * 2


@pytest.mark.parametrize(
    ("ids_NL", "forbidden"),
    [
        ([[], []], [{4}, {4}]),
        ([[1], [2]], [{2, 4}, {4}]),
        ([[3, 1], [1, 2]], [{2, 4}, {3, 4}]),
        ([[1, 2, 2], [2, 1, 2]], [{4}, {3, 4}]),
    ],
)
def test_a_sequence_is_forbidden_at_its_last_token(
    ids_NL: list[list[int]], forbidden: list[set[int]]
) -> None:
    """Row by row: the last token of a sequence whose other tokens end the row, and no others."""
    never = ForbidSequences(((1, 2), (1, 2, 3), (4,)))
    rows = Prefixes(torch.tensor(ids_NL).long().reshape(2, -1), torch.arange(2))
    logits_NV = never(torch.ones(2, 5), rows)
    assert [set(row.isinf().nonzero().flatten().tolist()) for row in logits_NV] == forbidden


@pytest.mark.parametrize(("length", "forbidden"), [(0, [1, 2]), (2, [2]), (3, [])])
def test_the_minimum_is_looked_up_by_sentence(length: int, forbidden: list[int]) -> None:
    """Row by row: eos is excluded while the row is shorter than its sentence's minimum."""
    at_least = MinimumLength(torch.tensor([0, 1, 9, 3]), eos_id=2)
    logits_NV = at_least(torch.ones(3, 4), prefixes(length, 0, 1, 3))
    expected_NV = torch.ones(3, 4)
    expected_NV[forbidden, 2] = NEVER
    assert torch.equal(logits_NV, expected_NV)


@pytest.mark.parametrize(("length", "forced"), [(0, {0: 0, 1: 3}), (1, {1: 1}), (2, {})])
def test_a_prefix_is_looked_up_by_sentence(length: int, forced: dict[int, int]) -> None:
    """Row by row: inside its sentence's prefix a row has one token, even a forbidden one."""
    begin = ForcedPrefix([[4, 4, 4], [0], [], [3, 1]], torch.device("cpu"))
    given_NV = torch.ones(3, 5)
    given_NV[:, 3] = NEVER
    logits_NV = begin(given_NV.clone(), prefixes(length, 1, 3, 2))
    for row in range(3):
        if row not in forced:
            assert torch.equal(logits_NV[row], given_NV[row])
        else:
            probs_V = logits_NV[row].softmax(0)
            assert probs_V.tolist() == [float(token == forced[row]) for token in range(5)]


def test_no_minimum_for_no_sentence() -> None:
    """An empty batch has a minimum length too."""
    at_least = MinimumLength(torch.tensor([], dtype=torch.long), eos_id=2)
    assert at_least(torch.ones(0, 4), prefixes(0)).shape == (0, 4)


def test_relative_lengths_are_linear_in_the_source() -> None:
    """Rounded down, never negative, and absolute if the factor is 0."""
    lengths_B = torch.tensor([0, 1, 3, 10])
    assert relative_lengths(lengths_B, factor=1.5, constant=2).tolist() == [2, 3, 6, 17]
    assert relative_lengths(lengths_B, factor=0.5, constant=-2).tolist() == [0, 0, 0, 3]
    assert relative_lengths(lengths_B, factor=0, constant=7).tolist() == [7, 7, 7, 7]


def test_an_ngram_is_not_begun_that_was_there() -> None:
    """Tokens that once followed the last two are excluded in their row; shorter texts are free."""
    ids_NL = torch.tensor([[5, 1, 2, 3, 1, 2], [5, 1, 2, 3, 2, 1]])
    logits_NV = NoRepeatedNgrams(3)(torch.ones(2, 6), Prefixes(ids_NL, torch.tensor([0, 1])))
    assert logits_NV.tolist() == [[1.0, 1.0, 1.0, NEVER, 1.0, 1.0], [1.0] * 6]
    short = Prefixes(ids_NL[:, :2], torch.tensor([0, 1]))
    assert NoRepeatedNgrams(3)(torch.ones(2, 6), short).tolist() == [[1.0] * 6] * 2


def test_prompts_are_looked_up_by_sentence() -> None:
    """Row by row, even after earlier sentences are done: the prompt counts as if it were output."""
    prompts_BS = torch.tensor([[4, 4], [1, 2], [3, 3]])
    rows = Prefixes(torch.tensor([[1], [3]]), torch.tensor([1, 2]))
    logits_NV = RepetitionPenalty(2.0, prompts_BS)(torch.ones(2, 5), rows)
    assert logits_NV.tolist() == [[1.0, 0.5, 0.5, 1.0, 1.0], [1.0, 1.0, 1.0, 0.5, 1.0]]
    logits_NV = NoRepeatedNgrams(2, prompts_BS)(torch.ones(2, 5), rows)
    assert logits_NV.tolist() == [[1.0, 1.0, NEVER, 1.0, 1.0], [1.0, 1.0, 1.0, NEVER, 1.0]]


@pytest.mark.parametrize("penalty", [0.0, -1.0, math.inf, math.nan])
def test_what_is_impossible_is_refused(penalty: float) -> None:
    """Each error names the option."""
    with pytest.raises(InputError, match="repetition_penalty"):
        RepetitionPenalty(penalty)
    with pytest.raises(InputError, match="no_repeat_ngrams is 0"):
        NoRepeatedNgrams(0)
