r"""The scaling law: how the loss falls with the size of a model and the length of its training.

.. math:: L(N, D) = E + A N^{-\alpha} + B D^{-\beta}

N parameters, D tokens trained on, L the validation loss in nats per token at the end of a run. E
is what no model can take away (the entropy of the text), the second term what this size cannot
say, the third what so few tokens could not teach. Hoffmann et al. 2022, section 3.3 and appendix
D.3.

The five numbers minimise the Huber loss of the log residuals over all runs,

.. math:: \sum_i \text{Huber}_\delta(\log L(N_i, D_i) - \log L_i)

with log L the log-sum-exp of its three terms. All starts, and all resampled sets of runs, are
fitted at once by Levenberg and Marquardt's method: there are five unknowns and a dozen points, so
that the matrix of a step costs less than L-BFGS's guess at it.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np
import numpy.typing as npt

from dragoman.errors import InputError
from dragoman.wording import counted

Floats = npt.NDArray[np.float64]
Numbers = float | Floats

DELTA = 1e-3
"""Log residuals beyond it count by their size, no more by their square (Hoffmann et al., D.3)."""
FEWEST_RUNS = 6
"""One more than there are numbers to fit."""
FEWEST_LEVELS = 3
"""Different sizes and different lengths: two lie on any power law with any floor."""
STEPS, TOLERANCE = 300, 1e-6
"""The fit ends after so many steps, or where no loss falls by more than this share of it."""
FIRST_STEPS, PROMISING = 30, 8
"""So many steps tell which starts are worth continuing, and so many are continued."""
LARGEST_DAMPING = 1e6
"""If a step as short as this makes nothing better, the minimum is reached."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScalingLaw:
    """The five numbers of a law; arrays of them are as many laws."""

    floor: Numbers
    """E: the loss that neither size nor training takes away, in nats."""
    size_factor: Numbers
    """A."""
    size_exponent: Numbers
    """alpha: a model c times as large has a second term c^-alpha times as large."""
    token_factor: Numbers
    """B."""
    token_exponent: Numbers
    """beta: the same for the tokens."""

    def loss(self, parameters: npt.ArrayLike, tokens: npt.ArrayLike) -> Floats:
        """Return L(N, D) in nats per token; numbers and arrays broadcast."""
        of_size, of_tokens = np.asarray(parameters, float), np.asarray(tokens, float)
        return np.asarray(
            self.floor
            + self.size_factor * of_size**-self.size_exponent
            + self.token_factor * of_tokens**-self.token_exponent
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """What one run measured."""

    parameters: int
    """N: all weights, embeddings too, a shared matrix once."""
    tokens: int
    """D: tokens trained on."""
    loss: float
    """Validation loss at the end, in nats per token."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Interval:
    """A value and its 95 % interval: percentiles 2.5 and 97.5 of the resampled fits."""

    value: float
    low: float
    high: float

    @classmethod
    def of(cls, value: Numbers, samples: Numbers) -> "Interval":
        """Return the interval of a value's samples, NaN among them left out."""
        low, high = np.nanpercentile(samples, (2.5, 97.5))
        return cls(value=float(value), low=float(low), high=float(high))


@dataclass(frozen=True, slots=True, kw_only=True)
class LawFit:
    """The law of some runs, and the laws of resampled ones, which tell how certain it is."""

    law: ScalingLaw
    """The best fit."""
    samples: ScalingLaw
    """Fits to resampled runs, `[S]`."""
    noise: Floats
    """For each sample a log residual, `[S]`: by how much one more run may miss its law."""

    def interval(self, value: Callable[[ScalingLaw], Numbers]) -> Interval:
        """Return whatever follows from the law, with its interval."""
        return Interval.of(value(self.law), value(self.samples))

    def predict(self, parameters: float, tokens: float) -> Interval:
        """Return the loss that one more run will measure: the law's doubt and a run's own noise."""
        samples = self.samples.loss(parameters, tokens) * np.exp(self.noise)
        return Interval.of(self.law.loss(parameters, tokens), samples)


def fit_law(points: Sequence[Point], *, samples: int = 1000, seed: int = 0) -> LawFit:
    """Fit the law, and fit it again to `samples` resampled sets of runs.

    The runs of a sweep are a plan and not a draw, so their N and D stay and the residuals are
    drawn: each set has the losses of the best fit times exp of residuals drawn with replacement,
    which are centred and made larger by sqrt(n / (n - 5)), as five numbers were fitted to them
    (Efron and Tibshirani 1993, chapter 9). The order of the runs changes nothing but rounding.

    Raises InputError for too few runs, sizes or lengths, and for a loss that is not above zero.
    """
    _check(points)
    ordered = sorted(points, key=lambda point: (point.parameters, point.tokens, point.loss))
    scale = _Scale(ordered)
    log_loss_P = np.log([point.loss for point in ordered])
    best_Q = _fit_from_everywhere(scale, log_loss_P)
    predicted_P = scale.terms(best_Q[None])[0][0]
    residual_P = log_loss_P - predicted_P
    rng = np.random.default_rng(seed)
    spread = np.sqrt(len(points) / (len(points) - best_Q.size))
    drawn_P = spread * (residual_P - residual_P.mean())
    resampled_SP = predicted_P + rng.choice(drawn_P, (samples, len(points)))
    fitted_SQ, _ = _minimise(scale, resampled_SP, np.tile(best_Q, (samples, 1)))
    return LawFit(
        law=scale.law(best_Q), samples=scale.law(fitted_SQ), noise=rng.choice(drawn_P, samples)
    )


def _check(points: Sequence[Point]) -> None:
    if any(not point.loss > 0.0 for point in points):
        raise InputError("a run has a loss that is not above 0, which no power law describes")
    sizes = len({point.parameters for point in points})
    lengths = len({point.tokens for point in points})
    if len(points) < FEWEST_RUNS or min(sizes, lengths) < FEWEST_LEVELS:
        raise InputError(
            f"{counted(len(points), 'run')} of {counted(sizes, 'size')} and "
            f"{counted(lengths, 'length')} cannot decide the five numbers of the law: give at "
            f"least {FEWEST_RUNS} runs, with "
            f"{FEWEST_LEVELS} different sizes and {FEWEST_LEVELS} different numbers of tokens; "
            "dragoman train scaling-sweep makes them"
        )


# ---------------------------------------------------------------- the fit
#
# In the names of arrays: P points, K problems that are solved beside each other, Q the five
# unknowns (log E, log of the second and third term at the middle of the runs, alpha, beta). At the
# middle and not at N = D = 1: there a factor and its exponent would be all but one direction.


class _Scale:
    """log N and log D of the points, from their middle."""

    def __init__(self, points: Sequence[Point]) -> None:
        size_P = np.log([float(point.parameters) for point in points])
        tokens_P = np.log([float(point.tokens) for point in points])
        self.middle_size, self.middle_tokens = float(size_P.mean()), float(tokens_P.mean())
        self.size_P: Floats = size_P - self.middle_size
        self.tokens_P: Floats = tokens_P - self.middle_tokens

    def terms(self, unknown_KQ: Floats) -> tuple[Floats, Floats]:
        """Return log L `[K, P]`, and the share of each of the three terms in L `[K, P, 3]`."""
        floor_K, size_K, tokens_K, alpha_K, beta_K = unknown_KQ.T[:, :, None]
        log_terms_KP3 = np.stack(
            [
                np.broadcast_to(floor_K, (len(unknown_KQ), self.size_P.size)),
                size_K - alpha_K * self.size_P,
                tokens_K - beta_K * self.tokens_P,
            ],
            axis=-1,
        )
        largest_KP1 = log_terms_KP3.max(axis=-1, keepdims=True)
        shares_KP3 = np.exp(log_terms_KP3 - largest_KP1)
        total_KP1 = shares_KP3.sum(axis=-1, keepdims=True)
        return (largest_KP1 + np.log(total_KP1))[..., 0], shares_KP3 / total_KP1

    def jacobian(self, shares_KP3: Floats) -> Floats:
        """Return the derivative of log L by the unknowns, `[K, P, Q]`."""
        by_size_KP, by_tokens_KP = shares_KP3[..., 1], shares_KP3[..., 2]
        slopes = [-by_size_KP * self.size_P, -by_tokens_KP * self.tokens_P]
        return np.concatenate([shares_KP3, np.stack(slopes, axis=-1)], axis=-1)

    def law(self, unknown: Floats) -> ScalingLaw:
        """Return the law, or laws, of unknowns `[Q]` or `[K, Q]` in its own units."""
        floor, size, tokens, alpha, beta = unknown.T
        return ScalingLaw(
            floor=np.exp(floor),
            size_factor=np.exp(size + alpha * self.middle_size),
            size_exponent=alpha,
            token_factor=np.exp(tokens + beta * self.middle_tokens),
            token_exponent=beta,
        )


def _starts(log_loss_P: Floats) -> Floats:
    """Begin with every mixture of: how much is the floor, who has the rest, how steep both are."""
    middle = log_loss_P.mean()
    floors, splits, exponents = (0.1, 0.3, 0.5, 0.7, 0.9), (0.2, 0.5, 0.8), (0.1, 0.3, 0.6, 1.0)
    return np.array(
        [
            (
                middle + np.log(floor),
                middle + np.log((1 - floor) * split),
                middle + np.log((1 - floor) * (1 - split)),
                alpha,
                beta,
            )
            for floor, split, alpha, beta in product(floors, splits, exponents, exponents)
        ]
    )


def _fit_from_everywhere(scale: _Scale, log_loss_P: Floats) -> Floats:
    """Fit one row of losses from all starts: a few steps from each, the rest from the best."""
    unknown_KQ = _starts(log_loss_P)
    for steps in (FIRST_STEPS, STEPS):
        log_loss_KP = np.tile(log_loss_P, (len(unknown_KQ), 1))
        unknown_KQ, left_K = _minimise(scale, log_loss_KP, unknown_KQ, steps=steps)
        unknown_KQ = unknown_KQ[np.argsort(left_K, kind="stable")[:PROMISING]]
    best_Q: Floats = unknown_KQ[0]
    return best_Q


def _minimise(
    scale: _Scale, log_loss_KP: Floats, unknown_KQ: Floats, *, steps: int = STEPS
) -> tuple[Floats, Floats]:
    """Fit every row of losses from its own start; gives the unknowns and what is left, `[K]`.

    Levenberg and Marquardt's steps, with Huber's weights: a residual beyond delta pulls as if it
    were at delta. A step that makes nothing better is not taken, and the next one is shorter.
    """
    damping_K = np.full(len(unknown_KQ), 1e-2)
    residual_KP, shares_KP3 = _residuals(scale, log_loss_KP, unknown_KQ)
    left_K = _huber(residual_KP)
    for _ in range(steps):
        weight_KP1 = (DELTA / np.maximum(np.abs(residual_KP), DELTA))[..., None]
        slope_KPQ = scale.jacobian(shares_KP3)
        gradient_KQ = np.einsum("kpq,kp->kq", slope_KPQ * weight_KP1, residual_KP)
        curvature_KQQ = np.swapaxes(slope_KPQ * weight_KP1, 1, 2) @ slope_KPQ
        diagonal_KQ = np.einsum("kqq->kq", curvature_KQQ) + 1e-12
        damped_KQQ = curvature_KQQ + np.einsum(
            "kq,qr->kqr", damping_K[:, None] * diagonal_KQ, np.eye(unknown_KQ.shape[1])
        )
        step_KQ = -np.linalg.solve(damped_KQQ, gradient_KQ[..., None])[..., 0]
        tried_KQ = unknown_KQ + np.clip(step_KQ, -1.0, 1.0)
        residual_new_KP, shares_new_KP3 = _residuals(scale, log_loss_KP, tried_KQ)
        left_new_K = _huber(residual_new_KP)
        better_K = left_new_K < left_K
        gains_K = left_K - left_new_K > TOLERANCE * left_K
        if not (gains_K | (~better_K & (damping_K < LARGEST_DAMPING))).any():
            break
        unknown_KQ = np.where(better_K[:, None], tried_KQ, unknown_KQ)
        residual_KP = np.where(better_K[:, None], residual_new_KP, residual_KP)
        shares_KP3 = np.where(better_K[:, None, None], shares_new_KP3, shares_KP3)
        left_K = np.where(better_K, left_new_K, left_K)
        damping_K = np.where(better_K, damping_K / 3, damping_K * 4).clip(1e-9, LARGEST_DAMPING)
    return unknown_KQ, left_K


def _residuals(scale: _Scale, log_loss_KP: Floats, unknown_KQ: Floats) -> tuple[Floats, Floats]:
    log_law_KP, shares_KP3 = scale.terms(unknown_KQ)
    return log_law_KP - log_loss_KP, shares_KP3


def _huber(residual_KP: Floats) -> Floats:
    """Sum r^2 / 2 up to delta, and delta (|r| - delta / 2) beyond."""
    size_KP = np.abs(residual_KP)
    inside_KP = np.minimum(size_KP, DELTA)
    total_K: Floats = (inside_KP * (size_KP - inside_KP / 2)).sum(axis=-1)
    return total_K
