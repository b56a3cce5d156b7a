"""What every task checks of a model folder: its device, vocabulary and arithmetic."""

from pathlib import Path
from typing import cast, get_args

from torch import Tensor

from dragoman.decoding import Precision
from dragoman.engine import fastest
from dragoman.errors import InputError, did_you_mean
from dragoman.folder.opening import ModelFolder, open_folder
from dragoman.nn import Arithmetic
from dragoman.text.tokenizer import Tokenizer
from dragoman.train.device import choose_device


def read_folder(
    path: str | Path | ModelFolder, *, device: str, as_published: bool = False
) -> ModelFolder:
    """Open a model folder, for a model on "cpu", "cuda" or, with "auto", the best device there is.

    A folder that is already open is returned unchanged. Raises InputError if there is no such
    folder or device, the folder cannot be used, or it has no publisher for `as_published`;
    TypeError for anything that is not a path.
    """
    folder = path if isinstance(path, ModelFolder) else open_folder(path)
    if as_published and folder.config.published is None:
        raise InputError(
            f"{path} is not a model of Hugging Face, so nothing is as published; leave out "
            "--as-published (as_published)."
        )
    folder.as_published = as_published
    folder.tokenizers  # noqa: B018 -- read here
    folder.device = choose_device(device)
    return folder


def check_vocabulary(side: str, tokenizer: Tokenizer, matrix: Tensor) -> None:
    """Raise InputError if a tokenizer has pieces that the model has no row for.

    The last ones may have none if no text has them, such as the token for images of Gemma 3.
    """
    size = tokenizer.vocab_size
    while size > len(matrix) and size - 1 in tokenizer.unwritten:
        size -= 1
    if len(matrix) < size:
        raise InputError(
            f"The {side} tokenizer has {tokenizer.vocab_size} pieces and the model knows "
            f"{len(matrix)}; they do not belong together: take both from one folder."
        )


def arithmetic_of(precision: str, device: str) -> Arithmetic:
    """Return the arithmetic for a name in `Precision` on a device; InputError for other names."""
    if precision not in get_args(Precision):
        raise InputError(
            f"precision is {precision!r}; it must be one of {', '.join(get_args(Precision))}"
            f"{did_you_mean(str(precision), get_args(Precision))}"
        )
    if precision == "auto":
        return fastest(device)
    names: dict[str, Arithmetic] = {"float32": "fp32", "bfloat16": "bf16", "int8": "int8"}
    return names.get(precision) or cast("Arithmetic", precision)
