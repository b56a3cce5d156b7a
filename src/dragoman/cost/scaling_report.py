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

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, fields
from operator import attrgetter
from pathlib import Path
from typing import Any

import numpy as np

from dragoman.cost.options import CostOptions
from dragoman.cost.scaling import (
    REFITS,
    Floats,
    Interval,
    LawFit,
    Numbers,
    ScalingLaw,
    TokenCost,
    fit_law,
)
from dragoman.cost.scaling_runs import Run, find_runs, read_runs
from dragoman.errors import InputError
from dragoman.plain import Plain, to_plain

LARGEST_LOG_SIZE, HALVINGS = np.log(1e18), 100
BEYOND = (1, 10, 100)
"""Budgets by default, as multiples of the work of the largest run."""
CHECK_REFITS = 200
"""Resampled sets of runs behind the interval of the check."""
MORE_DATA = 10
"""Times the tokens of the longest run."""


def optimal(law: ScalingLaw, budget: Numbers, cost: TokenCost) -> tuple[Floats, Floats]:
    """Return the size and the tokens of the lowest loss; laws and budgets may be arrays.

    NaN where the law has no such place: where a larger model, or more tokens, never help (an
    exponent of 0 or below), and where size costs nothing.
    """
    alpha, beta = law.size_exponent, law.token_exponent
    exists = (np.minimum(alpha, beta) > 0.0) & (cost.per_parameter > 0.0)
    low = np.zeros(np.broadcast_shapes(np.shape(alpha), np.shape(budget)))
    high = np.full_like(low, LARGEST_LOG_SIZE)
    with np.errstate(invalid="ignore", divide="ignore"):  # where it does not exist
        for _ in range(HALVINGS):
            middle = (low + high) / 2
            size = np.exp(middle)
            of_token = cost.of_token(size)
            gain = np.log(alpha * law.size_factor) - alpha * middle
            loss = np.log(beta * law.token_factor) - beta * np.log(budget / of_token)
            falls = gain > loss + np.log(cost.per_parameter * size / of_token)
            low, high = np.where(falls, middle, low), np.where(falls, high, middle)
    size = np.where(exists, np.exp(low), np.nan)
    return size, np.asarray(budget / cost.of_token(size))


@dataclass(frozen=True, slots=True, kw_only=True)
class BestUse:
    """The best use of a budget in the unit of the costs: the run, and the loss it will measure."""

    budget: float
    parameters: Interval
    tokens: Interval
    loss: Interval


