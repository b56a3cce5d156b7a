"""From a recipe's files to tokenizers, datasets and validation texts."""

from dataclasses import dataclass
from pathlib import Path

from dragoman.data.corpus import CorpusConfig, CorpusTexts
from dragoman.data.dataset import PairDataset, Ragged, format_held_out, hold_out, leave_out
from dragoman.data.prepare import prepare
from dragoman.errors import InputError
from dragoman.models.folder import read_config, tokenizer_paths
from dragoman.tasks.translate.recipe import TranslateRecipe
from dragoman.text.tokenizer import Tokenizer
from dragoman.text.train import train_tokenizer
from dragoman.train.job import Say

JOINT, SRC, TGT = "tokenizer.json", "tokenizer.src.json", "tokenizer.tgt.json"


@dataclass(frozen=True, slots=True)
class Tokenizers:
    """Of source and target: one object twice when they are one."""

    src: Tokenizer
    tgt: Tokenizer

    @classmethod
    def load(cls, src: Path, tgt: Path) -> "Tokenizers":
        """Read two files, or one twice."""
        tokenizer = Tokenizer.load(src)
        return cls(tokenizer, tokenizer if tgt == src else Tokenizer.load(tgt))

    def save(self, folder: Path) -> None:
        """Write them, so that a resumed run has the same ones."""
        folder.mkdir(parents=True, exist_ok=True)
        names = {JOINT: self.src} if self.src is self.tgt else {SRC: self.src, TGT: self.tgt}
        for name, tokenizer in names.items():
            tokenizer.save(folder / name)


@dataclass(frozen=True, slots=True)
class Texts:
    """All that a run reads."""

    tokenizers: Tokenizers
    training: list[PairDataset]
    validation: PairDataset

    def validation_lines(self, limit: int) -> tuple[list[str], list[str]]:
        """Return the first `limit` sources and references as text (decoding is lossless)."""
        count = min(limit, len(self.validation))
        return (
            _decode(self.validation.src, self.tokenizers.src, count),
            _decode(self.validation.tgt, self.tokenizers.tgt, count),
        )


def read_texts(recipe: TranslateRecipe, tokenizer_folder: Path, say: Say) -> Texts:
    """Train the tokenizers (or load those of a run begun earlier), tokenise, report findings."""
    corpora = recipe.data.training
    validation = recipe.data.validation
    tokenizers = _begin_tokenizers(recipe, corpora, tokenizer_folder, say)
    max_length = recipe.batch.max_length
    cache = recipe.data.cache_folder
    training = [prepare(corpus, tokenizers.src, tokenizers.tgt, cache) for corpus in corpora]
    if validation is not None:
        held = prepare(validation, tokenizers.src, tokenizers.tgt, cache)
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
    return Texts(tokenizers, training, held)


def _begin_tokenizers(
    recipe: TranslateRecipe, corpora: list[CorpusConfig], folder: Path, say: Say
) -> Tokenizers:
    """Load those that the run has kept in `folder`; a run that begins makes and keeps them.

    They are those of the model that the run starts from, where there is one, else trained on the
    texts.
    """
    for src, tgt in ((JOINT, JOINT), (SRC, TGT)):
        if (folder / src).exists() and (folder / tgt).exists():
            return Tokenizers.load(folder / src, folder / tgt)
    config = recipe.tokenizer
    if recipe.start.model is not None:
        say(f"The tokenizers are those of {recipe.start.model}; none is trained.")
        start = Path(recipe.start.model)
        tokenizers = Tokenizers.load(*tokenizer_paths(start, read_config(start)))
    else:
        say(f"Training a tokenizer of {config.vocab_size:,} pieces ({config.model}) ...")
        if config.joint:
            joint = train_tokenizer(CorpusTexts(corpora, ("src", "tgt")), config)
            tokenizers = Tokenizers(joint, joint)
        else:
            tokenizers = Tokenizers(
                train_tokenizer(CorpusTexts(corpora, ("src",)), config),
                train_tokenizer(CorpusTexts(corpora, ("tgt",)), config),
            )
    tokenizers.save(folder)
    return tokenizers


def _decode(ragged: Ragged, tokenizer: Tokenizer, count: int) -> list[str]:
    return [tokenizer.decode(ragged[index].tolist()) for index in range(count)]
