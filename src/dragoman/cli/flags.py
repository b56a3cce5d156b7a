"""How summaries name the flags of results."""

FLAGS = {
    "empty": "empty",
    "loop": "repeating themselves",
    "max_length": "cut at the length limit",
    "no_output": "with a sentence without output",
    "numbers": "with other numbers",
    "placeholders": "with other placeholders",
    "retried": "searched again",
    "several_sentences": "with fewer sentences than given",
    "short": "much shorter than their source",
    "split": "translated in parts",
    "tags": "with other tags",
    "unknown_characters": "with unknown characters",
    "unreadable": "unreadable",
    "urls": "with other URLs",
}
"""What the summary calls the flags."""

LISTED = {FLAGS[flag] for flag in FLAGS if flag not in ("empty", "retried", "split")}
"""Those whose lines it lists: somebody should look at them."""
