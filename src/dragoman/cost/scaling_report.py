r"""What a scaling law says of a sweep: the law itself, predictions, budgets, more data.

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
from dataclasses import asdict, dataclass
from operator import attrgetter
from pathlib import Path
from typing import Any

import numpy as np

from dragoman.cost.scaling import Interval, LawFit, ScalingLaw, fit_law
from dragoman.cost.scaling_runs import Run, find_runs, read_runs
from dragoman.errors import InputError

__all__ = [
    "Allocation",
    "Budget",
    "Plan",
    "Prediction",
    "ScalingReport",
    "TokenCost",
    "best_plan",
    "optimal",
    "report_scaling",
]

LARGEST_LOG_SIZE = math.log(1e18)
HALVINGS = 100
BEYOND = (1, 10, 100)
"""Times the work of the largest run: the budgets that are asked about where none is given."""

MORE_DATA = 10
"""Times the tokens of the longest run."""


# ---------------------------------------------------------------- the best use of a budget


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


# ---------------------------------------------------------------- the report


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """What may be spent, in one of three ways; none of them asks about more work in general."""

    flops: float | None = None
    """Operations of training."""
    minutes: float | None = None
    """Time of training, on the machine that made the runs."""
    money: float | None = None
    """The same time, paid by the hour."""
    price_per_hour: float | None = None
    """What an hour of that machine costs, in the unit of the money."""

    def __post_init__(self) -> None:
        """Reject several budgets at once, non-positive ones, and money without a price."""
        given = [name for name in ("flops", "minutes", "money") if getattr(self, name) is not None]
        if len(given) > 1:
            raise InputError(f"one budget at a time, not {' and '.join(given)}")
        if (self.money is None) != (self.price_per_hour is None):
            raise InputError("a budget of money needs a price per hour, and a price needs money")
        for name in (*given, *(["price_per_hour"] if self.price_per_hour is not None else [])):
            if not 0.0 < getattr(self, name) < math.inf:
                raise InputError(f"{name} = {getattr(self, name)} must be a number above 0")

    @property
    def seconds(self) -> float | None:
        """The time that it buys, where it is one of time or money."""
        if self.money is not None and self.price_per_hour is not None:
            return 3600.0 * self.money / self.price_per_hour
        return None if self.minutes is None else 60.0 * self.minutes


@dataclass(frozen=True, slots=True, kw_only=True)
class Spending:
    """A budget, and what is best done with it."""

    flops: float
    """Operations of the planned run."""
    seconds: float | None
    """Its training time on the machine of the runs."""
    plan: Plan
    """Size, tokens and loss."""
    beyond: float
    """Its operations as a multiple of the largest run that was fitted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Prediction:
    """A run that was not fitted: what the law says of it, and what it measured."""

    run: Run
    """The run."""
    loss: Interval
    """The prediction."""

    @property
    def inside(self) -> bool:
        """Whether the measured loss lies in the predicted interval."""
        return self.loss.low <= self.run.point.loss <= self.loss.high


