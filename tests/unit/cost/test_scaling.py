"""Scaling laws: the fit, its confidence intervals, and the best use of a budget."""

import sys
from collections.abc import Sequence
from dataclasses import asdict, replace
from importlib import import_module

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dragoman.cost.scaling import (
    Interval,
    LawFit,
    Point,
    ScalingLaw,
    TokenCost,
    best_use,
    fit_law,
    optimal,
)
from dragoman.errors import InputError

LAW = ScalingLaw(
    floor=1.2, size_factor=40.0, size_exponent=0.32, token_factor=300.0, token_exponent=0.4
)
SIZES = (26_000, 41_000, 108_000, 230_000)
LENGTHS = (768_000, 1_536_000, 3_072_000)
LARGER = (602_000, 4_608_000)


def measured(law: ScalingLaw, *, noise: float = 0.0, seed: int = 0) -> list[Point]:
    """Return a grid of runs whose losses are the law's times exp of normal noise."""
    rng = np.random.default_rng(seed)
    return [
        Point(
            parameters=size,
            tokens=tokens,
            loss=float(law.loss(size, tokens) * np.exp(noise * rng.normal())),
        )
        for size in SIZES
        for tokens in LENGTHS
    ]


@settings(max_examples=8, deadline=None)
@given(
    floor=st.floats(0.5, 2.0),
    alpha=st.floats(0.2, 0.7),
    beta=st.floats(0.2, 0.7),
    of_size=st.floats(0.3, 1.5),
    of_tokens=st.floats(0.3, 1.5),
)
def test_a_law_without_noise_is_found_again(
    floor: float, alpha: float, beta: float, of_size: float, of_tokens: float
) -> None:
    """From losses that are a law's, the fit finds that law, wherever the starts lie."""
    law = ScalingLaw(
        floor=floor,
        size_factor=of_size * 1e5**alpha,
        size_exponent=alpha,
        token_factor=of_tokens * 1.5e6**beta,
        token_exponent=beta,
    )
    found = fit_law(measured(law), samples=2).law
    assert found.floor == pytest.approx(floor, abs=0.02)
    assert found.size_exponent == pytest.approx(alpha, abs=0.02)
    assert found.token_exponent == pytest.approx(beta, abs=0.02)
    assert float(found.loss(*LARGER)) == pytest.approx(float(law.loss(*LARGER)), rel=1e-3)


def test_intervals_hold_the_truth() -> None:
    """In six sweeps with noise, nearly all 95% intervals contain the true value."""
    held = dict.fromkeys(("size_exponent", "token_exponent", "larger"), 0)
    for seed in range(6):
        fit = fit_law(measured(LAW, noise=0.003, seed=seed), samples=60)
        intervals = {name: Interval.of(getattr(fit.laws, name)) for name in asdict(LAW)}
        intervals["larger"] = fit.predict(*LARGER)
        truth = asdict(LAW) | {"larger": float(LAW.loss(*LARGER))}
        for name in held:
            held[name] += intervals[name].low <= truth[name] <= intervals[name].high
    assert min(held.values()) >= 5


def off_the_law(fit: LawFit, points: Sequence[Point]) -> np.ndarray:
    """Return the log residuals of the runs."""
    return np.array([np.log(fit.law.loss(p.parameters, p.tokens) / p.loss) for p in points])


def test_noise_is_that_of_the_runs_and_of_what_was_fitted() -> None:
    """The noise of a new run exceeds that of the fitted runs by sqrt(n / (n - 5))."""
    points = measured(LAW, noise=0.003)
    fit = fit_law(points, samples=400)
    spread = np.sqrt(len(points) / (len(points) - 5))
    assert np.std(fit.noise_S) == pytest.approx(spread * np.std(off_the_law(fit, points)), rel=0.1)


def test_one_wrong_run_moves_little() -> None:
    """A failed run 10% above the law changes the prediction by less than 1%.

    The noise stays centred, or all resampled laws would be shifted in the outlier's direction.
    """
    points = measured(LAW, noise=0.001, seed=1)
    points[5] = replace(points[5], loss=1.1 * points[5].loss)
    found = fit_law(points, samples=300)
    assert abs(found.noise_S.mean()) < 0.15 * found.noise_S.std()
    assert float(found.law.loss(*LARGER)) == pytest.approx(float(LAW.loss(*LARGER)), rel=0.01)
    assert off_the_law(found, points)[5] == pytest.approx(-np.log(1.1), abs=0.02)


def test_the_runs_and_the_seed_decide_all() -> None:
    """The order of the runs changes nothing; another seed changes only the samples."""
    points = measured(LAW, noise=0.003, seed=2)
    order = np.random.default_rng(0).permutation(len(points))
    one, again = fit_law(points, samples=20), fit_law([points[i] for i in order], samples=20)
    other = fit_law(points, samples=20, seed=1)
    assert one.law == again.law == other.law
    for name in asdict(LAW):
        drawn = [getattr(fit.laws, name) for fit in (one, again, other)]
        assert np.array_equal(drawn[0], drawn[1])
        assert not np.array_equal(drawn[0], drawn[2])


