"""From the names of another library to ours: tables that say which tensor is made of which.

A table maps the modules of our model to theirs, `ours <- theirs`; `*` stands for the number of a
layer, on both sides the same. A module's `weight` and `bias` go by themselves. Where a tensor has
no module of the same shape on the other side, the table has a `Rule` that makes it. A matrix that
several of our modules share is looked for by the names of all of them.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

import torch
from torch import Tensor, nn

from dragoman.errors import InputError
from dragoman.models.build import build_on_meta, some
from dragoman.models.config import ModelConfig


class Rule(NamedTuple):
    """How one of our tensors is made of theirs."""

    names: tuple[str, ...]
    """Their modules, or tensors."""
    make: Callable[[Sequence[Tensor]], Tensor] = lambda found: found[0]
    """From theirs to ours; by default they are the same."""
    one_suffices: bool = False
    """Whether they are one tensor by several names, of which a file may hold one or more."""


Table = Mapping[str, str | Rule]


def either(*names: str) -> Rule:
    """One tensor that has one or more of these names."""
    return Rule(names, one_suffices=True)


def joined(*names: str) -> Rule:
    """The rows of several, one below another: `W_K` above `W_V`."""
    return Rule(names, lambda found: torch.cat(list(found)))


def transposed(name: str, start: int = 0, stop: int = 1, parts: int = 1) -> Rule:
    """Take of `W^T` the rows from `start` to `stop`, counted in `parts` of the whole.

    A layer that computes `x W + b` (GPT-2's `Conv1D`) keeps as columns what we keep as rows.
    """

    def cut(found: Sequence[Tensor]) -> Tensor:
        rows = found[0].T if found[0].dim() == 2 else found[0]
        size = len(rows) // parts
        return rows[start * size : stop * size]

    return Rule((name,), cut)


def below(name: str, rows: int) -> Rule:
    """A table without its first rows, which are never looked up."""
    return Rule((name,), lambda found: found[0][rows:])


def flat(name: str) -> Rule:
    """A vector that is kept there as `(1, n)`."""
    return Rule((name,), lambda found: found[0].flatten())


def under(ours: str, theirs: str, table: Table) -> Table:
    """Put the modules of a table into others."""
    rules = {name: _rule(row) for name, row in table.items()}
    return {
        f"{ours}.{name}": rule._replace(names=tuple(f"{theirs}.{n}" for n in rule.names))
        for name, rule in rules.items()
    }


def convert(
    table: Table,
    state: Mapping[str, Tensor],
    config: ModelConfig,
    *,
    shared: str | None = None,
    ignored: Iterable[str] = (),
) -> dict[str, Tensor]:
    """Make the weights of `config`'s model, each under its first name, of another library's.

    `shared` is one more name of a matrix that several of our modules share; `ignored` are tensors
    of theirs (`*` for numbers) that hold nothing learned, or nothing that the model uses. The
    result may share memory with `state`. Raises InputError that names tensors which are missing,
    left over, of another shape, or different though the config ties them.
    """
    places = _places(config)
    rules = {parameter: _find_rule(table, ours, shared) for parameter, ours in places.items()}
    made, missing, left = dict[nn.Parameter, Tensor](), list[str](), set(state)
    for parameter, rule in rules.items():
        found = [state[name] for name in rule.names if name in state]
        left.difference_update(rule.names)
        if len(found) < (1 if rule.one_suffices else len(rule.names)):
            missing += [name for name in rule.names if name not in state]
            continue
        if rule.one_suffices and any(not torch.equal(found[0], other) for other in found[1:]):
            raise InputError(
                f"{' and '.join(rule.names)} are tied in the config, but their tensors differ; "
                "the config and the weights are not of one model."
            )
        made[parameter] = rule.make(found)
    left = {name for name in left if _starred(name) not in set(ignored)}
    if missing:
        raise InputError(f"the weights lack {some(missing)}, which the config asks for")
    if left:
        raise InputError(f"the weights hold {some(left)}, for which the config has no place")
    for parameter, tensor in made.items():
        if tensor.shape != parameter.shape:
            raise InputError(
                f"{' with '.join(rules[parameter].names)} gives {places[parameter][0]} the shape "
                f"{tuple(tensor.shape)}, but the config makes it {tuple(parameter.shape)}"
            )
    return {places[parameter][0]: tensor for parameter, tensor in made.items()}


def invert(
    table: Table,
    state: Mapping[str, Tensor],
    config: ModelConfig,
    theirs: Mapping[str, Tensor],
    *,
    shared: str | None = None,
) -> None:
    """Put the weights of `config`'s model into the tensors of another library's: `convert` back.

    `theirs` are filled in place, under all names that a shared matrix has there; what the model has
    no place for stays as it is: rows that are never looked up, buffers. Every rule that makes a
    tensor of one makes a view of it, which is written to; several are rows one below another.
    """
    with torch.no_grad():
        for ours in _places(config).values():
            rule, tensor = _find_rule(table, ours, shared), state[ours[0]]
            found = [theirs[name] for name in rule.names if name in theirs]
            if len(rule.names) == 1 and found:
                rule.make(found).copy_(tensor)
            elif rule.one_suffices and found:
                for each in found:
                    each.copy_(tensor)
            else:
                parts = tensor.split([len(theirs[name]) for name in rule.names])
                for each, part in zip(found, parts, strict=True):
                    each.copy_(part)


def _places(config: ModelConfig) -> dict[nn.Parameter, list[str]]:
    """The names of each parameter of a model; a matrix that several modules share has several."""
    places: dict[nn.Parameter, list[str]] = {}
    for name, parameter in build_on_meta(config).named_parameters(remove_duplicate=False):
        places.setdefault(parameter, []).append(name)
    return places


def _find_rule(table: Table, ours: Sequence[str], shared: str | None) -> Rule:
    """Return what makes a tensor of ours, which has one name or, if it is shared, several."""
    rules = [_look_up(table, name) for name in ours]
    if len(rules) == 1:
        return rules[0]
    names = (f"{shared}.weight",) if shared else ()
    return either(*names, *(name for rule in rules for name in rule.names))


def _look_up(table: Table, name: str) -> Rule:
    """Return the rule of a tensor by one of its names, with the number of its layer for `*`."""
    number = re.search(r"\.(\d+)\.", name)
    pattern, end = _starred(name), ""
    if pattern not in table:
        pattern, _, leaf = pattern.rpartition(".")
        end = f".{leaf}"
    rule = _rule(table[pattern])
    names = (n.replace("*", number[1]) if number else n for n in rule.names)
    return rule._replace(names=tuple(f"{n}{end}" for n in names))


def _rule(row: str | Rule) -> Rule:
    return Rule((row,)) if isinstance(row, str) else row


def _starred(name: str) -> str:
    """Put a star for every number between points."""
    return re.sub(r"(?<=\.)\d+(?=\.)", "*", name)
