"""What is set up before PyTorch is loaded, and before threads start."""

import os
import platform
import sys
from pathlib import Path

import pytest
import torch
from tests.processes import python

from dragoman import prepare_process, process
from dragoman.process import ARENAS, SETTINGS, THREADS, cpu_quota

TRANSLATE = "from dragoman.cli.main import main; main(['translate', 'nowhere', os.devnull])"
VERSION = "from dragoman.cli.main import main; main(['--version', '--json'])"
PYTHON = "import dragoman; assert dragoman.prepare_process(); dragoman.load"


def environment_at_torch(program: str, **given: str) -> dict[str, str]:
    """Return the variables as they are when a program begins to import torch."""
    program = (
        "import os, sys\n"
        "def note(event, arguments):\n"
        "    if event == 'import' and arguments[0] == 'torch':\n"
        f"        print(*map(os.environ.get, {list(SETTINGS)}), flush=True)\n"
        "        os._exit(0)\n"
        f"sys.addaudithook(note)\n{program}"
    )
    done = python(program, without={*SETTINGS, "OMP_WAIT_POLICY"}, given=given)
    return dict(zip(SETTINGS, done.stdout.split(), strict=True))


@pytest.mark.parametrize("program", [TRANSLATE, VERSION, PYTHON])
def test_variables_are_set_before_torch_is_loaded(program: str) -> None:
    """By the command line, whatever the command, and by a call in Python."""
    assert environment_at_torch(program) == SETTINGS


@pytest.mark.parametrize("name", [*SETTINGS, "OMP_WAIT_POLICY"])
def test_a_users_own_setting_wins(name: str) -> None:
    """Each alone, the others as usual; the number of spins would override a policy of waiting."""
    changed = {name: "7"} if name in SETTINGS else {"GOMP_SPINCOUNT": "None"}
    assert environment_at_torch(VERSION, **{name: "7"}) == SETTINGS | changed


def test_importing_the_package_changes_no_variable() -> None:
    """A program that merely imports it keeps its environment."""
    program = "import os; before = dict(os.environ); import dragoman; print(os.environ == before)"
    assert python(program).stdout == "True\n"


def test_nothing_is_set_once_torch_is_loaded() -> None:
    """It would be too late, and the caller is told so."""
    before = dict(os.environ)
    assert torch.__version__
    assert prepare_process() is False
    assert os.environ == before


VERSION_2 = "0::/a/b", "", {"cpu.max": "{} 100000"}
VERSION_1 = "3:cpu,cpuacct:/a/b", "cpu", {"cpu.cfs_quota_us": "{}", "cpu.cfs_period_us": "100000"}


@pytest.mark.parametrize("version", [VERSION_2, VERSION_1], ids=["v2", "v1"])
@pytest.mark.parametrize(
    ("quotas", "cpus"),
    [
        ({"": "max"}, None),
        ({"": "-1"}, None),
        ({"": "200000"}, 2),
        ({"a/b": "150000", "a": "max"}, 2),
        ({"a/b": "400000", "a": "1000", "beside": "1"}, 1),
        ({}, None),
    ],
)
def test_the_smallest_cpu_quota_on_the_way_up_counts(
    tmp_path: Path,
    version: tuple[str, str, dict[str, str]],
    quotas: dict[str, str],
    cpus: int | None,
) -> None:
    """Rounded up to whole CPUs; none without control groups."""
    line, controller, files = version
    (tmp_path / "proc/self").mkdir(parents=True)
    (tmp_path / "proc/self/cgroup").write_text(f"5:memory:/\n{line}\n")
    for folder, quota in quotas.items():
        group = tmp_path / "sys/fs/cgroup" / controller / folder
        group.mkdir(parents=True, exist_ok=True)
        for name, text in files.items():
            (group / name).write_text(f"{text.format(quota)}\n")
    assert cpu_quota(str(tmp_path)) == cpus
    assert cpu_quota(str(tmp_path / "proc")) is None


@pytest.mark.parametrize(
    ("quota", "given", "threads"),
    [(3, {}, "3"), (3, {THREADS: "5"}, "5"), (64, {}, None), (None, {}, None)],
)
def test_a_quota_limits_the_threads(
    monkeypatch: pytest.MonkeyPatch, quota: int | None, given: dict[str, str], threads: str | None
) -> None:
    """If it is smaller than the number of cores, and the user has set none."""
    monkeypatch.delitem(sys.modules, "torch")
    monkeypatch.setattr(os, "environ", {**given})
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: range(64))
    monkeypatch.setattr(process, "cpu_quota", lambda: quota)
    assert prepare_process()
    assert os.environ.get(THREADS) == threads


ARENAS_OF_THREADS = """
import ctypes, sys
from threading import Barrier, Thread
from dragoman.process import TURN, prepare_threads
if sys.argv[1] == "shared":
    prepare_threads()
    assert sys.getswitchinterval() == TURN
libc, barrier = ctypes.CDLL(None), Barrier(8)
libc.malloc.restype = ctypes.c_void_p
def allocate():
    barrier.wait()
    libc.malloc(10_000)
    barrier.wait()
threads = [Thread(target=allocate) for _ in range(8)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
libc.malloc_stats()
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="its allocator is not glibc's")
def test_threads_share_few_arenas() -> None:
    """Otherwise each begins one; the user's own number wins. Their turns are short, too."""

    def arenas(how: str, **given: str) -> int:
        done = python(ARENAS_OF_THREADS, how, without={"MALLOC_ARENA_MAX"}, given=given)
        return done.stderr.count("Arena ")

    assert arenas("shared") <= ARENAS < arenas("own")
    assert arenas("shared", MALLOC_ARENA_MAX="5") == arenas("own", MALLOC_ARENA_MAX="5")
