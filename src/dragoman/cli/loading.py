"""The options of a verb that loads a model: its device, arithmetic, verification and decoding."""

from collections.abc import Callable, Collection
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dragoman.cli.options import Verb, options_of, with_options
from dragoman.cli.pipes import file_or_text, say
from dragoman.decoding import Decoding, Precision, wide_enough
from dragoman.errors import InputError
from dragoman.ranges import UNSET

if TYPE_CHECKING:
    from dragoman.nn import Arithmetic


@dataclass(frozen=True, slots=True, kw_only=True)
class Loading:
    """How a model is loaded."""

    device: str = "auto"
    """Device: cpu, cuda or auto."""
    compute: Precision = "float32"
    """Arithmetic: int8 is the fastest on most CPUs and rounds the most; bfloat16 is faster than
    float32 if the hardware supports it; auto chooses the fastest that is safe here."""
    verify: bool = False
    """First compare the logits of a Hugging Face model with those of its transformers class, or
    with those stored when it was converted."""

    @property
    def precision(self) -> "Arithmetic":
        """The requested arithmetic; what `auto` chooses is reported."""
        from dragoman.tasks.folders import arithmetic_of

        chosen = arithmetic_of(self.compute, self.device)
        if self.compute == "auto":
            say(f"computing in {chosen}")
        return chosen

    def check(self, model: Path) -> None:
        """Compare if requested, and say how far both are apart; see `convert.published`."""
        if not self.verify:
            return
        from dragoman.convert.published import verify
        from dragoman.folder.opening import open_folder
        from dragoman.tasks.folders import read_folder

        folder = open_folder(model)
        folder.adapters = None  # for them there are no publisher's logits
        worst = verify(read_folder(folder, device="cpu"))
        whose = "of its publisher" if folder.config.as_it_is else "compared at its conversion"
        say(f"{folder.path} gives the logits {whose}, within {worst:.1e} of the largest.")


def check_input(file: str | None, model: Path, task: str) -> None:
    """Raise InputError for a missing input, but first for a model of another task."""
    try:
        file_or_text(file)
    except InputError:
        from dragoman.folder.opening import open_folder
        from dragoman.tasks.task import check_task

        check_task(open_folder(model), task)
        raise


with_loading = with_options("loading", Loading())
"""Decorator for a verb that takes all of them as `loading`."""
with_device = with_options("loading", Loading(), only=("device", "verify"))
"""The same for a verb that computes in float32."""
with_arithmetic = with_options("loading", Loading(), only=("device", "compute"))
"""The same for a verb that verifies nothing."""


def decoding_options(task: Decoding, only: Collection[str] | None = None) -> Callable[[Verb], Verb]:
    """Give a verb an option for each field of a task's options, or for some of them.

    The verb takes them together, as its parameter `decoding`; options that are not given are UNSET.
    """
    return with_options("decoding", task, only, defaults=False)


def flags_of(task: Decoding, decoding: Decoding) -> dict[str, Any]:
    """Return a command's options of a task by flag: True for a switch, None if not given."""
    given = decoding.given()
    return {
        option.flag: option.is_switch or given[option.name] if option.name in given else None
        for option in options_of(task)
    }


def say_seed(given: Decoding, options: Decoding) -> None:
    """Print the seed if it was drawn and has an effect."""
    if given.seed is UNSET and options.temperature > 0:
        say(f"seed {options.seed}")


def sampled_or_wide(decoding: Decoding, defaults: Decoding) -> Decoding:
    """Return options with a wide enough beam. Raises InputError for a seed without effect."""
    given = decoding.given()
    if "seed" in given and not given.get("temperature", defaults.temperature):
        raise InputError("--seed requires sampling; give --temperature, or leave it out.")
    return wide_enough(decoding, defaults)
