"""Many inputs in few batches: inputs of similar length together, within a budget of tokens."""

from collections.abc import Callable, Iterator, Sequence, Sized
from typing import TypeVar

from dragoman.errors import InputError

Input = TypeVar("Input", bound=Sized)
Result = TypeVar("Result")


def schedule(
    lengths: Sequence[int], max_batch_tokens: int, *, beam_size: int = 1
) -> list[list[int]]:
    """Batches of indices into `lengths`, each index in exactly one batch.

    A batch of n inputs whose longest has m tokens costs `n * m * beam_size` (padding included, as
    it is computed too) and stays within `max_batch_tokens`; an input that alone costs more gets a
    batch of its own. Sorting makes padding small. The longest come first: a batch that is too large
    for the memory fails at once instead of near the end, and an estimate of the time left errs on
    the side of too much. Equal lengths keep their order.
    """
    if max_batch_tokens < 1:
        raise InputError(f"max_batch_tokens is {max_batch_tokens}; it must be 1 or more.")
    order = sorted(range(len(lengths)), key=lambda index: -lengths[index])
    batches: list[list[int]] = []
    room = 0
    for index in order:
        if room == 0:  # the first of a batch is its longest
            batches.append([])
            room = max(1, max_batch_tokens // (max(1, lengths[index]) * beam_size))
        batches[-1].append(index)
        room -= 1
    return batches


def run_in_batches(
    inputs: Sequence[Input],
    run: Callable[[list[Input]], Sequence[Result]],
    *,
    max_batch_tokens: int,
    beam_size: int = 1,
) -> Iterator[tuple[int, Result]]:
    """Call `run` on scheduled batches; yield each result with the index of its input.

    `run` must give one result for each input, in order. Results come batch by batch, so the
    caller puts them back in order: `dict(run_in_batches(...))` has every index.
    """
    lengths = [len(ids) for ids in inputs]
    for batch in schedule(lengths, max_batch_tokens, beam_size=beam_size):
        results = run([inputs[index] for index in batch])
        yield from zip(batch, results, strict=True)
