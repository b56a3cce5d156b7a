"""How a run starts: with weights drawn from the seed, or those of a model folder (fine-tuning).

The same goes for its tokenizer, which is trained once and then kept.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import TypeVar

import torch
from torch import nn

from dragoman.errors import InputError, did_you_mean
from dragoman.folder.format import ORIGIN, FolderConfig, PublishedDefaults, names_of
from dragoman.folder.opening import ModelFolder, Tokenizers, kept_tokenizers
from dragoman.folder.origin import Content, for_other_weights, keep_origin
from dragoman.models import EncoderDecoderConfig, EncoderOnlyConfig, ModelConfig
from dragoman.models.build import build_on_meta
from dragoman.models.heads import ClassificationHead, TaggingHead
from dragoman.models.lora import adapt
from dragoman.text.tokenizer import Tokenizer
from dragoman.text.train import TokenizerConfig, train_tokenizer, with_specials
from dragoman.train.checkpoint import checkpoints
from dragoman.train.job import Say
from dragoman.train.recipe import RunRecipe, given_tokenizers
from dragoman.train.runfolder import RunFolder
from dragoman.wording import counted

ConfigT = TypeVar("ConfigT", bound=ModelConfig)
ModelT = TypeVar("ModelT", bound=nn.Module)
RecipeT = TypeVar("RecipeT", bound=RunRecipe)

MAY_DIFFER = ("dropout", "attention_dropout", "ffn_dropout", "layer_drop", "init", "head")
"""Model settings that the weights do not depend on; the weights of the head are drawn anew."""
LABELS = ("one", "another")
"""Placeholders for the labels of a head that depend on the data."""


def start_from(recipe: RecipeT, folder: ModelFolder) -> RecipeT:
    """Return the recipe with the architecture and weights of a model folder.

    Its settings may contradict each other until those of a file are merged into them. Raises
    InputError for a folder with a model of another kind, or with adapters alone.
    """
    start = replace(recipe.start, model=str(folder.path))
    _check_kind(recipe, start.model, folder)
    model = _with_head(folder.config.model, recipe.model)
    return recipe.taking_over(folder.config).changed({"model": model, "start": start})


def begun_recipe(kind: RecipeT, out: str) -> RecipeT | None:
    """Return the recipe, of this kind, of the run in `out`; None if it has no checkpoint."""
    run = RunFolder(Path(out))
    return run.begun(kind) if out and checkpoints(run.checkpoints) else None


def check_start(recipe: RunRecipe, start: ModelFolder | None) -> None:
    """Raise InputError if the recipe contradicts the folder that it starts from, if any.

    Checks the model and what is frozen; reads no weights.
    """
    if start is None:
        return
    theirs = start.config.model
    _check_kind(recipe, recipe.start.model, start)
    for name in (field.name for field in fields(theirs) if field.name not in MAY_DIFFER):
        wanted, found = getattr(recipe.model, name), getattr(theirs, name)
        new = name == "word_features" and not found  # drawn anew
        if wanted != found and not new:
            raise InputError(
                f"model.{name} = {wanted} contradicts start.model = {recipe.start.model}, where it "
                f"is {found}: leave it out, and it is taken from there"
            )
    if recipe.start.freeze or recipe.start.lora.rank:
        with torch.device("meta"):
            _choose_learning(build_on_meta(with_labels(_with_head(theirs, recipe.model))), recipe)


def with_labels(config: ModelConfig) -> ModelConfig:
    """Return the config, with placeholder labels if the labels depend on the data."""
    if isinstance(config, EncoderOnlyConfig):
        head = config.head
        if isinstance(head, ClassificationHead | TaggingHead) and not head.labels:
            return replace(config, head=replace(head, labels=LABELS))
    return config


def check_tokens(config: ModelConfig, *tokenizers: Tokenizer, named: bool = True) -> None:
    """Raise InputError if model and tokenizer differ in special tokens or vocabulary size.

    Special tokens are compared only if `named`.
    """
    for tokenizer in tokenizers:
        for name in ("pad_id", "bos_id", "eos_id") if named else ():
            wanted, found = getattr(config, name), getattr(tokenizer, name)
            if wanted != found and wanted >= 0:  # some models of Hugging Face lack it
                raise InputError(
                    f"model.{name} = {wanted} contradicts the tokenizer, where it is {found}: "
                    "leave it out"
                )
        size = tokenizer.vocab_size
        if not isinstance(config, EncoderDecoderConfig) and config.vocab_size < size:
            raise InputError(
                f"model.vocab_size = {config.vocab_size:,} is less than the {size:,} pieces of "
                "the tokenizer: leave it out"
            )


def begin_model(build: Callable[[ConfigT], ModelT], config: ConfigT, recipe: RunRecipe) -> ModelT:
    """Build a model from the seed, and freeze what the recipe freezes.

    All random numbers of the run follow from the seed set here.
    """
    torch.manual_seed(recipe.train.seed)
    model = build(config)
    if recipe.start.model is not None:
        _choose_learning(model, recipe)
    return model


def _choose_learning(model: nn.Module, recipe: RunRecipe) -> None:
    if recipe.start.lora.rank:
        adapt(model, recipe.start.lora)
    else:
        freeze(model, recipe.start.freeze)


def freeze(model: nn.Module, prefixes: Sequence[str]) -> None:
    """Freeze the parameters whose names begin with these prefixes, in whole words."""
    parameters = dict(model.named_parameters(remove_duplicate=False))  # shared ones under all names
    for prefix in prefixes:
        chosen = [p for name, p in parameters.items() if _begins(name, prefix)]
        if not chosen:
            words = [name.split(".") for name in parameters]
            parts = {".".join(w[:end]) for w in words for end in range(1, len(w) + 1)}
            tops = dict.fromkeys(name.partition(".")[0] for name in parameters)
            raise InputError(
                f'start.freeze: no weight has a name that begins with "{prefix}"; the parts '
                f"are {', '.join(tops)}{did_you_mean(prefix, parts)}"
            )
        for parameter in chosen:
            parameter.requires_grad = False
    if not any(parameter.requires_grad for parameter in parameters.values()):
        raise InputError("start.freeze leaves nothing to learn: it names every part of the model")


def parameters_of(model: nn.Module, prefixes: Sequence[str]) -> str:
    """Describe how many parameters there are, how many are frozen, and which by weight tying."""
    total = sum(p.numel() for p in model.parameters())
    frozen = sum(p.numel() for p in model.parameters() if not p.requires_grad)
    tied = [
        name
        for name, p in model.named_parameters(remove_duplicate=False)
        if prefixes and not p.requires_grad and not any(_begins(name, each) for each in prefixes)
    ]
    which = f" ({', '.join(tied)} too, being the same)" if tied else ""
    return f"{total:,} parameters" + (f", {frozen:,} of them frozen{which}" if frozen else "")


def _begins(name: str, prefix: str) -> bool:
    """Return whether a name begins with a prefix, in whole words."""
    return f"{name}.".startswith(f"{prefix}.")


def _with_head(theirs: ModelConfig, ours: ModelConfig) -> ModelConfig:
    """Return their model; an encoder gets our head or word features if it lacks them."""
    if not (isinstance(ours, EncoderOnlyConfig) and isinstance(theirs, EncoderOnlyConfig)):
        return theirs
    if theirs.head.kind != ours.head.kind:
        return replace(theirs, head=ours.head, word_features=ours.word_features)
    return replace(theirs, word_features=theirs.word_features or ours.word_features)


def _check_kind(recipe: RunRecipe, folder: str | None, start: ModelFolder) -> None:
    theirs = start.config.model
    if start.adapters is not None:
        raise InputError(
            f"start.model = {start.adapters} holds adapters; merge them first (dragoman convert "
            f"{start.adapters} MERGED), and start from that"
        )
    if theirs.kind != recipe.model.kind:
        raise InputError(
            f"start.model = {folder} holds a model of the kind {theirs.kind}, and task = "
            f'"{recipe.task}" trains {recipe.model.kind}; give a folder of that kind'
        )


def keep_start(training: Path, start: ModelFolder, source: nn.Module) -> None:
    """Copy to `training/` the extra files of a Hugging Face model that a run starts from."""
    if start.config.published is None:
        return
    for name, content in keep_origin(start, source.state_dict()).items():
        content.save(training / name)


def published_files(folder: RunFolder) -> tuple[PublishedDefaults | None, dict[str, Content]]:
    """Return what the model folder of a run takes from the publisher of its starting model."""
    if folder.start is None:
        return None, {}
    published = for_other_weights(folder.start.config)
    files = sorted((folder.training / ORIGIN).glob("*"))
    return published, {f"{ORIGIN}/{path.name}": Content(path.read_bytes()) for path in files}


@torch.no_grad()
def copy_weights(
    source: nn.Module,
    theirs: FolderConfig,
    model: nn.Module,
    config: ModelConfig,
    recipe: RunRecipe,
) -> str:
    """Copy weights by name, except those of another head; return a sentence that reports it.

    The weights of word features are new and start at zero: step 0 is the old model.
    """
    stored = dict(source.named_parameters())
    ours, other = (
        c.head if isinstance(c, EncoderOnlyConfig) else None for c in (config, theirs.model)
    )
    drawn = []
    for name, parameter in model.named_parameters():
        if (name.startswith("head.") and ours != other) or name not in stored:
            zeros = name == "words.weight"
            drawn.append(f"{name} (zeros)" if zeros else name)
            if zeros:
                parameter.zero_()
        elif ".lora." not in name:
            found = stored[name]
            rows = parameter if parameter.shape == found.shape else parameter[: len(found)]
            rows.copy_(found)  # rows of new tokens keep their initial values
    if adapters := sum(".lora." in name for name in drawn):
        drawn = [name for name in drawn if ".lora." not in name]
        drawn.append(counted(adapters // 2, "adapter"))  # two matrices each
    but = f"; drawn anew: {', '.join(drawn)}" if drawn else ""
    return f"The weights are those of {recipe.start.model}{but}."


def begin_tokenizer(
    recipe: RunRecipe, texts: Iterable[str], folder: RunFolder, say: Say
) -> Tokenizer:
    """Return the single tokenizer of a run, trained on the texts; see `begin_tokenizers`.

    Raises InputError if the model that the run starts from has two.
    """

    def train() -> Tokenizers:
        tokenizer = train_tokenizer(texts, recipe.tokenizer)
        return tokenizer, tokenizer

    tokenizer, other = begin_tokenizers(recipe, train, folder, say)
    if tokenizer is not other:
        raise InputError(
            f"{_origin(recipe)} has a tokenizer for each of two languages, and this task takes "
            "one; give another model"
        )
    return tokenizer


def begin_tokenizers(
    recipe: RunRecipe,
    train: Callable[[], Tokenizers],
    folder: RunFolder,
    say: Say,
    specials: Sequence[str] = (),
) -> Tokenizers:
    """Load the tokenizers that a run has saved; a new run creates and saves them.

    They come from the model that the run starts from, or from `tokenizer.path`; otherwise they are
    trained, and only then the texts are read. Ours get the `specials` that they lack.
    """
    if kept := kept_tokenizers(folder.training):
        return kept
    wanted, start = recipe.tokenizer, folder.start
    if start is None and wanted.path is None:
        say(f"Training a tokenizer of {wanted.vocab_size:,} pieces ({wanted.model}) ...")
        tokenizers = train()
    else:
        tokenizers = given_tokenizers(str(wanted.path)) if start is None else start.tokenizers
        which = "tokenizer is that" if tokenizers[0] is tokenizers[1] else "tokenizers are those"
        is_set = start is not None and wanted != TokenizerConfig(specials=wanted.specials)
        unused = ", so the settings in [tokenizer] are not used" if is_set else ""
        say(f"The {which} of {recipe.start.model or wanted.path}; none is trained{unused}.")
        if start is not None and start.config.published is not None:
            return tokenizers  # their files are kept separately
        if start is None:
            specials = [*dict.fromkeys((*wanted.specials, *specials))]
        if new := [name for name in specials if name not in tokenizers[0].specials]:
            tokenizers = _grown(tokenizers, new, recipe)
            say(f"It gets the tokens {', '.join(new)}; new letters are spelled in bytes.")
    folder.training.mkdir(parents=True, exist_ok=True)
    for name, tokenizer in names_of(tokenizers).items():
        tokenizer.save(folder.training / name)
    return tokenizers


def _grown(tokenizers: Tokenizers, new: Sequence[str], recipe: RunRecipe) -> Tokenizers:
    """Add special tokens to the tokenizer of a model. Raises InputError if that is impossible."""
    if tokenizers[0] is not tokenizers[1] or recipe.start.lora.rank:
        raise InputError(
            f"{_origin(recipe)} cannot learn the new tokens {', '.join(new)}: it needs one "
            "tokenizer for all languages, and no start.lora.rank, since adapters have no rows for "
            "tokens"
        )
    grown = with_specials(tokenizers[0], new)
    return grown, grown


def _origin(recipe: RunRecipe) -> str:
    """Return the setting that says where the tokenizers come from."""
    if recipe.start.model is None:
        return f"tokenizer.path = {recipe.tokenizer.path}"
    return f"start.model = {recipe.start.model}"
