"""What a model does with a text, and pictures.

    inspecting   a text and what became of it, looked at: an ``Inspection``
    inspection   what that is, as plain data
    parts        what all variants of the Transformer have of it
    trace        the attention of every layer and head, watched while the model runs
    summaries    what a head does, in four numbers and a word
    search_record, beam_tree   what a search saw, and the tree of it
    attribution  which tokens had to do with a label
    terminal     an inspection as lines of text
    page         an inspection as one HTML file
    heads        an inspection as a picture: every head (``plot_heads``)
    files        a picture's or a page's way into a file

Pictures:

    attention    which source token each target token looked at, as a PNG (``plot_alignment``)
    heatmap      the grid itself
    fonts        a font for each label, also where none for Chinese is installed
    picture      a figure of our own, written as a PNG

Pictures that need no model, each drawn by one function from the package's own parts:

    sinusoidal   the table of the paper's positions, and what it knows of distances
    rotary       how rotary positions turn
    positions    four position schemes beside each other
    patterns     who sees whom, for every pattern of attention
    softmax      temperature, and why scores are divided by sqrt(d)
    norms        gradients by depth, for each place of the norm
    activations  ReLU and its heirs, and their slopes
    reach        how far one word is from another, in attention and in recurrent layers
    schedules    the learning rate over a run
    smoothing    what label smoothing asks for
    caches       what decoding keeps in mind
    mistakes     what usual mistakes look like in the weights of one head

And one of plain numbers, which ``dragoman cost --fit`` draws:

    scaling      a scaling law over the runs it was fitted to

They are called by name (``dragoman.lens.plot_sinusoidal("sinusoidal.png")``) and need matplotlib,
which ``pip install 'dragoman[plot]'`` brings; neither it nor PyTorch is imported before.
"""

from importlib import import_module
from typing import TYPE_CHECKING

from dragoman.errors import InputError

if TYPE_CHECKING:
    from dragoman.lens.activations import plot_activations
    from dragoman.lens.attention import plot_alignment
    from dragoman.lens.caches import plot_cache_growth
    from dragoman.lens.heads import plot_heads
    from dragoman.lens.mistakes import plot_mistakes
    from dragoman.lens.norms import plot_norm_placement
    from dragoman.lens.patterns import plot_patterns
    from dragoman.lens.positions import plot_positions
    from dragoman.lens.reach import plot_reach
    from dragoman.lens.rotary import plot_rotary_angles
    from dragoman.lens.schedules import plot_schedules
    from dragoman.lens.sinusoidal import plot_sinusoidal, plot_sinusoidal_distances
    from dragoman.lens.smoothing import plot_label_smoothing
    from dragoman.lens.softmax import plot_softmax_saturation, plot_softmax_temperature
else:
    _FILES = {
        "plot_activations": "activations",
        "plot_alignment": "attention",
        "plot_cache_growth": "caches",
        "plot_heads": "heads",
        "plot_label_smoothing": "smoothing",
        "plot_mistakes": "mistakes",
        "plot_norm_placement": "norms",
        "plot_patterns": "patterns",
        "plot_positions": "positions",
        "plot_reach": "reach",
        "plot_rotary_angles": "rotary",
        "plot_schedules": "schedules",
        "plot_sinusoidal": "sinusoidal",
        "plot_sinusoidal_distances": "sinusoidal",
        "plot_softmax_saturation": "softmax",
        "plot_softmax_temperature": "softmax",
    }

    def __getattr__(name: str) -> object:
        """Fetch a public name from its file (PEP 562); say what brings matplotlib."""
        if name not in _FILES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        try:
            return getattr(import_module(f"dragoman.lens.{_FILES[name]}"), name)
        except ModuleNotFoundError as error:
            if error.name and error.name.partition(".")[0] == "matplotlib":
                message = "pictures need matplotlib; install it with: pip install 'dragoman[plot]'"
                raise InputError(message) from error
            raise


__all__ = [
    "plot_activations",
    "plot_alignment",
    "plot_cache_growth",
    "plot_heads",
    "plot_label_smoothing",
    "plot_mistakes",
    "plot_norm_placement",
    "plot_patterns",
    "plot_positions",
    "plot_reach",
    "plot_rotary_angles",
    "plot_schedules",
    "plot_sinusoidal",
    "plot_sinusoidal_distances",
    "plot_softmax_saturation",
    "plot_softmax_temperature",
]


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
