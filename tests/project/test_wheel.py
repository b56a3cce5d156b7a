"""The wheel alone is the product: it is built, installed into an empty environment, and started."""

import os
import subprocess
import sys
import sysconfig
import venv
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Timer

import pytest

from dragoman.nn.cpu import native

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "dragoman"


def run(*command: str | Path, cwd: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run a command away from the repository; what it prints is kept for the message."""
    return subprocess.run(
        [str(part) for part in command],
        cwd=cwd,
        env=clean_environment() | environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=180,
    )


def clean_environment() -> dict[str, str]:
    """The environment without what could lead Python back to the sources."""
    return {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}


def build_wheel(out: Path, **environment: str) -> Path:
    """Build the wheel in a folder."""
    build = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(out)]
    done = run(*build, str(ROOT), cwd=out, **environment)
    assert done.returncode == 0, done.stdout + done.stderr
    (built,) = out.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The built wheel; the compiler need not optimize, as it has for the running environment."""
    folder = tmp_path_factory.mktemp("dist")
    compiler = folder / "cc"
    compiler.write_text('#!/bin/sh\nexec cc "$@" -O0\n', encoding="utf-8")
    compiler.chmod(0o755)
    return build_wheel(folder, CC=str(compiler))


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The scripts' folder of a new environment that holds the wheel and nothing else of ours.

    Third-party packages are those of the running environment, through a path file. Python reads
    no path file of a folder that was itself added so; an editable install of ours stays unseen.
    """
    home = tmp_path_factory.mktemp("environment")
    venv.create(home, with_pip=False)
    scripts = Path(sysconfig.get_path("scripts", "venv", vars={"base": str(home)}))
    site = Path(sysconfig.get_path("purelib", "venv", vars={"base": str(home)}))
    python = scripts / Path(sys.executable).name
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--python", str(python)]
    done = run(*pip, "install", "--quiet", "--no-deps", "--no-index", wheel, cwd=home)
    assert done.returncode == 0, done.stdout + done.stderr
    (site / "third_party.pth").write_text(sysconfig.get_path("purelib") + "\n", encoding="utf-8")
    return scripts


def test_the_wheel_holds_the_package_and_nothing_else(wheel: Path) -> None:
    """Every source, recipe and data file of the package, the type marker and the licence."""
    with zipfile.ZipFile(wheel) as archive:
        names = {name for name in archive.namelist() if not name.endswith("/")}
    ours = {
        path.relative_to(ROOT / "src").as_posix()
        for path in PACKAGE.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts and not path.name.startswith(".")
    }
    assert "dragoman/py.typed" in names
    assert {name for name in names if ".dist-info/" not in name} == ours
    assert [name for name in names if name.endswith(".dist-info/licenses/LICENSE")] != []


def test_the_wheel_holds_what_was_compiled(wheel: Path, tmp_path: Path) -> None:
    """A library for each level of processors; without a compiler a wheel for any platform."""
    names = zipfile.ZipFile(wheel).namelist()
    found = {name.split("native.")[1].split(".")[0] for name in names if name.endswith(".so")}
    if native.native() is not None:
        assert native.level() in found <= native.LEVELS.keys()
        assert "-py3-none-linux_" in wheel.name
    without = build_wheel(tmp_path, CC="no-such-compiler")
    assert without.name.endswith("-py3-none-any.whl")
    assert not [name for name in zipfile.ZipFile(without).namelist() if name.endswith(".so")]


def test_the_installed_package_comes_from_the_wheel(installed: Path, tmp_path: Path) -> None:
    """What follows is worth something only when the sources are out of reach."""
    program = "import dragoman, torch; print(dragoman.__file__); print(dragoman.__version__)"
    done = run(installed / Path(sys.executable).name, "-c", program, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    file, version = done.stdout.split()
    assert installed.parent in Path(file).parents
    assert ROOT not in Path(file).parents
    assert version == read_version()


def read_version() -> str:
    """The version as the source says it."""
    import dragoman

    return dragoman.__version__


def test_the_command_is_installed(installed: Path, tmp_path: Path) -> None:
    """The wheel brings the command `dragoman`, and it explains itself."""
    command = installed / "dragoman"
    assert command.is_file()
    done = run(command, "--help", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "translate" in done.stdout


@contextmanager
def started(*command: str | Path, cwd: Path) -> Iterator["subprocess.Popen[str]"]:
    """A running command, stopped at the end and after two minutes at the latest."""
    process = subprocess.Popen(
        [str(part) for part in command],
        cwd=cwd,
        env=clean_environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    alarm = Timer(120, process.kill)
    alarm.start()
    with process:
        try:
            yield process
        finally:
            alarm.cancel()
            process.kill()


def test_the_demo_starts(installed: Path, tmp_path: Path) -> None:
    """`dragoman demo` finds its embedded corpus in the wheel and begins to train."""
    with started(installed / "dragoman", "demo", "--out", "run", cwd=tmp_path) as process:
        assert process.stdout is not None
        said = ""
        while "step" not in said and (line := process.stdout.readline()):
            said += line
    assert "step" in said
    assert "Traceback" not in said
