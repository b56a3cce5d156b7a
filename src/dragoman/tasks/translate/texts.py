"""From a recipe's files to tokenizers, datasets and validation texts."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from dragoman.data.aligner import Aligner
from dragoman.data.checks import corpus_warnings, overlap_warnings
from dragoman.data.corpus import CorpusTexts
from dragoman.data.dataset import PairDataset, format_held_out, hold_out, leave_out, seen_in
from dragoman.data.prepare import prepare
from dragoman.errors import InputError
from dragoman.folder.opening import ModelFolder, Tokenizers
from dragoman.tasks.translate.published import Published
from dragoman.tasks.translate.recipe import DataConfig, TranslateRecipe
from dragoman.text.train import train_tokenizer
from dragoman.train.job import Say
from dragoman.train.runfolder import RunFolder
from dragoman.train.start import begin_tokenizers


@dataclass(frozen=True, slots=True)
class Texts:
    """All that a run reads."""

    tokenizers: Tokenizers
    training: list[PairDataset]
    validation: PairDataset
    published: Published | None = None
    """What the model that the run starts from has beside, if it is one of another library."""

    def pair(self, dataset: PairDataset, number: int) -> tuple[str, str]:
        """Return a pair of a dataset as text (decoding is lossless)."""
        src, tgt = self.tokenizers
        sides = dataset.src[number].tolist(), dataset.tgt[number].tolist()
        return src.decode(sides[0]), tgt.decode(sides[1])

    def validation_lines(self, limit: int) -> tuple[list[str], list[str]]:
        """Return the first `limit` sources and references as text."""
        numbers = range(min(limit, len(self.validation)))
        pairs = [self.pair(self.validation, number) for number in numbers]
        return [src for src, _ in pairs], [tgt for _, tgt in pairs]

    def warnings(self, data: DataConfig) -> Iterator[str]:
        """Yield what looks wrong with the files that `data` names, as sentences."""
        given = [] if data.validation is None else [self.validation]
        languages = data.src_lang, data.tgt_lang
        for dataset in (*self.training, *given):
            lengths = np.stack([dataset.src.lengths, dataset.tgt.lengths])
            yield from corpus_warnings(
                dataset.name, lengths, partial(self.pair, dataset), languages
            )
        for held in given:
            seen = np.any([seen_in(dataset, held) for dataset in self.training], axis=0)
            pairs = [self.pair(held, number) for number in range(len(held))]
            yield from overlap_warnings(held.name, pairs, seen.tolist())


def read_texts(recipe: TranslateRecipe, folder: RunFolder, say: Say) -> Texts:
    """Train the tokenizers (or load those of a run begun earlier), tokenise, report findings."""
    corpora = recipe.data.training
    validation = recipe.data.validation
    tokenizers = begin_tokenizers(recipe, lambda: _train_tokenizers(recipe), folder, say)
    published = _between(recipe, folder.start)
    max_length = recipe.batch.max_length
    cache = recipe.data.cache_folder
    training = [prepare(corpus, *tokenizers, cache) for corpus in corpora]
    if validation is not None:
        held = prepare(validation, *tokenizers, cache)
    else:
        first, held = hold_out(training[0], recipe.data.hold_out, max_length, recipe.train.seed)
        training = [first, *(leave_out(other, held) for other in training[1:])]
        unseen = sum(int(each.excluded.sum()) for each in training if each.excluded is not None)
        say(format_held_out(held.name, len(held), unseen - len(held), "pair", "source"))
    for dataset in training:
        for sentence in dataset.report(max_length):
            say(sentence)
    if validation is None and not len(held):
        raise InputError(
            f"{held.name} has no pair with text on both sides and at most {max_length} tokens, to "
            "learn from or to hold out; split long lines, or raise batch.max_length"
        )
    if not len(held) or not held.usable(10**9).any():
        raise InputError(f"the validation corpus {held.name} holds no pair with text on both sides")
    aligner = Aligner.learn([held, *training], tokenizers[1].vocab_size)
    held = replace(held, links=aligner.links(held.src, held.tgt))
    if recipe.data.guided_alignment:
        training = [replace(each, links=aligner.kept_links(each, cache)) for each in training]
    return Texts(tokenizers, training, held, published)


def _between(recipe: TranslateRecipe, start: ModelFolder | None) -> Published | None:
    """The model of another library that the run starts from, with the languages of its texts."""
    found = None if start is None else Published.of(start)
    if found is not None and found.languages:
        found = found.between(recipe.data.src_lang, recipe.data.tgt_lang)
        found.check_pair()
    return found


def _train_tokenizers(recipe: TranslateRecipe) -> Tokenizers:
    """One of both languages together, or two."""
    config, corpora = recipe.tokenizer, recipe.data.training
    if config.joint:
        joint = train_tokenizer(CorpusTexts(corpora, ("src", "tgt")), config)
        return joint, joint
    return (
        train_tokenizer(CorpusTexts(corpora, ("src",)), config),
        train_tokenizer(CorpusTexts(corpora, ("tgt",)), config),
    )
