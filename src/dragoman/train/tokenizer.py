"""The tokenizer of a run whose texts have one side: learnt once, and then always the same."""

from collections.abc import Iterable
from pathlib import Path

from dragoman.errors import InputError
from dragoman.models.folder import read_config, tokenizer_paths
from dragoman.text.tokenizer import Tokenizer
from dragoman.text.train import train_tokenizer
from dragoman.train.job import Say
from dragoman.train.recipes.base import RunRecipe

NAME = "tokenizer.json"


def begin_tokenizer(recipe: RunRecipe, texts: Iterable[str], folder: Path, say: Say) -> Tokenizer:
    """Load the one that the run has kept in `folder`; a run that begins makes and keeps it.

    It is that of the model that the recipe starts from, where there is one, else learnt from the
    texts, which are read only then.
    """
    kept = folder / NAME
    if kept.exists():
        return Tokenizer.load(kept)
    if recipe.start.model is not None:
        tokenizer = _of_model(Path(recipe.start.model))
        say(f"The tokenizer is that of {recipe.start.model}; none is learnt.")
    else:
        config = recipe.tokenizer
        say(f"Learning {config.vocab_size:,} pieces ({config.model}) ...")
        tokenizer = train_tokenizer(texts, config)
    folder.mkdir(parents=True, exist_ok=True)
    tokenizer.save(kept)
    return tokenizer


def _of_model(folder: Path) -> Tokenizer:
    src, tgt = tokenizer_paths(folder, read_config(folder))
    if src != tgt:
        raise InputError(
            f"start.model = {folder} has a tokenizer for each of two languages, and this task "
            "takes one; start from another model"
        )
    return Tokenizer.load(src)
