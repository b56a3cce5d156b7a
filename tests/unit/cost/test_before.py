"""Checks before a run: its forecast, and the refusal of what cannot fit into memory."""

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tests.unit.cost.counted import held, loss_of, make, measured_peak, work_for
from tests.unit.cost.test_estimate import RATES, TINY_LM
from tests.unit.cost.test_memory import CASES
from tests.unit.tasks.complete import translating
from tests.unit.train.made import make_batch, make_console

from dragoman.cost.counting import step_of, validation_memory
from dragoman.cost.forecast import check_batches, check_states, forecast
from dragoman.cost.measure import RandomJob
from dragoman.cost.recipes import find_recipe
from dragoman.data.batches import Stream
from dragoman.errors import InputError
from dragoman.models import DecoderOnlyConfig, EncoderDecoder, ModelConfig, count_parameters
from dragoman.tasks.generate.recipe import GenerateRecipe
from dragoman.tasks.translate.job import assemble
from dragoman.tasks.translate.recipe import TranslateRecipe
from dragoman.tasks.translate.texts import Texts
from dragoman.tasks.translate.translator import Translator
from dragoman.train.config import TrainConfig
from dragoman.train.job import Validation
from dragoman.train.recipe import Work
from dragoman.train.runfolder import RunFolder
from dragoman.train.trainer import Trainer

SMALL = (
    *("train.device=cpu", "train.precision=fp32", "batch.max_tokens=100"),
    *("model.d_model=32", "model.num_heads=2", "model.d_ff=64"),
)


def translate(
    model: EncoderDecoder,
    texts: Texts,
    sources: list[str],
    references: list[str],  # noqa: ARG001 (a protocol)
) -> Validation:
    """Translate as a validation does, without computing scores."""
    options = translating(beam_size=1, retry=False)
    Translator(model, *texts.tokenizers).translate(sources, options=options)
    return Validation(loss=0.0, scores={})


@pytest.mark.parametrize("name", ["pairs", "llama", "window"])
def test_the_loss_takes_what_is_measured(name: str) -> None:
    """The predicted memory of the loss is within a tenth of the measured peak."""
    config, shape = CASES[name]
    model = make(config).eval()
    with torch.inference_mode():
        expected = measured_peak(lambda: loss_of(config, model, shape))
    states = 3 * 4 * sum(count_parameters(config).values())
    found = validation_memory(work_for(config, shape), "fp32", lengths=()) - states
    assert found == pytest.approx(expected, rel=0.1)


def test_translations_that_do_not_fit_are_refused(tmp_path: Path) -> None:
    """The validation of a real run is refused well below its measured peak, not at it."""
    data = ("data.made.train=300", "data.made.valid=24", f"data.cache={tmp_path}")
    recipe = find_recipe("numbers", (*SMALL, *data, f"out={tmp_path / 'run'}"))
    console, _ = make_console(terminal=False)
    asked: list[tuple[Any, ...]] = []
    assert isinstance(recipe, TranslateRecipe)
    with RunFolder.of(recipe).open(recipe) as folder:
        job = assemble(
            recipe, folder, lambda _: None, lambda *given: asked.append(given), translate
        )
        trainer = Trainer(job, recipe, folder, console)
        trainer.take_step()  # creates the moments
        peak = measured_peak(trainer.measure)
    peak += held(job.model, trainer.stepper.optimizer)
    check = partial(check_batches, recipe.work())
    check(peak, *asked[0])
    with pytest.raises(InputError, match=r"and translates \d+ sentences .* train\.validate_limit"):
        check(round(0.8 * peak), *asked[0])


def test_a_long_validation_text_is_refused() -> None:
    """The largest validation batch is checked too: validation does not skip long texts."""
    work = find_recipe("tiny", SMALL).work(20)
    made = RandomJob(work)
    long = make_batch([([5] * 9000, [6] * 9000)])
    check = partial(check_batches, work, 2 * step_of(work, "fp32").memory.total, made.config.model)
    check(made.batches, [make_batch([([5], [6])])])
    with pytest.raises(InputError, match=r"the loss of 1 row of 9,001 tokens"):
        check(made.batches, [long])


def test_r_drop_takes_a_step_twice() -> None:
    """R-Drop doubles the FLOPs of a step and the loss on random ids."""
    once, twice = (find_recipe("tiny", (*SMALL, f"train.r_drop={n}")).work(20) for n in (0, 5))
    assert step_of(twice, "fp32").flops == pytest.approx(2 * step_of(once, "fp32").flops, rel=0.01)
    memory = [step_of(work, "fp32").memory.activations for work in (once, twice)]
    assert memory[0] < memory[1]
    losses = list[float]()
    for work in (once, twice):
        torch.manual_seed(0)
        job = RandomJob(work)
        losses.append(job.loss(job.batches.source.draw(np.random.default_rng(0)).make(0)).item())
    assert losses[1] == pytest.approx(2 * losses[0], rel=0.1)


