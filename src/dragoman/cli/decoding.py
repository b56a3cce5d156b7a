"""The options of decoding on the command line, made from the fields of `dragoman.decoding`."""

from collections.abc import Callable, Collection
from dataclasses import dataclass, fields
from functools import wraps
from inspect import Parameter, signature
from typing import Annotated, Any, get_args, get_origin, get_type_hints

import typer

from dragoman.decoding import Decoding
from dragoman.settings.fields import sentences

Verb = Callable[..., None]


@dataclass(frozen=True, slots=True)
class _Option:
    """An option as the command line has it."""

    name: str
    """Of the field."""
    flag: str
    kind: Any
    """The type of its value, without its range; a switch has none, and is a bool."""
    default: Any
    """The task's."""
    help: str

    def annotation(self) -> Any:  # noqa: ANN401 -- a type
        """What typer reads."""
        kind = bool if self.is_switch else self.kind | None
        return Annotated[kind, typer.Option(self.flag, help=self.help)]

    @property
    def is_switch(self) -> bool:
        """Whether the option is on or off."""
        return bool in {self.kind, *get_args(self.kind)}

    def value(self, read: Any) -> Any:  # noqa: ANN401 -- what typer has read
        """The value of the field; None where it was not given. A switch negates the default."""
        if self.is_switch:
            return self.default is False if read else None
        return tuple(read) if isinstance(read, list) else read


def decoding_options(task: Decoding, only: Collection[str] | None = None) -> Callable[[Verb], Verb]:
    """Give a verb an option for each field of a task's options, or for some of them.

    The verb takes them together, as its parameter `decoding`; what is not given is UNSET.
    """
    options = [each for each in _options(task) if only is None or each.name in only]

    def with_options(verb: Verb) -> Verb:
        @wraps(verb)
        def called(**given: Any) -> None:  # noqa: ANN401 -- what typer has read
            read = {option.name: option.value(given.pop(option.name)) for option in options}
            verb(**given, decoding=type(task).of(read))

        hints = get_type_hints(verb, include_extras=True)
        made: list[Parameter] = []
        for own in signature(verb).parameters.values():
            if own.name != "decoding":
                made.append(own.replace(annotation=hints[own.name]))
                continue
            made += [
                Parameter(
                    option.name,
                    Parameter.KEYWORD_ONLY,
                    default=False if option.is_switch else None,
                    annotation=option.annotation(),
                )
                for option in options
            ]
        called.__signature__ = signature(verb).replace(parameters=made)  # type: ignore[attr-defined] # typer reads it
        called.__annotations__ = {each.name: each.annotation for each in made} | {"return": None}
        return called

    return with_options


def flags_of(task: Decoding, decoding: Decoding) -> dict[str, Any]:
    """What a command gives for a task's options, by flag: True for a switch, None if not given."""
    given = decoding.given()
    return {
        option.flag: option.is_switch or given[option.name] if option.name in given else None
        for option in _options(task)
    }


def _options(task: Decoding) -> list[_Option]:
    """The options of a task that the command line has."""
    cls, values = type(task), task.given()
    hints, said = get_type_hints(cls), sentences(cls)  # type: ignore[arg-type] # it is hashable
    found = []
    for field in fields(cls):
        name, hint = field.name, hints[field.name]
        flag = field.metadata.get("flag", f"--{name.replace('_', '-')}")
        if name in values and flag is not None:
            kind = list[str] if get_origin(hint) is tuple else hint
            text = field.metadata.get("help") or " ".join(said.get(name, "").split())
            found.append(_Option(name, flag, kind, values[name], text))
    return found
