"""The layers of a model, read a second time: each function is one of `nn/layers.py`, made flat.

Vectors are rows of a plain matrix `(M, D)`: first those of a batch, then some that nobody reads,
so that few numbers of rows occur (`familiar_rows`). Nothing here has a parameter of its own.
"""

from collections.abc import Callable

import torch.nn.functional as F
from torch import Tensor, nn

from dragoman.models.plan.products import PackedLinear, with_rows
from dragoman.models.plan.store import BeamStore
from dragoman.nn import (
    FeedForward,
    KeyValue,
    MultiHeadAttention,
    PositionInfo,
    Precision,
    Residual,
    Scoring,
    head_product,
    rotate,
    soft_cap,
)
from dragoman.nn.layers import Layer


class PlannedAttention:
    """`MultiHeadAttention`, with one product for all that is made of the same vectors."""

    def __init__(self, attention: MultiHeadAttention, precision: Precision, *, own: bool) -> None:
        """`own` tells self-attention, whose queries, keys and values come from the same vectors."""
        self._normed = not isinstance(attention.q_norm, nn.Identity)
        scale = 1.0 if self._normed else attention.scale  # a norm would take it away again
        q, kv = attention.q_proj, attention.kv_proj
        if own:
            self._project = PackedLinear(q, kv, precision=precision, first_scale=scale)
        else:
            self._project = PackedLinear(q, precision=precision, first_scale=scale)
            self._project_kv = PackedLinear(kv, precision=precision)
        self.output = PackedLinear(attention.out_proj, precision=precision)
        self._attention = attention
        self._num_heads, self._num_kv_heads = attention.num_heads, attention.num_kv_heads
        self._head_dim = attention.head_dim

    def encode(
        self, x_MD: Tensor, size_BL: tuple[int, int], mask: Tensor | None, info: PositionInfo
    ) -> tuple[Tensor, KeyValue]:
        """Attend within whole sequences; return the heads' outputs and the keys and values."""
        batch, length = size_BL
        projected_BLX = self._project(x_MD)[: batch * length].unflatten(0, size_BL)
        q_BHLd, kv = self._heads(projected_BLX, info)
        scoring = Scoring(scale=1.0, soft_cap=self._attention.soft_cap, bias=info.bias)
        out_BHLd = self._attention.pattern.attend(q_BHLd, kv, mask, scoring)
        return with_rows(out_BHLd.transpose(1, 2).flatten(0, 1).flatten(1), len(x_MD)), kv

    def step(
        self, x_MD: Tensor, layer: int, store: BeamStore, added: Tensor, info: PositionInfo
    ) -> Tensor:
        """Attend from one vector for each row to its prefix, itself the last."""
        projected_RX = store.placed(self._project(x_MD)[: store.num_rows])
        q_RH1d, kv = self._heads(projected_RX[:, None], info)
        width = (-1, store.beam_size)
        own = KeyValue(*(part.squeeze(2).unflatten(0, width).transpose(1, 2) for part in kv))
        return self._attend(q_RH1d, store.append(layer, own), added, store, len(x_MD))

    def remember(self, memory_MD: Tensor, size_BL: tuple[int, int]) -> KeyValue:
        """Make the keys and values of cross-attention, `(B, K, S, d)`."""
        batch, length = size_BL
        shape = (batch, length, 2, self._num_kv_heads, self._head_dim)
        kv_BS2Kd = self._project_kv(memory_MD)[: batch * length].view(shape)
        k_BSKd, v_BSKd = kv_BS2Kd.unbind(dim=2)
        k_BKSd = self._attention.k_norm(k_BSKd).transpose(1, 2)
        return KeyValue(k_BKSd.contiguous(), v_BSKd.transpose(1, 2).contiguous())

    def look(self, x_MD: Tensor, layer: int, store: BeamStore) -> Tensor:
        """Attend from one vector for each row to the source of its sentence."""
        projected_RX = store.placed(self._project(x_MD)[: store.num_rows])
        q_RHd = self._norm_q(projected_RX.unflatten(1, (self._num_heads, self._head_dim)))
        memory, added = store.memory[layer], store.memory_mask
        return self._attend(q_RHd, memory, added, store, len(x_MD))

    def _heads(self, projected_BLX: Tensor, info: PositionInfo) -> tuple[Tensor, KeyValue]:
        """Cut `(B, L, X)` into queries `(B, H, L, d)`, keys and values, rotated as they must be."""
        counts = [self._num_heads, self._num_kv_heads, self._num_kv_heads]
        heads_BLhd = projected_BLX.unflatten(2, (-1, self._head_dim))
        q, k, v = (part.transpose(1, 2) for part in heads_BLhd.split(counts, dim=2))
        q, k = self._norm_q(q), self._attention.k_norm(k)
        if info.angles is not None:
            q, k = rotate(q, info.angles), rotate(k, info.angles)
        return q, KeyValue(k, v)

    def _norm_q(self, q: Tensor) -> Tensor:
        """Norm and scale queries, unless `W_Q` is scaled."""
        if not self._normed:
            return q
        scaled: Tensor = self._attention.q_norm(q) * self._attention.scale
        return scaled

    def _attend(
        self, q_RHd: Tensor, kv: KeyValue, added: Tensor | None, store: BeamStore, rows: int
    ) -> Tensor:
        """Let the queries of a sentence's `W` rows meet its keys in one product: `(M, H * d)`."""
        places, width = store.num_places, store.beam_size
        kv_heads, dim = self._num_kv_heads, self._head_dim
        group = self._num_heads // kv_heads
        rows_of_heads = (places, kv_heads, group, width)  # X = P * K, r = G * W
        q_PKGWd = q_RHd.reshape(places, width, kv_heads, group, dim).permute(0, 2, 3, 1, 4)
        q_Xrd = q_PKGWd.reshape(places * kv_heads, group * width, dim)
        k_XSd, v_XSd = (part.flatten(0, 1) for part in kv)
        scores_XrS = head_product(q_Xrd, k_XSd.transpose(1, 2))
        scores_XrS = soft_cap(scores_XrS, self._attention.soft_cap)
        if added is not None:
            scores_XrS.view(*rows_of_heads, -1).add_(added)
        out_Xrd = head_product(scores_XrS.softmax(dim=-1), v_XSd)
        out_PWKGd = out_Xrd.view(*rows_of_heads, dim).permute(0, 3, 1, 2, 4)
        return with_rows(store.unplaced(out_PWKGd.reshape(places * width, -1)), rows)


