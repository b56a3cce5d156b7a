"""From the folders of finished runs to the points of a scaling law.

Only the end of a run is a fair point: before it the learning rate had not fallen yet, and a longer
run that is looked at early is worse than a short one that was planned so (Hoffmann et al. 2022,
section 3.1). So a run gives one point, its last validation, whatever it measured on its way.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from dragoman.cost.counting import step_of
from dragoman.cost.recipes import find_recipe, work_of
from dragoman.cost.scaling import Point
from dragoman.errors import InputError
from dragoman.models import count_parameters
from dragoman.models.folder import read_config

__all__ = ["Run", "find_runs", "read_runs"]

SAME = ("task", "data", "tokenizer", "batch.length", "batch.stride")
"""What decides which text is predicted, in which pieces and from how much before it."""

FREE_DATA = ("root", "cache", "source")
"""Where the texts lie, which is nothing about them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """A finished run."""

    name: str
    """Its folder."""
    point: Point
    """Its size, its tokens, its loss."""
    flops_per_token: float
    """Of training, as `dragoman cost` counts them."""
    seconds_per_token: float | None
    """The median over its training, without validation; none for a run too short to tell."""


def find_runs(folders: Sequence[Path]) -> list[Path]:
    """Return the folders of runs: those given, and those directly inside of a given one."""
    found = [run for folder in folders for run in _inside(folder)]
    return list(dict.fromkeys(found))


def _inside(folder: Path) -> list[Path]:
    if (folder / "training").is_dir():
        return [folder]
    runs = sorted(path.parent for path in folder.glob("*/training"))
    if not runs:
        raise InputError(
            f"{folder} is not the folder of a training run and holds none; give the folders that "
            "dragoman train wrote"
        )
    return runs


def read_runs(folders: Sequence[Path]) -> list[Run]:
    """Read runs that may stand in one fit.

    Raises InputError for a run that is not finished or was never validated, and for runs whose
    losses mean different things: other texts, other pieces, another length of windows.
    """
    first: Mapping[str, object] = {}
    for folder in folders:
        same = _what_is_predicted(folder)
        first = first or same
        other = next((key for key in first if same[key] != first[key]), None)
        if other:
            raise InputError(
                f"{folders[0]} and {folder} differ in {other}, so their losses cannot be "
                "compared; fit runs that predict the same text in the same pieces"
            )
    return [_read_run(folder) for folder in folders]


def _what_is_predicted(folder: Path) -> dict[str, object]:
    recipe = _json(folder / "training" / "recipe.json")
    data = {key: value for key, value in recipe["data"].items() if key not in FREE_DATA}
    found: dict[str, object] = {}
    for key in SAME:
        section, _, name = key.partition(".")
        value = data if key == "data" else recipe.get(section)
        found[key] = value.get(name) if name and isinstance(value, dict) else value
    return found


def _read_run(folder: Path) -> Run:
    if not (folder / "training" / "finished.json").exists():
        raise InputError(
            f"{folder} is not finished, so its loss is no end of a learning rate that falls; let "
            "dragoman train go on with it, or leave it out"
        )
    lines = list(_lines(folder / "training" / "metrics.jsonl"))
    losses = [line for line in lines if "valid" in line]
    if not losses:
        raise InputError(f"{folder} has no validation, so there is no loss to fit; leave it out")
    model = read_config(folder).model
    work = work_of(find_recipe(str(folder)))
    step = step_of(work, "fp32", activation_checkpointing=False)
    flops = step.flops.total / work.shape.tokens
    speeds = [line["tokens_per_second"] for line in lines if line.get("tokens_per_second")]
    return Run(
        name=str(folder),
        point=Point(
            parameters=sum(count_parameters(model).values()),
            tokens=_tokens(folder, lines, losses[-1]["step"]),
            loss=losses[-1]["valid"]["loss"],
        ),
        flops_per_token=flops,
        seconds_per_token=1.0 / median(speeds) if speeds else None,
    )


def _tokens(folder: Path, lines: Sequence[Mapping[str, Any]], step: int) -> int:
    """Tokens up to a step, from the last line before it that tells them."""
    told = [line for line in lines if "tokens" in line and line["step"] <= step]
    if not told or not told[-1]["tokens"]:
        raise InputError(
            f"{folder / 'training' / 'metrics.jsonl'} does not say how many tokens the run was "
            "trained on; leave the run out"
        )
    tokens, at = float(told[-1]["tokens"]), float(told[-1]["step"])
    return round(tokens * step / at)


def _lines(path: Path) -> Iterator[dict[str, Any]]:
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}; leave the run out") from error
    for number, line in enumerate(text.splitlines(), start=1):
        try:
            yield json.loads(line)
        except ValueError as error:
            raise InputError(f"{path}, line {number} is damaged; leave the run out") from error


def _json(path: Path) -> dict[str, Any]:
    try:
        found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}; leave the run out") from error
    except ValueError as error:
        raise InputError(f"{path} is damaged ({error}); leave the run out") from error
    return found
