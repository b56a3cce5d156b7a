"""Products whose rows do not depend on the number of rows.

On a CPU, PyTorch chooses a library by the size of a product. oneDNN (inside
`row_invariant_products`) sums a row in the same order next to any other rows, but products of at
most 4096 multiplications go to MKL or to a plain loop, which sum in another order. So one token of
a short sentence, decoded alone, would differ in its last digits from the same token in a batch.
Appending rows of zeros, and cutting them off again, lifts such products over the limit. From 4097
multiplications on, these are the plain operators.

This module also chooses the arithmetic of products: `autocast`, and oneDNN in full float32.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from copy import copy
from functools import cache
from pathlib import Path
from threading import RLock, Thread
from typing import Literal, TypeVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.backends import mkldnn

from dragoman.process import values_of

ModuleT = TypeVar("ModuleT", bound=nn.Module)
Precision = Literal["fp32", "bf16"]
Arithmetic = Literal["fp32", "bf16", "int8"]  # of decoding; int8 leaves the rest in fp32

HALVES = {"bf16": torch.bfloat16, "fp16": torch.float16}
SMALL_PRODUCT = 16**3  # multiplications up to which PyTorch does not use oneDNN
LONG_ROW = 1024  # columns beyond which oneDNN sums a lone row in another order
TRIED = ((32, 256), (64, 64), (128, 512), (512, 512), (2048, 96))  # columns and rows of matrices


class Linear(nn.Linear):
    """`x W^T + b`, each row of `x` independently."""

    def forward(self, x: Tensor) -> Tensor:
        """Map `(..., in_features)` to `(..., out_features)`."""
        if _takes_any_order(x) or (rows := x.numel() // self.in_features) == 0:
            return super().forward(x)
        wanted = max(_least_rows(self.weight.numel()), 2 if self.in_features > LONG_ROW else 1)
        if uses_onednn(x.dtype):
            wanted = max(wanted, _familiar_rows(rows))
        if rows >= wanted:
            return super().forward(x)
        flat = x.reshape(rows, self.in_features)
        out = super().forward(F.pad(flat, (0, 0, 0, wanted - rows)))[:rows]
        return out.view(*x.shape[:-1], self.out_features)


def _familiar_rows(rows: int) -> int:
    """Round up to one of a few numbers, as oneDNN compiles a kernel for each new shape."""
    grid = 1 if rows <= 4 else 8 if rows <= 64 else 64
    return -(-rows // grid) * grid


def head_product(a_BHTK: Tensor, b_BHKN: Tensor) -> Tensor:
    """Return `a @ b` of every head, `(B, H, T, N)`, each row of `a` independently."""
    rows = a_BHTK.shape[-2]
    if _takes_any_order(a_BHTK) or rows >= (wanted := _least_rows(b_BHKN.numel())):
        return torch.bmm(a_BHTK, b_BHKN) if a_BHTK.dim() == 3 else a_BHTK @ b_BHKN
    return (F.pad(a_BHTK, (0, 0, 0, wanted - rows)) @ b_BHKN)[..., :rows, :]


def _takes_any_order(x: Tensor) -> bool:
    """Return whether a product stays plain: on other devices, and in a graph without sizes."""
    return x.device.type != "cpu" or torch.compiler.is_exporting()


def _least_rows(multiplications_per_row: int) -> int:
    return SMALL_PRODUCT // max(1, multiplications_per_row) + 1


@cache
@torch.inference_mode()
def rows_are_independent(precision: Precision) -> bool:
    """Return whether a row of a module's product on this CPU has the same bits in any batch.

    It depends on the processor and on the version of PyTorch (docs/decisions.md).
    """
    with row_invariant_products(), autocast(precision, torch.device("cpu")):
        return rows_keep_bits(lambda linear: linear)


def rows_keep_bits(product_of: Callable[[nn.Linear], Callable[[Tensor], Tensor]]) -> bool:
    """Return whether rows have the same bits in any batch, by multiplying a few matrices.

    Each is the weight of a linear layer, from which `product_of` makes the function to try. Its
    numbers are random, because regular ones have the same sum in many orders.
    """
    numbers = torch.Generator("cpu").manual_seed(1)
    for columns, rows in TRIED:
        linear = nn.utils.skip_init(Linear, columns, rows, bias=False, device="cpu").float()
        linear.weight.normal_(generator=numbers)
        x = torch.randn(130, columns, generator=numbers, device="cpu", dtype=torch.float32)
        product = product_of(linear)
        expected = product(x)
        for count in (1, 2, 3, 5, 8, 33):
            if not torch.equal(torch.cat([product(part) for part in x.split(count)]), expected):
                return False
    return True


def autocast(precision: Arithmetic | Literal["fp16"], device: torch.device) -> torch.autocast:
    """Return the context in which products on `device` run in `precision`.

    `bf16` rounds the factors of products to bfloat16 and keeps weights in float32; `fp16`
    does the same with float16. Any other value turns off a surrounding autocast.
    """
    if precision in HALVES:
        return torch.autocast(device.type, dtype=HALVES[precision])
    return torch.autocast(device.type, enabled=False)


def evaluation_view(model: ModuleT) -> ModuleT:
    """Return a model with the same parameters and buffers, in its own evaluation mode.

    The modules are shallow copies. Anything that changes a weight (an optimizer, `load_state_dict`,
    `to`) changes it in both. `train()`, and hooks registered later, affect only the one they are
    called on, so threads that share the weights do not affect each other. If a submodule of the
    model is replaced later, the view keeps the old one: make a new view.
    """
    view = copy(model)
    state = vars(view)
    state |= {name: value.copy() for name, value in state.items() if "_hooks" in name}
    state["_modules"] = {
        name: None if child is None else evaluation_view(child)
        for name, child in state["_modules"].items()
    }
    state["training"] = False
    return view


@contextmanager
def inference(model: nn.Module, precision: Arithmetic = "fp32") -> Iterator[torch.device]:
    """Compute without gradients and with independent rows; yields the model's device.

    Raises ValueError for a model in training mode: `evaluation_view` returns one that is not.
    """
    if model.training:
        raise ValueError("the model is in training mode; give evaluation_view(model)")
    device = next(model.parameters()).device
    with computing(device, precision):
        yield device


@contextmanager
def computing(device: torch.device, precision: Arithmetic = "fp32") -> Iterator[None]:
    """Compute on a device without gradients and with independent rows."""
    with (
        cpu_by_default(),
        torch.inference_mode(),
        row_invariant_products(),
        autocast(precision, device),
    ):
        yield


@contextmanager
def cpu_by_default() -> Iterator[None]:
    """Make tensors on the CPU where no device is named, as without `torch.set_default_device`."""
    usual = torch.get_default_device().type == "cpu"
    with nullcontext() if usual else torch.device("cpu"):  # entered, it slows every call of torch
        yield


@contextmanager
def row_invariant_products() -> Iterator[None]:
    """Give a row of a float32 product on a CPU the same bits next to any other rows.

    The CPU's default library (MKL) chooses how to sum by the number of rows, so a sentence's
    logits change in the last digits with its batch. oneDNN does not if `rows_are_independent`
    (except for one row of more than 1024 columns, which `Linear` handles). `onednn_setting` finds
    the setting that makes PyTorch use oneDNN for plain float32 products.

    The setting belongs to the process: it is on in all threads while one of them is inside, and is
    restored when the last one leaves (docs/decisions.md). Inside the context
    `torch.get_float32_matmul_precision` raises an error, so start `torch.compile` outside.
    """
    _USES.enter()
    try:
        yield
    finally:
        _USES.leave()


@contextmanager
def training_products(precision: str, device: torch.device) -> Iterator[None]:
    """Compute float32 products of a training step by oneDNN on AMD's processors.

    MKL leaves half of AVX-512 unused there: 220 against 500 GFLOP/s with 2 threads of a Zen 5; on
    a Zen 4, whose units are half as wide, a step is 1.03 to 1.06 times as fast.
    """
    with row_invariant_products() if precision == "fp32" and _is_amd(device) else nullcontext():
        yield


@cache
def _is_amd(device: torch.device) -> bool:
    vendors = values_of("vendor_id", Path("/proc/cpuinfo"))
    return device.type == "cpu" and "AuthenticAMD" in vendors


class _Uses:
    """The number of open contexts in all threads, and the setting before the first one."""

    def __init__(self) -> None:
        self.lock = RLock()
        self._count = 0
        self._before = ""

    def enter(self) -> None:
        """Count one more; the first one turns the setting on."""
        matmul = mkldnn.matmul  # type: ignore[attr-defined] # a property of the module
        with self.lock:
            if self._count == 0:
                setting = onednn_setting()
                self._before = matmul.fp32_precision
                matmul.fp32_precision = setting
            self._count += 1

    def leave(self) -> None:
        """Count one less; the last one restores the setting."""
        matmul = mkldnn.matmul  # type: ignore[attr-defined] # a property of the module
        with self.lock:
            self._count -= 1
            if self._count == 0:
                matmul.fp32_precision = self._before


_USES = _Uses()  # one per process, like the setting


@cache
def onednn_setting() -> str:
    """Return the precision setting under which this processor's oneDNN multiplies in full float32.

    That is `bf16`, or with AMX, where it would lose half of the digits, `tf32`; the error of one
    product tells which (docs/decisions.md). It is measured in a separate thread, which an autocast
    around the caller does not reach; of several first callers at the same time, one measures. An
    executor would start no thread after the main thread has ended; at exit none starts.
    """
    with _USES.lock:
        thread = Thread(target=_measured_setting)
        with suppress(RuntimeError):
            thread.start()
            thread.join()
        return _measured_setting()


@cache
def _measured_setting() -> str:
    matmul = mkldnn.matmul  # type: ignore[attr-defined] # a property of the module
    before = matmul.fp32_precision
    a, b = torch.linspace(-1, 1, 64 * 256, dtype=torch.float32).view(2, 64, 128)
    try:
        matmul.fp32_precision = "bf16"
        error = (a @ b.T - (a.double() @ b.double().T)).abs().max()
    finally:
        matmul.fp32_precision = before
    return "bf16" if error < 1e-3 else "tf32"


def uses_onednn(dtype: torch.dtype) -> bool:
    """Return whether a CPU product of this dtype currently goes to oneDNN."""
    matmul = mkldnn.matmul  # type: ignore[attr-defined] # a property of the module
    return dtype is torch.bfloat16 or bool(matmul.fp32_precision == onednn_setting())


@cache
def has_bf16_units() -> bool:
    """Return whether this CPU has units for products in bfloat16 (AVX-512 BF16, AMX).

    Found by trying: these units flush subnormal results to 0. Without them PyTorch uses float32
    arithmetic, which keeps such results and is slower here than plain float32.
    """
    x = torch.eye(32, dtype=torch.bfloat16, device="cpu") * 2.0**-65
    return bool((x @ x)[0, 0].item() == 0.0)
