"""Problems of a run are reported once, with figures and advice."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest
from tests.unit.train.made import TINY, make_batch, make_model, make_stepper, random_pairs

from dragoman.train.checks import Checks
from dragoman.train.config import TrainConfig
from dragoman.train.job import Validation
from dragoman.train.log import LogLine
from dragoman.train.progress import Progress

CONFIG = TrainConfig(max_steps=1000, warmup_steps=5)
Course = Sequence[tuple[float, float]]
"""Pairs of the training loss before a validation and the validation loss."""


def run(
    course: Course, *, norms: Sequence[float] = (), best: int = 0, gains: Sequence[float] = ()
) -> list[tuple[str, ...]]:
    """Return the warnings at each validation of a run with ten steps before each."""
    checks, said = Checks(CONFIG), []
    for number, (loss, valid) in enumerate(course):
        for _ in range(10):
            checks.stepped(loss, norms[number] if norms else 1.0)
        figures = {"source_gain": gains[number]} if gains else {}
        validation = Validation(loss=valid, diagnostics=figures)
        progress = Progress(step=20 + 10 * number, best_step=best)
        said.append(checks.judge(progress, validation, {}).warnings)
    return said


LEVEL = [(4.0, 4.0)] * 3
FALLING = [(5, 5.0), (4, 4.0), (3, 4.2), (2, 4.4)]


@pytest.mark.parametrize(
    ("course", "more"),
    [
        ([(5, 5), (4, 4), (3, 3.5), (2.9, 3.52), (2.85, 3.5), (2.8, 3.53), (2.8, 3.5)], {}),
        (FALLING, {"best": 50}),  # the score is still the best
        ([(max(loss, 4), valid) for loss, valid in FALLING], {}),
        ([(5, 5), (4, 4), (4.4, 4)], {}),
        (LEVEL, {"norms": [0.1, 0.2, 9.0]}),
        (LEVEL, {"gains": [0.1, 0.05, 0.0]}),  # never used, which is for the task to report
    ],
)
def test_nothing_is_said_of_a_good_run(course: Course, more: Mapping[str, Any]) -> None:
    """There are no warnings for losses that fall, waver slightly or stay, below each limit."""
    assert run(course, **more) == [()] * len(course)


@pytest.mark.parametrize(
    ("course", "more", "figures", "advice"),
    [
        (FALLING, {}, "risen from 4.000 at step 30 to 4.400", "model.dropout"),
        ([(5, 5), (4, 4), (4.6, 4)], {}, "risen from 4.00 to 4.60", 'norm_position = "pre"'),
        (LEVEL, {"norms": [0.1, 0.2, 11.0]}, "grown from 0.1 to 11;", "train.clip_norm"),
        (
            *(LEVEL, {"gains": [1.0, 2.0, 0.1]}),
            *("was worth 2.00 nats per token and now is worth 0.10", "train.learning_rate"),
        ),
    ],
    ids=["overfitting", "rising", "exploding", "turned"],
)
def test_what_goes_wrong_is_said_once(
    course: Course, more: Mapping[str, Any], figures: str, advice: str
) -> None:
    """A warning has figures and advice, and is given once."""
    worse = (course[-1][0] - 0.5, course[-1][1] + 0.2) if course is FALLING else course[-1]
    again: dict[str, Any] = {name: [*values, values[-1]] for name, values in more.items()}
    *before, (sentence,), after = run([*course, worse], **again)
    assert before == [()] * (len(course) - 1)
    assert after == ()
    assert figures in sentence
    assert advice in sentence


@pytest.mark.parametrize(("step", "warned"), [(11, True), (10, False)])
def test_all_of_it_waits_for_the_warm_up(*, step: int, warned: bool) -> None:
    """Warnings start after twice the warm-up, and those of a task are given once too."""
    checks, found = Checks(CONFIG), Validation(loss=3.0, warnings=("it is deaf", "it is mute"))
    told = checks.judge(Progress(step=step), found, {}).warnings
    assert told == (found.warnings if warned else ())
    more = replace(found, warnings=("it is mute", "it is blind"))
    assert checks.judge(Progress(step=step + 10), more, {}).warnings == (
        ("it is blind",) if warned else more.warnings
    )


def test_a_resumed_run_remembers() -> None:
    """The log restores the warnings given, the minimum loss and norm, and the source gain."""
    figures = {"loss": 4.0, "source_gain": 2.0}
    log = [
        LogLine(step=10, loss=1.0, grad_norm=0.01, valid={}),
        LogLine(step=10, valid=figures),  # during the warm-up
        LogLine(step=20, loss=3.0, grad_norm=0.1),
        LogLine(
            step=20, valid=figures, warnings=["it is deaf", "the norm of the gradient has grown x"]
        ),
    ]
    checks = Checks(CONFIG)
    checks.recall(log)
    checks.stepped(3.6, 11.0)
    found = Validation(loss=4.0, diagnostics={"source_gain": 0.1}, warnings=("it is deaf",))
    rising, turned = checks.judge(Progress(step=30), found, {}).warnings
    assert "risen from 3.00 to 3.60" in rising
    assert "was worth 2.00" in turned


def judged(sizes: Mapping[str, float]) -> str:
    """Return the warnings about gradients of these sizes."""
    return " ".join(Checks(CONFIG).judge(Progress(step=99), Validation(loss=1.0), sizes).warnings)


def test_a_layer_without_gradient_is_named() -> None:
    """A layer with under a hundredth of the typical gradient is named; embeddings are ignored."""
    even = {f"encoder.layers.{n}.ffn.weight": 1e-3 for n in range(4)}
    assert judged(even | {"embedding.weight": 0.0}) == ""
    less = judged(even | {"encoder.layers.2.ffn.weight": 9e-6})
    assert "gradient of encoder.layers.2 is 9.0e-06, in a typical layer 1.0e-03" in less
    assert "learns next to nothing" in less


def test_gradients_are_measured_by_what_adam_keeps() -> None:
    """Gradients are the root mean squares in Adam's state; a layer where they vanish is named."""
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
