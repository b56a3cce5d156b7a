"""Errors in the arguments of the command line, in one sentence each.

typer raises click's errors, which it vendors under a path that differs by version; their names and
attributes do not.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import Enum
from types import UnionType
from typing import Any, Literal, Protocol, get_args, get_origin, get_type_hints

import typer

from dragoman.errors import nearest

__all__ = ["UsageError", "told"]

UsageError: type[Exception] = typer.BadParameter.__mro__[1]
"""What typer raises for wrong options, arguments and verbs."""

KINDS = {int: "a whole number", float: "a number"}
"""What an option of this type must be."""

EXTRA = re.compile(r"unexpected extra argument(?:s|\(s\))? \((.*)\)$", re.DOTALL)


class _Parameter(Protocol):
    """An option or an argument, as an error names it."""

    name: str
    opts: list[str]
    metavar: str | None
    param_type_name: str


def told(error: Any, given: Sequence[str], verbs: Mapping[str, Callable[..., Any]]) -> str:  # noqa: ANN401 -- see above
    """Return the sentence about an error in the arguments ``given``: what, where and what to do."""
    typed = next((word for word in given if not word.startswith("-")), None)
    path = f"dragoman {typed}" if typed in verbs else "dragoman"
    if error.ctx is not None:
        path = error.ctx.command_path
    name = path.split()[-1]
    match type(error).__name__:
        case "NoSuchOption":
            known = [each for one in error.ctx.command.get_params(error.ctx) for each in one.opts]
            known.append("--quiet")  # which may stand anywhere
            wrong = f"{name} has no option {error.option_name}{_hint(error.option_name, known)}"
        case "MissingParameter":
            wrong = f"{name} needs {_name(error.param)}"
        case "BadOptionUsage":
            takes = "takes no value" if "not take" in error.message else "needs a value"
            wrong = f"{error.option_name} of {name} {takes}"
        case "BadParameter" if typed is not None and typed in verbs:
            wrong = _bad(error, given, get_type_hints(verbs[typed])[error.param.name])
        case _ if typed is not None and typed not in verbs:
            wrong = f"There is no command {typed}{_hint(typed, verbs)}"
        case _ if extra := EXTRA.search(error.message):
            wrong = f"{name} takes no argument {extra[1]} (quote a text with spaces)"
        case _:
            wrong = f"{name}: {error.message.rstrip('.')}"
    return _harmless(f"{wrong}; see {path} --help.")


def _hint(word: str, known: Iterable[str]) -> str:
    """The closest known name, else one that begins with the word."""
    known = list(known)
    close = nearest(word, known) or next((name for name in known if name.startswith(word)), None)
    return f" (did you mean {close}?)" if close else ""


def _bad(error: Any, given: Sequence[str], annotation: Any) -> str:  # noqa: ANN401 -- as above
    """A value of the wrong type."""
    name, value = _name(error.param), _value(error.param, given)
    if isinstance(annotation, UnionType):
        annotation = get_args(annotation)[0]
    if annotation in KINDS:
        return f"{name} must be {KINDS[annotation]}, not {value}"
    choices: Iterable[object] = ()
    if get_origin(annotation) is Literal:
        choices = get_args(annotation)
    elif isinstance(annotation, type) and issubclass(annotation, Enum):
        choices = (each.value for each in annotation)
    if words := " or ".join(map(str, choices)):
        return f"{name} must be {words}, not {value}"
    return f"{name} {value}: {error.message.rstrip('.')}"


def _value(parameter: _Parameter, given: Sequence[str]) -> str:
    """The last value that was given for an option."""
    found = ""
    for place, word in enumerate(given):
        option, equals, rest = word.partition("=")
        if option in parameter.opts:
            found = rest if equals else "".join(given[place + 1 : place + 2])
    return found or '""'


def _name(parameter: _Parameter) -> str:
    if parameter.param_type_name == "option":
        return max(parameter.opts, key=len)
    return parameter.metavar or parameter.name.upper()


def _harmless(text: str) -> str:
    """On one line, control characters escaped."""
    return "".join(char if char.isprintable() else repr(char)[1:-1] for char in text)
