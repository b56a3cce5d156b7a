"""What `dragoman train` asks before it begins: what the run will take, and whether it fits.

Nothing here draws a random number, so a run ends with the same bits whether it was asked or not.
"""

from collections.abc import Iterable, Sequence
from functools import partial
from itertools import islice
from typing import Any

import numpy as np
import torch

from dragoman.cost.cache import cache_of
from dragoman.cost.estimate import BATCH_TOKENS, FLOAT, VALIDATED, layers_of
from dragoman.cost.estimate_recipe import Work, vocabulary_of
from dragoman.cost.flops import Shape
from dragoman.cost.memory import TrainingMemory, training_memory, validation_memory
from dragoman.data.batches import Stream
from dragoman.decode import schedule
from dragoman.errors import InputError
from dragoman.models import (
    EncoderDecoderConfig,
    EncoderOnlyConfig,
    ModelConfig,
    count_parameters,
)
from dragoman.models.defaults import DecodingDefaults
from dragoman.nn.cpu.precision import Precision
from dragoman.tasks.generate.batches import LanguageBatch
from dragoman.tasks.generate.recipe import GenerateRecipe
from dragoman.tasks.translate.batches import PairBatch
from dragoman.train.device import choose_device, choose_precision
from dragoman.train.objective import CHUNK
from dragoman.train.recipe import RunRecipe
from dragoman.wording import counted

__all__ = ["check_batches", "check_states", "rough_memory", "rough_peak", "validation_shape"]

STATES = 4
"""Numbers of each parameter that learns: itself, its gradient, Adam's two moments."""
ERROR = 0.9
"""A rehearsal may be a tenth too high: what is over the memory by less is not refused."""
SURELY = 3
"""A rough peak that is so many times below the memory needs no rehearsal."""
LOOKED_AT = 2000
"""Batches of an epoch whose size is looked at."""
LEAST_SHARE = 0.01
"""Where less than this of a batch would fit, a smaller one is no advice."""
BF16_MORE = 1.45
"""Autocast keeps rounded copies of what products take, beside what norms take."""


def rough_peak(work: Work, precision: Precision) -> float:
    r"""Return the peak of a step in bytes, by a formula, right within a third for plain models.

    With the letters of the paper each token leaves about :math:`5 D + 4 H d + F` numbers in a layer
    of the encoder (inputs of norms and products; queries, keys, values and what attention gives;
    the hidden layer) and :math:`8 D + 8 H d + F` in one of the decoder; with activation
    checkpointing a layer leaves its input.
    `cost.memory.training_memory` is exact, and takes some seconds.
    """
    config, shape = work.config, work.shape
    d, hidden = config.d_model, config.d_ff * (3 if config.gated else 1)
    heads = config.num_heads * config.width
    stacks = [(layers_of(config), shape.length, 5 * d + 4 * heads)]
    if isinstance(config, EncoderDecoderConfig):
        stacks = [
            (config.num_encoder_layers, shape.src_length, 5 * d + 4 * heads),
            (config.num_decoder_layers, shape.length, 8 * d + 8 * heads),
        ]
    numbers = 5.0 * shape.rows * (shape.length + shape.src_length) * d
    for layers, length, around in stacks:
        each = shape.rows * length * (around + hidden)
        if work.recipe.train.activation_checkpointing:
            numbers += layers * shape.rows * length * d + each
        else:
            numbers += layers * each * (BF16_MORE if precision == "bf16" else 1.0)
    capped = not isinstance(config, EncoderOnlyConfig) and config.logit_soft_cap is not None
    positions = shape.rows * shape.length if capped else CHUNK  # a capped loss is not fused
    numbers += 3 * positions * vocabulary_of(config)
    parameters = sum(count_parameters(config).values())
    return FLOAT * (3 * parameters + max(1.1 * numbers, 1.2 * parameters))


def rough_memory(work: Work, precision: Precision) -> float:
    """Return the larger of the rough peaks of a step and of a validation's translations."""
    states = 3 * FLOAT * sum(count_parameters(work.config).values())
    translating = _translating_bytes(work.config, validation_shape(work))
    return max(rough_peak(work, precision), states + translating)


