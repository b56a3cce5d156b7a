"""The options of decoding on the command line, made from the fields of `dragoman.decoding`."""

from collections.abc import Callable, Collection
from typing import Any

from dragoman.cli.options import Verb, options_of, with_options
from dragoman.cli.pipes import say
from dragoman.decoding import Decoding, wide_enough
from dragoman.errors import InputError
from dragoman.ranges import UNSET


def decoding_options(task: Decoding, only: Collection[str] | None = None) -> Callable[[Verb], Verb]:
    """Give a verb an option for each field of a task's options, or for some of them.

    The verb takes them together, as its parameter `decoding`; what is not given is UNSET.
    """
    return with_options("decoding", task, only, defaults=False)


def flags_of(task: Decoding, decoding: Decoding) -> dict[str, Any]:
    """What a command gives for a task's options, by flag: True for a switch, None if not given."""
    given = decoding.given()
    return {
        option.flag: option.is_switch or given[option.name] if option.name in given else None
        for option in options_of(task)
    }


def say_seed(given: Decoding, options: Decoding) -> None:
    """Say the seed if it was drawn and counts."""
    if given.seed is UNSET and options.temperature > 0:
        say(f"seed {options.seed}")


def sampled_or_wide(decoding: Decoding, defaults: Decoding) -> Decoding:
    """Return options with a beam that is wide enough. Raises InputError for an idle seed."""
    given = decoding.given()
    if "seed" in given and not given.get("temperature", defaults.temperature):
        raise InputError("--seed requires sampling; give --temperature, or leave it out.")
    return wide_enough(decoding, defaults)
