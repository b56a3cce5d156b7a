"""Which tokens had to do with a class: two methods, neither of them a proof of cause.

*Attention rollout* (Abnar and Zuidema, 2020, section 3) follows attention back through the layers:
with the mean ``A_l`` of a layer's heads, and half of everything passed on by the residual
connection,

    R = A'_L ... A'_2 A'_1,    A'_l = (A_l + I) / 2,

row i of ``R`` says what part of position i's last vector came from each token, if values did
nothing but mix. It knows no label, and what feed-forward networks and values do is left out.

*Gradient x input* (Shrikumar et al., 2016, section 3.2) asks how the label's logit changes: with
the vector ``x_i`` that the model looks up for token i,

    s_i = x_i . d logit / d x_i,

what the logit would lose, to first order, if ``x_i`` went to zero. A sign says for or against; far
from ``x_i`` the slope may be another one.
"""

from collections.abc import Sequence
from typing import Literal

import torch
from torch import Tensor

from dragoman.models import EncoderOnly
from dragoman.nn import evaluation_view, row_invariant_products

__all__ = ["gradient_input", "rollout"]


def rollout(mean_LSS: Tensor, pooling: Literal["first", "mean"]) -> Tensor:
    """The part that each of the S tokens has in the pooled vector: shares (S) that sum to one.

    ``mean_LSS`` is each layer's attention, averaged over its heads; ``pooling`` is the head's.
    """
    size = mean_LSS.shape[-1]
    identity_SS = torch.eye(size, dtype=torch.float64)
    rolled_SS = identity_SS
    for layer_SS in mean_LSS.double():
        rolled_SS = (layer_SS + identity_SS) / 2 @ rolled_SS
    return rolled_SS[0] if pooling == "first" else rolled_SS.mean(0)


def gradient_input(model: EncoderOnly, ids: Sequence[int], label: int) -> Tensor:
    """``x_i . d logit_label / d x_i`` for each token of one text, (S); either sign.

    Computed in evaluation mode; the weights get no gradients.
    """
    model = evaluation_view(model)
    ids_BL = torch.tensor([ids], device=model.embedding.weight.device)
    with torch.enable_grad(), row_invariant_products():
        x_BLD = model.embedding(ids_BL).detach().requires_grad_()
        logits_BC = model.encode(x_BLD)
        (slope_BLD,) = torch.autograd.grad(logits_BC[0, label], x_BLD)
    scores_BL: Tensor = (x_BLD * slope_BLD).sum(-1)
    return scores_BL[0].detach().double().cpu()
