"""What is compiled when the package is built, and what a source archive holds."""

import platform
import re
import sys
from pathlib import Path

import hatch_build
import pytest
from hatchling.builders.sdist import SdistBuilder

ROOT = Path(__file__).parents[2]
COMPILER = """#!/bin/sh
for out in "$@"; do :; done
echo SYMBOL > "$out"
"""
"""Writes a symbol into what it is asked to make, the last argument."""


@pytest.mark.parametrize(
    ("symbol", "works"), [("GOMP_parallel", True), ("__kmpc_fork_call", False)]
)
def test_code_for_the_openmp_of_another_compiler_is_left_out(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, symbol: str, *, works: bool
) -> None:
    """That of clang needs functions which GNU OpenMP lacks: it could not be loaded."""
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setattr(hatch_build, "LEVELS", {platform.machine(): {"plain": ()}})
    compiler, source = tmp_path / "compiler", tmp_path / "native.c"
    compiler.write_text(COMPILER.replace("SYMBOL", symbol))
    source.touch()
    monkeypatch.setenv("CC", f"sh {compiler}")
    made, reasons = hatch_build.compile_all(source, tmp_path)
    assert [file.name.split(".")[1] for file in made] == ["plain"] * works
    assert works or "CC=gcc" in reasons["plain"]


def test_a_blank_compiler_is_the_usual_one(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """As for a variable that is not set."""
    (tmp_path / "native.c").write_text("int one(void) { return 1; }")
    monkeypatch.setenv("PATH", "")
    monkeypatch.setenv("CC", " ")
    made, reasons = hatch_build.compile_all(tmp_path / "native.c", tmp_path)
    assert not made
    assert all("no C compiler cc" in reason for reason in reasons.values())


def test_libraries_of_this_source_stay(tmp_path: Path) -> None:
    """In a checkout that machines of several kinds share; those of older sources go."""
    source, made = tmp_path / "native.c", tmp_path / "made"
    source.touch()
    made.mkdir()
    end = f"{hatch_build.digest_of(source)}.so"
    new, theirs, old = (f"native.{name}" for name in (f"new.{end}", f"other.{end}", "new.0123.so"))
    for file in (made / new, tmp_path / theirs, tmp_path / old):
        file.touch()
    hatch_build.put_beside(source, [made / new])
    assert {file.name for file in tmp_path.glob("*.so")} == {new, theirs}


def test_a_source_archive_holds_what_its_makefile_reads() -> None:
    """Among others the constraints of the lowest versions."""
    held = {file.distribution_path for file in SdistBuilder(str(ROOT)).recurse_included_files()}
    read = set(re.findall(r"(?<=constraint )\S+\.txt", (ROOT / "Makefile").read_text("utf-8")))
    assert "constraints.txt" in read
    assert read <= held
