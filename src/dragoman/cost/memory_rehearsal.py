"""A rehearsal: real code runs with tensors that have a shape and a dtype but no numbers.

Which tensors are alive at which moment depends on every line of a model, on what autograd keeps of
it and on the path that each pattern of attention takes; a formula for all of it would be a second
model, and wrong with the next change of the first. So the real lines are run, forward and backward,
and the storages that would be alive are followed. What says *where* (ids, masks, places) is small
and stays real, since shapes depend on it; all that is floating-point is pretended.

A pretended tensor is an ordinary one whose memory is never touched: all of them lie in the same
room of addresses, which takes no memory. Views of it are made by PyTorch; for every other operator
PyTorch's fake tensors say once what it gives back for arguments of these shapes, and a tensor of
that shape is pretended. So each of a model's like layers costs the fraction of a millisecond that
calling its operators takes.

What a kernel takes and gives back inside one operator is not seen, but for one thing that is large:
where the CPU has no units for bfloat16, oneDNN sums such a product in float32, a matrix at a time.
"""

import mmap
import sys
import weakref
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch._subclasses.fake_tensor import (  # there is no public name for them
    DataDependentOutputException,
    DynamicOutputShapeException,
    FakeTensorMode,
)
from torch.backends import mkldnn
from torch.utils._python_dispatch import TorchDispatchMode

from dragoman.models import ModelConfig
from dragoman.nn.cpu.precision import has_bf16_units, onednn_setting

CPU = torch.device("cpu")
aten = torch.ops.aten
INDEXING = {
    aten.index.Tensor,
    aten.index_put.default,
    aten.index_put_.default,
    aten._index_put_impl_.default,
}
PRODUCTS = {aten.mm.default, aten.addmm.default, aten.bmm.default, aten.baddbmm.default}
UNCERTAIN = (DataDependentOutputException, DynamicOutputShapeException)
NO_RESERVE = 0x4000  # Linux's MAP_NORESERVE, which Python does not name


class Like(NamedTuple):
    """All of a tensor but its numbers."""

    dtype: torch.dtype
    size: tuple[int, ...]
    stride: tuple[int, ...]
    nbytes: int
    """Of its storage."""


class Plain(NamedTuple):
    """An argument or a result that is no tensor; 1, 1.0 and True are not the same."""

    kind: type
    value: Any


