"""Cross-entropy with label smoothing, and its gradient, in few passes over the logits.

With logits `z` of one position, target token `y` and smoothing `eps` over `V` tokens

    loss      log sum_v exp(z_v)  -  (1 - eps) z_y  -  eps / V * sum_v z_v
    gradient  softmax(z)  -  (1 - eps) onehot(y)  -  eps / V

Compiled code reads a logit three times from the cache and writes it once; torch's operators, which
compute the same up to rounding, take ten passes over memory.
"""

import torch
from torch import Tensor

from dragoman.nn.cpu.native import Functions, address, native_for


def cross_entropy(logits_MV: Tensor, targets_M: Tensor, smoothing: float) -> Tensor:
    """Return the sum of the losses over the positions, in float32; float64 for such logits."""
    functions = native_for(logits_MV, torch.float32, torch.bfloat16)
    if functions is not None:
        return _native_loss(functions, logits_MV, targets_M, smoothing, gradient=False)
    return _loss(_log_probs(logits_MV), targets_M, smoothing)


def cross_entropy_with_gradient(
    logits_MV: Tensor, targets_M: Tensor, smoothing: float
) -> tuple[Tensor, Tensor]:
    """Return the sum and its gradient in the logits, in their dtype and possibly their memory.

    The sum is bit-identical to that of `cross_entropy`.
    """
    functions = native_for(logits_MV, torch.float32, torch.bfloat16)
    if functions is not None:
        loss = _native_loss(functions, logits_MV, targets_M, smoothing, gradient=True)
        return loss, logits_MV
    return _loss_and_gradient(logits_MV, targets_M, smoothing)


def divergence_with_gradient(logits_MV: Tensor) -> tuple[Tensor, Tensor]:
    """Return KL(p || q) + KL(q || p), summed over pairs of rows, and its gradient in the logits.

    The sum is that of `(p - q) (log p - log q)`; its gradient in the logits of p is
    `p (log p - log q - KL(p || q)) + p - q`. The gradient has the logits' dtype.
    """
    log_M2V = _log_probs(logits_MV).unflatten(0, (-1, 2))
    gap_M2V = log_M2V - log_M2V.flip(1)
    p_M2V = log_M2V.exp_()
    kl_M21 = (p_M2V * gap_M2V).sum(-1, keepdim=True)
    grad_M2V = p_M2V * (gap_M2V - kl_M21) + p_M2V - p_M2V.flip(1)
    return kl_M21.sum(), grad_M2V.flatten(0, 1).to(logits_MV.dtype)


def _native_loss(
    functions: Functions, logits_MV: Tensor, targets_M: Tensor, smoothing: float, *, gradient: bool
) -> Tensor:
    rows, columns = logits_MV.shape
    losses_M = torch.empty(rows, dtype=torch.float32)
    targets_M = targets_M.contiguous()
    half = logits_MV.dtype is torch.bfloat16
    targets = address(targets_M, torch.int64, rows)
    where = logits_MV.data_ptr(), targets, losses_M.data_ptr()
    if functions.cross_entropy(*where, rows, columns, smoothing, gradient, half):
        raise IndexError(f"a target is not one of the {columns} tokens")
    return losses_M.sum()


def _loss_and_gradient(
    logits_MV: Tensor, targets_M: Tensor, smoothing: float
) -> tuple[Tensor, Tensor]:
    """Return the summed loss and its gradient in the logits, in their own dtype."""
    log_probs_MV = _log_probs(logits_MV)
    loss = _loss(log_probs_MV, targets_M, smoothing)
    grad_MV = log_probs_MV.exp_().sub_(smoothing / logits_MV.shape[1])
    right_M1 = targets_M[:, None]
    grad_MV.scatter_add_(1, right_M1, torch.full_like(right_M1, smoothing - 1, dtype=grad_MV.dtype))
    return loss, grad_MV.to(logits_MV.dtype)


def _loss(log_probs_MV: Tensor, targets_M: Tensor, smoothing: float) -> Tensor:
    right = log_probs_MV.gather(1, targets_M[:, None]).sum()
    return -(1 - smoothing) * right - smoothing / log_probs_MV.shape[1] * log_probs_MV.sum()


def _log_probs(logits_MV: Tensor) -> Tensor:
    double = logits_MV.dtype is torch.float64
    return logits_MV.to(torch.float64 if double else torch.float32).log_softmax(dim=1)
