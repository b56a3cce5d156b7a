"""Frozen versions of the two models that generate text: `EncoderDecoder` and `DecoderOnly`."""

from contextlib import AbstractContextManager, nullcontext
from copy import copy
from typing import cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.utils import skip_init

from dragoman.engine.layers import FrozenEmbedding, FrozenLayer, FrozenNorm
from dragoman.engine.products import (
    DTYPES,
    Copies,
    PackedLinear,
    Product,
    copied,
    familiar_rows,
    prepared,
    with_rows,
)
from dragoman.engine.program import Program
from dragoman.engine.quantized import QuantizedLinear
from dragoman.engine.store import BeamStore, Heads, Sources
from dragoman.models.decoder_only import DecoderOnly
from dragoman.models.encoder_decoder import EncoderDecoder
from dragoman.nn import Arithmetic, Embedding, KeyValue, PositionInfo, padding_mask, soft_cap
from dragoman.nn.cpu.native import Ahead
from dragoman.nn.layers import Stack
from dragoman.nn.position.rotary import Rotary, RotaryAngles

MOST_AHEAD = 32
"""Maximum number of steps that compiled code runs at once."""
PRODUCTS_AHEAD = 1 << 30
"""Maximum number of integer multiplications in these steps: a few milliseconds."""
SLOWER = 8
"""Integer multiplications that take about as long as one of attention, which is in float32."""
ALIGNED = 16
"""Sources are padded to a multiple of this many tokens: a bfloat16 softmax fills registers."""


