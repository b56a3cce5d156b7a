"""Decoding to given lengths, to time it: an untrained model does not end a sentence."""

from typing import Any

from torch import Tensor

from dragoman.decode import Beam, Forbid, Greedy, Limits, Model, search


def write_to_lengths(
    decoder: Model[Any],
    source_BS: Tensor,
    lengths_B: Tensor,
    ends: tuple[int, int],
    beam_size: int = 1,
) -> None:
    """Search as translation does, but to given lengths; `ends` are bos and eos, which none gets.

    Call it in `inference`.
    """
    bos_id, eos_id = ends
    never_ends = [Forbid((eos_id,))]
    strategy = Beam(beam_size=beam_size) if beam_size > 1 else Greedy()
    limits = Limits(bos_id=bos_id, eos_id=eos_id, max_B=lengths_B)
    search(decoder, source_BS, strategy, processors=never_ends, limits=limits)
