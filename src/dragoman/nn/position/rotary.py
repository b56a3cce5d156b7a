"""Rotary positions (Su et al., 2021): queries and keys are rotated by angles `pos * theta_i`.

The dot product of two pairs of numbers, each rotated by the angle of its position, depends only on
the difference of the angles. So the score of a query and a key depends on their distance, not on
their absolute positions.
"""

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import Annotated, Literal

import torch
from torch import Tensor

from dragoman.errors import InputError
from dragoman.nn.position.scheme import Angles, Pairing, Positions, Scheme, end_of
from dragoman.ranges import Count, Positive, Range, check_range, check_ranges


@dataclass(frozen=True, slots=True, kw_only=True)
class Scaling(ABC):
    """How frequencies change for contexts longer than the training context."""

    def __post_init__(self) -> None:
        check_ranges(self)

    @abstractmethod
    def frequencies(self, base: float, head_dim: int, length: int) -> Tensor:
        """Return `theta_i`, `(d/2)`, in float64, for a text of this length."""

    @property
    def magnitude(self) -> float:
        """What queries and keys are multiplied by."""
        return 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class LinearScaling(Scaling):
    """Interpolate positions: `theta_i / factor` (Chen et al., 2023)."""

    kind: Literal["linear"] = "linear"
    factor: Positive
    """Length of the context relative to the training context."""

    def frequencies(self, base: float, head_dim: int, length: int) -> Tensor:  # noqa: ARG002 (the protocol's form)
        """Return `theta_i`, `(d/2)`."""
        return inverse_frequencies(base, head_dim) / self.factor


@dataclass(frozen=True, slots=True, kw_only=True)
class DynamicScaling(Scaling):
    """Raise the base as the text grows beyond the training context (NTK-aware, dynamic).

    `base' = base (factor L / L_train - (factor - 1))^(d / (d - 2))`. Every call uses the base of
    its own last position; keys in a cache keep the base that they were written with, as in
    Hugging Face, so beyond `trained_length` cached and uncached decoding differ.
    """

    kind: Literal["dynamic"] = "dynamic"
    factor: Positive
    """How fast the base grows."""
    trained_length: Count
    """Length of the training context, up to which nothing changes."""

    def frequencies(self, base: float, head_dim: int, length: int) -> Tensor:
        """Return `theta_i`, `(d/2)`, for a text of this length."""
        ratio = max(length, self.trained_length) / self.trained_length
        grown = self.factor * ratio - (self.factor - 1)
        return inverse_frequencies(base * grown ** (head_dim / (head_dim - 2)), head_dim)


