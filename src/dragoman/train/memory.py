"""Memory checks: try the largest batches first, and say what to do if memory runs out."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from dragoman.data.batches import Batch
from dragoman.errors import DragomanError, is_out_of_memory
from dragoman.plain import to_plain
from dragoman.train.checkpoint import random_state, replayed
from dragoman.train.job import BatchT
from dragoman.train.recipe import RunRecipe
from dragoman.train.step import Stepper
from dragoman.wording import counted

OUT_OF_MEMORY = (
    "out of memory: give a smaller model or smaller batches in a new run, or use a machine with "
    "more memory; the checkpoints written before stay whole"
)


@contextmanager
def within_memory(sentence: Callable[[], str]) -> Iterator[None]:
    """Raise DragomanError with this message if memory runs out in the block."""
    try:
        yield
    except (RuntimeError, MemoryError) as error:
        if not is_out_of_memory(error):
            raise
        raise DragomanError(sentence()) from error


def rehearse(stepper: Stepper[BatchT], largest: Sequence[BatchT], recipe: RunRecipe) -> None:
    """Take a step with each of these batches to detect a lack of memory early, then undo it.

    A new optimizer creates its state in the first step and has it in the second; a resumed one
    already has its state, so it only computes gradients. With a learning rate of 0 the weights do
    not change. Raises DragomanError if memory runs out.
    """
    scaler, fresh = stepper.scaler, not stepper.optimizer.state
    scaling = {} if scaler is None else scaler.state_dict()
    if scaler is not None:
        scaler.load_state_dict(scaling | {"scale": 1.0})  # no step is skipped
    with replayed(random_state()):
        for batch in largest:
            group = [batch] * min(2, recipe.train.accumulate)
            with within_memory(lambda: too_large(recipe, group)):  # noqa: B023 (called at once)
                if fresh:
                    stepper(group, 0.0)
                else:
                    stepper.accumulate(group)
                    stepper.optimizer.zero_grad()
    if fresh:
        stepper.optimizer.state.clear()
    if scaler is not None:
        scaler.load_state_dict(scaling)


def too_large(recipe: RunRecipe, batches: Sequence[Batch]) -> str:
    """Return what to do if a step with these batches, or a validation, runs out of memory."""
    limits = to_plain(recipe).get("batch", {})
    given = [f"batch.{k} ({limits[k]:,})" for k in ("max_tokens", "rows") if k in limits]
    how = (
        f"{' and '.join(given)} in the same command"
        if given
        else "the size of batches in a new run"
    )
    advice = f"lower {how}"
    if not batches:
        return f"out of memory during validation: {advice}; the checkpoints of this one are whole"
    largest = max(batches, key=lambda batch: batch.num_tokens)
    size = f"{counted(len(largest.indices), 'example')} and {counted(largest.num_tokens, 'token')}"
    more = ""
    if not recipe.train.activation_checkpointing:
        more = (
            ", or add train.activation_checkpointing=true to the same command, which resumes "
            "from the last checkpoint with less memory, slower, and to the same end"
        )
    return f"out of memory in a batch of {size}: {advice} (train.accumulate makes up for it){more}"
