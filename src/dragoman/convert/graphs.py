"""The exported parts of a model: an encoder, a decoder step with its past, an encoder's output.

Each is a module from tensors to tensors, composed of the model's own modules: its layers run the
reference attention, with masks and positions that are computed in the graph, so that batch sizes
and lengths may vary between calls.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from dragoman.models import DecoderOnly, EncoderOnly
from dragoman.models.build import Model
from dragoman.nn import Embedding, MultiHeadAttention, evaluation_view
from dragoman.nn.cache import KeyValue
from dragoman.nn.dot_product import Scoring, both_masks
from dragoman.nn.layers import Memory, Stack
from dragoman.nn.patterns.pattern import Pattern
from dragoman.nn.position.scheme import LearnedPositions, Positions
from dragoman.nn.position.sinusoidal import SinusoidalPositions

Shape = tuple[int | str, ...]
"""Sizes of a tensor; named ones may vary between calls."""


class Port(NamedTuple):
    """An input or output tensor of a graph."""

    name: str
    shape: Shape
    dtype: torch.dtype = torch.float32


class Graph(NamedTuple):
    """A module and its arguments' names; the arguments after the first `plain` form a list."""

    module: nn.Module
    inputs: Sequence[Port]
    outputs: Sequence[str]
    plain: int

    def as_arguments(self, values: Sequence[Any]) -> tuple[Any, ...]:
        """Arrange one value per input as the module's arguments."""
        rest = [list(values[self.plain :])] if len(values) > self.plain else []
        return (*values[: self.plain], *rest)


def graphs(model: Model, num_positions: int) -> dict[str, Graph]:
    """Return the graphs of a model by file name.

    `num_positions` is the length of the table of positions, if the model computes them.
    """
    model = _readable(model, num_positions)
    ids = Port("ids", ("batch", "length"), torch.int64)
    if isinstance(model, EncoderOnly):
        return {"model": Graph(_Reader(model), [ids], ["logits"], 1)}
    past, present = _pairs(model.decoder, "past_", "past"), _pairs(model.decoder, "", "")
    given = [name for name, _, _ in present]
    if isinstance(model, DecoderOnly):
        mask = Port("mask", ("batch", "seen"), torch.bool)
        return {"model": Graph(_Continuation(model), [ids, mask, *past], ["logits", *given], 2)}
    mask = Port("mask", ("batch", "source"), torch.bool)
    source = ids._replace(shape=("batch", "source"))
    memory = _pairs(model.decoder, "memory_", "source")
    names = [name for name, _, _ in memory]
    return {
        "encoder": Graph(_Source(model), [source], ["mask", *names], 1),
        "decoder": Graph(_Target(model), [ids, mask, *past, *memory], ["logits", *given], 2),
    }


def _pairs(stack: Stack, prefix: str, length: str) -> list[Port]:
    """Return the ports of the keys and values of each layer."""
    return [
        Port(
            f"{prefix}{what}.{index}",
            ("batch", layer.self_attn.num_kv_heads, length, layer.self_attn.head_dim),
        )
        for index, layer in enumerate(stack.each_layer())
        for what in ("key", "value")
    ]


# ---------------------------------------------------------------- the graphs


class _Graph(nn.Module):
    """A graph of a part of a model."""

    def __init__(self, model: Any) -> None:  # noqa: ANN401 (each part has a kind of model)
        super().__init__()
        self.model = model


class _Reader(_Graph):
    """An encoder and its head: ids `(B, L)` to the head's output."""

    def forward(self, ids_BL: Tensor) -> Tensor:
        hidden_BLD, mask_BL = _encode(self.model, self.model.embedding, ids_BL)
        out: Tensor = self.model.head(hidden_BLD, mask_BL)
        return out


class _Source(_Graph):
    """The encoder: ids `(B, S)` to their mask and the keys and values of each decoder layer."""

    def forward(self, ids_BS: Tensor) -> tuple[Tensor, ...]:
        memory_BSD, mask_BS = _encode(self.model, self.model.src_embedding, ids_BS)
        pairs = self.model.decoder.project_memory(memory_BSD)
        return mask_BS, *(tensor for pair in pairs for tensor in pair)


class _Target(_Graph):
    """A step of the decoder: ids `(B, T)` after a past of any length, possibly 0."""

    def forward(self, ids_BT: Tensor, mask_BS: Tensor, tensors: list[Tensor]) -> tuple[Tensor, ...]:
        half = len(tensors) // 2
        past, mask = _Past(tensors[:half]), mask_BS[:, None, None, :]
        places_T = torch.arange(past.length, past.length + ids_BT.shape[1])
        x_BTD = self.model.tgt_embedding.embed(ids_BT, places_T)
        memory = [Memory(kv, mask) for kv in _as_pairs(tensors[half:])]
        return _step(self.model, x_BTD, places_T, past, memory=memory)


