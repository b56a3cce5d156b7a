"""The Transformer that you can read, train and ship.

    translator = dragoman.load("runs/en-zh")
    translator.translate("I like studying artificial intelligence.").text

The rooms, from the ground up: `dragoman.nn` (the blocks of the paper), `dragoman.models`,
`dragoman.data` and `dragoman.text`, `dragoman.decode` and `dragoman.train`,
`dragoman.tasks`, `dragoman.cli`. Importing the package alone loads none of them, so that
`dragoman --help` answers at once: the public names below are fetched when first used.
"""

from dragoman.errors import DragomanError, InputError
from dragoman.process import prepare_process
from dragoman.version import __version__

TYPE_CHECKING = False  # as in typing, which takes longer to import than everything else here
if TYPE_CHECKING:
    from dragoman.decoding import Decoding
    from dragoman.tasks.classify.classifier import Classification, Classifier
    from dragoman.tasks.embedder import Embedder, Embedding
    from dragoman.tasks.generate.generator import Generator
    from dragoman.tasks.loading import load
    from dragoman.tasks.recipes import train_model
    from dragoman.tasks.results import Alignment, Generation, Scored, Translation
    from dragoman.tasks.tag.tagger import TaggedSpan, TaggedWord, Tagger, Tagging
    from dragoman.tasks.translate.translator import Translator
    from dragoman.text.glossary import Glossary
else:
    _ROOMS = {
        "decoding": ("Decoding",),
        "tasks.classify.classifier": ("Classification", "Classifier"),
        "tasks.embedder": ("Embedder", "Embedding"),
        "tasks.generate.generator": ("Generator",),
        "tasks.loading": ("load",),
        "tasks.recipes": ("train_model",),
        "tasks.results": ("Alignment", "Generation", "Scored", "Translation"),
        "tasks.tag.tagger": ("TaggedSpan", "TaggedWord", "Tagger", "Tagging"),
        "tasks.translate.translator": ("Translator",),
        "text.glossary": ("Glossary",),
    }

    def __getattr__(name: str) -> object:
        """Fetch a public name that needs PyTorch from its room (PEP 562)."""
        from importlib import import_module

        for room, names in _ROOMS.items():
            if name in names:
                return getattr(import_module(f"dragoman.{room}"), name)
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


__all__ = [
    "Alignment",
    "Classification",
    "Classifier",
    "Decoding",
    "DragomanError",
    "Embedder",
    "Embedding",
    "Generation",
    "Generator",
    "Glossary",
    "InputError",
    "Scored",
    "TaggedSpan",
    "TaggedWord",
    "Tagger",
    "Tagging",
    "Translation",
    "Translator",
    "__version__",
    "load",
    "prepare_process",
    "train_model",
]


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
