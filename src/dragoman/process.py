"""What a process sets up for PyTorch and its threads before they start."""

import os
import sys
from collections.abc import Iterator

TYPE_CHECKING = False  # every command imports this module, before it awaits Ctrl-C
if TYPE_CHECKING:
    from pathlib import Path

INTERRUPTED = 130
"""The exit code of a command that Ctrl-C ended."""
SETTINGS = {
    "GOMP_SPINCOUNT": "1000",  # a waiting thread soon sleeps, and leaves its core to others
    "ONEDNN_PRIMITIVE_CACHE_CAPACITY": "128",  # compiled kernels that oneDNN keeps; else 1,024
    "LRU_CACHE_CAPACITY": "128",  # and those that PyTorch keeps on top of them
}
THREADS = "OMP_NUM_THREADS"
CPU_VERSION_1 = "cpu.cfs_quota_us", "cpu.cfs_period_us"
"""The files of a control group of version 1; those of version 2 have both numbers in `cpu.max`."""


def prepare_process() -> bool:
    """Set the environment variables with which PyTorch runs best, here and in child processes.

    Waiting threads sleep early, so that other programs do not slow this one down severalfold, and
    the memory for compiled kernels is bounded. In a container with a CPU quota there are as many
    threads as it allows, not one per core. A variable that is already set keeps its value. The
    command line calls this itself; in Python, call it before anything imports torch. Returns False,
    and changes nothing, if PyTorch is already loaded.
    """
    if "torch" in sys.modules:
        return False
    for name, value in SETTINGS.items():
        if name == "GOMP_SPINCOUNT" and "OMP_WAIT_POLICY" in os.environ:
            continue  # it would override the user's choice
        os.environ.setdefault(name, value)
    if (cpus := cpu_quota()) is not None and cpus < len(os.sched_getaffinity(0)):
        os.environ.setdefault(THREADS, str(cpus))
    return True


def cpu_quota(system: str = "/") -> int | None:
    """Return the number of CPUs, rounded up, whose time this process may use; None if unlimited.

    More threads would use up a period's time early, and all would wait for the next period.
    """
    quotas = list[int]()
    for group in control_groups("cpu", system):
        lines = (lines_of(group / name) for name in ("cpu.max", *CPU_VERSION_1))
        numbers = " ".join(line for each in lines for line in each).split()
        if len(numbers) == 2 and all(map(str.isdecimal, numbers)):  # "max" or -1: unlimited
            quotas.append(max(1, -(-int(numbers[0]) // int(numbers[1]))))
    return min(quotas, default=None)


def control_groups(controller: str, system: str = "/") -> "Iterator[Path]":
    """Yield the folders of the control groups around this process (Linux, both versions).

    The limits of all enclosing groups apply, up to the root. A container may see its own group as
    the root, and its path as it is outside. `system` is the folder that contains `proc` and `sys`.
    """
    from pathlib import Path

    groups = Path(system, "sys/fs/cgroup")
    for line in lines_of(Path(system, "proc/self/cgroup")):
        _, controllers, path = line.split(":", 2)
        if controllers and controller not in controllers.split(","):
            continue
        base = groups / controller if controllers else groups
        folder = base / path.lstrip("/")
        yield from (each for each in (folder, *folder.parents) if each.is_relative_to(base))


def lines_of(path: "Path") -> list[str]:
    """Return the lines of a file of the system; none if it cannot be read."""
    try:
        return path.read_text(encoding="utf-8").splitlines()
    except OSError:
        return []


def values_of(key: str, path: "Path") -> list[str]:
    """Return the values of a key in a file of the system, whose lines are `key: value`."""
    lines = (line.partition(":") for line in lines_of(path))
    return [value.strip() for name, _, value in lines if name.strip() == key]


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
    import ctypes
    from contextlib import suppress

    with suppress(OSError, AttributeError):
        getattr(ctypes.CDLL(None), function)(*numbers)
