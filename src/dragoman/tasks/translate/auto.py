"""Recipes from text files alone: sizes chosen from the data and the machine."""

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import compress
from pathlib import Path

import numpy as np
import torch

from dragoman.data.batches import plan_batches
from dragoman.data.corpus import read_pairs
from dragoman.errors import InputError
from dragoman.files.reading import COMPRESSED
from dragoman.folder.opening import Tokenizers, kept_tokenizers, open_folder
from dragoman.models import preset
from dragoman.settings import override_settings
from dragoman.tasks.hiding import NoisyBatchConfig
from dragoman.tasks.translate.recipe import DataConfig, TranslateRecipe
from dragoman.text.train import TokenizerConfig, train_tokenizer
from dragoman.train.config import TrainConfig
from dragoman.train.device import choose_device
from dragoman.train.progress import LONGEST_WARM_UP
from dragoman.train.recipe import given_tokenizers
from dragoman.train.runfolder import RunFolder, check_out
from dragoman.train.start import begun_recipe, start_from
from dragoman.wording import counted

SAMPLE = 10_000
"""Number of pairs sampled to estimate the number of batches per pass."""


@dataclass(frozen=True, slots=True)
class Size:
    """Settings for corpora of up to a number of pairs."""

    up_to: float
    preset: str
    dropout: float
    vocab_size: int
    epochs: float
    guided_alignment: float = 0.0


# Larger models make fewer passes, so one more pair never makes training 1.5 times as long.
SIZES = (
    Size(20_000, "tiny", 0.3, 4_000, 60, guided_alignment=0.05),
    Size(100_000, "small", 0.3, 6_000, 15, guided_alignment=0.05),
    Size(1_000_000, "small", 0.1, 16_000, 12),
    Size(float("inf"), "base", 0.1, 32_000, 3),
)

MEASURED = {1_000: 6.8, 3_000: 19.1, 10_000: 27.9, 29_000: 38.8}
"""BLEU on test_2016_flickr by number of Multi30k pairs, English to German (docs/quality.md)."""
FEWEST = min(MEASURED) // 2
"""Number of pairs below which a model memorizes them and learns nothing that generalizes."""
PUBLISHED = ("de", "es", "fr", "it", "nl", "ru", "zh")
"""Languages with small models published by Helsinki-NLP, from and into English."""

Override = Callable[[TranslateRecipe], TranslateRecipe]
"""Replaces chosen settings with those that a user gave."""

LEAST_WARM_UP = 10
"""Smallest number of warm-up steps that is derived from the steps of a run."""
FINE_TUNING_EPOCHS = 10  # at most: the model knows the languages and must not forget them
FINE_TUNING_RATE, ADAPTER_RATE = 3e-4, 1e-3
"""Learning rates of all weights, and of adapters, which start at zero (LoRA)."""


def auto_recipe(
    data: DataConfig,
    out: str,
    start: str | None = None,
    *,
    adapters: bool = False,
    guided: bool = True,
    override: Override = replace,
) -> TranslateRecipe:
    """Choose preset, dropout, vocabulary and steps from the number of pairs and their tokens.

    Less text means a smaller model and vocabulary, and more passes; a GPU gets larger batches, and
    fewer of them. With up to 100,000 pairs, a head is trained to align words unless `guided` is
    false. The model is pre-norm, which trains without a tuned warm-up (Xiong et al., 2020). A run
    that starts from the model folder `start` uses its sizes, at most ten passes, and a lower
    learning rate unless it trains `adapters`. The description is that of the recipe that `override`
    returns.
    """
    opened = None if start is None else open_folder(start)
    tokenizers = None if opened is None else opened.tokenizers
    published = opened is not None and opened.config.published is not None
    known = tokenizers[0].languages if tokenizers and published else {}
    data = replace(
        data,
        src_lang=data.src_lang or _language(data.src, known),
        tgt_lang=data.tgt_lang or _language(data.tgt, known),
    )
    num_pairs = sum(1 for _ in _pairs(data))
    if not num_pairs:
        raise InputError("there is nothing to learn from: the training files hold no pair")
    size = next(size for size in SIZES if num_pairs <= size.up_to)
    max_tokens = 25_000 if torch.cuda.is_available() else 4096
    recipe = TranslateRecipe(out=out, data=data, batch=NoisyBatchConfig(max_tokens=max_tokens))
    rate, epochs = recipe.train.learning_rate, size.epochs
    if opened is None:
        weight = size.guided_alignment if guided else 0.0
        recipe = replace(
            recipe,
            data=replace(data, guided_alignment=data.guided_alignment or weight),
            tokenizer=TokenizerConfig(vocab_size=size.vocab_size),
            model=replace(preset(size.preset), norm_position="pre", dropout=size.dropout),
            expect=_expected(num_pairs, data.src_lang, data.tgt_lang),
        )
    else:
        rate = ADAPTER_RATE if adapters else FINE_TUNING_RATE
        recipe, epochs = start_from(recipe, opened), min(epochs, FINE_TUNING_EPOCHS)
    num_batches = _num_batches(recipe, num_pairs, tokenizers)
    train = replace(_limits(epochs, num_batches), learning_rate=rate)
    found = override(replace(recipe, train=train))
    train = replace(train, warmup_steps=_warm_up(train, found))
    found = override(replace(recipe, train=train))
    if (found.batch, found.tokenizer) != (recipe.batch, recipe.tokenizer):
        num_batches = _num_batches(found, num_pairs, tokenizers)
    what = _described(found, size.preset, num_batches)
    description = f"{found.description} Chosen for {counted(num_pairs, 'pair')}: {what}.".strip()
    return replace(found, description=description)


