"""What a process sets up for PyTorch and its threads before they start."""

import os
import sys

INTERRUPTED = 130
"""The exit code of a command that Ctrl-C ended."""
SETTINGS = {
    "GOMP_SPINCOUNT": "1000",  # a waiting thread soon sleeps, and leaves its core to others
    "ONEDNN_PRIMITIVE_CACHE_CAPACITY": "128",  # compiled kernels that oneDNN keeps; else 1,024
    "LRU_CACHE_CAPACITY": "128",  # and those that PyTorch keeps on top of them
}


def prepare_process() -> bool:
    """Set the environment variables with which PyTorch runs best, here and in child processes.

    Waiting threads sleep early, so that other programs do not slow this one down severalfold, and
    the memory for compiled kernels is bounded. A variable that is already set keeps its value. The
    command line calls this itself; in Python, call it before anything imports torch. Returns False,
    and changes nothing, if PyTorch is already loaded.
    """
    if "torch" in sys.modules:
        return False
    for name, value in SETTINGS.items():
        if name == "GOMP_SPINCOUNT" and "OMP_WAIT_POLICY" in os.environ:
            continue  # it would override the user's choice
        os.environ.setdefault(name, value)
    return True


M_ARENA_MAX = -8
"""glibc's number of the parameter."""
ARENAS = 2
TURN = 0.0005
"""Seconds that a thread may keep the interpreter while others wait for it; default: 0.005."""


def prepare_threads() -> None:
    """Let many threads compute next to one that answers; call it before they start.

    They take short turns at the interpreter, which all threads that have just computed a batch wait
    for. With glibc as the C library, they allocate from a few arenas: each thread may compute a
    batch, glibc would give them up to eight arenas per core, and every arena would keep the memory
    of its largest batch. The environment variable MALLOC_ARENA_MAX takes precedence.
    """
    sys.setswitchinterval(TURN)
    if "MALLOC_ARENA_MAX" not in os.environ:
        _ask_glibc("mallopt", M_ARENA_MAX, ARENAS)


def give_memory_back() -> None:
    """Return freed memory to the system, if the C library is glibc, which would keep it."""
    _ask_glibc("malloc_trim", 0)


def _ask_glibc(function: str, *numbers: int) -> None:
    import ctypes  # every command imports this module, before it awaits Ctrl-C
    from contextlib import suppress

    with suppress(OSError, AttributeError):
        getattr(ctypes.CDLL(None), function)(*numbers)
