"""`native.c`, compiled when the package was installed if there was a C compiler.

It is optional: if it is missing, callers get None and compute the same with PyTorch, and one
warning says why. There is one library per processor level (`hatch_build.py`); its name contains the
hash of the source, and nothing else is loaded.
"""

import ctypes
import ctypes.util
import os
import platform
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from hashlib import sha256
from pathlib import Path
from threading import RLock, active_count
from typing import Any, Protocol

import torch
from torch import Tensor

from dragoman.errors import InputError
from dragoman.process import values_of

SOURCE = Path(__file__).with_name("native.c")
V3 = frozenset(["avx2", "bmi1", "bmi2", "f16c", "fma", "abm", "movbe", "xsave"])
V4 = V3 | frozenset(["avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"])
LEVELS = {
    "x86-64-v4-vnni": V4 | {"avx512_vnni"},
    "x86-64-v4": V4,
    "x86-64-v3": V3,
    "aarch64": frozenset({"asimd"}),
}
"""The /proc/cpuinfo flags of processors that can run each library, the fastest first."""
HARD_PAUSE = 2
"""`omp_pause_hard` of OpenMP 5.0, section 3.2.44."""
_LOCK = RLock()  # a signal handler may come here, too
_IMITATED = ContextVar("_IMITATED", default=False)


def fields(pointers: str, longs: str = "", floats: str = "") -> list[tuple[str, type]]:
    """Return the fields of a `struct` of `native.c` from their names."""
    kinds = (pointers, ctypes.c_void_p), (longs, ctypes.c_long), (floats, ctypes.c_float)
    return [(name, kind) for names, kind in kinds for name in names.split()]


class Ahead(ctypes.Structure):
    """`struct Ahead` of `native.c`: what the next steps of a decoder need."""

    kept: tuple[Tensor | None, ...]
    """Memory that nothing else keeps alive."""
    _fields_ = fields(
        "operations vectors scale logits store slots reordered own added cosine sine",
        "count work columns width most",
    )


class Functions(Protocol):
    """The functions of `native.c`, which take addresses and sizes."""

    def __getattr__(self, name: str) -> Callable[..., Any]:
        """Return one of them."""


def native() -> Functions | None:
    """Return the compiled functions, no-ops inside `imitated`; None if not compiled."""
    with _LOCK:
        functions = _loaded()
    return _Imitated() if functions is not None and _IMITATED.get() else functions


def compiled() -> Functions:
    """Return the compiled functions, which must be known to exist."""
    functions = native()
    assert functions is not None  # noqa: S101 (see `engine.products.can_pack`)
    return functions


def native_for(x: Tensor, *dtypes: torch.dtype) -> Functions | None:
    """Return them if they can read the tensor: contiguous, on the CPU, of one of the dtypes."""
    readable = x.device.type == "cpu" and x.dtype in dtypes and x.is_contiguous()
    return native() if readable else None


def address(x: Tensor, dtype: torch.dtype, *shape: int) -> int:
    """Return the address of a tensor's data, for a function that does not check its layout.

    Raises ValueError unless the tensor is contiguous, on the CPU, and of this dtype and shape.
    """
    if x.dtype is not dtype or x.shape != shape or not x.is_contiguous() or not x.is_cpu:
        layout = "" if x.is_contiguous() else ", not contiguous"
        found = f"{x.dtype} {tuple(x.shape)} on {x.device.type}{layout}"
        raise ValueError(f"the tensor is {found}; it must be contiguous {dtype} {shape} on the CPU")
    return x.data_ptr()


@contextmanager
def imitated() -> Iterator[None]:
    """Make compiled functions do nothing, for tensors that have a size but no data."""
    token = _IMITATED.set(True)
    try:
        yield
    finally:
        _IMITATED.reset(token)


class _Imitated:
    """The compiled functions for tensors that have a size but no data: they do nothing."""

    def __getattr__(self, name: str) -> Callable[..., int]:
        return lambda *_: 0


@cache
def _loaded() -> Functions | None:
    if not torch.backends.mkldnn.is_available():
        return None
    try:
        functions = _library()
    except (OSError, InputError) as error:
        reason = str(error).removesuffix(".")
        warnings.warn(
            "decoding and training on this CPU are slower than they could be, since their inner "
            f"loops are not compiled: {reason}.",
            stacklevel=1,
        )
        return None
    at, size = ctypes.c_void_p, ctypes.c_long
    functions.product.argtypes = (at, at, at, at, at, ctypes.c_int, at, size)
    functions.norm.argtypes = (at, at, at, size)
    functions.run.argtypes = (at, size, at, at, size, size)
    functions.gate.argtypes = functions.silu.argtypes = (at, at, size, size)
    functions.attend.argtypes = (at, at, at, at, at, size, at)
    functions.log_softmax.argtypes = (at, at, size, size)
    functions.drop.argtypes = (at, at, at, size, ctypes.c_int, ctypes.c_float, ctypes.c_int)
    functions.cross_entropy.argtypes = (
        *(at, at, at, size, size),
        *(ctypes.c_float, ctypes.c_int, ctypes.c_int),
    )
    functions.top.argtypes = (at, size, at, at, size, size)
    functions.advance.argtypes = (
        *(at, at, at, ctypes.c_int, at, at, size, size, size, size),
        ctypes.c_float,
    )
    functions.advance.restype = size
    functions.write_ahead.argtypes = (*(at, at, at, at, at, at, size, size, size), at, at, size)
    functions.write_ahead.restype = size
    return functions


