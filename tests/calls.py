"""Recorders of the calls that torch receives during a test."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode


class Call(NamedTuple):
    """A call and its result."""

    function: Callable[..., object]
    arguments: tuple[Any, ...]
    options: Mapping[str, Any]
    result: object


class Calls:
    """Records calls; a subclass may override `see`."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[Call] = []

    def see(self, call: Call) -> None:
        """Record a call that has returned."""
        self.seen.append(call)

    def answer(
        self,
        func: Callable[..., object],
        types: Sequence[type],  # noqa: ARG002 (torch's form)
        args: tuple[Any, ...] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> object:
        """Make the call, and record it."""
        call = Call(func, args, kwargs or {}, func(*args, **(kwargs or {})))
        self.see(call)
        return call.result


class FunctionCalls(Calls, TorchFunctionMode):
    """Records the functions of torch and the tensor methods that Python calls."""

    __torch_function__ = Calls.answer


class OperatorCalls(Calls, TorchDispatchMode):
    """Records the operators that implement those functions."""

    __torch_dispatch__ = Calls.answer
