"""What several processes share among them, without starting one."""

import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from dragoman.data.batches import Stream
from dragoman.errors import DragomanError, InputError
from dragoman.train import parallel
from dragoman.train.config import TrainConfig
from dragoman.train.loop import Interrupt, Progress
from dragoman.train.parallel import ALONE, World


@dataclass
class Numbers:
    """Batches that are numbers, each once in all epochs; `sizes` are those of the epochs."""

    sizes: list[int]
    fingerprint: str = "numbers"
    drawn: int = 0
    made: int = 0

    def draw(self, rng: np.random.Generator) -> "Epoch":  # noqa: ARG002 (a protocol)
        """The next epoch."""
        epoch = Epoch(self, range(1000 * self.drawn, 1000 * self.drawn + self.sizes[self.drawn]))
        self.drawn += 1
        return epoch


@dataclass
class Epoch:
    """Some of them."""

    source: Numbers
    numbers: range
    padding: float = 0.0
    largest: tuple[int, ...] = ()

    def __len__(self) -> int:
        return len(self.numbers)

    def __getitem__(self, number: int, /) -> int:
        self.source.made += 1
        return self.numbers[number]


def rank_of(rank: int, size: int) -> World:
    """A process of several, which is connected to none."""
    world = World()
    world.rank, world.size = rank, size
    return world


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
            rank_of(rank, size).draw(stream, count)  # type: ignore[type-var]
            for rank, stream in enumerate(streams)
        ]
        assert [len(share) for share in shares] == [count] * size
        assert [each for turn in zip(*shares, strict=True) for each in turn] == expected
        assert all(stream.state_dict() == alone.state_dict() for stream in streams)
    assert [source.made for source in sources] == [count * steps] * size


def test_random_states_of_several() -> None:
    """Each rank gets its own back, one that is alone that of the first, and a new one none."""
    states: dict[str, Tensor] = {}
    for rank in range(12):
        rank_of(rank, 12).begin_random(seed=3)
        name = f"rank{rank}/cpu" if rank else "cpu"
        states[name] = torch.get_rng_state()
        states |= {f"{name}-next": torch.rand(3)}
    drawn = {name.removesuffix("-next"): states.pop(name) for name in [*states] if "-" in name}
    assert len({tuple(numbers.tolist()) for numbers in drawn.values()}) == 12
    for rank in range(12):
        rank_of(rank, 12).set_random_states(states)
        assert torch.equal(torch.rand(3), drawn[f"rank{rank}/cpu" if rank else "cpu"])
    ALONE.set_random_states(states)
    assert torch.equal(torch.rand(3), drawn["cpu"])
    before = torch.get_rng_state()
    rank_of(12, 13).set_random_states(states)
    assert torch.equal(torch.get_rng_state(), before)


def test_one_process_is_what_it_was() -> None:
    """It draws, stops, fails and computes without a word of others."""
    rule = ALONE.stop_rule(TrainConfig(max_steps=4), Interrupt())
    assert [rule(Progress(step=step)) for step in (3, 4)] == [None, "4 steps"]
    assert ALONE.describe(3, torch.device("cpu"), sharded=False) == ""
    assert ALONE.device(torch.device("cuda:1")) == torch.device("cuda:1")
    assert ALONE.gather("x") == ["x"]
    assert ALONE.in_turn(lambda: 5) == 5

    def fail() -> int:
        raise InputError("wrong")

    with pytest.raises(InputError, match="wrong"):
        ALONE.in_turn(fail)


@pytest.mark.parametrize(("name", "local", "gpus"), [("cuda", "2", 2), ("cuda:1", "0", 2)])
def test_a_gpu_for_each(monkeypatch: pytest.MonkeyPatch, name: str, local: str, gpus: int) -> None:
    """More processes than GPUs, or one GPU for all, is one sentence; a CPU serves any number."""
    monkeypatch.setenv("LOCAL_RANK", local)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: gpus)
    world = rank_of(int(local), 3)
    with pytest.raises(InputError, match=r"3 processes take a GPU each: torch sees 2 here"):
        world.device(torch.device(name))
    assert world.device(torch.device("cpu")) == torch.device("cpu")


class Answers(World):
    """The first of three processes, to which the others have answered already."""

    def __init__(self, *others: object) -> None:
        super().__init__()
        self.size = 3
        self.others = others

    def gather(self, value: object, *, patient: bool = False) -> list[object]:  # type: ignore[override]  # noqa: ARG002
        """What this one says, and the others."""
        return [value, *self.others]


def test_what_others_say_counts() -> None:
    """Another rank's error is raised; an interrupt of one stops all, and the progress is shared."""
    with pytest.raises(DragomanError, match="there"):
        Answers(None, (False, "there")).together(lambda: 1)
    other = Progress(step=4).to_dict()
    config = TrainConfig(max_steps=4)
    rule = Answers((False, other), (True, other)).stop_rule(config, Interrupt())
    assert rule(Progress(step=4)) == "interrupted"
    rule = Answers((False, other), (False, other)).stop_rule(config, Interrupt())
    assert rule(Progress(step=4)) == "4 steps"


def test_an_interrupt_while_ranks_tell_each_other_waits_for_the_next_step() -> None:
    """The others have been told that there is none: one rank may not stop by itself."""
    interrupt = Interrupt()

    class Late(Answers):
        def gather(self, value: object, *, patient: bool = False) -> list[object]:  # type: ignore[override]
            """Be interrupted when the value is on its way."""
            told = super().gather(value, patient=patient)
            interrupt.pressed = True
            return told

    other = (False, Progress(step=3).to_dict())
    rule = Late(other, other).stop_rule(TrainConfig(max_steps=4), interrupt)
    assert rule(Progress(step=3)) is None
    assert rule(Progress(step=3)) == "interrupted"


def test_nothing_is_unpickled() -> None:
    """What ranks tell each other runs no code: neither pickle nor what pickles inside torch."""
    folder = Path(parallel.__file__).parent
    said = {path.name: path.read_text(encoding="utf-8") for path in folder.glob("*.py")}
    words = r"\b(import pickle|torch\.load|torch\.distributed\.elastic|\w+_object(_list)?\()"
    assert {name: found for name, text in said.items() if (found := re.findall(words, text))} == {}
