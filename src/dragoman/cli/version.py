"""``dragoman --version``: the version, and on request the properties of this machine."""

import json
import os
import platform

import typer

from dragoman import __version__
from dragoman.errors import InputError

__all__ = ["show_version"]

PLAIN = {
    "cpu_bf16": "fast bf16",
    "independent_rows_fp32": "independent rows in fp32",
    "independent_rows_bf16": "independent rows in bf16",
    "spin_count": "spins of a waiting thread",
}
"""The keys of ``--json`` in words."""


def show_version(ctx: typer.Context, on: bool) -> None:  # noqa: FBT001 (typer's protocol)
    """Print the version and exit, if requested."""
    verbose, as_json = ctx.params["verbose"], ctx.params["as_json"]
    if not on:
        if verbose or as_json:
            raise InputError("--verbose and --json before a command need --version.")
        return
    lines = {"dragoman": __version__} | (_machine() if verbose or as_json else {})
    if as_json:
        typer.echo(json.dumps(lines))
    else:
        typer.echo(
            "\n".join(f"{PLAIN.get(name, name)} {_plain(value)}" for name, value in lines.items())
        )
    raise typer.Exit


def _machine() -> dict[str, object]:
    """The properties that the speed and the bits of results depend on."""
    import torch

    from dragoman.nn.cpu.products import has_bf16_units, rows_are_independent

    gpu = torch.cuda.is_available()
    return {
        "python": platform.python_version(),
        "torch": torch.__version__,
        "device": torch.cuda.get_device_name() if gpu else "cpu",
        "threads": torch.get_num_threads(),
        "instructions": torch.backends.cpu.get_cpu_capability(),
        "cpu_bf16": has_bf16_units(),
        "independent_rows_fp32": rows_are_independent("fp32"),
        "independent_rows_bf16": rows_are_independent("bf16"),
        "spin_count": os.environ.get("GOMP_SPINCOUNT", "not set"),
    }


def _plain(value: object) -> str:
    return {True: "yes", False: "no"}[value] if isinstance(value, bool) else str(value)
