r"""What a budget is best spent on: the size and the tokens of the lowest loss.

A token costs `c(N) = fixed + per_parameter * N`, in operations or in seconds; both are read off the
runs themselves. A budget C buys `D = C / c(N)` tokens, so that one unknown is left:

.. math:: \min_N \; E + A N^{-\alpha} + B (C / c(N))^{-\beta}

It is convex in log N, and its derivative is zero at one place. Where c(N) = 6N, that place is

.. math:: N = G (C / 6)^{\beta / (\alpha + \beta)}, \quad
    G = (\alpha A / (\beta B))^{1 / (\alpha + \beta)}

(Hoffmann et al. 2022, equation 4). Small models are not there yet: what a token costs them beside
their weights (attention's scores, the start of each operation) is a large share.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dragoman.cost.scaling import Interval, LawFit, ScalingLaw
from dragoman.errors import InputError

__all__ = ["Allocation", "Plan", "TokenCost", "best_plan", "optimal"]

LARGEST_LOG_SIZE = math.log(1e18)
HALVINGS = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenCost:
    """What learning from one token costs a model of any size."""

    fixed: float
    """Whatever the size."""
    per_parameter: float
    """For each parameter more."""

    @classmethod
    def of(cls, sizes: Sequence[float], costs: Sequence[float]) -> "TokenCost":
        """Draw the line through the costs of runs that misses each by the least share of it.

        A part that would be below zero is zero. Raises InputError for runs of one size alone.
        """
        if len(set(sizes)) < 2:
            raise InputError("runs of one size do not say what another size costs")
        cost, size = np.asarray(costs, float), np.asarray(sizes, float)
        shares = np.stack([1.0 / cost, size / cost], axis=1)
        fixed, per_parameter = np.linalg.lstsq(shares, np.ones_like(cost))[0]
        if fixed <= 0.0 or per_parameter <= 0.0:
            column = shares[:, int(fixed <= 0.0)]
            alone = float(column.sum() / (column @ column))
            fixed, per_parameter = (0.0, alone) if fixed <= 0.0 else (alone, 0.0)
        return cls(fixed=float(fixed), per_parameter=float(per_parameter))

    def of_token(self, parameters: float) -> float:
        """Return the cost of a token for a model of so many parameters."""
        return self.fixed + self.per_parameter * parameters


@dataclass(frozen=True, slots=True, kw_only=True)
class Allocation:
    """How a budget is spent."""

    parameters: float
    """N."""
    tokens: float
    """D."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """The best use of a budget, and how sure that is."""

    budget: float
    """In the unit of the costs."""
    parameters: Interval
    """The size."""
    tokens: Interval
    """The tokens."""
    loss: Interval
    """What a run of that plan will measure."""


def optimal(law: ScalingLaw, budget: float, cost: TokenCost) -> Allocation | None:
    """Return the size and tokens of the lowest loss, or None where the law has no such place.

    It has none where a larger model, or more tokens, never help (an exponent of 0 or below), and
    where size costs nothing.
    """
    alpha, beta = law.size_exponent, law.token_exponent
    if min(alpha, beta) <= 0.0 or cost.per_parameter <= 0.0:
        return None

    def still_falls(log_size: float) -> bool:
        """Whether a larger model is better: what size still gives is more than tokens lose."""
        size = math.exp(log_size)
        of_token = cost.of_token(size)
        given = math.log(alpha * law.size_factor) - alpha * log_size
        lost = math.log(beta * law.token_factor) - beta * math.log(budget / of_token)
        return given > lost + math.log(cost.per_parameter * size / of_token)

    low, high = 0.0, LARGEST_LOG_SIZE
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if still_falls(middle) else (low, middle)
    size = math.exp(low)
    return Allocation(parameters=size, tokens=budget / cost.of_token(size))


def best_plan(fit: LawFit, budget: float, cost: TokenCost) -> Plan:
    """Return the best use of a budget by the fit, with intervals.

    Raises InputError where the fit knows none.
    """
    chosen = optimal(fit.law, budget, cost)
    if chosen is None:
        raise InputError(
            "the fit has no best size: larger models or more tokens did not lower the loss of "
            "these runs; fit runs that lie further apart"
        )

    def size(law: ScalingLaw) -> float:
        found = optimal(law, budget, cost)
        return found.parameters if found else math.nan

    def tokens(law: ScalingLaw) -> float:
        found = optimal(law, budget, cost)
        return found.tokens if found else math.nan

    return Plan(
        budget=budget,
        parameters=fit.interval(size),
        tokens=fit.interval(tokens),
        loss=fit.predict(chosen.parameters, chosen.tokens),
    )
