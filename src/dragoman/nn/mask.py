"""Who may look at whom: boolean masks, True means *may attend*.

Masks compose by `&` and broadcast to `(B, H, T, S)`. The additive form that the products need is
made here and nowhere else, so minus infinity has one place.
"""

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


def distances(num_queries: int, num_keys: int, device: torch.device | None = None) -> Tensor:
    """Return `j - i` for queries that are the last `T` of the `S` positions: shape `(T, S)`."""
    keys_S = torch.arange(num_keys, device=device)
    queries_T = torch.arange(num_keys - num_queries, num_keys, device=device)
    return keys_S[None, :] - queries_T[:, None]


def check_mask(mask: Tensor, shape_BHTS: tuple[int, int, int, int]) -> None:
    """Reject a mask that is not boolean or does not broadcast to `(B, H, T, S)`.

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
