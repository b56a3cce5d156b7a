"""The best sequence of tags, against trying all sequences."""

from itertools import product
from math import isclose

import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from dragoman.data.tagged import find_spans
from dragoman.models.bio import allowed_pairs, best_tags

LABELS = ("O", "B-A", "I-A", "B-B", "I-B")
SEEDS = st.integers(0, 2**32)
PLAIN = ("noun", "verb", "I")


def draw(seed: int, batch: int, length: int) -> tuple[Tensor, Tensor]:
    """Draw logits of wide spread, and which positions are words."""
    rng = torch.Generator().manual_seed(seed)
    logits_BLC = torch.randn(batch, length, len(LABELS), generator=rng) * 3
    return logits_BLC, torch.rand(batch, length, generator=rng) < 0.6


def follows_the_scheme(tags: list[str]) -> bool:
    """Return whether every tag is allowed by BIO, as the file reader decides."""
    return find_spans(tags)[1] == 0


@given(SEEDS, st.integers(1, 3), st.integers(1, 7))
def test_no_allowed_row_is_more_probable(seed: int, batch: int, length: int) -> None:
    """Of all rows that form spans, tried one by one, none beats the one that is chosen."""
    logits_BLC, tagged_BL = draw(seed, batch, length)
    chosen_BL = best_tags(logits_BLC, tagged_BL, LABELS)
    for logits_LC, tagged_L, chosen_L in zip(logits_BLC, tagged_BL, chosen_BL, strict=True):
        log_probs = logits_LC[tagged_L].log_softmax(-1).tolist()
        rows = product(range(len(LABELS)), repeat=len(log_probs))
        allowed = (row for row in rows if follows_the_scheme([LABELS[tag] for tag in row]))

        def score(row: tuple[int, ...], log_probs: list[list[float]] = log_probs) -> float:
            return sum(values[tag] for values, tag in zip(log_probs, row, strict=True))

        found = tuple(chosen_L[tagged_L].tolist())
        assert follows_the_scheme([LABELS[tag] for tag in found])
        assert isclose(score(found), max(map(score, allowed)), abs_tol=1e-4)


@given(SEEDS, st.integers(1, 3), st.integers(1, 12))
def test_where_every_row_is_allowed_each_word_gets_its_best(
    seed: int, batch: int, length: int
) -> None:
    """Tags that are no spans are chosen one by one."""
    logits_BLC, tagged_BL = draw(seed, batch, length)
    logits_BLC = logits_BLC[..., :3]
    chosen_BL = best_tags(logits_BLC, tagged_BL, PLAIN)
    assert torch.equal(chosen_BL, logits_BLC.argmax(-1).masked_fill(~tagged_BL, 0))


@given(SEEDS, st.integers(1, 9), st.integers(1, 5))
def test_what_is_no_word_does_not_matter(seed: int, length: int, extra: int) -> None:
    """Pieces that carry no tag and padding change nothing, whatever their logits."""
    logits_BLC, tagged_BL = draw(seed, 2, length)
    others_BLC, _ = draw(seed + 1, 2, length + extra)
    others_BLC[:, :length][tagged_BL] = logits_BLC[tagged_BL]
    longer_BL = torch.cat([tagged_BL, torch.zeros(2, extra, dtype=torch.bool)], dim=1)
    chosen_BL = best_tags(others_BLC, longer_BL, LABELS)
    assert torch.equal(chosen_BL[:, :length], best_tags(logits_BLC, tagged_BL, LABELS))


def test_a_type_that_nothing_begins_is_tagged_word_by_word() -> None:
    """I-X is allowed anywhere if no label is B-X; the other types keep their rule."""
    labels = ("O", "I-A", "B-B", "I-B")
    allowed = allowed_pairs(labels)
    assert bool(allowed[:, labels.index("I-A")].all())
    assert allowed[:, labels.index("I-B")].tolist() == [False, False, True, True, False]
