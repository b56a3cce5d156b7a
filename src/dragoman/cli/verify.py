"""`--verify`: whether a model of Hugging Face computes here what it does there."""

from pathlib import Path
from typing import Annotated

from dragoman.cli.output import option
from dragoman.cli.pipes import say

Verify = Annotated[
    bool,
    option(
        "First compare logits of a model of Hugging Face with those of its class in transformers, "
        "or with those that were stored when it was converted.",
        "--verify",
    ),
]


def check(model: Path, *, verify: bool) -> None:
    """Compare where that was asked for, and say how far both are apart; see `convert.verify`."""
    if not verify:
        return
    from dragoman.convert.verify import verify as compare
    from dragoman.folder.opening import open_folder
    from dragoman.tasks.folders import read_folder

    folder = open_folder(model)
    folder.adapters = None  # which have no publisher's logits
    worst = compare(read_folder(folder, device="cpu"))
    say(f"{folder.path} gives the logits of its publisher, within {worst:.1e} of the largest.")
