"""Frozen layers: each is a flat version of its counterpart in `nn/layers.py`.

Vectors are rows of a plain matrix `(M, D)`: first those of a batch, then unused ones, so that
oneDNN sees few different numbers of rows (`familiar_rows`). Nothing here has a parameter of its
own.
"""

import ctypes
from collections.abc import Callable
from functools import partial

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from dragoman.engine.products import DTYPES, Product, copied, prepared, with_rows
from dragoman.engine.program import Program
from dragoman.engine.quantized import QuantizedLinear
from dragoman.engine.store import BeamStore, Sources
from dragoman.nn import (
    Arithmetic,
    Embedding,
    FeedForward,
    Full,
    KeyValue,
    MultiHeadAttention,
    PositionInfo,
    Residual,
    Scoring,
    SlidingWindow,
)
from dragoman.nn.cpu.elementwise import silu
from dragoman.nn.cpu.native import Functions, address, compiled, fields
from dragoman.nn.layers import Layer
from dragoman.nn.norm import LayerNorm, RMSNorm


class FrozenAttention:
    """`MultiHeadAttention` with one product for all projections of the same vectors."""

    def __init__(self, attention: MultiHeadAttention, arithmetic: Arithmetic, *, own: bool) -> None:
        """Freeze a module; `own` is for self-attention, whose projections read the same vectors."""
        self._own = own
        self._normed = not isinstance(attention.q_norm, nn.Identity)
        scale = 1.0 if self._normed else attention.scale  # a norm would undo it
        q, kv = attention.q_proj, attention.kv_proj
        if own:
            self._project = prepared(q, kv, arithmetic=arithmetic, first_scale=scale)
        else:
            self._project = prepared(q, arithmetic=arithmetic, first_scale=scale)
            self._project_kv = prepared(kv, arithmetic=arithmetic)
        self.output = prepared(attention.out_proj, arithmetic=arithmetic)
        self._q_norm, self._k_norm = copied(attention.q_norm), copied(attention.k_norm)
        self._scale, self._pattern = attention.scale, attention.pattern
        self._soft_cap, self._is_local = attention.soft_cap, attention.pattern.is_local
        self._num_heads, self._num_kv_heads = attention.num_heads, attention.num_kv_heads
        self._head_dim, pattern = attention.head_dim, attention.pattern
        self._window = pattern.size if isinstance(pattern, SlidingWindow) else None
        unusual = self._normed or self._window is not None
        self.recorded = not unusual and _all_recorded(self._project, self.output)
        """Whether `record` can be called."""
        self.remembers = not own and _all_recorded(self._project_kv) and not self._normed
        """Whether `record_memory` can be called."""

    def encode(
        self,
        x_MD: Tensor,
        size_BL: tuple[int, int],
        mask: Tensor | Sources | None,
        info: PositionInfo,
    ) -> tuple[Tensor, KeyValue]:
        """Attend within whole sequences; return the heads' outputs, and the keys and values."""
        batch, length = size_BL
        projected_MX = self._project(x_MD)
        projected_BLX = projected_MX[: batch * length].unflatten(0, size_BL)
        q_BHLd, kv = self._heads(projected_BLX, info)
        if isinstance(mask, Sources):
            q_MX = projected_MX
            if self._normed or info.angles is not None or q_MX.dtype is not torch.float32:
                q_MX = with_rows(q_BHLd.transpose(1, 2).flatten(0, 1).flatten(1), len(x_MD))
            return mask.attend(*mask.laid_out(kv), q_MX), kv
        scoring = Scoring(scale=1.0, soft_cap=self._soft_cap, bias=info.bias)
        out_BHLd = self._pattern.attend(q_BHLd, kv, mask, scoring)
        return with_rows(out_BHLd.transpose(1, 2).flatten(0, 1).flatten(1), len(x_MD)), kv

    def step(self, layer: int, store: BeamStore, x_MD: Tensor) -> Tensor:
        """Attend from one vector per row to its prefix, which it ends.

        The store rotates unless it says that this comes before.
        """
        projected_MX = self._project(x_MD)
        if self._normed or store.before.angles is not None:
            q_MH1d, kv = self._heads(projected_MX[:, None], store.before)
            projected_MX = torch.cat([part.flatten(1) for part in (q_MH1d, *kv)], dim=1)
        return store.attend(layer, projected_MX, self._window)

    def record(
        self, program: Program, layer: int, store: BeamStore | Sources, x_RD: Tensor
    ) -> Tensor:
        """Append `step` or `look` to a program, or `encode` for sources."""
        q_RX = _quantized(self._project).record(program, x_RD)
        columns = self._num_heads * self._head_dim
        if isinstance(store, Sources):
            keys_values = store.memory
            program.lay_out(store.at, q_RX[:, columns:], keys_values)
            return program.attend(store.at, q_RX, columns, keys_values, own=False)
        reads, keys_values = store.reads(layer, own=self._own)
        return program.attend(reads, q_RX, columns, keys_values, own=self._own)

    def remember(self, memory_MD: Tensor, sources: Sources) -> tuple[Tensor, Tensor]:
        """Compute the keys and values of cross-attention, as `Sources.laid_out` returns them."""
        size = sources.size
        shape = (*size, 2, self._num_kv_heads, self._head_dim)
        k_BSKd, v_BSKd = self._project_kv(memory_MD)[: size.numel()].view(shape).unbind(dim=2)
        kv = KeyValue(self._k_norm(k_BSKd).transpose(1, 2), v_BSKd.transpose(1, 2))
        return sources.laid_out(kv)

    def record_memory(
        self, program: Program, memory_RD: Tensor, sources: Sources
    ) -> tuple[Tensor, Tensor]:
        """Append `remember` to a program."""
        keys_values = sources.empty()
        kv_RX = _quantized(self._project_kv).record(program, memory_RD)
        program.lay_out(sources.at, kv_RX, keys_values)
        return keys_values

    def look(self, layer: int, store: BeamStore, x_MD: Tensor) -> Tensor:
        """Attend from one vector per row to the source of its sentence."""
        q_MX = self._project(x_MD)
        if self._normed:
            q_MX = self._norm_q(q_MX.unflatten(1, (self._num_heads, self._head_dim))).flatten(1)
        return store.attend_to_source(layer, q_MX)

    def _heads(self, projected_BLX: Tensor, info: PositionInfo) -> tuple[Tensor, KeyValue]:
        """Split `(B, L, X)` into queries `(B, H, L, d)`, keys and values, rotated if needed."""
        counts = [self._num_heads, self._num_kv_heads, self._num_kv_heads]
        heads_BLhd = projected_BLX.unflatten(2, (-1, self._head_dim))
        q_BLHd, k_BLKd, v_BLKd = heads_BLhd.split(counts, dim=2)
        q_BHLd = info.place(q_BLHd, self._norm_q, local=self._is_local)
        k_BKLd = info.place(k_BLKd, self._k_norm, local=self._is_local)
        return q_BHLd, KeyValue(k_BKLd, v_BLKd.transpose(1, 2))

    def _norm_q(self, q: Tensor) -> Tensor:
        """Normalise and scale queries, unless `W_Q` is scaled."""
        if not self._normed:
            return q
        scaled: Tensor = self._q_norm(q) * self._scale
        return scaled


