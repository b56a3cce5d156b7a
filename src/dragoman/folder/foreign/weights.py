"""From the names of another library to ours: tables that say which tensor is made of which.

A table maps the modules of our model to theirs, `ours <- theirs`; `*` stands for the number of a
layer, on both sides the same. A module's `weight` and `bias` go by themselves. Where a tensor has
no module of the same shape on the other side, the table has a `Rule` that makes it. A matrix that
several of our modules share is looked for by the names of all of them.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import torch
from torch import Tensor, nn

from dragoman.errors import InputError
from dragoman.models.build import build_on_meta
from dragoman.models.config import ModelConfig


class Rule(NamedTuple):
    """How one of our tensors is made of theirs: of several, the rows one below another."""

    names: tuple[str, ...]
    """Their modules, or tensors."""
    make: Callable[[Tensor], Tensor] = lambda tensor: tensor
    """From each of theirs to ours; by default they are the same."""
    one_suffices: bool = False
    """Whether they are one tensor by several names, of which a file may hold one or more."""
    first_counts: bool = False
    """Whether the first of them that a file holds is taken, and may differ from the others."""
    back: Callable[[Tensor], Tensor] | None = None
    """From ours to theirs, where ours is not a view of theirs."""


Table = Mapping[str, str | Rule]

NUMBERS = (torch.float32, torch.float16, torch.bfloat16, torch.float64)
"""What weights are stored in; all else is rounded by some scheme, or holds nothing learned."""


def either(*names: str) -> Rule:
    """One tensor that has one or more of these names."""
    return Rule(names, one_suffices=True)


def instead(*names: str) -> Rule:
    """The first of these that a file holds; the others have places of their own."""
    return Rule(names, one_suffices=True, first_counts=True)


def joined(*names: str) -> Rule:
    """The rows of several, one below another: `W_K` above `W_V`."""
    return Rule(names)


def transposed(name: str, start: int = 0, stop: int = 1, parts: int = 1) -> Rule:
    """Take of `W^T` the rows from `start` to `stop`, counted in `parts` of the whole.

    A layer that computes `x W + b` (GPT-2's `Conv1D`) keeps as columns what we keep as rows.
    """

    def cut(tensor: Tensor) -> Tensor:
        rows = tensor.T if tensor.dim() == 2 else tensor
        size = len(rows) // parts
        return rows[start * size : stop * size]

    return Rule((name,), cut)


def plus_one(name: str) -> Rule:
    """`1 + w` in fp32 at least: the weight of a norm that is kept there as its distance from 1.

    The way back, `(1 + w) - 1`, gives the bits of `w` where the sum is exact: for `w` in bf16 from
    2^-16 on. Smaller ones lose digits that the sum, and so the model, never had.
    """

    def add(weight: Tensor) -> Tensor:
        return 1 + (weight if weight.dtype is torch.float64 else weight.float())

    return Rule((name,), add, back=lambda weight: weight - 1)


def below(name: str, rows: int) -> Rule:
    """A table without its first rows, which are never looked up."""
    return Rule((name,), lambda table: table[rows:])


def flat(name: str) -> Rule:
    """A vector that is kept there as `(1, n)`."""
    return Rule((name,), torch.flatten)


def under(ours: str, theirs: str, table: Table) -> Table:
    """Put the modules of a table into others."""
    rules = {name: _rule(row) for name, row in table.items()}
    return {
        f"{ours}.{name}": rule._replace(names=tuple(f"{theirs}.{n}" for n in rule.names))
        for name, rule in rules.items()
    }


def make_of(rule: Rule, found: Mapping[str, Tensor]) -> Tensor:
    """Make a tensor of ours of those that a file holds."""
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
    except (RuntimeError, IndexError) as error:  # shapes that do not go together
        shapes = " and ".join(str(tuple(tensor.shape)) for tensor in found.values())
        raise InputError(f"{' with '.join(found)} have shapes that do not fit, {shapes}") from error


def places_of(config: ModelConfig) -> dict[nn.Parameter, list[str]]:
    """The names of each parameter of a model; a matrix that several modules share has several."""
    places: dict[nn.Parameter, list[str]] = {}
    for name, parameter in build_on_meta(config).named_parameters(remove_duplicate=False):
        places.setdefault(parameter, []).append(name)
    return places


def rule_for(table: Table, ours: Sequence[str], shared: str | None) -> Rule:
    """Return what makes a tensor of ours, which has one name or, if it is shared, several."""
    rules = [look_up(table, name) for name in ours]
    if len(rules) == 1:
        return rules[0]
    names = (f"{shared}.weight",) if shared else ()
    return either(*names, *(name for rule in rules for name in rule.names))


def look_up(table: Table, name: str) -> Rule:
    """Return the rule of a tensor by one of its names, with the number of its layer for `*`."""
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
    """Put a star for every number between points."""
    return re.sub(r"(?<=\.)\d+(?=\.)", "*", name)
