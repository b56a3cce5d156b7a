"""What a model folder contains, what its model does with a text, and pictures of both.

    contents     the settings of a model folder in words, and its parameters
    inspecting   computes what a model does with a text, an `Inspection`
    inspection   the data of an `Inspection`
    trace        the attention of every layer and head, recorded while the model runs
    weights      traced weights as maps and the word alignment; head summaries, four numbers and a
                 word each; the tokens that contributed to a label
    logits       the share of each head in a logit, and what each layer would have generated
    switching    the translation without one head
    search       the choices of a search, step by step, and its tree
    terminal     an inspection as lines of text
    page         an inspection as one HTML file
    pictures     one grid of weights (`plot_alignment`), every head of a model (`plot_heads`), and
                 the start and end of any figure (`blank`, `save`)
    film         the alignment of a translation at checkpoints of its run (`plot_film`)

Call the pictures by name (`dragoman.lens.plot_heads(inspection, "heads.png")`). They need
matplotlib, from the extra `plot`; neither it nor PyTorch is imported before the first call.
"""

from importlib import import_module
from typing import TYPE_CHECKING

from dragoman.errors import InputError, how_to_install

if TYPE_CHECKING:
    from dragoman.lens.film import plot_film
    from dragoman.lens.pictures import blank, plot_alignment, plot_heads, save
else:

    def __getattr__(name: str) -> object:
        """Import a picture on first use (PEP 562); if matplotlib is missing, say how to get it."""
        if name not in __all__:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        try:
            home = import_module(f"dragoman.lens.{'film' if name == 'plot_film' else 'pictures'}")
        except ModuleNotFoundError as error:
            if error.name and error.name.partition(".")[0] == "matplotlib":
                message = f"pictures need matplotlib; {how_to_install('plot')}"
                raise InputError(message) from error
            raise
        return getattr(home, name)


__all__ = ["blank", "plot_alignment", "plot_film", "plot_heads", "save"]


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
