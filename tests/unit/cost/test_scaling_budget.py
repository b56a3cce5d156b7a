"""What a budget is best spent on."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.cost.test_scaling import LAW, measured

from dragoman.cost.scaling import ScalingLaw, TokenCost, best_use, fit_law, optimal
from dragoman.errors import InputError

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
    """Equation 4 of Hoffmann et al. 2022: N = G (C / 6)^a and D = (C / 6)^b / G."""
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
    """Of a fine grid of sizes, each with all the tokens that the budget buys it, none is better."""
    cost = TokenCost(fixed=fixed, per_parameter=slope)
    found = optimal(law, budget, cost)
    sizes = np.geomspace(1.0, 1e14, 5000)
    others = law.loss(sizes, budget / (fixed + slope * sizes))
    assert law.loss(*found) <= others.min() * (1 + 1e-9)


def test_costs_on_a_line_are_read_off() -> None:
    """Costs that lie on a line give that line; a part that would be negative is zero."""
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
    """Where larger models do not help, or cost nothing more, there is no best one; it is said."""
    useless = ScalingLaw(
        floor=1.0, size_factor=1.0, size_exponent=-0.1, token_factor=1.0, token_exponent=0.5
    )
    assert np.isnan(optimal(useless, 1e12, SIX)).all()
    assert np.isnan(optimal(LAW, 1e12, TokenCost(fixed=1.0, per_parameter=0.0))).all()
    fit = fit_law(measured(LAW), samples=2)
    with pytest.raises(InputError, match="no best size"):
        best_use(fit, 1e12, TokenCost(fixed=1.0, per_parameter=0.0))


def test_a_plan_lies_in_its_intervals() -> None:
    """Size, tokens and loss of a plan are those of the law, inside of what the samples say."""
    fit = fit_law(measured(LAW, noise=0.002, seed=5), samples=100)
    plan = best_use(fit, 1e13, SIX)
    for part in (plan.parameters, plan.tokens, plan.loss):
        assert part.low < part.value < part.high
    assert plan.loss.value == pytest.approx(
        float(fit.law.loss(plan.parameters.value, plan.tokens.value))
    )
