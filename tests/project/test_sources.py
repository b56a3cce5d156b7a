"""Budgets and habits that no linter rule holds."""

import ast
import re
import subprocess
from collections import Counter
from collections.abc import Iterator
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

import grimp
import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "dragoman"
SOURCES = sorted(PACKAGE.rglob("*.py"))
TESTS = sorted((ROOT / "tests").rglob("*.py"))

FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef


def name_of(path: Path) -> str:
    """The path from the repository's root, for test names and messages."""
    return path.relative_to(ROOT).as_posix()


def at(path: Path, node: FunctionNode | ast.Attribute) -> str:
    """Where a node stands, for messages."""
    return f"{name_of(path)}:{node.lineno}"


@cache
def tree_of(path: Path) -> ast.Module:
    """The parsed file."""
    return ast.parse(path.read_text(encoding="utf-8"))


def functions(path: Path) -> Iterator[FunctionNode]:
    """All functions and methods of a file."""
    for node in ast.walk(tree_of(path)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node


def lines_of(function: FunctionNode) -> int:
    """Lines from `def` to the end, without the docstring."""
    first, last = function.lineno, function.end_lineno or function.lineno
    count = last - first + 1
    body = function.body[0]
    if ast.get_docstring(function) is not None:
        count -= (body.end_lineno or body.lineno) - body.lineno + 1
    return count


def test_a_class_name_is_used_once() -> None:
    """One thing, one word; public names stay, of blocks and results, protocols and programs."""
    classes = [
        node.name
        for path in SOURCES
        for node in ast.walk(tree_of(path))
        if isinstance(node, ast.ClassDef)
    ]
    twice = {name for name, count in Counter(classes).items() if count > 1}
    assert twice <= {"Embedding", "Model"}


def test_no_file_imports_itself_through_others() -> None:
    """Imports for types alone, and those inside functions, make no circle either."""
    graph = grimp.build_graph("dragoman", cache_dir=None)
    imports = {file: graph.find_modules_directly_imported_by(file) for file in graph.modules}
    assert [*TopologicalSorter(imports).static_order()]  # raises CycleError with the files


def test_a_file_fits_in_a_head() -> None:
    """No file is over 400 lines, and no name says that nobody knew where its content belongs."""
    files = [*SOURCES, *TESTS]
    assert [
        name_of(f) for f in files if len(f.read_text(encoding="utf-8").splitlines()) > 400
    ] == []
    vague = {"utils", "util", "helpers", "helper", "common", "misc"}
    assert [name_of(file) for file in files if file.stem in vague] == []


def test_docstrings_have_one_dialect() -> None:
    """Code stands in single backticks, as in the pages; Sphinx's double ones are not used."""
    assert [name_of(path) for path in SOURCES if "``" in path.read_text(encoding="utf-8")] == []


def test_a_function_fits_on_a_screen() -> None:
    """No function is over 60 lines, its docstring aside."""
    assert [at(path, f) for path in SOURCES for f in functions(path) if lines_of(f) > 60] == []


def test_nothing_is_passed_on_unseen() -> None:
    """No function takes `**kwargs`: an option has a name wherever it passes.

    A verb does, whose options typer reads from a signature made of the fields of a dataclass.
    """
    taking = [at(path, f) for path in SOURCES for f in functions(path) if f.args.kwarg]
    assert [place for place in taking if "cli/options.py" not in place] == []


def test_the_environment_is_not_read_at_import() -> None:
    """Importing a module means the same on every machine."""
    assert [at(path, node) for path in SOURCES for node in environment_outside(path)] == []


def environment_outside(path: Path) -> list[ast.Attribute]:
    """Where the environment is named in no function."""
    inside = {id(node) for f in functions(path) for node in ast.walk(f)}
    return [
        node
        for node in ast.walk(tree_of(path))
        if isinstance(node, ast.Attribute)
        and node.attr in {"environ", "getenv"}
        and id(node) not in inside
    ]


def asserts(test: FunctionNode) -> bool:
    """Whether a test can fail: it asserts, expects an error, or calls a function that does."""
    for node in ast.walk(test):
        if isinstance(node, ast.Assert):
            return True
        if isinstance(node, ast.Call):
            called = node.func
            name = called.attr if isinstance(called, ast.Attribute) else getattr(called, "id", "")
            if name in {"raises", "warns"} or name.startswith("assert"):
                return True
    return False


def test_every_test_asserts_and_says_what_must_hold() -> None:
    """A test has an assertion and a sentence."""
    files = [path for path in TESTS if path.name.startswith("test_")]
    tests = [(p, f) for p in files for f in functions(p) if f.name.startswith("test_")]
    assert [at(path, test) for path, test in tests if not asserts(test)] == []
    assert [at(path, test) for path, test in tests if not ast.get_docstring(test)] == []


def tracked_files() -> list[Path]:
    """The files under version control, or none outside a checkout."""
    done = subprocess.run(
        ["git", "ls-files", "-z"],  # noqa: S607 -- the git that made the checkout
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    names = done.stdout.split("\0") if done.returncode == 0 else []
    return [ROOT / name for name in names if name and (ROOT / name).is_file()]


def test_no_file_knows_the_machine_it_was_written_on() -> None:
    """No tracked text names a home or a working folder of somebody's machine."""
    files = tracked_files()
    if not files:
        pytest.skip("not a git checkout: nothing says which files are ours")
    machine = re.compile(rb"(?<![\w.])/(?:work|root|home/\w+|Users/\w+)/|[A-Z]:\\Users\\")
    texts = {path: path.read_bytes() for path in files}
    found = [
        f"{name_of(path)}: {match[0].decode()}"
        for path, text in texts.items()
        if b"\0" not in text[:8000] and (match := machine.search(text))
    ]
    assert found == []


def test_nothing_large_is_tracked() -> None:
    """Corpora, models and runs stay outside: no tracked file is over half a megabyte."""
    assert [name_of(p) for p in tracked_files() if p.stat().st_size > 500_000] == []
