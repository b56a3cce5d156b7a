"""Processors alone."""

import pytest
import torch

from dragoman.decode import Forbid, MinimumLength, Prefixes, relative_lengths

NEVER = float("-inf")


def prefixes(length: int, *sentences: int) -> Prefixes:
    """Rows of so many tokens, of these sentences."""
    return Prefixes(torch.zeros(len(sentences), length).long(), torch.tensor(sentences))


def test_forbid_excludes_its_tokens_and_nothing_else() -> None:
    """Those columns are minus infinity in every row; the rest is untouched."""
    logits_NV = Forbid((0, 3))(torch.ones(2, 5), prefixes(4, 0, 1))
    assert logits_NV.tolist() == [[NEVER, 1.0, 1.0, NEVER, 1.0]] * 2


@pytest.mark.parametrize(("length", "forbidden"), [(0, [1, 2]), (2, [2]), (3, [])])
def test_the_minimum_is_looked_up_by_sentence(length: int, forbidden: list[int]) -> None:
    """Row by row: eos is excluded while the row is shorter than its sentence's minimum."""
    at_least = MinimumLength(torch.tensor([0, 1, 9, 3]), eos_id=2)
    logits_NV = at_least(torch.ones(3, 4), prefixes(length, 0, 1, 3))
    expected_NV = torch.ones(3, 4)
    expected_NV[forbidden, 2] = NEVER
    assert torch.equal(logits_NV, expected_NV)


def test_no_minimum_for_no_sentence() -> None:
    """An empty batch has a minimum length too."""
    at_least = MinimumLength(torch.tensor([], dtype=torch.long), eos_id=2)
    assert at_least(torch.ones(0, 4), prefixes(0)).shape == (0, 4)


def test_relative_lengths_are_linear_in_the_source() -> None:
    """Rounded down, never negative, and absolute where the factor is 0."""
    lengths_B = torch.tensor([0, 1, 3, 10])
    assert relative_lengths(lengths_B, factor=1.5, constant=2).tolist() == [2, 3, 6, 17]
    assert relative_lengths(lengths_B, factor=0.5, constant=-2).tolist() == [0, 0, 0, 3]
    assert relative_lengths(lengths_B, factor=0, constant=7).tolist() == [7, 7, 7, 7]
