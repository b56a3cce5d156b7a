"""From a recipe's files to tokenizers, datasets and validation texts."""

from collections import deque
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain

import numpy as np

from dragoman.data.aligner import Aligner
from dragoman.data.checks import corpus_warnings, overlap_warnings
from dragoman.data.corpus import CorpusTexts, read_pairs
from dragoman.data.dataset import PairDataset, format_held_out, hold_out, leave_out, seen_in
from dragoman.data.languages import BalancedTexts, Direction, tempered
from dragoman.data.prepare import prepare
from dragoman.errors import InputError
from dragoman.folder.opening import ModelFolder, Tokenizers
from dragoman.tasks.translate.languages import Languages, Published, languages_of, listed
from dragoman.tasks.translate.recipe import DataConfig, TranslateRecipe, check_codes
from dragoman.text.placeholders import PLACEHOLDERS, placeholder_ids
from dragoman.text.tags import tags_of
from dragoman.text.tokenizer import Tokenizer
from dragoman.text.train import TokenizerConfig, train_tokenizer, with_specials
from dragoman.train.job import Say
from dragoman.train.runfolder import RunFolder
from dragoman.train.start import begin_tokenizers


@dataclass(frozen=True, slots=True)
class Texts:
    """All texts of a run."""

    tokenizers: Tokenizers
    corpora: list[PairDataset]
    """The training corpora, as in their files."""
    given: list[PairDataset]
    """The validation corpora, as in their files; empty if pairs are held out."""
    training: list[PairDataset]
    """A dataset for each direction of each corpus."""
    validation: list[PairDataset]
    """One for each direction."""
    languages: Languages

    @property
    def tgt_lang(self) -> str | None:
        """The target language, if it is known and there is only one."""
        return self.languages.tgt_lang or self.validation[0].languages[1]

    def of(self, validation: PairDataset) -> "Texts":
        """Return a copy with the languages of one direction chosen."""
        if not validation.tags:
            return self
        return replace(self, languages=self.languages.between(*validation.languages))

    def pair(self, dataset: PairDataset, number: int) -> tuple[str, str]:
        """Return a pair of a dataset as text (decoding is lossless)."""
        src, tgt = self.tokenizers
        sides = dataset.src[number].tolist(), dataset.tgt[number].tolist()
        return src.decode(sides[0]), tgt.decode(sides[1])

    def first_lines(self, dataset: PairDataset, limit: int) -> tuple[list[str], list[str]]:
        """Return the first `limit` sources and targets of a dataset as text."""
        pairs = [self.pair(dataset, number) for number in range(min(limit, len(dataset)))]
        return [src for src, _ in pairs], [tgt for _, tgt in pairs]

    def warnings(self) -> Iterator[str]:
        """Yield a sentence for each thing that looks wrong with the files of corpora."""
        for dataset in (*self.corpora, *self.given):
            lengths = np.stack([dataset.src.lengths, dataset.tgt.lengths])
            pair = partial(self.pair, dataset)
            yield from corpus_warnings(dataset.name, lengths, pair, dataset.languages)
        for held in self.given:
            seen = np.any([seen_in(dataset, held) for dataset in self.corpora], axis=0)
            pairs = [self.pair(held, number) for number in range(len(held))]
            yield from overlap_warnings(held.name, pairs, seen.tolist())


def read_texts(recipe: TranslateRecipe, folder: RunFolder, say: Say) -> Texts:
    """Train the tokenizers (or load those of a begun run), tokenise, and report findings."""
    data, max_length, cache = recipe.data, recipe.batch.max_length, recipe.data.cache_folder
    for corpus in data.validation:  # raise their errors before a tokenizer is trained
        deque(read_pairs(corpus), maxlen=0)
    learned, tags = _to_learn(data, folder.start)
    tokenizers = begin_tokenizers(
        recipe, lambda: _train_tokenizers(recipe, tags), folder, say, tags
    )
    if folder.start is None and recipe.tokenizer.joint and tokenizers[0] is not tokenizers[1]:
        raise InputError(
            f"tokenizer.path = {recipe.tokenizer.path} has a tokenizer for each side; set "
            "tokenizer.joint = false"
        )
    own = Languages(src_tokenizer=tokenizers[0], directions=learned)
    languages = _between(recipe, folder.start) or own
    if data.placeholders and not all(map(placeholder_ids, tokenizers)):
        raise InputError(
            f"data.placeholders = {data.placeholders} needs a vocabulary that has placeholders; "
            "leave it out, or start from a model that was trained with it"
        )
    corpora, given = (
        [prepare(corpus, *tokenizers, cache) for corpus in some]
        for some in (data.training, data.validation)
    )
    corpora, held = _held_out(corpora, given, recipe, say)
    for dataset in corpora:
        for sentence in dataset.report(max_length, is_trained=folder.start is None):
            say(sentence)
    for each in held:
        if not given and not len(each):
            raise InputError(
                f"{each.name} has no pair with text on both sides and at most {max_length} tokens, "
                "to learn from or to hold out; split long lines, or raise batch.max_length"
            )
        if not len(each) or not each.usable(10**9).any():
            raise InputError(
                f"the validation corpus {each.name} holds no pair with text on both sides"
            )
    training, validation = (
        [way for each in some for way in _directed(each, languages)] for some in (corpora, held)
    )
    training = tempered(training, data.temperature, max_length)
    aligner = Aligner.learn([*validation, *training], tokenizers[1].vocab_size)
    validation = [replace(each, links=aligner.links(each.src, each.tgt)) for each in validation]
    if data.guided_alignment or data.placeholders:
        training = [replace(each, links=aligner.kept_links(each, cache)) for each in training]
    return Texts(tokenizers, corpora, given, training, validation, languages)


