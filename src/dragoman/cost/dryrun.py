"""A dry run: real code runs on tensors that have a shape and a dtype but no numbers.

The real lines of a model run, forward and backward, and a `DryRun` counts the operations and
follows the storages that would be alive. Tensors that say *where* (ids, masks, positions) are small
and stay real, since shapes depend on them; everything floating-point is imitated.

An imitated tensor is an ordinary one whose memory is never touched: all of them share one range of
addresses, which takes no memory. PyTorch makes views of it; for every other operator, PyTorch's
fake tensors give the shape of the result, once for arguments of the same shapes, and a tensor of
that shape is imitated.

Operations are counted by the rules of `torch.utils.flop_counter`: a product of `(m, k)` and
`(k, n)` takes `2 m k n`; everything else counts as nothing.

What a kernel allocates and frees inside one operator is not seen, with one large exception: on a
CPU without bfloat16 units, oneDNN sums such a product in float32, a matrix at a time.
"""

import mmap
import sys
import weakref
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import cache, lru_cache
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch._subclasses.fake_tensor import (  # there is no public name for them
    DataDependentOutputException,
    DynamicOutputShapeException,
    FakeTensorMode,
)
from torch.backends import mkldnn
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import (
    TreeSpec,
    tree_flatten,
    tree_leaves,
    tree_map_only,
    tree_unflatten,
)
from torch.utils.flop_counter import flop_registry, sdpa_backward_flop_count, sdpa_flop_count

from dragoman.models import Model, ModelConfig, build
from dragoman.nn.cpu.products import has_bf16_units, onednn_setting

CPU = torch.device("cpu")
aten = torch.ops.aten
FUSED = aten._scaled_dot_product_flash_attention_for_cpu  # noqa: SLF001
FUSED_BACKWARD = aten._scaled_dot_product_flash_attention_for_cpu_backward  # noqa: SLF001
INDEXING = {aten.index, aten.index_put, aten.index_put_, aten._index_put_impl_}
PRODUCTS = {aten.mm, aten.addmm, aten.bmm, aten.baddbmm}
PAIRWISE = {aten.bmm, aten.baddbmm, FUSED, FUSED_BACKWARD}
UNCERTAIN = (DataDependentOutputException, DynamicOutputShapeException)
NO_RESERVE = 0x4000  # Linux's MAP_NORESERVE, which Python does not name


class Like(NamedTuple):
    """Everything about a tensor except its numbers."""

    dtype: torch.dtype
    size: tuple[int, ...]
    stride: tuple[int, ...]


