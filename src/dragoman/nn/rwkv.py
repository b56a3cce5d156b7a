"""RWKV, version 4 (Peng et al., 2023): a recurrent layer that is trained like attention.

    wkv_t = sum_{i<t} e^{k_i - (t-1-i) w} v_i + e^{u + k_t} v_t, over the same sum without v

independently in each channel; `w = exp(decay)` and `u = bonus` are learned. Numerator and
denominator follow the recurrence `h_t = e^{-w} h_{t-1} + e^{k_t} (v_t, 1)` and are all that later
tokens need of the past. They are stored relative to the largest exponent among their terms,
`m_t = max(m_{t-1} - w, k_t)`, so that no key is too large. Both recurrences are the same `scan`
with different operations.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from dragoman.errors import InputError
from dragoman.nn.cache import NO_PAST, Cache, KeyValue, Past
from dragoman.nn.config import LayerConfig
from dragoman.nn.cpu.elementwise import sigmoid
from dragoman.nn.cpu.products import Linear
from dragoman.nn.init import init_gpt2, init_linear
from dragoman.nn.layers import Residual, Stack
from dragoman.nn.patterns.linear import Continued, StateStorage, no_autocast
from dragoman.nn.position.scheme import NO_POSITIONS, PositionInfo, Scheme

Operation = Callable[[Tensor, Tensor], Tensor]
STATE = 5  # vectors: the last inputs of both mixings, numerator, denominator, largest exponent


@dataclass(frozen=True, slots=True, kw_only=True)
class Rwkv:
    """RWKV layers, version 4 (Peng et al., 2023): time mixing and channel mixing, no attention.

    Every token takes a mean of the values up to it, whose weights decay with the distance at a rate
    that each channel learns. A config names it instead of the patterns of a decoder's layers.
    """

    kind: Literal["rwkv"] = "rwkv"


def check_rwkv(config: LayerConfig) -> None:
    """Raise InputError if a setting is for a part that RWKV's layers lack."""
    heads = ("num_kv_heads", "head_dim", "qkv_bias", "qk_norm")
    scores = ("attention_scale", "score_soft_cap", "attention_dropout")
    rest = ("ffn_bias", "ffn_dropout", "gated", "activation", "norm_position")
    found = {key: getattr(config, key) for key in (*heads, *scores, *rest)}
    neutral = (None, False, 0.0, "relu", "post", "pre", "sandwich")
    unused = {key: value for key, value in found.items() if value not in neutral}
    scheme = config.positions
    if scheme.changes_scores or type(scheme).make_rotation is not Scheme.make_rotation:
        unused["positions"] = scheme.kind
    for key, value in unused.items():
        raise InputError(
            f'patterns = ["rwkv"] has no use for {key} = {value}: leave one of the two out'
        )


def scan(factor_BLxD: Tensor, added_BLyD: Tensor, times: Operation, plus: Operation) -> Tensor:
    """Return `h_t = plus(times(factor_t, h_{t-1}), added_t)`, `h_0 = added_0`, `(B, L, y, D)`.

    Runs in `sqrt(L)` chunks of `sqrt(L)` positions: first all chunks at the same time, then the
    carry from chunk to chunk. So about `3 sqrt(L)` operations on large tensors replace `2 L` on
    small ones. `times` must distribute over `plus`, as for sums of products.
    """
    length, size = added_BLyD.shape[1], math.isqrt(added_BLyD.shape[1])
    factor, h = (
        F.pad(x, (0, 0, 0, 0, 0, -length % size)).unflatten(1, (-1, size))
        for x in (factor_BLxD, added_BLyD)
    )
    for place in range(1, size):
        h[:, :, place] = plus(times(factor[:, :, place], h[:, :, place - 1]), h[:, :, place])
        factor[:, :, place] = times(factor[:, :, place], factor[:, :, place - 1])
    for chunk in range(1, h.shape[1]):
        h[:, chunk] = plus(times(factor[:, chunk], h[:, chunk - 1, -1:]), h[:, chunk])
    h_BLyD: Tensor = h.flatten(1, 2)[:, :length]
    return h_BLyD


class _LinearScan(torch.autograd.Function):
    """`scan` of sums of products; its gradient is the same scan in reverse."""

    @staticmethod
    def forward(ctx: Any, factor_BL1D: Tensor, added_BLyD: Tensor) -> Tensor:  # noqa: ANN401 (torch's context)
        h_BLyD = scan(factor_BL1D, added_BLyD, torch.mul, torch.add)
        ctx.save_for_backward(factor_BL1D, h_BLyD)
        return h_BLyD

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, Tensor]:  # noqa: ANN401
        factor_BL1D, h_BLyD = ctx.saved_tensors
        later_BL1D = factor_BL1D.roll(-1, dims=1)  # a scan ignores its first factor
        back = scan(later_BL1D.flip(1), grads[0].flip(1), torch.mul, torch.add).flip(1)
        slopes_BL1D = (back[:, 1:] * h_BLyD[:, :-1]).sum(dim=2, keepdim=True)
        return F.pad(slopes_BL1D, (0, 0, 0, 0, 1, 0)), back


