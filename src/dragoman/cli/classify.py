"""`dragoman classify`: lines of text to their labels."""

from typing import TYPE_CHECKING, Annotated

from dragoman.cli.loading import Loading, check_input, with_device
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
from dragoman.decoding import READING, Decoding

if TYPE_CHECKING:
    from dragoman.tasks.classify.classifier import Classification


@with_options("decoding", READING)
@with_device
@with_destination
def classify(
    model: ModelFolder,
    file: FileOrText = None,
    *,
    decoding: Decoding,
    as_json: Annotated[
        bool, option("Print a JSON object per line: each label's probability, flags.", "--json")
    ] = False,
    loading: Loading,
    to: Destination,
) -> None:
    """Classify lines of text. Prints LABEL<tab>PROBABILITY for each line, in the same order.

    dragoman classify runs/sst2 < reviews.txt
    """
    check_input(file, model, "classify")
    with each_line(model, file, {"--json": as_json}, to=to) as given:
        from dragoman.tasks.classify.classifier import Classifier

        loading.check(model)
        classifier = Classifier.load(model, device=loading.device)
        sizes = {**decoding.given(), "window": given.window}
        results = classifier.stream(given.rest, **sizes)
        show = to_json if as_json else _labelled
        given.write(results, show, lambda one: [one.label] if one.label else one.flags)


def _labelled(result: "Classification") -> str:
    """What is printed for one text; an empty line for an empty one."""
    return f"{result.label}\t{result.probability:.4f}" if result.label else ""
