"""The most probable tags that form spans.

Tags chosen word by word may contradict each other: `I-X` continues a span of type X, so it must
follow `B-X` or `I-X`. The Viterbi algorithm finds the most probable valid sequence of tags,

    argmax over y of sum_t log p_t(y_t) + a(y_{t-1}, y_t),   a = 0 if allowed, -inf otherwise

in `O(L C^2)`. In tensor names, C is the number of tags.
"""

from collections.abc import Sequence

import torch
from torch import Tensor


def allowed_pairs(labels: Sequence[str]) -> Tensor:
    """Return `(C + 1, C)`: whether a tag may follow another; the last row is for the first tag.

    If no label is B-X, no span of type X could ever begin; then I-X is allowed
    anywhere, as a tag for a single word.
    """
    begins = {f"I-{tag[2:]}": tag for tag in labels if tag.startswith("B-")}
    rows = [
        [tag not in begins or before in (tag, begins[tag]) for tag in labels]
        for before in (*labels, "")
    ]
    return torch.tensor(rows)


def best_tags(logits_BLC: Tensor, tagged_BL: Tensor, labels: Sequence[str]) -> Tensor:
    """Return tag indices `(B, L)`, chosen where `tagged` is True, 0 elsewhere.

    Positions that are not tagged (later pieces of a word, padding) are skipped. If labels are not
    spans, this is the best tag of each word.
    """
    log_probs_BLC = logits_BLC.float().log_softmax(-1)
    allowed = allowed_pairs(labels).to(logits_BLC.device)
    costs = log_probs_BLC.new_zeros(allowed.shape).masked_fill(~allowed, float("-inf"))
    batch, length, _ = logits_BLC.shape
    begun_B1 = torch.zeros(batch, 1, dtype=torch.bool, device=tagged_BL.device)
    score_BC = torch.zeros_like(log_probs_BLC[:, 0])
    stay_BC = torch.arange(len(labels), device=allowed.device).expand(batch, -1)
    back = []
    for t in range(length):
        now_B1 = tagged_BL[:, t, None]
        best_BC, from_BC = (score_BC[..., None] + costs[:-1]).max(dim=1)
        before_BC = torch.where(begun_B1, best_BC, costs[-1])
        score_BC = torch.where(now_B1, before_BC + log_probs_BLC[:, t], score_BC)
        back.append(torch.where(now_B1, from_BC, stay_BC))
        begun_B1 = begun_B1 | now_B1
    tag_B1 = score_BC.argmax(dim=1, keepdim=True)
    path = []
    for t in reversed(range(length)):
        path.append(tag_B1)
        tag_B1 = back[t].gather(1, tag_B1)
    return torch.cat(path[::-1], dim=1).masked_fill(~tagged_BL, 0)
