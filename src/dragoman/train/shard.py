"""Training a model whose weights, gradients and moments are too large for one device.

Each process keeps a share of every parameter, its gradient and Adam's moments. A layer's weights
are gathered from all processes when it runs, forward and backward, and freed afterwards; its
gradients are summed into their shares (ZeRO: Rajbhandari et al., 2020,
https://arxiv.org/abs/1910.02054), by PyTorch's `fully_shard`. A batch then communicates one and a
half times as much as with whole models, and a device holds `16 / n` bytes per parameter instead of
16.

The sharded model is a copy, so the job keeps an ordinary model on the CPU: the first process
gathers the weights into it to validate, export and save with code that knows nothing of shards.

PyTorch's modules for sharding are imported only when used: they take half a second.
"""

import warnings
from collections.abc import Mapping
from copy import deepcopy
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn

from dragoman.errors import InputError
from dragoman.nn.layers import Layer, Stack
from dragoman.nn.norm import RMSNorm
from dragoman.train.config import TrainConfig
from dragoman.train.device import needs_shards
from dragoman.train.job import Job
from dragoman.train.optimizer import load_optimizer_tensors, make_optimizer


class JobLoss(nn.Module):
    """A job's loss as a module that can be wrapped."""

    def __init__(self, job: Job[Any]) -> None:
        super().__init__()
        self.model = job.model
        self._loss = job.loss

    def forward(self, batch: Any) -> Tensor:  # noqa: ANN401 -- a batch of the job's own kind
        """Sum the loss over the batch's targets."""
        return self._loss(batch)


def chooses_shards(
    config: TrainConfig, model: nn.Module, device: torch.device, precision: str
) -> bool:
    """Return whether a run of several processes shards its model, by `train.shard` or by size.

    `auto` shards on GPUs if the whole training state would take more than half of the memory.
    Raises InputError for a model or a precision that cannot be sharded.
    """
    if config.shard == "off":
        return False
    drops = any(isinstance(each, Stack) and each.layer_drop for each in model.modules())
    if config.shard == "on":
        if drops:
            raise InputError(
                "model.layer_drop drops different layers on each process, and with train.shard=on "
                "all gather each layer together: set one of them to 0 or off"
            )
        if precision == "fp16":
            raise InputError(
                "in fp16 each process would find a scale of its own for its share of the "
                "gradients: set train.precision=bf16 or fp32, or train.shard=off"
            )
        return True
    if device.type != "cuda" or drops or precision == "fp16":
        return False
    memory = torch.cuda.get_device_properties(device).total_memory
    return needs_shards(sum(p.numel() for p in model.parameters()), memory)


def sharded_loss(job: Job[Any], device: torch.device, size: int, *, copy: bool) -> JobLoss:
    """Shard the model of a job, or a copy of it, over `size` processes; return its loss.

    Each layer is a unit. The parts of a layer that a decoder needs before the layer runs are units
    of their own, and everything else is the last one.
    """
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import FSDPModule, fully_shard

    warnings.filterwarnings("ignore", "FSDP2-wrapped module")  # about views changed in place
    mesh = init_device_mesh(device.type, (size,))
    model = deepcopy(job.model) if copy else job.model
    for stack in (each for each in model.modules() if isinstance(each, Stack)):
        for layer in stack.layers:
            if isinstance(layer, Layer) and layer.cross_attn is not None:
                fully_shard(layer.cross_attn.kv_proj, mesh=mesh)
                if isinstance(layer.cross_attn.k_norm, RMSNorm):
                    fully_shard(layer.cross_attn.k_norm, mesh=mesh)
            fully_shard(layer, mesh=mesh)
    learner: Any = job
    loss = JobLoss(replace(learner, model=model))
    fully_shard(loss, mesh=mesh)
    for module in loss.modules():
        if isinstance(module, FSDPModule):
            module.set_force_sum_reduction_for_comms(enable=True)  # gloo cannot average
    return loss


def sharded_optimizer(
    model: nn.Module, config: TrainConfig, state: Mapping[str, Tensor]
) -> torch.optim.Optimizer:
    """Build the optimizer of a sharded model, with its share of the state of a whole one."""
    optimizer = make_optimizer(model, config)
    parameters = dict(model.named_parameters())
    mine = {
        name: _share(value, parameters[name.rpartition("/")[0]]) for name, value in state.items()
    }
    load_optimizer_tensors(optimizer, model, mine)
    return optimizer


def _share(value: Tensor, like: Tensor) -> Tensor:
    """Return this process's part of a tensor; all have the whole tensor, so nothing is sent."""
    from torch.distributed.tensor import DTensor, distribute_tensor

    if not isinstance(like, DTensor) or value.shape != like.shape:
        return value.to(like.device)
    moved = value.to(like.device)
    return distribute_tensor(moved, like.device_mesh, like.placements, src_data_rank=None)


def whole_tensors(tensors: Mapping[str, Tensor], *, keep: bool) -> dict[str, Tensor]:
    """Gather tensors from their shares, one at a time; only ranks with `keep` get them."""
    from torch.distributed.tensor import DTensor

    whole = {}
    for name, tensor in tensors.items():
        full = tensor.detach()
        if isinstance(full, DTensor):
            full = full.full_tensor()
        if keep:
            whole[name] = full.cpu()
    return whole
