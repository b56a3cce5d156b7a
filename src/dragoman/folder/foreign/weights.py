"""Tables that map the tensors of another library to ours.

A table maps the modules of our model to theirs, `ours <- theirs`; `*` is the number of a layer, the
same on both sides. A module's `weight` and `bias` are mapped implicitly. If a tensor has no module
of the same shape on the other side, the table has a `Rule` that makes it. A matrix that several of
our modules share is looked up by the names of all of them.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

from dragoman.errors import InputError
from dragoman.models.build import build_on_meta
from dragoman.models.config import ModelConfig


class Rule(NamedTuple):
    """How to make one of our tensors from theirs; the rows of several are concatenated."""

    names: tuple[str, ...]
    """Their modules or tensors."""
    make: Callable[[Tensor], Tensor] = lambda tensor: tensor
    """Maps each of theirs to ours; the identity by default."""
    one_suffices: bool = False
    """Whether they are names of a single tensor, of which a file may contain one or more."""
    first_counts: bool = False
    """Whether the first one in the file is used, even if it differs from the others."""
    back: Callable[[Tensor], Tensor] | None = None
    """Maps ours to theirs, if ours is not a view of theirs."""
    padded: int | None = None
    """The dimension in which zeros fill ours if theirs is smaller."""


Table = Mapping[str, str | Rule]

NUMBERS = (torch.float32, torch.float16, torch.bfloat16, torch.float64)
"""Dtypes of weights; tensors of other dtypes are quantized, or not learned."""


def either(*names: str) -> Rule:
    """Return the rule of a tensor that has one or more of these names."""
    return Rule(names, one_suffices=True)


def instead(*names: str) -> Rule:
    """Return the rule of the first of these that a file contains; the others have other places."""
    return Rule(names, one_suffices=True, first_counts=True)


def joined(*names: str) -> Rule:
    """Return a rule that concatenates the rows of several: `W_K` above `W_V`."""
    return Rule(names)


def transposed(name: str, start: int = 0, stop: int = 1, parts: int = 1) -> Rule:
    """Return a rule that takes rows `start` to `stop` of `W^T`, in units of 1 / `parts` of it.

    A layer that computes `x W + b` (GPT-2's `Conv1D`) stores as columns what we store as rows.
    """

    def cut(tensor: Tensor) -> Tensor:
        rows = tensor.T if tensor.dim() == 2 else tensor
        size = len(rows) // parts
        return rows[start * size : stop * size]

    return Rule((name,), cut)


def plus_one(name: str) -> Rule:
    """Return a rule of `1 + w`, in fp32 or higher, for a norm's weight that is stored minus 1.

    Its inverse, `(1 + w) - 1`, gives the bits of `w` if the sum is exact: for `w` in bf16 from
    2^-16. Smaller values lose digits that the sum, and therefore the model, never had.
    """

    def add(weight: Tensor) -> Tensor:
        return 1 + (weight if weight.dtype is torch.float64 else weight.float())

    return Rule((name,), add, back=lambda weight: weight - 1)


def below(name: str, rows: int) -> Rule:
    """Return a rule that drops the first rows of a table, which are unused."""
    return Rule((name,), lambda table: table[rows:])


def padded(name: str, dim: int) -> Rule:
    """Return a rule that appends zeros in a dimension, up to the size of ours."""
    return Rule((name,), padded=dim)


def fused(name: str) -> tuple[Rule, Rule]:
    """Return the rules of a matrix's first rows, as many as it has columns, and of the others.

    They are queries above keys and values, for heads that are together as wide as the model.
    """
    first = Rule((name,), lambda matrix: matrix[: matrix.shape[1]])
    return first, Rule((name,), lambda matrix: matrix[matrix.shape[1] :])


def halves(name: str) -> tuple[Rule, Rule]:
    """Return the rules of the upper and the lower half of a matrix."""
    upper = Rule((name,), lambda matrix: matrix[: len(matrix) // 2])
    return upper, Rule((name,), lambda matrix: matrix[len(matrix) // 2 :])


def flat(name: str) -> Rule:
    """Return a rule for a vector that is stored as `(1, n)`."""
    return Rule((name,), torch.flatten)


def under(ours: str, theirs: str, table: Table) -> Table:
    """Prefix both sides of a table with the names of outer modules."""
    rules = {name: _rule(row) for name, row in table.items()}
    return {
        f"{ours}.{name}": rule._replace(names=tuple(f"{theirs}.{n}" for n in rule.names))
        for name, rule in rules.items()
    }


def make_of(rule: Rule, found: Mapping[str, Tensor]) -> Tensor:
    """Make one of our tensors from those in a file. Raises InputError if they do not fit."""
    for name, tensor in found.items():
        if tensor.dtype not in NUMBERS:
            dtype = str(tensor.dtype).removeprefix("torch.")
            raise InputError(f"{name} holds {dtype}, but weights are read in 16, 32 or 64 bits")
    first, *others = found.values()
    try:
        if not rule.one_suffices:
            made = [rule.make(tensor) for tensor in (first, *others)]
            return torch.cat(made) if others else made[0]
        if not rule.first_counts and any(not torch.equal(first, other) for other in others):
            raise InputError(
                f"{' and '.join(found)} are tied in the config, but their tensors differ; "
                "the config and the weights are not of one model"
            )
        return rule.make(first)
    except (RuntimeError, IndexError) as error:  # incompatible shapes
        shapes = " and ".join(str(tuple(tensor.shape)) for tensor in found.values())
        raise InputError(f"{' with '.join(found)} have shapes that do not fit, {shapes}") from error


def fill(tensor: Tensor, dim: int | None, shape: torch.Size) -> Tensor:
    """Append zeros in a dimension of a tensor, if it has it, up to its size in `shape`."""
    if dim is None or dim >= tensor.dim() or tensor.dim() != len(shape):
        return tensor
    after = tensor.dim() - 1 - dim
    return functional.pad(tensor, (0, 0) * after + (0, max(0, shape[dim] - tensor.shape[dim])))


@lru_cache(maxsize=8)  # asked for each layer of a model that is read
def places_of(config: ModelConfig) -> Mapping[nn.Parameter, Sequence[str]]:
    """Return the names of each parameter of a model; a shared matrix has several."""
    places: dict[nn.Parameter, list[str]] = {}
    for name, parameter in build_on_meta(config).named_parameters(remove_duplicate=False):
        places.setdefault(parameter, []).append(name)
    return places


def rule_for(table: Table, ours: Sequence[str], shared: str | None) -> Rule:
    """Return the rule of one of our tensors, which has one name or, if shared, several."""
    rules = [look_up(table, name) for name in ours]
    if len(rules) == 1:
        return rules[0]
    names = (f"{shared}.weight",) if shared else ()
    return either(*names, *(name for rule in rules for name in rule.names))


def look_up(table: Table, name: str) -> Rule:
    """Return the rule of a tensor by one of its names, with `*` replaced by its layer number."""
    number = re.search(r"\.(\d+)\.", name)
    pattern, end = starred(name), ""
    if pattern not in table:
        pattern, _, leaf = pattern.rpartition(".")
        end = f".{leaf}"
    rule = _rule(table[pattern])
    names = (n.replace("*", number[1]) if number else n for n in rule.names)
    return rule._replace(names=tuple(f"{n}{end}" for n in names))


def _rule(row: str | Rule) -> Rule:
    return Rule((row,)) if isinstance(row, str) else row


def starred(name: str) -> str:
    """Replace every number between dots with a star."""
    return re.sub(r"(?<=\.)\d+(?=\.)", "*", name)
