"""Compiles `native.c` while the package is built: for each level of processors a library.

Without a C compiler, or with one that fails, the package is built without them, and computes the
same with PyTorch. `dragoman.nn.cpu.native` loads the library for the processor that it runs on.
"""

import os
import platform
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from hashlib import sha256
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

FOLDER = Path("src/dragoman/nn/cpu")
SOURCE = "native.c"
FLAGS = ("-O3", "-std=c11", "-fPIC", "-fopenmp", "-ffp-contract=off", "-fno-math-errno")
WIDE = "-mprefer-vector-width=512"
LEVELS = {
    "x86_64": {
        "x86-64-v3": ("-march=x86-64-v3",),
        "x86-64-v4": ("-march=x86-64-v4", WIDE),
        "x86-64-v4-vnni": ("-march=x86-64-v4", "-mavx512vnni", WIDE),
    },
    "aarch64": {"aarch64": ("-march=armv8-a",)},
}
"""The flags of each library, for the processors of a kind of machine."""


class CustomBuildHook(BuildHookInterface):
    """Adds the libraries to a wheel; an editable installation finds them beside their source."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Compile, and tag the wheel for this platform if it holds what was compiled."""
        folder = Path(self.root) / FOLDER
        try:
            made = compile_all(folder)
        except (OSError, subprocess.SubprocessError) as error:
            reason = getattr(error, "stderr", None) or str(error)
            self.app.display_warning(f"The loops of {SOURCE} are not compiled: {reason}")
            return
        if made and version != "editable":
            names = {str(file): f"dragoman/nn/cpu/{file.name}" for file in made}
            build_data["force_include"].update(names)
            build_data["pure_python"] = False
            tag = sysconfig.get_platform().replace("-", "_").replace(".", "_")
            build_data["tag"] = f"py3-none-{tag}"


def compile_all(folder: Path) -> list[Path]:
    """Compile `native.c` in a folder for each level of this kind of machine; return the files.

    The functions of OpenMP stay undefined: whoever loads a library has PyTorch's loaded before,
    since a second one would have threads of its own. A file appears whole or not at all, and what
    an older source left goes. Raises OSError without a compiler.
    """
    levels = LEVELS.get(platform.machine(), {}) if sys.platform == "linux" else {}
    source = folder / SOURCE
    digest = sha256(source.read_bytes()).hexdigest()[:16]
    compiler = shutil.which(os.environ.get("CC", "cc"))
    if compiler is None:
        raise FileNotFoundError("there is no C compiler; install one, such as gcc")
    made = []
    with tempfile.TemporaryDirectory(dir=folder, prefix=".native-") as scratch:
        parts, library = Path(scratch, "native.o"), Path(scratch, "native.so")
        for level, flags in levels.items():
            for command in (
                [compiler, *FLAGS, *flags, "-c", str(source), "-o", str(parts)],
                [compiler, "-shared", str(parts), "-lm", "-o", str(library)],
            ):
                subprocess.run(  # noqa: S603 -- the compiler of who installs
                    command, capture_output=True, check=True, text=True, timeout=120
                )
            made.append(library.rename(folder / f"native.{level}.{digest}.so"))
    for old in folder.glob("native.*.so"):
        if old not in made:
            old.unlink()
    return made
