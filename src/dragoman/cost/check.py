"""What `dragoman train` asks before it begins: whether a run fits the memory.

Nothing here draws a random number, so a run ends with the same bits whether it was asked or not.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import partial
from itertools import islice
from typing import Any

import numpy as np

from dragoman.cost.counting import MOMENTS, TrainingMemory, forward_pass, step_of
from dragoman.cost.decoding import cache_of, decoding_memory
from dragoman.cost.estimate import BATCH_TOKENS, FLOAT, VALIDATED
from dragoman.cost.recipes import work_of, workload_of
from dragoman.data.batches import Stream
from dragoman.decode import schedule
from dragoman.errors import InputError
from dragoman.models import EncoderDecoderConfig, ModelConfig, count_parameters
from dragoman.models.defaults import DecodingDefaults
from dragoman.nn import Precision
from dragoman.tasks.work import Shape, Work, Workload
from dragoman.train.device import choose_device, choose_precision
from dragoman.train.recipe import RunRecipe
from dragoman.wording import counted

__all__ = ["check_batches", "check_states", "peak_memory", "validation_memory", "validation_shape"]

STACKS = ("encoder", "decoder")
"""Parts of a model whose size does not depend on a vocabulary or on labels."""
STATES = 4
"""Numbers of each parameter that is trained: itself, its gradient, Adam's two moments."""
ERROR = 0.9
"""A predicted peak may be a tenth too high: what is over the memory by less is not rejected."""
SURELY = 3
"""Where so many times the expected peak fits, the batches of an epoch are not looked at."""
LOOKED_AT = 2000
"""Batches of an epoch whose size is looked at."""
LEAST_SHARE = 0.01
"""Where less than this of a batch would fit, a smaller one is no advice."""


def validation_shape(work: Work) -> Shape | None:
    """Return the largest batch that a validation translates, with sources of the work's length."""
    sources = min(VALIDATED, work.recipe.train.validate_limit)
    return translated_shape(work.config, [work.length] * sources)


def peak_memory(work: Work, precision: Precision) -> int:
    """Return the bytes of the larger peak: that of a training step or that of a validation."""
    validation = validation_memory(
        workload_of(work.recipe),
        work.config,
        work.shape,
        validation_shape(work),
        precision=precision,
    )
    return max(step_of(work, precision).memory.total, validation)


def validation_memory(
    workload: Workload,
    config: ModelConfig,
    shape: Shape,
    translating: Shape | None,
    *,
    precision: Precision = "fp32",
) -> int:
    """Return the peak of a validation between two steps.

    It computes the loss of a batch of the first shape, without gradients, and decodes greedily (in
    float32, as translating does) one of the second, if there is one.
    """
    peak = forward_pass(workload, config, shape, precision=precision).peak
    weights = FLOAT * sum(count_parameters(config).values())
    if translating is not None and config.kind == "encoder-decoder":
        found = decoding_memory(config, translating)
        # when a sentence ends, the others' keys and values of the source are copied
        logits = FLOAT * translating.rows * config.tgt_vocab_size
        ending = found.weights + found.cache + 2 * found.memory + 2 * logits
        peak = max(peak, found.total, ending)
    return peak + MOMENTS * weights


def check_states(recipe: RunRecipe, limit: int | None) -> None:
    """Raise InputError if weights, gradients and moments alone are over the memory.

    Called before anything is read, when the size of a vocabulary is not known yet, so only the
    layers are counted. `limit` is that of `memory_limit`.
    """
    parts = count_parameters(work_of(recipe).config)
    parameters = sum(count for name, count in parts.items() if name in STACKS)
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
    """Raise InputError if a step or a validation needs more memory than a CPU has.

    The largest of the batches are run dry, unless usual ones are far below the memory. A GPU is not
    checked: its kernels keep less than a CPU's, and it reports at once what is too much.
    """
    train = work.recipe.train
    device = choose_device(train.device)
    if limit is None or device.type != "cpu" or work.recipe.start.freeze:
        return
    precision = choose_precision(train.precision, device)
    workload = workload_of(work.recipe)
    looked_at = islice(validation, LOOKED_AT)
    validated, translated = _validated(workload, looked_at, config, train.validate_limit)
    if SURELY * _growth(work, validated) * peak_memory(work, precision) < limit:
        return
    shape = _largest(map(workload.shape, _some_batches(batches, train.seed))) or work.shape
    peak = step_of(replace(work, config=config), precision, shape=shape).memory
    if ERROR * peak.total > limit:
        raise InputError(_too_large(work.recipe, shape, peak, limit))
    if validated is None:
        return
    needed = validation_memory(workload, config, validated, translated, precision=precision)
    if ERROR * needed > limit:
        raise InputError(_validation_too_large(validated, translated, needed, limit))


def _growth(work: Work, validated: Shape | None) -> float:
    """Return how many times the usual peak a batch may need: scores grow with tokens and length."""
    usual = work.shape
    length, tokens = work.longest, usual.tokens
    if validated is not None:
        length = max(length, validated.length, validated.src_length)
        tokens = max(tokens, validated.tokens)
    return max(1.0, length / usual.length) * tokens / usual.tokens


def _some_batches(batches: Stream[Any], seed: int) -> Iterable[Any]:
    """Yield the batches of the first epoch, or some of them from all over it."""
    epoch = batches.source.draw(np.random.default_rng([seed, 0]))
    numbers = np.unique(np.linspace(0, len(epoch) - 1, LOOKED_AT).astype(int))
    return (epoch[int(number)] for number in numbers)


def _validated(
    workload: Workload, batches: Iterable[Any], config: ModelConfig, limit: int
) -> tuple[Shape | None, Shape | None]:
    """Return the largest batch of a validation's loss and that of its translations, if any."""
    shapes, lengths = list[Shape](), list[int]()
    for batch in batches:
        shapes.append(workload.shape(batch))
        lengths += workload.sources(batch, config, limit)
    return _largest(shapes), translated_shape(config, lengths)


def _largest(shapes: Iterable[Shape]) -> Shape | None:
    return max(shapes, key=lambda shape: shape.tokens, default=None)


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


def _translating_bytes(config: EncoderDecoderConfig, shape: Shape) -> float:
    """Estimate what a batch takes that is translated: keys and values, and logits."""
    kept = cache_of(config, src_length=shape.src_length, length=shape.length, precision="fp32")
    logits = 4 * FLOAT * config.tgt_vocab_size
    return float(shape.rows * (kept.reserved + kept.memory + logits))


def _too_large(recipe: RunRecipe, shape: Shape, peak: TrainingMemory, limit: int) -> str:
    """Return the message with the numbers and what to change."""
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
    smaller = workload_of(recipe).smaller(recipe, shape, share)
    spare = (
        ""
        if recipe.train.activation_checkpointing
        else (", or train.activation_checkpointing = true, which keeps less and takes longer")
    )
    return f"{begun}: set {smaller}{spare}; train.accumulate makes up for smaller batches"


def _validation_too_large(
    validated: Shape, translated: Shape | None, needed: int, limit: int
) -> str:
    """Return the message with the numbers and what to change."""
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