@dataclass(frozen=True, slots=True, kw_only=True)
class MoreData:
    """What more tokens bring where nothing else is changed, and where size is no limit."""

    parameters: int
    """The largest size that was fitted."""
    tokens: int
    """The longest run that was fitted."""
    now: Interval
    """The law's loss for these two."""
    more: Interval
    """For ten times the tokens."""
    bound: Interval
    """For ten times the tokens and a model without end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScalingReport:
    """All of it."""

    runs: tuple[Run, ...]
    """Those that were fitted, by size and tokens."""
    fit: LawFit
    """The law."""
    predictions: tuple[Prediction, ...]
    """Runs that were not fitted."""
    check: Prediction | None
    """The largest run as predicted by the others alone; None if they are too few for a law."""
    spendings: tuple[Spending, ...]
    """Answers to the budget, or to more work in general."""
    more_data: MoreData
    """Ten times the tokens."""
    flops: TokenCost
    """Operations of a token by size."""

    def to_dict(self) -> dict[str, Any]:
        """Return plain data for JSON; of the resampled laws the intervals only."""
        return {
            "law": {name: asdict(value) for name, value in law_intervals(self.fit).items()},
            "runs": [
                asdict(run) | {"fitted": float(self.fit.law.loss(*_place(run)))}
                for run in self.runs
            ],
            "foretold": [asdict(each) for each in self.predictions],
            "check": asdict(self.check) if self.check else None,
            "budgets": [asdict(spending) for spending in self.spendings],
            "more_data": asdict(self.more_data),
        }


def law_intervals(fit: LawFit) -> dict[str, Interval]:
    """Return the five numbers by name, with their intervals."""
    names = ("floor", "size_factor", "size_exponent", "token_factor", "token_exponent")
    return {name: fit.interval(attrgetter(name)) for name in names}


def report_scaling(
    folders: Sequence[Path], *, predict: Sequence[Path] = (), budget: Budget | None = None
) -> ScalingReport:
    """Fit the runs of `folders`, but for those of `predict`, and answer what follows.

    Raises InputError for runs that do not go together or are too few.
    """
    apart = {path.resolve() for path in predict}
    fitted = [path for path in find_runs(folders) if path.resolve() not in apart]
    read = read_runs([*fitted, *predict])
    runs = sorted(read[: len(fitted)], key=_place)
    fit = fit_law([run.point for run in runs])
    flops = TokenCost.of([run.point.parameters for run in runs], [r.flops_per_token for r in runs])
    return ScalingReport(
        runs=tuple(runs),
        fit=fit,
        predictions=tuple(
            Prediction(run=run, loss=fit.predict(*_place(run))) for run in read[len(fitted) :]
        ),
        check=_check(runs),
        spendings=tuple(_spendings(runs, fit, flops, budget or Budget())),
        more_data=_more_data(runs, fit),
        flops=flops,
    )


def _place(run: Run) -> tuple[int, int]:
    return run.point.parameters, run.point.tokens


def _work(run: Run) -> float:
    return run.flops_per_token * run.point.tokens


def _check(runs: Sequence[Run]) -> Prediction | None:
    """Leave the largest run out and predict it: the law's form is an assumption about the runs."""
    largest = max(runs, key=_work)
    try:
        fit = fit_law([run.point for run in runs if run is not largest])
    except InputError:
        return None
    return Prediction(run=largest, loss=fit.predict(*_place(largest)))


def _spendings(
    runs: Sequence[Run], fit: LawFit, flops: TokenCost, budget: Budget
) -> list[Spending]:
    largest = max(map(_work, runs))
    time = _token_seconds(runs)
    if budget.seconds is not None:
        if time is None:
            raise InputError("these runs do not tell their speed; give the budget in FLOPs")
        plans = [best_plan(fit, budget.seconds, time)]
    else:
        budgets = [times * largest for times in BEYOND] if budget.flops is None else [budget.flops]
        plans = [best_plan(fit, amount, flops) for amount in budgets]
    return [_spending(plan, flops, time, largest) for plan in plans]


def _spending(plan: Plan, flops: TokenCost, time: TokenCost | None, largest: float) -> Spending:
    size, tokens = plan.parameters.value, plan.tokens.value
    work = flops.of_token(size) * tokens
    return Spending(
        flops=work,
        seconds=time.of_token(size) * tokens if time else None,
        plan=plan,
        beyond=work / largest,
    )


def _token_seconds(runs: Sequence[Run]) -> TokenCost | None:
    known = [(run.point.parameters, run.seconds_per_token) for run in runs]
    told = [(size, seconds) for size, seconds in known if seconds is not None]
    if len({size for size, _ in told}) < 2:
        return None
    return TokenCost.of([size for size, _ in told], [seconds for _, seconds in told])


def _more_data(runs: Sequence[Run], fit: LawFit) -> MoreData:
    size = max(run.point.parameters for run in runs)
    tokens = max(run.point.tokens for run in runs)

    def bound(law: ScalingLaw) -> float:
        return float(law.floor + law.token_factor * (MORE_DATA * tokens) ** -law.token_exponent)

    return MoreData(
        parameters=size,
        tokens=tokens,
        now=fit.interval(lambda law: float(law.loss(size, tokens))),
        more=fit.interval(lambda law: float(law.loss(size, MORE_DATA * tokens))),
        bound=fit.interval(bound),
    )
