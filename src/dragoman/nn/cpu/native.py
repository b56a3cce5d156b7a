"""`native.c`, compiled on first use where there is a C compiler.

It is optional: whoever asks gets None where it cannot be had, and computes the same with PyTorch.
The result is kept in the user's cache folder, under a name that depends on the source, the compiler
and the processor.
"""

import ctypes
import os
import platform
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from hashlib import sha256
from pathlib import Path
from threading import Lock
from typing import Any, Protocol

import torch
from torch import Tensor

SOURCE = Path(__file__).with_name("native.c")
FLAGS = ("-O3", "-march=native", "-std=c11", "-fPIC", "-ffp-contract=off", "-fno-math-errno")
WIDE = ("-mprefer-vector-width=512",) if platform.machine() in {"x86_64", "AMD64"} else ()
THREADED = "-fopenmp"
_LOCK = Lock()
_IMITATED = ContextVar("_IMITATED", default=False)


class Functions(Protocol):
    """The functions of `native.c`, which take addresses and sizes."""

    def __getattr__(self, name: str) -> Callable[..., Any]:
        """One of them."""


def native() -> Functions | None:
    """Return the compiled functions, or None without a compiler."""
    with _LOCK:
        return _loaded()


def native_for(x: Tensor, *dtypes: torch.dtype) -> Functions | None:
    """Return them if they can read this tensor: contiguous, on the CPU, of one of these types.

    Inside `imitated` they do nothing.
    """
    readable = x.device.type == "cpu" and x.dtype in dtypes and x.is_contiguous()
    functions = native() if readable else None
    return _Imitated() if functions is not None and _IMITATED.get() else functions


@contextmanager
def imitated() -> Iterator[None]:
    """Inside, what is compiled does nothing, for tensors that have a size but no numbers."""
    token = _IMITATED.set(True)
    try:
        yield
    finally:
        _IMITATED.reset(token)


class _Imitated:
    def __getattr__(self, name: str) -> Callable[..., int]:
        return lambda *_: 0


@cache
def _loaded() -> Functions | None:
    compiler = shutil.which(os.environ.get("CC", "cc"))
    if compiler is None or not torch.backends.mkldnn.is_available():
        return None
    try:
        functions = ctypes.CDLL(str(_compiled(compiler)))
    except (OSError, subprocess.SubprocessError):
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
    return functions


def _compiled(compiler: str) -> Path:
    """Return the file of the compiled functions, which is made unless it is there."""
    folder = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "dragoman"
    version = subprocess.run([compiler, "--version"], capture_output=True, check=True).stdout  # noqa: S603 -- the user's own compiler
    known = (
        SOURCE.read_bytes(),
        version,
        FLAGS,
        WIDE,
        _processor(),
        _threads(),
    )
    file = folder / f"native-{sha256(repr(known).encode()).hexdigest()[:16]}.so"
    if not file.is_file():
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        with tempfile.TemporaryDirectory(dir=folder) as scratch:
            _compile(compiler, Path(scratch)).replace(file)
    return file


def _compile(compiler: str, scratch: Path) -> Path:
    """Compile, and link to the library of threads that PyTorch has loaded already.

    A second one would have threads of its own, which would wait in the way of PyTorch's.
    """
    parts, made, threads = scratch / "native.o", scratch / "native.so", _threads()
    flags = [*FLAGS, *WIDE, *([THREADED] if threads else [])]
    for command in (
        [compiler, *flags, "-c", str(SOURCE), "-o", str(parts)],
        [compiler, "-shared", str(parts), *threads, "-lm", "-o", str(made)],
    ):
        subprocess.run(command, capture_output=True, check=True, timeout=60)  # noqa: S603
    return made


def _threads() -> tuple[str, ...]:
    """The file of GNU OpenMP that came with PyTorch; without it the functions use one thread."""
    return tuple(map(str, sorted(Path(torch.__file__).parent.glob("lib/libgomp*"))[:1]))


def _processor() -> bytes:
    """What `-march=native` depends on."""
    try:
        lines = Path("/proc/cpuinfo").read_bytes().split(b"\n\n")[0].splitlines()
    except OSError:
        return f"{platform.machine()} {platform.processor()}".encode()
    return b"".join(line for line in lines if line.startswith((b"flags", b"model", b"Features")))
