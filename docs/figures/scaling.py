"""The scaling law over the runs of docs/scaling.md, drawn from the table of that page."""

import re
from functools import cache
from pathlib import Path

from dragoman.cli.cost_fit import draw_scaling
from dragoman.cost.counting import step_of
from dragoman.cost.scaling import REFITS, Point
from dragoman.cost.scaling_report import Run, ScalingReport, report_runs
from dragoman.tasks.recipes import load_recipe
from figures.chinese import save

PAGE = Path(__file__).parents[1] / "scaling.md"
CHARACTERS = 356
"""Of the texts of the sweep: the vocabulary that `tokenizer.vocab_size` bounds."""

_ROW = re.compile(
    r"^\| \**(?P<name>d(?P<width>\d+)-(?P<steps>\d+))\**(?P<apart> \(.+?\))? \| (?P<size>[\d,]+) "
    r"\| (?P<tokens>[\d,]+) \| \**(?P<loss>[\d.]+)\** \|",
    re.M,
)


def plot_scaling_law(path: Path | str) -> Path:
    """Draw the losses against tokens, a curve for each size, and against operations."""
    return save(draw_scaling(report()), path)


@cache
def report(refits: int = REFITS) -> ScalingReport:
    """What `dragoman cost --fit` computes from the runs; speeds are not in the table."""
    fitted: list[Run] = []
    apart: list[Run] = []
    for row in _ROW.finditer(PAGE.read_text(encoding="utf-8")):
        (apart if row["apart"] else fitted).append(_run(row))
    return report_runs(fitted, apart, refits=refits)


def _run(row: re.Match[str]) -> Run:
    size, tokens = (int(row[name].replace(",", "")) for name in ("size", "tokens"))
    return Run(
        name=row["name"],
        point=Point(parameters=size, tokens=tokens, loss=float(row["loss"])),
        flops_per_token=_flops(int(row["width"])),
        seconds_per_token=None,
    )


@cache
def _flops(width: int) -> float:
    """Operations of training for a token of a model of this width, as `dragoman cost` counts."""
    model = (f"model.d_model={width}", f"model.num_heads={width // 8}", f"model.d_ff={4 * width}")
    work = load_recipe("scaling-sweep", (*model, f"tokenizer.vocab_size={CHARACTERS}")).work()
    return step_of(work, "fp32", checkpointing=False).flops / work.shape.tokens