def _described(recipe: TranslateRecipe, name: str, num_batches: float) -> str:
    """Describe what is trained, and in how many passes; `name` is the chosen preset."""
    train = recipe.train
    share = (train.max_steps or 0) * train.accumulate / num_batches
    passes, part = round(share), "less than a pass" if share < 0.5 else ""
    if start := recipe.start.model:
        return (
            f"{part or counted(passes, 'more pass', 'more passes')} with {start}, learning rate "
            f"{train.learning_rate:g} after {counted(train.warmup_steps, 'step')} of warm-up"
        )
    sizes, usual = (
        f"{each.num_encoder_layers}+{each.num_decoder_layers} layers, d_model {each.d_model}"
        for each in (recipe.model, preset(name))
    )
    return (
        f"{f'{name} ({sizes})' if sizes == usual else sizes}, dropout {recipe.model.dropout:g}, "
        f"{recipe.num_pieces:,} pieces, "
        f"{'a head that learns word alignments, ' if recipe.data.guided_alignment else ''}"
        f"{part or counted(passes, 'pass', 'passes')}; "
        f"{counted(torch.get_num_threads(), 'thread')} to train with"
    )


def _expected(num_pairs: int, src_lang: str | None, tgt_lang: str | None) -> str:
    """Describe the scores measured with about as many pairs, and what improves them most."""
    near = [n for n in MEASURED if n <= num_pairs][-1:] + [n for n in MEASURED if n > num_pairs][:1]
    reached = " and ".join(f"BLEU {MEASURED[n]} with {counted(n, 'pair')}" for n in near)
    advice = "More pairs help most, then clean ones (dragoman data check)"
    if "en" in (src_lang, tgt_lang) and {src_lang, tgt_lang} & {*PUBLISHED}:
        name = f"opus-mt-{src_lang}-{tgt_lang}"
        advice += f", or a start: dragoman download Helsinki-NLP/{name}, then --from {name}"
    few = f"{counted(num_pairs, 'pair')} cannot teach a language: " if num_pairs < FEWEST else ""
    return (
        f"{few}captions of images, English to German, reached {reached}; texts on many subjects "
        f"reach less. {advice}."
    )


def recipe_for_files(
    overrides: Sequence[str], *, check: Callable[[TranslateRecipe], None] = check_out
) -> TranslateRecipe:
    """Choose a recipe for the files named in `overrides`, and apply these settings to it.

    `check` is called before the texts are counted. A run that has begun keeps its recipe if the
    model folder that it started from is gone. Raises InputError if a file is not named, or if the
    files, a folder or a device cannot be used.
    """
    defaults = TranslateRecipe(data=DataConfig())
    keys = ("data.", "start.", "out", "batch.", "train.")  # all others override the choice
    given = override_settings(defaults, [word for word in overrides if word.startswith(keys)])
    data, start = given.data, given.start.model
    if (data.src is None) != (data.tgt is None):
        side = "--tgt" if data.tgt is None else "--src"
        raise InputError(
            f"{side} is missing: give the file with the translations of {data.src or data.tgt}"
        )
    if not data.named:
        override_settings(defaults, overrides)  # rejects unknown keys
        raise InputError(
            "there are no texts: give a recipe, such as multi30k-en-de, or files: --src and --tgt, "
            "--tsv, --jsonl or --tm"
        )
    if start and not Path(start).exists() and (begun := begun_recipe(defaults, given.out)):
        return override_settings(begun, overrides)
    data.check()  # cheap checks first: counting reads all texts
    check(given)
    choose_device(given.train.device)
    return auto_recipe(
        data,
        "",
        start,
        adapters=given.start.lora.rank is not None,
        guided=given.hides_heads is None,
        override=partial(override_settings, overrides=overrides),
    )


