"""Shared by tests of streams: an epoch as a list, and a fake sampler of pieces."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
import pytest
import torch

from dragoman.data.batches import Batch, BatchSource, Stream
from dragoman.data.corpus import Finding
from dragoman.data.dataset import PairDataset, Ragged, SpecialIds
from dragoman.errors import InputError

T = TypeVar("T")


def pairs_of(
    src: Sequence[Sequence[int]],
    tgt: Sequence[Sequence[int]],
    **more: Any,  # noqa: ANN401 -- other fields
) -> PairDataset:
    """Return pairs of ids in memory."""
    given: dict[str, Any] = {"special": SpecialIds(0, 2, 3), "content_hash": "made"} | more
    sides = Ragged.of(src), Ragged.of(tgt)
    return PairDataset(name="made", src=sides[0], tgt=sides[1], identical=Finding(), **given)


def epoch_of(stream: Stream[T]) -> list[T]:
    """Return the batches up to the end of the epoch that the next one belongs to."""
    epoch = [next(stream)]
    while stream.position < stream.num_batches:
        epoch.append(next(stream))
    return epoch


def same(one: Batch, two: Batch) -> bool:
    """Whether two batches are equal in all fields."""
    pairs = [(getattr(one, field.name), getattr(two, field.name)) for field in fields(one)]
    return all(bool(torch.as_tensor(a == b).all()) for a, b in pairs)


def assert_fixed(source: Any, count: int) -> None:  # noqa: ANN401 -- of any task
    """Validation has each of `count` texts once, in the same batches each time."""
    first, second = (list(source.fixed()) for _ in range(2))
    assert sorted(int(i) for batch in first for i in batch.indices) == list(range(count))
    assert all(same(one, two) for one, two in zip(first, second, strict=True))


def assert_resumes(source: BatchSource[Batch], after: int, *others: BatchSource[Batch]) -> None:
    """A state saved as JSON resumes exactly, even in a stream with another seed.

    Other data or settings are refused, since their batches would differ.
    """
    running = Stream(source, seed=5)
    for _ in range(after):
        next(running)
    state = json.loads(json.dumps(running.state_dict()))
    resumed = Stream(source, seed=99)
    resumed.load_state_dict(state)
    assert (resumed.epoch, resumed.position) == (running.epoch, running.position)
    assert_begins_again(source, state)
    assert all(same(next(running), next(resumed)) for _ in range(2 * running.num_batches))
    for other in others:
        with pytest.raises(InputError, match="have changed"):
            Stream(other, seed=5).load_state_dict(state)


def assert_begins_again(source: BatchSource[Batch], state: Mapping[str, Any]) -> None:
    """With another batch size, a stream restarts the epoch of its state on the same data."""
    changed: Any = source
    (name,) = {field.name for field in fields(changed.config)} & {"max_tokens", "rows"}
    size = getattr(changed.config, name)
    changed = replace(changed, config=replace(changed.config, **{name: size + 1}))
    resumed = Stream(changed, seed=99)
    resumed.load_state_dict(state, {name: size})
    assert (resumed.epoch, resumed.position) == (state["epoch"], 0)
    epoch = changed.draw(np.random.default_rng([5, state["epoch"]]))
    assert all(same(next(resumed), batch) for batch in epoch)
    for former in ({}, {name: size + 2}):
        with pytest.raises(InputError, match="have changed"):
            resumed.load_state_dict(state, former)


class Doubling:
    """A subword sampler that doubles each id with the given probability."""

    def sample(
        self,
        ids: npt.NDArray[np.integer],
        offsets: npt.NDArray[np.int64],
        *,
        probability: float,
        rng: np.random.Generator,
    ) -> tuple[npt.NDArray[np.integer], npt.NDArray[np.int64]]:
        """Double ids at random."""
        lengths = 1 + (rng.random(len(ids)) < probability)
        return np.repeat(ids, lengths), np.concatenate([[0], np.cumsum(lengths)])[offsets]
