"""The options of decoding on the command line, made from the fields of `dragoman.decoding`."""

from collections.abc import Callable, Collection
from typing import Any

from dragoman.cli.options import Verb, options_of, with_options
from dragoman.decoding import Decoding


def decoding_options(task: Decoding, only: Collection[str] | None = None) -> Callable[[Verb], Verb]:
    """Give a verb an option for each field of a task's options, or for some of them.

    The verb takes them together, as its parameter `decoding`; what is not given is UNSET.
    """
    options = [each for each in options_of(task) if only is None or each.name in only]
    return with_options("decoding", options, type(task).of)


def flags_of(task: Decoding, decoding: Decoding) -> dict[str, Any]:
    """What a command gives for a task's options, by flag: True for a switch, None if not given."""
    given = decoding.given()
    return {
        option.flag: option.is_switch or given[option.name] if option.name in given else None
        for option in options_of(task)
    }
