"""FLOPs and memory of real models as torch measures them, for comparison with `cost`."""

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.profiler import ProfilerActivity, profile
from torch.utils.flop_counter import FlopCounterMode, sdpa_backward_flop_count, sdpa_flop_count

from dragoman.cost.counting import TrainingStep, training_step
from dragoman.data.shape import Shape
from dragoman.folder.format import FolderConfig
from dragoman.models import (
    DecoderOnlyConfig,
    EncoderDecoderConfig,
    EncoderOnlyConfig,
    Model,
    ModelConfig,
    build,
)
from dragoman.nn import Precision
from dragoman.nn.cpu.products import onednn_setting
from dragoman.nn.layers import Stack
from dragoman.tasks.task import task_of
from dragoman.train.config import TrainConfig
from dragoman.train.recipe import Work

aten = torch.ops.aten


CPU_ATTENTION: dict[Any, Callable[..., int]] = {
    aten._scaled_dot_product_flash_attention_for_cpu: lambda q, k, v, *_, **__: sdpa_flop_count(
        q, q[:2] + k[2:], q[:2] + v[2:]
    ),
    aten._scaled_dot_product_flash_attention_for_cpu_backward: (
        lambda grad, q, k, v, *_, **__: sdpa_backward_flop_count(
            grad, q, q[:2] + k[2:], q[:2] + v[2:]
        )
    ),
}
"""Count the CPU's fused kernel, which has no rule in torch, like those of other devices.

Each query head is counted, even if heads share keys; torch 2.11 does not count those.
"""


def variants(
    vocab_size: int, *, d_model: int, d_ff: int, num_encoder_layers: int
) -> tuple[EncoderDecoderConfig, DecoderOnlyConfig, EncoderOnlyConfig]:
    """Return small configs of each kind: four heads, one layer except in the encoder of pairs."""
    pairs = EncoderDecoderConfig(
        d_model=d_model,
        num_heads=4,
        d_ff=d_ff,
        num_encoder_layers=num_encoder_layers,
        num_decoder_layers=1,
        src_vocab_size=vocab_size,
        tgt_vocab_size=vocab_size,
    )
    decoder = DecoderOnlyConfig(
        d_model=d_model, num_heads=4, d_ff=d_ff, num_layers=1, vocab_size=vocab_size
    )
    encoder = EncoderOnlyConfig(
        d_model=d_model, num_heads=4, d_ff=d_ff, num_layers=1, vocab_size=vocab_size
    )
    return pairs, decoder, encoder


def make(config: ModelConfig, *, checkpointing: bool = False) -> Model:
    """Build a model in training mode."""
    torch.manual_seed(0)
    model = build(config).train()
    for stack in model.modules():
        if isinstance(stack, Stack):
            stack.checkpointing = checkpointing
    return model


def work_for(config: ModelConfig, shape: Shape) -> Work:
    """Return the work of training such a model on batches of this shape."""
    task = task_of(FolderConfig(model=config))
    assert task is not None
    recipe: Any = task.recipe
    return Work(recipe=recipe(), config=config, length=1, shape=shape, longest=1)


def recipe_for(config: ModelConfig) -> Any:  # noqa: ANN401 (as `Work.kind`)
    """Return the recipe that trains such a model."""
    return work_for(config, Shape(rows=1)).kind


def loss_of(config: ModelConfig, model: Model, shape: Shape) -> Tensor:
    """Sum the task's own loss over a batch of this shape."""
    recipe = recipe_for(config)
    batch = recipe.sample(config, shape, np.random.default_rng(1))
    loss: Tensor = recipe.loss(model, batch, 0.1)
    return loss


def step_of(
    config: ModelConfig,
    shape: Shape,
    *,
    precision: Precision = "fp32",
    **options: Any,  # noqa: ANN401 (settings of training)
) -> TrainingStep:
    """Dry-run a training step with these training options."""
    train = TrainConfig(max_steps=1, **options)
    return training_step(recipe_for(config), config, shape, train, precision)


def counted(run: Callable[[], object]) -> int:
    """Return the FLOPs that torch counts during a call."""
    onednn_setting()  # makes a product of its own on the first call
    with FlopCounterMode(display=False, custom_mapping=CPU_ATTENTION) as counter:
        run()
    return int(counter.get_total_flops())


def counted_training(config: ModelConfig, shape: Shape, *, checkpointing: bool = False) -> int:
    """Return the FLOPs of the real forward and backward pass."""
    model = make(config, checkpointing=checkpointing)
    return counted(lambda: loss_of(config, model, shape).backward())


def held(model: Model, optimizer: torch.optim.Optimizer) -> int:
    """Return the bytes of the weights and of the optimizer's state."""
    kept = [value for state in optimizer.state.values() for value in state.values()]
    return int(sum(x.untyped_storage().nbytes() for x in (*model.parameters(), *kept)))


def measured_peak(run: Callable[[], object]) -> int:
    """Return the peak of torch's allocations above their level at the start."""
    with profile(
        activities=[ProfilerActivity.CPU], profile_memory=True, acc_events=True
    ) as profiled:
        run()
    events = profiled.profiler.kineto_results.events()
    changes = [(event.start_ns(), event.nbytes()) for event in events if event.name() == "[memory]"]
    alive = peak = 0
    for _, change in sorted(changes, key=lambda change: change[0]):
        alive += change
        peak = max(peak, alive)
    return peak