class Rehearsal(TorchDispatchMode):
    """Inside it operators run without numbers, and the storages they make are followed.

    A number that is asked for (a loss, a norm) is 1.
    """

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        onednn_setting()  # is measured once in a process, which pretended tensors cannot
        self._sums_in_float32 = not has_bf16_units() and (
            mkldnn.is_available() and torch.ops.mkldnn._is_mkldnn_bf16_supported()  # noqa: SLF001
        )
        self.peak = 0
        """Bytes that were alive when most were."""
        self._sizes: dict[int, int] = {}
        self._pretended: set[int] = set()
        self._counts = True
        self.now = 0
        """Bytes of all storages that are alive and followed."""

    def build(self, make: Callable[[], nn.Module]) -> nn.Module:
        """Make a model without weights; they are followed."""
        self._counts = False
        with self:
            model = make()
        self._counts = True
        for parameter in model.parameters():
            storage = parameter.untyped_storage()
            self.now += storage.nbytes() - self._sizes[storage._cdata]  # noqa: SLF001
            self._sizes[storage._cdata] = storage.nbytes()  # noqa: SLF001
        self.forget_peak()
        return model

    def forget_peak(self) -> None:
        """Look for the peak of what follows."""
        self.peak = self.now

    def __torch_dispatch__(
        self,
        func: Any,  # noqa: ANN401 (an operator, by torch's protocol)
        types: Sequence[type],
        args: tuple[Any, ...] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> object:
        """Run one operator; in inference mode they come whole that are made of several."""
        if torch.is_inference_mode_enabled():
            with self:
                out = func.decompose(*args, **(kwargs or {}))
            if out is not NotImplemented:
                return out
        out = self._run(func, args, kwargs or {})
        for made in _tensors(out):
            self._follow(made)
            if self._sums_in_float32 and func in PRODUCTS and made.dtype is torch.bfloat16:
                self._see(4 * made.shape[-1] * made.shape[-2])
        return out

    def _run(self, func: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> object:  # noqa: ANN401
        pretended = any(self._is_pretended(x) for x in _tensors((*args, *kwargs.values())))
        if pretended and func is aten._local_scalar_dense.default:  # noqa: SLF001
            return 1.0
        if func.is_view or func is aten._unsafe_view.default:  # noqa: SLF001
            return func(*args, **kwargs)
        if pretended and func in INDEXING:
            args = (args[0], self._as_places(args[1]), *args[2:])
        if func._schema.is_mutable:  # noqa: SLF001
            written = _written(func, args, kwargs)
            if pretended or any(x.is_floating_point() for x in _tensors(written)):
                return written[0] if len(written) == 1 else (written or None)
            return func(*args, **kwargs)
        made = _made_by(func, _described(args), _described(list(kwargs.items())))
        if made is None and pretended:
            raise TypeError(f"the shape that {func} gives depends on numbers that are not there")
        filled_later = func is aten.empty.memory_format  # at random, maybe
        if made is None or not (pretended or filled_later or _has_numbers(made)):
            return func(*args, **kwargs)
        return self._pretend(made)

    def _is_pretended(self, tensor: Tensor) -> bool:
        return tensor.untyped_storage()._cdata in self._pretended  # noqa: SLF001

    def _pretend(self, made: Hashable) -> object:
        """Make what was foretold."""
        if isinstance(made, Plain):
            return made.value
        if isinstance(made, Like):
            tensor = _tensor_in(_room(made.nbytes.bit_length()), made)
            self._pretended.add(tensor.untyped_storage()._cdata)  # noqa: SLF001
            return tensor
        assert isinstance(made, tuple)  # noqa: S101 (there is no other)
        return [self._pretend(each) for each in made]

    def _as_places(self, indices: Sequence[Tensor | None]) -> list[Tensor | None]:
        """Turn the masks among indices, which are real, into the places where they are True."""
        places: list[Tensor | None] = []
        for index in indices:
            if index is None or index.dtype is not torch.bool or self._is_pretended(index):
                places.append(index)
            else:
                places.extend(index.nonzero().unbind(1))
        return places

    def _follow(self, made: Tensor) -> None:
        storage = made.untyped_storage()
        key = storage._cdata  # noqa: SLF001 (the storage's identity: views share it)
        if key in self._sizes:
            return
        self._sizes[key] = storage.nbytes() if self._counts else 0
        self.now += self._sizes[key]
        weakref.finalize(storage, self._let_go, key)
        self._see(0)

    def _see(self, passing: int) -> None:
        """Look whether this is the peak, with so many bytes that are gone after the operator."""
        self.peak = max(self.peak, self.now + passing)

    def _let_go(self, key: int) -> None:
        self.now -= self._sizes.pop(key)
        self._pretended.discard(key)


def real_id(config: ModelConfig) -> int:
    """Return an id that is no padding."""
    return 1 if config.pad_id == 0 else 0


# ---------------------------------------------------------------- what operators give back


@lru_cache(maxsize=1 << 14)
def _made_by(func: Any, args: Hashable, kwargs: Hashable) -> Hashable | None:  # noqa: ANN401
    """Return what an operator makes of arguments like these; None where their numbers decide."""
    with FakeTensorMode():
        try:
            return _described(func(*_faked(args), **dict(_faked(kwargs))))
        except UNCERTAIN:
            return None


def _described(value: object) -> Hashable:
    """Turn arguments or results into what can be compared: `Like`, `Plain`, tuples of them."""
    if isinstance(value, Tensor):
        nbytes = value.untyped_storage().nbytes()
        return Like(value.dtype, tuple(value.shape), value.stride(), nbytes)
    if isinstance(value, list | tuple):
        return tuple(_described(each) for each in value)
    return Plain(type(value), value)


def _faked(described: Hashable) -> Any:  # noqa: ANN401
    """Turn it back, with fake tensors."""
    if isinstance(described, Like):
        return torch.empty_strided(described.size, described.stride, dtype=described.dtype)
    if isinstance(described, Plain):
        return described.value
    assert isinstance(described, tuple)  # noqa: S101 (there is no other)
    return [_faked(each) for each in described]


def _has_numbers(made: Hashable) -> bool:
    if isinstance(made, Like):
        return made.dtype.is_floating_point
    return not isinstance(made, Plain) and isinstance(made, tuple) and any(map(_has_numbers, made))


def _written(func: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> tuple[Any, ...]:  # noqa: ANN401
    """Return the arguments that an operator writes to and gives back."""
    given = dict(zip((argument.name for argument in func._schema.arguments), args, strict=False))  # noqa: SLF001
    return tuple(
        (given | dict(kwargs))[argument.name]
        for argument in func._schema.arguments  # noqa: SLF001
        if argument.alias_info is not None and argument.alias_info.is_write
    )[: len(func._schema.returns)]  # noqa: SLF001


# ---------------------------------------------------------------- tensors without numbers


@lru_cache(maxsize=64)
def _room(power: int) -> mmap.mmap:
    """Reserve addresses for `2 ** power` bytes; nobody writes to them, so they take no memory."""
    if sys.platform == "win32":
        return mmap.mmap(-1, 1 << power)
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
    return mmap.mmap(-1, 1 << power, flags | (NO_RESERVE if sys.platform == "linux" else 0))


def _tensor_in(room: mmap.mmap, like: Like) -> Tensor:
    """Make a tensor that lies there, whatever else does."""
    tensor = torch.empty(0, dtype=like.dtype)
    if not like.nbytes:
        return tensor.set_(torch.UntypedStorage(), 0, like.size, like.stride)
    whole = torch.frombuffer(room, dtype=torch.uint8, count=like.nbytes)
    return tensor.set_(whole.untyped_storage(), 0, like.size, like.stride)


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
