"""What a step costs, counted by running the task's own code without numbers.

A training step, a validation's loss and decoding are dry runs (`dryrun.py`) of the real model and
of the task's own loss, so operations and peak memory are right for every variant, pattern and task,
also for those from outside the package. Results are cached by config and shape.

The backward pass takes each product twice more, once for either factor, so a training step takes
three times the operations of the forward pass, or four with activation checkpointing, which runs
the layers again (Chen et al., 2016). With all matrices of a layer `N`, that is the `6 N` for each
token of Kaplan et al. (2020), plus the scores, which grow with the length.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from operator import attrgetter
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from dragoman.cost.dryrun import CPU, DryRun
from dragoman.data.shape import Shape
from dragoman.decode import Beam, Limits, schedule
from dragoman.decode.compiled import CompiledFrontier, begin
from dragoman.decoding import TRANSLATING
from dragoman.engine import BeamStore, freeze
from dragoman.models import EncoderOnly, ModelConfig
from dragoman.nn import KeyValue, Precision, autocast, row_invariant_products
from dragoman.nn.cache import Cache
from dragoman.nn.cpu.native import imitated
from dragoman.nn.layers import Stack
from dragoman.train.config import TrainConfig
from dragoman.train.recipe import Work

FLOAT = 4  # bytes of a number
MOMENTS = 2  # Adam's numbers per parameter
COUNT_BYTES = 4  # each tensor of parameters has its own count of steps
SMOOTHING = 0.1  # its value changes no tensor's size
BATCH_TOKENS = TRANSLATING.max_batch_tokens
"""Source tokens of a translation batch, times beams."""
VALIDATED = 1000
"""Sentences of a validation, if the data has not been read."""
PASSES = 1.5  # all products with a matrix, relative to those with it as a factor, not its gradient


# ---------------------------------------------------------------- training and validating


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingMemory:
    """Bytes that a training step needs, by what they store.

    The peak is less than their sum if activations are freed before the gradients are complete, and
    more if operators need much memory of their own.
    """

    weights: int
    gradients: int
    optimizer: int
    """Adam's two moments and step count of each parameter; the average, if there is one."""
    activations: int
    """What the forward pass keeps for the backward pass."""
    total: int
    """The peak."""


class TrainingStep(NamedTuple):
    """Operations of one batch, forward and backward, and bytes of a whole step."""

    flops: int
    scores: int
    """Of queries with keys and weights with values: the part that grows with the length."""
    output: int
    """Of the matrices of the output layer, or of an encoder's head."""
    memory: TrainingMemory


def step_of(
    work: Work,
    precision: Precision,
    *,
    shape: Shape | None = None,
    checkpointing: bool | None = None,
) -> TrainingStep:
    """Dry-run a step of a recipe, with another shape or checkpointing if given."""
    train, shape = work.recipe.train, shape or work.shape
    if checkpointing is None:
        checkpointing = train.activation_checkpointing
    if train.r_drop:
        shape = replace(shape, rows=2 * shape.rows)  # each row is read twice
    counts = TrainConfig(  # what affects the counts: runs that differ in the rest share one result
        max_steps=1,
        accumulate=train.accumulate,
        activation_checkpointing=checkpointing,
        ema=train.ema,
    )
    return training_step(work.kind, work.config, shape, counts, precision)


@lru_cache(maxsize=64)
def training_step(
    kind: type[Any],
    config: ModelConfig,
    shape: Shape,
    train: TrainConfig,
    precision: Precision = "fp32",
) -> TrainingStep:
    """Dry-run a step of such a recipe.

    With several batches, the gradients of the first exist during the forward pass of the next.
    """
    dry = DryRun()
    model = dry.build(config).train()
    weights = dry.now
    for stack in model.modules():
        if isinstance(stack, Stack):
            stack.checkpointing = train.activation_checkpointing
    batch = kind.sample(config, shape, np.random.default_rng(0))
    batches, kept = min(train.accumulate, 2), 0
    with dry, imitated():
        for _ in range(batches):
            before = dry.now
            with autocast(precision, CPU):
                loss = kind.loss(model, batch, SMOOTHING)
            kept = dry.now - before
            loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    states = (MOMENTS + (train.ema is not None)) * weights
    states += COUNT_BYTES * sum(1 for _ in model.parameters())
    last = model.head if isinstance(model, EncoderOnly) else model.output
    output = sum(dry.flops_with(matrix) for matrix in last.parameters() if matrix.dim() > 1)
    return TrainingStep(
        flops=dry.flops // batches,
        scores=dry.pairwise // batches,
        output=round(PASSES * output / batches),
        memory=TrainingMemory(
            weights=weights,
            gradients=weights,
            optimizer=states,
            activations=kept,
            total=dry.peak + states,
        ),
    )


