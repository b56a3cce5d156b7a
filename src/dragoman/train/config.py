"""How a model learns."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Literal

from dragoman.errors import InputError
from dragoman.ranges import BelowOne, Count, Index, NonNegative, Positive, check_ranges

PrecisionSetting = Literal["auto", "fp32", "bf16", "fp16"]


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainConfig:
    """Options of a training run. A run ends at the first limit that it reaches."""

    also_called: ClassVar[Mapping[str, str]] = {
        "early_stopping": "patience",
        "epochs": "max_steps",
        "max_grad_norm": "clip_norm",
        "max_update": "max_steps",
        "update_freq": "accumulate",
        "valid_freq": "validate_every",
    }
    """Options of other programs that train translators, to lead from them to the keys here."""

    max_steps: Count | None = None
    """Maximum number of optimizer steps."""
    max_minutes: Positive | None = None
    """Maximum wall time in minutes, including resumed runs, tokenization and validation."""
    patience: Count | None = None
    """Number of validations without improvement after which the run stops."""
    seed: Index = 1
    """Random seed of the weights, dropout and the order of the data."""
    device: str = "auto"
    """Device: cpu, cuda, cuda:1, or auto, which takes a GPU if there is one."""
    precision: PrecisionSetting = "auto"
    """fp32, bf16 or fp16 with loss scaling (autocast; weights stay in fp32), or auto: bf16 if the
    device computes it fast, fp16 on other GPUs."""
    deterministic: bool = False
    """Use only deterministic algorithms: bit-for-bit reproducible on a GPU, but slower."""
    optimizer: Literal["adam", "adamw"] = "adam"
    """Adam as in the paper, or AdamW with decoupled weight decay."""
    learning_rate: Positive = 1e-3
    """Peak learning rate; for the noam schedule, a factor on the paper's rate."""
    schedule: Literal["noam", "inverse-sqrt", "cosine", "linear", "constant"] = "linear"
    """Decay of the learning rate after warm-up; cosine and linear reach 0 at the end of the run."""
    warmup_steps: Index = 500
    """Number of steps over which the learning rate rises from 0 to its peak; a schedule that decays
    to 0 rises faster if max_minutes ends the run before five times as many steps."""
    beta1: BelowOne = 0.9
    """Adam's decay rate of the first moment."""
    beta2: BelowOne = 0.98
    """Adam's decay rate of the second moment."""
    eps: Positive = 1e-9
    """Adam's epsilon, added to the denominator."""
    weight_decay: NonNegative = 0.0
    """Weight decay of AdamW; biases and norms are excluded."""
    clip_norm: Positive | None = 1.0
    """Maximum norm of the gradient; larger gradients are scaled down to it."""
    label_smoothing: BelowOne = 0.1
    """Label smoothing: the probability that is spread evenly over the vocabulary."""
    r_drop: NonNegative = 0.0
    """Weight of R-Drop, such as 5 (translation only): each step reads every sentence twice, with
    different dropout, and trains both predictions to agree; 0 disables it."""
    activation_checkpointing: bool = False
    """Recompute activations in the backward pass: less memory, more time."""
    max_skipped: Count = 10
    """Number of consecutive steps without a finite loss and gradient after which the run ends;
    fewer are skipped."""
    shard: Literal["auto", "on", "off"] = "auto"
    """Shard the model over the processes of a run; auto: if it is too large for each GPU."""
    accumulate: Count = 1
    """Number of batches per optimizer step (gradient accumulation)."""
    validate_every: Count = 500
    """Number of steps between validations."""
    validate_limit: int = 1000
    """Maximum number of examples that validation decodes; its loss is over all examples."""
    metric: str | None = None
    """Metric that selects the best checkpoint: loss, or a score once it is above 1."""
    save_every: Count = 500
    """Number of steps between checkpoints."""
    ema: BelowOne | None = None
    """Decay of a moving average of the weights, such as 0.999; the average becomes the model if it
    is better."""
    average_last: Count = 5
    """Number of most recent checkpoints to average at the end; 1 disables averaging."""
    log_every: Count = 50
    """Number of steps between lines in metrics.jsonl."""
    tracker: Literal["mlflow", "wandb"] | None = None
    """Library that also receives the values in metrics.jsonl, if it is installed: MLflow or Weights
    & Biases."""

    def __post_init__(self) -> None:
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
