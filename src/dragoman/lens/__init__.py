"""What a model folder contains, what its model does with a text, and pictures of it.

    contents     the settings of a model folder in words, and its parameters
    inspecting   what a model does with a text: an `Inspection`
    inspection   what that is, as plain data
    trace        the attention of every layer and head, watched while the model runs
    weights      traced weights as maps and the word alignment; where a head looks, in four numbers
                 and a word; which tokens had to do with a label
    logits       the share of each head in a logit, and what each layer would have written
    switching    the translation without one head
    search       what a search chose from, step by step, and the tree of it
    terminal     an inspection as lines of text
    page         an inspection as one HTML file
    pictures     one grid of weights (`plot_alignment`), every head of a model (`plot_heads`), and
                 what any figure begins and ends with (`blank`, `save`)
    film         the alignment of a translation at checkpoints of its run (`plot_film`)

The pictures are called by name (`dragoman.lens.plot_heads(inspection, "heads.png")`) and need
matplotlib, which the extra `plot` brings; neither it nor PyTorch is imported before.
"""

from importlib import import_module
from typing import TYPE_CHECKING

from dragoman.errors import InputError, how_to_install

if TYPE_CHECKING:
    from dragoman.lens.film import plot_film
    from dragoman.lens.pictures import blank, plot_alignment, plot_heads, save
else:

    def __getattr__(name: str) -> object:
        """Import a picture when it is asked for (PEP 562); say what brings matplotlib."""
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
