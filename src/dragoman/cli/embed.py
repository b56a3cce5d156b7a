"""`dragoman embed`: a vector for each line of text."""

from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from dragoman.cli.flags import FLAGS
from dragoman.cli.output import (
    BATCH_TOKENS,
    Destination,
    Device,
    FileOrText,
    ModelFolder,
    OutputFile,
    Overwrite,
    Resume,
    each_line,
    option,
    to_json,
)
from dragoman.cli.pipes import say
from dragoman.cli.progress import progress_of
from dragoman.cli.verify import Verify, check
from dragoman.errors import InputError
from dragoman.files.writing import replacing
from dragoman.wording import counted

if TYPE_CHECKING:
    from dragoman.tasks.embedder import Embedding


def embed(  # noqa: PLR0913 -- the options of the verb
    model: ModelFolder,
    file: FileOrText = None,
    *,
    max_batch_tokens: Annotated[int, BATCH_TOKENS] = 8192,
    as_json: Annotated[
        bool, option("Print a JSON object per line: vector, flags.", "--json")
    ] = False,
    device: Device = "auto",
    verify: Verify = False,
    output: OutputFile = None,
    overwrite: Overwrite = False,
    resume: Resume = False,
) -> None:
    """Embed lines of text. Prints the numbers of a vector for each line, with spaces between them.

    An --output that ends in .npy becomes a NumPy array of float32, a row for each line.

    dragoman embed all-MiniLM-L6-v2 questions.txt --output questions.npy
    """
    array = output is not None and output.suffix == ".npy"
    if array and (as_json or resume):
        raise InputError("A .npy file goes without --json and --resume; choose another --output.")
    to = Destination(output=output, resume=resume, overwrite=overwrite)
    with each_line(model, file, {"--json": as_json}, to=to) as given:
        from dragoman.tasks.embedder import Embedder

        check(model, verify=verify)
        embedder = Embedder.load(model, device=device)
        if not embedder.pooling.published:
            say(f"{model} does not say how to pool: a vector is the mean of the hidden states.")
        sizes = {"max_batch_tokens": max_batch_tokens, "window": given.window}
        results = embedder.stream(given.rest, **sizes)
        if array and output is not None:
            with progress_of(results, "lines", share=given.lines.share, quiet=given.typed) as shown:
                _save(shown, embedder.dim, output)
        else:
            given.write(results, to_json if as_json else _as_text, _counted)


def _save(results: "Iterable[Embedding]", dim: int, output: Path) -> None:
    """Write all vectors to one NumPy array, which grows in memory as they come."""
    import numpy as np

    counts = Counter[str]()

    def take(result: "Embedding") -> "np.ndarray":
        counts.update(_counted(result))
        return result.vector

    vectors = np.fromiter(map(take, results), np.dtype((np.float32, dim)))
    with replacing(output, "vectors") as part, part.open("wb") as stream:
        np.save(stream, vectors)
    flagged = (f"{number:,} {what}" for what, number in counts.items())
    say(", ".join([counted(len(vectors), "line"), *flagged]))


def _as_text(result: "Embedding") -> str:
    """Return the numbers with nine digits, from which float32 is read back exactly."""
    return " ".join(f"{number:.9g}" for number in result.vector)


def _counted(result: "Embedding") -> list[str]:
    return [FLAGS[flag] for flag in result.flags]
