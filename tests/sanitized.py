"""Run the compiled code under the address and undefined-behaviour sanitizers.

python -m tests.sanitized [pytest argument ...]

A copy of the package, whose library for this processor is compiled with the sanitizers, is tested
in a process that loads their runtime first. If the compiler has no sanitizers, no test runs.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import hatch_build

from dragoman.nn.cpu import native

ROOT = Path(__file__).parents[1]
FLAGS = "-fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer -g"
TESTS = (
    *(
        f"tests/property/test_{name}.py"
        for name in ("attended", "closed_rows", "compiled_search", "program", "steps_ahead")
    ),
    *(
        f"tests/unit/nn/test_{name}.py"
        for name in ("attending", "dropout", "native", "native_training")
    ),
    *("tests/property/test_engine_numbers.py", "tests/unit/decode/test_ranking.py"),
)
"""Tests with odd shapes, rows that end, and limits."""
OTHERS = "tests/unit/nn/test_native.py::test_every_library_computes_the_same"
"""A test that also needs the libraries of other processors, which take half a minute each."""


def runtime() -> list[str]:
    """Return the files of the sanitizers' runtime, to load before Python; none if unknown."""
    compiler, files = shutil.which("cc"), []
    if compiler is not None:
        for name in ("libasan.so", "libubsan.so"):
            command = [compiler, f"-print-file-name={name}"]
            files.append(subprocess.run(command, capture_output=True, check=True, text=True).stdout)
    found = [file.strip() for file in files]
    return found if all(Path(file).is_absolute() for file in found) else []


def main(arguments: list[str]) -> int:
    """Compile, test, and return pytest's status."""
    if not (files := runtime()):
        print("skipped: the C compiler has no sanitizers (gcc's libasan and libubsan)")
        return 0
    with tempfile.TemporaryDirectory() as scratch:
        package = Path(scratch) / "dragoman"
        left_out = shutil.ignore_patterns("*.so", "__pycache__")
        shutil.copytree(ROOT / "src" / "dragoman", package, ignore=left_out)
        source = package / "nn" / "cpu" / "native.c"
        os.environ["CC"] = f"cc {FLAGS}"
        made, reasons = hatch_build.compile_all(source, source.parent, native.level())
        if not made:
            print(f"the compiled loops cannot be compiled with sanitizers: {reasons}")
            return 1
        environment = os.environ | {
            "LD_PRELOAD": ":".join(files),
            "ASAN_OPTIONS": "detect_leaks=0:abort_on_error=0",  # Python itself leaks thousands
            "UBSAN_OPTIONS": "print_stacktrace=1",
            "PYTHONPATH": scratch,
            "OMP_NUM_THREADS": "2",
            "OMP_WAIT_POLICY": "passive",  # other work may need the cores
        }
        command = [sys.executable, "-m", "pytest", "-q", "-s", "-p", "no:cacheprovider"]
        command += arguments or (*TESTS, f"--deselect={OTHERS}")
        return subprocess.run(command, check=False, cwd=ROOT, env=environment).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
