"""From the names of another library to ours: tables that say which tensor is made of which.

A table maps the modules of our model to theirs, `ours <- theirs`; `*` stands for the number of a
layer, on both sides the same. A module's `weight` and `bias` go by themselves. Where a tensor has
no module of the same shape on the other side, the table names a `Source` that makes it.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from dragoman.errors import InputError
from dragoman.models.build import build_on_meta, some
from dragoman.models.config import EncoderDecoderConfig, ModelConfig


@dataclass(frozen=True, slots=True)
class Source:
    """One of our tensors as it is there: the plain case."""

    names: tuple[str, ...]
    """Their modules, or tensors, that it is made of."""

    some_suffice = False

    def make(self, found: Sequence[Tensor]) -> Tensor:
        """Make our tensor of theirs."""
        return found[0]


@dataclass(frozen=True, slots=True)
class Joined(Source):
    """The rows of several, one below another: `W_K` above `W_V`."""

    def make(self, found: Sequence[Tensor]) -> Tensor:
        """Join the rows."""
        return torch.cat(list(found))


@dataclass(frozen=True, slots=True)
class Transposed(Source):
    """`W^T`, of which we take the rows from `start` to `stop`, counted in parts of the whole.

    A layer that computes `x W + b` (GPT-2's `Conv1D`) keeps as columns what we keep as rows.
    """

    start: int = 0
    """The first part."""
    stop: int = 1
    """The part after the last one."""
    parts: int = 1
    """How many parts there are."""

    def make(self, found: Sequence[Tensor]) -> Tensor:
        """Turn the matrix over, or leave the vector, and cut."""
        rows = found[0].T if found[0].dim() == 2 else found[0]
        size = len(rows) // self.parts
        return rows[self.start * size : self.stop * size]


@dataclass(frozen=True, slots=True)
class Below(Source):
    """A table without its first rows, which are never looked up."""

    rows: int
    """How many."""

    def make(self, found: Sequence[Tensor]) -> Tensor:
        """Cut the first rows off."""
        return found[0][self.rows :]


@dataclass(frozen=True, slots=True)
class Flat(Source):
    """A vector that is kept there as `(1, n)`."""

    def make(self, found: Sequence[Tensor]) -> Tensor:
        """Drop the empty axis."""
        return found[0].flatten()


@dataclass(frozen=True, slots=True)
class Tied(Source):
    """One matrix that goes there by several names, of which a file may hold one or more."""

    some_suffice = True

    def make(self, found: Sequence[Tensor]) -> Tensor:
        """Take the first; the others must be the same."""
        if any(not torch.equal(found[0], other) for other in found[1:]):
            raise InputError(
                f"{' and '.join(self.names)} are tied in the config, but their tensors differ; "
                "the config and the weights are not of one model."
            )
        return found[0]


Table = Mapping[str, str | Source]


def joined(*names: str) -> Joined:
    """Name modules whose rows are joined."""
    return Joined(names)


def tied(*names: str) -> Tied:
    """Name modules that share their matrix."""
    return Tied(names)


def under(ours: str, theirs: str, table: Table) -> Table:
    """Put the modules of a table into others."""
    sources = {name: _source(source) for name, source in table.items()}
    return {
        f"{ours}.{name}": replace(source, names=tuple(f"{theirs}.{n}" for n in source.names))
        for name, source in sources.items()
    }


def embeddings(config: EncoderDecoderConfig) -> Table:
    """Return the rows of the source, target and output matrices, as they are tied."""
    src, tgt, out = "encoder.embed_tokens", "decoder.embed_tokens", "lm_head"
    match config.tie_embeddings:
        case "all":
            return {"src_embedding": tied("shared", src, tgt, out)}
        case "source-target":
            return {"src_embedding": tied("shared", src, tgt), "output": out}
        case "target-output":
            return {"src_embedding": src, "tgt_embedding": tied(tgt, out)}
        case "none":
            return {"src_embedding": src, "tgt_embedding": tgt, "output": out}


def convert(
    table: Table,
    state: Mapping[str, Tensor],
    config: ModelConfig,
    *,
    prefix: str = "",
    ignored: Iterable[str] = (),
) -> dict[str, Tensor]:
    """Make the weights of `config`'s model, each under its first name, of another library's.

    `prefix` begins the names of models that have a head there and is missing in those that have
    none; `ignored` are tensors of theirs (`*` for numbers) that hold nothing learned, or nothing
    that the model uses. The result may share memory with `state`. Raises InputError that names
    tensors which are missing, left over or of another shape.
    """
    wanted = {name: p.shape for name, p in build_on_meta(config).named_parameters()}
    theirs = {name.removeprefix(prefix): tensor for name, tensor in state.items()}
    left, ours, missing = set(theirs), dict[str, Tensor](), list[str]()
    for name in wanted:
        source, names = _look_up(table, name)
        found = [theirs[n] for n in names if n in theirs]
        left.difference_update(names)
        if len(found) == len(names) or (source.some_suffice and found):
            ours[name] = source.make(found)
        else:
            missing += [n for n in names if n not in theirs]
    left = {name for name in left if _starred(name) not in set(ignored)}
    if missing:
        raise InputError(f"the weights lack {some(missing)}, which the config asks for")
    if left:
        raise InputError(f"the weights hold {some(left)}, for which the config has no place")
    for name, tensor in ours.items():
        if tensor.shape != wanted[name]:
            names = _look_up(table, name)[1]
            raise InputError(
                f"{' with '.join(names)} gives {name} the shape {tuple(tensor.shape)}, but the "
                f"config makes it {tuple(wanted[name])}"
            )
    return ours


def _look_up(table: Table, name: str) -> tuple[Source, tuple[str, ...]]:
    """Return what makes a tensor of ours, and the names of theirs that it is made of."""
    number = re.search(r"\.(\d+)\.", name)
    pattern = _starred(name)
    module, _, leaf = pattern.rpartition(".")
    if pattern in table:
        source, end = _source(table[pattern]), ""
    else:
        source, end = _source(table[module]), f".{leaf}"
    names = (n.replace("*", number[1]) if number else n for n in source.names)
    return source, tuple(f"{n}{end}" for n in names)


def _source(source: str | Source) -> Source:
    return Source((source,)) if isinstance(source, str) else source


def _starred(name: str) -> str:
    """Put a star for every number between points."""
    return re.sub(r"(?<=\.)\d+(?=\.)", "*", name)
