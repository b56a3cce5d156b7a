"""Sources and steps in one call compute what their operations compute one by one."""

from dataclasses import replace

import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tests.unit.models.small import SMALL, VARIANTS, make_model, random_ids, random_sentences
from torch import Tensor, nn

from dragoman.engine import FrozenEncoderDecoder, freeze
from dragoman.engine.products import can_pack
from dragoman.engine.store import BLOCK
from dragoman.models import EncoderDecoder
from dragoman.nn import Arithmetic
from dragoman.nn.norm import LayerNorm

SEEDS = st.integers(0, 2**32)
LENGTHS = st.lists(st.integers(1, 30), min_size=1, max_size=6)


def with_and_without(model: EncoderDecoder) -> tuple[FrozenEncoderDecoder, FrozenEncoderDecoder]:
    """Freeze a model twice in int8; the second runs operation by operation."""
    fast, slow = freeze(model, "int8"), freeze(model, "int8")
    assert isinstance(fast, FrozenEncoderDecoder)
    assert isinstance(slow, FrozenEncoderDecoder)
    slow._decoder._recorded = slow._encoder._recorded = False
    return fast, slow


@pytest.mark.skipif(not can_pack("int8"), reason="no int8 here")
@given(st.sampled_from(list(VARIANTS)), SEEDS, LENGTHS, st.integers(1, 4))
@example("learned", 0, [1], 1)  # whose embeddings are normed
@settings(max_examples=60, deadline=None)
@torch.inference_mode()
def test_a_program_has_the_bits_of_its_operations(
    name: str, seed: int, lengths: list[int], beam_size: int
) -> None:
    """One call for a step gives what one call for each operation gives, beyond a block too."""
    model, src_BS = make_model(VARIANTS[name]).float(), random_sentences(seed, lengths)
    fast, slow = with_and_without(model)
    rows = len(lengths) * beam_size
    states = [each.start(src_BS, beam_size) for each in (fast, slow)]
    for turn in range(BLOCK + 2):
        ids_N = random_ids(seed + turn, rows)
        together, alone = (
            each.step(ids_N, state).clone()
            for each, state in zip((fast, slow), states, strict=True)
        )
        assert torch.equal(together, alone)
        if turn == 3 and len(lengths) > 1:
            rows -= beam_size
            for state in states:
                state.select(torch.arange(rows))


@pytest.mark.skipif(not can_pack("int8"), reason="no int8 here")
@torch.inference_mode()
def test_a_table_may_lie_in_memory_column_by_column() -> None:
    """Weights from another library may be transposed in memory."""
    model, src_BS = make_model().float(), random_sentences(1, [4, 7])
    weight_VD = model.tgt_embedding.weight.detach()
    expected, _ = with_and_without(model)
    model.tgt_embedding.weight = nn.Parameter(weight_VD.t().contiguous().t())
    turned, _ = with_and_without(model)
    ids_N = random_ids(2, 2)
    logits_NV = [each.step(ids_N, each.start(src_BS, 1)) for each in (expected, turned)]
    assert torch.equal(*logits_NV)


class OwnNorm(LayerNorm):
    """A norm that computes something else."""

    def forward(self, x_BLD: Tensor) -> Tensor:
        """Return half of the norm."""
        return 0.5 * super().forward(x_BLD)


@pytest.mark.skipif(not can_pack("int8"), reason="no int8 here")
@torch.inference_mode()
def test_a_last_norm_of_the_users_own_is_kept() -> None:
    """It is not part of a program, and is not skipped."""
    config = replace(SMALL, norm_position="pre")
    model = make_model(config).float()
    model.decoder.final_norm = OwnNorm(config.d_model)
    fast, slow = with_and_without(model)
    src_BS, ids_N = random_ids(0, 3, 5), random_ids(1, 3)
    found = [each.step(ids_N, each.start(src_BS, 1)) for each in (fast, slow)]
    assert torch.equal(*found)


@pytest.mark.parametrize("precision", ["fp32", "int8"])
@torch.inference_mode()
def test_another_default_dtype_changes_nothing(precision: Arithmetic) -> None:
    """The memory that compiled code writes to has a fixed dtype, whatever the user's default."""
    if not can_pack(precision):
        pytest.skip(f"no {precision} here")
    model = make_model(VARIANTS["paper"]).float()
    src_BS, ids_N, found = random_ids(0, 3, 7), random_ids(1, 6), []
    for dtype in (torch.float32, torch.bfloat16, torch.float64):
        torch.set_default_dtype(dtype)
        try:
            frozen = freeze(model, precision)
            assert isinstance(frozen, FrozenEncoderDecoder)
            found.append(frozen.step(ids_N, frozen.start(src_BS, 2)).clone())
        finally:
            torch.set_default_dtype(torch.float32)
    assert torch.equal(found[0], found[1])
    assert torch.equal(found[0], found[2])
