"""The launcher of a run's processes."""

import signal
import subprocess
import sys

import pytest

from dragoman.errors import InputError
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
