"""The inputs of a search follow the model to another device: "meta", which has no values."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest
from tests.unit.tasks.complete import generating, translating
from tests.unit.tasks.tiny import make_config, make_model, make_tokenizer
from tests.unit.tasks.tiny_generator import make_generator
from torch import Tensor
from torch.overrides import TorchFunctionMode
from torch.utils._pytree import tree_leaves

from dragoman.decode import Advance
from dragoman.tasks.generate.ids import Prompt
from dragoman.tasks.held import Held
from dragoman.tasks.translate.ids import Source
from dragoman.tasks.translate.translator import Translator


class Elsewhere(TorchFunctionMode):
    """Fail if an operation mixes tensors of two devices, as a GPU does.

    A number on "meta" reads as 9, and a truth value as false.
    """

    def __torch_function__(
        self,
        func: Callable[..., object],
        types: Sequence[type],
        args: tuple[Any, ...] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> object:
        """Run the function after the check."""
        if func in (Tensor.__int__, Tensor.__bool__) and args[0].is_meta:
            return 9 if func is Tensor.__int__ else False
        tensors = [x for x in tree_leaves((args, kwargs)) if isinstance(x, Tensor) and x.dim()]
        alone = func is Tensor.to or len({x.device for x in tensors}) < 2
        assert alone, f"{func} of tensors on two devices"
        return func(*args, **(kwargs or {}))


class ChosenError(Exception):
    """The first token is about to be chosen."""


@dataclass
class Noting:
    """A strategy and frontier that records the devices of limits and stops at the first step."""

    beam_size: int = 1
    n_best: int = 1
    devices: list[str] = field(default_factory=list)

    def begin(self, max_B: Tensor, eos_id: int) -> "Noting":  # noqa: ARG002 (a protocol)
        """Record the device of the limits."""
        self.devices.append(max_B.device.type)
        return self

    def advance(self, log_probs_NV: Tensor) -> Advance:
        """Record the device of the logits after the processors, and stop."""
        self.devices.append(log_probs_NV.device.type)
        raise ChosenError

    def keep(self, sentences_K: Tensor) -> None:
        """Fail: the search stops before."""
        raise NotImplementedError


def translate(strategy: Noting) -> None:
    """Translate with a minimum length."""
    tokenizer = make_tokenizer()
    model = make_model(make_config(tokenizer)).to("meta")
    options = translating(min_length=3)
    translator = Translator(model, tokenizer, tokenizer)
    with Elsewhere():
        translator._ids.search([Source([5, 6, 7], [8])], options, strategy)


def generate(strategy: Noting) -> None:
    """Generate with every processor that reads previous tokens."""
    generator = make_generator()
    generator._ids.model = Held.of(generator.model.to("meta"), "fp32")
    options = generating(min_length=3, repetition_penalty=1.2)
    with Elsewhere():
        next(generator._ids.steps([Prompt("", [2, 5, 6], begins_text=True)], strategy, options))


@pytest.mark.parametrize("run", [translate, generate])
def test_a_search_is_on_the_device_of_its_model(run: Callable[[Noting], None]) -> None:
    """Sources, limits and the inputs of processors are on the model's device."""
    strategy = Noting()
    with pytest.raises(ChosenError):
        run(strategy)
    assert strategy.devices == ["meta", "meta"]