def _to_learn(
    data: DataConfig, start: ModelFolder | None
) -> tuple[tuple[Direction, ...], Sequence[str]]:
    """Return the directions of a multilingual model, and the special tokens that they need."""
    learned, theirs = data.learned, None if start is None else languages_of(start)
    if learned and isinstance(theirs, Published):
        raise InputError(
            f"start.model = {start} is of another library, and learns one direction at a time; "
            "give one corpus and no data.directions"
        )
    ours = theirs if theirs is not None and theirs.directions else None
    if ours is not None and not learned:
        first = data.training[0]
        if first.src_lang is None or first.tgt_lang is None:
            raise InputError(
                f"start.model = {start} has several languages ({listed(ours.known)}); say which "
                "two the texts are in, by --src-lang and --tgt-lang"
            )
        learned = ((first.src_lang, first.tgt_lang),)
    told = data.tag_source or (ours is not None and ours.tells_source)
    check_codes(chain(*learned), told_source=told)
    return learned, tags_of({*chain(*learned)}, told_source=told)


def _held_out(
    corpora: Sequence[PairDataset], given: Sequence[PairDataset], recipe: TranslateRecipe, say: Say
) -> tuple[list[PairDataset], list[PairDataset]]:
    """Return the corpora without held-out pairs, and a validation corpus per pair of languages.

    That is the given corpus, or pairs of the first training corpus.
    """
    several = bool(recipe.data.learned)
    rest, held = [*corpora], {_pair_of(each, several): each for each in given}
    for number, corpus in enumerate(corpora):
        pair = _pair_of(corpus, several)
        if pair in held:
            continue
        before = _unseen(rest)
        count, most, seed = recipe.data.hold_out, recipe.batch.max_length, recipe.train.seed
        own, held[pair] = hold_out(rest[number], count, most, seed, both=several)
        rest = [
            own if place == number else leave_out(other, held[pair], both=several)
            for place, other in enumerate(rest)
        ]
        drawn, what = len(held[pair]), "text" if several else "source"
        more = _unseen(rest) - before - drawn
        needed = "No validation files"
        if several:
            needed += f" for {' and '.join(map(str, corpus.languages))}"
        say(format_held_out(held[pair].name, drawn, more, "pair", what, needed=needed))
    ours = dict.fromkeys(_pair_of(each, several) for each in corpora)
    if len(held) > len(ours) or len({*map(id, held.values())} & {*map(id, given)}) < len(given):
        raise InputError(
            "data.valid has a corpus too many: give one for each pair of languages that training "
            "has, at most, and join those of a pair (dragoman data merge)"
        )
    return rest, [held[pair] for pair in ours]


def _unseen(corpora: Sequence[PairDataset]) -> int:
    return sum(int(each.excluded.sum()) for each in corpora if each.excluded is not None)


def _pair_of(dataset: PairDataset, several: bool) -> Collection[str | None]:  # noqa: FBT001
    """Return the languages of a corpus as a set, which is empty for a model of one pair."""
    return frozenset(dataset.languages) if several else frozenset()


def _directed(corpus: PairDataset, languages: Languages) -> list[PairDataset]:
    """Return the corpus in each direction that is learned, with its tags."""
    if not languages.directions:
        return [corpus]
    return [
        replace(way, tags=languages.between(*way.languages).src_frame.before)
        for way in (corpus, corpus.turned())
        if way.languages in languages.directions
    ]


def _between(recipe: TranslateRecipe, start: ModelFolder | None) -> Published | None:
    """Return another library's model that the run starts from, with its texts' languages."""
    found = None if start is None else Published.of(start)
    if found is not None and found.known:
        found = found.between(recipe.data.src_lang, recipe.data.tgt_lang)
        found.check_pair()
    return found


def _train_tokenizers(recipe: TranslateRecipe, tags: Sequence[str]) -> Tokenizers:
    config, corpora = recipe.tokenizer, recipe.data.training

    def train(texts: Iterable[str], config: TokenizerConfig = config) -> Tokenizer:
        trained = train_tokenizer(texts, config)
        return with_specials(trained, PLACEHOLDERS) if recipe.data.placeholders else trained

    if tags:
        balanced = BalancedTexts(corpora, recipe.data.temperature)
        joint = train(balanced, replace(config, specials=(*config.specials, *tags)))
        return joint, joint
    if config.joint:
        joint = train(CorpusTexts(corpora, ("src", "tgt")))
        return joint, joint
    return train(CorpusTexts(corpora, ("src",))), train(CorpusTexts(corpora, ("tgt",)))
