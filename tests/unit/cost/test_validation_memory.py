"""The memory of a validation against what torch holds while the real one runs."""

from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
from tests.unit.cost.counted import loss_of, make, measured_peak, work_for
from tests.unit.cost.test_memory import CASES
from tests.unit.tasks.complete import translating
from tests.unit.train.made import make_batch, make_console

from dragoman.cost.check import check_batches, validation_memory
from dragoman.cost.counting import step_of
from dragoman.cost.measure import random_job
from dragoman.cost.recipes import find_recipe
from dragoman.errors import InputError
from dragoman.models import EncoderDecoder, count_parameters
from dragoman.tasks.translate.job import assemble
from dragoman.tasks.translate.recipe import TranslateRecipe
from dragoman.tasks.translate.texts import Texts
from dragoman.tasks.translate.translator import Translator
from dragoman.train.job import Validation
from dragoman.train.loop import Progress
from dragoman.train.run import Parts
from dragoman.train.runfolder import RunFolder

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
    """Translate as the score of a validation does, and score nothing."""
    options = translating(beam_size=1, retry=False)
    Translator(model, *texts.tokenizers).translate(sources, options=options)
    return Validation(loss=0.0, scores={})


@pytest.mark.parametrize("name", ["pairs", "llama", "window"])
def test_the_loss_takes_what_is_measured(name: str) -> None:
    """Within a tenth: one layer's activations and one chunk of logits, and the moments beside."""
    config, shape = CASES[name]
    model = make(config).eval()
    with torch.inference_mode():
        expected = measured_peak(lambda: loss_of(config, model, shape))
    states = 3 * 4 * sum(count_parameters(config).values())
    found = validation_memory(work_for(config, shape), shape) - states
    assert found == pytest.approx(expected, rel=0.1)


def test_translations_that_do_not_fit_are_refused(tmp_path: Path) -> None:
    """The validation of a real run is refused below nine tenths of its peak, and not above it."""
    data = ("data.made.train=1500", "data.made.valid=250", f"data.cache={tmp_path}")
    recipe = find_recipe("numbers", (*SMALL, *data, f"out={tmp_path / 'run'}"))
    console, _ = make_console(terminal=False)
    asked: list[tuple[Any, ...]] = []
    assert isinstance(recipe, TranslateRecipe)
    with RunFolder.of(recipe).open(recipe) as folder:
        job = assemble(
            recipe, folder, lambda _: None, lambda *given: asked.append(given), translate
        )
        parts = Parts.around(job, recipe, folder, console)
        parts.take_step(Progress())  # after which the moments are there
        peak = measured_peak(parts.measure)
    moments = [value for state in parts.optimizer.state.values() for value in state.values()]
    peak += sum(x.untyped_storage().nbytes() for x in (*job.model.parameters(), *moments))
    check = partial(check_batches, recipe.work())
    check(peak, *asked[0])
    with pytest.raises(InputError, match=r"and translates \d+ sentences .* train\.validate_limit"):
        check(round(0.8 * peak), *asked[0])


def test_a_long_validation_text_is_refused() -> None:
    """Training leaves long pairs out, validation does not: its largest batch is looked at."""
    work = find_recipe("tiny", SMALL).work(20)
    made = random_job(work)
    long = make_batch([([5] * 9000, [6] * 9000)])
    check = partial(check_batches, work, 2 * step_of(work, "fp32").memory.total, made.config.model)
    check(made.batches, [make_batch([([5], [6])])])
    with pytest.raises(InputError, match=r"the loss of 1 row of 9,001 tokens"):
        check(made.batches, [long])
