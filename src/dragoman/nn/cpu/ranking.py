"""Log-probabilities in reused memory, and the k best of a row with a defined order of ties.

`torch.topk` does not define which of several equal values it returns, nor in which order; both
depend on sizes and on the device. Equal logits are common in bfloat16. Here the lower index always
wins, so that neither the batch nor the device can change a result.
"""

import torch
from torch import Tensor

from dragoman.nn.cpu.native import address, native_for

IMPOSSIBLE = float("-inf")
"""The log-probability of a forbidden token or a closed row."""

CHUNK = 64  # tokens of a chunk, whose maximum is taken first


def top_tokens(log_probs_NV: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """Return the k largest of each row, in descending order, and their indices, both (N, k).

    A long row is read once, for the maxima of its chunks: the k best elements are in the k chunks
    of greatest maximum, because each chunk ahead of another contains an element ahead of all of the
    other's. Only those k chunks are ranked. This is twice as fast as `torch.topk` over a
    vocabulary of 8,000 on a CPU. NaN does not crash it, but is not handled (`search` rejects it).
    Raises ValueError for fewer than k columns.
    """
    if k > log_probs_NV.shape[1]:
        raise ValueError(f"there are no {k} best of {log_probs_NV.shape[1]} tokens")
    functions = native_for(log_probs_NV, torch.float32)
    if functions is not None:
        values_Nk = log_probs_NV.new_empty(len(log_probs_NV), k)
        tokens_Nk = log_probs_NV.new_empty(values_Nk.shape, dtype=torch.int64)
        results = values_Nk.data_ptr(), tokens_Nk.data_ptr()
        functions.top(log_probs_NV.data_ptr(), k, *results, *log_probs_NV.shape)
        return values_Nk, tokens_Nk
    vocab_size = log_probs_NV.shape[1]
    if k == 1:  # the first of the greatest chunks, and in it the first of the greatest
        best_NC = torch.max(_chunk_maxima(log_probs_NV), dim=1, keepdim=True)
        places_C = torch.arange(CHUNK, device=log_probs_NV.device)
        tokens_NC = (best_NC.indices * CHUNK + places_C).clamp_(max=vocab_size - 1)
        place_N1 = log_probs_NV.gather(1, tokens_NC).max(dim=1, keepdim=True).indices
        return best_NC.values, tokens_NC.gather(1, place_N1)
    if vocab_size <= 2 * k * CHUNK:
        tokens_Nk = _best_indices(log_probs_NV, k)
        return log_probs_NV.gather(1, tokens_Nk), tokens_Nk

    chunks_Nk = _best_indices(_chunk_maxima(log_probs_NV), k).sort(dim=1).values
    places_C = torch.arange(CHUNK, device=log_probs_NV.device)
    tokens_NM = (chunks_Nk[:, :, None] * CHUNK + places_C).flatten(1)  # ascending in each row
    # The last chunk may reach beyond the row.
    beyond_NM = tokens_NM >= vocab_size
    tokens_NM.clamp_(max=vocab_size - 1)
    values_NM = log_probs_NV.gather(1, tokens_NM).masked_fill_(beyond_NM, IMPOSSIBLE)
    best_Nk = _best_indices(values_NM, k)
    return values_NM.gather(1, best_Nk), tokens_NM.gather(1, best_Nk)


def _chunk_maxima(values_NV: Tensor) -> Tensor:
    """Return the maximum of every chunk; the last may be shorter: (N, ceil(V / CHUNK))."""
    whole = values_NV.shape[1] // CHUNK * CHUNK
    maxima_NM = values_NV[:, :whole].reshape(len(values_NV), -1, CHUNK).amax(2)
    if whole == values_NV.shape[1]:
        return maxima_NM
    return torch.cat([maxima_NM, values_NV[:, whole:].amax(1, keepdim=True)], dim=1)


def _best_indices(values_NM: Tensor, k: int) -> Tensor:
    """Return the indices (N, k) of the k largest; ties go to the lower index.

    Value and index are packed into one integer, so that no two keys are equal: the upper half is
    the float's bits, changed so that they order as integers (the bits of a negative float are
    flipped); the lower half counts the indices downwards.
    """
    count = values_NM.shape[1]
    bits_NM = values_NM.contiguous().view(torch.int32)
    ordered_NM = bits_NM ^ ((bits_NM >> 31) & 0x7FFFFFFF)
    downwards_M = torch.arange(count - 1, -1, -1, device=values_NM.device)
    keys_NM = (ordered_NM.long() << 32) + downwards_M
    return count - 1 - (keys_NM.topk(k, dim=1).values & 0xFFFFFFFF)


class LogSoftmax:
    """`logits - log sum exp(logits)` of each row, in float32.

    The result uses the same memory in every step: fresh memory of this size comes from the system
    page by page, which takes as long as the computation (64 sentences, 5 beams, 8,000 tokens: 1 ms
    a step).
    """

    def __init__(self) -> None:
        self._space_NV: Tensor | None = None

    def __call__(self, logits_NV: Tensor) -> Tensor:
        """Return the log-probabilities, valid until the next call."""
        if self._space_NV is None or len(self._space_NV) < len(logits_NV):
            self._space_NV = torch.empty_like(logits_NV, dtype=torch.float32)
        space_NV = self._space_NV[: len(logits_NV)]
        if logits_NV.dtype is not torch.float32:  # torch would convert into fresh memory
            logits_NV = space_NV.copy_(logits_NV)
        functions = native_for(logits_NV, torch.float32)
        if functions is None:
            return torch.log_softmax(logits_NV, dim=1, out=space_NV)
        space = address(space_NV, torch.float32, *logits_NV.shape)
        functions.log_softmax(logits_NV.data_ptr(), space, *logits_NV.shape)
        return space_NV
