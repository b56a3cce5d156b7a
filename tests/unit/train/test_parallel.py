"""How several processes share work, tested without training, and their launcher."""

import re
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from dragoman.data.batches import Epoch, Stream
from dragoman.errors import InputError
from dragoman.process import THREADS
from dragoman.train import launch, parallel
from dragoman.train.device import own_gpu
from dragoman.train.processes import ALONE, Processes


@dataclass
class Numbers:
    """Batches that are numbers, unique over all epochs; `sizes` are the epochs' lengths."""

    sizes: list[int]
    fingerprint: str = "numbers"
    drawn: int = 0
    made: int = 0

    def draw(self, rng: np.random.Generator) -> Epoch[int]:  # noqa: ARG002 (a protocol)
        """Return the next epoch."""
        first, count = 1000 * self.drawn, self.sizes[self.drawn]
        self.drawn += 1

        def make(number: int) -> int:
            self.made += 1
            return first + number

        return Epoch(count=count, examples=0, padding=0.0, largest=(), make=make)


@given(
    st.integers(1, 9),
    st.integers(1, 4),
    st.integers(1, 6),
    st.lists(st.integers(0, 7), min_size=220, max_size=220).filter(lambda sizes: sum(sizes) > 220),
)
def test_the_ranks_share_the_batches_of_one_process(
    size: int, count: int, steps: int, sizes: list[int]
) -> None:
    """In each step they learn from those of one process with as many, none twice, none left out.

    Each makes no more than its own, and all stand at the same place of the data afterwards.
    """
    alone = Stream(Numbers(sizes), seed=1)
    sources = [Numbers(sizes) for _ in range(size)]
    streams = [Stream(source, seed=1) for source in sources]
    for _ in range(steps):
        expected = ALONE.draw(alone, count * size)  # type: ignore[type-var]  # ints are enough
        shares = [
            Processes(rank, size).draw(stream, count)  # type: ignore[type-var]
            for rank, stream in enumerate(streams)
        ]
        assert [len(share) for share in shares] == [count] * size
        assert [each for turn in zip(*shares, strict=True) for each in turn] == expected
        assert all(stream.state_dict() == alone.state_dict() for stream in streams)
    assert [source.made for source in sources] == [count * steps] * size


def test_random_states_of_several() -> None:
    """Each rank restores its own state, a single process the first one, a new rank none."""
    states: dict[str, Tensor] = {}
    for rank in range(12):
        Processes(rank, 12).begin_random(seed=3)
        name = f"rank{rank}/cpu" if rank else "cpu"
        states[name] = torch.get_rng_state()
        states |= {f"{name}-next": torch.rand(3)}
    drawn = {name.removesuffix("-next"): states.pop(name) for name in [*states] if "-" in name}
    assert len({tuple(numbers.tolist()) for numbers in drawn.values()}) == 12
    for rank in range(12):
        Processes(rank, 12).set_random_states(states)
        assert torch.equal(torch.rand(3), drawn[f"rank{rank}/cpu" if rank else "cpu"])
    ALONE.set_random_states(states)
    assert torch.equal(torch.rand(3), drawn["cpu"])
    before = torch.get_rng_state()
    Processes(12, 13).set_random_states(states)
    assert torch.equal(torch.get_rng_state(), before)


@pytest.mark.parametrize(("name", "local", "gpus"), [("cuda", "2", 2), ("cuda:1", "0", 2)])
def test_a_gpu_for_each(monkeypatch: pytest.MonkeyPatch, name: str, local: str, gpus: int) -> None:
    """More processes than GPUs, or a single GPU for all, is refused; a CPU serves any number."""
    monkeypatch.setenv("LOCAL_RANK", local)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: gpus)
    with pytest.raises(InputError, match=r"3 processes take a GPU each: torch sees 2 here"):
        own_gpu(torch.device(name), 3)
    assert own_gpu(torch.device("cpu"), 3) == torch.device("cpu")


def test_nothing_is_unpickled() -> None:
    """Messages between ranks run no code: there is no pickle, not even within torch."""
    folder = Path(parallel.__file__).parent
    said = {path.name: path.read_text(encoding="utf-8") for path in folder.glob("*.py")}
    words = r"\b(import pickle|torch\.load|torch\.distributed\.elastic|\w+_object(_list)?\()"
    assert {name: found for name, text in said.items() if (found := re.findall(words, text))} == {}


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