def choose_sizes(recipe: TranslateRecipe, override: Override) -> TranslateRecipe:
    """Return the recipe that `auto_recipe` chooses for a recipe's texts, after `override`.

    The recipe is returned unchanged if texts are missing, which the run reports, or if the package
    generates them.
    """
    try:
        recipe.data.check()
    except InputError:
        return recipe
    if not recipe.data.named:
        return recipe
    guided = recipe.hides_heads is None
    return auto_recipe(recipe.data, recipe.out, guided=guided, override=override)


def _num_batches(recipe: TranslateRecipe, num_pairs: int, tokenizers: Tokenizers | None) -> float:
    """Estimate the number of batches per pass from a sample, tokenized as in the run.

    Pairs held out for validation are not counted.
    """
    chosen = np.zeros(num_pairs, dtype=bool)
    chosen[np.random.default_rng(0).permutation(num_pairs)[:SAMPLE]] = True
    pairs = (pair for pair, taken in zip(_pairs(recipe.data), chosen, strict=True) if taken)
    sources, targets = (list(side) for side in zip(*pairs, strict=True))
    if tokenizers is None and (path := recipe.tokenizer.path):
        tokenizers = kept_tokenizers(RunFolder.of(recipe).training) or given_tokenizers(path)
    elif tokenizers is None:
        tokenizers = (train_tokenizer(sources + targets, recipe.tokenizer),) * 2
    src, tgt = tokenizers
    of_src, of_tgt = (
        np.array([len(ids) + 1 for ids in tokenizer.encode_batch(texts)])
        for tokenizer, texts in ((src, sources), (tgt, targets))
    )
    most = recipe.batch.max_length + 1
    usable = (np.minimum(of_src, of_tgt) > 1) & (np.maximum(of_src, of_tgt) <= most)
    max_tokens, rng = recipe.batch.max_tokens, np.random.default_rng(0)
    plan = plan_batches(of_src[usable], of_tgt[usable], max_tokens, rng)
    held_out = min(recipe.data.hold_out, num_pairs // 10)
    return max(1.0, len(plan) * (num_pairs - held_out) / len(sources))


def _limits(passes: float, num_batches: float) -> TrainConfig:
    steps = max(300, round(passes * num_batches))
    every = max(100, min(2000, steps // 20))
    return TrainConfig(
        max_steps=steps,
        warmup_steps=min(1000, steps // 10),
        validate_every=every,
        save_every=every,
        patience=8,
    )


def _warm_up(chosen: TrainConfig, found: TranslateRecipe) -> int:
    """Return the chosen warm-up, at most a fifth of the user's steps; a begun run keeps its own.

    Otherwise a run could not be continued for more steps. A run of fewer than 50 steps learns
    nothing in any case.
    """
    if begun := begun_recipe(found, found.out):
        return begun.train.warmup_steps
    fifth = int(LONGEST_WARM_UP * (found.train.max_steps or chosen.max_steps or 0))
    return chosen.warmup_steps if fifth < LEAST_WARM_UP else min(chosen.warmup_steps, fifth)


def _language(file: str | None, known: Collection[str]) -> str | None:
    """Infer the language from a file's extension: `train.zh.xz` is zh, `train.txt` is unknown.

    `known` contains the codes of a multilingual model; if it is empty, any two letters are a
    language.
    """
    *_, ending = ("", *(e[1:] for e in Path(file or "").suffixes if e not in COMPRESSED))
    is_one = ending in known if known else len(ending) == 2 and ending.isalpha()
    return ending if is_one else None


def _pairs(data: DataConfig) -> Iterator[tuple[str, str]]:
    """Yield the pairs of a pass; a pair learned in both directions is yielded each way."""
    learned = data.learned
    for corpus in data.training:
        way = corpus.src_lang, corpus.tgt_lang
        ways = [way in learned, way[::-1] in learned] if learned else [True, False]
        for pair in read_pairs(corpus):
            yield from compress((pair, pair[::-1]), ways)