def validation_shape(work: Work) -> Shape | None:
    """Return the largest batch while a validation translates sources of the recipe's length."""
    sources = min(VALIDATED, work.recipe.train.validate_limit)
    return translated_shape(work.config, [work.length] * sources)


def check_states(recipe: RunRecipe, limit: int | None) -> None:
    """Raise InputError where weights, gradients and moments alone are over the memory.

    Called before anything is read: a vocabulary that is not known yet counts nothing. `limit` is
    that of `memory_limit`.
    """
    parameters = sum(count_parameters(recipe.model).values())
    copies = 1 if recipe.start.freeze else STATES
    needed = copies * FLOAT * parameters
    if limit is not None and needed > limit:
        raise InputError(
            f"the run needs at least {_gigabytes(needed)} for the weights, gradients and moments "
            f"of {parameters:,} parameters, and there are {_gigabytes(limit)} of memory: make "
            "model.d_model, model.d_ff or the number of layers smaller"
        )


def check_batches(
    work: Work,
    limit: int | None,
    config: ModelConfig,
    batches: Stream[Any],
    validation: Iterable[Any],
) -> None:
    """Raise InputError where a step or a validation needs more memory than a CPU has.

    The largest of the batches are rehearsed, unless a rough peak is far below the memory. A GPU is
    left alone: its kernels keep less than a CPU's, and it reports at once what is too much.
    """
    train = work.recipe.train
    device = choose_device(train.device)
    if limit is None or device.type != "cpu" or work.recipe.start.freeze:
        return
    precision = choose_precision(train.precision, device)
    validated, translated = _validated(islice(validation, LOOKED_AT), config, train.validate_limit)
    rough = rough_peak(work, precision) + _scores_bytes(
        work.config, work.batch_tokens, work.longest
    )
    if validated is not None:
        rough += _scores_bytes(config, _tokens(validated), validated.src_length + validated.length)
    rough += _translating_bytes(config, translated)
    if SURELY * rough < limit:
        return
    shape = _largest(batches, train.seed)
    peak = training_memory(
        config,
        shape,
        optimizer=train.optimizer,
        precision=precision,
        activation_checkpointing=train.activation_checkpointing,
        accumulate=train.accumulate,
    )
    if ERROR * peak.total > limit:
        raise InputError(_too_large(shape, peak, limit, recipe=work.recipe))
    if validated is None:
        return
    needed = validation_memory(
        config, validated, translated, optimizer=train.optimizer, precision=precision
    )
    if ERROR * needed > limit:
        raise InputError(_validation_too_large(validated, translated, needed, limit))


def _validated(
    batches: Iterable[Any], config: ModelConfig, limit: int
) -> tuple[Shape | None, Shape | None]:
    """The largest batch of a validation's loss and that of its translations, where there are."""
    shapes, lengths = list[Shape](), list[int]()
    for batch in batches:
        shapes.append(_shape_of(batch))
        if isinstance(batch, PairBatch):
            each_B = (batch.src_BS != config.pad_id).sum(1) - 1
            lengths += each_B[torch.from_numpy(batch.indices < limit)].tolist()
    return max(shapes, key=_tokens, default=None), translated_shape(config, lengths)


def translated_shape(config: ModelConfig, lengths: Sequence[int]) -> Shape | None:
    """Return the largest batch while a validation translates sources of these lengths.

    Each translation reaches its limit, since an untrained model does not end a sentence, and leaves
    the batch there. None where nothing is translated.
    """
    if not lengths or not isinstance(config, EncoderDecoderConfig):
        return None
    options = DecodingDefaults()
    lengths = [min(length, options.max_src_tokens) for length in lengths]
    factor, constant = options.max_length_factor, options.max_length_constant
    shapes = [
        Shape(
            rows=rows,
            src_length=lengths[batch[0]] + 1,  # the longest comes first
            length=int(factor * lengths[index]) + constant,
        )
        for batch in schedule(lengths, BATCH_TOKENS)
        for rows, index in enumerate(batch, start=1)
    ]
    return max(shapes, key=partial(_translating_bytes, config))


