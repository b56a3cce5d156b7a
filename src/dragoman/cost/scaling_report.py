"""What a scaling law says about finished runs: the law itself, predictions, budgets, more data.

Each run gives one point, its last validation: before its end, the learning rate has not fallen yet
(Hoffmann et al. 2022, section 3.1).
"""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, fields
from operator import attrgetter
from pathlib import Path
from statistics import median
from typing import Any

from dragoman.cost.counting import step_of
from dragoman.cost.options import CostOptions
from dragoman.cost.recipes import find_recipe
from dragoman.cost.scaling import (
    REFITS,
    BestUse,
    Interval,
    LawFit,
    Point,
    ScalingLaw,
    TokenCost,
    best_use,
    fit_law,
)
from dragoman.errors import InputError
from dragoman.files.reading import read_object
from dragoman.plain import Plain, to_plain
from dragoman.train.log import read_log
from dragoman.train.runfolder import RunFolder

BEYOND = (1, 10, 100)
"""Default budgets, as multiples of the work of the largest run."""
CHECK_REFITS = 200
"""Number of resampled sets of runs behind the interval of the check."""
MORE_DATA = 10
"""Factor on the tokens of the longest run."""
FREE_DATA = ("root", "cache", "source")
"""Settings that say where the texts are stored, not what they are."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """A finished run."""

    name: str
    """Its folder."""
    point: Point
    flops_per_token: float
    """Training operations per token, as `dragoman cost` counts them."""
    seconds_per_token: float | None
    """Median over its training, without validation; None for a run too short to tell."""

    @property
    def flops(self) -> float:
        """Operations of the whole run."""
        return self.flops_per_token * self.point.tokens


def find_runs(folders: Sequence[Path]) -> list[Path]:
    """Return the run folders: those given, and those directly inside a given one."""
    found: list[Path] = []
    for folder in folders:
        inside = [path.parent for path in sorted(folder.glob("*/training"))]
        if (folder / "training").is_dir():
            inside = [folder]
        if not inside:
            raise InputError(
                f"{folder} is not the folder of a training run and holds none; give the folders "
                "that dragoman train wrote"
            )
        found += inside
    return list(dict.fromkeys(found))


def read_runs(folders: Sequence[Path]) -> list[Run]:
    """Read runs that can be fitted together.

    Raises InputError for a run that is not finished or was never validated, and for runs whose
    losses mean different things: other texts, other pieces, another window length.
    """
    predicted = list(map(_what_is_predicted, folders))
    for folder, other in zip(folders, predicted, strict=True):
        for key in (key for key, value in other.items() if value != predicted[0][key]):
            raise InputError(
                f"{folders[0]} and {folder} differ in {key}, so their losses cannot be "
                "compared; fit runs that predict the same text in the same pieces"
            )
    return list(map(_read_run, folders))


def _what_is_predicted(folder: Path) -> dict[str, object]:
    """Return what decides which text is predicted, in which pieces and from how much context."""
    recipe = read_object(folder / "training" / "recipe.json")
    batch = recipe.get("batch", {})
    return {
        "task": recipe.get("task"),
        "data": {key: value for key, value in recipe["data"].items() if key not in FREE_DATA},
        "tokenizer": recipe.get("tokenizer"),
        "batch.length": batch.get("length"),
        "batch.stride": batch.get("stride"),
    }


def _read_run(folder: Path) -> Run:
    if not (folder / "training" / "finished.json").exists():
        raise InputError(
            f"{folder} is not finished, so its learning rate has not fallen to its end; finish it "
            "with dragoman train, or leave it out"
        )
    metrics = RunFolder(folder).metrics
    lines = read_log(metrics)
    validations = [line for line in lines if line.valid]
    if not validations:
        raise InputError(f"{folder} has no validation, so there is no loss to fit; leave it out")
    end = validations[-1].step
    told = [line for line in lines if line.tokens is not None and line.step <= end]
    if not told or not told[-1].tokens:
        raise InputError(
            f"{metrics} does not say how many tokens the run was trained on; leave the run out"
        )
    work = find_recipe(str(folder)).work()
    flops = step_of(work, "fp32", checkpointing=False).flops
    speeds = [line.tokens_per_second for line in lines if line.tokens_per_second]
    return Run(
        name=str(folder),
        point=Point(
            parameters=work.parameters,
            tokens=round(told[-1].tokens * end / told[-1].step),
            loss=validations[-1].valid["loss"],
        ),
        flops_per_token=flops / work.shape.tokens,
        seconds_per_token=1.0 / median(speeds) if speeds else None,
    )


# ---------------------------------------------------------------- what is reported


@dataclass(frozen=True, slots=True, kw_only=True)
class Spending:
    """A planned run: its operations and, if known, its time on the machine of the runs."""

    flops: float
    seconds: float | None
    plan: BestUse
    beyond: float
    """Its operations as a multiple of those of the largest fitted run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunPrediction:
    """A run that was not fitted, and the loss that the law predicts for it."""

    run: Run
    loss: Interval

    @classmethod
    def of(cls, run: Run, fit: LawFit) -> "RunPrediction":
        """Predict a run by the law of other runs."""
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
    """The loss for ten times the tokens."""
    bound: Interval
    """The loss for ten times the tokens and an infinitely large model."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScalingReport(Plain):
    """The whole report: the fitted runs, and the others."""

    runs: Sequence[Run]
    """The fitted runs, by size and tokens."""
    fit: LawFit
    predictions: Sequence[RunPrediction]
    check: RunPrediction | None
    """The largest run as predicted by the others alone; None if they are too few for a law."""
    spendings: Sequence[Spending]
    more_data: MoreData
    flops: TokenCost
    """Operations per token by model size."""

    def law(self) -> dict[str, Interval]:
        """Return the five numbers by name."""
        return {f.name: Interval.of(getattr(self.fit.laws, f.name)) for f in fields(ScalingLaw)}

    def fitted(self, run: Run) -> float:
        """Return the law's loss for a run."""
        return float(self.fit.law.loss(run.point.parameters, run.point.tokens))

    def to_dict(self) -> dict[str, Any]:
        """Return plain data for JSON; for the resampled laws, only the intervals."""
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
    """Read and fit the runs of `folders`, except those to predict.

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
    """Fit runs, predict others by the law, and answer what is asked; by default for `BEYOND`.

    Intervals come from fits to `refits` resampled sets of runs. The check leaves the largest run
    out and predicts it: the law's form is an assumption about the runs.
    """
    runs = sorted(fitted, key=lambda run: (run.point.parameters, run.point.tokens))
    fit, check = _fit(runs, refits), None
    largest = max(runs, key=attrgetter("flops"))
    with suppress(InputError):  # too few runs without it
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
