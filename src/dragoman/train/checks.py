"""Early warnings about a run, from figures that are computed anyway.

A task warns about what a single validation shows, such as an ignored source; the checks here need
the course of the run. Each warning is given once, and none before twice the warm-up is over.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from statistics import fmean, median

from dragoman.train.config import TrainConfig
from dragoman.train.job import Validation
from dragoman.train.log import LogLine
from dragoman.train.progress import Progress

RISEN = 0.5
"""Rise in nats of the training loss above its best that is not random."""
OVERFITTED = 0.02
"""Share by which a validation loss must exceed its best to count as risen."""
EXPLODED = 10.0
"""Ratio of the typical gradient norm to its smallest from which it counts as exploding."""
APART = 100.0
"""Factor below a typical layer's gradient from which a layer's gradient counts as vanished."""
FORGOTTEN = 0.1
"""Share of the best `source_gain` below which the decoder counts as ignoring its source."""
USED = 0.2
"""Gain in nats from which the source counts as having been used."""

LAYER = re.compile(r"^(.*?layers\.\d+)\.")

RISING = "the training loss has risen"
EXPLODING = "the norm of the gradient has grown"
OVERFITTING = "the validation loss has risen"
TURNED = "the source was worth"
VANISHING = "the gradient of"
KINDS = (RISING, EXPLODING, OVERFITTING, TURNED, VANISHING)
"""Beginnings of the warnings that contain figures: each is given once, whatever its figures."""


@dataclass(slots=True)
class Stretch:
    """The steps between two validations, and the result of the second."""

    losses: list[float] = field(default_factory=list)
    norms: list[float] = field(default_factory=list)
    valid: float = 0.0
    step: int = 0

    @property
    def loss(self) -> float:
        """Mean training loss."""
        return fmean(self.losses)

    @property
    def norm(self) -> float:
        """Median gradient norm."""
        return median(self.norms)


class Checks:
    """The checks of one run, fed with the figures of each step and each validation."""

    def __init__(self, config: TrainConfig) -> None:
        self._config = config
        self._now = Stretch()
        self._past: list[Stretch] = []
        self._most_gain = 0.0
        self._said: set[str] = set()

    def stepped(self, loss: float, norm: float) -> None:
        """Record the loss and the gradient norm of a step."""
        self._now.losses.append(loss)
        self._now.norms.append(norm)

    def judge(
        self, progress: Progress, validation: Validation, gradients: Mapping[str, float]
    ) -> Validation:
        """Return the validation with its warnings replaced by those to give now.

        `gradients` is the size of the gradient of each weight, by name.
        """
        figures = validation.to_dict()
        if not self._ended(progress.step, figures):
            return replace(validation, warnings=())
        found = [*validation.warnings, *self._course(progress), *_layers(gradients)]
        found += self._source(figures.get("source_gain"))
        new = {_kind(sentence): sentence for sentence in found}
        new = {kind: sentence for kind, sentence in new.items() if kind not in self._said}
        self._said |= new.keys()
        return replace(validation, warnings=tuple(new.values()))

    def recall(self, lines: Iterable[LogLine]) -> None:
        """Replay the log of earlier parts of the run: some of the steps and all validations."""
        for line in lines:
            if line.loss is not None and line.grad_norm is not None:
                self.stepped(line.loss, line.grad_norm)
            if "loss" in line.valid and self._ended(line.step, line.valid):
                self._said |= set(map(_kind, line.warnings))

    def _ended(self, step: int, figures: Mapping[str, float]) -> bool:
        """End a stretch with the figures of a validation; return False during the warm-up."""
        ended, self._now = self._now, Stretch()
        if step <= 2 * self._config.warmup_steps:
            return False
        ended.valid, ended.step = figures["loss"], step
        if ended.losses:
            self._past.append(ended)
        self._most_gain = max(self._most_gain, figures.get("source_gain", 0.0))
        return True

    def _course(self, progress: Progress) -> Iterator[str]:
        """Yield warnings about losses and gradients since the warm-up."""
        *before, now = self._past or [Stretch()]
        if not before or now.step != progress.step:
            return
        least = min(each.loss for each in before)
        if now.loss > least + RISEN:
            yield (
                f"{RISING} from {least:.2f} to {now.loss:.2f}, so the rate is "
                "too high; lower train.learning_rate, lengthen train.warmup_steps, or, "
                'if the model is not pre-norm, set model.norm_position = "pre"'
            )
        small = min(each.norm for each in before)
        if now.norm > EXPLODED * max(small, self._config.clip_norm or 0.0):
            yield (
                f"{EXPLODING} from {small:.3g} to {now.norm:.3g}; lower "
                "train.learning_rate, or set train.clip_norm to about the former"
            )
        best = min(before, key=lambda each: each.valid)
        if (
            len(before) > 1
            and now.valid > before[-1].valid > before[-2].valid
            and now.valid > (1 + OVERFITTED) * best.valid
            and now.loss < best.loss
            and progress.best_step != progress.step
        ):
            yield (
                f"{OVERFITTING} from {best.valid:.3f} at step {best.step:,} to "
                f"{now.valid:.3f} while the training loss falls, so the model learns its texts by "
                "heart; take more texts, raise model.dropout, or end the run with train.patience"
            )

    def _source(self, gain: float | None) -> Iterator[str]:
        """Yield a warning if a source that was used no longer is."""
        if gain is not None and self._most_gain >= USED and gain <= FORGOTTEN * self._most_gain:
            yield (
                f"{TURNED} {self._most_gain:.2f} nats per token and now is worth {gain:.2f}, so "
                "the decoder has turned away from it; lower train.learning_rate"
            )


def _kind(sentence: str) -> str:
    """Return what identifies a warning: its beginning, or all of it."""
    return next((kind for kind in KINDS if sentence.startswith(kind)), sentence)


def _layers(gradients: Mapping[str, float]) -> Iterator[str]:
    """Yield a warning if the gradient of a layer is far smaller than those of the others."""
    of_layer: dict[str, list[float]] = {}
    for name, size in gradients.items():
        if found := LAYER.match(name):
            of_layer.setdefault(found[1], []).append(size)
    sizes = {layer: fmean(each) for layer, each in of_layer.items()}
    if len(sizes) < 3:
        return
    typical, layer = median(sizes.values()), min(sizes, key=sizes.__getitem__)
    if sizes[layer] * APART < typical:
        yield (
            f"{VANISHING} {layer} is {sizes[layer]:.1e}, in a typical layer {typical:.1e}, so it "
            "learns next to nothing; use fewer layers, or, if the model is not pre-norm, set "
            'model.norm_position = "pre"'
        )
