"""What label smoothing asks for (paper, section 5.4)."""

from __future__ import annotations

from pathlib import Path

import torch

from dragoman.lens.picture import blank, save
from dragoman.train.objective import reference_loss

VOCABULARY = 1000
SMOOTHINGS = (0.0, 0.1, 0.3)


def smoothed_losses(probabilities: torch.Tensor, smoothing: float) -> torch.Tensor:
    """The loss of a token by the probability that the right one of 1,000 gets, shape as given.

    The rest of the probability is spread evenly over the other tokens.
    """
    others = ((1 - probabilities) / (VOCABULARY - 1)).log()
    logits_MV = others[:, None].repeat(1, VOCABULARY)
    logits_MV[:, 0] = probabilities.log()
    targets_M = torch.zeros(len(probabilities), dtype=torch.long)
    return reference_loss(logits_MV, targets_M, smoothing, reduction="none")


def plot_label_smoothing(path: Path | str) -> Path:
    """Draw the loss of a token by the probability of the right one, with and without smoothing.

    Without it, the loss falls as long as the probability rises: a model is paid for being sure.
    With it there is a lowest point, marked, at `1 - eps + eps / V`: surer than that costs more.
    """
    odds = torch.linspace(-4, 12, 400, dtype=torch.float64)
    probabilities = odds.sigmoid()
    figure = blank(8.0, 3.9)
    axes = figure.subplots()
    for smoothing in SMOOTHINGS:
        losses = smoothed_losses(probabilities, smoothing)
        (line,) = axes.plot(odds.numpy(), losses.numpy(), label=f"eps = {smoothing:g}")
        if smoothing:
            best = int(losses.argmin())
            axes.plot(odds[best], losses[best], "o", color=line.get_color())
    shown = (0.1, 0.5, 0.7, 0.9, 0.99, 0.999, 0.99999)
    axes.set_xticks(
        torch.tensor(shown, dtype=torch.float64).logit().tolist(), labels=[f"{p:g}" for p in shown]
    )
    axes.set(xlabel="probability of the right token", ylabel="loss", ylim=(0, None))
    axes.grid(alpha=0.3)
    axes.legend(fontsize=9)
    return save(figure, path)
