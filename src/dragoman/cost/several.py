r"""A training step of several devices: what they send each other, and the time that shows.

With :math:`B` bytes of parameters, their gradients being as many, and :math:`n` devices in a ring
whose every link carries :math:`S` bytes a second and takes :math:`h` seconds to answer,

.. math:: t_{all-reduce} = 2 (n - 1) (B / (n S) + h)

once in a step (Patarasuk and Yuan, 2009): each device sends `n - 1` parts of the sum and then
`n - 1` parts of the result. With shards each batch gathers the weights twice and sums the gradients
once, which is 3 in the place of 2, for each batch. PyTorch sends while it computes: whole models
during the backward pass of the last batch, two thirds of its time; shards all the time. What does
not fit in there lengthens the step.
"""

from dataclasses import dataclass

from dragoman.cost.estimate import FLOAT, TrainingEstimate
from dragoman.cost.machine import Rates
from dragoman.train.device import STATE_BYTES, needs_shards
from dragoman.train.recipe import Work

HOP = 10e-6
"""Seconds until a link carries the first byte; assumed."""
BACKWARD = 2 / 3
"""Share of the backward pass in the time of a batch."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SeveralEstimate:
    """A training step of several devices, each with the batches of the recipe."""

    devices: int
    sharded: bool
    """Whether each has a share of the model, as `train.shard` says, or its size."""
    states: float
    """Bytes of weights, gradients and moments on each."""
    sent: float
    """Bytes that each sends in a step."""
    communication_seconds: float
    """Time that sending takes by itself."""
    step_seconds: float
    """Time of a step, sending as far as it is not hidden by computing."""
    tokens_per_second: float
    """Tokens of all devices, of both sides, without padding."""
    efficiency: float
    """Share of as many times the tokens of one."""


def estimate_several(
    work: Work, rates: Rates, one: TrainingEstimate, devices: int, link: float
) -> SeveralEstimate:
    """Estimate a step of `devices` like the one of `rates`; `link` is in bytes a second."""
    train = work.recipe.train
    parameters = work.parameters
    sharded = devices > 1 and train.shard == "on"
    if devices > 1 and train.shard == "auto" and rates.memory is not None:
        sharded = needs_shards(parameters, rates.memory)
    rounds = (3 * train.accumulate if sharded else 2) * (devices - 1)
    sent = rounds * FLOAT * parameters / devices
    communication = sent / link + rounds * HOP
    hiding = one.step_seconds if sharded else BACKWARD * one.step_seconds / train.accumulate
    step = one.step_seconds + max(0.0, communication - hiding)
    return SeveralEstimate(
        devices=devices,
        sharded=sharded,
        states=STATE_BYTES * parameters / (devices if sharded else 1),
        sent=sent,
        communication_seconds=communication,
        step_seconds=step,
        tokens_per_second=devices * work.step_tokens / step,
        efficiency=one.step_seconds / step,
    )
