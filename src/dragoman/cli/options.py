"""Options of the command line that are made from the fields of a dataclass.

A field gives an option its name, its type, its default and, with the docstring under it, its help.
Its metadata may set another `flag` (None for an option that the command line lacks), `help`,
`panel` or `metavar`, and `read`, a function that makes the value from what is typed; the option
then has the type of its parameter.
"""

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, fields
from functools import wraps
from inspect import Parameter, signature
from typing import Annotated, Any, Literal, get_args, get_origin, get_type_hints

import typer

from dragoman.ranges import UNSET, check_range, ranges_of
from dragoman.settings.fields import sentences

Verb = Callable[..., None]

DOCUMENTS, MODEL, OUTPUT, SEARCH = "Documents and terms", "Model", "Output", "Decoding"
"""Titles under which the help groups the options of a verb."""
PANELS = {
    "AsDocument": DOCUMENTS,
    "Decoding": SEARCH,
    "Destination": OUTPUT,
    "LanguagePair": MODEL,
    "Loading": MODEL,
}
"""The title of a dataclass's options, by its name."""


@dataclass(frozen=True, slots=True)
class Option:
    """An option of the command line."""

    name: str
    """Name of the field."""
    flag: str
    kind: Any
    """The type of its value, without its range; bool for a switch, which takes none."""
    default: Any
    help: str
    read: Callable[[Any], Any] | None
    """Makes the value from what is typed, if its type differs."""
    panel: str | None
    """The title under which the help lists it."""
    metavar: str | None
    """What the help calls its value, unless that has choices."""

    @property
    def is_switch(self) -> bool:
        """Whether the option is a switch, on or off."""
        return bool in {self.kind, *get_args(self.kind)}

    def parameter(self, *, shown: bool) -> Parameter:
        """Return what typer reads; it includes the choices and, if `shown`, the default."""
        kind: Any = bool if self.is_switch else self.kind | None
        default = self.default if shown and self.default != () and self.read is None else None
        kinds = (self.kind, *get_args(self.kind))
        words = next((get_args(each) for each in kinds if get_origin(each) is Literal), ())
        choices = ", ".join(words)
        asked = typer.Option(
            self.flag,
            help=f"{self.help} Choices: {choices}." if choices else self.help,
            metavar="NAME" if choices else self.metavar,
            rich_help_panel=self.panel,
        )
        return Parameter(
            self.name,
            Parameter.KEYWORD_ONLY,
            default=False if self.is_switch else default,
            annotation=Annotated[kind, asked],
        )

    def value(self, given: Any) -> Any:  # noqa: ANN401 -- what typer has read
        """Return the value of the field; None if it was not given. A switch negates the default."""
        if self.is_switch:
            return self.default is False if given else None
        if self.read is not None:
            return None if given is None else self.read(given)
        return tuple(given) if isinstance(given, list) else given


def options_of(settings: Any) -> list[Option]:  # noqa: ANN401 -- a dataclass with defaults
    """Return the options of a dataclass's fields, with these defaults; UNSET means none."""
    cls: Any = type(settings)
    hints, said = get_type_hints(cls), sentences(cls)
    found = []
    for field in fields(cls):
        name, hint = field.name, hints[field.name]
        flag = field.metadata.get("flag", f"--{name.replace('_', '-')}")
        default, read = getattr(settings, name), field.metadata.get("read")
        if read is not None:
            hint = next(iter(get_type_hints(read).values()))
        if default is not UNSET and flag is not None:
            kind = list[get_args(hint)[0]] if get_origin(hint) is tuple else hint  # type: ignore[misc] # at run time
            text = field.metadata.get("help") or " ".join(said.get(name, "").split())
            panel = field.metadata.get("panel", PANELS.get(cls.__name__))
            metavar = field.metadata.get("metavar")
            found.append(Option(name, flag, kind, default, text, read, panel, metavar))
    return found


def with_options(
    parameter: str,
    settings: Any,  # noqa: ANN401 -- a dataclass
    only: Collection[str] | None = None,
    *,
    defaults: bool = True,
) -> Callable[[Verb], Verb]:
    """Give a verb an option for each field of a dataclass, or for some, in place of a parameter.

    The verb takes them as one value of the class, built from what was given; an error about a range
    names the option. `settings` has the defaults, which the help shows unless a model may have
    others (without `defaults`).
    """
    options = [each for each in options_of(settings) if only is None or each.name in only]
    flags, ranges = {each.name: each.flag for each in options}, ranges_of(type(settings))  # type: ignore[arg-type] # it is hashable

    def give(verb: Verb) -> Verb:
        @wraps(verb)
        def called(**given: Any) -> None:  # noqa: ANN401 -- what typer has read
            read = {each.name: each.value(given.pop(each.name, None)) for each in options}
            chosen = {name: value for name, value in read.items() if value is not None}
            for name in chosen.keys() & ranges.keys():
                check_range(flags[name], chosen[name], ranges[name][0])
            verb(**given, **{parameter: type(settings)(**chosen)})

        hints = get_type_hints(verb, include_extras=True)
        made: list[Parameter] = []
        for own in signature(verb).parameters.values():
            if own.name == parameter:
                made += [option.parameter(shown=defaults) for option in options]
            else:
                made.append(own.replace(annotation=hints[own.name]))
        called.__signature__ = signature(verb).replace(parameters=made)  # type: ignore[attr-defined] # typer reads it
        called.__annotations__ = {each.name: each.annotation for each in made} | {"return": None}
        return called

    return give


def names_and_settings(words: Iterable[str] | None) -> tuple[list[str], list[str]]:
    """Split the words of a command into names and settings, which are written KEY=VALUE."""
    words = list(words or ())
    return [word for word in words if "=" not in word], [word for word in words if "=" in word]