class PlannedFeedForward:
    """`FeedForward`: `act(x W1 + b1) [* (x W3 + b3)]`; its last product belongs to the residual."""

    def __init__(self, ffn: FeedForward, precision: Precision) -> None:
        self._gated = ffn.value is not None
        inner = (ffn.up,) if ffn.value is None else (ffn.up, ffn.value)
        self._inner = PackedLinear(*inner, precision=precision)
        self._activation = ffn.activation
        self._relu = ffn.activation is F.relu and not self._gated
        self.output = PackedLinear(ffn.down, precision=precision)

    def hidden(self, x_MD: Tensor) -> Tensor:
        """Map `(M, D)` to `(M, F)`."""
        if self._relu:
            return self._inner(x_MD, relu=True)
        inner = self._inner(x_MD)
        if not self._gated:
            return self._activation(inner)
        gate_MF, value_MF = inner.chunk(2, dim=1)
        return self._activation(gate_MF) * value_MF


class PlannedLayer:
    """`Layer`: for whole sequences (an encoder, a prompt), and for the next token of each row."""

    def __init__(self, layer: Layer, precision: Precision) -> None:
        self._index = layer.index
        self._self_attn = PlannedAttention(layer.self_attn, precision, own=True)
        self._self_residual = layer.self_attn_residual
        self._cross_attn: PlannedAttention | None = None
        if layer.cross_attn is not None:
            self._cross_attn = PlannedAttention(layer.cross_attn, precision, own=False)
        self._cross_residual = layer.cross_attn_residual
        self._ffn = PlannedFeedForward(layer.ffn, precision)
        self._ffn_residual = layer.ffn_residual

    def encode(
        self, x_MD: Tensor, size_BL: tuple[int, int], mask: Tensor | None, info: PositionInfo
    ) -> tuple[Tensor, KeyValue]:
        """Return the vectors after this layer, and the keys and values of its self-attention."""
        found: list[KeyValue] = []

        def attend(x_MD: Tensor) -> Tensor:
            out_MX, kv = self._self_attn.encode(x_MD, size_BL, mask, info)
            found.append(kv)
            return out_MX

        x_MD = _add(self._self_residual, x_MD, attend, self._self_attn.output)
        x_MD = _add(self._ffn_residual, x_MD, self._ffn.hidden, self._ffn.output)
        return x_MD, found[0]

    def remember(self, memory_MD: Tensor, size_BL: tuple[int, int]) -> KeyValue:
        """Make the keys and values of the source."""
        if self._cross_attn is None:
            raise ValueError("this decoder was built without cross-attention")
        return self._cross_attn.remember(memory_MD, size_BL)

    def step(self, x_MD: Tensor, store: BeamStore, added: Tensor, info: PositionInfo) -> Tensor:
        """Return the vectors of the rows' next tokens after this layer."""
        own, cross = self._self_attn, self._cross_attn
        x_MD = _add(
            self._self_residual,
            x_MD,
            lambda x: own.step(x, self._index, store, added, info),
            own.output,
        )
        if cross is not None and self._cross_residual is not None:
            x_MD = _add(
                self._cross_residual,
                x_MD,
                lambda x: cross.look(x, self._index, store),
                cross.output,
            )
        return _add(self._ffn_residual, x_MD, self._ffn.hidden, self._ffn.output)


def _add(
    residual: Residual, x_MD: Tensor, body: Callable[[Tensor], Tensor], last: PackedLinear
) -> Tensor:
    """`Residual` around a sublayer whose last product adds to `x` what it computes."""
    if residual.pre:
        return last.plus(body(residual.norm(x_MD)), x_MD)
    kept_MD = x_MD if residual.alpha == 1.0 else residual.alpha * x_MD
    out_MD: Tensor = residual.norm(last.plus(body(x_MD), kept_MD))
    return out_MD
