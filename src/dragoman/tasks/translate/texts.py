"""From a recipe's files to tokenizers, datasets and validation texts."""

from dataclasses import dataclass
from pathlib import Path

from dragoman.data.corpus import CorpusConfig, CorpusTexts
from dragoman.data.dataset import PairDataset, format_held_out, hold_out, leave_out
from dragoman.data.prepare import prepare
from dragoman.errors import InputError
from dragoman.models.folder import FolderConfig, read_config
from dragoman.tasks.folders import load_tokenizers, tokenizers_of
from dragoman.tasks.translate.recipe import TranslateRecipe
from dragoman.text.tokenizer import Frame, Tokenizer
from dragoman.text.train import train_tokenizer
from dragoman.train.job import Say

JOINT, SRC, TGT = "tokenizer.json", "tokenizer.src.json", "tokenizer.tgt.json"


Tokenizers = tuple[Tokenizer, Tokenizer]
"""Of source and target: one object twice where they are one."""


@dataclass(frozen=True, slots=True)
class Texts:
    """All that a run reads."""

    tokenizers: Tokenizers
    training: list[PairDataset]
    validation: PairDataset

    def validation_lines(self, limit: int) -> tuple[list[str], list[str]]:
        """Return the first `limit` sources and references as text (decoding is lossless)."""
        numbers = range(min(limit, len(self.validation)))
        sides, (src, tgt) = self.validation, self.tokenizers
        sources = [src.decode(sides.src[number].tolist()) for number in numbers]
        return sources, [tgt.decode(sides.tgt[number].tolist()) for number in numbers]


def read_texts(recipe: TranslateRecipe, tokenizer_folder: Path, say: Say) -> Texts:
    """Train the tokenizers (or load those of a run begun earlier), tokenise, report findings."""
    corpora = recipe.data.training
    validation = recipe.data.validation
    tokenizers = _begin_tokenizers(recipe, corpora, tokenizer_folder, say)
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
    return Texts(tokenizers, training, held)


def _begin_tokenizers(
    recipe: TranslateRecipe, corpora: list[CorpusConfig], folder: Path, say: Say
) -> Tokenizers:
    """Load those that the run has kept in `folder`; a run that begins makes and keeps them.

    They are those of the model that the run starts from, where there is one, else trained on the
    texts.
    """
    start = recipe.start.model
    if start is not None and (config := read_config(Path(start))).published is not None:
        say(f"The tokenizers are those of {start}; none is trained.")
        return _published_tokenizers(Path(start), config)
    for names in ((JOINT, JOINT), (SRC, TGT)):
        src, tgt = (folder / name for name in names)
        if src.exists() and tgt.exists():
            return load_tokenizers(src, tgt)
    settings = recipe.tokenizer
    if start is not None:
        say(f"The tokenizers are those of {start}; none is trained.")
        tokenizers = tokenizers_of(Path(start), read_config(Path(start)))
    else:
        say(f"Training a tokenizer of {settings.vocab_size:,} pieces ({settings.model}) ...")
        if settings.joint:
            joint = train_tokenizer(CorpusTexts(corpora, ("src", "tgt")), settings)
            tokenizers = joint, joint
        else:
            tokenizers = (
                train_tokenizer(CorpusTexts(corpora, ("src",)), settings),
                train_tokenizer(CorpusTexts(corpora, ("tgt",)), settings),
            )
    folder.mkdir(parents=True, exist_ok=True)
    names = (JOINT, JOINT) if tokenizers[0] is tokenizers[1] else (SRC, TGT)
    for name, tokenizer in dict(zip(names, tokenizers, strict=True)).items():
        tokenizer.save(folder / name)
    return tokenizers


def _published_tokenizers(folder: Path, config: FolderConfig) -> Tokenizers:
    """Read those of a model of another library, which stay in its folder.

    Raises InputError where a source or a target does not stand alone before its end: batches know
    no tokens of languages.
    """
    src, tgt = tokenizers_of(folder, config)
    frame, published = src.frame(), config.published
    if frame != Frame((), (src.eos_id,)) or (published is not None and published.begin):
        raise InputError(
            f"start.model = {folder} has tokens of languages, or of a beginning, around its texts, "
            "and training does not write them yet; start from a Marian or T5 model"
        )
    return src, tgt