def _translating_bytes(config: ModelConfig, shape: Shape | None) -> float:
    """About what a batch takes that is translated: keys and values, and logits."""
    if shape is None or not isinstance(config, EncoderDecoderConfig):
        return 0.0
    lengths = {"src_length": shape.src_length, "length": shape.length}
    kept = cache_of(config, **lengths, precision="fp32")
    logits = 4 * FLOAT * vocabulary_of(config)
    return float(shape.rows * (kept.reserved + kept.memory + logits))


def _scores_bytes(config: ModelConfig, tokens: int, longest: int) -> float:
    """What the scores of all pairs of tokens would take in all heads, if nothing were spared."""
    return 2 * FLOAT * layers_of(config) * config.num_heads * tokens * longest


def _too_large(shape: Shape, peak: TrainingMemory, limit: int, recipe: RunRecipe) -> str:
    """The sentence with the numbers and what to change."""
    states = peak.weights + peak.optimizer
    lengths = counted(shape.length, "token")
    if shape.src_length:
        lengths = f"{shape.src_length:,} and {lengths}"
    begun = (
        f"a batch of {counted(shape.rows, 'row')} of {lengths} needs {_gigabytes(peak.total)} at "
        f"its peak ({_gigabytes(states)} of weights and moments, {_gigabytes(peak.total - states)} "
        f"of activations and gradients), and there are {_gigabytes(limit)} of memory"
    )
    share = (limit - states) / (peak.total - states)
    if share < LEAST_SHARE:
        return f"{begun}: make model.d_model, model.d_ff or the number of layers smaller"
    tokens = _tokens(shape)
    smaller = f"batch.max_tokens to about {int(share * tokens):,}"
    if isinstance(recipe, GenerateRecipe):
        rows = min(recipe.batch.rows, tokens // recipe.batch.length)  # a text may hold fewer
        smaller = f"batch.rows to {max(1, int(share * rows)):,}"
    spare = (
        ""
        if recipe.train.activation_checkpointing
        else (", or train.activation_checkpointing = true, which keeps less and takes longer")
    )
    return f"{begun}: set {smaller}{spare}; train.accumulate makes up for smaller batches"


def _validation_too_large(
    validated: Shape, translated: Shape | None, needed: int, limit: int
) -> str:
    """The sentence with the numbers and what to change."""
    what, less = "", ""
    if translated is not None:
        sentences = counted(translated.rows, "sentence")
        what = f", and translates {sentences} of up to {translated.src_length:,} tokens at once"
        less = ", train.validate_limit or tokenizer.vocab_size"
    return (
        f"a validation needs {_gigabytes(needed)} at its peak (it computes the loss of "
        f"{counted(validated.rows, 'row')} of {counted(validated.length, 'token')} at once{what}), "
        f"and there are {_gigabytes(limit)} of memory: lower batch.max_tokens{less}, shorten the "
        "longest validation texts, or make the model smaller"
    )


def _gigabytes(count: float) -> str:
    return f"{count / 1e9:,.2f} GB" if count < 1e11 else f"{count / 1e9:,.0f} GB"


def _largest(batches: Stream[Any], seed: int) -> Shape:
    """The shape of the largest batch of the first epoch."""
    epoch = batches.source.draw(np.random.default_rng([seed, 0]))
    numbers = np.unique(np.linspace(0, len(epoch) - 1, LOOKED_AT).astype(int))
    shapes = [_shape_of(epoch[int(number)]) for number in numbers]
    return max(shapes, key=_tokens)


def _tokens(shape: Shape) -> int:
    return shape.rows * (shape.src_length + shape.length)


def _shape_of(batch: Any) -> Shape:  # noqa: ANN401 (each task has its own class)
    match batch:
        case PairBatch(src_BS=src_BS, tgt_in_BT=tgt_BT):
            return Shape(rows=len(src_BS), src_length=src_BS.shape[1], length=tgt_BT.shape[1])
        case LanguageBatch(inputs_BL=ids_BL, document_lengths=documents):
            return Shape(rows=len(ids_BL), length=ids_BL.shape[1], documents=documents)
    ids_BL = batch.ids_BL
    return Shape(rows=len(ids_BL), length=ids_BL.shape[1], targets=batch.num_targets)
