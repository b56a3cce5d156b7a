"""Comparing two generated runs exactly."""

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.errors import InputError
from dragoman.plain import to_plain
from dragoman.settings import override_settings
from dragoman.tasks.generate.recipe import GenerateRecipe
from dragoman.tasks.runs import compare_runs
from dragoman.tasks.translate.recipe import DataConfig, TranslateRecipe
from dragoman.train.checkpoint import SavedState
from dragoman.train.config import TrainConfig
from dragoman.train.progress import Progress

MACHINE = {"device": "cpu (AVX512)", "precision": "fp32", "threads": "1", "torch": "2.5.1"}
Line = dict[str, Any]


def step_line(step: int, **values: float) -> Line:
    """Return a log line whose figures depend on the step alone."""
    line = {"step": step, "loss": 7.0 / step, "grad_norm": 1.0 / step, "learning_rate": 1e-5 * step}
    return line | {"tokens": 100 * step, "tokens_per_second": 3.0, "seconds": 0.1} | values


def valid_line(step: int, **values: float) -> Line:
    """Return the log line of a validation."""
    return {
        "step": step,
        "seconds": 0.2,
        "valid": {"loss": 8.0 / step, "bleu": 1.5 * step} | values,
    }


def log(steps: Sequence[int] = (1, 10, 20, 30), valid: Sequence[int] = (20, 30)) -> list[Line]:
    """Return the log of a finished run."""
    lines = [step_line(step) for step in steps] + [valid_line(step) for step in valid]
    lines.sort(key=lambda line: line["step"])
    return [*lines, {"step": lines[-1]["step"], "seconds": 1.0, "stopped": "30 steps"}]


def settings(*overrides: str) -> dict[str, Any]:
    """Return a recipe's settings as a run writes them."""
    recipe = TranslateRecipe(
        data=DataConfig(src="a", tgt="b"), out="runs/a", train=TrainConfig(max_steps=100)
    )
    return to_plain(override_settings(recipe, overrides))


RECIPE = settings()


def make_run(
    folder: Path,
    lines: Sequence[Line],
    recipe: Mapping[str, Any] = RECIPE,
    machine: Mapping[str, str] | None = None,
    data: str = "abc",
    examples: int | None = None,
) -> Path:
    """Write the folder of a run whose checkpoint has no tensors."""
    training = folder / "training"
    training.mkdir(parents=True, exist_ok=True)
    (training / "recipe.json").write_text(json.dumps(recipe, sort_keys=True), encoding="utf-8")
    text = "".join(json.dumps(line) + "\n" for line in lines)
    (training / "metrics.jsonl").write_text(text, encoding="utf-8")
    if machine is not None:
        batches = {"fingerprint": data} | ({} if examples is None else {"examples": examples})
        state = SavedState(
            progress=Progress(step=5), batches=batches, recipe={}, machine=dict(machine)
        )
        path = training / "checkpoints" / "step-00000005"
        path.mkdir(parents=True, exist_ok=True)
        (path / "state.json").write_text(json.dumps(to_plain(state)), encoding="utf-8")
    return folder


Compare = Callable[..., dict[str, Any]]


@pytest.fixture
def compare(tmp_path: Path) -> Compare:
    """Compare the logs of two otherwise identical runs."""

    def made(one: Sequence[Line], two: Sequence[Line]) -> dict[str, Any]:
        return compare_runs(make_run(tmp_path / "a", one), make_run(tmp_path / "b", two))

    return made


