"""What torch is asked to do while a test looks on."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode


class Call(NamedTuple):
    """One of them."""

    function: Callable[..., object]
    arguments: tuple[Any, ...]
    options: Mapping[str, Any]
    result: object


class Calls:
    """Remembers what is called; another class may override `see`."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[Call] = []

    def see(self, call: Call) -> None:
        """Note a call that has been answered."""
        self.seen.append(call)

    def answer(
        self,
        func: Callable[..., object],
        types: Sequence[type],  # noqa: ARG002 (torch's form)
        args: tuple[Any, ...] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> object:
        """Do what was asked for."""
        call = Call(func, args, kwargs or {}, func(*args, **(kwargs or {})))
        self.see(call)
        return call.result


class FunctionCalls(Calls, TorchFunctionMode):
    """The functions of torch and the methods of tensors that Python calls."""

    __torch_function__ = Calls.answer


class OperatorCalls(Calls, TorchDispatchMode):
    """The operators that those are made of."""

    __torch_dispatch__ = Calls.answer
