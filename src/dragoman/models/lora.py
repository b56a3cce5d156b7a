"""Low-rank adaptation, LoRA (Hu et al., 2021): `W x + alpha / r  B A x`, where W is not trained.

`A` is random and `B` zero, so that the initial model equals its base, to the bit. `kv_proj`
contains `W_K` above `W_V` and has an adapter for each of them, `k_proj` and `v_proj`.
"""

import math
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, fields

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from dragoman.errors import InputError, did_you_mean
from dragoman.nn.cpu.elementwise import Dropout
from dragoman.nn.cpu.products import Linear
from dragoman.ranges import BelowOne, Count, Positive, check_ranges

HALVES = {"kv_proj": ("k_proj", "v_proj")}
"""Our matrices that are several elsewhere, concatenated by rows here."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LoraConfig:
    """Low-rank adapters that are trained in place of the weights (LoRA)."""

    rank: Count | None = None
    """Rank of the adapters; if unset, there are no adapters, and the weights themselves are
    trained."""
    alpha: Positive = 16.0
    """The output of an adapter is scaled by alpha / rank."""
    dropout: BelowOne = 0.0
    """Dropout on the input of an adapter."""
    modules: tuple[str, ...] = ("q_proj", "v_proj")
    """Name suffixes of the matrices that get adapters, such as "cross_attn.q_proj" or "up"."""
    layers: tuple[int, ...] = ()
    """Indices of the layers that get adapters, counted from 0; all layers by default."""

    def __post_init__(self) -> None:
        """Raise InputError for numbers out of range, and for settings without a rank."""
        check_ranges(self)
        for field in fields(self):
            if self.rank is None and getattr(self, field.name) != field.default:
                raise InputError(f"lora.{field.name} has no effect without lora.rank; set it too")


class LowRank(nn.Module):
    """`B A x`, of shape `(rows, columns)`."""

    def __init__(self, columns: int, rows: int, rank: int) -> None:
        super().__init__()
        self.A = nn.Parameter(torch.empty(rank, columns))
        self.B = nn.Parameter(torch.zeros(rows, rank))
        nn.init.kaiming_uniform_(self.A, a=math.sqrt(5))  # as in peft

    def product(self) -> Tensor:
        """Return `B A`."""
        return self.B @ self.A

    def forward(self, x: Tensor) -> Tensor:
        """Map `(..., columns)` to `(..., rows)`."""
        return F.linear(F.linear(x, self.A), self.B)


class Adapted(Linear):
    """A linear map with adapters for some of its rows, which can be merged into its weight.

    `adapters` maps each adapter's name to the index of its block of rows, one of `parts` equal
    ones.
    """

    def __init__(
        self, linear: nn.Module, config: LoraConfig, adapters: Mapping[str, int], parts: int
    ) -> None:
        if not isinstance(linear, Linear):
            raise TypeError(f"adapters are for Linear, not for {type(linear).__name__}")
        nn.Module.__init__(self)
        self.in_features, self.out_features = linear.in_features, linear.out_features
        self.weight, self.bias = linear.weight, linear.bias
        self.adapters, self.rows = dict(adapters), linear.out_features // parts
        rank = config.rank or 1
        self.scale, self.merged = config.alpha / rank, False
        self.dropout = Dropout(config.dropout)
        made = {name: LowRank(self.in_features, self.rows, rank) for name in adapters}
        self.lora: Mapping[str, LowRank] = nn.ModuleDict(made)  # type: ignore[assignment] # is one

    def forward(self, x: Tensor) -> Tensor:
        """Map `(..., in_features)` to `(..., out_features)`."""
        out = super().forward(x)
        if self.merged:
            return out
        read = self.dropout(x)
        for name, number in self.adapters.items():
            out = out + self._placed(self.scale * self.lora[name](read), number)
        return out

    def _placed(self, update: Tensor, number: int) -> Tensor:
        """Pad with zeros at the outputs that the adapter does not cover."""
        start = number * self.rows
        return F.pad(update, (start, self.out_features - start - self.rows))

    @torch.no_grad()
    def merge(self) -> None:
        """Add the adapters to the weight."""
        for name, number in self.adapters.items():
            rows = self.weight[number * self.rows : (number + 1) * self.rows]
            rows += self.scale * self.lora[name].product()
        self.merged = True


@contextmanager
def merged(model: nn.Module) -> Iterator[None]:
    """Merge a model's adapters within the context; then restore its weights, to the bit."""
    adapted = [module for module in model.modules() if isinstance(module, Adapted)]
    kept = [module.weight.detach().clone() for module in adapted]
    for module in adapted:
        module.merge()
    try:
        yield
    finally:
        for module, weight in zip(adapted, kept, strict=True):
            with torch.no_grad():
                module.weight.copy_(weight)
            module.merged = False


