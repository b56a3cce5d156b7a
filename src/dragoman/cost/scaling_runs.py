"""From the folders of finished runs to the points of a scaling law.

Only the end of a run is a fair point: before it the learning rate had not fallen yet, and a longer
run that is looked at early is worse than a short one that was planned so (Hoffmann et al. 2022,
section 3.1). So a run gives one point, its last validation, whatever it measured on its way.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from dragoman.cost.counting import step_of
from dragoman.cost.recipes import find_recipe
from dragoman.cost.scaling import Point
from dragoman.errors import InputError
from dragoman.files.reading import read_object
from dragoman.train.log import read_log
from dragoman.train.runfolder import RunFolder

FREE_DATA = ("root", "cache", "source")
"""Settings of where the texts lie, which is nothing about them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """A finished run."""

    name: str
    """Its folder."""
    point: Point
    flops_per_token: float
    """Of training, as `dragoman cost` counts them."""
    seconds_per_token: float | None
    """The median over its training, without validation; None for a run too short to tell."""

    @property
    def flops(self) -> float:
        """Operations of the whole run."""
        return self.flops_per_token * self.point.tokens


def find_runs(folders: Sequence[Path]) -> list[Path]:
    """Return the folders of runs: those given, and those directly inside of a given one."""
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
    """Read runs that may stand in one fit.

    Raises InputError for a run that is not finished or was never validated, and for runs whose
    losses mean different things: other texts, other pieces, another length of windows.
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
    """Return what decides which text is predicted, in which pieces and from how much before it."""
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
            f"{folder} is not finished, so its loss is no end of a learning rate that falls; let "
            "dragoman train go on with it, or leave it out"
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
