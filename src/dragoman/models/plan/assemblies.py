"""The plans of the two models that write: `EncoderDecoder` and `DecoderOnly`, read flat."""

from contextlib import AbstractContextManager, nullcontext
from copy import copy
from typing import cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.utils import skip_init

from dragoman.models.decoder_only import DecoderOnly
from dragoman.models.encoder_decoder import EncoderDecoder
from dragoman.models.plan.ancestors import AncestorStore, Sources
from dragoman.models.plan.layers import PlannedLayer, PlannedNorm
from dragoman.models.plan.products import DTYPES, familiar_rows, prepared, with_rows
from dragoman.models.plan.program import Program
from dragoman.models.plan.quantized import QuantizedLinear
from dragoman.models.plan.store import BeamStore
from dragoman.nn import Arithmetic, Embedding, KeyValue, padding_mask, soft_cap
from dragoman.nn.cpu.native import Functions
from dragoman.nn.dot_product import Bias, additive
from dragoman.nn.layers import Stack

Store = BeamStore | AncestorStore
ALIGNED = 16
"""Sources are padded to a multiple of this many tokens: a softmax in bfloat16 fills registers."""


class PlannedStack:
    """`Encoder` or `Decoder`, with the embedding before it."""

    def __init__(
        self,
        embedding: Embedding,
        stack: Stack,
        arithmetic: Arithmetic,
        functions: Functions | None,
    ) -> None:
        self.layers = [PlannedLayer(layer, arithmetic, functions) for layer in stack.each_layer()]
        self._embedding = embedding
        self._stack = stack
        self._final_norm = PlannedNorm(stack.final_norm, functions)
        self._dtype = DTYPES[arithmetic]
        capped = any(layer.self_attn.soft_cap for layer in stack.each_layer())
        self._functions = None if capped else functions
        info = stack.position_info(embedding.weight[None, :1], range(1))
        self.is_biased = info.bias is not None
        """Whether positions add something to the scores."""
        self._compiled_products = arithmetic == "int8" and functions is not None
        self._recorded = self._compiled_products and self._functions is not None
        self._recorded = self._recorded and all(layer.recorded for layer in self.layers)
        self._is_normed = not isinstance(stack.final_norm, nn.Identity)
        self._recorded = self._recorded and (self._final_norm.recorded or not self._is_normed)

    def _rows(self, rows: int) -> int:
        """The number of rows to compute with, for a wanted number."""
        return rows if self._compiled_products else familiar_rows(rows)

    def sources(self, mask_BS: Tensor) -> Sources | None:
        """Sentences to attend to, where what is compiled can; the mask is true at tokens.

        Tokens are at the beginning of each.
        """
        if self._functions is None or not bool((mask_BS[:, 1:] <= mask_BS[:, :-1]).all()):
            return None
        attention = self._stack.each_layer()[0].self_attn
        sizes = (attention.num_heads, attention.num_kv_heads, attention.head_dim)
        return Sources(self._functions, sizes, mask_BS)

    def encode(
        self, ids_BL: Tensor, mask: Tensor | Sources | None
    ) -> tuple[Tensor, list[KeyValue]]:
        """Read whole sequences: last hidden states `(M, D)`, keys and values of each layer."""
        size = (ids_BL.shape[0], ids_BL.shape[1])
        x_BLD = self._embedding.embed(ids_BL, range(size[1])).to(self._dtype)
        info = self._stack.position_info(x_BLD, range(size[1]))
        x_MD = with_rows(x_BLD.flatten(0, 1), self._rows(size[0] * size[1]))
        if isinstance(mask, Sources):  # every token attends to its own sentence
            mask.rows_at(torch.arange(size[0], dtype=torch.int32).repeat_interleave(size[1]))
        kvs = []
        for layer in self.layers:
            x_MD, kv = layer.encode(x_MD, size, mask, info)
            kvs.append(kv)
        return self._final_norm(x_MD), kvs

    def step(self, ids_N: Tensor, store: Store) -> Tensor:
        """Read one more token of each row: last hidden states, `(M, D)`."""
        place = range(store.length, store.length + 1)
        added = store.begin_step(len(ids_N))
        x_ND = self._embedding.embed(ids_N[:, None], place)[:, 0].to(self._dtype)
        info = self._stack.position_info(x_ND, place)
        if isinstance(store, AncestorStore):
            store.turn_by(info.angles)
            if info.bias is not None:
                store.add(_bias(info.bias, store, store.length))
            if self._recorded:
                if store.program is None:
                    store.program = self._record(store, store.most_rows, x_ND.shape[1])
                return store.program.run(x_ND)
        if info.bias is not None and added is not None and isinstance(store, BeamStore):
            width = store.beam_size
            bias_HC = _bias(info.bias, store, added.shape[-1] // width)
            bias_KG1C = bias_HC.unflatten(0, (store.num_kv_heads, -1))[:, :, None]
            added = added + bias_KG1C.repeat_interleave(width, dim=3)
        x_MD = with_rows(x_ND, self._rows(len(x_ND)))
        for layer in self.layers:
            x_MD = layer.step(x_MD, store, added, info)
        return self._final_norm(x_MD)

    def _record(self, store: AncestorStore, rows: int, columns: int) -> Program:
        """List what `step` computes with this store, for this many rows or fewer."""
        program = Program(cast("Functions", self._functions), rows, columns)
        for layer in self.layers:
            layer.record(program, program.input_RX, store)
        if self._is_normed:
            self._final_norm.record(program, program.input_RX, program.input_RX)
        return program.finish()

    def empty_store(self, num_sentences: int, beam_size: int, *, compiled: bool = True) -> Store:
        """Make the store in which decoding keeps keys and values."""
        attention = self._stack.each_layer()[0].self_attn
        sizes = (num_sentences, beam_size, attention.num_kv_heads, attention.head_dim)
        if self._functions is not None and compiled:
            return AncestorStore(self._functions, sizes, attention.num_heads, len(self.layers))
        return BeamStore(sizes, len(self.layers), self._dtype)


class PlannedDecoder:
    """What both models do for each token."""

    def __init__(
        self,
        model: EncoderDecoder | DecoderOnly,
        embedding: Embedding,
        arithmetic: Arithmetic,
        functions: Functions | None,
    ) -> None:
        self._decoder = PlannedStack(embedding, model.decoder, arithmetic, functions)
        self._output = prepared(model.output, arithmetic=arithmetic)
        self._output_of, self._arithmetic = model.output, arithmetic
        self._logit_scale, self._logit_soft_cap = model.logit_scale, model.logit_soft_cap

    def step(self, ids_N: Tensor, state: Store) -> Tensor:
        """Append one token to every row and return the logits `(N, V)` of the next."""
        with _without_autocast():
            hidden_MD = self._decoder.step(ids_N, state)
            if self._logit_scale != 1.0:
                hidden_MD = hidden_MD * self._logit_scale
            return soft_cap(self._logits(hidden_MD, state), self._logit_soft_cap)[: len(ids_N)]

    def _logits(self, hidden_MD: Tensor, state: Store) -> Tensor:
        """The logits `(M, V)`; in int8 each step of a search uses the same memory."""
        output = state.output or self._output
        if not isinstance(output, QuantizedLinear):
            return output(hidden_MD)
        if state.logits_MV is None or len(state.logits_MV) < len(hidden_MD):
            state.logits_MV = torch.empty(len(hidden_MD), output.outputs)
        return output(hidden_MD, out_MO=state.logits_MV[: len(hidden_MD)])

    @torch.no_grad()
    def narrow(self, ids_U: Tensor, state: Store) -> None:
        """From now on let a step with this state return the logits `(N, U)` of these tokens."""
        state.logits_MV = None
        if isinstance(self._output, QuantizedLinear):
            state.output = copy(self._output)
            state.output.keep(ids_U)
            return
        whole = self._output_of
        part = skip_init(nn.Linear, whole.in_features, len(ids_U), bias=whole.bias is not None)
        part.weight.copy_(whole.weight[ids_U])
        if whole.bias is not None:
            part.bias.copy_(whole.bias[ids_U])
        state.output = prepared(part, arithmetic=self._arithmetic)


class PlannedEncoderDecoder(PlannedDecoder):
    """`EncoderDecoder`: `start` and `step`, for `dragoman.decode`."""

    def __init__(
        self, model: EncoderDecoder, arithmetic: Arithmetic, functions: Functions | None
    ) -> None:
        super().__init__(model, model.tgt_embedding, arithmetic, functions)
        self._model = model
        self._encoder = PlannedStack(model.src_embedding, model.encoder, arithmetic, functions)

    def start(self, src_BS: Tensor, beam_size: int) -> Store:
        """Encode the sources and make the keys and values of cross-attention."""
        with _without_autocast():
            return self._start(self._aligned(src_BS), beam_size)

    def _start(self, src_BS: Tensor, beam_size: int) -> Store:
        size = (src_BS.shape[0], src_BS.shape[1])
        mask_B11S = padding_mask(src_BS, self._model.pad_id)
        mask_BS = mask_B11S.flatten(1)
        full = all(layer.attends_fully for layer in self._encoder.layers)
        plainly = full and not self._encoder.is_biased
        own = self._encoder.sources(mask_BS) if plainly else None
        memory_MD, _ = self._encoder.encode(src_BS, own or mask_B11S)
        memory = [layer.remember(memory_MD, size) for layer in self._decoder.layers]
        sources = self._decoder.sources(mask_BS)
        store = self._decoder.empty_store(size[0], beam_size, compiled=sources is not None)
        if isinstance(store, AncestorStore) and sources is not None:
            store.remember([KeyValue(*kv) for kv in memory], sources)
            return store
        padded = not bool(mask_B11S.all())
        if padded:
            blind_B = ~mask_B11S.any(dim=-1).flatten()
            for kv in memory:  # who sees nothing attends to nothing
                kv[:, blind_B] = 0.0
        if isinstance(store, BeamStore):
            added = additive(mask_B11S, memory_MD.dtype)[:, None] if padded else None
            store.remember(memory, added)
        return store

    def _aligned(self, src_BS: Tensor) -> Tensor:
        """Pad sources to one of few lengths, as far as there are positions."""
        length = src_BS.shape[1]
        wanted = -(-length // ALIGNED) * ALIGNED
        wanted = max(length, min(wanted, self._model.src_embedding.num_positions or wanted))
        return F.pad(src_BS, (0, wanted - length), value=self._model.pad_id)


class PlannedDecoderOnly(PlannedDecoder):
    """`DecoderOnly`: `start` and `step`, for prompts of one length."""

    def __init__(
        self, model: DecoderOnly, arithmetic: Arithmetic, functions: Functions | None
    ) -> None:
        super().__init__(model, model.embedding, arithmetic, functions)

    def start(self, prompt_BS: Tensor, beam_size: int) -> Store:
        """Read the prompts, all but their last token, once for all rows of a beam."""
        store = self._decoder.empty_store(len(prompt_BS), beam_size)
        if prompt_BS.shape[1] > 1:
            with _without_autocast():
                store.read_prompts(self._decoder.encode(prompt_BS[:, :-1], None)[1])
        return store


def _without_autocast() -> AbstractContextManager[object]:
    """Leave the caller's autocast: a plan has dtypes of its own, and every operator would pay."""
    if torch.is_autocast_enabled("cpu"):
        return torch.autocast("cpu", enabled=False)
    return nullcontext()


def _bias(bias: Bias, store: Store, places: int) -> Tensor:
    """What the positions add to the scores of a step, `(H, C)`."""
    bias_H1C: Tensor = bias(torch.arange(places)[None] - (store.length - 1))
    return bias_H1C.flatten(1)