class _Vectors(ctypes.Structure):
    """`struct Vectors` of `native.c`."""

    _fields_ = fields("weight", "tokens columns", "scale")


class FrozenEmbedding:
    """A frozen `Embedding`, made from a copy."""

    def __init__(self, embedding: Embedding) -> None:
        self._embedding, self.num_positions = embedding, embedding.num_positions
        self._weight_VD, self._positions = embedding.weight.contiguous(), embedding.positions
        self._norm = FrozenNorm(embedding.norm)
        self._added_PD = self._weight_VD.new_empty(0, self._weight_VD.shape[1])
        size = vocab_size, columns = self._weight_VD.shape
        at = address(self._weight_VD, torch.float32, *size)
        self._by = _Vectors(at, vocab_size, columns, embedding.scale)
        plain = type(embedding) is Embedding and embedding.types is None
        self.recorded = plain and self._norm.recorded
        """Whether `record` can be called."""

    def embed(self, ids_BL: Tensor, positions: range) -> Tensor:
        """Map ids `(B, L)` to vectors `(B, L, D)`, with the bits of a program."""
        if not self.recorded:
            return self._embedding.embed(ids_BL, positions)
        x_BLD: Tensor = self._embedding(ids_BL)
        if (added_LD := self.added_at(positions)) is not None:
            x_BLD = x_BLD + added_LD
        return self._norm(x_BLD.flatten(0, 1)).view(x_BLD.shape)

    def record(self, program: Program) -> Tensor:
        """Append the map from ids to vectors to a program."""
        x_RD = program.embed(ctypes.addressof(self._by), self._by.columns)
        return self._norm(x_RD, program)

    def added_at(self, positions: range) -> Tensor | None:
        """Return what is added to any token's vector at these positions, `(positions, D)`."""
        if self._positions is None:
            return None
        added_PD, end = self._added_PD, positions.stop
        if end > len(added_PD):
            wanted = range(max(end, min(2 * end, self.num_positions or 2 * end)))
            none_BPD = added_PD.new_zeros(1, len(wanted), added_PD.shape[1])
            self._added_PD = added_PD = self._positions(none_BPD, wanted)[0].contiguous()
        return added_PD[positions.start : end]


