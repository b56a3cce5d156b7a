"""Start the processes of a run on this machine, and restart them if one is killed.

Nothing of a run can be reached from another machine: the launcher binds the store through which its
processes find each other to 127.0.0.1, and gloo and NCCL are told to use the loopback interface.
The processes end with the launcher, however it ends: each reads its standard input, a pipe whose
other end only the launcher holds.
"""

import math
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from types import FrameType

import torch
import torch.distributed as dist

from dragoman.errors import DragomanError, InputError
from dragoman.process import THREADS, cpu_quota
from dragoman.train.parallel import GO_ON, STORE_PORT, launched
from dragoman.train.progress import handling_ends

LOOPBACK = "lo0" if sys.platform == "darwin" else "lo"
NOTICE = 5.0
"""Seconds for a process to notice that another one has ended."""
SHUTDOWN = 30.0
"""Seconds for a process that is told to end to finish its step and save."""
POLL = 0.05
FEW = 8
"""Number of processes that any machine may start; one with more cores may start one per core."""


def launch(
    count: int, words: Sequence[str], *, max_restarts: int = 0, say: Callable[[str], None] = print
) -> int:
    """Run `dragoman WORDS` in `count` processes on this machine; return the exit code.

    If one is killed, all restart from the last checkpoint, at most `max_restarts` times, with a
    message through `say`. An error that a process reports itself, such as an invalid setting, would
    recur, so it ends the run. Raises InputError for invalid numbers, DragomanError if a process was
    killed.
    """
    if sys.platform == "win32":
        raise InputError("--nproc needs Linux or macOS; leave it out, to train in one process")
    most = max(FEW, os.cpu_count() or 1)
    if not 1 <= count <= most or launched()[1] > 1:
        raise InputError(
            f"--nproc {count} is not a number of processes to start here; give 1 to {most}, or "
            "leave it out under torchrun"
        )
    if max_restarts < 0:
        raise InputError(f"--max-restarts is {max_restarts}; it must be 0 or more")
    for restart in range(max_restarts + 1):
        codes = _run(count, words)
        killed = next((rank for rank, code in codes.items() if code < 0), None)
        if killed is None:
            return next((code for code in codes.values() if code > 0), 0)
        name = signal.Signals(-codes[killed]).name
        who = f"process {killed} of {count} was killed ({name})"
        if restart < max_restarts:
            say(f"{who}; all start again from the last checkpoint ({restart + 1}/{max_restarts}).")
    raise DragomanError(f"{who}; {GO_ON}")


def _run(count: int, words: Sequence[str]) -> dict[int, int]:
    """Run all processes once; return the exit codes of those that failed by themselves, by rank."""
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen()
        store = dist.TCPStore(  # type: ignore[attr-defined]  # documented, not annotated
            "127.0.0.1",
            listening.getsockname()[1],
            is_master=True,
            wait_for_workers=False,
            master_listen_fd=listening.detach(),  # the store closes it
        )
    ranks: list[subprocess.Popen[bytes]] = []
    received: list[int] = []

    def forward(number: int, _frame: FrameType | None) -> None:
        received.append(number)
        for rank in ranks:
            rank.send_signal(number)

    try:
        with handling_ends(forward):
            for number in range(count):
                ranks.append(_start(number, count, store.port, words))
                if received:  # a signal during the start reached only the others
                    ranks[-1].send_signal(received[-1])
                    break
            codes = _wait(ranks, received)
    finally:
        for rank in ranks:
            rank.kill()
            rank.communicate()
    return {0: 128 + signal.SIGINT} if received else codes


def _start(rank: int, count: int, port: int, words: Sequence[str]) -> "subprocess.Popen[bytes]":
    """Start a process in its own session: a terminal's Ctrl-C reaches only the launcher."""
    threads = str(max(1, torch.get_num_threads() // count))
    given = os.environ.get(THREADS)
    variables = {
        THREADS: threads if given in (None, str(cpu_quota())) else given,  # a quota is for all
        "RANK": str(rank),
        "LOCAL_RANK": str(rank),
        "WORLD_SIZE": str(count),
        STORE_PORT: str(port),
        "GLOO_SOCKET_IFNAME": LOOPBACK,
        "NCCL_SOCKET_IFNAME": LOOPBACK,
    }
    return subprocess.Popen(  # noqa: S603 -- this very program
        [sys.executable, "-P", "-m", "dragoman", *words],  # -P: no imports from the current folder
        env={**os.environ, **variables},
        stdin=subprocess.PIPE,
        start_new_session=True,
    )


def _wait(ranks: "Sequence[subprocess.Popen[bytes]]", received: Sequence[int]) -> dict[int, int]:
    """Wait until all have ended; return the exit codes of those that failed by themselves.

    If one fails, the others have `NOTICE` seconds to notice; then they are told to end.
    """
    deadline = math.inf
    while True:
        codes = [rank.poll() for rank in ranks]
        if received or None not in codes or time.monotonic() > deadline:
            break
        if deadline == math.inf and any(codes):
            deadline = time.monotonic() + NOTICE
        time.sleep(POLL)
    if not received:
        for rank in ranks:
            rank.terminate()
    deadline = time.monotonic() + SHUTDOWN
    while time.monotonic() < deadline and any(rank.poll() is None for rank in ranks):
        time.sleep(POLL)
    return {rank: code for rank, code in enumerate(codes) if code}
