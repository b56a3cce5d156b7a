"""Cross-entropy with label smoothing (paper, section 5.4).

The target distribution puts `1 - eps` on the right token and spreads `eps` evenly over all `V`
(Szegedy et al., 2016, section 7). With logits `z` and right token `y` the loss of one position is

    log sum_v exp(z_v)  -  (1 - eps) z_y  -  eps / V * sum_v z_v

Losses are sums over tokens. The step divides by the tokens of the whole step.

R-Drop (Liang et al., 2021, "R-Drop: Regularized Dropout for Neural Networks") reads each sentence
twice, with different dropout, and pulls the two distributions `p` and `q` of a position together:

    (loss_p + loss_q) / 2  +  weight / 4 * (KL(p || q) + KL(q || p))

which is half of the paper's equation 4, whose loss sums both passes.
"""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from dragoman.models import DecoderOnly, EncoderDecoder, EncoderOnly
from dragoman.models.heads import MaskedLanguageOutput
from dragoman.nn import Documents
from dragoman.nn.cpu.cross_entropy import (
    cross_entropy,
    cross_entropy_with_gradient,
    divergence_with_gradient,
)

CHUNK = 512
"""Positions whose logits exist at a time, so that they fit in a CPU's cache; even, for pairs."""
GPU_LOGITS = 1 << 26
"""Logits that exist at a time on a GPU, which would idle between small kernels."""


def next_token_loss(
    model: DecoderOnly,
    inputs_BL: Tensor,
    targets_BL: Tensor,
    documents: Documents | None,
    smoothing: float,
) -> Tensor:
    """Sum the loss over non-negative targets; `documents` packed into one row stay separate."""
    hidden_BLD = model.hidden(inputs_BL, None, documents)
    real_BL = targets_BL >= 0
    return _decoder_loss(model, hidden_BLD[real_BL], targets_BL[real_BL], smoothing)


def masked_loss(model: EncoderOnly, ids_BL: Tensor, targets_BL: Tensor, smoothing: float) -> Tensor:
    """Sum the loss over non-negative targets; the head runs only at their positions."""
    output, hidden_MD, targets_M = _at_targets(model, ids_BL, targets_BL)
    return _fused_loss(output, hidden_MD, targets_M, smoothing)


def masked_guesses(model: EncoderOnly, ids_BL: Tensor, targets_BL: Tensor) -> tuple[Tensor, Tensor]:
    """Return the loss summed over the targets, and the number of targets with the largest logit."""
    losses, correct = [], []
    output, hidden_MD, targets_M = _at_targets(model, ids_BL, targets_BL)
    for logits, targets in _in_chunks(output, output.out_features, hidden_MD, targets_M):
        losses.append(reference_loss(logits, targets, 0.0))
        correct.append((logits.argmax(-1) == targets).sum())
    return torch.stack(losses).sum(), torch.stack(correct).sum()


def _at_targets(
    model: EncoderOnly, ids_BL: Tensor, targets_BL: Tensor
) -> tuple[nn.Linear, Tensor, Tensor]:
    """Return the last layer, its inputs at positions with a target, and the targets."""
    head = model.head
    if not isinstance(head, MaskedLanguageOutput):
        raise TypeError(f"the model's head is {type(head).__name__}, which gives no words")
    chosen_BL = targets_BL >= 0
    return head.output, head.features(model.hidden(ids_BL)[chosen_BL]), targets_BL[chosen_BL]


def summed_loss(
    model: EncoderDecoder, src_BS: Tensor, tgt_in_BT: Tensor, tgt_out_BT: Tensor, smoothing: float
) -> Tensor:
    """Sum the loss over the target's tokens; the output layer never runs on padding."""
    real_BT = tgt_out_BT != model.pad_id
    hidden_MD = model.hidden(src_BS, tgt_in_BT)[real_BT]
    return _decoder_loss(model, hidden_MD, tgt_out_BT[real_BT], smoothing)


def agreeing_loss(
    model: EncoderDecoder,
    src_BS: Tensor,
    tgt_in_BT: Tensor,
    tgt_out_BT: Tensor,
    smoothing: float,
    weight: float,
) -> Tensor:
    """Sum R-Drop's loss over the target's tokens; `weight` is the paper's alpha."""
    real_BT = tgt_out_BT != model.pad_id
    hidden_PBTD = model.hidden(src_BS.repeat(2, 1), tgt_in_BT.repeat(2, 1)).unflatten(0, (2, -1))
    hidden_MPD = hidden_PBTD.permute(1, 2, 0, 3)[real_BT]
    pairs_MD, targets_M = hidden_MPD.flatten(0, 1), tgt_out_BT[real_BT].repeat_interleave(2)
    if model.logit_soft_cap is None:
        loss: Tensor = _LinearCrossEntropy.apply(  # type: ignore[no-untyped-call]
            pairs_MD, model.output.weight, model.output.bias, targets_M, smoothing, weight
        )
        return loss / 2
    return reference_agreeing_loss(model.project(pairs_MD), targets_M, smoothing, weight)


def reference_agreeing_loss(
    logits_MV: Tensor, targets_M: Tensor, smoothing: float, weight: float
) -> Tensor:
    """Compute R-Drop's loss with torch from the logits of pairs of rows."""
    log_p, log_q = logits_MV.log_softmax(-1).unflatten(0, (-1, 2)).unbind(1)
    apart = F.kl_div(log_q, log_p, reduction="sum", log_target=True)
    apart += F.kl_div(log_p, log_q, reduction="sum", log_target=True)
    return reference_loss(logits_MV, targets_M, smoothing) / 2 + weight / 4 * apart


