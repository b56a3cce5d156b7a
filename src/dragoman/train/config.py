"""How a model learns."""

import math
from dataclasses import dataclass
from typing import Literal

from dragoman.errors import InputError

Precision = Literal["auto", "fp32", "bf16"]

SEEDS = 1 << 63
"""How many seeds there are, from 0 on: those that torch and NumPy both take."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainConfig:
    """Options of a training run. A run ends at the first limit that it reaches."""

    max_steps: int | None = None
    """Optimizer steps."""
    max_minutes: float | None = None
    """Minutes of wall time, over all resumptions, with tokenising and validation."""
    patience: int | None = None
    """Stop after this many validations in a row without a better one."""
    seed: int = 1
    """Of the weights, dropout and the order of the data."""
    device: str = "auto"
    """cpu, cuda, cuda:1, or auto: a GPU where there is one."""
    precision: Precision = "auto"
    """fp32, bf16 (autocast; weights stay in fp32), or auto: bf16 where the device is fast at it."""
    deterministic: bool = False
    """Use only torch's deterministic algorithms: on a GPU the same bits again, but slower."""
    optimizer: Literal["adam", "adamw"] = "adam"
    """Adam as in the paper, or AdamW with decoupled weight decay."""
    learning_rate: float = 1e-3
    """The peak; for the noam schedule a factor on the paper's rate (the paper's is 1)."""
    schedule: Literal["noam", "inverse-sqrt", "cosine", "linear", "constant"] = "linear"
    """How the rate falls after the warm-up; cosine and linear reach 0 at the run's limit."""
    warmup_steps: int = 500
    """Steps over which the rate rises from 0 to its peak."""
    beta1: float = 0.9
    """Adam's decay of the mean."""
    beta2: float = 0.98
    """Adam's decay of the mean square."""
    eps: float = 1e-9
    """Adam's guard against division by zero."""
    weight_decay: float = 0.0
    """Of matrices, with AdamW; biases and norms never decay."""
    clip_norm: float | None = 1.0
    """Scale gradients down to this norm."""
    label_smoothing: float = 0.1
    """Probability spread evenly over the vocabulary."""
    activation_checkpointing: bool = False
    """Keep a layer's input only and compute the rest again going back: less memory, more time."""
    accumulate: int = 1
    """Batches for each step; their targets count as one batch."""
    validate_every: int = 500
    """Steps between validations."""
    validate_limit: int = 1000
    """Examples that a validation decodes, sentences to translate say; its loss is over all."""
    metric: str | None = None
    """What chooses the best checkpoint: loss, or a score; scores below 1 leave it to the loss."""
    save_every: int = 500
    """Steps between checkpoints."""
    average_last: int = 5
    """Checkpoints that are kept and, at the end, averaged; 1 averages nothing."""
    log_every: int = 50
    """Steps between lines of metrics.jsonl."""

    def __post_init__(self) -> None:
        """Refuse a run without an end, and numbers that mean nothing."""
        if self.max_steps is None and self.max_minutes is None and self.patience is None:
            raise InputError("a run needs an end: set max_steps, max_minutes or patience")
        if self.max_steps is None and self.max_minutes is None and self.decays_to_zero:
            raise InputError(
                f'schedule = "{self.schedule}" falls to 0 at the end of the run, so it needs '
                "max_steps or max_minutes"
            )
        self._check_numbers()
        if self.weight_decay and self.optimizer == "adam":
            raise InputError('weight_decay needs optimizer = "adamw"; adam has none')

    def _check_numbers(self) -> None:
        """Refuse a number that is out of its range by itself."""
        limits = ("max_steps", "patience")
        every = ("accumulate", "validate_every", "save_every", "average_last", "log_every")
        for name in (*limits, *every):
            count: int | None = getattr(self, name)
            if count is not None and count < 1:
                raise InputError(f"{name} = {count} must be at least 1")
        for name in ("max_minutes", "learning_rate", "eps", "clip_norm"):
            size: float | None = getattr(self, name)
            if size is not None and not 0.0 < size < math.inf:
                raise InputError(f"{name} = {size} must be above 0 and finite")
        for name in ("beta1", "beta2", "label_smoothing"):
            share: float = getattr(self, name)
            if not 0.0 <= share < 1.0:
                raise InputError(f"{name} = {share} is not at least 0 and below 1")
        for name in ("warmup_steps", "weight_decay", "seed"):
            amount: float = getattr(self, name)
            if not 0 <= amount < math.inf:
                raise InputError(f"{name} = {amount} is not at least 0 and finite")
        if self.seed >= SEEDS:
            raise InputError(f"seed = {self.seed} has more than 63 bits; take a smaller one")

    @property
    def decays_to_zero(self) -> bool:
        """Whether the learning rate depends on how much of the run is done."""
        return self.schedule in ("cosine", "linear")