@dataclass(frozen=True, slots=True, kw_only=True)
class YaRN(Scaling):
    """Interpolate low frequencies, keep high ones, sharpen the softmax (Peng et al., 2024).

    A frequency that turns more than `beta_fast` times within the training context is unchanged, one
    that turns fewer than `beta_slow` times is divided by `factor`, with a ramp between the two.
    Queries and keys are multiplied by `attention_factor`, `0.1 ln(factor) + 1` by default.
    """

    kind: Literal["yarn"] = "yarn"
    factor: Positive
    """Length of the context relative to the training context."""
    trained_length: Count
    """Length of the training context."""
    beta_fast: Positive = 32.0
    """Number of rotations above which a frequency is kept."""
    beta_slow: Positive = 1.0
    """Number of rotations below which a frequency is fully interpolated."""
    attention_factor: Positive | None = None
    """Factor on queries and keys; 0.1 ln(factor) + 1 by default."""

    def __post_init__(self) -> None:
        check_ranges(self)
        if self.beta_fast <= self.beta_slow:
            raise InputError(
                f"beta_fast = {self.beta_fast} is not above beta_slow = {self.beta_slow}"
            )

    def frequencies(self, base: float, head_dim: int, length: int) -> Tensor:  # noqa: ARG002 (the protocol's form)
        """Return `theta_i`, `(d/2)`."""

        def pair_that_turns(times: float) -> float:
            ratio = self.trained_length / (times * 2 * math.pi)
            return head_dim * math.log(ratio) / (2 * math.log(base))

        low = max(math.floor(pair_that_turns(self.beta_fast)), 0)
        high = min(math.ceil(pair_that_turns(self.beta_slow)), head_dim - 1)
        pairs = torch.arange(head_dim // 2, dtype=torch.float64)
        squeezed = ((pairs - low) / (high - low or 0.001)).clamp(0, 1)
        theta = inverse_frequencies(base, head_dim)
        return theta / self.factor * squeezed + theta * (1 - squeezed)

    @property
    def magnitude(self) -> float:
        """What queries and keys are multiplied by."""
        if self.attention_factor is not None:
            return self.attention_factor
        return 0.1 * math.log(self.factor) + 1.0 if self.factor > 1 else 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Llama3Scaling(Scaling):
    """Interpolate wavelengths longer than the training context, with a ramp (Llama 3.1)."""

    kind: Literal["llama3"] = "llama3"
    factor: Positive = 8.0
    """Length of the context relative to the training context."""
    trained_length: Count = 8192
    """Length of the training context."""
    low_freq_factor: Positive = 1.0
    """Wavelengths above `trained_length / low_freq_factor` are fully interpolated."""
    high_freq_factor: Positive = 4.0
    """Wavelengths below `trained_length / high_freq_factor` are kept."""

    def __post_init__(self) -> None:
        check_ranges(self)
        if self.high_freq_factor <= self.low_freq_factor:
            raise InputError(
                f"high_freq_factor = {self.high_freq_factor} is not above "
                f"low_freq_factor = {self.low_freq_factor}"
            )

    def frequencies(self, base: float, head_dim: int, length: int) -> Tensor:  # noqa: ARG002 (the protocol's form)
        """Return `theta_i`, `(d/2)`."""
        theta = inverse_frequencies(base, head_dim)
        waves_in_context = self.trained_length * theta / (2 * math.pi)
        ramp = (waves_in_context - self.low_freq_factor) / (
            self.high_freq_factor - self.low_freq_factor
        )
        kept = ramp.clamp(0, 1)
        return theta / self.factor * (1 - kept) + theta * kept


@dataclass(frozen=True, slots=True, kw_only=True)
class LongRope(Scaling):
    """Divide each frequency by a factor of its own (Ding et al., 2024; Phi-3).

    Every call uses the factors for its own last position. Generation reads a text again when it
    grows beyond `trained_length`, as Phi-3 in Hugging Face, so its keys have the same factors.
    """

    kind: Literal["longrope"] = "longrope"
    short: tuple[float, ...]
    """Factors of texts within the training context."""
    long: tuple[float, ...]
    """Factors of longer texts."""
    trained_length: Count
    """Length of the training context."""
    attention_factor: Positive = 1.0
    """Factor on queries and keys."""

    def __post_init__(self) -> None:
        check_ranges(self)
        for factor in (*self.short, *self.long):
            check_range("a factor of longrope", factor, Positive)

    def frequencies(self, base: float, head_dim: int, length: int) -> Tensor:
        """Return `theta_i`, `(d/2)`, for a text of this length."""
        factors = self.short if length <= self.trained_length else self.long
        return inverse_frequencies(base, head_dim) / torch.tensor(factors, dtype=torch.float64)

    @property
    def magnitude(self) -> float:
        """What queries and keys are multiplied by."""
        return self.attention_factor


RotaryScaling = LinearScaling | DynamicScaling | YaRN | Llama3Scaling | LongRope


@dataclass(frozen=True, slots=True, kw_only=True)
class Rotary(Scheme):
    """Rotate queries and keys by angles that depend on their positions."""

    kind: Literal["rotary"] = "rotary"
    base: Annotated[float, Range(above=1)] = 10000.0
    """Base of the frequencies `theta_i = base^(-2i/d)`."""
    pairing: Pairing = "halves"
    """Which components are rotated together: `x_i` and `x_(i+d/2)` (Llama), or neighbours (the
    paper)."""
    scaling: RotaryScaling | None = None
    """How frequencies change for contexts longer than the training context."""
    local_base: Annotated[float, Range(above=1)] | None = None
    """Base in layers with a window, where frequencies are not scaled (Gemma 3); by default they are
    as in other layers."""
    before_norm: bool = False
    """Whether queries and keys are rotated before `qk_norm` (Hunyuan); by default after it."""
    share: Annotated[float, Range(above=0, most=1)] = 1.0
    """Share of the components of a head, the first ones, that are rotated (Phi-4-mini: 0.75)."""
    unrotated: tuple[int, ...] = ()
    """Layers, from 0, whose queries and keys are not rotated and so know no positions (SmolLM3)."""

    def make_rotation(self, head_dim: int) -> "RotaryAngles":
        """Make the rotary angles for heads of this width."""
        self.check(head_dim, head_dim)
        return RotaryAngles(self, int(head_dim * self.share))

    def check(self, d_model: int, head_dim: int) -> None:  # noqa: ARG002 (the scheme's form)
        """Raise InputError for an odd head_dim, or one that the scaling does not support."""
        if head_dim % 2:
            raise InputError(f"head_dim = {head_dim} is odd; rotary positions need an even one")
        width = int(head_dim * self.share)
        if width % 2 or not width:
            raise InputError(
                f"share = {self.share} of head_dim = {head_dim} is {width}; the number of rotated "
                "components must be even and not 0"
            )
        scaling = self.scaling
        if isinstance(scaling, LongRope):
            short, long = len(scaling.short), len(scaling.long)
            if (short, long) != (width // 2, width // 2):
                raise InputError(
                    f'scaling "longrope" has {short} short and {long} long factors, but {width} '
                    f"rotated components have {width // 2} frequencies"
                )
        if isinstance(scaling, DynamicScaling) and width == 2:
            raise InputError(
                f"share = {self.share} of head_dim = {head_dim} has one frequency, which scaling "
                '"dynamic" cannot change'
            )


@dataclass(frozen=True)
class RotaryAngles:
    """The angles of positions, in float64 because float32 is too coarse for distant ones."""

    scheme: Rotary
    head_dim: int

    @property
    def follows_length(self) -> bool:
        """Whether the angle of a position depends on the last position of a call."""
        return isinstance(self.scheme.scaling, DynamicScaling | LongRope)

    @property
    def changes_at(self) -> int | None:
        """The length beyond which the angles of all positions are others."""
        scaling = self.scheme.scaling
        return scaling.trained_length if isinstance(scaling, LongRope) else None

    def angles(self, positions: Positions, like: Tensor, ahead: int = 0) -> Angles:
        """Return the angles of positions, in the dtype and on the device of `like`."""
        angles = self._angles(positions, like, ahead)
        if self.scheme.local_base is None:
            return angles
        scheme = replace(self.scheme, base=self.scheme.local_base, scaling=None, local_base=None)
        return angles._replace(local=RotaryAngles(scheme, self.head_dim).angles(positions, like))

    def _angles(self, positions: Positions, like: Tensor, ahead: int) -> Angles:
        scaling = self.scheme.scaling or LinearScaling(factor=1.0)
        length = end_of(positions) + ahead if self.follows_length else 0
        theta = scaling.frequencies(self.scheme.base, self.head_dim, length)
        if isinstance(positions, range):
            places = torch.arange(positions.start, positions.stop, dtype=torch.float64)
        else:
            places = positions.double()
            theta = theta.to(places.device, non_blocking=True)
        angles_Lp = places[..., None] * theta
        if angles_Lp.dim() == 3:
            angles_Lp = angles_Lp[:, None]
        cos_Lp, sin_Lp = (x * scaling.magnitude for x in (angles_Lp.cos(), angles_Lp.sin()))
        cos_Lp, sin_Lp = (x.to(like, non_blocking=True) for x in (cos_Lp, sin_Lp))
        scheme = self.scheme
        return Angles(
            cos_Lp,
            sin_Lp,
            scheme.pairing,
            before_norm=scheme.before_norm,
            unrotated=scheme.unrotated,
        )


def inverse_frequencies(base: float, head_dim: int) -> Tensor:
    """Return `theta_i = base^(-2i/d)` for `i = 0 ... d/2 - 1`, in float64."""
    return base ** (-torch.arange(0, head_dim, 2, dtype=torch.float64) / head_dim)
