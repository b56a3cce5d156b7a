"""The fast step: the weights of a model, read a second time for decoding on a CPU.

A model is written to be read, trained and looked into. Decoding runs the same few lines for every
token, and half of its time goes to what surrounds the products. A plan is made once from a model's
weights: matrices laid out as the processor wants them, products of the same vectors joined,
residuals and ReLU computed by the product itself, and beams that share one store of keys and
values. It computes what the model computes (the tests compare them for all kinds of configs) and
has no parameter of its own.

Reading order: `products`, `store` (the cache), `layers`, `assemblies`.
"""

from functools import cache

import torch
from torch import nn
from torch.optim.optimizer import register_optimizer_step_post_hook

from dragoman.models.decoder_only import DecoderOnly
from dragoman.models.encoder_decoder import EncoderDecoder
from dragoman.models.plan.assemblies import PlannedDecoderOnly, PlannedEncoderDecoder
from dragoman.models.plan.products import can_pack
from dragoman.nn import Causal, Pattern, Precision
from dragoman.nn.layers import Stack

__all__ = ["Planned", "PlannedDecoderOnly", "PlannedEncoderDecoder", "Planner", "plan"]

MOST_BEAMS = 20
"""The beam size up to which there are plans: the scores of a step grow with its square."""
Planned = PlannedEncoderDecoder | PlannedDecoderOnly


class Planner:
    """Gives what decodes with a model: its plan, made again whenever a weight may have changed."""

    def __init__(self, model: EncoderDecoder | DecoderOnly, precision: Precision) -> None:
        _count_optimizer_steps()
        self.model = model
        self._precision = precision
        self._made: tuple[object, Planned | None] | None = None

    def __call__(self, beam_size: int) -> Planned | EncoderDecoder | DecoderOnly:
        """Return the present plan, or the model where there is none for beams of this size."""
        if beam_size > MOST_BEAMS:
            return self.model
        weights = _state_of(self.model)
        made = self._made
        if made is None or made[0] != weights:
            self._made = made = (weights, plan(self.model, self._precision))
        return made[1] or self.model


def plan(model: EncoderDecoder | DecoderOnly, precision: Precision) -> Planned | None:
    """Make the plan of a model in evaluation mode, from copies of its weights as they are now.

    None where the model itself must serve: on other devices than a CPU, on a CPU whose oneDNN
    cannot multiply in this precision, for weights that are not float32, and for a decoder with a
    pattern that does not attend to the whole prefix by the paper's formula.
    """
    if not (can_pack(precision) and _attends_to_prefixes(model.decoder)):
        return None
    weights = list(model.parameters())
    if any(each.device.type != "cpu" or each.dtype is not torch.float32 for each in weights):
        return None
    if isinstance(model, EncoderDecoder):
        return PlannedEncoderDecoder(model, precision)
    return PlannedDecoderOnly(model, precision)


def _attends_to_prefixes(decoder: Stack) -> bool:
    plain = (Pattern.attend, Causal.attend)
    patterns = [layer.self_attn.pattern for layer in decoder.each_layer()]
    device = next(decoder.parameters()).device
    return all(
        type(pattern).attend in plain and not pattern.forgets and pattern.mask(1, 2, device) is None
        for pattern in patterns
    )


def _state_of(model: nn.Module) -> object:
    """What differs as soon as a weight does: where each lies, and how often it was written to.

    Fused optimizers write without counting it, so their steps, in any thread, are counted here.
    """
    written = [
        (weight.data_ptr(), 0 if weight.is_inference() else weight._version)  # noqa: SLF001 -- torch's own counter
        for weight in model.parameters()
    ]
    return _STEPS["taken"], written


_STEPS = {"taken": 0}  # by the optimizers of this process


@cache
def _count_optimizer_steps() -> None:
    def count(*_: object) -> None:
        _STEPS["taken"] += 1

    register_optimizer_step_post_hook(count)
