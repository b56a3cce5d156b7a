"""One optimizer step."""

import pytest
import torch
from tests.calls import FunctionCalls
from tests.unit.train.made import make_batch, make_model, make_stepper, random_pairs, weights_of
from torch import Tensor

from dragoman.train.step import Skipped


def test_losses_are_read_once() -> None:
    """Losses and the norm are read once, after all micro-batches."""
    counts = []
    for number in (1, 4):
        stepper = make_stepper(make_model())
        with FunctionCalls() as calls:
            stepper([make_batch(random_pairs(2)) for _ in range(number)], 1e-3)
        reads = (Tensor.item, Tensor.tolist, Tensor.__float__)  # each waits for the GPU
        counts.append(sum(call.function in reads for call in calls.seen))
    assert counts == [2, 2]


@pytest.mark.parametrize("what", ["loss", "gradient"])
def test_not_finite_moves_nothing(what: str) -> None:
    """A step with a non-finite loss or gradient changes no weight, moment or gradient."""
    model = make_model()
    stepper = make_stepper(model)
    if what == "loss":
        with torch.no_grad():
            model.get_parameter("decoder.layers.0.ffn.down.weight")[0, 0] = torch.inf
    else:
        model.output.weight.register_hook(lambda gradient: gradient * torch.nan)
    before = weights_of(model)
    skipped = stepper([make_batch(random_pairs(3))], 1e-3)
    assert isinstance(skipped, Skipped)
    assert str(skipped).startswith(f"the {what}")
    assert not any(weight.grad is not None for weight in model.parameters())
    for name, weight in model.named_parameters():
        assert torch.equal(weight, before[name])
    assert not stepper.optimizer.state