@given(
    logged=st.lists(
        st.integers(1, 1009) | st.integers(1, 9), min_size=1, max_size=12, unique=True
    ).map(sorted),
    name=st.sampled_from(["loss", "grad_norm", "learning_rate", "tokens", "valid.loss"]),
    drawn=st.data(),
)
def test_a_change_is_found_where_it_was_made(
    tmp_path_factory: pytest.TempPathFactory, logged: list[int], name: str, drawn: st.DataObject
) -> None:
    """Of any log, any figure and any step, though only its last digit changes."""
    folder = tmp_path_factory.mktemp("runs")
    at = drawn.draw(st.sampled_from(logged))
    one, wanted = log(logged, logged), (0.0, 0.0)
    two = json.loads(json.dumps(one))
    for line in two:
        values = line.get("valid", {}) if name == "valid.loss" else line
        key = name.removeprefix("valid.")
        if key in values and line["step"] >= at:
            changed = values[key]
            values[key] = changed + 1 if key == "tokens" else math.nextafter(changed, math.inf)
            if line["step"] == at:
                wanted = (changed, values[key])
    found = compare_runs(make_run(folder / "a", one), make_run(folder / "b", two))
    before = max((step for step in logged if step < at), default=None)
    assert found["figures"] == {
        name: {
            "same_until": before,
            "step": at,
            "values": wanted,
            "difference": wanted[1] - wanted[0],
        }
    }
    assert found["first_step"] == at
    assert found["first_setting"] is None
    assert f"at step {at:,}" in found["verdict"].lower()
    assert f"{wanted[0]!r} and {wanted[1]!r})." in found["verdict"]
    since = "the first in both logs" if before is None else f"the same up to step {before:,} "
    assert since in found["verdict"]
    assert ("the next in both logs" in found["verdict"]) == (before not in {None, at - 1})


def test_the_same_run_is_the_same(compare: Compare) -> None:
    """Times are ignored, two NaNs are equal, and the steps are counted."""
    one = [*log(), step_line(40, loss=math.nan)]
    two = [line | {"seconds": 9.0, "tokens_per_second": 8.0} for line in one]
    found = compare(one, two)
    assert found["verdict"] == (
        "The two runs are the same to the last digit: 5 steps in both logs, the last of them 40. "
        "No setting differs that changes a number."
    )
    assert (found["settings"], found["beside"], found["figures"]) == ({}, {}, {})


def test_a_loss_that_is_not_a_number_differs_from_one_that_is(compare: Compare) -> None:
    """There is no numeric difference to report."""
    found = compare(log(), [*log()[:1], step_line(10, loss=math.nan)])
    assert found["figures"]["loss"]["difference"] is None
    assert ": loss (0.7 and NaN)." in found["verdict"]


def test_only_steps_in_both_logs_are_compared(compare: Compare) -> None:
    """With different `log_every` or `validate_every`, the other steps are ignored."""
    found = compare(log((1, 10, 20, 30)), log((1, 15, 30), valid=(30,)))
    assert found["figures"] == {}
    assert "2 steps in both logs, the last of them 30" in found["verdict"]
    found = compare(log((1, 10, 20, 30)), [*log((1, 15), valid=()), step_line(30, loss=1.0)])
    assert found["figures"]["loss"]["same_until"] == 1
    assert "up to step 1 and differ at step 30, the next in both logs: loss by" in found["verdict"]
    found = compare(log((1, 2), ()), log((3, 4), ()))
    assert "No step is in both logs" in found["verdict"]


def test_each_figure_has_a_first_step_of_its_own(compare: Compare) -> None:
    """The verdict names the earliest; at the same step, training figures come first."""
    two = [step_line(1), step_line(10, grad_norm=5.0), step_line(20, loss=2.0)]
    found = compare(log(), [*two, valid_line(20, bleu=3.0, only=1.0)])
    places = {name: at["step"] for name, at in found["figures"].items()}
    assert places == {"loss": 20, "grad_norm": 10, "valid.bleu": 20}
    assert "step 10, the next in both logs: grad_norm by 4.9 (0.1 and 5.0)." in found["verdict"]
    found = compare(log(), [step_line(1), step_line(20, loss=2.0), valid_line(20, loss=3.0)])
    assert ": loss by" in found["verdict"]


def test_the_end_that_comes_earlier_is_told(tmp_path: Path) -> None:
    """Both reasons are given; an unfinished run has none, and its last line may be partial."""
    one = make_run(tmp_path / "a", log())
    two = make_run(tmp_path / "b", log()[:3])
    with (two / "training" / "metrics.jsonl").open("a", encoding="utf-8") as file:
        file.write('{"step": 99, "lo')
    found = compare_runs(one, two)
    assert found["beside"] == {"last step": (30, 20), "ended by": ("30 steps", None)}
    assert found["verdict"].endswith(f"{two} ends at step 20, {one} at step 30.")


