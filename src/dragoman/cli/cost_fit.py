"""`dragoman cost --fit`: a scaling law from one's own runs, and what it says."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from dragoman.cli.pipes import to_stdout
from dragoman.errors import InputError
from dragoman.wording import short

if TYPE_CHECKING:
    from rich.console import Console

    from dragoman.cost.scaling import Interval
    from dragoman.cost.scaling_report import Prediction, ScalingReport

LETTERS = {
    "floor": ("E", "the floor, nats per token"),
    "size_factor": ("A", ""),
    "size_exponent": ("alpha", "of the size N"),
    "token_factor": ("B", ""),
    "token_exponent": ("beta", "of the tokens D"),
}
"""The papers' letters."""


def check_fit_options(
    *, fit: bool, with_fit: Mapping[str, object], without: Mapping[str, object]
) -> None:
    """Raise InputError for options of the fit without it, and for others with it."""
    given = [name for name, value in (without if fit else with_fit).items() if value is not None]
    if given:
        option = f"--{given[0].replace('_', '-')}"
        needs = "has no meaning with --fit" if fit else "needs --fit and the folders of runs"
        raise InputError(f"{option} {needs}")


def fit_runs(
    folders: Sequence[Path],
    *,
    predict: Sequence[Path] = (),
    budget: Mapping[str, float | None] | None = None,
    png: Path | None = None,
    as_json: bool = False,
) -> None:
    """Fit a scaling law to runs, print what follows from it, and draw it where `png` is given.

    `budget` has the fields of `cost.scaling_report.Budget`.
    """
    from dragoman.cost.scaling_report import Budget, report_scaling

    report = report_scaling(folders, predict=predict, budget=Budget(**budget or {}))
    if png is not None:
        _draw(report, png)
    if as_json:
        with to_stdout() as write:
            write(json.dumps(report.to_dict(), ensure_ascii=False))
        return
    from rich.console import Console

    console = Console(highlight=False, soft_wrap=True)
    _show_runs(console, report)
    _show_law(console, report)
    _show_predictions(console, report)
    _show_spendings(console, report)
    _show_more_data(console, report)


def _draw(report: "ScalingReport", png: Path) -> None:
    from dragoman.cost.scaling_report import optimal
    from dragoman.lens.scaling import ScalingPicture, plot_scaling

    law = report.fit.law

    def best(budget: float) -> tuple[float, float]:
        found = optimal(law, budget, report.flops)
        assert found is not None  # noqa: S101 -- the report has found a best size before
        return found.parameters, found.tokens

    picture = ScalingPicture(
        law=lambda size, tokens: float(law.loss(size, tokens)),
        floor=law.floor,
        flops=report.flops.of_token,
        best=best,
        runs=[(r.point.parameters, r.point.tokens, r.point.loss) for r in report.runs],
        predicted=[
            (f.run.point.parameters, f.run.point.tokens, f.run.point.loss, f.loss.low, f.loss.high)
            for f in report.predictions
        ],
    )
    plot_scaling(picture, png)


def _show_runs(console: "Console", report: "ScalingReport") -> None:
    from rich.table import Table

    head, rows = ["run", "parameters N", "tokens D", "loss", "of the law", "off"], []
    for run in report.runs:
        point = run.point
        fitted = float(report.fit.law.loss(point.parameters, point.tokens))
        rows.append(
            [
                Path(run.name).name,
                f"{point.parameters:,}",
                f"{point.tokens:,}",
                f"{point.loss:.4f}",
                f"{fitted:.4f}",
                f"{fitted / point.loss - 1:+.2%}",
            ]
        )
    if not console.is_terminal:  # plain columns for a pipe, as those of all figures
        console.file.writelines("\t".join(row) + "\n" for row in (head, *rows))
        return
    table = Table(*head)
    for column in table.columns[1:]:
        column.justify = "right"
    for row in rows:
        table.add_row(*row)
    console.print(table)


def _show_law(console: "Console", report: "ScalingReport") -> None:
    from rich.table import Table

    from dragoman.cost.scaling_report import law_intervals

    console.print("\nL(N, D) = E + A / N^alpha + B / D^beta, and where 95 of 100 refits put it:")
    table = Table.grid(padding=(0, 2))
    for name, interval in law_intervals(report.fit).items():
        letter, meaning = LETTERS[name]
        table.add_row(f"  {letter}", f"{interval.value:.4g}", _ends(interval, ".4g"), meaning)
    console.print(table)


def _show_predictions(console: "Console", report: "ScalingReport") -> None:
    if report.check:
        console.print(f"\nThe largest run, predicted by the others: {_predicted(report.check)}")
        if not report.check.inside:
            console.print(
                "So these runs lie on no one such law, and what it says beyond them is doubtful."
            )
    for prediction in report.predictions:
        point = prediction.run.point
        console.print(
            f"\n{prediction.run.name} was not fitted: {point.parameters:,} parameters, "
            f"{point.tokens:,} tokens. {_predicted(prediction)}"
        )


def _predicted(prediction: "Prediction") -> str:
    measured, loss = prediction.run.point.loss, prediction.loss
    return (
        f"Predicted {loss.value:.4f} {_ends(loss, '.4f')}, measured {measured:.4f}: "
        f"{'inside' if prediction.inside else 'outside'}, {loss.value / measured - 1:+.2%}."
    )


def _show_spendings(console: "Console", report: "ScalingReport") -> None:
    from dragoman.cli.cost_show import time_said

    console.print("\nThe best use of a budget:")
    for spending in report.spendings:
        plan = spending.plan
        time = "unknown time" if spending.seconds is None else time_said(spending.seconds)
        console.print(
            f"  {spending.flops:.2g} FLOPs ({_times(spending.beyond)} the largest run, "
            f"{time} here): {short(plan.parameters.value)} parameters "
            f"{_short_ends(plan.parameters)}, {short(plan.tokens.value)} tokens "
            f"{_short_ends(plan.tokens)}, loss {plan.loss.value:.3f} {_ends(plan.loss, '.3f')}"
        )


def _show_more_data(console: "Console", report: "ScalingReport") -> None:
    data = report.more_data
    console.print(
        f"\nTen times the data: {short(data.parameters)} parameters on {short(10 * data.tokens)} "
        f"tokens instead of {short(data.tokens)}: {data.more.value:.3f} "
        f"{_ends(data.more, '.3f')} instead of {data.now.value:.3f}; however large the model, not "
        f"below {data.bound.value:.3f} {_ends(data.bound, '.3f')}."
    )


def _times(factor: float) -> str:
    said = f"{factor:.3g}"
    return "as much as" if said == "1" else f"{said} times"


def _ends(interval: "Interval", form: str) -> str:
    return f"({interval.low:{form}} to {interval.high:{form}})"


def _short_ends(interval: "Interval") -> str:
    return f"({short(interval.low)} to {short(interval.high)})"
