"""Starts the processes of a run on this machine, and starts them again where one was killed."""

import logging
import os
import signal
import sys
from collections.abc import Callable, Sequence

import torch
from torch.distributed.elastic.multiprocessing import DefaultLogsSpecs, SignalException
from torch.distributed.elastic.multiprocessing.errors import ChildFailedError
from torch.distributed.launcher.api import LaunchConfig, elastic_launch

from dragoman.errors import DragomanError, InputError
from dragoman.train.parallel import GO_ON, launched


def launch(
    count: int, words: Sequence[str], *, max_restarts: int = 0, say: Callable[[str], None] = print
) -> int:
    """Run `dragoman WORDS` in so many processes on this machine; return the exit code.

    Where one is killed, all start again from the last checkpoint, `max_restarts` times at most, and
    `say` is told. What a process ends with by itself, such as a loss that is not finite, would come
    again, so it ends the run. Raises InputError for numbers that make no sense, DragomanError where
    one was killed.
    """
    if count < 1 or launched()[1] > 1:
        raise InputError(
            f"--nproc {count} is no number of processes to start here; give 1 or more, and leave "
            "it out where torchrun has started them"
        )
    if max_restarts < 0:
        raise InputError(f"--max-restarts is {max_restarts}; it must be 0 or more")
    logging.disable(logging.ERROR)  # of torch, which reports what the processes have printed
    os.environ.setdefault("OMP_NUM_THREADS", str(max(1, torch.get_num_threads() // count)))
    for restart in range(max_restarts + 1):
        codes = _run(count, words)
        who = _killed(codes, count)
        if who is None:
            return next((code for code in codes.values() if code > 0), 0)
        if restart < max_restarts:
            say(f"{who}; all start again from the last checkpoint ({restart + 1}/{max_restarts}).")
    raise DragomanError(f"{who}; {GO_ON}")


def _run(count: int, words: Sequence[str]) -> dict[int, int]:
    """Run all processes once; return the exit codes of those that failed, by rank."""
    config = LaunchConfig(
        min_nodes=1,
        max_nodes=1,
        nproc_per_node=count,
        run_id="dragoman",
        rdzv_backend="c10d",
        rdzv_endpoint="localhost:0",
        local_addr="localhost",
        max_restarts=0,
        logs_specs=DefaultLogsSpecs(log_dir=os.devnull),
    )
    try:
        elastic_launch(config, sys.executable)("-m", "dragoman", *words)
    except SignalException:
        return {0: 128 + signal.SIGINT}
    except ChildFailedError as error:
        codes = {rank: int(failed.exitcode) for rank, failed in sorted(error.failures.items())}
        return codes or {0: 1}
    return {}


def _killed(codes: dict[int, int], count: int) -> str | None:
    """Say which process was killed, if one was: not by the launcher, which ends the others."""
    for rank, code in codes.items():
        if code < 0 and code != -signal.SIGTERM:
            return f"process {rank} of {count} was killed ({signal.Signals(-code).name})"
    return None
