"""A rehearsal: real code runs with tensors that have a shape and a dtype but no numbers.

Which tensors are alive at which moment depends on every line of a model, on what autograd keeps of
it and on the path that each pattern of attention takes; a formula for all of it would be a second
model, and wrong with the next change of the first. So the real lines are run, forward and backward,
on PyTorch's fake tensors: no number is computed and no memory taken, and the storages that would be
alive are followed. What says *where* (ids, masks, places) is small and stays real, since shapes
depend on it; all that is floating-point is fake.

What a kernel takes and gives back inside one operator is not seen.
"""

import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import TracebackType
from typing import Any, NamedTuple, Self

import torch
from torch import Tensor, nn
from torch._subclasses.fake_tensor import (  # there is no public name for them
    DataDependentOutputException,
    DynamicOutputShapeException,
    FakeTensor,
    FakeTensorMode,
    unset_fake_temporarily,
)
from torch.utils._python_dispatch import TorchDispatchMode

from dragoman.models import ModelConfig
from dragoman.nn.precision import onednn_setting

CPU = torch.device("cpu")
aten = torch.ops.aten
INDEXING = {
    aten.index.Tensor,
    aten.index_put.default,
    aten.index_put_.default,
    aten._index_put_impl_.default,
}
UNCERTAIN = (DataDependentOutputException, DynamicOutputShapeException)


class Moment(NamedTuple):
    """Bytes alive at one moment."""

    alive: int
    """All storages that were followed."""
    gradients: int
    """Those among them that have become a parameter's gradient."""


class Rehearsal(TorchDispatchMode):
    """Inside it operators run without numbers, and the storages they make are followed.

    A number that is asked for (a loss, a norm) is 1.
    """

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        onednn_setting()  # is measured once in a process, which fake tensors cannot
        self.fake = FakeTensorMode(allow_non_fake_inputs=True)
        self.peak = Moment(0, 0)
        """When most was alive."""
        self._sizes: dict[int, int] = {}
        self._alive = 0
        self._gradients = 0

    @property
    def now(self) -> Moment:
        """What is alive at this moment."""
        return Moment(self._alive, self._gradients)

    def build(self, make: Callable[[], nn.Module]) -> nn.Module:
        """Make a model without weights; what it holds is followed, and its gradients."""
        with self.fake:
            model = make()
        for parameter in model.parameters():
            self._follow(parameter)
            parameter.register_post_accumulate_grad_hook(self._count_gradient)
        return model

    def forget_peak(self) -> None:
        """Look for the peak of what follows."""
        self.peak = self.now

    def __enter__(self) -> Self:
        """Begin: the fake tensors' own mode lies below this one."""
        self.fake.__enter__()
        super().__enter__()  # type: ignore[no-untyped-call]
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """End, in the other order."""
        super().__exit__(kind, error, trace)  # type: ignore[no-untyped-call]
        self.fake.__exit__(kind, error, trace)

    def __torch_dispatch__(
        self,
        func: Any,  # noqa: ANN401 (an operator, by torch's protocol)
        types: Sequence[type],
        args: tuple[Any, ...] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> object:
        """Run one operator; in inference mode they come whole that are made of several."""
        if func is torch.ops.prim.device.default:  # asked before every other operator
            return CPU
        if torch.is_inference_mode_enabled():
            with self:
                out = func.decompose(*args, **(kwargs or {}))
            if out is not NotImplemented:
                return out
        out = self._run(func, args, kwargs or {})
        for made in _tensors(out):
            self._follow(made)
        return out

    def _run(self, func: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> object:  # noqa: ANN401
        pretended = any(isinstance(x, FakeTensor) for x in _tensors((*args, *kwargs.values())))
        if pretended and func is aten._local_scalar_dense.default:  # noqa: SLF001
            return 1.0
        if pretended and func in INDEXING:
            args = (args[0], _as_places(args[1]), *args[2:])
        try:
            out = func(*args, **kwargs)
        except UNCERTAIN:
            if pretended:
                raise
        else:
            has_numbers = any(made.is_floating_point() for made in _tensors(out))
            if pretended or has_numbers or func is aten.empty.memory_format:
                return out
        with unset_fake_temporarily():
            return func(*args, **kwargs)

    def _follow(self, made: Tensor) -> None:
        storage = made.untyped_storage()
        key = storage._cdata  # noqa: SLF001 (the storage's identity: views share it)
        if key in self._sizes:
            return
        self._sizes[key] = storage.nbytes()
        self._alive += storage.nbytes()
        weakref.finalize(storage, self._let_go, key)
        if self._alive > self.peak.alive:
            self.peak = self.now

    def _let_go(self, key: int) -> None:
        self._alive -= self._sizes.pop(key)

    def _count_gradient(self, parameter: Tensor) -> None:
        if parameter.grad is not None:
            self._gradients += parameter.grad.untyped_storage().nbytes()


def real_id(config: ModelConfig) -> int:
    """Return an id that is no padding."""
    return 1 if config.pad_id == 0 else 0


def _as_places(indices: Sequence[Tensor | None]) -> list[Tensor | None]:
    """Turn the masks among indices, which are real, into the places where they are True."""
    places: list[Tensor | None] = []
    for index in indices:
        if index is not None and index.dtype is torch.bool:
            with unset_fake_temporarily():
                places.extend(index.nonzero().unbind(1))
        else:
            places.append(index)
    return places


def _tensors(values: object) -> Iterator[Tensor]:
    """Go through the tensors among an operator's arguments or results, in lists too."""
    if isinstance(values, Tensor):
        yield values
    elif isinstance(values, list | tuple):
        for value in values:
            if isinstance(value, Tensor):
                yield value
            elif isinstance(value, list | tuple):
                yield from _tensors(value)
