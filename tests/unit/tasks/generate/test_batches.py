"""Batches for language models: windows of the stream, packed documents, validation."""

from collections import Counter
from dataclasses import replace
from typing import Literal

import numpy as np
import pytest
import torch
from tests.unit.data.streams import assert_resumes, epoch_of

from dragoman.data.batches import Stream
from dragoman.data.dataset import Ragged, SpecialIds
from dragoman.data.documents import DocumentDataset
from dragoman.data.padding import NO_TARGET
from dragoman.errors import InputError
from dragoman.tasks.generate.batches import LanguageBatch, PackConfig, PackedBatches
from dragoman.text.tokenizer import SubwordSplits

PAD, BOS, EOS = 0, 2, 3


def documents_of(rows: list[list[int]], num_chars: int = 1) -> DocumentDataset:
    """Return documents of these ids."""
    return DocumentDataset(
        name="made",
        texts=Ragged.of(rows),
        num_chars=num_chars,
        special=SpecialIds(PAD, BOS, EOS),
        content_hash=str(rows),
    )


def made(count: int = 40, longest: int = 60) -> DocumentDataset:
    """Return documents of random lengths with unique ids, so that each can be recognized."""
    lengths = np.random.default_rng(count).integers(1, longest, count)
    fresh = iter(range(10, 10 + int(lengths.sum())))
    return documents_of([[BOS, *(next(fresh) for _ in range(n)), EOS] for n in lengths.tolist()])


def targets_of(batches: list[LanguageBatch]) -> Counter[int]:
    """Return how often each id is predicted."""
    return Counter(int(t) for b in batches for t in b.targets_BL.flatten() if t != NO_TARGET)


def assert_consistent(batch: LanguageBatch) -> None:
    """Check what is true of every batch."""
    assert batch.num_tokens == int((batch.inputs_BL != PAD).sum())
    assert batch.num_targets == int((batch.targets_BL != NO_TARGET).sum())
    assert not (batch.targets_BL == BOS).any()


@pytest.mark.parametrize("packing", ["stream", "documents"])
def test_the_largest_batch(packing: Literal["stream", "documents"]) -> None:
    """The largest batch has as many places as any of the epoch."""
    config = PackConfig(length=16, rows=4, packing=packing)
    stream = Stream(PackedBatches(made(), config), seed=1)
    (largest,) = stream.largest()
    sizes = [batch.inputs_BL.numel() for batch in epoch_of(stream)]
    assert largest.inputs_BL.numel() == max(sizes)


@pytest.mark.parametrize("length", [1, 7, 16, 300])
def test_an_epoch_of_the_stream_passes_over_it_once(length: int) -> None:
    """No prediction is repeated, and less than a window is left out at both ends together.

    The order of the windows is random and differs between epochs.
    """
    dataset = made()
    batches = Stream(PackedBatches(dataset, PackConfig(length=length, rows=3)), seed=2)
    firsts, orders = set(), set()
    for _ in range(4):
        epoch = epoch_of(batches)
        assert {len(batch.inputs_BL) for batch in epoch[:-1]} <= {3}
        places = np.concatenate([batch.indices for batch in epoch])
        orders.add(tuple(places.argsort().tolist()))
        starts = np.sort(places)
        assert (np.diff(starts) == length).all()
        left = len(dataset.texts.ids) - 1 - len(starts) * length
        assert 0 <= left < 2 * length
        assert starts[0] < length
        assert starts[-1] + 2 * length >= len(dataset.texts.ids)
        firsts.add(int(starts[0]))
    assert length == 1 or len(firsts) > 1
    assert length == 300 or (len(orders) == 4 and tuple(range(len(places))) not in orders)


def test_packed_documents_fill_one_row() -> None:
    """Every document is whole and between borders; the lengths fill the row; padding is last.

    No document exceeds the maximum length, where learned positions end.
    """
    dataset = made(43, longest=14)
    batches = Stream(
        PackedBatches(dataset, PackConfig(length=16, rows=4, packing="documents")), seed=1
    )
    known = {tuple(dataset.texts[i].tolist()) for i in range(len(dataset))}
    found = []
    told, epoch = batches.padding, epoch_of(batches)
    for batch in epoch:
        assert_consistent(batch)
        assert batch.document_lengths is not None
        assert batch.inputs_BL.shape == batch.targets_BL.shape == (1, 64)
        assert sum(batch.document_lengths) == 64
        assert max(batch.document_lengths) <= 16
        inputs = batch.inputs_BL[0].split(list(batch.document_lengths))
        targets = batch.targets_BL[0].split(list(batch.document_lengths))
        assert not torch.cat(inputs)[batch.num_tokens :].any()
        for of_input, of_target in zip(inputs, targets, strict=True):
            if int(of_input[0]) == PAD:
                assert not of_input.any()
                assert (of_target == NO_TARGET).all()
            else:
                found.append((*of_input.tolist(), int(of_target[-1])))
                assert of_input[1:].tolist() == of_target[:-1].tolist()
    assert len(found) == len(dataset)
    assert set(found) == known
    assert told == pytest.approx(1 - sum(b.num_tokens for b in epoch) / (64 * len(epoch)))


