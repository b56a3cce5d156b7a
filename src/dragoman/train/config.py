"""How a model learns."""

from dataclasses import dataclass
from typing import Literal

from dragoman.errors import InputError
from dragoman.ranges import BelowOne, Count, Index, NonNegative, Positive, check_ranges

Precision = Literal["auto", "fp32", "bf16"]


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainConfig:
    """Options of a training run. A run ends at the first limit that it reaches."""

    max_steps: Count | None = None
    """Optimizer steps."""
    max_minutes: Positive | None = None
    """Minutes of wall time, over all resumptions, with tokenising and validation."""
    patience: Count | None = None
    """Stop after this many validations in a row without a better one."""
    seed: Index = 1
    """Of the weights, dropout and the order of the data."""
    device: str = "auto"
    """cpu, cuda, cuda:1, or auto: a GPU where there is one."""
    precision: Precision = "auto"
    """fp32, bf16 (autocast; weights stay in fp32), or auto: bf16 where the device is fast at it."""
    deterministic: bool = False
    """Use only torch's deterministic algorithms: on a GPU the same bits again, but slower."""
    optimizer: Literal["adam", "adamw"] = "adam"
    """Adam as in the paper, or AdamW with decoupled weight decay."""
    learning_rate: Positive = 1e-3
    """The peak; for the noam schedule a factor on the paper's rate (the paper's is 1)."""
    schedule: Literal["noam", "inverse-sqrt", "cosine", "linear", "constant"] = "linear"
    """How the rate falls after the warm-up; cosine and linear reach 0 at the run's limit."""
    warmup_steps: Index = 500
    """Steps over which the rate rises from 0 to its peak."""
    beta1: BelowOne = 0.9
    """Adam's decay of the mean."""
    beta2: BelowOne = 0.98
    """Adam's decay of the mean square."""
    eps: Positive = 1e-9
    """Adam's guard against division by zero."""
    weight_decay: NonNegative = 0.0
    """Of matrices, with AdamW; biases and norms never decay."""
    clip_norm: Positive | None = 1.0
    """Scale gradients down to this norm."""
    label_smoothing: BelowOne = 0.1
    """Probability spread evenly over the vocabulary."""
    activation_checkpointing: bool = False
    """Keep a layer's input only and compute the rest again going back: less memory, more time."""
    accumulate: Count = 1
    """Batches for each step; their targets count as one batch."""
    validate_every: Count = 500
    """Steps between validations."""
    validate_limit: int = 1000
    """Examples that a validation decodes, sentences to translate say; its loss is over all."""
    metric: str | None = None
    """What chooses the best checkpoint: loss, or a score; scores below 1 leave it to the loss."""
    save_every: Count = 500
    """Steps between checkpoints."""
    average_last: Count = 5
    """Checkpoints that are kept and, at the end, averaged; 1 averages nothing."""
    log_every: Count = 50
    """Steps between lines of metrics.jsonl."""

    def __post_init__(self) -> None:
        """Raise InputError for a number out of its range, a run without an end, and conflicts."""
        check_ranges(self)
        if self.max_steps is None and self.max_minutes is None and self.patience is None:
            raise InputError("a run needs an end: set max_steps, max_minutes or patience")
        if self.max_steps is None and self.max_minutes is None and self.decays_to_zero:
            raise InputError(
                f'schedule = "{self.schedule}" falls to 0 at the end of the run, so it needs '
                "max_steps or max_minutes"
            )
        if self.weight_decay and self.optimizer == "adam":
            raise InputError('weight_decay needs optimizer = "adamw"; adam has none')

    @property
    def decays_to_zero(self) -> bool:
        """Whether the learning rate depends on how much of the run is done."""
        return self.schedule in ("cosine", "linear")
