"""The inference engine: a model's weights, laid out for decoding on a CPU.

    decoder = freeze(model, "int8")
    state = decoder.start(src_BS, beam_size)
    logits_NV = decoder.step(ids_N, state)

A model is written for reading, training and inspection. Decoding runs the same few lines for every
token, and half of its time goes to the work around the matrix products. `freeze` copies a model's
weights into another layout: matrices are in the order that the processor prefers, products with the
same input are merged, residuals and ReLU are computed by the product itself, beams share one store
of keys and values, and a step is a list of operations that compiled code runs. The result computes
the same as the model (the tests compare them for all kinds of configs). Its weights are copies:
freeze again after training.

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
from dragoman.nn import Arithmetic, Causal, FeedForward, Linear, MultiHeadAttention, SlidingWindow
from dragoman.nn.cpu import native
from dragoman.nn.cpu.products import cpu_by_default
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
"""Bytes per weight of a matrix product."""


def fastest(device: str = "cpu") -> Arithmetic:
    """Return the arithmetic that decodes fastest on this machine: int8, bf16 or fp32.

    This is a rule, not a race, so that running a command twice gives the same translations.
    Measured with matrices of 256 by 256 to 512 by 32,000 and 1 to 320 rows: with the dedicated
    instructions (VNNI), int8 products take 0.2 to 0.7 of the time of bf16 products. On a GPU, bf16.
    """
    if device == "cuda" or (device == "auto" and torch.cuda.is_available()):
        return "bf16"
    if can_pack("int8") and str(native.level()).endswith("vnni"):
        return "int8"
    return "bf16" if can_pack("bf16") else "fp32"


@cpu_by_default()
@torch.no_grad()
def freeze(model: Writes, arithmetic: Arithmetic, lend: Lend | None = None) -> Frozen | Writes:
    """Return a decoder with the current weights of a model in evaluation mode.

    Returns the model itself if it cannot be frozen: on devices other than a CPU, if nothing is
    compiled, on a CPU without units for this arithmetic, if the weights are not float32, and if the
    model has parts that are not the paper's own (a pattern in the decoder, except a window; a
    user's module, a hook). With `lend`, the model has no weights except those that its layers are
    lent, on the CPU: at most one layer's weights are in memory at a time, in addition to what is
    kept. Raises InputError if int8 is not available.
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
    """Return whether `freeze` can lay out a model's weights on a CPU; they may have no memory."""
    return can_pack(arithmetic) and _is_plain(model)


def frozen_bytes(model: Writes, arithmetic: Arithmetic) -> int:
    """Count the bytes of what `freeze` lays out: products in the arithmetic, the rest in float32.

    A matrix that is both an embedding and a product counts twice; so does the output matrix, unless
    it is in int8. The scales of int8 are not counted.
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
    """Return whether all modules are of the package's own classes and have no hooks."""
    stacks = [part for part in model.children() if isinstance(part, Stack)]
    layers = [layer for stack in stacks for layer in stack.layers]
    parts: list[tuple[object, type]] = [(model.output, Linear), *((each, Layer) for each in layers)]
    for layer in (layer for stack in stacks for layer in stack.each_layer()):
        attentions = [each for each in (layer.self_attn, layer.cross_attn) if each is not None]
        parts += [(attention, MultiHeadAttention) for attention in attentions]
        parts += [(getattr(a, name), Linear) for a in attentions for name in PROJECTIONS]
        parts.append((layer.ffn, FeedForward))
        parts += [(each, Linear) for each in layer.ffn.children() if isinstance(each, nn.Linear)]
    windows = SlidingWindow if model.decoder.bias is None else Causal
    patterns = [layer.self_attn.pattern for layer in model.decoder.each_layer()]
    seen = all(type(each) in {Causal, windows} for each in patterns)
    hooked = any(each._forward_hooks or each._forward_pre_hooks for each in model.modules())  # noqa: SLF001 -- torch has no other way to ask
    return seen and not hooked and all(type(part) is kind for part, kind in parts)
