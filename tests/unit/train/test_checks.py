"""What goes wrong in a run is said once, by its figures, with what to change."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import pytest
from tests.unit.train.made import TINY, make_batch, make_model, make_stepper, random_pairs

from dragoman.train.checks import Checks
from dragoman.train.config import TrainConfig
from dragoman.train.job import Validation
from dragoman.train.log import LogLine
from dragoman.train.progress import Progress
from dragoman.train.step import StepResult

CONFIG = TrainConfig(max_steps=1000, warmup_steps=5)
Course = Sequence[tuple[float, float]]
"""The training loss of all steps up to a validation, and the loss of that."""


def run(
    course: Course, *, norms: Sequence[float] = (), best: int = 0, gains: Sequence[float] = ()
) -> list[tuple[str, ...]]:
    """What is said at each validation of such a run; ten steps lead to each."""
    checks, said = Checks(CONFIG), []
    for number, (loss, valid) in enumerate(course):
        norm = norms[number] if norms else 1.0
        result = StepResult(loss=loss, grad_norm=norm, learning_rate=1e-3, num_tokens=9)
        for _ in range(10):
            checks.stepped(result)
        figures = {"source_gain": gains[number]} if gains else {}
        validation = Validation(loss=valid, diagnostics=figures)
        progress = Progress(step=20 + 10 * number, best_step=best)
        said.append(checks.judge(progress, validation, {}).warnings)
    return said


def test_nothing_is_said_of_a_good_run() -> None:
    """Losses that fall, waver a little, and stay."""
    course = [(5, 5), (4, 4), (3, 3.5), (2.9, 3.52), (2.85, 3.5), (2.8, 3.53), (2.8, 3.5)]
    assert run(course) == [()] * 7


def test_overfitting_is_said_once() -> None:
    """The validation loss rises twice while that of training falls, and no score is better."""
    course = [(5, 5.0), (4, 4.0), (3, 4.2), (2, 4.4), (1, 4.6)]
    *before, told, after = run(course)
    assert before == [(), (), ()]
    assert after == ()
    (sentence,) = told
    assert "risen from 4.000 at step 30 to 4.400" in sentence
    assert "model.dropout" in sentence
    assert run(course, best=50)[3] == ()  # the score is the best so far
    assert run([(5, 5.0), (4, 4.0), (4, 4.2), (4, 4.4), (4, 4.6)]) == [()] * 5


def test_a_rate_that_is_too_high_is_said() -> None:
    """The training loss rises from its best by half a nat."""
    assert run([(5, 5), (4, 4), (4.4, 4)]) == [()] * 3
    (sentence,) = run([(5, 5), (4, 4), (4.6, 4)])[2]
    assert "risen from 4.00 to 4.60" in sentence
    assert 'norm_position = "pre"' in sentence


def test_exploding_gradients_are_said() -> None:
    """A typical norm ten times the smallest so far, and what is clipped."""
    course = [(4.0, 4.0)] * 3
    assert run(course, norms=[0.1, 0.2, 9.0]) == [()] * 3
    (sentence,) = run(course, norms=[0.1, 0.2, 11.0])[2]
    assert "grown from 0.1 to 11;" in sentence
    assert "train.clip_norm" in sentence


def test_a_source_that_is_forgotten_is_said() -> None:
    """A decoder that used its source and turns away; one that never did is told by its task."""
    course = [(4.0, 4.0)] * 3
    assert run(course, gains=[0.1, 0.05, 0.0]) == [()] * 3
    (sentence,) = run(course, gains=[1.0, 2.0, 0.1])[2]
    assert "was worth 2.00 nats per token and now is worth 0.10" in sentence


@pytest.mark.parametrize(("step", "warned"), [(11, True), (10, False)])
def test_all_of_it_waits_for_the_warm_up(*, step: int, warned: bool) -> None:
    """What a task warns of, too, is said once, when twice the warm-up is over."""
    checks, found = Checks(CONFIG), Validation(loss=3.0, warnings=("it is deaf", "it is mute"))
    told = checks.judge(Progress(step=step), found, {}).warnings
    assert told == (found.warnings if warned else ())
    more = replace(found, warnings=("it is mute", "it is blind"))
    assert checks.judge(Progress(step=step + 10), more, {}).warnings == (
        ("it is blind",) if warned else more.warnings
    )


def test_a_resumed_run_remembers() -> None:
    """By its log: what was said, the least loss and norm, and what a source was worth."""
    figures = {"loss": 4.0, "source_gain": 2.0}
    log = [
        LogLine(step=10, loss=1.0, grad_norm=0.01, valid={}),
        LogLine(step=10, valid=figures),  # in the warm-up
        LogLine(step=20, loss=3.0, grad_norm=0.1),
        LogLine(
            step=20, valid=figures, warnings=["it is deaf", "the norm of the gradient has grown x"]
        ),
    ]
    checks = Checks(CONFIG)
    checks.recall(log)
    checks.stepped(StepResult(loss=3.6, grad_norm=11.0, learning_rate=1e-3, num_tokens=9))
    found = Validation(loss=4.0, diagnostics={"source_gain": 0.1}, warnings=("it is deaf",))
    rising, turned = checks.judge(Progress(step=30), found, {}).warnings
    assert "risen from 3.00 to 3.60" in rising
    assert "was worth 2.00" in turned


def judged(sizes: Mapping[str, float]) -> str:
    """What is said of gradients of these sizes."""
    return " ".join(Checks(CONFIG).judge(Progress(step=99), Validation(loss=1.0), sizes).warnings)


def test_a_layer_without_gradient_is_named() -> None:
    """One that gets over a hundred times less than a typical one; embeddings do not count."""
    even = {f"encoder.layers.{n}.ffn.weight": 1e-3 for n in range(4)}
    assert judged(even | {"embedding.weight": 0.0}) == ""
    less = judged(even | {"encoder.layers.2.ffn.weight": 9e-6})
    assert "gradient of encoder.layers.2 is 9.0e-06, in a typical layer 1.0e-03" in less
    assert "learns next to nothing" in less


def test_gradients_are_measured_by_what_adam_keeps() -> None:
    """The root mean square of each weight's; where those of a layer vanish, it is named."""
    model = make_model(replace(TINY, num_encoder_layers=3))
    stepper = make_stepper(model, replace(CONFIG, beta2=0.5, clip_norm=None))
    assert stepper.gradient_sizes() == {}
    for name, weight in model.named_parameters():
        if name.startswith("encoder.layers.1."):
            weight.register_hook(lambda gradient: gradient * 1e-4)
    batch = make_batch(random_pairs(4))
    stepper.accumulate([batch])
    gradients = {n: w.grad for n, w in model.named_parameters() if w.grad is not None}
    wanted = {name: (each.square().mean() / 2).sqrt().item() for name, each in gradients.items()}
    stepper.optimizer.zero_grad()
    stepper([batch], 0.0)
    found = stepper.gradient_sizes()
    assert found == pytest.approx(wanted)
    assert "the gradient of encoder.layers.1 is " in judged(found)