def targets(model: nn.Module) -> dict[str, tuple[str, int, int]]:
    """Return adaptable matrices by name: the module, the block's index, the number of blocks."""
    found = dict[str, tuple[str, int, int]]()
    for path, module in model.named_modules():
        if isinstance(module, Linear) and ".layers." in path:
            above, _, last = path.rpartition(".")
            names = HALVES.get(last, (last,))
            found |= {f"{above}.{name}": (path, at, len(names)) for at, name in enumerate(names)}
    return found


def adapt(model: nn.Module, config: LoraConfig) -> None:
    """Add adapters to a model, and freeze everything else but an encoder's head and word features.

    Raises InputError, with the nearest name, for modules that match nothing, for layers that do not
    exist, and for a rank that is too large.
    """
    known = targets(model)
    for pattern in config.modules:
        if not any(_matches(name, pattern) for name in known):
            ends = {".".join(name.split(".")[-n:]) for name in known for n in (1, 2)}
            raise InputError(
                f'start.lora.modules: no matrix of a layer has a name that ends with "{pattern}"; '
                f"there are {', '.join(sorted(e for e in ends if '.' not in e))}"
                f"{did_you_mean(pattern, ends)}"
            )
    for number in config.layers:
        if not any(f".layers.{number}." in name for name in known):
            raise InputError(f"start.lora.layers: there is no layer {number}; they count from 0")
    wanted = {f".layers.{number}." for number in config.layers}
    chosen = dict[tuple[str, int], dict[str, int]]()
    for name, (path, at, parts) in known.items():
        in_layer = not wanted or any(layer in name for layer in wanted)
        if in_layer and any(_matches(name, pattern) for pattern in config.modules):
            chosen.setdefault((path, parts), {})[name.rpartition(".")[2]] = at
    if not chosen:
        raise InputError(
            f"start.lora.layers = {[*config.layers]} and start.lora.modules select no matrix that "
            "gets an adapter"
        )
    _check_rank(model, config.rank or 1, chosen)
    for name, parameter in model.named_parameters():
        parameter.requires_grad = name.startswith(("head.", "words."))
    for (path, parts), adapters in chosen.items():
        above, _, last = path.rpartition(".")
        adapted = Adapted(model.get_submodule(path), config, adapters, parts)
        setattr(model.get_submodule(above), last, adapted)


def _check_rank(model: nn.Module, rank: int, chosen: Iterable[tuple[str, int]]) -> None:
    """Raise InputError for a rank above the smaller side of every matrix."""
    found = ((model.get_submodule(path), parts) for path, parts in chosen)
    sides = [
        min(matrix.out_features // parts, matrix.in_features)
        for matrix, parts in found
        if isinstance(matrix, Linear)
    ]
    most = max(sides)
    if rank > most:
        raise InputError(
            f"start.lora.rank = {rank:,} is more than the smaller side of every matrix that gets "
            f"an adapter; give at most {most:,}"
        )


def _matches(name: str, pattern: str) -> bool:
    return f".{name}".endswith(f".{pattern}")
