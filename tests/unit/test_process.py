"""What is set up before PyTorch is loaded, and before threads start."""

import os
import platform

import pytest
import torch
from tests.processes import python

from dragoman import prepare_process
from dragoman.process import ARENAS, SETTINGS

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
