"""Batches of inputs of similar length, within a budget of tokens."""

from collections.abc import Sequence

from dragoman.errors import InputError


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
    while order:
        room = room_for(lengths[order[0]] * beam_size, max_batch_tokens)
        batches.append(order[:room])
        del order[:room]
    return batches


def room_for(cost: int, budget: int) -> int:
    """How many items of at most this cost a batch has room for."""
    return max(1, budget // max(1, cost))
