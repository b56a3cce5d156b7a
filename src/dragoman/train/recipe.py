"""A recipe: everything that decides a training run, in one TOML file."""

import os
from dataclasses import dataclass, field, replace
from importlib import resources
from pathlib import Path

from dragoman.data.batch import BatchConfig
from dragoman.data.corpus import CorpusConfig
from dragoman.errors import InputError, nearest
from dragoman.models import EncoderDecoderConfig
from dragoman.models.folder import DecodingDefaults
from dragoman.settings import load_settings
from dragoman.text.train import TokenizerConfig
from dragoman.train.config import TrainConfig

DATA_VARIABLE = "DRAGOMAN_DATA"
NEIGHBOUR = Path("../shared/data")  # where a checkout's data may lie beside it


@dataclass(frozen=True, slots=True, kw_only=True)
class DataConfig:
    """The texts of a run."""

    src: str | None = None
    """File of source sentences; .gz, .xz and .zst are read as they are."""
    tgt: str | None = None
    """File of target sentences, parallel to `src`."""
    corpora: tuple[CorpusConfig, ...] = ()
    """More corpora: TSV, JSON lines, each with its weight."""
    valid_src: str | None = None
    """File of source sentences for validation."""
    valid_tgt: str | None = None
    """File of target sentences for validation."""
    hold_out: int = 1000
    """Pairs taken from the training data where no validation files are given; at most a tenth."""
    src_lang: str | None = None
    """Source language, such as en; chooses nothing, is kept in the model card."""
    tgt_lang: str | None = None
    """Target language, such as zh; chooses sacreBLEU's tokenizer."""
    root: str | None = None
    """Folder that relative paths start from; unless given: here, then $DRAGOMAN_DATA."""
    source: str = ""
    """Where others get the data; part of the message when it is not found."""
    cache: str | None = None
    """Folder of tokenised corpora; the user's cache folder unless given."""

    @property
    def named(self) -> list[CorpusConfig]:
        """The corpora to learn from, as the recipe names them."""
        if self.src is None and self.tgt is None:
            return list(self.corpora)
        return [CorpusConfig(src=self.src, tgt=self.tgt), *self.corpora]

    @property
    def training(self) -> list[CorpusConfig]:
        """The corpora to learn from, with paths that exist."""
        if not self.named:
            raise InputError("there is nothing to learn from: set data.src and data.tgt")
        return [self._resolve(corpus) for corpus in self.named]

    @property
    def validation(self) -> CorpusConfig | None:
        """The validation corpus, if one is given."""
        if self.valid_src is None and self.valid_tgt is None:
            return None
        return self._resolve(CorpusConfig(src=self.valid_src, tgt=self.valid_tgt))

    def check(self) -> None:
        """Raise InputError unless every file is there."""
        _ = self.training, self.validation

    @property
    def cache_folder(self) -> Path:
        """Where tokenised corpora are kept."""
        if self.cache is not None:
            return Path(self.cache)
        base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
        return Path(base) / "dragoman" / "corpora"

    def _resolve(self, corpus: CorpusConfig) -> CorpusConfig:
        def found(name: str | None) -> str | None:
            return None if name is None else str(self._find(name))

        return replace(
            corpus,
            src=found(corpus.src),
            tgt=found(corpus.tgt),
            tsv=found(corpus.tsv),
            jsonl=found(corpus.jsonl),
        )

    def _find(self, name: str) -> Path:
        if self.root is not None:
            folders = [Path(self.root)]
        else:
            variable = os.environ.get(DATA_VARIABLE)
            folders = [Path(), *([Path(variable)] if variable else []), NEIGHBOUR]
        for folder in folders:
            if (folder / name).exists():
                return folder / name
        looked = ", ".join(str(folder) for folder in folders)
        where = f" The data: {self.source}." if self.source else ""
        raise InputError(
            f"there is no file {name} (looked in: {looked}); set data.root or the environment "
            f"variable {DATA_VARIABLE} to the folder that holds it.{where}"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """What `dragoman train` runs."""

    description: str = ""
    """What this trains, in a sentence."""
    expect: str = ""
    """The score to expect, with its conditions."""
    out: str = ""
    """The run's folder; becomes the model folder."""
    data: DataConfig = field(default_factory=DataConfig)
    """The texts."""
    tokenizer: TokenizerConfig = field(default_factory=TokenizerConfig)
    """How text becomes pieces."""
    batch: BatchConfig = field(default_factory=BatchConfig)
    """How pairs become batches."""
    model: EncoderDecoderConfig = field(default_factory=EncoderDecoderConfig)
    """The architecture."""
    train: TrainConfig = field(default_factory=lambda: TrainConfig(max_steps=100_000))
    """How it learns."""
    decoding: DecodingDefaults = field(default_factory=DecodingDefaults)
    """How the model translates unless told otherwise."""

    def __post_init__(self) -> None:
        """Refuse what contradicts itself."""
        if not self.tokenizer.joint and self.model.tie_embeddings in ("all", "source-target"):
            raise InputError(
                f"tokenizer.joint = false contradicts model.tie_embeddings = "
                f'"{self.model.tie_embeddings}": two vocabularies cannot share a matrix; set it to '
                '"target-output" or "none"'
            )


def shipped_recipes() -> dict[str, Path]:
    """Return the recipes that come with the package, by name."""
    folder = Path(str(resources.files("dragoman") / "recipes"))
    return {path.stem: path for path in sorted(folder.glob("*.toml"))}


def load_recipe(name: str, overrides: tuple[str, ...] = ()) -> Recipe:
    """Load a recipe by its shipped name or from a TOML file, with `key=value` overrides."""
    shipped = shipped_recipes()
    if name in shipped:
        return load_settings(Recipe, shipped[name], overrides)
    path = Path(name)
    if path.suffix == ".toml" or path.exists():
        return load_settings(Recipe, path, overrides)
    close = nearest(name, shipped)
    hint = f"did you mean {close}? " if close else ""
    raise InputError(
        f"there is no recipe {name!r}: {hint}shipped are {', '.join(shipped)}; or give the path of "
        "a TOML file"
    )
