"""Layers and stacks of the encoder and the decoder (paper, section 3.1, figure 1).

The same parts serve three variants: an encoder, a decoder with cross-attention (the paper), and a
decoder without it (GPT). Positions and masks are made once per call of a stack and passed to its
layers.
"""

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from itertools import cycle, islice
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from dragoman.nn.cache import NO_PAST, Cache, KeyValue, Past
from dragoman.nn.config import LayerConfig
from dragoman.nn.cpu.elementwise import Dropout
from dragoman.nn.init import DeepNorm
from dragoman.nn.patterns.packed import Documents
from dragoman.nn.patterns.pattern import Causal, Full, Pattern
from dragoman.nn.position.scheme import NO_POSITIONS, PositionInfo, Positions


class Memory(NamedTuple):
    """What cross-attention attends to."""

    kv: KeyValue
    """Keys and values of the source, `B` rows."""
    mask: Tensor | None
    """True where the source is not padding."""


class Residual(nn.Module):
    """Residual around `f`: post-norm `norm(x + drop(f(x)))`, pre-norm `x + drop(f(norm(x)))`.

    DeepNorm is post-norm with a stronger residual branch, `norm(alpha x + ...)`. The sandwich (Ding
    et al., 2021; Gemma 2) is pre-norm with a second norm, `x + drop(out_norm(f(norm(x))))`; of its
    two norms, "branch" has the second alone (OLMo 2).
    """

    def __init__(self, config: LayerConfig, alpha: float = 1.0) -> None:
        super().__init__()
        place = config.norm_position
        self.norm = config.make_norm() if place != "branch" else nn.Identity()
        self.out_norm = config.make_norm() if place in {"sandwich", "branch"} else nn.Identity()
        self.dropout = Dropout(config.dropout)
        self.pre = place in {"pre", "sandwich", "branch"}
        self.alpha = alpha

    def forward(self, x_BLD: Tensor, sublayer: Callable[[Tensor], Tensor]) -> Tensor:
        """Apply the sublayer, dropout, the residual connection and the norm."""
        if self.pre:
            out_BLD: Tensor = x_BLD + self.dropout(self.out_norm(sublayer(self.norm(x_BLD))))
        else:
            kept_BLD = x_BLD if self.alpha == 1.0 else self.alpha * x_BLD
            out_BLD = self.norm(kept_BLD + self.dropout(sublayer(x_BLD)))
        return out_BLD


class Layer(nn.Module):
    """Self-attention, cross-attention over the encoder's output (in decoders), then feed-forward.

    Encoders, and decoders without an encoder (GPT), have no cross-attention.
    """

    def __init__(
        self,
        config: LayerConfig,
        index: int,
        pattern: Pattern,
        *,
        cross_attention: bool = False,
        alpha: float = 1.0,
    ) -> None:
        super().__init__()
        self.index = index
        self.self_attn = config.make_attention(pattern)
        self.self_attn_residual = Residual(config, alpha)
        self.cross_attn = config.make_attention(Full()) if cross_attention else None
        self.cross_attn_residual = Residual(config, alpha) if cross_attention else None
        self.ffn = config.make_ffn()
        self.ffn_residual = Residual(config, alpha)

    def forward(
        self,
        x_NTD: Tensor,
        mask: Tensor | None = None,
        info: PositionInfo = NO_POSITIONS,
        past: Past = NO_PAST,
        memory: Memory | None = None,
    ) -> Tensor:
        """Map `(N, T, D)` to `(N, T, D)`; `mask` hides padding among the layer's own keys."""
        info = info.of_layer(self.index)

        def self_attention(x_NTD: Tensor) -> Tensor:
            kv = past.extend(self.index, self.self_attn.project_kv(x_NTD, info))
            out_NTD: Tensor = self.self_attn(x_NTD, kv, mask, info)
            return out_NTD

        x_NTD = self.self_attn_residual(x_NTD, self_attention)
        if memory is not None and self.cross_attn_residual is not None:
            x_NTD = self.cross_attn_residual(x_NTD, lambda x: self._cross_attention(x, memory))
        out_NTD: Tensor = self.ffn_residual(x_NTD, self.ffn)
        return out_NTD

    def project_memory(self, memory_BSD: Tensor) -> KeyValue:
        """Project the memory to the keys and values of cross-attention."""
        if self.cross_attn is None:
            raise ValueError("this decoder was built without cross-attention")
        return self.cross_attn.project_kv(memory_BSD)

    def _cross_attention(self, x_NTD: Tensor, memory: Memory) -> Tensor:
        """Attend to the memory, which has one row for each of `B` sentences; `N = B * W`.

        The `W` beams of a sentence are adjacent rows and share its memory: they are folded to
        `(B, W * T, D)`, a view, since queries do not see each other here.
        """
        folded = x_NTD.reshape(memory.kv.k_BKSd.shape[0], -1, x_NTD.shape[-1])
        out: Tensor = self.cross_attn(folded, memory.kv, memory.mask)  # type: ignore[misc] # not None here
        return out.view_as(x_NTD)


