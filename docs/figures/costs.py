"""What attention costs by length, and what faults of a corpus cost, drawn from the committed
results of the benchmarks.
"""

import json
from pathlib import Path

from benchmarks.attention_cost import drawn
from matplotlib.figure import Figure

from figures.chinese import save

RESULTS = Path(__file__).parents[2] / "benchmarks" / "results"


def plot_attention_cost(path: Path | str) -> Path:
    """Draw time and memory of each pattern against the length, both axes logarithmic."""
    return save(attention_cost(), path)


def attention_cost() -> Figure:
    """The figure of the results that were measured."""
    measured = json.loads((RESULTS / "attention-cost.json").read_text("utf-8"))["measured"]
    by_length = {
        name: {int(length): one for length, one in lengths.items()}
        for name, lengths in measured.items()
    }
    return drawn(by_length)


FAULTS = {
    "copies": "copies",
    "shuffled": "shuffled",
    "language": "in French",
    "cut": "cut",
    "misspelt": "misspelt",
    "markup": "tags",
    "duplicates": "duplicates",
    "case": "case lost",
}
"""The faults of the benchmark, as the picture calls them."""


def plot_spoiled(path: Path | str) -> Path:
    """Draw how much of each fault `dragoman data clean` finds, and what the fault costs."""
    return save(spoiled(), path)


def spoiled() -> Figure:
    """The figure of the results that were measured."""
    measured = json.loads((RESULTS / "spoiled.json").read_text("utf-8"))
    figure = Figure(figsize=(10, 4), layout="constrained")
    left, right = figure.subplots(1, 2)
    places = range(len(FAULTS))
    for name, said, shift in (("found", "spoiled pairs", -0.2), ("lost", "other pairs", 0.2)):
        shares = [100 * measured[kind][name] for kind in FAULTS]
        left.barh([place + shift for place in places], shares, 0.4, label=said)
    left.set_yticks([*places], FAULTS.values())
    left.set_xlabel("% removed")
    trained = [kind for kind in FAULTS if kind in measured["bleu"]]
    places = range(len(trained))
    for end, said, shift in (("", "spoiled", -0.2), (", cleaned", "cleaned", 0.2)):
        scores = [measured["bleu"][f"{kind}{end}"] for kind in trained]
        right.barh([place + shift for place in places], scores, 0.4, label=said)
    right.axvline(measured["bleu"]["clean"], color="black", linewidth=1, label="never spoiled")
    right.set_yticks([*places], [FAULTS[kind] for kind in trained])
    right.set_xlabel("BLEU")
    for axes in (left, right):
        axes.invert_yaxis()
        axes.legend(loc="lower center", bbox_to_anchor=(0.5, 1), ncols=3, frameon=False)
    return figure
