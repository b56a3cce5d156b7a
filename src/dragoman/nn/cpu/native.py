"""`native.c`, compiled on first use where there is a C compiler.

It is optional: where it is missing, callers get None and compute the same with PyTorch, and one
warning says why. The library is kept in the user's cache folder; its name depends on the source,
the compiler and the processor and ends in the SHA-256 of the file. Only a file with that hash is
loaded, and only if it and its folder belong to this user and nobody else may write to them.
"""

import ctypes
import os
import platform
import shutil
import stat
import subprocess
import tempfile
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from functools import cache
from hashlib import sha256
from pathlib import Path
from threading import Lock
from typing import Any, Protocol

import torch
from torch import Tensor

from dragoman.errors import InputError
from dragoman.files.writing import rename_durably, user_folder

SOURCE = Path(__file__).with_name("native.c")
FLAGS = ("-O3", "-march=native", "-std=c11", "-fPIC", "-ffp-contract=off", "-fno-math-errno")
WIDE = ("-mprefer-vector-width=512",) if platform.machine() in {"x86_64", "AMD64"} else ()
THREADED = "-fopenmp"
WRITABLE_BY_OTHERS = stat.S_IWGRP | stat.S_IWOTH
HARD_PAUSE = 2
"""`omp_pause_hard` of OpenMP 5.0, section 3.2.44."""
_LOCK = Lock()
_IMITATED = ContextVar("_IMITATED", default=False)


class Functions(Protocol):
    """The functions of `native.c`, which take addresses and sizes."""

    def __getattr__(self, name: str) -> Callable[..., Any]:
        """One of them."""


def native() -> Functions | None:
    """Return the compiled functions, idle inside `imitated`; None without a compiler."""
    with _LOCK:
        functions = _loaded()
    return _Imitated() if functions is not None and _IMITATED.get() else functions


def native_for(x: Tensor, *dtypes: torch.dtype) -> Functions | None:
    """Return them if they can read this tensor: contiguous, on the CPU, of one of these types."""
    readable = x.device.type == "cpu" and x.dtype in dtypes and x.is_contiguous()
    return native() if readable else None


def address(x: Tensor, dtype: torch.dtype, *shape: int) -> int:
    """Return where the numbers of a tensor begin, for a function that takes its layout on trust.

    Raises ValueError unless the tensor is contiguous and of this dtype and shape.
    """
    if x.dtype is not dtype or x.shape != shape or not x.is_contiguous():
        layout = "" if x.is_contiguous() else ", not contiguous"
        found = f"{x.dtype} {tuple(x.shape)}{layout}"
        raise ValueError(f"the tensor is {found}; it must be contiguous {dtype} {shape}")
    return x.data_ptr()


@contextmanager
def imitated() -> Iterator[None]:
    """Inside, what is compiled does nothing, for tensors that have a size but no numbers."""
    token = _IMITATED.set(True)
    try:
        yield
    finally:
        _IMITATED.reset(token)


class _Imitated:
    """The compiled functions for tensors that have a size but no numbers: they do nothing."""

    def __getattr__(self, name: str) -> Callable[..., int]:
        return lambda *_: 0


@cache
def _loaded() -> Functions | None:
    if not torch.backends.mkldnn.is_available():
        return None
    compiler = shutil.which(os.environ.get("CC", "cc"))
    try:
        if compiler is None:
            raise FileNotFoundError("there is no C compiler; install one, such as gcc")
        functions = _library(compiler)
    except (OSError, InputError, subprocess.SubprocessError) as error:
        reason = str(error).removesuffix(".")
        warnings.warn(
            "decoding and training on this CPU are slower than they could be, since their inner "
            f"loops cannot be compiled: {reason}.",
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
    return functions


def _library(compiler: str) -> ctypes.CDLL:
    """Load the functions; compile them unless there is a file that is whole. Raises OSError."""
    folder = user_folder("XDG_CACHE_HOME", ".cache")
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    version = subprocess.run([compiler, "--version"], capture_output=True, check=True).stdout  # noqa: S603 -- the user's own compiler
    known = (SOURCE.read_bytes(), version, FLAGS, WIDE, _processor(), _threads())
    start = f"native-{sha256(repr(known).encode()).hexdigest()[:16]}"
    with _opened(folder, os.O_DIRECTORY) as entries:
        _reject_foreign(entries, folder)
        for file in folder.glob(f"{start}-*.so"):
            with suppress(OSError):
                return _load(file)
            file.unlink(missing_ok=True)
        with tempfile.TemporaryDirectory(dir=folder) as scratch:
            made = _compile(compiler, Path(scratch))
            made.chmod(0o600)
            file = folder / f"{start}-{sha256(made.read_bytes()).hexdigest()}.so"
            rename_durably(made, file)
        return _load(file)


@contextmanager
def _opened(path: Path, kind: int = 0) -> Iterator[int]:
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC | kind)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _load(file: Path) -> ctypes.CDLL:
    """Load a library whose name ends in its hash. Raises OSError for any other file.

    What is loaded is what was read: the descriptor is opened again, not the name.
    """
    with _opened(file) as descriptor:
        _reject_foreign(descriptor, file)
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError(f"{file} is not a regular file; remove it")
        with open(descriptor, "rb", closefd=False) as stream:
            digest = sha256(stream.read()).hexdigest()
        if not file.stem.endswith(f"-{digest}"):
            raise OSError(f"{file} is damaged; remove it")
        by_descriptor = Path(f"/proc/self/fd/{descriptor}")
        return ctypes.CDLL(str(by_descriptor if by_descriptor.exists() else file))


def _reject_foreign(descriptor: int, path: Path) -> None:
    """Raise OSError for a file or folder that is another user's, or that others may write."""
    about = os.fstat(descriptor)
    if about.st_uid != os.getuid():
        raise PermissionError(
            f"{path} belongs to another user; set XDG_CACHE_HOME to a folder of your own"
        )
    if about.st_mode & WRITABLE_BY_OTHERS:
        raise PermissionError(f"other users may write to {path}; chmod go-w {path}")


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


def _end_threads() -> None:
    """End the threads of GNU OpenMP; the next parallel loop starts them again.

    A forked child inherits its parent's record of these threads but not the threads, and its first
    parallel loop, of PyTorch or of `native.c`, would wait for them forever.
    """
    for file in _threads():
        ctypes.CDLL(file).omp_pause_resource_all(HARD_PAUSE)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_end_threads)
