"""`dragoman cost --fit`: a scaling law from your own runs, its consequences, and its picture."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from dragoman.cli.output import Item
from dragoman.wording import format_time, short

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from dragoman.cost.scaling import Interval, Numbers
    from dragoman.cost.scaling_report import RunPrediction, ScalingReport

LETTERS = {
    "floor": ("E", "the floor, nats per token"),
    "size_factor": ("A", ""),
    "size_exponent": ("alpha", "of the size N"),
    "token_factor": ("B", ""),
    "token_exponent": ("beta", "of the tokens D"),
}
"""The papers' letters."""
PLACES, WIDER = 80, 2.0
"""Points of a curve, and the factor by which it extends beyond the runs on either side."""


def show_scaling(report: "ScalingReport") -> Iterator[Item]:
    """Yield the table of the runs and the sentences under it."""
    rows = [("run", "parameters N", "tokens D", "loss", "of the law", "off")]
    for run in report.runs:
        point, fitted = run.point, report.fitted(run)
        loss = (f"{point.loss:.4f}", f"{fitted:.4f}", f"{fitted / point.loss - 1:+.2%}")
        rows.append((Path(run.name).name, f"{point.parameters:,}", f"{point.tokens:,}", *loss))
    yield rows
    yield "\nL(N, D) = E + A / N^alpha + B / D^beta, and where 95 of 100 refits put it:"
    for name, interval in report.law().items():
        letter, meaning = LETTERS[name]
        value, _, ends = _show(interval, ".4g").partition(" ")
        yield f"  {letter:<6} {value:<7} {ends:<19} {meaning}".rstrip()
    if report.check:
        yield f"\nThe largest run, predicted by the others: {_compare(report.check)}"
        if not report.check.inside:
            yield "No single power law fits these runs, so predictions beyond them are doubtful."
    for prediction in report.predictions:
        point = prediction.run.point
        yield (
            f"\n{prediction.run.name} was not fitted: {point.parameters:,} parameters, "
            f"{point.tokens:,} tokens. {_compare(prediction)}"
        )
    yield "\nThe best use of a budget:"
    for spending in report.spendings:
        plan, times = spending.plan, f"{spending.beyond:.3g}"
        beyond = "as much as" if times == "1" else f"{times} times"
        time = "unknown time" if spending.seconds is None else format_time(spending.seconds)
        yield (
            f"  {spending.flops:.2g} FLOPs ({beyond} the largest run, {time} here): "
            f"{_show(plan.parameters, ' parameters')}, {_show(plan.tokens, ' tokens')}, "
            f"loss {_show(plan.loss, '.3f')}"
        )
    data = report.more_data
    yield (
        f"\nTen times the data: {short(data.parameters)} parameters on {short(10 * data.tokens)} "
        f"tokens instead of {short(data.tokens)}: {_show(data.more, '.3f')} instead of "
        f"{data.now.value:.3f}; however large the model, not below {_show(data.bound, '.3f')}."
    )


def _compare(prediction: "RunPrediction") -> str:
    measured, loss = prediction.run.point.loss, prediction.loss
    return (
        f"Predicted {_show(loss, '.4f')}, measured {measured:.4f}: "
        f"{'inside' if prediction.inside else 'outside'}, {loss.value / measured - 1:+.2%}."
    )


def _show(interval: "Interval", form: str) -> str:
    """Return a value with both ends: in this format, or short and with this unit."""
    ends = (interval.value, interval.low, interval.high)
    value, low, high = (short(x) if form.startswith(" ") else format(x, form) for x in ends)
    return f"{value}{form if form.startswith(' ') else ''} ({low} to {high})"


def draw_scaling(report: "ScalingReport") -> "Figure":
    """Draw the law over its runs.

    Left, the loss against the tokens, a curve for each size; a diamond is a run that was not
    fitted, with the predicted interval as a bar. Right, the same runs against the operations
    they took, and below all curves the frontier: the best size for each budget.
    """
    from dragoman.cost.scaling import optimal
    from dragoman.lens import blank

    law, flops = report.fit.law, report.flops
    figure = blank(10.4, 4.4)
    left, right = figure.subplots(1, 2, sharey=True)
    _draw_curves(left, report, lambda _: 1.0)
    _draw_curves(right, report, flops.of_token)
    work = [flops.of_token(run.point.parameters) * run.point.tokens for run in report.runs]
    budgets = np.geomspace(min(work), WIDER**2 * max(work), PLACES)
    losses = law.loss(*optimal(law, budgets, flops))
    right.plot(budgets, losses, "--", color="#7a1fa2", linewidth=1.8, label="the best size")
    title = f"a curve for each size; floor E = {law.floor:.2f}"
    left.set(title=title, xlabel="tokens", ylabel="loss, nats per token")
    right.set(title="what a budget buys", xlabel="operations of training (FLOPs)")
    for axes in (left, right):
        axes.set_xscale("log")
        axes.xaxis.set_minor_formatter("")
        axes.grid(alpha=0.3, which="both")
        axes.legend(fontsize=8)
    return figure


def _draw_curves(
    axes: "Axes", report: "ScalingReport", cost_of: Callable[[float], "Numbers"]
) -> None:
    """Draw the curve of each size, its runs, and those that were predicted."""
    from matplotlib import colormaps

    fitted = [run.point for run in report.runs]
    points = fitted + [each.run.point for each in report.predictions]
    tokens = [point.tokens for point in points]
    shown = np.geomspace(min(tokens) / WIDER, max(tokens) * WIDER, PLACES)
    sizes = sorted({point.parameters for point in points})
    colors = colormaps["viridis"](np.linspace(0.0, 0.85, len(sizes)))
    for size, color in zip(sizes, colors, strict=True):
        cost, losses = float(cost_of(size)), report.fit.law.loss(size, shown)
        axes.plot(shown * cost, losses, color=color, linewidth=1.2, label=f"N = {short(size)}")
        for point in fitted:
            if point.parameters == size:
                axes.plot(point.tokens * cost, point.loss, "o", color=color, markersize=5)
        for each in report.predictions:
            if (point := each.run.point).parameters == size:
                place, ends = point.tokens * cost, [each.loss.low, each.loss.high]
                axes.plot([place] * 2, ends, color=color, linewidth=5, alpha=0.35)
                axes.plot(place, point.loss, "D", color=color, markersize=6, mec="black")