@pytest.mark.parametrize("packing", ["stream", "documents"])
@pytest.mark.parametrize(("length", "stride"), [(16, None), (7, 3), (2000, 9)])
def test_validation_predicts_each_id_once_with_context(
    packing: str, length: int, stride: int | None
) -> None:
    """All ids but bos are predicted once, with length - stride ids of context if available."""
    dataset = made(12)
    config = PackConfig(length=length, rows=3, packing=packing, stride=stride)  # type: ignore[arg-type]
    ids = dataset.texts.ids
    first, second = (list(PackedBatches(dataset, config).fixed()) for _ in range(2))
    assert targets_of(first) == Counter(ids[ids != BOS].tolist())
    assert all(torch.equal(a.inputs_BL, b.inputs_BL) for a, b in zip(first, second, strict=True))
    starts = dataset.texts.offsets if packing == "documents" else np.array([0])
    for batch in first:
        assert_consistent(batch)
        rows = split_rows(batch)
        for (inputs, targets), start in zip(rows, batch.indices.tolist(), strict=True):
            assert inputs == ids[start : start + len(inputs)].tolist()
            for place, target in enumerate(targets):
                if target == NO_TARGET:
                    continue
                assert target == ids[start + place + 1]
                behind = start + place - starts[np.searchsorted(starts, start, "right") - 1]
                assert place >= min(behind, length - config.step)


@pytest.mark.parametrize("packing", ["stream", "documents"])
@pytest.mark.parametrize("pad", [PAD, EOS])
def test_one_token_begins_and_ends_texts(packing: Literal["stream", "documents"], pad: int) -> None:
    """A shared bos and eos (and pad, as in GPT-2) is predicted only where it ends a text."""
    rows = [[EOS, *text, EOS] for text in ([5, 6, 7], [8], [], [9] * 20)]
    dataset = replace(documents_of(rows), special=SpecialIds(pad, EOS, EOS))
    config = PackConfig(length=7, rows=3, packing=packing)
    expected = Counter(id_ for row in rows for id_ in row[1:])
    validation = [*PackedBatches(dataset, config).fixed()]
    assert targets_of(validation) == expected
    if packing == "documents":
        assert targets_of(epoch_of(Stream(PackedBatches(dataset, config), seed=1))) == expected
    assert sum(batch.num_targets for batch in validation) == expected.total()


def split_rows(batch: LanguageBatch) -> list[tuple[list[int], list[int]]]:
    """Return inputs and targets of each window without padding."""
    if batch.document_lengths is None:
        rows = zip(batch.inputs_BL, batch.targets_BL, strict=True)
    else:
        lengths = list(batch.document_lengths)
        rows = zip(
            batch.inputs_BL[0].split(lengths), batch.targets_BL[0].split(lengths), strict=True
        )
    found = []
    for inputs, targets in rows:
        count = int((inputs != PAD).sum())
        if count:
            found.append((inputs[:count].tolist(), targets[:count].tolist()))
    return found


@pytest.mark.parametrize("packing", ["stream", "documents"])
def test_resuming_goes_on_with_the_same_batches(packing: Literal["stream", "documents"]) -> None:
    """A saved stream continues exactly; other data is refused."""
    config = PackConfig(length=16, rows=4, packing=packing)
    assert_resumes(PackedBatches(made(), config), 40, PackedBatches(made(41), config))


@pytest.mark.parametrize("packing", ["stream", "documents"])
def test_an_epoch_is_sampled_anew(packing: Literal["stream", "documents"]) -> None:
    """Pieces are split differently in each epoch; a resumed run repeats the same splits, and
    validation never splits.
    """
    dataset = made()
    largest = int(dataset.texts.ids.max())
    halves = range(1000, 1000 + largest + 1)  # piece i becomes i + 1000 twice
    splits = SubwordSplits.of(((i, halves[i], halves[i]) for i in range(10, largest + 1)), 5000)

    def sampled(probability: float) -> list[LanguageBatch]:
        config = PackConfig(length=16, rows=4, packing=packing, subword_sampling=probability)
        stream = Stream(PackedBatches(dataset, config, splits=splits), seed=3)
        return epoch_of(stream) + epoch_of(stream)

    whole = targets_of(sampled(1.0))
    assert not any(10 <= token <= largest for token in whole)
    some = [targets_of(sampled(0.3)) for _ in range(2)]
    assert some[0] == some[1]
    split = {token - 1000 for token in some[0] if token >= 1000}
    assert 0 < len(split) < len(whole)
    config = PackConfig(length=16, rows=4, packing=packing, subword_sampling=0.3)
    plain = targets_of(list(PackedBatches(dataset, config).fixed()))
    assert max(plain) <= largest
    with pytest.raises(ValueError, match="needs the splits"):
        Stream(PackedBatches(dataset, config), seed=3)


def test_a_text_shorter_than_a_window_is_refused() -> None:
    """The error names the text, its tokens and the length; packed documents may be shorter."""
    dataset = made(1, longest=5)
    count = len(dataset.texts.ids)
    with pytest.raises(InputError, match=f"made has {count} tokens.*length = {count}"):
        Stream(PackedBatches(dataset, PackConfig(length=count)), seed=0)
    (batch,) = epoch_of(Stream(PackedBatches(dataset, PackConfig(length=count - 1)), seed=0))
    assert batch.num_tokens == count - 1
    config = PackConfig(length=count + 9, packing="documents")
    assert next(Stream(PackedBatches(dataset, config), seed=0)).num_targets == count - 1