class FrozenStack:
    """`Encoder` or `Decoder`, together with the embedding before it."""

    def __init__(
        self, embedding: Embedding, stack: Stack, arithmetic: Arithmetic, copies: Copies
    ) -> None:
        """Freeze a stack; `embedding` is kept, so it must already be a copy."""
        self.layers: list[FrozenLayer] = []
        for layer in stack.each_layer():
            with copies.lend(layer.parameters()):
                self.layers.append(FrozenLayer(layer, arithmetic))
        self.embedding = FrozenEmbedding(embedding)
        self.heads = Heads.of(stack.each_layer()[0].self_attn)
        with copies.lend(stack.final_norm.parameters()):
            self._final_norm = FrozenNorm(stack.final_norm)
        self._like = torch.empty(0, dtype=DTYPES[arithmetic])
        self._rotation = stack.rotation
        self._bias = None if stack.bias is None else copies.take(stack.bias)
        self.is_biased = stack.bias is not None
        """Whether positions add a bias to the scores."""
        self._compiled_products = arithmetic == "int8"
        rotary = self._rotation.scheme if isinstance(self._rotation, RotaryAngles) else Rotary()
        self._varies = isinstance(stack.bias, nn.ModuleList) or bool(rotary.unrotated)
        """Whether layers differ in what positions do."""
        recorded = self.embedding.recorded and self._final_norm.recorded
        plain = not self._varies and rotary.share == 1.0
        self._recorded = recorded and plain and all(each.recorded for each in self.layers)
        self.encodes_at_once = self._recorded and self._rotation is None
        """Whether a program can read whole sources."""

    def _rows(self, rows: int) -> int:
        """Return the number of rows to compute when `rows` are needed."""
        return rows if self._compiled_products else familiar_rows(rows)

    def _info(self, positions: range, ahead: int = 0) -> PositionInfo:
        rotation = self._rotation
        angles = None if rotation is None else rotation.angles(positions, self._like, ahead)
        return PositionInfo(angles, self._bias)

    def encode(
        self, ids_BL: Tensor, mask: Tensor | Sources | None, ahead: int = 0
    ) -> tuple[Tensor, list[KeyValue]]:
        """Read whole sequences; return last hidden states `(M, D)`, keys and values per layer.

        They are known to go on for `ahead` tokens.
        """
        size = (ids_BL.shape[0], ids_BL.shape[1])
        x_BLD = self.embedding.embed(ids_BL, range(size[1])).to(self._like)
        info = self._info(range(size[1]), ahead)
        x_MD = with_rows(x_BLD.flatten(0, 1), self._rows(size[0] * size[1]))
        kvs = []
        for index, layer in enumerate(self.layers):
            x_MD, kv = layer.encode(x_MD, size, mask, info.of_layer(index))
            kvs.append(kv)
        return self._final_norm(x_MD), kvs

    def step(self, ids_N: Tensor, store: BeamStore, output: Product | None) -> Tensor:
        """Read one more token of each row; return last hidden states `(M, D)`, or their logits.

        In int8, all steps with a store use the same memory.
        """
        position = store.length
        place = range(position, position + 1)
        store.begin_step(len(ids_N))
        info = self._info(place)
        store.place(info.of_layer(0))
        if self._recorded and not isinstance(output, PackedLinear):
            program = store.program = store.program or Program(store.most_rows)
            if not program.operations:
                hidden_RD = self.record(program, store)
                if output is not None:
                    output.record(program, hidden_RD, program.vectors("logits", output.outputs))
                program.finish()
            return program.run(ids_N, self.embedding.added_at(place))
        x_ND = self.embedding.embed(ids_N[:, None], place)[:, 0].to(self._like)
        x_MD = with_rows(x_ND, self._rows(len(x_ND)))
        for index, layer in enumerate(self.layers):
            if self._varies:
                store.place(info.of_layer(index))
            x_MD = layer.step(x_MD, store)
        hidden_MD = self._final_norm(x_MD)
        return hidden_MD if output is None else output(hidden_MD)

    def ahead(self, store: BeamStore) -> Ahead | None:
        """Return what compiled code needs to run two or more steps by itself; None if it cannot."""
        program, start = store.program, store.length
        if program is None or not program.operations or self.is_biased:
            return None
        if store.attended() is not None:
            return None
        if self._rotation is not None and self._rotation.follows_length:
            return None
        room, bound = min(store.room, MOST_AHEAD), self.embedding.num_positions
        if bound is not None:
            room = min(room, bound - start)
        attended = self.heads.num_heads * self.heads.head_dim * len(self.layers) * (start + 1)
        row = program.products + 2 * SLOWER * attended
        most = min(room, PRODUCTS_AHEAD // (store.rows * row))
        if most < 2:
            return None
        ahead, positions = Ahead(most=most), range(start, start + most)
        store.tell(ahead)
        program.tell(ahead)
        if (added_PD := self.embedding.added_at(positions)) is not None:
            ahead.added, ahead.width = added_PD.data_ptr(), added_PD.shape[1]
        parts: tuple[Tensor, ...] = ()
        if (angles := self._info(positions).angles) is not None:
            parts = angles.cos_Lp.float().contiguous(), angles.sin_Lp.float().contiguous()
            ahead.cosine, ahead.sine = (part.data_ptr() for part in parts)
        ahead.kept = added_PD, *parts
        return ahead

    def record(self, program: Program, store: BeamStore | Sources) -> Tensor:
        """Append the operations from tokens to last hidden states to a program."""
        x_RD = self.embedding.record(program)
        for layer in self.layers:
            layer.record(program, x_RD, store)
        return self._final_norm(x_RD, program)

    def empty_store(self, num_sentences: int, beam_size: int) -> BeamStore:
        """Create the store for the keys and values of decoding."""
        return BeamStore(self.heads, (num_sentences, beam_size), len(self.layers))


class FrozenDecoder:
    """The computation per token, which both models share."""

    def __init__(
        self,
        model: EncoderDecoder | DecoderOnly,
        embedding: Embedding,
        arithmetic: Arithmetic,
        copies: Copies,
    ) -> None:
        """Freeze the output and the decoder; `copies` has the copies of parameters made so far."""
        self._arithmetic = arithmetic
        with copies.lending(model.output):
            self._output = prepared(model.output, arithmetic=arithmetic)
            self._output_of = None if arithmetic == "int8" else copied(model.output, copies)
            """The original output layer, from which `narrow` takes rows."""
        self._decoder = FrozenStack(embedding, model.decoder, arithmetic, copies)
        self._logit_scale, self._logit_soft_cap = model.logit_scale, model.logit_soft_cap

    def step(self, ids_N: Tensor, state: BeamStore) -> Tensor:
        """Append one token to each row and return the logits `(N, V)` of the next one."""
        output = state.output or self._output
        with _without_autocast():
            if self._logit_scale == 1.0:
                logits_MV = self._decoder.step(ids_N, state, output)
            else:
                hidden_MD = self._decoder.step(ids_N, state, None) * self._logit_scale
                logits_MV = self._logits(hidden_MD, output, state.program)
            return soft_cap(logits_MV, self._logit_soft_cap)[: len(ids_N)]

    def ahead(self, state: BeamStore) -> Ahead | None:
        """Return what compiled code needs to run the next steps by itself; None if it cannot."""
        changed = self._logit_scale != 1.0 or self._logit_soft_cap is not None
        return None if changed else self._decoder.ahead(state)

    def _logits(self, hidden_MD: Tensor, output: Product, program: Program | None) -> Tensor:
        if program is None or isinstance(output, PackedLinear):
            return output(hidden_MD)
        rows, columns = len(hidden_MD), output.outputs
        return output(hidden_MD, out_MO=program.vectors("logits", columns)[:rows])

    @torch.no_grad()
    def narrow(self, ids_U: Tensor, state: BeamStore) -> None:
        """Make later steps with this state return the logits `(N, U)` of these tokens only."""
        state.program = None
        whole = self._output_of
        if whole is None:
            state.output = copy(cast("QuantizedLinear", self._output))
            state.output.keep(ids_U)
            return
        part = skip_init(nn.Linear, whole.in_features, len(ids_U), bias=whole.bias is not None)
        part.weight.copy_(whole.weight[ids_U])
        if whole.bias is not None:
            part.bias.copy_(whole.bias[ids_U])
        state.output = prepared(part, arithmetic=self._arithmetic)


class FrozenEncoderDecoder(FrozenDecoder):
    """A frozen `EncoderDecoder`, with `start` and `step` for `dragoman.decode`."""

    def __init__(self, model: EncoderDecoder, arithmetic: Arithmetic, copies: Copies) -> None:
        reads, writes = copies.take(model.src_embedding), copies.take(model.tgt_embedding)
        super().__init__(model, writes, arithmetic, copies)
        self._encoder = FrozenStack(reads, model.encoder, arithmetic, copies)
        self._pad_id, self._num_positions = model.pad_id, reads.num_positions
        crosses = (layer.cross_attn for layer in self._decoder.layers)
        self._crosses = [cross for cross in crosses if cross is not None]
        fully = all(layer.attends_fully for layer in self._encoder.layers)
        self._plain = fully and not self._encoder.is_biased
        self._at_once = all(each.remembers for each in self._crosses)
        self._at_once = self._at_once and self._encoder.encodes_at_once

    def start(self, src_BS: Tensor, beam_size: int) -> BeamStore:
        """Encode the sources and compute the keys and values of cross-attention."""
        store = self._decoder.empty_store(len(src_BS), beam_size)
        with _without_autocast():
            store.remember(*self._start(self._aligned(src_BS)))
        return store

    def _start(self, src_BS: Tensor) -> tuple[list[tuple[Tensor, Tensor]], Sources]:
        mask_B11S = padding_mask(src_BS, self._pad_id)
        mask_BS = mask_B11S.flatten(1)
        own: Tensor | Sources = mask_B11S
        sources = Sources(self._decoder.heads, mask_BS)
        ordered = bool((mask_BS[:, 1:] <= mask_BS[:, :-1]).all())  # no padding before a token
        if ordered and self._plain:
            own = Sources(self._encoder.heads, mask_BS).of_each_token()
            if self._at_once:
                return self._read(src_BS, own, sources), sources
        memory_MD, _ = self._encoder.encode(src_BS, own)
        if not ordered:  # attention to a source does not depend on the order of its tokens
            mask_BS, order_BS = mask_BS.sort(dim=1, descending=True, stable=True)
            order_M = (order_BS + torch.arange(len(src_BS))[:, None] * src_BS.shape[1]).flatten()
            memory_MD = with_rows(memory_MD[order_M], len(memory_MD))
            sources = Sources(self._decoder.heads, mask_BS)
        return [cross.remember(memory_MD, sources) for cross in self._crosses], sources

    def _read(self, src_BS: Tensor, own: Sources, sources: Sources) -> list[tuple[Tensor, Tensor]]:
        """Compute the keys and values in one call of compiled code."""
        length = src_BS.shape[1]
        program = Program(src_BS.numel(), length)
        memory_RD = self._encoder.record(program, own)
        memory = [cross.record_memory(program, memory_RD, sources) for cross in self._crosses]
        program.finish().run(src_BS.flatten(), self._encoder.embedding.added_at(range(length)))
        return memory

    def _aligned(self, src_BS: Tensor) -> Tensor:
        """Pad sources to one of a few lengths, within the number of positions."""
        length = src_BS.shape[1]
        wanted = -(-length // ALIGNED) * ALIGNED
        wanted = max(length, min(wanted, self._num_positions or wanted))
        return F.pad(src_BS, (0, wanted - length), value=self._pad_id)


class FrozenDecoderOnly(FrozenDecoder):
    """A frozen `DecoderOnly`, with `start` and `step` for prompts of equal length."""

    def __init__(self, model: DecoderOnly, arithmetic: Arithmetic, copies: Copies) -> None:
        super().__init__(model, copies.take(model.embedding), arithmetic, copies)

    def start(self, prompt_BS: Tensor, beam_size: int) -> BeamStore:
        """Read all but the last token of the prompts, once for all rows of a beam."""
        store = self._decoder.empty_store(len(prompt_BS), beam_size)
        if prompt_BS.shape[1] > 1:
            with _without_autocast():
                store.read_prompts(self._decoder.encode(prompt_BS[:, :-1], None, ahead=1)[1])
        return store


def _without_autocast() -> AbstractContextManager[object]:
    """Disable the caller's autocast: the engine has its dtypes, and every operator would pay."""
    if torch.is_autocast_enabled("cpu"):
        return torch.autocast("cpu", enabled=False)
    return nullcontext()
