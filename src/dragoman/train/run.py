"""A run from its recipe to its end, in a locked folder."""

import time
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from typing import Any

from rich.console import Console

from dragoman.train.checkpoint import checkpoints
from dragoman.train.device import as_by_default, deterministic
from dragoman.train.job import Check, Job, Say, unchecked
from dragoman.train.memory import OUT_OF_MEMORY, within_memory
from dragoman.train.parallel import join_processes
from dragoman.train.recipe import RunRecipe
from dragoman.train.runfolder import RunFolder
from dragoman.train.start import check_start, copy_weights, keep_start
from dragoman.train.trainer import Trainer, TrainResult


@within_memory(lambda: OUT_OF_MEMORY)
@as_by_default()
def run_recipe(
    recipe: RunRecipe,
    assemble: Callable[[Any, RunFolder, Say, Check], Job[Any]],
    *,
    console: Console,
    estimate: Callable[[], Check] = lambda: unchecked,
) -> TrainResult:
    """Run a recipe to its end, or resume the unfinished run in its folder.

    `estimate` is called once the run can begin, before any text is read. `assemble` then builds the
    job, and the check that `estimate` returned may reject its model and batches before anything
    large is allocated. A run limited by steps that is killed at any moment and resumed ends
    bit-identical to an uninterrupted one; under `max_minutes` a falling rate and its warm-up follow
    the clock. Raises InputError for anything wrong with the recipe, its data or its folder,
    DragomanError for non-finite losses, a full disk and a lack of memory; checkpoints written
    before stay intact.
    """
    started = time.monotonic()
    processes = join_processes()
    if not processes.leads:
        console = Console(quiet=True)

    def begin() -> tuple[Job[Any], RunFolder]:
        recipe.data.check()  # before creating the folder
        folder, source = RunFolder.of(recipe), None
        check_start(recipe, folder.start)
        if folder.start is not None and not checkpoints(folder.checkpoints):
            source = folder.start.load()  # detects damage before reading texts
        if processes.leads:
            stack.enter_context(folder.open(recipe))
        say = partial(console.print, markup=False, emoji=False)  # corpus lines are not markup
        job = assemble(recipe, folder, say, estimate() if processes.leads else unchecked)
        if folder.start is not None and source is not None:
            theirs = folder.start.config
            console.print(copy_weights(source, theirs, job.model, job.config.model, recipe))
            keep_start(folder.training, folder.start, source)
        if processes.leads:
            folder.check_there()  # or the run would recreate its old folder
        return job, folder

    with ExitStack() as stack:
        stack.enter_context(deterministic(on=recipe.train.deterministic))
        job, folder = processes.in_turn(begin)
        return Trainer(job, recipe, folder, console, processes).run(started)
