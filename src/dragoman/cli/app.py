"""The verbs of ``dragoman`` in one command line, and the exit code of what can go wrong in them.

0 done, 1 failed, 2 the input is wrong; one sentence and no traceback for a user.
"""

import errno
import sys
import warnings
from collections.abc import Sequence
from contextlib import redirect_stderr
from typing import Annotated

import typer

from dragoman.cli.cost import cost
from dragoman.cli.demo import demo
from dragoman.cli.evaluate import evaluate
from dragoman.cli.generate import generate
from dragoman.cli.inspect import inspect
from dragoman.cli.label import classify, tag
from dragoman.cli.pipes import say
from dragoman.cli.score import score
from dragoman.cli.train import train
from dragoman.cli.translate import translate
from dragoman.cli.usage import UsageError, told
from dragoman.cli.version import show_version
from dragoman.errors import DragomanError, is_out_of_memory

__all__ = ["VERBS", "make_app", "run"]

VERBS = (demo, train, translate, generate, classify, tag, evaluate, score, inspect, cost)


def run(given: Sequence[str]) -> None:
    """Run the command line and exit. ``--quiet`` may stand before the verb or behind it."""
    warnings.showwarning = lambda message, *_: say(f"dragoman: {message}")
    end = given.index("--") if "--" in given else len(given)
    given = [*sorted(given[:end], key=lambda word: word != "--quiet"), *given[end:]]
    try:
        code = make_app()(given, prog_name="dragoman", standalone_mode=False)
    except UsageError as error:
        if given:  # else the help has been shown
            say(f"dragoman: {told(error, given, {verb.__name__: verb for verb in VERBS})}")
        sys.exit(2)
    except DragomanError as error:
        say(f"dragoman: {error}")
        sys.exit(error.exit_code)
    except OSError as error:
        if error.errno not in {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}:
            raise
        say(f"dragoman: Cannot continue: {error.strerror}.")
        sys.exit(1)
    except (RuntimeError, MemoryError) as error:
        if not is_out_of_memory(error):
            raise
        say(
            "dragoman: Out of memory: use smaller batches (--max-batch-tokens; batch.max_tokens in "
            "training), shorter texts or a smaller model."
        )
        sys.exit(1)
    sys.exit(code or 0)


def make_app() -> typer.Typer:
    """The command line with its verbs in the order in which they are used."""
    app = typer.Typer(
        name="dragoman",
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback()(_root)
    for verb in VERBS:
        app.command()(verb)
    return app


def _be_quiet(context: typer.Context, *, on: bool) -> None:
    """Discard standard error; errors are printed after this context has ended."""
    if on:
        context.with_resource(redirect_stderr(None))


def _root(
    *,
    quiet: Annotated[
        bool,
        typer.Option(
            "--quiet", callback=_be_quiet, help="Print no progress or notes, only errors."
        ),
    ] = False,
    version: Annotated[
        bool, typer.Option("--version", callback=show_version, help="Print the version.")
    ] = False,
    verbose: Annotated[
        bool,
        typer.Option(
            "--verbose",
            is_eager=True,
            help="With --version: also the properties of this machine (threads, bf16, ...).",
        ),
    ] = False,
    as_json: Annotated[
        bool,
        typer.Option("--json", is_eager=True, help="With --version: print one JSON object."),
    ] = False,
) -> None:
    """The Transformer that you can read, train and ship.

    dragoman demo

    dragoman train --src a.en --tgt a.zh --out runs/en-zh

    dragoman translate runs/en-zh < lines.en > lines.zh
    """
