"""What attention costs by length, drawn from the committed results of the benchmark."""

import json
from pathlib import Path

from benchmarks.attention_cost import drawn
from matplotlib.figure import Figure

from figures.chinese import save

RESULTS = Path(__file__).parents[2] / "benchmarks" / "results" / "attention-cost.json"


def plot_attention_cost(path: Path | str) -> Path:
    """Draw time and memory of each pattern against the length, both axes logarithmic."""
    return save(attention_cost(), path)


def attention_cost() -> Figure:
    """The figure of the results that were measured."""
    measured = json.loads(RESULTS.read_text(encoding="utf-8"))["measured"]
    by_length = {
        name: {int(length): one for length, one in lengths.items()}
        for name, lengths in measured.items()
    }
    return drawn(by_length)
