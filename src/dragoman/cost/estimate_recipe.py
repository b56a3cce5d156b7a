"""What is asked for: a recipe, a preset or a model folder, and the work that is in it.

Everything becomes a recipe: a preset is one with the recipe's own defaults, a model folder is the
one that trained it, or, where that is not told, one that goes on from it. No weights are made.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from dragoman.cost.flops import Shape
from dragoman.errors import InputError, nearest
from dragoman.models import (
    DECODER_PRESETS,
    ENCODER_PRESETS,
    PRESETS,
    DecoderOnlyConfig,
    EncoderDecoderConfig,
    EncoderOnlyConfig,
    ModelConfig,
)
from dragoman.models.folder import read_config
from dragoman.models.heads import ClassificationHead, MaskedLanguageHead, TaggingHead
from dragoman.settings import override_settings, parse_settings
from dragoman.tasks.classify.recipe import ClassifyRecipe
from dragoman.tasks.generate.recipe import GenerateRecipe
from dragoman.tasks.pretrain.recipe import MaskedRecipe
from dragoman.tasks.recipes import load_recipe, shipped_recipes
from dragoman.tasks.tag.recipe import TagRecipe
from dragoman.tasks.task import TASKS, find_task
from dragoman.tasks.translate.recipe import TranslateRecipe
from dragoman.train.recipe import RunRecipe
from dragoman.train.start import start_from

__all__ = ["LENGTH", "Work", "find_recipe", "vocabulary_of", "work_of"]

LENGTH = 30
"""Tokens of a sentence, on each side, where nothing else is said."""

LABELS = ("one", "another")
"""Of a head whose labels only the data knows."""

PRESET_RECIPES: Mapping[str, RunRecipe] = {
    **{name: TranslateRecipe(model=config) for name, config in PRESETS.items()},
    **{name: GenerateRecipe(model=config) for name, config in DECODER_PRESETS.items()},
    **{
        name: MaskedRecipe(model=replace(config, head=MaskedLanguageHead()))
        for name, config in ENCODER_PRESETS.items()
    },
}
"""Each preset with the defaults of the recipes of its kind."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """What a recipe asks of a device."""

    recipe: RunRecipe
    """All settings."""
    config: ModelConfig
    """The model, with the sizes of its vocabularies."""
    length: int
    """Tokens of a sentence, on each side."""
    shape: Shape
    """A full batch."""
    longest: int
    """Tokens that a row may have on a side."""
    answer: int
    """Tokens that the model writes for each input; 0 for an encoder."""
    beam_size: int
    """Hypotheses that decoding keeps."""

    @property
    def batch_tokens(self) -> int:
        """Tokens of a full batch, of both sides."""
        return self.shape.rows * (self.shape.src_length + self.shape.length)

    @property
    def step_tokens(self) -> int:
        """Tokens of a step of the optimizer."""
        return self.recipe.train.accumulate * self.batch_tokens


class UnknownWorkError(InputError):
    """A task whose batches nobody can tell from its recipe."""


def vocabulary_of(config: ModelConfig) -> int:
    """Rows of the output matrix: of the vocabulary that the model chooses from."""
    return config.tgt_vocab_size if config.kind == "encoder-decoder" else config.vocab_size


def find_recipe(name: str, overrides: Sequence[str] = ()) -> RunRecipe:
    """Return the recipe of a shipped name, a TOML file, a preset or a model folder.

    Raises InputError with the nearest name where it is none of them, and for wrong overrides.
    """
    path = Path(name)
    if name in shipped_recipes() or path.suffix == ".toml" or path.is_file():
        return load_recipe(name, overrides)
    if name in PRESET_RECIPES and not path.is_dir():
        return override_settings(PRESET_RECIPES[name], overrides)
    if path.is_dir():
        return override_settings(_recipe_of_folder(path), overrides)
    close = nearest(name, (*shipped_recipes(), *PRESET_RECIPES))
    hint = f"did you mean {close}? " if close else ""
    raise InputError(
        f"there is no recipe, preset or model folder {name!r}: {hint}recipes are "
        f"{', '.join(shipped_recipes())}; presets are {', '.join(PRESET_RECIPES)}"
    )


def work_of(recipe: RunRecipe, length: int | None = None) -> Work:
    """Return the work of a recipe whose sentences have `length` tokens on each side.

    A vocabulary that training will make is counted as large as it was asked for. Rows of texts
    (language models) have the recipe's own length.

    Raises InputError for a length beyond that of the recipe: no batch would hold such a sentence.
    """
    config = _with_vocabulary(recipe)
    match recipe:
        case GenerateRecipe(batch=batch):
            prompt = _tokens(length, "batch.length", batch.length)
            answer = max(1, min(recipe.generation.max_tokens, batch.length - prompt))
            shape = Shape(rows=batch.rows, length=batch.length)
            if batch.packing == "documents":
                documents = (batch.length,) * batch.rows
                shape = Shape(rows=1, length=sum(documents), documents=documents)
            return Work(
                recipe=recipe,
                config=config,
                length=prompt,
                shape=shape,
                longest=shape.length,
                answer=answer,
                beam_size=1,
            )
        case TranslateRecipe(batch=batch):
            tokens = _tokens(length, "batch.max_length", batch.max_length)
            rows = max(1, batch.max_tokens // (2 * tokens))
            return Work(
                recipe=recipe,
                config=config,
                length=tokens,
                shape=Shape(rows=rows, src_length=tokens, length=tokens),
                longest=batch.max_length,
                answer=tokens,
                beam_size=recipe.decoding.beam_size,
            )
        case ClassifyRecipe(batch=batch) | TagRecipe(batch=batch) | MaskedRecipe(batch=batch):
            tokens = _tokens(length, "batch.max_length", batch.max_length)
            rows = max(1, batch.max_tokens // tokens)
            return Work(
                recipe=recipe,
                config=config,
                length=tokens,
                shape=Shape(rows=rows, length=tokens, targets=_targets(recipe, rows * tokens)),
                longest=batch.max_length,
                answer=0,
                beam_size=1,
            )
    raise UnknownWorkError(f'the cost of task = "{recipe.task}" is not known')


def _tokens(length: int | None, key: str, most: int) -> int:
    """The length that is asked for, which the recipe must have room for, or a usual one."""
    if length is not None and length > most:
        raise InputError(
            f"length = {length} is over the recipe's {key} = {most}: ask for {most} or less, or "
            f"add {key}={length} to the recipe's settings"
        )
    return min(LENGTH, most) if length is None else length


def _targets(recipe: RunRecipe, tokens: int) -> int | None:
    """Predictions of a batch of texts, where they are not one for each token or text."""
    return round(recipe.masking.share * tokens) if isinstance(recipe, MaskedRecipe) else None


def _with_vocabulary(recipe: RunRecipe) -> ModelConfig:
    size = recipe.tokenizer.vocab_size
    match recipe.model:
        case EncoderDecoderConfig() as config:
            return replace(
                config,
                src_vocab_size=config.src_vocab_size or size,
                tgt_vocab_size=config.tgt_vocab_size or size,
            )
        case DecoderOnlyConfig() as config:
            return replace(config, vocab_size=config.vocab_size or size)
        case EncoderOnlyConfig() as config:
            head = config.head
            if isinstance(head, ClassificationHead | TaggingHead) and not head.labels:
                head = replace(head, labels=LABELS)
            return replace(config, vocab_size=config.vocab_size or size, head=head)


def _recipe_of_folder(folder: Path) -> RunRecipe:
    """The recipe that trained a model folder, with its architecture as it came to be."""
    model = read_config(folder).model
    path = folder / "training" / "recipe.json"
    if path.is_file():
        try:
            data = json.loads(path.read_text(encoding="utf-8"))
        except ValueError as error:
            raise InputError(f"{path} is damaged: it is not JSON ({error})") from error
        task = data.get("task", "translate")
        if task in TASKS:
            recipe = parse_settings(find_task(task).recipe, data, str(path))
            return replace(recipe, model=model)
    return start_from(_recipe_for(model), str(folder))


def _recipe_for(model: ModelConfig) -> RunRecipe:
    """The recipe, as it is by default, of what a model is for."""
    match model:
        case EncoderDecoderConfig():
            return TranslateRecipe()
        case DecoderOnlyConfig():
            return GenerateRecipe()
        case EncoderOnlyConfig(head=ClassificationHead()):
            return ClassifyRecipe()
        case EncoderOnlyConfig(head=TaggingHead()):
            return TagRecipe()
    return MaskedRecipe()