def wkv(
    k_BLD: Tensor, v_BLD: Tensor, decay_D: Tensor, bonus_D: Tensor, state_B3D: Tensor
) -> tuple[Tensor, Tensor]:
    """Return the weighted means `(B, L, D)` and the state after them, `(B, 3, D)`.

    The state is numerator, denominator and largest exponent; before the first token 0, 0 and -inf.
    """
    w_D = decay_D.exp()
    with torch.no_grad():  # cancels in the quotient: any value would do
        k_BL1D = torch.cat([state_B3D[:, 2:], k_BLD], dim=1)[:, :, None]
        largest = scan((-w_D).expand(k_BL1D.shape), k_BL1D, torch.add, torch.maximum)[:, :, 0]
    before_BLD, after_BLD = largest[:, :-1], largest[:, 1:]
    weight_BLD = (k_BLD - after_BLD).exp()
    new_BL2D = torch.stack([weight_BLD * v_BLD, weight_BLD], dim=2)
    factor_BLD = F.pad((before_BLD - w_D - after_BLD).exp(), (0, 0, 1, 0))
    sums_BL2D: Tensor = _LinearScan.apply(  # type: ignore[no-untyped-call]
        factor_BLD[:, :, None], torch.cat([state_B3D[:, None, :2], new_BL2D], dim=1)
    )
    own_BLD = k_BLD + bonus_D
    top_BLD = torch.maximum(before_BLD, own_BLD).detach()
    own_BLD, past_BLD = (own_BLD - top_BLD).exp(), (before_BLD - top_BLD).exp()
    numerator_BLD, denominator_BLD = sums_BL2D[:, :-1].unbind(dim=2)
    out_BLD = past_BLD * numerator_BLD + own_BLD * v_BLD
    out_BLD = out_BLD / (past_BLD * denominator_BLD + own_BLD)
    return out_BLD, torch.cat([sums_BL2D[:, -1], largest[:, -1:]], dim=1)


def _mixed(x_BLD: Tensor, last_B1D: Tensor, *mixes: Tensor) -> tuple[list[Tensor], Tensor]:
    """Return `mix * x_t + (1 - mix) * x_{t-1}` for each mix, and the last input."""
    before_BLD, last_B1D = torch.cat([last_B1D, x_BLD], dim=1).split([x_BLD.shape[1], 1], dim=1)
    return [before_BLD + (x_BLD - before_BLD) * mix_D for mix_D in mixes], last_B1D


class TimeMix(nn.Module):
    """`W_o (sigmoid(r) * wkv(k, v))`, each of `r, k, v = W (mix * x_t + (1 - mix) * x_{t-1})`.

    Peng et al. (2023), section 3. Mixes, decay and bonus are initialised as in its appendix: they
    differ by channel and layer depth, so that only some channels have a long memory.
    """

    def __init__(self, d_model: int, index: int, num_layers: int) -> None:
        super().__init__()
        height, left = index / max(1, num_layers - 1), 1 - index / num_layers
        channel_D = torch.arange(d_model)
        share_D, place_D = channel_D / d_model, channel_D / max(1, d_model - 1)
        self.mix_key = nn.Parameter(share_D**left)
        self.mix_value = nn.Parameter(share_D**left + 0.3 * height)
        self.mix_receptance = nn.Parameter(share_D ** (0.5 * left))
        self.decay = nn.Parameter(8 * place_D ** (0.7 + 1.3 * height) - 5)
        self.bonus = nn.Parameter(math.log(0.3) + ((channel_D + 1) % 3 - 1) * 0.5)
        self.key, self.value, self.receptance, self.output = (
            Linear(d_model, d_model, bias=False) for _ in range(4)
        )
        for linear in (self.key, self.value, self.receptance, self.output):
            init_linear(linear)

    def forward(self, x_BLD: Tensor, state_B4D: Tensor) -> tuple[Tensor, Tensor]:
        """Map `(B, L, D)` to `(B, L, D)`; the state is the last input, then the state of `wkv`."""
        mixes = (self.mix_key, self.mix_value, self.mix_receptance)
        (k_BLD, v_BLD, r_BLD), last_B1D = _mixed(x_BLD, state_B4D[:, :1], *mixes)
        k_BLD, v_BLD, r_BLD = self.key(k_BLD), self.value(v_BLD), sigmoid(self.receptance(r_BLD))
        with no_autocast(x_BLD.device.type):  # sums over a text need float32
            parts = (k_BLD, v_BLD, self.decay, self.bonus, state_B4D[:, 1:])
            mean_BLD, state_B3D = wkv(*(x.to(state_B4D.dtype) for x in parts))
        out_BLD: Tensor = self.output(r_BLD * mean_BLD.to(r_BLD.dtype))
        return out_BLD, torch.cat([last_B1D, state_B3D], dim=1)


