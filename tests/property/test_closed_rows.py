"""The rows of a beam whose hypotheses have ended are not computed."""

from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.processors import needs_compiler
from tests.property.test_engine import LENGTHS, PRECISIONS, SEEDS
from tests.unit.models.small import BOS, EOS, make_model, random_sentences
from torch import Tensor

from dragoman.decode import Beam, DiverseBeam, Limits, search
from dragoman.engine import BeamStore, FrozenEncoderDecoder, freeze
from dragoman.nn import Arithmetic, row_invariant_products

pytestmark = needs_compiler


class Counting:
    """A model that counts the rows of its steps."""

    def __init__(self, model: FrozenEncoderDecoder, *, uneven: bool) -> None:
        self.rows, self._model, self._uneven = 0, model, uneven

    def start(self, src_BS: Tensor, beam_size: int) -> BeamStore:
        """Start the model, with states that may or may not leave rows out."""
        state = self._model.start(src_BS, beam_size)
        state.uneven = self._uneven
        return state

    def step(self, ids_N: Tensor, state: BeamStore) -> Tensor:
        """Count the rows, and step."""
        self.rows += len(ids_N)
        return self._model.step(ids_N, state)


@pytest.mark.parametrize("precision", PRECISIONS)
@given(SEEDS, LENGTHS, st.sampled_from([Beam(beam_size=4), DiverseBeam(beam_size=4, groups=2)]))
@settings(max_examples=15, deadline=None)
def test_rows_that_are_closed_are_not_computed(
    precision: Arithmetic, seed: int, lengths: list[int], strategy: Beam
) -> None:
    """Steps have no rows but those that go on, and what is found has the same bits."""
    fast, src_BS = freeze(make_model().float(), precision), random_sentences(seed, lengths)
    assert isinstance(fast, FrozenEncoderDecoder)
    generator = torch.Generator().manual_seed(seed)
    max_B = torch.randint(1, 50, (len(lengths),), generator=generator)
    limits = Limits(bos_id=BOS, eos_id=EOS, max_B=max_B)

    def found(*, uneven: bool) -> tuple[list[Any], int]:
        model = Counting(fast, uneven=uneven)
        with row_invariant_products():
            return search(model, src_BS, strategy, limits=limits), model.rows

    (few, fewer_rows), (all_, rows) = found(uneven=True), found(uneven=False)
    assert few == all_
    assert fewer_rows < rows
