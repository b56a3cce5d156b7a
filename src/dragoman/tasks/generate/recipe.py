"""The recipe for learning to continue a text: a language model."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal, Self

import numpy as np
from torch import Tensor

from dragoman.data.documents import HoldOut, Split, standard_library
from dragoman.data.made import write_town
from dragoman.data.padding import NO_TARGET
from dragoman.data.shape import Shape, random_ids, some_targets
from dragoman.decoding import GENERATING, merged
from dragoman.errors import InputError
from dragoman.folder.format import GENERATION, FolderConfig, GenerationDefaults
from dragoman.models import DecoderOnly, DecoderOnlyConfig
from dragoman.nn import Documents, Rotary, Rwkv
from dragoman.tasks.generate.batches import LanguageBatch, PackConfig
from dragoman.train.objective import next_token_loss
from dragoman.train.recipe import DataFiles, RunRecipe, Work, check_places, sentence_length


@dataclass(frozen=True, slots=True, kw_only=True)
class TextFiles(DataFiles):
    """Texts to learn from."""

    train: tuple[str, ...] = ()
    """Files of training text; .gz, .bz2, .xz and .zst are decompressed."""
    library: Literal["python"] | None = None
    """Texts, instead of files: "python", the source code of Python's standard library."""
    made: Literal["town"] | None = None
    """Built-in texts, instead of files: "town", conversations about a small town."""
    valid: tuple[str, ...] = ()
    """Files of validation text."""
    split: Split = "file"
    """What counts as a document: a "file", a "line", or the lines up to the next "blank-line"."""
    hold_out: HoldOut = field(default_factory=HoldOut)
    """What of the training text is kept for validation where no files are given for it."""

    def __post_init__(self) -> None:
        """Raise InputError unless the texts come from one place: files, a library or `made`."""
        keys = [key for key in ("made", "library", "train") if getattr(self, key)]
        if self.made and self.valid:
            keys.append("valid")
        if len(keys) > 1:
            raise InputError(
                f"data.{keys[0]} contradicts data.{keys[1]}: texts come from one place; leave one "
                "of them out"
            )

    @property
    def training(self) -> list[Path]:
        """The files for training."""
        if self.library:
            return standard_library()
        if not self.train:
            raise InputError("there is nothing to learn from: set data.train to a list of files")
        return [self.find(name) for name in self.train]

    @property
    def validation(self) -> list[Path]:
        """The files for validation, if any."""
        return [self.find(name) for name in self.valid]

    def check(self) -> None:
        """Raise InputError unless every file is there."""
        if self.made is None:
            _ = self.training, self.validation

    def write(self, folder: Path) -> Self:
        """Write made texts into `folder`, and return the data with those files named."""
        if self.made is None:
            return self
        train, valid = ((str(path.absolute()),) for path in write_town(folder).values())
        return replace(self, made=None, train=train, valid=valid)

    @property
    def summary(self) -> tuple[str, ...]:
        """What the model card says about them, one line each."""
        part = "the end of each" if self.hold_out.by == "end" else "documents drawn from everywhere"
        held_out = f"{self.hold_out.share:.0%} of the training files, {part}"
        valid = ", ".join(f"`{name}`" for name in self.valid)
        if self.made:
            return ("conversations about a town, made by the package",)
        library = ("the standard library of the Python that trained it",) if self.library else ()
        return (
            *(f"training: {text}" for text in (*library, *(f"`{name}`" for name in self.train))),
            f"validation: {valid or held_out}",
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class GenerateRecipe(RunRecipe):
    """The next token of a text, by a decoder alone."""

    task: Literal["generate"] = "generate"
    """Learn to continue a text."""
    data: TextFiles = field(default_factory=TextFiles)
    """The texts."""
    batch: PackConfig = field(default_factory=PackConfig)
    """How the texts become batches."""
    model: DecoderOnlyConfig = field(
        default_factory=lambda: DecoderOnlyConfig(positions=Rotary(), norm_position="pre")
    )
    """The architecture."""
    generation: GenerationDefaults = GENERATION
    """How the model generates by default."""

    def check(self) -> None:
        """Raise InputError for windows longer than the positions, for what RWKV cannot do, and for
        dialogues that could not be held.
        """
        length = self.batch.length
        check_places(self.model.positions, length, f"batch.length = {length}")
        if self.batch.packing == "documents" and Rwkv() in self.model.patterns:
            raise InputError(
                'batch.packing = "documents" hides documents from each other, which the layers of '
                'model.patterns = ["rwkv"] cannot: take packing = "stream"'
            )
        generating, chat = merged(self.generation, GENERATING), self.generation.chat
        if chat is None:
            return
        documents = (self.data.split, self.batch.packing) == ("blank-line", "documents")
        known = self.start.model or {chat.user, chat.assistant} <= {*self.tokenizer.specials}
        if not documents or not known:
            raise InputError(
                'generation.chat needs data.split = "blank-line", batch.packing = "documents" and '
                f'tokenizer.specials = ["{chat.user}", "{chat.assistant}"]; for other texts leave '
                "it empty: generation.chat="
            )
        if generating.max_tokens >= length:
            raise InputError(
                f"generation.max_tokens = {generating.max_tokens} leaves no room for a "
                f"question in batch.length = {length}: make it smaller"
            )

    def use(
        self,
        directions: Sequence[tuple[str, str]] = (),  # noqa: ARG002 (the form of all tasks)
    ) -> str | None:
        """Return `dragoman chat` for a dialogue model."""
        return "dragoman chat {folder}" if self.generation.chat else None

    def taking_over(self, folder: FolderConfig) -> Self:
        """Return the recipe with the folder's generation settings; the context is the run's own."""
        generation = replace(folder.generation or self.generation, context=None)
        return self.changed({"generation": generation})

    @property
    def generating(self) -> GenerationDefaults:
        """How the model generates, with what follows from its training.

        It sees as many tokens as in training. If whole files are split into windows, a prompt is in
        the middle of one, at the beginning of a line.
        """
        chosen = replace(self.generation, **(GENERATION.given() | self.generation.given()))
        inside = self.data.split == "file" and self.batch.packing == "stream"
        return replace(
            chosen,
            context=chosen.context or self.batch.length,
            opening="\n" if chosen.opening is None and inside else chosen.opening,
        )

    @staticmethod
    def loss(model: DecoderOnly, batch: LanguageBatch, smoothing: float) -> Tensor:
        """Sum the smoothed cross-entropy of the next tokens."""
        lengths = batch.document_lengths
        documents = None if lengths is None else Documents(lengths)
        return next_token_loss(model, batch.inputs_BL, batch.targets_BL, documents, smoothing)

    @staticmethod
    def sample(config: DecoderOnlyConfig, shape: Shape, rng: np.random.Generator) -> LanguageBatch:
        """Return a batch of random ids."""
        ids_BL = random_ids((shape.rows, shape.length), config.vocab_size, config.pad_id, rng)
        return LanguageBatch(
            inputs_BL=ids_BL,
            targets_BL=some_targets(ids_BL, shape.targets, NO_TARGET),
            document_lengths=shape.documents,
            num_tokens=ids_BL.numel(),
            num_targets=ids_BL.numel() if shape.targets is None else shape.targets,
            indices=np.arange(shape.rows),
        )

    def work(self, length: int | None = None) -> Work:
        """Return what full batches take; a prompt of `length` gets an answer of usual length."""
        batch, size = self.batch, self.model.vocab_size or self.num_pieces
        prompt = sentence_length(length, "batch.length", batch.length)
        shape = Shape(rows=batch.rows, length=batch.length)
        if batch.packing == "documents":
            documents = (batch.length,) * batch.rows
            shape = Shape(rows=1, length=sum(documents), documents=documents)
        return Work(
            recipe=self,
            config=replace(self.model, vocab_size=size),
            length=prompt,
            shape=shape,
            longest=batch.length,
            answer=max(1, min(self.generating.max_tokens, batch.length - prompt)),
            vocab_size=size,
        )

    def smaller_batch(self, shape: Shape, share: float) -> str:
        """Return how many rows a batch has with about this share of a shape, in words."""
        rows = min(self.batch.rows, shape.tokens // self.batch.length)  # a text may have fewer
        return f"batch.rows to {max(1, int(share * rows)):,}"