class Stack(nn.Module):
    """A sequence of layers, with a final norm if the config has one (pre-norm needs it).

    The rotary angles or score biases of a position scheme belong to the stack: all layers share
    them, as in T5, unless the scheme tells layers apart.
    """

    def __init__(self, config: LayerConfig, layers: Iterable[nn.Module], *, causal: bool) -> None:
        super().__init__()
        self.layers = nn.ModuleList(layers)
        self.final_norm = config.make_norm() if config.ends_in_norm else nn.Identity()
        self.layer_drop = config.layer_drop
        self.checkpointing = False
        """Whether activations are recomputed in the backward pass instead of stored."""
        self.rotation = config.positions.make_rotation(config.width)
        self.bias = config.positions.make_biases(len(self.layers), config.num_heads, causal=causal)

    def each_layer(self) -> list[Layer]:
        """Return the attention layers, first to last."""
        return [layer for layer in self.layers if isinstance(layer, Layer)]

    def position_info(
        self, like: Tensor, positions: Positions, documents: Documents | None = None, ahead: int = 0
    ) -> PositionInfo:
        """Return the position information of a call, after which `ahead` known tokens follow."""
        angles = None if self.rotation is None else self.rotation.angles(positions, like, ahead)
        return PositionInfo(angles, self.bias, None if documents is None else documents.pack)

    def _run(self, layer: Callable[..., Tensor], x_BLD: Tensor, *rest: object) -> Tensor:
        """Run one layer, with layer drop and activation checkpointing in training.

        A layer is skipped as a whole with probability `layer_drop` (Fan et al., 2020). Activation
        checkpointing (Chen et al., 2016) stores only a layer's input and recomputes the rest with
        the same random numbers, so the results do not change.
        """
        if self.training and self.layer_drop and float(torch.rand(())) < self.layer_drop:
            return x_BLD
        if self.checkpointing and torch.is_grad_enabled():
            layer = partial(checkpoint, layer, use_reentrant=False)
        return layer(x_BLD, *rest)


class Encoder(Stack):
    """A stack of layers without cross-attention; the layers cycle through `patterns`."""

    def __init__(
        self,
        config: LayerConfig,
        num_layers: int,
        patterns: Sequence[Pattern] = (),
        depth: DeepNorm | None = None,
    ) -> None:
        alpha = depth.alpha if depth else 1.0
        each = enumerate(islice(cycle(patterns or (Full(),)), num_layers))
        layers = (Layer(config, index, pattern, alpha=alpha) for index, pattern in each)
        super().__init__(config, layers, causal=False)
        config.init_stack(self, depth)

    def forward(
        self, x_BSD: Tensor, mask: Tensor | None = None, info: PositionInfo | None = None
    ) -> Tensor:
        """Map embeddings `(B, S, D)` to the memory `(B, S, D)`; positions are `0 ... S - 1`."""
        info = info or self.position_info(x_BSD, range(x_BSD.shape[1]))
        for layer in self.layers:
            x_BSD = self._run(layer, x_BSD, mask, info)
        memory_BSD: Tensor = self.final_norm(x_BSD)
        return memory_BSD


class Decoder(Stack):
    """A stack of layers with cross-attention (the paper) or without (GPT).

    The layers cycle through the `patterns` of self-attention, which are all causal.
    """

    def __init__(
        self,
        config: LayerConfig,
        num_layers: int,
        patterns: Sequence[Pattern] = (),
        depth: DeepNorm | None = None,
        *,
        cross_attention: bool = True,
    ) -> None:
        alpha = depth.alpha if depth else 1.0
        each = enumerate(islice(cycle(patterns or (Causal(),)), num_layers))
        layers = (
            Layer(config, index, pattern, cross_attention=cross_attention, alpha=alpha)
            for index, pattern in each
        )
        super().__init__(config, layers, causal=True)
        config.init_stack(self, depth)
        self.counts_places = any(pattern.counts_places for pattern in patterns)

    def project_memory(self, memory_BSD: Tensor) -> list[KeyValue]:
        """Project the memory, once per source, to each layer's keys and values."""
        return [layer.project_memory(memory_BSD) for layer in self.each_layer()]

    def make_cache(self) -> Cache:
        """Make an empty cache; each layer's pattern chooses its storage."""
        return Cache([layer.self_attn.pattern.make_storage() for layer in self.each_layer()])

    def forward(
        self,
        x_NTD: Tensor,
        past: Past = NO_PAST,
        mask: Tensor | None = None,
        info: PositionInfo | None = None,
        memory: Sequence[Memory] | None = None,
    ) -> Tensor:
        """Map embeddings of the target `(N, T, D)` to hidden states `(N, T, D)`.

        `memory` contains what each layer's cross-attention attends to. By default the positions
        follow those of `past`; `info` overrides them.
        """
        info = info or self.position_info(x_NTD, range(past.length, past.length + x_NTD.shape[1]))
        for index, layer in enumerate(self.layers):
            own = None if memory is None else memory[index]
            x_NTD = self._run(layer, x_NTD, mask, info, past, own)
        hidden_NTD: Tensor = self.final_norm(x_NTD)
        return hidden_NTD
