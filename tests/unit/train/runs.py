"""Small runs in one process: starting, stopping and inspecting them."""

import json
import signal
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from hashlib import sha256
from pathlib import Path

import torch
from rich.console import Console
from safetensors.torch import load_file
from tests.unit.train.made import make_console
from torch import Tensor
from torch.optim.optimizer import register_optimizer_step_post_hook

from dragoman.models import EncoderDecoder
from dragoman.tasks.runs import compare_runs
from dragoman.tasks.translate.job import Score, assemble
from dragoman.tasks.translate.recipe import TranslateRecipe
from dragoman.tasks.translate.texts import Texts
from dragoman.train.checkpoint import checkpoints
from dragoman.train.job import Check, Validation, unchecked
from dragoman.train.run import run_recipe
from dragoman.train.trainer import TrainResult


@dataclass
class Scorer:
    """A score function that returns given scores in order."""

    bleu: Iterator[float]
    sources: list[str] = field(default_factory=list)
    before: Callable[[], None] = lambda: None

    def __call__(
        self,
        model: EncoderDecoder,  # noqa: ARG002 (a protocol)
        texts: Texts,  # noqa: ARG002 (a protocol)
        sources: list[str],
        references: list[str],
    ) -> Validation:
        """Return the next score."""
        assert len(sources) == len(references)
        self.sources = sources
        self.before()
        scores = {"bleu": next(self.bleu), "chrf": 1.0}
        return Validation(loss=0.0, scores=scores, signature="counted by hand")


def change(recipe: TranslateRecipe, **values: int) -> TranslateRecipe:
    """Return the recipe with other training settings."""
    return replace(recipe, train=replace(recipe.train, **values))  # type: ignore[arg-type]


def train_scored(
    recipe: TranslateRecipe, scorer: Score, console: Console | None = None, check: Check = unchecked
) -> TrainResult:
    """Train with given scores, silently unless there is a console."""
    console = console or make_console(terminal=False)[0]
    return run_recipe(
        recipe, partial(assemble, score=scorer), console=console, estimate=lambda: check
    )


def run(recipe: TranslateRecipe, *bleu: float) -> tuple[TrainResult, str]:
    """Run with these scores, one per validation."""
    console, file = make_console(terminal=False)
    return train_scored(recipe, Scorer(iter(bleu)), console), file.getvalue()


def exported(recipe: TranslateRecipe) -> dict[str, Tensor]:
    """Return the weights in the model folder."""
    return load_file(Path(recipe.out) / "model.safetensors")


def saved(recipe: TranslateRecipe) -> list[Path]:
    """Return the checkpoints of the run."""
    return checkpoints(Path(recipe.out) / "training" / "checkpoints")


def same(one: Mapping[str, Tensor], two: Mapping[str, Tensor]) -> bool:
    """Whether two sets of weights are equal to the bit."""
    return set(one) == set(two) and all(torch.equal(one[name], two[name]) for name in two)


def bits(recipe: TranslateRecipe) -> dict[str, str]:
    """Return the hash of each tensor file of the model and all checkpoints."""
    files = sorted(Path(recipe.out).rglob("*.safetensors"))
    return {str(f.relative_to(recipe.out)): sha256(f.read_bytes()).hexdigest() for f in files}


def interrupt(recipe: TranslateRecipe, at: int, bleu: Sequence[float]) -> TrainResult:
    """Run until Ctrl-C is pressed during step `at`."""
    steps: list[int] = []
    rehearsed = 0 if saved(recipe) else 2  # rehearsal steps; none on resuming

    def press(*_: object) -> None:
        steps.append(1)
        if len(steps) == at + rehearsed:
            signal.raise_signal(signal.SIGINT)

    handle = register_optimizer_step_post_hook(press)
    try:
        return train_scored(recipe, Scorer(iter(bleu)))
    finally:
        handle.remove()


def assert_same_runs(one: TranslateRecipe, two: TranslateRecipe) -> None:
    """Both runs have bit-identical tensors and the same figures."""
    assert bits(one) == bits(two)
    assert figures(one) == figures(two)
    assert compare_runs(Path(one.out), Path(two.out))["figures"] == {}


def assert_goes_on_the_same(
    recipe: TranslateRecipe, at: int, bleu: Sequence[float]
) -> tuple[TrainResult, str]:
    """A run that is stopped by Ctrl-C and resumed ends like one that was not.

    Returns the result of resuming; the other run's folder has the suffix `-whole`.
    """
    whole = replace(recipe, out=recipe.out + "-whole")
    run(whole, *bleu)
    assert interrupt(recipe, at, bleu).reason == "interrupted"
    assert not (Path(recipe.out) / "training" / "finished.json").exists()
    result, said = run(recipe, *bleu[at // 2 :])
    assert f"Resuming from step {at}." in said
    assert not result.interrupted
    assert_same_runs(recipe, whole)
    return result, said


def figures(recipe: TranslateRecipe) -> list[tuple[object, ...]]:
    """Return metrics.jsonl without times and end lines."""
    text = (Path(recipe.out) / "training" / "metrics.jsonl").read_text(encoding="utf-8")
    lines = [json.loads(line) for line in text.splitlines()]
    return [
        (line["step"], line.get("loss"), line.get("grad_norm"), str(line.get("valid")))
        for line in lines
        if "stopped" not in line
    ]