class ChannelMix(nn.Module):
    """`sigmoid(r) * W_o relu(k)^2`, with `r` and `k` as in `TimeMix` and `k` of width `d_ff`."""

    def __init__(self, d_model: int, d_ff: int, index: int, num_layers: int) -> None:
        super().__init__()
        share_D = (torch.arange(d_model) / d_model) ** (1 - index / num_layers)
        self.mix_key, self.mix_receptance = nn.Parameter(share_D), nn.Parameter(share_D.clone())
        self.key = Linear(d_model, d_ff, bias=False)
        self.receptance = Linear(d_model, d_model, bias=False)
        self.output = Linear(d_ff, d_model, bias=False)
        for linear in (self.key, self.receptance, self.output):
            init_linear(linear)

    def forward(self, x_BLD: Tensor, last_B1D: Tensor) -> tuple[Tensor, Tensor]:
        """Map `(B, L, D)` to `(B, L, D)`; the state is the last input."""
        (k_BLD, r_BLD), last_B1D = _mixed(x_BLD, last_B1D, self.mix_key, self.mix_receptance)
        k_BLF = F.relu(self.key(k_BLD))
        out_BLD: Tensor = sigmoid(self.receptance(r_BLD)) * self.output(k_BLF * k_BLF)
        return out_BLD, last_B1D


class RwkvLayer(nn.Module):
    """Time mixing and channel mixing, each in a residual connection."""

    def __init__(self, config: LayerConfig, index: int, num_layers: int) -> None:
        super().__init__()
        self.index = index
        self.time_mix = TimeMix(config.d_model, index, num_layers)
        self.channel_mix = ChannelMix(config.d_model, config.d_ff, index, num_layers)
        self.time_mix_residual, self.channel_mix_residual = Residual(config), Residual(config)

    def forward(self, x_NTD: Tensor, past: Past = NO_PAST) -> Tensor:
        """Map `(N, T, D)` to `(N, T, D)`; `past` stores the state between calls."""
        kv = past.extend(self.index, KeyValue(x_NTD[:, None], x_NTD[:, None]))
        storage = kv.storage if isinstance(kv, Continued) else None
        state_N5D = None if storage is None else storage.state_BKde
        if state_N5D is None:
            dtype = torch.promote_types(x_NTD.dtype, torch.float32)
            state_N5D = x_NTD.new_zeros(len(x_NTD), STATE, x_NTD.shape[2], dtype=dtype)
            state_N5D[:, 3] = -torch.inf
        kept = list(state_N5D.split([4, 1], dim=1))

        def mix_time(x_NTD: Tensor) -> Tensor:
            mixed_NTD: Tensor
            mixed_NTD, kept[0] = self.time_mix(x_NTD, kept[0])
            return mixed_NTD

        def mix_channels(x_NTD: Tensor) -> Tensor:
            mixed_NTD: Tensor
            mixed_NTD, kept[1] = self.channel_mix(x_NTD, kept[1])
            return mixed_NTD

        x_NTD = self.time_mix_residual(x_NTD, mix_time)
        out_NTD: Tensor = self.channel_mix_residual(x_NTD, mix_channels)
        if storage is not None:
            storage.state_BKde = torch.cat(kept, dim=1)
        return out_NTD


class RwkvDecoder(Stack):
    """A stack of RWKV layers, with a cache of five vectors per layer at any length.

    A layer cannot hide a token that it has already read, so rows may be padded only at their end.
    """

    counts_places = True

    def __init__(self, config: LayerConfig, num_layers: int) -> None:
        layers = (RwkvLayer(config, index, num_layers) for index in range(num_layers))
        super().__init__(config, layers, causal=True)
        if config.init == "gpt2":
            mixes = [each for each in self.modules() if isinstance(each, TimeMix | ChannelMix)]
            linears = [each for mix in mixes for each in mix.children() if isinstance(each, Linear)]
            ends = [mix.output for mix in mixes]
            init_gpt2([each for each in linears if each not in ends], ends, num_layers)

    def make_cache(self) -> Cache:
        """Make an empty cache of states."""
        return Cache([StateStorage() for _ in self.layers])

    def forward(
        self,
        x_NTD: Tensor,
        past: Past = NO_PAST,
        mask: Tensor | None = None,
        info: PositionInfo = NO_POSITIONS,
    ) -> Tensor:
        """Map embeddings `(N, T, D)` to hidden states `(N, T, D)`.

        Raises ValueError for packed documents and for a mask that hides a token from a later one.
        """
        if info.pack is not None:
            raise ValueError("rwkv reads a row from its start: it takes no packed documents")
        if mask is not None and (
            mask.shape[-2] > 1 or bool((mask[..., 1:] & ~mask[..., :-1]).any())
        ):
            raise ValueError("rwkv cannot hide a token from a later one: pad rows at their end")
        for layer in self.layers:
            x_NTD = self._run(layer, x_NTD, past)
        hidden_NTD: Tensor = self.final_norm(x_NTD)
        return hidden_NTD
