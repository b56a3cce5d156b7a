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


class FunctionCalls(TorchFunctionMode):
    """Remembers the functions of torch and the methods of tensors that Python calls."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[Call] = []

    def __torch_function__(
        self,
        func: Callable[..., object],
        types: Sequence[type],
        args: tuple[Any, ...] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> object:
        """Do what was asked for, and note it."""
        self.seen.append(Call(func, args, kwargs or {}, func(*args, **(kwargs or {}))))
        return self.seen[-1].result


class OperatorCalls(TorchDispatchMode):
    """Remembers the operators that those are made of."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.seen: list[Call] = []

    def __torch_dispatch__(
        self,
        func: Callable[..., object],
        types: Sequence[type],
        args: tuple[Any, ...] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> object:
        """Do what was asked for, and note it."""
        self.seen.append(Call(func, args, kwargs or {}, func(*args, **(kwargs or {}))))
        return self.seen[-1].result
