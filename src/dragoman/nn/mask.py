"""Who may look at whom: boolean masks, True means *may attend*.

Masks compose by `&` and broadcast to `(B, H, T, S)`. The additive form that the products need is
made here and nowhere else, so minus infinity has one place.
"""

from dataclasses import dataclass

import torch
from torch import Tensor


def padding_mask(ids_BS: Tensor, pad_id: int) -> Tensor:
    """Hide padding keys: `mask[b, 0, 0, s] = (ids[b, s] != pad_id)`, shape `(B, 1, 1, S)`."""
    return (ids_BS != pad_id)[:, None, None, :]


def length_mask(lengths_B: Tensor, num_keys: int) -> Tensor:
    """Hide the keys beyond each length: `mask[b, 0, 0, s] = (s < lengths[b])`, `(B, 1, 1, S)`."""
    return (torch.arange(num_keys, device=lengths_B.device) < lengths_B[:, None])[:, None, None, :]


def causal_mask(num_queries: int, num_keys: int, device: torch.device | None = None) -> Tensor:
    """Let query `i` see the keys up to its own place: shape `(T, S)`.

    The queries are the last `T` of the `S` positions (the earlier ones lie in a cache), so query
    `i` stands at `S - T + i` and `mask[i, j] = (j <= S - T + i)`.
    """
    square = torch.ones(num_queries, num_keys, dtype=torch.bool, device=device)
    return square.tril(num_keys - num_queries)


@dataclass(frozen=True, slots=True)
class Documents:
    """Documents packed one after another into rows: none sees another, each begins at place 0."""

    lengths: tuple[int, ...]
    """Of the documents; together as long as the row."""

    def positions(self, device: torch.device | None = None) -> Tensor:
        """Count each document's places from 0: shape `(L)`."""
        return torch.cat([torch.arange(length, device=device) for length in self.lengths])

    def mask(self, device: torch.device | None = None) -> Tensor:
        """Let a query see the keys of its own document: `mask[i, j] = (doc(i) = doc(j))`."""
        lengths = torch.tensor(self.lengths, device=device)
        document_L = torch.arange(len(self.lengths), device=device).repeat_interleave(lengths)
        return document_L[:, None] == document_L[None, :]


def check_mask(mask: Tensor, shape_BHTS: tuple[int, int, int, int]) -> None:
    """Refuse a mask that is not boolean or does not broadcast to `(B, H, T, S)`.

    An additive mask of zeros and minus infinities, read as a boolean one, hides exactly what it
    should show; hence the check of the dtype.
    """
    if mask.dtype is not torch.bool:
        raise TypeError(f"a mask must be boolean, True where a query may attend; got {mask.dtype}")
    wanted = shape_BHTS[max(0, 4 - mask.dim()) :]
    if mask.dim() > 4 or any(m not in (1, w) for m, w in zip(mask.shape, wanted, strict=True)):
        raise ValueError(f"a mask of {tuple(mask.shape)} does not broadcast to {shape_BHTS}")


def additive(mask: Tensor, dtype: torch.dtype) -> Tensor:
    """Return 0 where `mask` is True and a number that the softmax turns into exactly 0 elsewhere.

    The number is half of the smallest finite one: added to any score it neither overflows (as
    `-1e9` does in float16) nor turns a fully masked row into NaN (as `-inf` does).
    """
    zeros = torch.zeros(mask.shape, dtype=dtype, device=mask.device)
    return zeros.masked_fill_(~mask, torch.finfo(dtype).min / 2)


def hide_blind_rows(out_BHTd: Tensor, mask: Tensor) -> Tensor:
    """Set the output of every query that may attend to nothing to zero, forward and backward."""
    sees_something = mask.any(dim=-1, keepdim=True)
    if mask.device.type == "cpu" and bool(sees_something.all()):  # elsewhere asking would wait
        return out_BHTd
    return out_BHTd.masked_fill(~sees_something, 0.0)
