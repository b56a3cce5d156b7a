"""The fast step: the weights of a model, read a second time for decoding on a CPU.

A model is written to be read, trained and looked into. Decoding runs the same few lines for every
token, and half of its time goes to what surrounds the products. A plan is made once from a model's
weights: matrices laid out as the processor wants them, products of the same vectors joined,
residuals and ReLU computed by the product itself, and beams that share one store of keys and
values. It computes what the model computes (the tests compare them for all kinds of configs) and
has no parameter of its own.

Reading order: `products` and `quantized`, `store` and `ancestors` (the cache), `program`, `layers`,
`assemblies`.
"""

from threading import Lock

import torch
from torch import Tensor, nn

from dragoman.errors import InputError
from dragoman.models.decoder_only import DecoderOnly
from dragoman.models.encoder_decoder import EncoderDecoder
from dragoman.models.plan.assemblies import PlannedDecoderOnly, PlannedEncoderDecoder, Store
from dragoman.models.plan.products import can_pack
from dragoman.nn import Arithmetic, Causal, FeedForward, Linear, MultiHeadAttention
from dragoman.nn.cpu.native import native
from dragoman.nn.layers import Layer, Stack

__all__ = [
    "Planned",
    "PlannedDecoderOnly",
    "PlannedEncoderDecoder",
    "Planner",
    "Store",
    "fastest",
    "plan",
]

PROJECTIONS = ("q_proj", "kv_proj", "out_proj")
MOST_BEAMS = 20
"""The beam size up to which there are plans: the scores of a step grow with its square."""
WATCHED = 100
"""About how many numbers of each weight are compared; each is a page of memory of its own."""
Planned = PlannedEncoderDecoder | PlannedDecoderOnly


class Planner:
    """Gives what decodes with a model: its plan, made again whenever a weight has changed.

    Threads may share one. The model keeps its modules; its parameters may be replaced.
    """

    def __init__(self, model: EncoderDecoder | DecoderOnly, arithmetic: Arithmetic) -> None:
        if arithmetic == "int8" and next(model.parameters()).device.type != "cpu":
            raise InputError("int8 is for CPUs; ask for bfloat16 on a GPU.")
        if arithmetic == "int8" and not can_pack("int8"):
            raise InputError(
                "int8 needs a CPU with units that add up 8-bit products exactly (VNNI, AMX), and "
                "this one has none; ask for float32."
            )
        self.model = model
        self._arithmetic = arithmetic
        self._lock = Lock()
        self._watch = _Watch(model)
        self._plan: Planned | None = None

    def __call__(self, beam_size: int) -> Planned | EncoderDecoder | DecoderOnly:
        """Return the present plan, or the model where there is none for beams of this size."""
        if beam_size > MOST_BEAMS:
            return self.model
        with self._lock:
            if self._watch.changed():
                self._plan = None  # before there is another: they are large
                self._plan = plan(self.model, self._arithmetic)
            return self._plan or self.model


def fastest(device: str = "cpu") -> Arithmetic:
    """Return the arithmetic that decodes fastest on this machine: int8, bf16 or fp32.

    A rule and no race, so that the same command gives the same translations twice. Measured for
    matrices of 256 by 256 to 512 by 32,000 and 1 to 320 rows: products in int8 take 0.2 to 0.7 of
    the time of those in bf16, where their sums are exact; what surrounds them must be compiled. On
    a GPU, bf16.
    """
    if device == "cuda" or (device == "auto" and torch.cuda.is_available()):
        return "bf16"
    if can_pack("int8") and native() is not None:
        return "int8"
    return "bf16" if can_pack("bf16") else "fp32"


@torch.no_grad()
def plan(model: EncoderDecoder | DecoderOnly, arithmetic: Arithmetic) -> Planned | None:
    """Make the plan of a model in evaluation mode, with its products' weights as they are now.

    None where the model itself must serve: on other devices than a CPU, on a CPU whose oneDNN
    cannot multiply in this arithmetic, for weights that are not float32, and for a model with parts
    that are not the paper's own (another pattern in the decoder, a module of the user's, a hook).
    """
    functions = native()
    weights = list(model.parameters())
    if any(each.device.type != "cpu" or each.dtype is not torch.float32 for each in weights):
        return None
    if not (can_pack(arithmetic) and _is_plain(model)):
        return None
    if isinstance(model, EncoderDecoder):
        return PlannedEncoderDecoder(model, arithmetic, functions)
    return PlannedDecoderOnly(model, arithmetic, functions)


def _is_plain(model: EncoderDecoder | DecoderOnly) -> bool:
    """Whether all modules of a plan are of the package's own classes, without hooks."""
    stacks = [part for part in model.children() if isinstance(part, Stack)]
    layers = [layer for stack in stacks for layer in stack.layers]
    parts: list[tuple[object, type]] = [(model.output, Linear), *((each, Layer) for each in layers)]
    for layer in (layer for stack in stacks for layer in stack.each_layer()):
        attentions = [each for each in (layer.self_attn, layer.cross_attn) if each is not None]
        parts += [(attention, MultiHeadAttention) for attention in attentions]
        parts += [(getattr(a, name), Linear) for a in attentions for name in PROJECTIONS]
        parts.append((layer.ffn, FeedForward))
        parts += [(each, Linear) for each in layer.ffn.children() if isinstance(each, nn.Linear)]
    parts += [(layer.self_attn.pattern, Causal) for layer in model.decoder.each_layer()]
    hooked = any(each._forward_hooks or each._forward_pre_hooks for each in model.modules())  # noqa: SLF001 -- torch has no other way to ask
    return not hooked and all(type(part) is kind for part, kind in parts)


class _Watch:
    """Detects changed weights of a model; a check takes 0.2 to 0.3 milliseconds.

    A change is seen by the address of a weight, torch's count of writes, and some numbers of each,
    since a fused optimizer and `.data` write without being counted: they change most numbers.
    """

    def __init__(self, model: nn.Module) -> None:
        dicts = [module._parameters for module in model.modules()]  # noqa: SLF001 -- `parameters()` takes ten times as long
        self._places = [(each, name) for each in dicts for name, w in each.items() if w is not None]
        self._written: list[tuple[int, int]] = []
        self._some: list[Tensor] = []
        self._values: Tensor | None = None

    def changed(self) -> bool:
        """Return whether there may be a change since the last call; True on other devices."""
        found = [parameters.get(name) for parameters, name in self._places]
        weights = [weight for weight in found if weight is not None]
        if weights[0].device.type != "cpu":
            self._values = None
            return True
        written = [
            (weight.data_ptr(), 0 if weight.is_inference() else weight._version)  # noqa: SLF001 -- torch's own counter
            for weight in weights
        ]
        moved = written != self._written
        if moved:
            self._written = written
            flat = [weight.detach().flatten() for weight in weights]
            self._some = [each[:: 1 + len(each) // WATCHED] for each in flat]
        before, self._values = self._values, torch.cat(self._some)
        return moved or before is None or not torch.equal(before, self._values)