class DryRun(TorchDispatchMode):
    """A mode in which operators run without numbers, and operations and live storages are counted.

    A number that is read (a loss, a norm) is 1.
    """

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        onednn_setting()  # measured once per process, which imitated tensors cannot do
        self._sums_in_float32 = not has_bf16_units() and (
            mkldnn.is_available() and torch.ops.mkldnn._is_mkldnn_bf16_supported()  # noqa: SLF001
        )
        self.flops = 0
        """Operations of all products so far."""
        self.pairwise = 0
        """Those of batched products and attention kernels: queries, keys, values, no weights."""
        self.now = 0
        """Bytes of all live storages."""
        self.peak = 0
        """The most bytes that were alive at once."""
        self._with_storage = Counter[int]()
        self._sizes: dict[int, int] = {}
        self._imitated: set[int] = set()

    def build(self, config: ModelConfig) -> Model:
        """Create a model without weights, whose parameters are counted."""
        with self:
            model = build(config)
        held = {_key(each): each.untyped_storage().nbytes() for each in model.parameters()}
        self._sizes = dict.fromkeys(self._sizes, 0) | held
        self.now = self.peak = sum(held.values())
        return model

    def forget_peak(self) -> None:
        """Start looking for a new peak."""
        self.peak = self.now

    def flops_with(self, tensor: Tensor) -> int:
        """Return the operations of the products in which a tensor or a view of it was a factor."""
        return self._with_storage[_key(tensor)]

    def __torch_dispatch__(
        self,
        func: Any,  # noqa: ANN401 (an operator, by torch's protocol)
        types: Sequence[type],
        args: tuple[Any, ...] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> object:
        """Run one operator; in inference mode, composite operators arrive whole."""
        if torch.is_inference_mode_enabled():
            with self:
                out = func.decompose(*args, **(kwargs or {}))
            if out is not NotImplemented:
                return out
        out = self._run(func, args, kwargs or {})
        self._count(func, args, out)
        for made in _tensors(out):
            self._follow(made)
            products = self._sums_in_float32 and func.overloadpacket in PRODUCTS
            if products and made.dtype is torch.bfloat16:
                self._see(4 * made.shape[-1] * made.shape[-2])
        return out

    def _count(self, func: Any, args: tuple[Any, ...], out: object) -> None:  # noqa: ANN401
        if func.overloadpacket not in FORMULAS:
            return
        flops = FORMULAS[func.overloadpacket](*args, out_val=out)
        self.flops += flops
        self.pairwise += flops if func.overloadpacket in PAIRWISE else 0
        for key in set(map(_key, _tensors(args))):
            self._with_storage[key] += flops

    def _run(self, func: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> object:  # noqa: ANN401
        imitated = any(_key(x) in self._imitated for x in _tensors((args, kwargs)))
        if imitated and func is aten._local_scalar_dense.default:  # noqa: SLF001
            return 1.0
        if func.is_view or func is aten._unsafe_view.default:  # noqa: SLF001
            return func(*args, **kwargs)
        if imitated and func.overloadpacket in INDEXING:
            args = (args[0], self._as_places(args[1]), *args[2:])
        if func._schema.is_mutable:  # noqa: SLF001
            written = _written(func, args, kwargs)
            if imitated or any(x.is_floating_point() for x in _tensors(written)):
                return written[0] if len(written) == 1 else (written or None)
            return func(*args, **kwargs)
        leaves, tree = tree_flatten((args, kwargs))
        made = _made_by(func, tree, *map(_described, leaves))
        if made is None and imitated:
            raise TypeError(f"the shape that {func} gives depends on numbers that are not there")
        filled_later = func is aten.empty.memory_format  # perhaps at random
        has_numbers = any(x.is_floating_point() for x in _tensors(made))
        if made is None or not (imitated or filled_later or has_numbers):
            return func(*args, **kwargs)
        made = tree_map_only(Tensor, _in_room, made)
        self._imitated.update(map(_key, _tensors(made)))
        return made

    def _as_places(self, indices: Sequence[Tensor | None]) -> list[Tensor | None]:
        """Replace the masks among indices, which are real, by the positions where they are True."""
        places: list[Tensor | None] = []
        for index in indices:
            if index is None or index.dtype is not torch.bool or _key(index) in self._imitated:
                places.append(index)
            else:
                places.extend(index.nonzero().unbind(1))
        return places

    def _follow(self, made: Tensor) -> None:
        storage, key = made.untyped_storage(), _key(made)
        if key not in self._sizes:
            self._sizes[key] = storage.nbytes()
            self.now += self._sizes[key]
            weakref.finalize(storage, self._let_go, key)
            self._see(0)

    def _see(self, passing: int) -> None:
        """Update the peak; `passing` bytes are gone after the operator."""
        self.peak = max(self.peak, self.now + passing)

    def _let_go(self, key: int) -> None:
        self.now -= self._sizes.pop(key)
        self._imitated.discard(key)


def _attention_flops(count: Callable[..., int], *given: Tensor) -> int:
    """Count every query head, whether or not it shares its keys."""
    *grad, q, k, v = (each.shape for each in given)
    return int(count(*grad, q, q[:2] + k[2:], q[:2] + v[2:]))


FORMULAS: dict[Any, Callable[..., int]] = flop_registry | {
    FUSED: lambda *args, **_: _attention_flops(sdpa_flop_count, *args[:3]),
    FUSED_BACKWARD: lambda *args, **_: _attention_flops(sdpa_backward_flop_count, *args[:4]),
}
"""PyTorch's rules, and the missing ones for fused attention on a CPU."""


PACKED: dict[str, Callable[..., Tensor]] = {
    "mkldnn._reorder_linear_weight.default": lambda weight, *_: weight,
    "mkldnn._linear_pointwise.default": lambda x, w, *_: x.new_empty(len(x), len(w)),
    "mkldnn._linear_pointwise.binary": lambda x, _, w, *__: x.new_empty(len(x), len(w)),
}
"""The results of products with packed weights (`engine/products.py`), for which PyTorch has no
rule; some builds lack these operators, hence the names."""


@lru_cache(maxsize=1 << 14, typed=True)  # 1, 1.0 and True are not the same
def _made_by(func: Any, tree: TreeSpec, *leaves: object) -> object:  # noqa: ANN401
    """Return an operator's results for such arguments, as fakes; None if they depend on numbers."""
    with _fakes():
        given = [
            torch.empty_strided(x.size, x.stride, dtype=x.dtype) if isinstance(x, Like) else x
            for x in leaves
        ]
        args, kwargs = tree_unflatten(given, tree)
        try:
            return PACKED.get(str(func), func)(*args, **kwargs)
        except UNCERTAIN:
            return None


@cache
def _fakes() -> FakeTensorMode:
    """Return one mode for all operators: creating one costs as much as asking it something."""
    return FakeTensorMode()


def _described(value: object) -> object:
    """Turn an argument into something comparable."""
    if isinstance(value, Tensor):
        return Like(value.dtype, tuple(value.shape), value.stride())
    return value


def _written(func: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> tuple[Any, ...]:  # noqa: ANN401
    """Return the arguments that an operator writes to and returns."""
    schema = func._schema  # noqa: SLF001
    given = dict(zip((each.name for each in schema.arguments), args, strict=False)) | dict(kwargs)
    written = (x.name for x in schema.arguments if x.alias_info and x.alias_info.is_write)
    return tuple(given[name] for name in written)[: len(schema.returns)]


@lru_cache(maxsize=64)
def _room(power: int) -> mmap.mmap:
    """Reserve addresses for `2 ** power` bytes; nothing writes to them, so they take no memory."""
    if sys.platform == "win32":
        return mmap.mmap(-1, 1 << power)
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
    return mmap.mmap(-1, 1 << power, flags | (NO_RESERVE if sys.platform == "linux" else 0))


def _in_room(like: Tensor) -> Tensor:
    """Create a tensor at these addresses, whatever else uses them."""
    tensor, nbytes = torch.empty(0, dtype=like.dtype), like.untyped_storage().nbytes()
    if not nbytes:
        return tensor.set_(torch.UntypedStorage(), 0, like.shape, like.stride())
    room = _room(nbytes.bit_length())
    whole = torch.frombuffer(room, dtype=torch.uint8, count=nbytes)
    return tensor.set_(whole.untyped_storage(), 0, like.shape, like.stride())


def _key(tensor: Tensor) -> int:
    """Return what identifies a storage: views share it."""
    key: int = tensor.untyped_storage()._cdata  # noqa: SLF001
    return key


def _tensors(values: object) -> list[Tensor]:
    """Return the tensors among an operator's arguments or results, also those in lists."""
    return [value for value in tree_leaves(values) if isinstance(value, Tensor)]