def test_runs_that_decide_nothing_are_refused() -> None:
    """Five parameters need six runs of three sizes and lengths; the error says what to add.

    A loss that is zero or not finite has no logarithm.
    """
    points = measured(LAW)
    with pytest.raises(InputError, match=r"5 runs of 2 sizes and 3 lengths .* at least 6 runs"):
        fit_law(points[:5])
    with pytest.raises(InputError, match="1 run of 1 size and 1 length cannot decide"):
        fit_law(points[:1])
    with pytest.raises(InputError, match="2 sizes"):
        fit_law(points[:6])
    with pytest.raises(InputError, match="2 lengths"):
        fit_law([point for point in points if point.tokens != LENGTHS[0]])
    for loss in (0.0, -1.0, float("nan"), float("inf")):
        with pytest.raises(InputError, match="not above 0"):
            fit_law([replace(point, loss=loss) for point in points])


def test_without_scipy_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    """A missing optional library is reported with the command that installs it."""
    for name in [each for each in sys.modules if each.startswith("dragoman.cost.scaling")]:
        monkeypatch.delitem(sys.modules, name)
    for name in ("scipy", "scipy.optimize"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(InputError, match=r"needs SciPy; in a checkout: pip install '\.\[plot\]'"):
        import_module("dragoman.cost.scaling_report")


# ---------------------------------------------------------------- budgets


SIX = TokenCost(fixed=0.0, per_parameter=6.0)
LAWS = st.builds(
    ScalingLaw,
    floor=st.floats(0.5, 2.0),
    size_factor=st.floats(10.0, 1000.0),
    size_exponent=st.floats(0.2, 0.8),
    token_factor=st.floats(10.0, 1000.0),
    token_exponent=st.floats(0.2, 0.8),
)


@given(law=LAWS, budget=st.floats(1e12, 1e22))
def test_where_a_token_costs_6n_the_papers_formula_holds(law: ScalingLaw, budget: float) -> None:
    """The optimum is equation 4 of Hoffmann et al. 2022: N = G (C / 6)^a and D = (C / 6)^b / G."""
    alpha, beta = law.size_exponent, law.token_exponent
    g = (alpha * law.size_factor / (beta * law.token_factor)) ** (1 / (alpha + beta))
    size, tokens = optimal(law, budget, SIX)
    expected = max(1.0, g * (budget / 6) ** (beta / (alpha + beta)))
    assert size == pytest.approx(expected, rel=1e-6)
    assert size * tokens * 6 == pytest.approx(budget)


@settings(max_examples=40)
@given(
    law=LAWS, budget=st.floats(1e12, 1e18), fixed=st.floats(0.0, 1e7), slope=st.floats(0.1, 50.0)
)
def test_no_other_size_is_better(
    law: ScalingLaw, budget: float, fixed: float, slope: float
) -> None:
    """No size of a fine grid, with all the tokens that the budget allows, is better."""
    cost = TokenCost(fixed=fixed, per_parameter=slope)
    found = optimal(law, budget, cost)
    sizes = np.geomspace(1.0, 1e14, 5000)
    others = law.loss(sizes, budget / (fixed + slope * sizes))
    assert law.loss(*found) <= others.min() * (1 + 1e-9)


def test_costs_on_a_line_are_read_off() -> None:
    """Linear costs are recovered; a part that would be negative is zero."""
    sizes = [1e4, 1e5, 1e6]
    line = TokenCost.of(sizes, [3e4 + 7 * size for size in sizes])
    assert line.fixed == pytest.approx(3e4)
    assert line.per_parameter == pytest.approx(7.0)
    bent = TokenCost.of(sizes, [7 * size**1.2 for size in sizes])
    assert bent.fixed == 0.0
    assert bent.per_parameter > 0.0
    flat = TokenCost.of(sizes, [5.0, 4.0, 3.0])
    assert flat.per_parameter == 0.0
    assert flat.fixed > 0.0


def test_a_law_that_never_ends_has_no_best_size() -> None:
    """If larger models do not help or cost no more, there is no best size; the error says so."""
    useless = ScalingLaw(
        floor=1.0, size_factor=1.0, size_exponent=-0.1, token_factor=1.0, token_exponent=0.5
    )
    assert np.isnan(optimal(useless, 1e12, SIX)).all()
    assert np.isnan(optimal(LAW, 1e12, TokenCost(fixed=1.0, per_parameter=0.0))).all()
    fit = fit_law(measured(LAW), samples=2)
    with pytest.raises(InputError, match="no best size"):
        best_use(fit, 1e12, TokenCost(fixed=1.0, per_parameter=0.0))


def test_a_plan_lies_in_its_intervals() -> None:
    """Size, tokens and loss of a plan follow the law and are within their intervals."""
    fit = fit_law(measured(LAW, noise=0.002, seed=5), samples=100)
    plan = best_use(fit, 1e13, SIX)
    for part in (plan.parameters, plan.tokens, plan.loss):
        assert part.low < part.value < part.high
    assert plan.loss.value == pytest.approx(
        float(fit.law.loss(plan.parameters.value, plan.tokens.value))
    )
