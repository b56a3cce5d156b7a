"""The engine: the weights of a model, laid out for decoding on a CPU.

    decoder = freeze(model, "int8")
    state = decoder.start(src_BS, beam_size)
    logits_NV = decoder.step(ids_N, state)

A model is written to be read, trained and looked into. Decoding runs the same few lines for every
token, and half of its time goes to what surrounds the products. `freeze` reads a model's weights a
second time: matrices are laid out as the processor wants them, products of the same vectors joined,
residuals and ReLU computed by the product itself, beams share one store of keys and values, and a
step is a list of operations that compiled code runs. It computes what the model computes (the tests
compare them for all kinds of configs), with copies of the weights: who trains freezes again.

Reading order: `products` and `quantized`, `store` (the cache), `program`, `layers`, `assemblies`.
"""

import torch
from torch import Tensor, nn

from dragoman.engine.assemblies import FrozenDecoderOnly, FrozenEncoderDecoder
from dragoman.engine.products import Copies, Lend, can_pack
from dragoman.engine.store import BeamStore
from dragoman.errors import InputError
from dragoman.models.decoder_only import DecoderOnly
from dragoman.models.encoder_decoder import EncoderDecoder
from dragoman.nn import Arithmetic, Causal, FeedForward, Linear, MultiHeadAttention
from dragoman.nn.cpu import native
from dragoman.nn.layers import Layer, Stack

__all__ = [
    "BeamStore",
    "Frozen",
    "FrozenDecoderOnly",
    "FrozenEncoderDecoder",
    "can_freeze",
    "fastest",
    "freeze",
    "frozen_bytes",
]

PROJECTIONS = ("q_proj", "kv_proj", "out_proj")
Frozen = FrozenEncoderDecoder | FrozenDecoderOnly
Writes = EncoderDecoder | DecoderOnly
BYTES: dict[Arithmetic, int] = {"fp32": 4, "bf16": 2, "int8": 1}
"""Of a weight of a product."""


def fastest(device: str = "cpu") -> Arithmetic:
    """Return the arithmetic that decodes fastest on this machine: int8, bf16 or fp32.

    A rule and no race, so that the same command gives the same translations twice. Measured for
    matrices of 256 by 256 to 512 by 32,000 and 1 to 320 rows: products in int8 take 0.2 to 0.7 of
    the time of those in bf16 by the instructions for them (VNNI). On a GPU, bf16.
    """
    if device == "cuda" or (device == "auto" and torch.cuda.is_available()):
        return "bf16"
    if can_pack("int8") and str(native.level()).endswith("vnni"):
        return "int8"
    return "bf16" if can_pack("bf16") else "fp32"


@torch.no_grad()
def freeze(model: Writes, arithmetic: Arithmetic, lend: Lend | None = None) -> Frozen | Writes:
    """Return what decodes with the weights that a model in evaluation mode has now.

    The model itself where it must serve: on other devices than a CPU, where nothing is compiled, on
    a CPU without units for this arithmetic, for weights that are not float32, and for a model with
    parts that are not the paper's own (another pattern in the decoder, a module of the user's, a
    hook). With `lend` the model has no weights but those that its layers are lent, on the CPU: so
    no more of them than those of a layer are there at a time beside what is kept. Raises InputError
    for int8 where it is not to be had.
    """
    weights = [] if lend is not None else list(model.parameters())
    if arithmetic == "int8" and weights and weights[0].device.type != "cpu":
        raise InputError("int8 is for CPUs; ask for bfloat16 on a GPU.")
    if arithmetic == "int8" and not can_pack("int8"):
        raise InputError(
            "int8 needs the loops that are compiled when dragoman is installed, and there are none "
            "here (see `dragoman --version --verbose`); ask for float32."
        )
    other = any(each.device.type != "cpu" or each.dtype is not torch.float32 for each in weights)
    if other or not can_freeze(model, arithmetic):
        return model
    if isinstance(model, EncoderDecoder):
        return FrozenEncoderDecoder(model, arithmetic, Copies(lend))
    return FrozenDecoderOnly(model, arithmetic, Copies(lend))


def can_freeze(model: Writes, arithmetic: Arithmetic) -> bool:
    """Return whether `freeze` lays the weights of a model out on a CPU; they may have no memory."""
    return can_pack(arithmetic) and _is_plain(model)


def frozen_bytes(model: Writes, arithmetic: Arithmetic) -> int:
    """Count the bytes of what `freeze` lays out: products in the arithmetic, the rest in float32.

    A matrix counts twice that is an embedding and a product, and so does that of the output
    unless it is in int8. The scales of int8 are not counted.
    """
    multiplied, others = set[Tensor](), set[Tensor]()
    for module in model.modules():
        for name, parameter in module.named_parameters(recurse=False):
            of_product = isinstance(module, nn.Linear) and name == "weight"
            (multiplied if of_product else others).add(parameter)
    if arithmetic != "int8":
        others.add(model.output.weight)
    packed, plain = (sum(each.numel() for each in some) for some in (multiplied, others))
    return BYTES[arithmetic] * packed + BYTES["fp32"] * plain


def _is_plain(model: Writes) -> bool:
    """Whether all modules are of the package's own classes, without hooks."""
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