class _Continuation(_Graph):
    """A step of a decoder-only model; the mask `(B, P + T)` is False at padding in front."""

    def forward(self, ids_BT: Tensor, mask_BS: Tensor, tensors: list[Tensor]) -> tuple[Tensor, ...]:
        past = _Past(tensors)
        places_BT = (mask_BS.long().cumsum(dim=1) - 1).clamp(min=0)[:, past.length :]
        x_BTD = self.model.embedding.embed(ids_BT, places_BT)
        return _step(self.model, x_BTD, places_BT, past, mask=mask_BS[:, None, None, :])


def _encode(model: Any, embedding: Embedding, ids_BL: Tensor) -> tuple[Tensor, Tensor]:  # noqa: ANN401 (as above)
    """Return an encoder's output for ids, and a mask that is False at padding."""
    mask_BL, places_L = ids_BL != model.pad_id, torch.arange(ids_BL.shape[1])
    x_BLD = embedding.embed(ids_BL, places_L)
    info = model.encoder.position_info(x_BLD, places_L)
    return model.encoder(x_BLD, mask_BL[:, None, None, :], info), mask_BL


def _step(
    model: Any,  # noqa: ANN401 (as above)
    x_BTD: Tensor,
    places: Tensor,
    past: "_Past",
    *,
    mask: Tensor | None = None,
    memory: list[Memory] | None = None,
) -> tuple[Tensor, ...]:
    """Return the logits after the last token, and the extended past."""
    info = model.decoder.position_info(x_BTD, places)
    hidden_BTD = model.decoder(x_BTD, past, mask, info, memory)
    return model.project(hidden_BTD[:, -1] * model.logit_scale), *past.tensors


class _Past:
    """A past that is an input of the graph, and is returned extended."""

    def __init__(self, tensors: Sequence[Tensor]) -> None:
        self._pairs = _as_pairs(tensors)
        self.length = tensors[0].shape[2]

    def extend(self, layer: int, kv: KeyValue) -> KeyValue:
        """Append to one layer's keys and values."""
        joined = [torch.cat(both, dim=2) for both in zip(self._pairs[layer], kv, strict=True)]
        self._pairs[layer] = KeyValue(*joined)
        return self._pairs[layer]

    @property
    def tensors(self) -> list[Tensor]:
        """Keys and values of each layer."""
        return [tensor for pair in self._pairs for tensor in pair]


def _as_pairs(tensors: Sequence[Tensor]) -> list[KeyValue]:
    return [KeyValue(k, v) for k, v in zip(tensors[::2], tensors[1::2], strict=True)]


# ---------------------------------------------------------------- the model in plain formulas


def _readable(model: Model, num_positions: int) -> Model:
    """Return a view of the model with reference attention and with tables of positions."""
    view = evaluation_view(model)
    for module in list(view.modules()):
        if isinstance(module, MultiHeadAttention):
            module.pattern = _Formula(of=module.pattern)
        if isinstance(module, Embedding) and module.positions is not None:
            module.positions = _Table(module.positions, num_positions, module.weight.shape[1])
    return view


@dataclass(frozen=True, slots=True, kw_only=True)
class _Formula(Pattern):
    """Another pattern, computed only by its mask and the formula."""

    of: Pattern

    @property
    def is_local(self) -> bool:
        return self.of.is_local

    def mask(self, num_queries: int, num_keys: int, device: torch.device) -> Tensor | None:
        return self.of.mask(num_queries, num_keys, device)

    def attend(self, q_BHTd: Tensor, kv: KeyValue, mask: Tensor | None, scoring: Scoring) -> Tensor:
        own = self.mask(q_BHTd.shape[2], kv.k_BKSd.shape[2], q_BHTd.device)
        return self.reference(q_BHTd, kv, both_masks(own, mask), scoring)[0]


class _Table(nn.Module):
    """Adds to each vector the row of its position."""

    def __init__(self, positions: nn.Module, length: int, d_model: int) -> None:
        super().__init__()
        if isinstance(positions, LearnedPositions):
            self.weight_LD = positions.weight
        elif isinstance(positions, SinusoidalPositions):
            self.weight_LD = positions(torch.zeros(1, length, d_model))[0]

    def forward(self, x_BLD: Tensor, positions: Positions) -> Tensor:
        return x_BLD + self.weight_LD[positions]
