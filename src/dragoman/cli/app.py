"""The verbs of `dragoman` in one command line, its own options, and what users see of errors.

The exit code is 0 on success, 1 for a failure and 2 for wrong input; an error is one sentence,
without a traceback. typer raises click's errors, which it vendors under a path that differs by
version; their names and attributes do not.
"""

import json
import os
import platform
import re
import sys
import warnings
from collections import Counter
from collections.abc import Callable, Container, Iterable, Sequence
from contextlib import redirect_stderr
from types import UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

import typer
from typer.core import TyperCommand

from dragoman import __version__
from dragoman.cli import data, making
from dragoman.cli.chat import chat
from dragoman.cli.convert import convert
from dragoman.cli.cost import cost
from dragoman.cli.demo import demo
from dragoman.cli.download import download
from dragoman.cli.evaluate import evaluate
from dragoman.cli.generate import generate
from dragoman.cli.inspect import inspect
from dragoman.cli.pipes import say
from dragoman.cli.read import classify, embed, tag
from dragoman.cli.runs import runs
from dragoman.cli.score import score
from dragoman.cli.serve import serve
from dragoman.cli.shortlist import shortlist
from dragoman.cli.train import train
from dragoman.cli.translate import translate
from dragoman.errors import DragomanError, InputError, escaped, is_out_of_memory, nearest

VERBS = (
    *(demo, train, translate, generate, chat, classify, tag, embed, serve),
    *(evaluate, score, inspect, runs, cost, convert, shortlist, download),
)
GROUPS = {"data": ((*data.VERBS, *making.VERBS), "Check, clean and make corpora of pairs.")}
"""Groups of verbs, and their descriptions."""
COMMANDS: dict[str, Callable[..., Any]] = {verb.__name__: verb for verb in VERBS} | {
    f"{name} {verb.__name__.replace('_', '-')}": verb
    for name, (verbs, _) in GROUPS.items()
    for verb in verbs
}
"""All verbs, by what is typed."""

MACHINE = {
    "compiled": "compiled loops",
    "cpu_bf16": "fast bf16",
    "independent_rows_fp32": "independent rows in fp32",
    "independent_rows_bf16": "independent rows in bf16",
    "independent_translations_fp32": "independent translations in fp32",
    "spin_count": "spins of a waiting thread",
}
"""Keys of `--version --json` in words."""

UsageError: type[Exception] = typer.BadParameter.__mro__[1]
"""What typer raises for wrong options, arguments and verbs."""

KINDS = {int: "a whole number", float: "a number"}
"""What the value of an option of this type must be."""

BEGUN = 3
"""Letters from which the beginning of a name means that name, whatever else is near."""

EXTRA = re.compile(r"unexpected extra argument(?:s|\(s\))? \((.*)\)$", re.DOTALL)


def run(given: Sequence[str]) -> None:
    """Run the command line and exit. `--quiet` may come before or after the verb."""
    warnings.showwarning = lambda message, *_: say(f"dragoman: {escaped(str(message))}")
    end = given.index("--") if "--" in given else len(given)
    given = [*sorted(given[:end], key=lambda word: word != "--quiet"), *given[end:]]
    try:
        code = make_app()(given, prog_name="dragoman", standalone_mode=False)
    except Exception as error:
        if (failure := _failure(error, given)) is None:
            raise
        if type(error).__name__ != "NoArgsIsHelpError":  # otherwise the help has been shown
            say(f"dragoman: {failure.sentence}")
        sys.exit(failure.exit_code)
    sys.exit(code or 0)


def _failure(error: Exception, given: Sequence[str]) -> DragomanError | None:
    """Return what to tell the user about an error; None for a bug."""
    if isinstance(error, UsageError):
        return InputError(_usage(error, given))
    if isinstance(error, OSError) and error.strerror:  # a full disk, a folder that is read-only
        which = "" if error.filename is None else f"{error.filename}: "
        return DragomanError(f"Cannot continue: {which}{error.strerror}.")
    if is_out_of_memory(error):
        return DragomanError(
            "Out of memory: use smaller batches (--max-batch-tokens; batch.max_tokens in "
            "training), shorter texts or a smaller model."
        )
    return error if isinstance(error, DragomanError) else None


