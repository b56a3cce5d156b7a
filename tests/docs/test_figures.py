"""The figures of the paper walk: what they claim holds, and each becomes one file."""

import math
import re
from functools import partial
from itertools import pairwise
from pathlib import Path
from statistics import geometric_mean

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

pytest.importorskip("matplotlib", reason="pictures need the extra dragoman[plot]")

from matplotlib.colors import same_color
from matplotlib.image import imread
from tests.docs.pages import ROOT

from dragoman.nn import Causal, LinearAttention, MultiHeadAttention, SlidingWindow, sinusoidal_table
from figures import FIGURES
from figures.attention import (
    KINDS,
    LENGTH,
    PADDED,
    RECURRENT,
    allowed,
    gradients_by_distance,
    saturation,
    steps_between,
    weights_by_mistake,
)
from figures.costs import attention_cost
from figures.layers import cache_growth, layer_sizes, stored_bytes
from figures.positions import row_distances
from figures.scaling import report

SLOW = {*("norm-placement.png", "reach.png", "schedules.png"), "softmax-saturation.png"}


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=[pytest.mark.slow] if name in SLOW else []) for name in FIGURES],
)
def test_each_picture_is_one_file(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It returns its path, and there is a PNG in which something is drawn, and nothing else.

    So it is in either language.
    """
    monkeypatch.setattr("figures.scaling.report", partial(report, 20))  # fits for its intervals
    for language in ("en", "zh"):
        file = "picture.png" if language == "en" else "picture.zh.png"
        path = FIGURES[name](tmp_path / language / file)
        assert path == tmp_path / language / file
        assert [made.name for made in path.parent.iterdir()] == [file]
        picture = imread(path)
        assert picture.shape[1] > 900
        assert picture[..., :3].std() > 0.03
        assert picture[0, 0, :3].tolist() == [1.0, 1.0, 1.0]


def test_the_plain_formula_is_the_brown_line() -> None:
    """As the caption of page 9 says, in both panels."""
    lines = [line for axes in attention_cost().axes for line in axes.get_lines()]
    colours = [line.get_color() for line in lines if line.get_label() == "reference"]
    assert len(colours) == 2
    assert all(same_color(colour, "tab:brown") for colour in colours)


def test_the_law_is_that_of_the_runs_of_its_page() -> None:
    """Losses by the law and the law itself, to the digits shown; both pages have the same table.

    Intervals take a thousand fits, and are not made again.
    """
    pages = [(ROOT / "docs" / part / "scaling.md").read_text("utf-8") for part in ("", "zh")]
    law = report(2)
    for page in pages:
        rows = re.findall(r"^\| (d[\d-]+) \|.* \| ([\d.]+) \| ([-+][\d.]+) % \|$", page, re.M)
        assert rows == [
            (run.name, f"{fit:.4f}", f"{100 * (fit / run.point.loss - 1):+.2f}")
            for run, fit in ((run, law.fitted(run)) for run in law.runs)
        ]
        (predicted,) = law.predictions
        assert f"| **{predicted.loss.value:.4f}**" in page
        values = [number.value for number in law.law().values()]
        shown = [re.findall(rf"^\| \${name}\$ \| ([\d.,]+) ", page, re.M) for name in LETTERS]
        said = [float(number.replace(",", "")) for (number,) in shown]
        assert said == pytest.approx(values, rel=3e-3)


LETTERS = ("E", "A", r"\\alpha", "B", r"\\beta")
"""Of the law on its page."""


@settings(deadline=None, max_examples=6)
@given(st.integers(1, 40), st.sampled_from([2, 8, 64, 130]))
def test_the_table_knows_distances_alone(length: int, d_model: int) -> None:
    """Products and distances of two rows depend on their offset; the products are cosines."""
    products_LL, distances_LL = row_distances(sinusoidal_table(length, d_model))
    thetas = [10000.0 ** (-2 * i / d_model) for i in range(d_model // 2)]
    for offset in range(length):
        of_products, of_distances = (m.diagonal(offset) for m in (products_LL, distances_LL))
        expected = sum(math.cos(offset * theta) for theta in thetas)
        torch.testing.assert_close(of_products, torch.full_like(of_products, expected))
        torch.testing.assert_close(
            of_distances,
            torch.full_like(of_distances, math.sqrt(max(d_model - 2 * expected, 0.0))),
            atol=1e-5,
            rtol=0,
        )


def test_scores_spread_with_the_root_of_the_width() -> None:
    """Without the division the weight of one key goes to 1 and its gradient away; with it, not."""
    plain = [saturation(width, 1.0) for width in (16, 64, 256)]
    scaled = [saturation(width, width**-0.5) for width in (16, 64, 256)]
    for width, at_width in zip((16, 64, 256), plain, strict=True):
        assert at_width.spread == pytest.approx(math.sqrt(width), rel=0.05)
    assert all(one.largest + 0.05 < two.largest for one, two in pairwise(plain))
    assert all(one.gradient > 1.4 * two.gradient for one, two in pairwise(plain))
    for at_width in scaled:
        assert at_width.spread == pytest.approx(1.0, rel=0.05)
        assert at_width.largest == pytest.approx(scaled[0].largest, rel=0.1)
        assert at_width.gradient == pytest.approx(scaled[0].gradient, rel=0.1)


def test_the_place_of_the_norm_shows_in_the_gradients() -> None:
    """Six layers against 24: how large is the last layer's gradient at the beginning?

    Post-norm: the same. Pre-norm: it falls, and within a stack from the first layer to the last,
    while the stream grows. DeepNorm: the same in every layer, and smaller in the deeper stack.
    """
    post, pre, deep = (
        [layer_sizes(place, depth) for depth in (6, 24)] for place in ("post", "pre", "deepnorm")
    )
    assert post[1].gradients[-1] == pytest.approx(post[0].gradients[-1], rel=0.25)
    assert pre[1].gradients[-1] < 0.6 * pre[0].gradients[-1]
    assert geometric_mean(pre[1].gradients[-4:]) < 0.4 * geometric_mean(pre[1].gradients[:4])
    assert pre[1].streams[-1] > 2 * pre[1].streams[0]
    assert post[1].streams == pytest.approx([1.0] * 24, rel=1e-3)
    assert max(deep[1].gradients) < 1.1 * min(deep[1].gradients)
    assert max(deep[1].gradients) < 0.7 * min(deep[0].gradients)


def test_caches_grow_as_their_pattern_needs() -> None:
    """Full: twice the keys, twice the bytes; by the number of key-value heads; a window and linear
    attention: no more from some token on.
    """
    full = cache_growth(Causal(), 8, 200)
    assert all(weight >= 2 * 8 * 64 * 4 * (token + 1) for token, weight in enumerate(full))
    assert full[199] == 2 * full[99]
    assert cache_growth(Causal(), 2, 200) == [weight // 4 for weight in full]
    window = cache_growth(SlidingWindow(size=16), 8, 200)
    assert set(window[40:]) == {2 * 2 * 16 * 8 * 64 * 4}
    linear = cache_growth(LinearAttention(), 8, 20)
    assert set(linear) == {8 * 64 * 65 * 4}
    assert stored_bytes(Causal().make_storage()) == 0


@pytest.mark.parametrize("seed", [1, 2])
def test_each_mistake_shows_in_the_weights_as_it_is_told(seed: int) -> None:
    """Ours: nothing that is hidden, and rows of 1, or of 0 where a query sees nothing. Each fault
    breaks one of these, and the rows of the words are as ours where it has no say.
    """
    drawn = weights_by_mistake(seed=seed)
    seen = allowed()
    hidden, later = ~seen, torch.ones(LENGTH, LENGTH).triu(1).bool()
    blind = torch.arange(LENGTH) < PADDED
    right = drawn.pop("ours")
    assert right[hidden].max() == 0
    torch.testing.assert_close(right.sum(-1), (~blind).double())
    assert not any(torch.equal(right, weights) for weights in drawn.values())

    wrong_way = drawn["mask read the wrong way"]
    assert wrong_way[:-1][seen[:-1]].max() == 0
    assert wrong_way[:-1][hidden[:-1]].min() > 0
    assert drawn["no causal mask"][later][PADDED:].max() > 0
    assert drawn["no causal mask"][:, :PADDED].max() == 0
    assert drawn["padding not hidden"][later].max() == 0
    assert drawn["padding not hidden"][:, :PADDED].sum(-1).min() > 0
    nan = drawn["-inf where nothing is seen"]
    assert torch.equal(nan.isnan().all(dim=-1), blind)
    torch.testing.assert_close(nan[~blind], right[~blind])
    undivided = drawn["not divided by sqrt(d)"]
    assert undivided[hidden].max() == 0
    assert (undivided.amax(-1)[PADDED + 1 :] > right.amax(-1)[PADDED + 1 :]).all()


@pytest.mark.slow
def test_distance_is_nothing_to_attention_and_everything_to_recurrence() -> None:
    """Attention: level, and lower among more words. A recurrent layer: each of eight words back is
    less than the one before, by the same share from then on; near by it depends on a word more.
    """
    reach = {kind: gradients_by_distance(kind) for kind in KINDS}
    level = geometric_mean(reach["attention"])
    assert max(reach["attention"]) < 1.6 * level
    assert min(reach["attention"]) > level / 1.6
    shorter = geometric_mean(gradients_by_distance("attention", farthest=32))
    assert shorter / level == pytest.approx(129 / 33, rel=0.2)
    for kind in RECURRENT:
        sizes = reach[kind]
        assert all(near > far for near, far in pairwise(sizes[::8]))
        assert math.log(sizes[31] / sizes[79]) == pytest.approx(
            math.log(sizes[79] / sizes[127]), rel=0.1
        )
        assert sizes[2] > 1.5 * reach["attention"][2]
        assert max(sizes[6:]) < min(reach["attention"])
    assert all(reach["RNN"][127] < 1e-9 * reach[kind][127] for kind in ("GRU", "LSTM"))


@pytest.mark.parametrize("kind", ["attention", "RNN"])
def test_steps_are_counted_as_they_are_gone(kind: str) -> None:
    """Halve the matrix that each step ends in or begins with: a gradient is halved once a step.

    Small words keep tanh where it is a line.
    """
    torch.manual_seed(1)
    x_BLD = torch.zeros(1, 7, 8, dtype=torch.float64).normal_(std=1e-6).requires_grad_()
    attn = MultiHeadAttention(8, num_heads=2).double()
    rnn = torch.nn.RNN(8, 8, bias=False, batch_first=True).double()

    def logs() -> torch.Tensor:
        out_BLD = attn(x_BLD, attn.project_kv(x_BLD)) if kind == "attention" else rnn(x_BLD)[0]
        (gradient_BLD,) = torch.autograd.grad(out_BLD[0, -1, 0], x_BLD)
        sizes: torch.Tensor = gradient_BLD[0, :-1].norm(dim=-1).flip(0)
        return sizes.log2()

    whole = logs()
    with torch.no_grad():
        attn.out_proj.weight.mul_(0.5)
        rnn.get_parameter("weight_hh_l0").mul_(0.5)
    steps = whole - logs()
    assert steps.tolist() == pytest.approx([steps_between(kind, back) for back in range(1, 7)])