def _language_job(*overrides: str) -> tuple[Work, tuple[ModelConfig, Stream[Any], tuple[()]]]:
    work = find_recipe("tinyshakespeare", (*TINY_LM, *overrides)).work()
    made = RandomJob(work)
    return work, (made.config.model, made.batches, ())


def test_a_batch_that_cannot_fit_is_refused_with_what_would() -> None:
    """A run is accepted just below the predicted peak; well below it, the error says what fits."""
    work, job = _language_job("train.precision=fp32")
    peak = step_of(work, "fp32").memory.total
    check_batches(work, peak, *job)
    check_batches(work, round(0.95 * peak), *job)
    with pytest.raises(
        InputError, match=r"a batch of 4 rows of 16 tokens needs .* set batch\.rows"
    ):
        check_batches(work, round(0.8 * peak), *job)
    rows = ("batch.rows=4000", "train.precision=fp32")  # but the text has only four
    asked = find_recipe("tinyshakespeare", (*TINY_LM, *rows)).work()
    with pytest.raises(InputError, match=r"set batch\.rows to [123],"):
        check_batches(asked, round(0.8 * peak), *job)
    with pytest.raises(InputError, match=r"make model\.d_model"):
        check_batches(work, 1000, *job)
    check_batches(work, None, *job)


def test_what_fits_in_bf16_is_not_refused() -> None:
    """A batch that fits in bf16 is accepted, even if it would not fit in fp32."""
    scores = ("model.score_soft_cap=30.0", "batch.length=512", "batch.rows=16")
    work, job = _language_job(*scores, "train.precision=bf16")
    peak = step_of(work, "bf16").memory.total
    assert peak < 0.8 * step_of(work, "fp32").memory.total
    check_batches(work, peak, *job)
    with pytest.raises(InputError, match="at its peak"):
        check_batches(work, round(0.89 * peak), *job)


class Unasked:
    """Batches that must not be requested."""

    def largest(self) -> list[object]:
        """Fail."""
        raise AssertionError("asked")


def test_where_a_usual_batch_fits_many_times_over_no_batch_is_looked_at() -> None:
    """If an average batch fits many times over, the run starts without checking any batch."""
    work, (config, _, _) = _language_job("batch.rows=200")
    batches: Any = Unasked()
    check_batches(work, 10 * step_of(work, "fp32").memory.total, config, batches, ())
    with pytest.raises(AssertionError, match="asked"):
        check_batches(work, step_of(work, "fp32").memory.total, config, batches, ())


def test_a_model_that_cannot_fit_is_refused_before_anything_is_read() -> None:
    """Four numbers per parameter are required; frozen parts and vocabularies are not counted."""
    recipe = GenerateRecipe(model=DecoderOnlyConfig(d_model=64, d_ff=128, num_heads=2))
    needed = 16 * count_parameters(recipe.work().config)["decoder"]
    check_states(recipe, needed)
    check_states(recipe, None)
    with pytest.raises(InputError, match=r"needs at least .* make model\.d_model"):
        check_states(recipe, needed - 1)


# ---------------------------------------------------------------- the forecast


@pytest.mark.parametrize(
    ("train", "offered"),
    [
        (TrainConfig(max_steps=10**7), True),
        (TrainConfig(max_steps=10**7, max_minutes=600), False),
        (TrainConfig(max_steps=1), False),
    ],
    ids=["long", "long-with-minutes", "short"],
)
def test_a_long_run_can_be_ended_sooner(
    tmp_path: Path, train: TrainConfig, *, offered: bool
) -> None:
    """The forecast of a long run offers a time limit if the recipe has none."""
    recipe = find_recipe("numbers", (f"out={tmp_path / 'run'}",))
    said, _ = forecast(replace(recipe, train=train))
    assert any("train.max_minutes=30" in line for line in said) is offered


@pytest.mark.parametrize(
    ("name", "minutes", "told"),
    [("numbers", 0.5, True), ("numbers", 10**6, False), ("stories", 0.5, False)],
    ids=["short", "enough", "no-steps-planned"],
)
def test_a_clock_that_cannot_reach_is_told_beforehand(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, name: str, minutes: float, *, told: bool
) -> None:
    """The forecast says how many planned steps the limit allows and how long all would take."""
    recipe = find_recipe(name, (f"out={tmp_path / 'run'}", f"train.max_minutes={minutes}"))
    monkeypatch.setattr("dragoman.cost.forecast.find_rates", lambda _: RATES)
    said = "\n".join(forecast(recipe)[0])
    assert ("of 8,000 steps; all of them take about" in said) is told
    assert ("train.max_minutes allows about" in said) is told
    assert ("about 30 s for" in said) is (minutes == 0.5)  # never more than the limit
    if told:
        free = find_recipe(name, (f"out={tmp_path / 'run'}", "train.max_minutes=1000000"))
        taken, _, _ = forecast(free)[0][0].partition(" for 8,000 steps")
        assert f"all of them take {taken.partition(': ')[2]}." in said