def _decoder_loss(
    model: DecoderOnly | EncoderDecoder, hidden_MD: Tensor, targets_M: Tensor, smoothing: float
) -> Tensor:
    if model.logit_soft_cap is None:
        return _fused_loss(model.output, hidden_MD, targets_M, smoothing)
    if torch.is_grad_enabled():  # the fused gradient is that of a plain softmax
        return reference_loss(model.project(hidden_MD), targets_M, smoothing)
    chunks = _in_chunks(model.project, model.output.out_features, hidden_MD, targets_M)
    losses = [reference_loss(logits, targets, smoothing) for logits, targets in chunks]
    return torch.stack(losses).sum()


def _in_chunks(
    project: Callable[[Tensor], Tensor], vocab_size: int, hidden_MD: Tensor, targets_M: Tensor
) -> Iterator[tuple[Tensor, Tensor]]:
    """Yield the logits and targets of one chunk of positions after another."""
    chunk = chunk_size(hidden_MD.device, vocab_size)
    for hidden, targets in zip(hidden_MD.split(chunk), targets_M.split(chunk), strict=True):
        yield project(hidden), targets


def chunk_size(device: torch.device, vocab_size: int) -> int:
    """Return the number of positions whose logits exist at a time; even, for pairs."""
    return CHUNK if device.type == "cpu" else max(CHUNK, GPU_LOGITS // vocab_size // 2 * 2)


def _fused_loss(
    output: nn.Linear, hidden_MD: Tensor, targets_M: Tensor, smoothing: float
) -> Tensor:
    """Sum the loss of the output layer's logits, bit-identical with and without gradients."""
    if torch.is_grad_enabled():
        loss: Tensor = _LinearCrossEntropy.apply(  # type: ignore[no-untyped-call]
            hidden_MD, output.weight, output.bias, targets_M, smoothing
        )
        return loss
    weight, bias = _in_dtype_of(hidden_MD, output.weight, output.bias)
    loss = _zero(hidden_MD)
    with torch.autocast(hidden_MD.device.type, enabled=False):
        project = partial(F.linear, weight=weight, bias=bias)
        for logits, targets in _in_chunks(project, output.out_features, hidden_MD, targets_M):
            loss += cross_entropy(logits, targets, smoothing)
    return loss


def reference_loss(
    logits_MV: Tensor, targets_M: Tensor, smoothing: float, reduction: str = "sum"
) -> Tensor:
    """Compute the same loss with torch from logits: the readable twin of the fused one."""
    return F.cross_entropy(
        logits_MV.float() if logits_MV.dtype != torch.float64 else logits_MV,
        targets_M,
        label_smoothing=smoothing,
        reduction=reduction,
    )


class _LinearCrossEntropy(torch.autograd.Function):
    """Output layer and loss in one, a chunk of positions at a time.

    The logits of a batch (tokens x vocabulary) are by far its largest tensor. Here a chunk of
    logits turns into its own gradient in place and is discarded: memory is `O(chunk * V)`, and each
    logit is read and written a few times in cache instead of many times in memory.
    """

    @staticmethod
    def forward(  # noqa: PLR0913, PLR0917 -- the form that torch calls
        ctx: Any,  # noqa: ANN401 (torch's context)
        hidden_MD: Tensor,
        weight_VD: Tensor,
        bias_V: Tensor | None,
        targets_M: Tensor,
        smoothing: float,
        agreement: float = 0.0,
    ) -> Tensor:
        weight, bias = _in_dtype_of(hidden_MD, weight_VD, bias_V)
        grad_hidden = torch.empty_like(hidden_MD)
        grad_weight = torch.zeros_like(weight_VD)
        grad_bias = None if bias_V is None else torch.zeros_like(bias_V)
        loss = _zero(hidden_MD)
        chunk = chunk_size(hidden_MD.device, len(weight_VD))
        with torch.autocast(hidden_MD.device.type, enabled=False):
            for start in range(0, len(targets_M), chunk):
                part = slice(start, start + chunk)
                logits = F.linear(hidden_MD[part], weight, bias)
                apart = (
                    divergence_with_gradient(logits) if agreement else None
                )  # the next line overwrites the logits
                part_loss, grad = cross_entropy_with_gradient(logits, targets_M[part], smoothing)
                loss += part_loss
                if apart is not None:
                    loss += agreement / 2 * apart[0]
                    grad.add_(apart[1], alpha=agreement / 2)
                grad_hidden[part] = grad @ weight
                grad_weight += (grad.T @ hidden_MD[part]).to(grad_weight.dtype)
                if grad_bias is not None:
                    grad_bias += grad.sum(0)
        ctx.save_for_backward(grad_hidden, grad_weight, grad_bias)
        return loss

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:  # noqa: ANN401
        grad_hidden, grad_weight, grad_bias = ctx.saved_tensors
        scale = grads[0]
        by_bias = None if grad_bias is None else grad_bias * scale
        by_hidden = grad_hidden * scale.to(grad_hidden.dtype)
        return by_hidden, grad_weight * scale, by_bias, None, None, None


def _in_dtype_of(
    hidden_MD: Tensor, weight_VD: Tensor, bias_V: Tensor | None
) -> tuple[Tensor, Tensor | None]:
    return weight_VD.to(hidden_MD.dtype), None if bias_V is None else bias_V.to(hidden_MD.dtype)


def _zero(hidden_MD: Tensor) -> Tensor:
    dtype = torch.float64 if hidden_MD.dtype is torch.float64 else torch.float32
    return torch.zeros((), dtype=dtype, device=hidden_MD.device)
