"""How summaries name the flags of results."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dragoman.tasks.embedder import Embedding
    from dragoman.tasks.results import Translation

FLAGS = {
    "broken_characters": "with broken characters",
    "empty": "empty",
    "empty_tag": "with a tag whose words are missing",
    "kept": "with protected text changed",
    "loop": "with endless repetition",
    "max_length": "cut at the length limit",
    "memory": "taken over from the memory",
    "no_output": "with a sentence without output",
    "numbers": "with other numbers",
    "placeholders": "with other placeholders",
    "retried": "searched again",
    "several_sentences": "with fewer sentences than given",
    "short": "much shorter than the source",
    "split": "translated in parts",
    "symbols": "with other emoji or symbols",
    "tags": "with other tags",
    "terms_apart": "with a term that may stand in a sentence of its own",
    "terms_missed": "with a term that was missed",
    "unknown_characters": "with unknown characters",
    "untranslated_forms": "with plural or other forms that were copied",
    "unreadable": "unreadable",
    "urls": "with other URLs",
}
"""What the summary calls the flags."""

LISTED = {FLAGS[flag] for flag in FLAGS if flag not in ("empty", "memory", "retried", "split")}
"""Those whose lines it lists: somebody should look at them."""


def names_of_flags(result: "Translation | Embedding") -> Iterator[str]:
    """What the summary counts of a result."""
    return (FLAGS[flag] for flag in result.flags)
