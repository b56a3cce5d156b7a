"""A sentence's logits do not depend on its neighbours, bit for bit, in float32 on a CPU."""

from collections.abc import Iterator
from dataclasses import replace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.processors import needs_independent_rows
from tests.unit.models.small import PAD, SMALL, VARIANTS, V, make_model, random_ids
from torch import Tensor

from dragoman.models import EncoderDecoder
from dragoman.nn import row_invariant_products

pytestmark = needs_independent_rows

SEEDS = st.integers(0, 2**32)


# Sentences on both sides of the lengths where kernels change, 16 and 32 among them.
SENTENCES = st.lists(
    st.tuples(st.one_of(st.integers(1, 20), st.integers(1, 70)), SEEDS), min_size=1, max_size=6
)
WIDE = replace(SMALL, d_model=64, d_ff=1100, num_encoder_layers=1, num_decoder_layers=1)
MODELS = {name: make_model(config, torch.float32) for name, config in VARIANTS.items()}
MODELS["wide"] = make_model(WIDE, torch.float32)
NAMES = st.sampled_from(list(MODELS))


@pytest.fixture(autouse=True, params=[1, 3], ids=["1-thread", "3-threads"])
def threads(request: pytest.FixtureRequest) -> Iterator[None]:
    """Let torch use one thread or an odd number of threads, and row-invariant products."""
    before = torch.get_num_threads()
    torch.set_num_threads(request.param)
    with torch.inference_mode(), row_invariant_products():
        yield
    torch.set_num_threads(before)


def batch(sentences: list[tuple[int, int]], extra: int) -> Tensor:
    """Make ids of these lengths and seeds, with `extra` columns of padding beyond the need."""
    width = max(length for length, _ in sentences) + extra
    ids_BL = torch.full((len(sentences), width), PAD)
    for row, (length, seed) in zip(ids_BL, sentences, strict=True):
        row[:length] = random_ids(seed, length)
    return ids_BL


def decoded(model: EncoderDecoder, src_BS: Tensor, beam_size: int, steps: int = 4) -> Tensor:
    """Decode with tokens that depend only on the sentence: logits `(B, steps, W, V)`."""
    state = model.start(src_BS, beam_size)
    ids_BW = (src_BS[:, :1] + torch.arange(beam_size)) % (V - 4) + 4
    logits = []
    for _ in range(steps):
        out_NV = model.step(ids_BW.flatten(), state)
        logits.append(out_NV.unflatten(0, ids_BW.shape))
        ids_BW = out_NV.argmax(-1).view_as(ids_BW)
    return torch.stack(logits, dim=1)


@given(NAMES, SENTENCES, st.integers(0, 40), st.integers(1, 5))
@settings(max_examples=25)
def test_decoding_alone_is_decoding_in_company(
    name: str, sentences: list[tuple[int, int]], extra: int, beam_size: int
) -> None:
    """Any batch and any padding give the bits that the sentence has alone."""
    model = MODELS[name]
    together = decoded(model, batch(sentences, extra), beam_size)
    for i, sentence in enumerate(sentences):
        alone = decoded(model, batch([sentence], 0), beam_size)
        assert torch.equal(together[i], alone[0])


@given(NAMES, SENTENCES, SENTENCES, st.integers(0, 40), st.integers(0, 40))
@settings(max_examples=40)
def test_scoring_alone_is_scoring_in_company(
    name: str,
    sources: list[tuple[int, int]],
    targets: list[tuple[int, int]],
    extra_src: int,
    extra_tgt: int,
) -> None:
    """The full pass over given targets, too."""
    model = MODELS[name]
    pairs = list(zip(sources, targets, strict=False))
    src_BS = batch([src for src, _ in pairs], extra_src)
    together = model(src_BS, batch([tgt for _, tgt in pairs], extra_tgt))
    for i, (src, tgt) in enumerate(pairs):
        alone = model(batch([src], 0), batch([tgt], 0))
        assert torch.equal(together[i, : tgt[0]], alone[0])