def test_settings_in_the_order_of_the_recipe_with_defaults(tmp_path: Path) -> None:
    """The first relevant one is named; missing keys have their defaults; `out` is ignored."""
    one = settings("out=x", "description=Other", "batch.max_tokens=999", "model.dropout=0.25")
    two = settings("train.seed=7", "train.log_every=3")
    del two["train"]["average_last"], two["train"]["metric"]
    one["train"]["metric"] = "bleu"
    found = compare_runs(make_run(tmp_path / "a", log(), one), make_run(tmp_path / "b", log(), two))
    assert list(found["settings"]) == [
        *("description", "model.dropout", "train.seed", "train.log_every", "batch.max_tokens")
    ]
    assert found["first_setting"] == "model.dropout"
    assert found["settings"]["train.seed"] == (1, 7)
    assert "The first setting that differs is model.dropout: 0.25 and 0.1." in found["verdict"]


def test_runs_of_two_tasks(tmp_path: Path) -> None:
    """Each run has its own task's defaults; an unknown task's settings are used unchanged."""
    other = to_plain(replace(GenerateRecipe(), out="b"))
    one, two = make_run(tmp_path / "a", log()), make_run(tmp_path / "b", log(), other)
    found = compare_runs(one, two)
    assert found["settings"]["task"] == ("translate", "generate")
    assert found["first_setting"] == "task"
    make_run(two, log(), RECIPE | {"task": "my.own", "train": {"seed": 3}})
    found = compare_runs(one, two)
    assert found["settings"]["train.seed"] == (1, 3)
    assert found["settings"]["task"] == ("translate", "my.own")


def test_machine_versions_and_data(tmp_path: Path) -> None:
    """Differences are listed; a run without a checkpoint has none."""
    one = make_run(tmp_path / "a", log(), machine=MACHINE)
    two = make_run(tmp_path / "b", log(), machine=MACHINE | {"torch": "2.6.0"}, data="def")
    (one / "config.json").write_text('{"dragoman": "1.0"}', encoding="utf-8")
    (two / "config.json").write_text('{"dragoman": "1.1"}', encoding="utf-8")
    found = compare_runs(one, two)
    assert found["beside"] == {
        "torch": ("2.5.1", "2.6.0"),
        "data": ("abc", "def"),
        "dragoman": ("1.0", "1.1"),
    }
    but = "but torch 2.5.1 and 2.6.0, data abc and def, dragoman 1.0 and 1.1."
    assert found["verdict"].endswith(but)
    found = compare_runs(one, make_run(tmp_path / "c", log()))
    assert found["beside"]["threads"] == ("1", None)
    assert found["verdict"].endswith("No setting differs that changes a number.")


@pytest.mark.parametrize("line", [b"{", b"[]", b"\xff", b'{"loss": 1.0}', b"[" * 99999])
def test_a_damaged_line_is_named(tmp_path: Path, line: bytes) -> None:
    """The error has the file and the line number."""
    one, two = make_run(tmp_path / "a", log()), make_run(tmp_path / "b", log()[:2])
    with (two / "training" / "metrics.jsonl").open("ab") as file:
        file.write(line + b"\n" + b'{"step": 40}\n')
    for runs in ((one, two), (two, one)):
        with pytest.raises(InputError, match=r"metrics.jsonl, line 3 is damaged \("):
            compare_runs(*runs)


def test_what_is_no_run_is_refused(tmp_path: Path) -> None:
    """A folder without a recipe or a step, or with unreadable files, is refused."""
    run, other = make_run(tmp_path / "a", log()), tmp_path / "b"
    with pytest.raises(InputError, match="b is not the folder of a run"):
        compare_runs(run, other)
    make_run(other, [])
    with pytest.raises(InputError, match=r"There is no step in .*metrics.jsonl"):
        compare_runs(other, run)
    (other / "training" / "metrics.jsonl").unlink()
    with pytest.raises(InputError, match=r"There is no step in .*metrics.jsonl"):
        compare_runs(run, other)
    make_run(other, log())
    (other / "training" / "recipe.json").write_text("[1]", encoding="utf-8")
    with pytest.raises(InputError, match=r"recipe.json is damaged"):
        compare_runs(run, other)
