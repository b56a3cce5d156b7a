"""What differs between two runs: settings, machines, and the figures of the logs.

The logs contain every `train.log_every`-th step, so a difference arises after the last step that is
equal in both, and no later than the next step in both.
"""

import json
import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from dragoman.errors import InputError
from dragoman.files.reading import read_object
from dragoman.settings import flatten, parse_settings
from dragoman.tasks.task import TASKS, find_task
from dragoman.train.checkpoint import checkpoints, read_state
from dragoman.train.log import read_log
from dragoman.train.runfolder import RECIPE, RESULT_NEUTRAL_SETTINGS, RunFolder, deciding
from dragoman.wording import counted

Values = Mapping[str, Any]
FIGURES = ("loss", "grad_norm", "learning_rate", "tokens")
"""The figures of a logged step that are compared; for a validation, all are."""
ENDS = ("last step", "ended by")


def compare_runs(one: Path, two: Path) -> dict[str, Any]:
    """Return what differs between two runs, to the last digit; `docs/formats.md` has the keys.

    Raises InputError for a folder that is not a run, a run without a step and a damaged file.
    """
    (recipe_a, a, beside_a), (recipe_b, b, beside_b) = _read_run(one), _read_run(two)
    settings = _differing(*_settings(recipe_a, recipe_b))
    settings.pop("out", None)
    setting = next((key for key in settings if key not in RESULT_NEUTRAL_SETTINGS), None)
    figures = {name: found for name in a if (found := _first(a[name], b.get(name, {})))}
    first = min(figures, key=lambda name: figures[name]["step"], default=None)
    end = figures[first]["step"] if first else math.inf
    same = {step for name in a for step in a[name].keys() & b.get(name, {}) if step < end}
    beside = _differing(beside_a, beside_b)
    known = {k: v for k, v in beside.items() if k not in ENDS and None not in v}
    but = ", ".join(f"{k} {_both(v)}" for k, v in known.items())
    said = [
        _verdict(same, first, figures),
        f"The first setting that differs is {setting}: {_both(settings[setting])}."
        if setting
        else f"No setting differs that changes a number{but and ', but '}{but}.",
    ]
    early, late = sorted([(beside_a["last step"], one), (beside_b["last step"], two)])
    if early[0] != late[0]:
        said.append(f"{early[1]} ends at step {early[0]:,}, {late[1]} at step {late[0]:,}.")
    return {
        "runs": [str(one), str(two)],
        "verdict": " ".join(said),
        "first_step": figures[first]["step"] if first else None,
        "first_setting": setting,
        "settings": settings,
        "beside": beside,
        "figures": figures,
    }


def _read_run(folder: Path) -> tuple[Values, dict[str, dict[int, float]], Values]:
    """Return a run's recipe; its figures by step (`valid.` for validations); the rest."""
    run = RunFolder(folder)
    recipe, config = run.training / RECIPE, folder / "config.json"
    if not recipe.is_file():
        wrong = f"{folder} is not the folder of a run: there is no {recipe}"
        raise InputError(f"{wrong}; give two folders that dragoman train has written.")
    lines = read_log(run.metrics) if run.metrics.is_file() else []
    if not lines:
        raise InputError(f"There is no step in {run.metrics}; give a run that has taken some.")
    figures: dict[str, dict[int, float]] = {name: {} for name in FIGURES}
    for line in lines:
        values = {name: getattr(line, name) for name in FIGURES}
        for name, value in (values | {f"valid.{k}": v for k, v in line.valid.items()}).items():
            if value is not None:
                figures.setdefault(name, {})[line.step] = value
    beside: dict[str, Any] = dict(zip(ENDS, (line.step, line.stopped), strict=True))
    for path in checkpoints(run.checkpoints)[-1:]:
        state = read_state(path)
        beside |= state.machine | {"data": state.batches.get("fingerprint")}
    if config.is_file():
        beside["dragoman"] = read_object(config).get("dragoman")
    return read_object(recipe), figures, beside


def _settings(one: Values, two: Values) -> list[Values]:
    """Return the settings of two recipes by dotted key, in field order, with defaults.

    They are as written if a task is not known here or a setting is of another version.
    """
    try:
        kinds = [find_task(str(data.get("task", next(iter(TASKS))))).recipe for data in (one, two)]
        both = zip(kinds, (one, two), strict=True)
        return [deciding(parse_settings(kind, data, "the recipe")) for kind, data in both]
    except InputError:
        return [flatten(one), flatten(two)]


def _differing(one: Values, two: Values) -> dict[str, tuple[Any, Any]]:
    """Return both values of each key that differs; None for a missing key."""
    pairs = {key: (one.get(key), two.get(key)) for key in (*one, *two)}
    return {key: pair for key, pair in pairs.items() if pair[0] != pair[1]}


def _first(one: Mapping[int, float], two: Mapping[int, float]) -> dict[str, Any] | None:
    """Return where a figure first differs, among the steps in both logs; NaN equals itself."""
    before = None
    for step in sorted(one.keys() & two):
        x, y = one[step], two[step]
        if x != y and not (math.isnan(x) and math.isnan(y)):
            size = abs(x - y) if math.isfinite(x - y) else None
            return {"same_until": before, "step": step, "values": (x, y), "difference": size}
        before = step
    return None


def _verdict(same: set[int], first: str | None, figures: Values) -> str:
    """Return the sentence about the steps; equal ones end before the first that differs."""
    if first is None and not same:
        return "No step is in both logs, so no figure can be compared."
    if first is None:
        held = f"{counted(len(same), 'step')} in both logs, the last of them {max(same):,}"
        return f"The two runs are the same to the last digit: {held}."
    step, size = figures[first]["step"], figures[first]["difference"]
    apart = "" if size is None else f"by {size:.3g} "
    what = f"{first} {apart}({_both(figures[first]['values'])})."
    if not same:
        return f"The two runs differ at step {step:,}, the first in both logs: {what}"
    between = "" if step == max(same) + 1 else ", the next in both logs"
    return (
        f"The two runs are the same up to step {max(same):,} and differ at step {step:,}{between}: "
        f"{what}"
    )


def tables_of(found: Mapping[str, Any]) -> Iterator[list[tuple[str, ...]]]:
    """Yield the differences as tables with a header each: settings, their surroundings, figures."""
    for head, differing in (("setting", "settings"), ("beside the settings", "beside")):
        rows = [(key, *map(_shown, both)) for key, both in found[differing].items()]
        yield from [[(head, *found["runs"]), *rows]] if rows else []
    rows = []
    for name, at in found["figures"].items():
        size = None if at["difference"] is None else f"{at['difference']:.3g}"
        row = (at["same_until"], at["step"], *at["values"], size)
        rows.append((name, *map(_shown, row)))
    head_row = ("figure", "same at", "differs at", *found["runs"], "by")
    yield from [[head_row, *rows]] if rows else []


def _both(values: tuple[object, object]) -> str:
    return " and ".join(map(_shown, values))


def _shown(value: object) -> str:
    """Return a value as JSON writes it, with all digits; text unchanged, - for None."""
    if value is None:
        return "-"
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
