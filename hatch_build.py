"""Compiles `native.c` while the package is built: for each level of processors a library.

Without a C compiler, or with one that fails, the package is built without them, and computes the
same with PyTorch. `dragoman.nn.cpu.native` loads the library for the processor that it runs on.
"""

import os
import platform
import shlex
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from concurrent.futures import ThreadPoolExecutor
from hashlib import sha256
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

FOLDER = Path("src/dragoman/nn/cpu")
SOURCE = "native.c"
FLAGS = (
    *("-O3", "-std=c11", "-fPIC", "-fopenmp", "-ffp-contract=off", "-fno-math-errno"),
    "-fvisibility=protected",  # or a call of `advance` would be one of the C library's own
)
V3 = tuple(f"-m{name}" for name in ["avx2", "bmi", "bmi2", "f16c", "fma", "lzcnt", "movbe"])
V4 = (
    *V3,
    *(f"-mavx512{name}" for name in ("f", "bw", "cd", "dq", "vl")),
    "-mprefer-vector-width=512",
)
LEVELS: dict[str, dict[str, tuple[str, ...]]] = {
    "x86_64": {
        "x86-64-v4-vnni": (*V4, "-mavx512vnni", "-mtune=icelake-server"),
        "x86-64-v4": (*V4, "-mtune=skylake-avx512"),
        "x86-64-v3": (*V3, "-mtune=haswell"),
    },
    "aarch64": {"aarch64": ()},
}
"""The flags of each library, for the processors of a kind of machine: as of gcc 9."""


class CustomBuildHook(BuildHookInterface):  # type: ignore[type-arg] # is generic only to checkers
    """Adds the libraries to a wheel; an editable installation finds them beside their source."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Compile, and tag the wheel for this platform if it holds what was compiled."""
        source = Path(self.root) / FOLDER / SOURCE
        self._scratch = tempfile.TemporaryDirectory(prefix="dragoman-native-")
        made, reasons = compile_all(source, Path(self._scratch.name))
        for level, reason in reasons.items():
            self.app.display_warning(f"{SOURCE} is not compiled for {level}: {reason}")
        if version == "editable":
            put_beside(source, made)
        elif made:
            names = {str(file): f"dragoman/nn/cpu/{file.name}" for file in made}
            build_data["force_include"].update(names)
            build_data["pure_python"] = False
            tag = sysconfig.get_platform().replace("-", "_").replace(".", "_")
            build_data["tag"] = f"py3-none-{tag}"

    def finalize(self, *_: object) -> None:
        """Remove what the wheel holds now."""
        self._scratch.cleanup()


def compile_all(
    source: Path, out: Path, only: str | None = None
) -> tuple[list[Path], dict[str, str]]:
    """Compile a source for each level of this kind of machine, or for one of them, all at a time.

    Returns the files, and why there is none. The functions of OpenMP stay undefined: whoever loads
    a library has PyTorch's loaded before, since a second one would have threads of its own.
    """
    levels = LEVELS.get(platform.machine(), {}) if sys.platform == "linux" else {}
    chosen = [level for level in levels if only in (None, level)]
    compiler = shlex.split(os.environ.get("CC", "")) or ["cc"]
    if shutil.which(compiler[0]) is None:
        return [], dict.fromkeys(chosen, f"there is no C compiler {compiler[0]}; install gcc")
    libraries = {level: out / f"native.{level}.{digest_of(source)}.so" for level in chosen}

    def compiled(level: str) -> str | None:
        parts = out / f"{level}.o"
        try:
            for arguments in (
                [*FLAGS, *levels[level], "-c", str(source), "-o", str(parts)],
                ["-shared", str(parts), "-lm", "-o", str(libraries[level])],
            ):
                subprocess.run(  # noqa: S603 -- the compiler of who installs
                    [*compiler, *arguments], capture_output=True, check=True, text=True, timeout=300
                )
        except (OSError, subprocess.SubprocessError) as error:
            return str(getattr(error, "stderr", None) or error).strip()
        if b"__kmpc_" in parts.read_bytes():
            return f"{compiler[0]} needs another OpenMP than PyTorch's; install gcc and set CC=gcc"
        return None

    with ThreadPoolExecutor() as pool:
        reasons = dict(zip(chosen, pool.map(compiled, chosen), strict=True))
    failed = {level: reason for level, reason in reasons.items() if reason is not None}
    return [libraries[level] for level in chosen if level not in failed], failed


def digest_of(source: Path) -> str:
    """Return what the names of a source's libraries end with."""
    return sha256(source.read_bytes()).hexdigest()[:16]


def put_beside(source: Path, made: list[Path]) -> None:
    """Put libraries beside their source, each at once, and remove those of older sources.

    Those of this source stay if they are not made here: a machine of another kind made them.
    """
    for file in made:
        shutil.copy(file, source.with_name(f".{file.name}"))
        source.with_name(f".{file.name}").replace(source.with_name(file.name))
    for old in source.parent.glob("native.*.so"):
        if not old.name.endswith(f".{digest_of(source)}.so"):
            old.unlink(missing_ok=True)