def best_use(fit: LawFit, budget: float, cost: TokenCost) -> BestUse:
    """Return the best use of a budget. Raises InputError where the fit knows none."""
    size_S, tokens_S = optimal(fit.laws, budget, cost)
    if np.isnan(size_S[0]):
        raise InputError(
            "the fit has no best size: larger models or more tokens did not lower the loss of "
            "these runs; fit runs that lie further apart"
        )
    return BestUse(
        budget=budget,
        parameters=Interval.of(size_S),
        tokens=Interval.of(tokens_S),
        loss=fit.predict(size_S[0], tokens_S[0]),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Spending:
    """A planned run: its operations, and its time on the machine of the runs, where known."""

    flops: float
    seconds: float | None
    plan: BestUse
    beyond: float
    """Its operations as a multiple of the largest run that was fitted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunPrediction:
    """A run that was not fitted, and the loss that the law predicts for it."""

    run: Run
    loss: Interval

    @classmethod
    def of(cls, run: Run, fit: LawFit) -> "RunPrediction":
        """Predict a run by the law of others."""
        return cls(run=run, loss=fit.predict(run.point.parameters, run.point.tokens))

    @property
    def inside(self) -> bool:
        """Whether the measured loss lies in the predicted interval."""
        return self.loss.low <= self.run.point.loss <= self.loss.high


@dataclass(frozen=True, slots=True, kw_only=True)
class MoreData:
    """The law's loss for the largest size and the most tokens of the runs, and for more tokens."""

    parameters: int
    tokens: int
    now: Interval
    more: Interval
    """For ten times the tokens."""
    bound: Interval
    """For ten times the tokens and a model without end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScalingReport(Plain):
    """All of it: of runs that were fitted, and of those that were not."""

    runs: Sequence[Run]
    """Those that were fitted, by size and tokens."""
    fit: LawFit
    predictions: Sequence[RunPrediction]
    check: RunPrediction | None
    """The largest run as predicted by the others alone; None if they are too few for a law."""
    spendings: Sequence[Spending]
    more_data: MoreData
    flops: TokenCost
    """Operations of a token by size."""

    def law(self) -> dict[str, Interval]:
        """Return the five numbers by name."""
        return {f.name: Interval.of(getattr(self.fit.laws, f.name)) for f in fields(ScalingLaw)}

    def fitted(self, run: Run) -> float:
        """Return the law's loss for a run."""
        return float(self.fit.law.loss(run.point.parameters, run.point.tokens))

    def to_dict(self) -> dict[str, Any]:
        """Return plain data for JSON; of the resampled laws the intervals only."""
        return {
            "law": {name: to_plain(value) for name, value in self.law().items()},
            "runs": [to_plain(run) | {"fitted": self.fitted(run)} for run in self.runs],
            "predictions": [to_plain(each) for each in self.predictions],
            "check": self.check and to_plain(self.check),
            "budgets": [to_plain(each) for each in self.spendings],
            "more_data": to_plain(self.more_data),
        }


NOTHING_ASKED = CostOptions(fit=True)


def report_scaling(
    folders: Sequence[Path], asked: CostOptions = NOTHING_ASKED, *, refits: int = REFITS
) -> ScalingReport:
    """Read and fit the runs of `folders`, but for those that are to be predicted.

    Raises InputError for runs that do not go together or are too few.
    """
    apart = {path.resolve() for path in asked.predict}
    to_fit = [path for path in find_runs(folders) if path.resolve() not in apart]
    read = read_runs([*to_fit, *asked.predict])
    return report_runs(read[: len(to_fit)], read[len(to_fit) :], asked, refits=refits)


def report_runs(
    fitted: Sequence[Run],
    predicted: Sequence[Run],
    asked: CostOptions = NOTHING_ASKED,
    *,
    refits: int = REFITS,
) -> ScalingReport:
    """Fit runs, predict others by them, and answer what follows; without a budget for `BEYOND`.

    Intervals come from fits to `refits` resampled sets of runs. The check leaves the largest run
    out and predicts it: the law's form is an assumption about the runs.
    """
    runs = sorted(fitted, key=lambda run: (run.point.parameters, run.point.tokens))
    largest = max(runs, key=attrgetter("flops"))
    fit, check = _fit(runs, refits), None
    with suppress(InputError):  # too few without it
        others = _fit([run for run in runs if run is not largest], min(refits, CHECK_REFITS))
        check = RunPrediction.of(largest, others)
    flops = TokenCost.of([run.point.parameters for run in runs], [r.flops_per_token for r in runs])
    return ScalingReport(
        runs=runs,
        fit=fit,
        predictions=[RunPrediction.of(run, fit) for run in predicted],
        check=check,
        spendings=_spendings(runs, fit, flops, asked),
        more_data=_more_data(runs, fit),
        flops=flops,
    )


def _fit(runs: Sequence[Run], refits: int) -> LawFit:
    return fit_law([run.point for run in runs], samples=refits)


def _spendings(
    runs: Sequence[Run], fit: LawFit, flops: TokenCost, asked: CostOptions
) -> list[Spending]:
    largest = max(run.flops for run in runs)
    timed = [(r.point.parameters, r.seconds_per_token) for r in runs if r.seconds_per_token]
    time = TokenCost.of(*zip(*timed, strict=True)) if len(dict(timed)) > 1 else None
    if asked.seconds is None:
        amounts = [times * largest for times in BEYOND] if asked.flops is None else [asked.flops]
        plans = [best_use(fit, amount, flops) for amount in amounts]
    elif time is None:
        raise InputError("these runs do not tell their speed; give the budget in FLOPs")
    else:
        plans = [best_use(fit, asked.seconds, time)]

    def spending(plan: BestUse) -> Spending:
        size, tokens = plan.parameters.value, plan.tokens.value
        work = float(flops.of_token(size) * tokens)
        seconds = float(time.of_token(size) * tokens) if time else None
        return Spending(flops=work, seconds=seconds, plan=plan, beyond=work / largest)

    return list(map(spending, plans))


def _more_data(runs: Sequence[Run], fit: LawFit) -> MoreData:
    laws, size = fit.laws, max(run.point.parameters for run in runs)
    tokens = max(run.point.tokens for run in runs)
    longer = MORE_DATA * tokens
    return MoreData(
        parameters=size,
        tokens=tokens,
        now=Interval.of(laws.loss(size, tokens)),
        more=Interval.of(laws.loss(size, longer)),
        bound=Interval.of(laws.floor + laws.token_factor * longer**-laws.token_exponent),
    )