def make_app() -> typer.Typer:
    """Return the command line, with its verbs in the order in which they are used."""
    app = typer.Typer(
        name="dragoman",
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback()(_root)
    for verb in VERBS:
        app.command(cls=_Command)(verb)
    for name, (verbs, text) in GROUPS.items():
        group = typer.Typer(no_args_is_help=True, help=text)
        for verb in verbs:
            group.command(cls=_Command)(verb)
        app.add_typer(group, name=name)
    return app


class _Command(TyperCommand):
    """A verb that drops no repeated option: click would use only the last one."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:  # noqa: ANN401 -- click's
        """Raise InputError for an option that is given twice but takes one value."""
        order: list[Any] = self.make_parser(ctx).parse_args(args=[*args])[2]
        for each, times in Counter(order).items():
            is_one = each.param_type_name == "option" and not (each.multiple or each.is_flag)
            if is_one and times > 1:
                name, verb = _name(each), ctx.command_path.removeprefix("dragoman ")
                raise InputError(f"{name} of {verb} is given {times} times; give it once.")
        return super().parse_args(ctx, args)


def _be_quiet(context: typer.Context, *, on: bool) -> None:
    """Discard standard error; errors are printed after this context has ended."""
    if on:
        context.with_resource(redirect_stderr(None))


def _show_version(ctx: typer.Context, on: bool) -> None:  # noqa: FBT001 (typer's protocol)
    verbose, as_json = ctx.params["verbose"], ctx.params["as_json"]
    if not on:
        if verbose or as_json:
            raise InputError("--verbose and --json before a command need --version.")
        return
    lines = {"dragoman": __version__} | (_machine() if verbose or as_json else {})
    if as_json:
        typer.echo(json.dumps(lines))
    else:
        for name, value in lines.items():
            shown = {True: "yes", False: "no"}[value] if isinstance(value, bool) else value
            typer.echo(f"{MACHINE.get(name, name)} {shown}")
    raise typer.Exit


def _machine() -> dict[str, object]:
    """Return the properties that speed and exact results depend on."""
    import torch

    from dragoman.engine.products import translations_are_independent
    from dragoman.nn.cpu import native
    from dragoman.nn.cpu.products import has_bf16_units, rows_are_independent

    gpu = torch.cuda.is_available()
    return {
        "python": platform.python_version(),
        "torch": torch.__version__,
        "device": torch.cuda.get_device_name() if gpu else "cpu",
        "threads": torch.get_num_threads(),
        "compiled": native.level() or False,
        "instructions": torch.backends.cpu.get_cpu_capability(),
        "cpu_bf16": has_bf16_units(),
        "independent_rows_fp32": rows_are_independent("fp32"),
        "independent_rows_bf16": rows_are_independent("bf16"),
        "independent_translations_fp32": translations_are_independent("fp32"),
        "spin_count": os.environ.get("GOMP_SPINCOUNT", "not set"),
    }


def _root(
    *,
    quiet: Annotated[
        bool,
        typer.Option(
            "--quiet", callback=_be_quiet, help="Print only errors, no progress or notes."
        ),
    ] = False,
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, help="Print the version.")
    ] = False,
    verbose: Annotated[
        bool,
        typer.Option(
            "--verbose",
            is_eager=True,
            help="With --version: also print properties of this machine (threads, bf16, ...).",
        ),
    ] = False,
    as_json: Annotated[
        bool, typer.Option("--json", is_eager=True, help="With --version: print one JSON object.")
    ] = False,
) -> None:
    """The Transformer that you can read, train and ship.

    dragoman demo

    dragoman train --src a.en --tgt a.zh --out runs/en-zh

    dragoman translate runs/en-zh < lines.en > lines.zh
    """


# ---------------------------------------------------------------- wrong arguments


Click = Any
"""An error or a parameter of click."""
ELSEWHERE = {"--compare": "--against"}
"""Options by the names that other tools give them."""


def _usage(error: Click, given: Sequence[str]) -> str:
    """Return the sentence about an error in the arguments `given`: what, where and what to do."""
    words = [word for word in given if not word.startswith("-")]
    group = words[0] if words and words[0] in GROUPS else ""
    typed = " ".join(words[: 2 if group else 1])
    known = [name for name in COMMANDS if name.split()[:-1] == group.split()]
    path = f"dragoman {typed if typed in COMMANDS else group}".rstrip()
    if error.ctx is not None:
        path = error.ctx.command_path
    name = path.removeprefix("dragoman ")
    match type(error).__name__:
        case "NoSuchOption":
            there = [each for one in error.ctx.command.get_params(error.ctx) for each in one.opts]
            there.append("--quiet")  # which is allowed anywhere
            settings = any("KEY=VALUE" in (each.metavar or "") for each in error.ctx.command.params)
            hint = _hint(ELSEWHERE.get(error.option_name, error.option_name), there)
            hint = _setting(error.option_name, given, hint) if settings else hint
            wrong = f"{name} has no option {error.option_name}{hint}"
        case "MissingParameter":
            wrong = f"{name} needs {_name(error.param)}"
        case "BadOptionUsage":
            takes = "takes no value" if "not take" in error.message else "needs a value"
            wrong = f"{error.option_name} of {name} {takes}"
        case "BadParameter" if typed in COMMANDS:
            wrong = _bad(error, given, get_type_hints(COMMANDS[typed])[error.param.name])
        case _ if typed and typed not in COMMANDS:
            wrong = f"There is no command {typed}{_hint(typed, [*known, *GROUPS])}"
        case _ if extra := EXTRA.search(error.message):
            wrong = f"{name} takes no argument {extra[1]} (quote a text with spaces)"
        case _:
            wrong = f"{name}: {error.message.rstrip('.')}"
    return f"{wrong}; see {path} --help."


def _hint(word: str, known: Iterable[str]) -> str:
    """Return a hint to the known name closest to the word, by name, by a part or by its beginning.

    A single letter, such as `-o`, is the beginning of a name.
    """
    bare = word.lstrip("-")
    named = {name.lstrip("-"): name for name in known}
    parts = {part: named[each] for each in reversed(named) for part in each.split("-")}
    found = nearest(bare, named) or nearest(bare, parts)
    close = next((name for each, name in named.items() if each.startswith(bare)), None)
    if found and (close is None or 1 < len(bare) < BEGUN):
        close = {**parts, **named}[found]
    return f" (did you mean {close}?)" if close else ""


def _setting(option: str, given: Sequence[str], hint: str) -> str:
    """Return how to write the recipe setting that was given as an option; `hint` if there is none.

    A hint to an option is better than a setting of which only a part is named.
    """
    from dragoman.settings.fields import key_for, paths_by_name
    from dragoman.tasks.task import TASKS, find_task

    key, value = option.lstrip("-").replace("-", "_"), _value([option], given)
    for task in TASKS:
        recipe = find_task(task).recipe
        path = key_for(key, recipe, cutoff=1) or ()
        if len(path) > 1 and (not hint or key in paths_by_name(recipe)):  # else it is a section
            shown = "VALUE" if value.startswith(("-", '"')) else value
            return f" (write {'.'.join(path)}={shown})"
    return hint


def _bad(error: Click, given: Sequence[str], annotation: Any) -> str:  # noqa: ANN401 -- a type
    name, value = _name(error.param), _value(error.param.opts, given)
    while get_origin(annotation) in {Union, UnionType, list}:
        annotation = get_args(annotation)[0]
    if annotation in KINDS:
        return f"{name} must be {KINDS[annotation]}, not {value}"
    if get_origin(annotation) is Literal:
        return f"{name} must be {' or '.join(get_args(annotation))}, not {value}"
    given_as = f"{name} {value}" if error.param.param_type_name == "option" else name
    return f"{given_as}: {error.message.rstrip('.')}"


def _value(names: Container[str], given: Sequence[str]) -> str:
    """Return the last value given for an option with these names."""
    found = ""
    for place, word in enumerate(given):
        option, equals, rest = word.partition("=")
        if option in names:
            found = rest if equals else "".join(given[place + 1 : place + 2])
    return found or '""'


def _name(parameter: Click) -> str:
    is_option = parameter.param_type_name == "option"
    name: str = max(parameter.opts, key=len) if is_option else parameter.metavar
    return name or parameter.name.upper()
