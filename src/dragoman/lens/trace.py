"""Tracing attention: the weights of every layer and head, recorded from outside.

`Watched` makes a view of a model (the same weights in its own modules) and replaces the pattern of
each attention in the view by a `Recording` of it. The model itself, which other threads may use, is
unchanged. The recording computes the weights of the wanted heads by the formula, from the queries,
keys and values, the mask and the bias of each call; then the pattern runs its fast path. So
decoding needs no flag for this, and there is no cost if nothing is watched. Unwanted layers record
nothing.

The three `trace_` functions let a model read a text again, in the same way as its task: token by
token with a cache if it generates, all at once if it only reads.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Generic, TypeVar

import torch
from torch import Tensor, nn

from dragoman.decode import Head
from dragoman.errors import InputError
from dragoman.lens.choices import Wanted
from dragoman.lens.inspection import MapName
from dragoman.models import DecoderOnly, EncoderDecoder, EncoderOnly
from dragoman.nn import Decoder, Encoder, MultiHeadAttention, evaluation_view, inference
from dragoman.nn.patterns.recording import Recording

ModelT = TypeVar("ModelT", bound=nn.Module)

MOST_WEIGHTS = 1_000_000
"""Maximum weights of a map that are kept: what a file and a page can contain. Beyond this, layers
are left out, then heads."""


ALL = Wanted()


@dataclass(frozen=True, slots=True, kw_only=True)
class Traced:
    """The weights of one kind of attention while a model read one text."""

    layers: tuple[int, ...]
    """The layers in `weights_LHTS`."""
    heads: tuple[int, ...]
    """The heads in `weights_LHTS`, for each layer."""
    num_layers: int
    """Number of layers of the model."""
    num_heads: int
    """Number of heads of each layer."""
    weights_LHTS: Tensor
    """The weights (float32): row t of the T queries over the S keys."""
    means: Mapping[int, Tensor]
    """The mean over all or some heads, (T, S), of each averaged layer."""


# ---------------------------------------------------------------- watching


class Watch:
    """Collects the weights of the given heads in each call of one attention, for one row.

    No other heads are computed, unless the mean over the heads `averaged` is also wanted.
    """

    def __init__(
        self, attention: MultiHeadAttention, heads: Sequence[int], averaged: slice | None
    ) -> None:
        self.heads = list(heads)
        self.averaged = averaged
        self._calls: list[Tensor] = []
        self._is_causal = attention.pattern.is_causal
        only = self.heads if averaged is None else None
        attention.pattern = Recording(of=attention.pattern, see=self._keep, heads=only)

    def _keep(self, weights_BHTS: Tensor) -> None:
        """Store the weights of a call and, as an additional head, the mean."""
        weights_HTS = weights_BHTS[0].float().cpu()
        if self.averaged is not None:
            mean_TS = weights_HTS[self.averaged].mean(0)
            weights_HTS = torch.cat([weights_HTS[self.heads], mean_TS[None]])
        self._calls.append(weights_HTS)

    def weights(self) -> Tensor:
        """Return the weights of the given heads, then the mean, with the calls' rows stacked.

        Causal queries are the last of the keys in their call; keys further back have left the
        cache, and no query sees them.
        """
        if not self._is_causal:
            return torch.cat(self._calls, dim=1)
        length = sum(call_HTS.shape[1] for call_HTS in self._calls)
        joined_HTS = self._calls[0].new_zeros(self._calls[0].shape[0], length, length)
        end = 0
        for call_HTS in self._calls:
            start, end = end, end + call_HTS.shape[1]
            joined_HTS[:, start:end, end - call_HTS.shape[2] : end] = call_HTS
        return joined_HTS


def attentions(model: nn.Module) -> dict[MapName, list[MultiHeadAttention]]:
    """Return the attention modules of a model by kind, from the first layer to the last."""
    stacks = list(model.modules())
    encoders = [layer for s in stacks if isinstance(s, Encoder) for layer in s.each_layer()]
    decoders = [layer for s in stacks if isinstance(s, Decoder) for layer in s.each_layer()]
    found: dict[MapName, list[MultiHeadAttention]] = {
        "encoder": [layer.self_attn for layer in encoders],
        "decoder": [layer.self_attn for layer in decoders],
        "cross": [layer.cross_attn for layer in decoders if layer.cross_attn is not None],
    }
    if not any(found.values()):
        raise InputError("The model has no attention to look at: its layers are RWKV's.")
    return {name: modules for name, modules in found.items() if modules}


class Watched(Generic[ModelT]):
    """A view of a model that reads one row, once, while its attention is recorded.

    `sizes` are the numbers of weights per head in each kind of attention, of which at most
    `MOST_WEIGHTS` are kept. `averaged` are the layers whose mean over all heads, or over the heads
    `of`, is wanted.
    """

    def __init__(
        self,
        model: ModelT,
        sizes: Mapping[MapName, int] | None = None,
        wanted: Wanted = ALL,
        averaged: Mapping[MapName, slice] | None = None,
        of: slice = slice(None),
    ) -> None:
        self.model = evaluation_view(model)
        self._modules = attentions(self.model)
        self._watches: dict[MapName, dict[int, Watch]] = {}
        for name, modules in self._modules.items():
            layers, heads = choose_heads(modules, (sizes or {}).get(name, 0), wanted)
            means = range(len(modules))[(averaged or {}).get(name, slice(0))]
            watches = self._watches[name] = {}
            for n in sorted({*layers, *means}):
                chosen = heads if n in layers else ()
                watches[n] = Watch(modules[n], chosen, of if n in means else None)

    def traced(self) -> dict[MapName, Traced]:
        """Return what was recorded."""
        found: dict[MapName, Traced] = {}
        for name, watches in self._watches.items():
            modules = self._modules[name]
            weights = {layer: watch.weights() for layer, watch in watches.items()}
            kept = {layer: watch.heads for layer, watch in watches.items() if watch.heads}
            (heads, *_) = kept.values()
            found[name] = Traced(
                layers=tuple(kept),
                heads=tuple(heads),
                num_layers=len(modules),
                num_heads=modules[0].num_heads,
                weights_LHTS=torch.stack([weights[layer][: len(heads)] for layer in kept]),
                means={
                    n: weights[n][-1] for n, watch in watches.items() if watch.averaged is not None
                },
            )
        return found


def choose_heads(
    modules: Sequence[MultiHeadAttention], size: int, wanted: Wanted = ALL, most: int = MOST_WEIGHTS
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Choose the layers and heads that fit, in a map with `size` weights per head.

    As many of the wanted layers (the last one, if there are none) as fit with all wanted heads,
    evenly spread, always including the last; if not even one fits, its first wanted heads.
    """
    layers, heads = list(range(len(modules))), tuple(range(modules[0].num_heads))
    if wanted.layers is not None:
        layers = [layer for layer in layers if layer in wanted.layers] or layers[-1:]
    if wanted.heads is not None:
        heads = tuple(head for head in heads if head in wanted.heads)
    room = most // max(1, len(heads) * size)
    if room >= len(layers):
        return tuple(layers), heads
    if room == 0:
        return (layers[-1],), heads[: max(1, most // size)]
    spread = {-1 - round(step * (len(layers) - 1) / max(1, room - 1)) for step in range(room)}
    return tuple(layers[place] for place in sorted(spread)), heads


# ---------------------------------------------------------------- reading a text once more


def trace_translation(
    model: EncoderDecoder,
    src_ids: Sequence[int],
    read_ids: Sequence[int],
    wanted: Wanted = ALL,
    alignment: Sequence[int] | None = None,
) -> dict[MapName, Traced]:
    """Trace attention while a translation is written, token by token with the decoding cache.

    `src_ids` end with eos; `read_ids` are bos and the translation without its last token. One
    cross-attention has a mean, the word alignment: the last layer's over all heads, or the head of
    the layer in `alignment`.
    """
    S, T = len(src_ids), len(read_ids)
    sizes: dict[MapName, int] = {"encoder": S * S, "decoder": T * T, "cross": T * S}
    layers, heads, aligning = slice(-1, None), slice(None), Head(*alignment or ())
    if alignment is not None:
        layers, heads = (slice(number, number + 1) for number in alignment[:2])
    watched = Watched(model, sizes, wanted, {"cross": layers}, heads)
    with inference(watched.model) as device:
        state = watched.model.start(torch.tensor([src_ids], device=device), 1)
        for id_ in read_ids:
            watched.model.step(torch.tensor([id_], device=device), state)
        traced = watched.traced()
    means = {layer: aligning.of_tokens(mean) for layer, mean in traced["cross"].means.items()}
    return {**traced, "cross": replace(traced["cross"], means=means)}


def trace_continuation(
    model: DecoderOnly, prompt_ids: Sequence[int], read_ids: Sequence[int], wanted: Wanted = ALL
) -> tuple[dict[MapName, Traced], Tensor]:
    """Trace attention while a text is continued; also return logits (P, V) after the prompt tokens.

    The prompt is read at once, as in generation; the `read_ids` that follow are read token by
    token.
    """
    length = len(prompt_ids) + len(read_ids)
    watched = Watched(model, {"decoder": length * length}, wanted)
    with inference(watched.model) as device:
        prompt_BP = torch.tensor([prompt_ids], device=device)
        state = watched.model.start(prompt_BP[:, :1], 1)  # reads nothing yet
        logits_PV = watched.model.extend(prompt_BP, state)[0].float()
        for id_ in read_ids:
            watched.model.step(torch.tensor([id_], device=device), state)
        return watched.traced(), logits_PV


def trace_text(
    model: EncoderOnly,
    ids: Sequence[int],
    wanted: Wanted = ALL,
    *,
    averaged: bool = False,
    words_BLF: Tensor | None = None,
) -> tuple[dict[MapName, Traced], Tensor]:
    """Trace attention while a text is read; also return the head's output, without the batch axis.

    `averaged` requests the mean over all heads of every layer, which rollout needs; `words_BLF` are
    the features of the words, for a model that takes them.
    """
    means: dict[MapName, slice] = {"encoder": slice(None)} if averaged else {}
    watched = Watched(model, {"encoder": len(ids) ** 2}, wanted, means)
    with inference(watched.model) as device:
        words_BLF = None if words_BLF is None else words_BLF.to(device)
        logits = watched.model(torch.tensor([ids], device=device), words_BLF=words_BLF)[0].float()
        return watched.traced(), logits
