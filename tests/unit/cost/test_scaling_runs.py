"""Reports from run folders: what counts as a point, and which runs may be combined."""

import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.unit.cost.test_scaling import LAW

from dragoman.cli.cost import cost
from dragoman.cli.cost_fit import draw_scaling, show_scaling
from dragoman.cost.counting import step_of
from dragoman.cost.options import CostOptions
from dragoman.cost.scaling_report import Spending, find_runs, read_runs, report_scaling
from dragoman.errors import InputError
from dragoman.folder.format import FolderConfig
from dragoman.lens import save
from dragoman.models import DecoderOnlyConfig, count_parameters
from dragoman.nn import Rotary
from dragoman.plain import to_plain
from dragoman.tasks.generate.recipe import GenerateRecipe, TextFiles
from dragoman.train.config import TrainConfig

TOKENS = 4096  # per step
RECIPE = GenerateRecipe(
    data=TextFiles(train=("a.txt",), root="/somewhere"), train=TrainConfig(max_steps=300)
)


def model_of(width: int) -> DecoderOnlyConfig:
    """A small decoder."""
    return DecoderOnlyConfig(
        vocab_size=100, d_model=width, num_heads=2, d_ff=2 * width, num_layers=1, positions=Rotary()
    )


def write_run(folder: Path, width: int, steps: int, recipe: GenerateRecipe = RECIPE) -> Path:
    """Write a run folder whose final loss is exactly the law's, with a better loss before it."""
    config = model_of(width)
    size = sum(count_parameters(config).values())
    loss = float(LAW.loss(size, steps * TOKENS))
    (folder / "training").mkdir(parents=True)
    speed = 1e8 / size
    lines: list[dict[str, object]] = [
        {"step": steps // 4, "tokens": steps // 4 * TOKENS, "tokens_per_second": 2 * speed},
        {"step": steps // 3, "tokens": steps // 3 * TOKENS, "tokens_per_second": speed / 9},
        {"step": steps // 2, "tokens": steps // 2 * TOKENS, "tokens_per_second": speed},
        {"step": steps // 2, "valid": {"loss": 0.1}},
        {"step": steps, "stopped": "the end"},
        {"step": steps, "valid": {"loss": loss}},
    ]
    files = {
        "config.json": to_plain(FolderConfig(format=1, model=config)),
        "training/recipe.json": to_plain(replace(recipe, model=replace(config, vocab_size=0))),
        "training/finished.json": {"step": steps},
    }
    for name, content in files.items():
        (folder / name).write_text(json.dumps(content), encoding="utf-8")
    text = "".join(json.dumps(line) + "\n" for line in lines)
    (folder / "training" / "metrics.jsonl").write_text(text, encoding="utf-8")
    return folder


@pytest.fixture
def sweep(tmp_path: Path) -> Path:
    """A folder with a grid of nine runs."""
    for width in (16, 32, 64):
        for steps in (100, 200, 400):
            write_run(tmp_path / "sweep" / f"d{width}-{steps}", width, steps)
    return tmp_path / "sweep"


def test_a_run_is_its_end(sweep: Path) -> None:
    """A run is all its weights, the tokens up to its last step, and its last loss, not its best.

    Its FLOPs per token are those of its batch, divided by the tokens in it.
    """
    (run,) = read_runs([sweep / "d32-200"])
    size = sum(count_parameters(model_of(32)).values())
    assert run.point.parameters == size
    assert run.point.tokens == 200 * TOKENS
    assert run.point.loss == float(LAW.loss(size, 200 * TOKENS))
    assert run.seconds_per_token == pytest.approx(size / 1e8)  # the median of its speeds
    flops = step_of(replace(RECIPE, model=model_of(32)).work(), "fp32").flops
    assert run.flops_per_token == flops / (RECIPE.batch.rows * RECIPE.batch.length)


def test_a_folder_stands_for_the_runs_in_it(sweep: Path) -> None:
    """A folder stands for all runs in it; a run that is also named itself counts once."""
    assert len(find_runs([sweep])) == 9
    assert find_runs([sweep / "d16-100", sweep])[0] == sweep / "d16-100"
    assert len(find_runs([sweep / "d16-100", sweep])) == 9


def test_a_report_answers(sweep: Path) -> None:
    """The law is recovered, runs to predict are excluded from the fit, and JSON has all results."""
    larger = write_run(sweep / "d128-800", 128, 800)
    report = report_scaling([sweep], CostOptions(fit=True, predict=(larger,)), refits=20)
    assert len(report.runs) == 9
    assert report.predictions[0].run.name == str(larger)
    assert report.predictions[0].loss.value == pytest.approx(
        report.predictions[0].run.point.loss, rel=0.01
    )
    assert report.more_data.more.value < report.more_data.now.value
    assert report.more_data.bound.value < report.more_data.more.value
    assert [spending.beyond for spending in report.spendings] == pytest.approx([1, 10, 100])
    plain = json.loads(json.dumps(report.to_dict()))
    assert plain["law"]["size_exponent"]["value"] == pytest.approx(LAW.size_exponent, abs=0.05)
    assert plain["runs"][0]["fitted"] == pytest.approx(plain["runs"][0]["point"]["loss"], rel=1e-3)


def test_the_report_checks_its_own_form(sweep: Path) -> None:
    """The largest run is predicted by the others; a run off the law is reported as outside."""
    fine = report_scaling([sweep], refits=50).check
    assert fine is not None
    assert fine.run.name == str(sweep / "d64-400")
    assert fine.loss.value == pytest.approx(fine.run.point.loss, rel=0.01)
    metrics = sweep / "d64-400" / "training" / "metrics.jsonl"
    with metrics.open("a", encoding="utf-8") as file:
        file.write(json.dumps({"step": 400, "valid": {"loss": 0.5 * fine.run.point.loss}}) + "\n")
    broken = report_scaling([sweep], refits=50).check
    assert broken is not None
    assert not broken.inside


def test_what_is_printed_and_drawn(
    sweep: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The law, the check and the budgets are printed, a PNG is drawn; a given budget is alone."""
    cost(arguments=[str(sweep)], fit=True, minutes=5.0, as_json=True)
    assert len(json.loads(capsys.readouterr().out)["budgets"]) == 1
    larger, png = write_run(tmp_path / "larger", 128, 800), tmp_path / "law.png"
    report = report_scaling([sweep], CostOptions(fit=True, predict=(larger,)), refits=20)
    rows, *sentences = show_scaling(report)
    assert len(rows) == 1 + len(report.runs)
    said = "\n".join(map(str, sentences))
    for part in ("alpha", "predicted by the others", "larger was not fitted", "Ten times the data"):
        assert part in said
    assert "FLOPs (as much as the largest run, " in said
    assert "FLOPs (10 times the largest run, " in said
    assert save(draw_scaling(report), png).read_bytes().startswith(b"\x89PNG")


def spending(sweep: Path, **budget: Any) -> Spending:  # noqa: ANN401 (an option of cost)
    """Return the best use of a budget."""
    asked = CostOptions(fit=True, **budget)
    return report_scaling([sweep], asked, refits=2).spendings[0]


def test_budgets_are_spent(sweep: Path) -> None:
    """A plan uses the whole budget of FLOPs, minutes or money; money is time at a price."""
    by_work = spending(sweep, flops=1e13)
    assert by_work.flops == pytest.approx(1e13)
    by_time = spending(sweep, minutes=90)
    assert by_time.seconds == pytest.approx(5400)
    by_money = spending(sweep, money=3, price=2)
    assert by_money == by_time


def test_unfinished_runs_are_refused(sweep: Path) -> None:
    """A run without an end, a validation or token counts is refused by name, with what to do."""
    run = sweep / "d32-200"
    metrics = run / "training" / "metrics.jsonl"
    lines = metrics.read_text(encoding="utf-8").splitlines(keepends=True)
    untold = [line for line in lines if '"tokens"' not in line]
    metrics.write_text("".join(untold), encoding="utf-8")
    with pytest.raises(InputError, match="how many tokens"):
        read_runs([run])
    metrics.write_text(lines[0], encoding="utf-8")
    with pytest.raises(InputError, match="has no validation"):
        read_runs([run])
    metrics.write_text(lines[0] + "{broken\n", encoding="utf-8")
    with pytest.raises(InputError, match="line 2 is damaged"):
        read_runs([run])
    metrics.unlink()
    with pytest.raises(InputError, match="There is no file"):
        read_runs([run])
    os.mkfifo(metrics)
    with pytest.raises(InputError, match="not a regular file"):
        read_runs([run])
    (run / "training" / "finished.json").unlink()
    with pytest.raises(InputError, match="is not finished"):
        read_runs([run])


@pytest.mark.parametrize(
    ("other", "key"),
    [
        (replace(RECIPE, data=replace(RECIPE.data, train=("b.txt",))), "data"),
        (replace(RECIPE, tokenizer=replace(RECIPE.tokenizer, vocab_size=700)), "tokenizer"),
        (replace(RECIPE, batch=replace(RECIPE.batch, length=64)), "batch.length"),
        (replace(RECIPE, data=replace(RECIPE.data, root="/elsewhere", cache="/c")), None),
    ],
)
def test_runs_predict_the_same(tmp_path: Path, other: GenerateRecipe, key: str | None) -> None:
    """Runs with other texts, tokenizers or windows are refused by key; the data root may differ."""
    folders = [write_run(tmp_path / "one", 16, 100), write_run(tmp_path / "two", 16, 100, other)]
    if key is None:
        assert len(read_runs(folders)) == 2
        return
    with pytest.raises(InputError, match=f"one and .*two differ in {key},"):
        read_runs(folders)
