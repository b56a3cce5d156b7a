"""The figures of the textbook, drawn from the package's own parts; one needs a trained model.

    attention    softmax and temperature, who sees whom, reach, common mistakes
    positions    the sinusoidal table, rotary angles, four schemes side by side
    layers       the place of the norm, activations, the growth of caches
    training     learning rates, label smoothing
    costs        time and memory of attention, faults of a corpus: from the committed results
    drawings     figures 1 and 2 of the paper and what came before it, as SVG
    heads        what each head of a trained model looks at: the one that needs a model

A name that ends in `.zh.png` or `.zh.svg` gives the same picture with Chinese labels.

`python docs/make.py pictures` writes them all. For one of them, in Python, with `docs` on the path:
`figures.positions.plot_sinusoidal("sinusoidal.png")`. They need matplotlib, which
`pip install '.[plot]'` in a checkout brings.
"""

from collections.abc import Callable
from pathlib import Path

from figures.attention import (
    plot_mistakes,
    plot_patterns,
    plot_reach,
    plot_softmax_saturation,
    plot_softmax_temperature,
)
from figures.costs import plot_attention_cost, plot_spoiled
from figures.drawings import draw_multi_head, draw_one_sentence, draw_one_vector, draw_transformer
from figures.heads import plot_every_head, plot_mean
from figures.layers import plot_activations, plot_cache_growth, plot_norm_placement
from figures.positions import (
    plot_positions,
    plot_rotary_angles,
    plot_sinusoidal,
    plot_sinusoidal_distances,
)
from figures.scaling import plot_scaling_law
from figures.training import plot_label_smoothing, plot_schedules

__all__ = ["DRAWINGS", "FIGURES"]

FIGURES: dict[str, Callable[[Path | str], Path]] = {
    "activations.png": plot_activations,
    "attention.png": plot_mean,
    "attention-cost.png": plot_attention_cost,
    "cache-growth.png": plot_cache_growth,
    "heads.png": plot_every_head,
    "label-smoothing.png": plot_label_smoothing,
    "mistakes.png": plot_mistakes,
    "norm-placement.png": plot_norm_placement,
    "patterns.png": plot_patterns,
    "positions.png": plot_positions,
    "reach.png": plot_reach,
    "rotary-angles.png": plot_rotary_angles,
    "scaling.png": plot_scaling_law,
    "schedules.png": plot_schedules,
    "sinusoidal.png": plot_sinusoidal,
    "sinusoidal-distances.png": plot_sinusoidal_distances,
    "softmax-saturation.png": plot_softmax_saturation,
    "softmax-temperature.png": plot_softmax_temperature,
    "spoiled.png": plot_spoiled,
}
"""Each PNG in docs/images/ that needs no model, and the function that draws it."""

DRAWINGS: dict[str, Callable[[Path | str], Path]] = {
    "multi-head.svg": draw_multi_head,
    "one-sentence.svg": draw_one_sentence,
    "one-vector.svg": draw_one_vector,
    "transformer.svg": draw_transformer,
}
"""Each drawing in docs/images/, and the function that writes it."""