class _Norm(ctypes.Structure):
    """`struct Norm` of `native.c`."""

    _fields_ = fields("weight bias", "columns centred", "eps")


class FrozenNorm:
    """`LayerNorm` or `RMSNorm`; calls the module itself for others, and for other dtypes."""

    def __init__(self, norm: nn.Module) -> None:
        self._module = copied(norm)
        self._functions: Functions | None = None
        if isinstance(norm, LayerNorm | RMSNorm) and type(norm) in {LayerNorm, RMSNorm}:
            self._functions = compiled()
            bias = norm.bias if isinstance(norm, LayerNorm) else None
            self._parts = norm.weight.detach().clone(), None if bias is None else bias.clone()
            addresses = [None if part is None else part.data_ptr() for part in self._parts]
            centred = isinstance(norm, LayerNorm)
            self._by = _Norm(*addresses, len(norm.weight), centred, norm.eps)
            self._at = ctypes.addressof(self._by)
        self.recorded = self._functions is not None or isinstance(norm, nn.Identity)
        """Whether `record` can be called."""

    def __call__(
        self, x_MD: Tensor, program: Program | None = None, *, apart: bool = False
    ) -> Tensor:
        """Normalise each row; in a program, in place unless `apart`."""
        if program is not None:
            if self._functions is None:
                return x_MD
            out_MD = program.vectors("normed", x_MD.shape[1]) if apart else x_MD
            return program.norm(self._at, x_MD, out_MD)
        if self._functions is None or x_MD.dtype is not torch.float32:
            normed_MD: Tensor = self._module(x_MD)
            return normed_MD
        x_MD, out_MD = x_MD.contiguous(), torch.empty(x_MD.shape, dtype=torch.float32)
        source = address(x_MD, torch.float32, len(x_MD), self._by.columns)
        self._functions.norm(self._at, source, out_MD.data_ptr(), len(x_MD))
        return out_MD


class FrozenResidual:
    """`Residual` around a sublayer whose last product adds its result to `x`."""

    def __init__(self, residual: Residual) -> None:
        self._norm, self._out_norm = FrozenNorm(residual.norm), FrozenNorm(residual.out_norm)
        self._ends = not isinstance(residual.out_norm, nn.Identity)
        self._pre, self._alpha = residual.pre, residual.alpha
        self.recorded = self._norm.recorded and self._alpha == 1.0 and not self._ends
        """Whether `record` can be called."""

    def __call__(
        self,
        x_MD: Tensor,
        body: Callable[[Tensor], Tensor],
        last: Product,
        program: Program | None = None,
    ) -> Tensor:
        """Return `x + last(body(norm(x)))`, or `norm(alpha * x + last(body(x)))`.

        With a second norm, return `x + out_norm(last(body(norm(x))))`.

        In a program, the result overwrites `x`.
        """
        hidden_MX = body(self._norm(x_MD, program, apart=True) if self._pre else x_MD)
        if self._ends:
            return x_MD + self._out_norm(last(hidden_MX))
        if program is not None:
            x_MD = _quantized(last).record(program, hidden_MX, x_MD, added_RO=x_MD)
        else:
            x_MD = last.plus(hidden_MX, x_MD if self._alpha == 1.0 else self._alpha * x_MD)
        return x_MD if self._pre else self._norm(x_MD, program)


