"""Moving a run to another device: "meta", which has no values, and two fake GPUs.

On "meta" no loss can be computed, so each run ends in an error; the inputs of the model up to then
are checked.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load, save
from tests.unit.train import hand
from tests.unit.train.made import make_console, make_model
from torch import Tensor, nn
from torch.nn.modules.module import register_module_forward_pre_hook
from torch.utils._pytree import tree_leaves

from dragoman.tasks.task import find_task
from dragoman.train.checkpoint import random_state, set_random_state
from dragoman.train.job import unchecked
from dragoman.train.optimizer import load_optimizer_tensors
from dragoman.train.runfolder import RunFolder
from dragoman.train.trainer import Trainer

META = torch.device("meta")


@contextmanager
def given() -> Iterator[set[str]]:
    """Record the devices of all tensors that are passed to modules."""
    devices: set[str] = set()

    def look(_: nn.Module, arguments: tuple[Any, ...]) -> None:
        devices.update(x.device.type for x in tree_leaves(arguments) if isinstance(x, Tensor))

    handle = register_module_forward_pre_hook(look)
    yield devices
    handle.remove()


@pytest.mark.parametrize("task", hand.TASKS)
def test_batches_follow_the_model(task: str, tmp_path: Path) -> None:
    """Batches of a step and of a validation are moved to the model's device."""
    recipe, say = hand.TASKS[task](tmp_path).recipe, make_console(terminal=False)[0].print
    with RunFolder.of(recipe).open(recipe) as folder:
        job = find_task(task).assemble(recipe, folder, say, unchecked)
        trainer = Trainer(job, recipe, folder, make_console(terminal=False)[0])
    job.model.to(META)
    trainer.place = replace(trainer.place, device=META)
    for run in (trainer.measure, trainer.take_step):
        with given() as devices, pytest.raises((RuntimeError, NotImplementedError), match="meta"):
            run()
        assert devices == {"meta"}


def test_the_optimizer_follows_the_model() -> None:
    """Moments are loaded from a file to the CPU and moved to the device of the weights."""
    model = make_model().to(META)
    optimizer = torch.optim.Adam(model.parameters())
    moments = {f"{name}/exp_avg": torch.ones(p.shape) for name, p in model.named_parameters()}
    load_optimizer_tensors(optimizer, model, moments)
    kept = [state["exp_avg"].device for state in optimizer.state.values()]
    assert kept == [META] * len(moments)


def test_random_numbers_of_every_gpu_go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """A checkpoint stores the state of each GPU's generator and restores it.

    With another number of GPUs, those that exist in both are restored.
    """
    states = list[Tensor]()
    of_torch: dict[str, Callable[..., object]] = {
        "get_rng_state_all": lambda: [state.clone() for state in states],
        "set_rng_state": lambda state, device: states.__setitem__(device, state),
        "device_count": lambda: len(states),
        "is_available": lambda: True,
    }
    for name, ours in of_torch.items():
        monkeypatch.setattr(torch.cuda, name, ours)
    for count in (3, 2, 1):
        states[:] = [torch.tensor([number, 7], dtype=torch.uint8) for number in range(2)]
        saved = load(save(random_state()))
        drawn = torch.rand(3)
        states[:] = [torch.zeros(2, dtype=torch.uint8)] * count
        set_random_state(saved)
        assert [state.tolist() for state in states] == [[0, 7], [1, 7], [0, 0]][:count]
        assert torch.equal(torch.rand(3), drawn)
