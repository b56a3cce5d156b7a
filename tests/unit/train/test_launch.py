"""The launcher of a run's processes."""

import signal
import subprocess
import sys

import pytest
import torch

from dragoman.errors import InputError
from dragoman.process import THREADS
from dragoman.train import launch


def test_no_rank_starts_after_a_signal(monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that is just starting when the signal arrives is terminated too."""
    started = list["subprocess.Popen[bytes]"]()

    def start(*_: object) -> "subprocess.Popen[bytes]":
        sleeping = [sys.executable, "-c", "import sys; sys.stdin.read()"]
        started.append(subprocess.Popen(sleeping, stdin=subprocess.PIPE))
        signal.raise_signal(signal.SIGTERM)
        return started[-1]

    monkeypatch.setattr(launch, "_start", start)
    assert launch._run(3, []) == {0: 128 + signal.SIGINT}
    (rank,) = started
    assert rank.returncode == -signal.SIGTERM


def test_windows_starts_no_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    """It has neither these signals nor that interface."""
    monkeypatch.setattr(sys, "platform", "win32")
    with pytest.raises(InputError, match="--nproc needs Linux or macOS"):
        launch.launch(2, [])


@pytest.mark.parametrize(("given", "each"), [("8", "4"), ("6", "6"), (None, "4")])
def test_processes_share_the_threads_of_a_quota(
    monkeypatch: pytest.MonkeyPatch, given: str | None, each: str
) -> None:
    """As they share those of a machine; a number that the user has set is for each of them."""
    started = list[dict[str, str]]()
    monkeypatch.setattr(subprocess, "Popen", lambda *_, env, **__: started.append(env))
    monkeypatch.setattr(torch, "get_num_threads", lambda: 8)
    monkeypatch.setattr(launch, "cpu_quota", lambda: 8)
    monkeypatch.delenv(THREADS, raising=False)
    if given is not None:
        monkeypatch.setenv(THREADS, given)
    launch._start(0, 2, 1, [])
    assert started[0][THREADS] == each