@lru_cache(maxsize=64)
@torch.inference_mode()
def forward_pass(
    kind: type[Any], config: ModelConfig, shape: Shape, *, precision: Precision = "fp32"
) -> DryRun:
    """Dry-run the loss of a batch as a validation computes it: without gradients."""
    dry = DryRun()
    model = dry.build(config).eval()
    batch = kind.sample(config, shape, np.random.default_rng(0))
    with autocast(precision, CPU), dry, imitated():
        kind.loss(model, batch, SMOOTHING)
    return dry


# ---------------------------------------------------------------- decoding


class DecodingStep(NamedTuple):
    """Operations of decoding a batch, and bytes that one row reads in a step."""

    prefill: int
    """Before the first step: of the sources, or of a prompt except its last token."""
    flops: int
    """Of one step, output layer included."""
    read: int
    """Keys and values of the source, and of earlier tokens that can still be seen."""
    layers: int
    """Of the decoder: the number of its layers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DecodingMemory:
    """Bytes at the moment of decoding when most are alive, by what they store."""

    weights: int
    packed: int
    """Copies of the weights that the engine has laid out for its products."""
    cache: int
    """Keys and values of the tokens so far, and room for more, in all rows."""
    memory: int
    """Keys and values of the sources, which cross-attention attends to."""
    working: int
    """What operators are working on: activations, logits, weights rounded for bf16."""
    total: int


class _ReadCache(Cache):
    """A cache that counts the bytes read from it."""

    read = 0

    def extend(self, layer: int, kv: KeyValue) -> KeyValue:
        found = super().extend(layer, kv)
        self.read += _nbytes(found) - _nbytes(kv)
        return found


@lru_cache(maxsize=256)
@torch.inference_mode()
def decoding_step(
    config: ModelConfig, shape: Shape, *, beam_size: int = 1, cached: int
) -> DecodingStep:
    """Count the work before the first step, and one step with `cached` tokens before it.

    Before the first step, `rows` sentences of `src_length` are encoded; a decoder reads prompts of
    `length` tokens except the last one, which the first step is fed.
    """
    dry = DryRun()
    model: Any = dry.build(config).eval()  # of a kind that writes
    num_rows = shape.rows * beam_size
    src_BS = _ids(config, shape.rows, shape.src_length or shape.length)
    ids_N = _ids(config, num_rows, 1)[:, 0]
    with dry:
        state = model.start(src_BS, beam_size)
        prefill = dry.flops
        _fill(state.past, config, num_rows, cached)
        state.past = _ReadCache(state.past.storages)
        model.step(ids_N, state)
    sums = (getattr(each, "state_BKde", None) for each in state.past.storages)
    read = state.past.read + sum(x.nbytes for x in sums if x is not None)
    return DecodingStep(
        prefill=prefill,
        flops=dry.flops - prefill,
        read=read // num_rows + _memory(state) // shape.rows,
        layers=len(state.past.storages),
    )


@lru_cache(maxsize=64)
@torch.inference_mode()
def decoding_memory(
    config: ModelConfig, shape: Shape, *, beam_size: int = 1, precision: Precision = "fp32"
) -> DecodingMemory:
    """Return the peak memory of decoding `rows` sentences with `beam_size` rows each.

    At the end there are `length` tokens; a decoder's begin with a prompt of `src_length`. A step
    needs most when a store of the cache is full and copies its contents; those steps, the first and
    the last one are run. Weights that can be frozen exist twice, as stored and packed; others, in
    bf16, are also rounded for the products.
    """
    dry = DryRun()
    model: Any = dry.build(config).eval()
    num_rows = shape.rows * beam_size
    src_BS = _ids(config, shape.rows, max(1, shape.src_length))
    ids_N = _ids(config, num_rows, 1)[:, 0]
    with row_invariant_products(), autocast(precision, CPU), imitated(), dry:
        weights = dry.now
        decoder: Any = freeze(model, precision)
        packed = dry.now - weights
        limits = Limits(bos_id=0, eos_id=0, max_B=torch.full((shape.rows,), shape.length))
        frontier = begin(Beam(beam_size=beam_size), limits)
        dry.forget_peak()
        state = decoder.start(src_BS, beam_size)
        peak, past = dry.peak, state if isinstance(state, BeamStore) else state.past
        while past.length < shape.length:
            dry.forget_peak()
            logits_NV = decoder.step(ids_N, state)
            if not isinstance(frontier, CompiledFrontier):
                logits_NV = logits_NV.log_softmax(dim=1, dtype=torch.float32)
            frontier.advance(logits_NV)
            state.select(torch.arange(num_rows).view(-1, beam_size).flip(1).flatten())
            peak = max(peak, dry.peak)
            _skip(past, config, num_rows, shape.length - 1)
    if isinstance(past, BeamStore):
        cache, memory = past.nbytes
    else:
        stored = (value for storage in past.storages for value in vars(storage).values())
        cache = sum(x.untyped_storage().nbytes() for x in stored if isinstance(x, Tensor))
        memory = _memory(state)
    return DecodingMemory(
        weights=weights,
        packed=packed,
        cache=cache,
        memory=memory,
        working=peak - weights - packed - cache - memory,
        total=peak,
    )


def _memory(state: object) -> int:
    """Return the bytes of the keys and values of the sources."""
    return sum(_nbytes(each.kv) for each in getattr(state, "memory", ()))


def _nbytes(kv: KeyValue) -> int:
    return kv.k_BKSd.nbytes + kv.v_BKSd.nbytes


def _ids(config: ModelConfig, rows: int, length: int) -> Tensor:
    """Return one non-padding id everywhere."""
    return torch.full((rows, length), 1 if config.pad_id == 0 else 0)


def _skip(past: Cache | BeamStore, config: ModelConfig, num_rows: int, last: int) -> None:
    """Continue to the position before which the cache makes more room, or to the last one."""
    if isinstance(past, BeamStore):
        past.skip(max(0, min(past.room, last - past.length)))
    else:
        room = min(storage.room() for storage in past.storages)
        _fill(past, config, num_rows, min(past.length + room, last))


def _fill(past: Cache, config: ModelConfig, num_rows: int, length: int) -> None:
    """Extend a cache to `length` positions at once."""
    new = length - past.length
    dtype = torch.get_autocast_dtype("cpu") if torch.is_autocast_enabled("cpu") else torch.float32
    heads = config.num_kv_heads or config.num_heads
    tokens_NKSd = torch.empty(num_rows, heads, max(0, new), config.width, dtype=dtype)
    for storage in past.storages if new > 0 else ():
        storage.extend(KeyValue(tokens_NKSd, tokens_NKSd))


# ---------------------------------------------------------------- a validation between two steps


def peak_memory(work: Work, precision: Precision) -> int:
    """Return the larger of the peaks of a training step and of a validation, in bytes."""
    return max(step_of(work, precision).memory.total, validation_memory(work, precision))


def validation_memory(
    work: Work,
    precision: Precision,
    shape: Shape | None = None,
    lengths: Sequence[int] | None = None,
) -> int:
    """Return the peak of a validation between two steps.

    It computes the loss of a batch of this shape, and translates sources of these lengths greedily
    in float32; by default, a batch of the work's shape, and texts of its length.
    """
    if lengths is None:
        sources = min(VALIDATED, work.recipe.train.validate_limit) if work.src_length else 0
        lengths = [work.length] * sources
    peak = forward_pass(work.kind, work.config, shape or work.shape, precision=precision).peak
    if translated := translated_shape(lengths):
        found = decoding_memory(work.config, translated)
        logits = FLOAT * translated.rows * work.vocab_size
        kept = found.weights + found.packed + found.cache + found.memory
        peak = max(peak, found.total, kept + 2 * logits)
    return peak + MOMENTS * FLOAT * work.parameters


def translated_shape(lengths: Sequence[int]) -> Shape | None:
    """Return the largest batch while a validation translates sources of these lengths.

    Each translation reaches its limit, since an untrained model does not end a sentence; the row of
    a finished one stays. None if nothing is translated.
    """
    lengths = [min(length, TRANSLATING.max_src_tokens) for length in lengths]
    factor, constant = TRANSLATING.max_length_factor, TRANSLATING.max_length_constant
    longest = ((len(batch), lengths[batch[0]]) for batch in schedule(lengths, BATCH_TOKENS))
    shapes = (
        Shape(rows=rows, src_length=length + 1, length=int(factor * length) + constant)
        for rows, length in longest
    )
    return max(shapes, key=attrgetter("tokens"), default=None)
