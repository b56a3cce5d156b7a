"""What is made of a model's logits."""

import torch
from torch._subclasses.fake_tensor import FakeTensorMode  # there is no public name for it

from dragoman.lens.inspecting import _without


def test_what_is_never_written_has_no_probability() -> None:
    """The columns of those ids are minus infinity, the others as they were."""
    logits_PV = torch.arange(6.0).view(2, 3)
    assert _without(logits_PV, (1,)).tolist() == [[0.0, -torch.inf, 2.0], [3.0, -torch.inf, 5.0]]
    assert torch.equal(_without(logits_PV, ()), logits_PV)


def test_the_logits_may_lie_on_a_gpu() -> None:
    """The columns are told there; a fake tensor obeys the rule that all lie on one device."""
    with FakeTensorMode():
        logits_PV = torch.zeros(2, 3, device="cuda")
        assert _without(logits_PV, (1,)).device.type == "cuda"