class FrozenFeedForward:
    """`FeedForward`: `act(x W1 + b1) [* (x W3 + b3)]`; the residual runs its last product."""

    def __init__(self, ffn: FeedForward, arithmetic: Arithmetic) -> None:
        self._compiled: Functions | None = None
        if ffn.activation is silu and DTYPES[arithmetic] is torch.float32:
            self._compiled = compiled()
        self._gated = ffn.value is not None
        inner = (ffn.up,) if ffn.value is None else (ffn.up, ffn.value)
        self._inner = prepared(*inner, arithmetic=arithmetic)
        self._activation = ffn.activation
        self._relu = ffn.activation is F.relu and not self._gated
        self.output = prepared(ffn.down, arithmetic=arithmetic)
        native = self._relu or self._compiled is not None
        self.recorded = native and _all_recorded(self._inner, self.output)
        """Whether `record` can be called."""

    def hidden(self, x_MD: Tensor, program: Program | None = None) -> Tensor:
        """Map `(M, D)` to `(M, F)`."""
        if program is not None:
            inner_MX = _quantized(self._inner).record(program, x_MD, relu=self._relu)
            return inner_MX if self._relu else program.silu(inner_MX, gated=self._gated)
        if self._relu:
            return self._inner(x_MD, relu=True)
        inner = self._inner(x_MD)
        if self._compiled is not None:
            hidden_MF = inner.new_empty(len(inner), inner.shape[1] // (1 + self._gated))
            compute = self._compiled.gate if self._gated else self._compiled.silu
            source = address(inner, torch.float32, *inner.shape)
            compute(source, hidden_MF.data_ptr(), *hidden_MF.shape)
            return hidden_MF
        if not self._gated:
            return self._activation(inner)
        gate_MF, value_MF = inner.chunk(2, dim=1)
        return self._activation(gate_MF) * value_MF


class FrozenLayer:
    """`Layer`, for whole sequences (an encoder, a prompt) and for the next token of each row."""

    def __init__(self, layer: Layer, arithmetic: Arithmetic) -> None:
        self._index = layer.index
        self.attends_fully = type(layer.self_attn.pattern) is Full
        self._self_attn = FrozenAttention(layer.self_attn, arithmetic, own=True)
        self._self_residual = FrozenResidual(layer.self_attn_residual)
        self.cross_attn: FrozenAttention | None = None
        """The attention to the source."""
        if layer.cross_attn is not None and layer.cross_attn_residual is not None:
            self.cross_attn = FrozenAttention(layer.cross_attn, arithmetic, own=False)
            self._cross_residual = FrozenResidual(layer.cross_attn_residual)
        self._ffn = FrozenFeedForward(layer.ffn, arithmetic)
        self._ffn_residual = FrozenResidual(layer.ffn_residual)
        parts: list[FrozenAttention | FrozenResidual | FrozenFeedForward]
        parts = [self._self_attn, self._self_residual, self._ffn, self._ffn_residual]
        if self.cross_attn is not None:
            parts += [self.cross_attn, self._cross_residual]
        self.recorded = all(part.recorded for part in parts)
        """Whether `record` can be called."""

    def encode(
        self,
        x_MD: Tensor,
        size_BL: tuple[int, int],
        mask: Tensor | Sources | None,
        info: PositionInfo,
    ) -> tuple[Tensor, KeyValue]:
        """Return the vectors after this layer, and its self-attention's keys and values."""
        found: list[KeyValue] = []

        def attend(x_MD: Tensor) -> Tensor:
            out_MX, kv = self._self_attn.encode(x_MD, size_BL, mask, info)
            found.append(kv)
            return out_MX

        return self._passed(x_MD, attend), found[0]

    def step(self, x_MD: Tensor, store: BeamStore) -> Tensor:
        """Return the vector of each row's next token after this layer."""
        cross = self.cross_attn
        look = None if cross is None else partial(cross.look, self._index, store)
        return self._passed(x_MD, partial(self._self_attn.step, self._index, store), look)

    def record(self, program: Program, x_RD: Tensor, store: BeamStore | Sources) -> None:
        """Append `step` to a program, or `encode` for sources."""
        cross = self.cross_attn
        look = None if cross is None else partial(cross.record, program, self._index, store)
        attend = partial(self._self_attn.record, program, self._index, store)
        self._passed(x_RD, attend, look, program)

    def _passed(
        self,
        x_MD: Tensor,
        attend: Callable[[Tensor], Tensor],
        look: Callable[[Tensor], Tensor] | None = None,
        program: Program | None = None,
    ) -> Tensor:
        """Apply all sublayers; `attend` and `look` compute the input of their last product."""
        x_MD = self._self_residual(x_MD, attend, self._self_attn.output, program)
        if look is not None and self.cross_attn is not None:
            x_MD = self._cross_residual(x_MD, look, self.cross_attn.output, program)
        hidden = partial(self._ffn.hidden, program=program)
        return self._ffn_residual(x_MD, hidden, self._ffn.output, program)


def _all_recorded(*products: Product) -> bool:
    """Return whether programs support all of these products."""
    return all(isinstance(each, QuantizedLinear) and each.recorded for each in products)


def _quantized(product: Product) -> QuantizedLinear:
    """Return the product, which must be one that programs support."""
    if not isinstance(product, QuantizedLinear):
        raise TypeError("programs take products in int8 only")
    return product
