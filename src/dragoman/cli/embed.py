"""`dragoman embed`: a vector for each line of text."""

from typing import TYPE_CHECKING, Annotated

from dragoman.cli.flags import FLAGS, names_of_flags
from dragoman.cli.loading import Loading, with_device
from dragoman.cli.options import with_options
from dragoman.cli.output import (
    Destination,
    FileOrText,
    ModelFolder,
    each_line,
    option,
    to_json,
    with_destination,
)
from dragoman.cli.pipes import say
from dragoman.cli.progress import progress_of
from dragoman.decoding import READING, Decoding
from dragoman.errors import InputError
from dragoman.wording import counted

if TYPE_CHECKING:
    from dragoman.tasks.embedder import Embedding


@with_options("decoding", READING)
@with_device
@with_destination
def embed(
    model: ModelFolder,
    file: FileOrText = None,
    *,
    decoding: Decoding,
    as_json: Annotated[
        bool, option("Print a JSON object per line: vector, flags.", "--json")
    ] = False,
    loading: Loading,
    to: Destination,
) -> None:
    """Embed lines of text. Prints the numbers of a vector for each line, with spaces between them.

    An --output that ends in .npy becomes a NumPy array of float32, a row for each line.

    dragoman embed all-MiniLM-L6-v2 questions.txt --output questions.npy
    """
    array = to.output if to.output is not None and to.output.suffix == ".npy" else None
    if array is not None and (as_json or to.resume):
        raise InputError("A .npy file goes without --json and --resume; choose another --output.")
    with each_line(model, file, {"--json": as_json}, to=to) as given:
        from dragoman.tasks.embedder import Embedder, save_vectors

        loading.check(model)
        embedder = Embedder.load(model, device=loading.device)
        if not embedder.pooling.published:
            say(f"{model} does not say how to pool: a vector is the mean of the hidden states.")
        sizes = {**decoding.given(), "window": given.window}
        results = embedder.stream(given.rest, **sizes)
        if array is None:
            given.write(results, to_json if as_json else _as_text, names_of_flags)
            return
        with progress_of(results, "line", share=given.lines.share, quiet=given.typed) as shown:
            number, flags = save_vectors(shown, embedder.dim, array)
        flagged = (f"{count:,} {FLAGS[flag]}" for flag, count in flags.items())
        say(", ".join([counted(number, "line"), *flagged]))


def _as_text(result: "Embedding") -> str:
    """Return the numbers with nine digits, from which float32 is read back exactly."""
    return " ".join(f"{number:.9g}" for number in result.vector)