def level() -> str | None:
    """Return the level of the loaded library; None if there is none."""
    return next(iter(_libraries()), None) if native() is not None else None


def _libraries() -> dict[str, Path]:
    """Return the libraries that this processor can run by level, the fastest first."""
    digest = sha256(SOURCE.read_bytes()).hexdigest()[:16]
    features = _features()
    files = {
        name: SOURCE.with_name(f"native.{name}.{digest}.so")
        for name, needed in LEVELS.items()
        if needed <= features
    }
    return {name: file for name, file in files.items() if file.exists()}


def _features() -> frozenset[str]:
    """Return the features of the processor by their names in Linux."""
    cpuinfo = Path("/proc/cpuinfo")
    found = values_of("flags", cpuinfo) or values_of("Features", cpuinfo) or [""]
    return frozenset(found[0].split())


def _library() -> ctypes.CDLL:
    """Load the library for this processor. Raises InputError or OSError that says what to do."""
    if not any(needed <= _features() for needed in LEVELS.values()):
        raise InputError(
            "they need Linux on x86-64 with AVX2 or on 64-bit ARM, and this is "
            f"{platform.system()} on {platform.machine()}"
        )
    if not (libraries := _libraries()):
        raise InputError(
            "this installation has none for this processor, or one of an older source; with a C "
            "compiler, such as gcc, install dragoman again (pip install --force-reinstall "
            "--no-deps --no-cache-dir, in a checkout make install)"
        )
    if (threads := _threads()) is None:
        raise InputError("PyTorch came without GNU OpenMP (libgomp), and the system has none")
    ctypes.CDLL(threads, mode=ctypes.RTLD_GLOBAL)  # so that the library finds its symbols
    return ctypes.CDLL(str(next(iter(libraries.values()))))


@cache
def _threads() -> str | None:
    """Return PyTorch's own file of GNU OpenMP, else the system's; None if there is none.

    A second one would have its own threads, which would get in the way of PyTorch's.
    """
    found = sorted(Path(torch.__file__).parent.glob("lib/libgomp*"))
    return str(found[0]) if found else ctypes.util.find_library("gomp")


@contextmanager
def share_of_threads(sharers: int) -> Iterator[None]:
    """Limit this thread's parallel loops, of PyTorch and `native.c`, to its share of threads.

    `torch.set_num_threads` would also affect all threads that start later. MKL, if PyTorch uses it,
    has a separate number for each thread.

    GNU OpenMP starts threads for each thread that runs such a loop, and keeps them. As soon as
    there are more threads than cores, it puts all to sleep ten times earlier, and a sentence
    translated alone takes 3.5 times as long. So the threads of this block end with it, unless the
    program has one thread.
    """
    before = torch.get_num_threads()  # in a new thread this lets PyTorch set it first
    if (threads := _threads()) is None:
        yield
        return
    set_threads, set_of_mkl = ctypes.CDLL(threads).omp_set_num_threads, _threads_of_mkl()
    share = max(1, before // sharers)
    try:
        if share < before:
            set_threads(share)
            set_of_mkl(share)
        yield
    finally:
        if share < before:
            set_threads(before)
            set_of_mkl(before)
        if share > 1 and active_count() > 1:
            _end_threads()


@cache
def _threads_of_mkl() -> Callable[[int], int]:
    """Return MKL's function for the calling thread, as PyTorch calls it; a no-op without MKL."""
    library = next(Path(torch.__file__).parent.glob("lib/libtorch_cpu.so"), None)
    functions = None if library is None else ctypes.CDLL(str(library))
    found: Callable[[int], int] | None = getattr(functions, "MKL_Set_Num_Threads_Local", None)
    return found or (lambda _: 0)


def _end_threads() -> None:
    """End the threads of GNU OpenMP; the next parallel loop starts them again.

    A forked child inherits its parent's record of these threads but not the threads, and its first
    parallel loop, of PyTorch or of `native.c`, would wait for them forever.
    """
    if threads := _threads():
        ctypes.CDLL(threads).omp_pause_resource_all(HARD_PAUSE)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_end_threads)
