"""Decoding token by token equals the full pass: cache, reordering, shared memory."""

import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.models.small import VARIANTS, distance, make_model, random_ids, random_sentences
from torch import Tensor

from dragoman.models import EncoderDecoder
from dragoman.nn import GrowingStorage, KeyValue
from dragoman.nn.cache import Rows

SEEDS = st.integers(0, 2**32)
NAMES = st.sampled_from(list(VARIANTS))
LENGTHS = st.lists(st.integers(1, 6), min_size=1, max_size=3)


def full(model: EncoderDecoder, src_BS: Tensor, tgt_NT: Tensor) -> Tensor:
    """Compute the logits of each row without a cache, with the sources copied for each beam."""
    beams = tgt_NT.shape[0] // src_BS.shape[0]
    logits: Tensor = model(src_BS.repeat_interleave(beams, dim=0), tgt_NT)
    return logits


@given(
    NAMES, SEEDS, LENGTHS, st.lists(st.integers(1, 5), min_size=1, max_size=5), st.integers(1, 3)
)
@settings(max_examples=60)
def test_cached_is_uncached_for_every_split(
    name: str, seed: int, lengths: list[int], pieces: list[int], beam_size: int
) -> None:
    """Prefill and steps of any sizes give the logits of the full pass; `step` gives the last.

    In the full pass each beam has its own copy of the memory, which is shared here.
    """
    model = make_model(VARIANTS[name])
    src_BS = random_sentences(seed, lengths)
    tgt_NT = random_ids(seed + 1, len(lengths) * beam_size, sum(pieces))
    with torch.no_grad():
        expected = full(model, src_BS, tgt_NT)
        state = model.start(src_BS, beam_size)
        got = [
            model.extend(piece, state) if size > 1 else model.step(piece[:, 0], state)[:, None]
            for size, piece in zip(pieces, tgt_NT.split(pieces, dim=1), strict=True)
        ]
    assert state.past.length == sum(pieces)
    assert len(state.memory[0].kv.k_BKSd) == len(lengths)
    assert distance(torch.cat(got, dim=1), expected) < 1e-12


@given(NAMES, SEEDS, LENGTHS, st.integers(1, 3), st.data())
@settings(max_examples=60)
def test_select_is_recomputing(
    name: str, seed: int, lengths: list[int], beam_size: int, data: st.DataObject
) -> None:
    """Rows reordered, repeated and dropped with their sentences go on as if decoded anew."""
    model = make_model(VARIANTS[name])
    src_BS = random_sentences(seed, lengths)
    tgt_NT = random_ids(seed + 1, len(lengths) * beam_size, 2)
    with torch.no_grad():
        state = model.start(src_BS, beam_size)
        model.extend(tgt_NT, state)
        for turn in range(3):
            kept = [b for b in range(len(src_BS)) if data.draw(st.booleans())] or [0]
            beams = st.lists(st.integers(0, beam_size - 1), min_size=beam_size, max_size=beam_size)
            rows = [b * beam_size + beam for b in kept for beam in data.draw(beams)]
            state.select(torch.tensor(rows))
            src_BS = src_BS[kept]
            new_N1 = random_ids(seed + 2 + turn, len(rows), 1)
            tgt_NT = torch.cat([tgt_NT[rows], new_N1], dim=1)
            logits = model.step(new_N1[:, 0], state)
            assert distance(logits, full(model, src_BS, tgt_NT)[:, -1]) < 1e-12


def test_growth_is_amortised() -> None:
    """A thousand steps of one token reallocate the store only a few times."""
    storage, places = GrowingStorage(), set()
    new = KeyValue(torch.zeros(1, 1, 1, 2), torch.zeros(1, 1, 1, 2))
    kept = []  # so that no address is reused
    for _ in range(1000):
        kept.append(storage.extend(new))
        places.add(kept[-1].k_BKSd.data_ptr())
    assert len(places) <= 7


def test_selecting_the_same_rows_copies_nothing() -> None:
    """A row that keeps its position keeps its memory, also when later rows leave."""
    storage = GrowingStorage()
    new = KeyValue(torch.randn(4, 1, 5, 2), torch.randn(4, 1, 5, 2))
    place = storage.extend(new).k_BKSd.data_ptr()
    storage.select(Rows.of(torch.arange(4)))
    storage.select(Rows.of(torch.tensor([0, 1])))
    one = KeyValue(torch.randn(2, 1, 1, 2), torch.randn(2, 1, 1, 2))
    assert storage.extend(one).k_BKSd.data_ptr() == place
