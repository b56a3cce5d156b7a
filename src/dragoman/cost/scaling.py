r"""The scaling law: how the loss falls with the size of a model and the length of its training.

.. math:: L(N, D) = E + A N^{-\alpha} + B D^{-\beta}

N parameters, D tokens trained on, L the validation loss in nats per token at the end of a run. E is
the loss that no model can avoid (the entropy of the text), the second term is due to the limited
size, the third to the limited number of tokens. Hoffmann et al. 2022, section 3.3 and appendix D.3.

The five numbers minimise the Huber loss of the log residuals over all runs,

.. math:: \sum_i \text{Huber}_\delta(\log L(N_i, D_i) - \log L_i)

with log L the log-sum-exp of its three terms. SciPy, which the extra `plot` installs, minimises it.

A token costs `c(N) = fixed + per_parameter * N`, in operations or in seconds; both are read off the
runs themselves. A budget C buys `D = C / c(N)` tokens, so that the loss depends on N alone. It is
convex in log N, and its derivative is zero at one place: if `c(N) = 6N`, that of Hoffmann et al.
2022, equation 4.

In the names of arrays: P points, K terms, Q the five unknowns, S laws.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from operator import attrgetter

import numpy as np
import numpy.typing as npt

from dragoman.errors import InputError, how_to_install
from dragoman.wording import counted

try:
    from scipy.optimize import OptimizeResult, least_squares, nnls
except ModuleNotFoundError as error:
    raise InputError(f"fitting a scaling law needs SciPy; {how_to_install('plot')}") from error

Floats = npt.NDArray[np.float64]
Numbers = float | Floats

DELTA = 1e-3
"""Log residuals beyond it count linearly, no longer quadratically (Hoffmann et al., D.3)."""
FEWEST_RUNS = 6
"""One more than there are numbers to fit."""
FEWEST_LEVELS = 3
"""Different sizes and different lengths: any two lie on a power law with any floor."""
REFITS = 1000
"""Number of resampled sets of runs that are also fitted: each takes about 10 ms."""
EXPONENTS = (0.1, 0.2, 0.3, 0.45, 0.6, 0.8, 1.0)
"""Starting values of either exponent."""
TOLERANCE = 1e-6
"""A fit ends when a step changes the sum, the unknowns or the slope by a smaller share."""
PROMISING = 8
"""Number of starts that are continued: those with the least squares."""
LARGEST_LOG_SIZE, HALVINGS = np.log(1e18), 100
"""Upper bound and number of halvings of the search for the best size."""
SMALLEST = 1e-3
"""Share of the loss that replaces a term of zero in a start, since zero has no logarithm."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScalingLaw:
    """The five numbers of a law, E, A, alpha, B and beta; arrays stand for as many laws."""

    floor: Numbers
    size_factor: Numbers
    size_exponent: Numbers
    token_factor: Numbers
    token_exponent: Numbers

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
    """The measurements of one run."""

    parameters: int
    """N: all weights, including embeddings; a shared matrix counts once."""
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
    def of(cls, values_S: Numbers) -> "Interval":
        """Return the value of the first law, with the interval of the others; NaN is left out."""
        value, *samples = np.atleast_1d(values_S)
        low, high = np.nanpercentile(samples, (2.5, 97.5))
        return cls(value=float(value), low=float(low), high=float(high))


@dataclass(frozen=True, slots=True, kw_only=True)
class LawFit:
    """The best law for some runs, and its uncertainty."""

    law: ScalingLaw
    laws: ScalingLaw
    """The best law, followed by those of resampled runs, `[S]`."""
    noise_S: Floats
    """For each law, a log residual by which one more run may miss it; 0 for the first."""

    def predict(self, parameters: float, tokens: float) -> Interval:
        """Predict the loss of one more run, from the law's uncertainty and a run's own noise."""
        return Interval.of(self.laws.loss(parameters, tokens) * np.exp(self.noise_S))


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenCost:
    """The cost of training on one token for a model of any size, in operations or seconds."""

    fixed: float
    per_parameter: float

    @classmethod
    def of(cls, sizes: Sequence[float], costs: Sequence[float]) -> "TokenCost":
        """Fit a line to the costs of runs of several sizes, by least squares of relative errors.

        A negative part becomes zero.
        """
        cost, size = np.asarray(costs, float), np.asarray(sizes, float)
        (fixed, per_parameter), _ = nnls(np.stack([1.0 / cost, size / cost], 1), np.ones_like(cost))
        return cls(fixed=float(fixed), per_parameter=float(per_parameter))

    def of_token(self, parameters: Numbers) -> Floats:
        """Return the cost of a token for a model with this many parameters."""
        return np.asarray(self.fixed + self.per_parameter * parameters)


def fit_law(points: Sequence[Point], *, samples: int = REFITS, seed: int = 0) -> LawFit:
    """Fit the law, and fit it again to `samples` resampled sets of runs.

    N and D are planned, so the residuals are resampled: each set has the losses of the best fit
    times exp of residuals drawn with replacement, centred and scaled by sqrt(n / (n - 5)), since
    five numbers were fitted to them (Efron and Tibshirani 1993, chapter 9).

    Raises InputError for too few runs, sizes or lengths, and for a loss that is not above zero.
    """
    if not all(0.0 < point.loss < np.inf for point in points):
        raise InputError(
            "a run has a loss that is not above 0 and finite, which no power law describes"
        )
    sizes = len({point.parameters for point in points})
    lengths = len({point.tokens for point in points})
    if len(points) < FEWEST_RUNS or min(sizes, lengths) < FEWEST_LEVELS:
        raise InputError(
            f"{counted(len(points), 'run')} of {counted(sizes, 'size')} and "
            f"{counted(lengths, 'length')} cannot decide the five numbers of the law: give at "
            f"least {FEWEST_RUNS} runs, with {FEWEST_LEVELS} different sizes and {FEWEST_LEVELS} "
            "different numbers of tokens; dragoman train scaling-sweep makes them"
        )
    ordered = sorted(points, key=lambda point: (point.parameters, point.tokens, point.loss))
    runs, log_loss_P = _Runs(ordered), np.log([point.loss for point in ordered])
    best_Q = runs.best_fit(log_loss_P)
    predicted_P = runs.log_law(best_Q)
    residual_P = log_loss_P - predicted_P
    rng = np.random.default_rng(seed)
    spread = np.sqrt(len(points) / (len(points) - best_Q.size))
    drawn_P = spread * (residual_P - residual_P.mean())
    resampled_SP = predicted_P + rng.choice(drawn_P, (samples, len(points)))
    fits_SQ = [best_Q, *(runs.fit(row_P, best_Q).x for row_P in resampled_SP)]
    noise_S = np.append(0.0, rng.choice(drawn_P, samples))
    return LawFit(law=runs.law(best_Q), laws=runs.law(np.stack(fits_SQ)), noise_S=noise_S)


class _Runs:
    """The runs, with terms whose logs are linear in the unknowns.

    The unknowns are log E, the logs of the second and the third term at the middle of the runs,
    alpha and beta. At N = D = 1 instead, a factor and its exponent would be almost one direction.
    """

    def __init__(self, points: Sequence[Point]) -> None:
        logs_P2 = np.log([[float(p.parameters), float(p.tokens)] for p in points])
        self.middle_2 = logs_P2.mean(axis=0)
        self.terms_KPQ: Floats = np.zeros((3, len(points), 5))
        self.terms_KPQ[:, :, :3] = np.eye(3)[:, None]
        self.terms_KPQ[1, :, 3], self.terms_KPQ[2, :, 4] = (self.middle_2 - logs_P2).T

    def log_law(self, unknown_Q: Floats) -> Floats:
        """Return log L of the runs, `[P]`."""
        return np.asarray(np.logaddexp.reduce(self.terms_KPQ @ unknown_Q))

    def slope(self, unknown_Q: Floats) -> Floats:
        """Return the gradient of log L in the unknowns, `[P, Q]`: shares of the terms in L."""
        shares_KP = np.exp(self.terms_KPQ @ unknown_Q - self.log_law(unknown_Q))
        return np.asarray((shares_KP[:, :, None] * self.terms_KPQ).sum(axis=0))

    def fit(self, log_loss_P: Floats, start_Q: Floats) -> OptimizeResult:
        """Minimise the Huber loss from one start."""
        return least_squares(
            lambda unknown_Q: self.log_law(unknown_Q) - log_loss_P,
            start_Q,
            self.slope,
            loss="huber",
            f_scale=DELTA,
            ftol=TOLERANCE,
            xtol=TOLERANCE,
            gtol=TOLERANCE,
        )

    def best_fit(self, log_loss_P: Floats) -> Floats:
        """Minimise from several starts: for given exponents the law is linear in E, A and B."""
        loss_P, starts = np.exp(log_loss_P), []
        for exponents in product(EXPONENTS, EXPONENTS):
            powers_KP = np.exp(self.terms_KPQ[:, :, 3:] @ exponents)
            terms, left = nnls((powers_KP / loss_P).T, np.ones_like(loss_P))
            least = SMALLEST * loss_P.mean()
            starts.append((left, (*np.log(np.maximum(terms, least)), *exponents)))
        fits = [self.fit(log_loss_P, np.array(start)) for _, start in sorted(starts)[:PROMISING]]
        return np.asarray(min(fits, key=attrgetter("cost")).x)

    def law(self, unknown: Floats) -> ScalingLaw:
        """Return the law, or laws, for unknowns `[Q]` or `[S, Q]`."""
        floor, size, tokens, alpha, beta = unknown.T
        middle_size, middle_tokens = self.middle_2
        return ScalingLaw(
            floor=np.exp(floor),
            size_factor=np.exp(size + alpha * middle_size),
            size_exponent=alpha,
            token_factor=np.exp(tokens + beta * middle_tokens),
            token_exponent=beta,
        )


# ---------------------------------------------------------------- what a budget is best spent on


def optimal(law: ScalingLaw, budget: Numbers, cost: TokenCost) -> tuple[Floats, Floats]:
    """Return the size and the tokens of the lowest loss; laws and budgets may be arrays.

    NaN if the law has no such optimum: if a larger model or more tokens never help (an exponent of
    0 or below), or if size costs nothing.
    """
    alpha, beta = law.size_exponent, law.token_exponent
    exists = (np.minimum(alpha, beta) > 0.0) & (cost.per_parameter > 0.0)
    low = np.zeros(np.broadcast_shapes(np.shape(alpha), np.shape(budget)))
    high = np.full_like(low, LARGEST_LOG_SIZE)
    with np.errstate(invalid="ignore", divide="ignore"):  # where there is no optimum
        for _ in range(HALVINGS):
            middle = (low + high) / 2
            size = np.exp(middle)
            of_token = cost.of_token(size)
            gain = np.log(alpha * law.size_factor) - alpha * middle
            loss = np.log(beta * law.token_factor) - beta * np.log(budget / of_token)
            falls = gain > loss + np.log(cost.per_parameter * size / of_token)
            low, high = np.where(falls, middle, low), np.where(falls, high, middle)
    size = np.where(exists, np.exp(low), np.nan)
    return size, np.asarray(budget / cost.of_token(size))


@dataclass(frozen=True, slots=True, kw_only=True)
class BestUse:
    """The best use of a budget, in the unit of the costs: the run, and the loss it will measure."""

    budget: float
    parameters: Interval
    tokens: Interval
    loss: Interval


def best_use(fit: LawFit, budget: float, cost: TokenCost) -> BestUse:
    """Return the best use of a budget. Raises InputError if the fit has none."""
    size_S, tokens_S = optimal(fit.laws, budget, cost)
    if np.isnan(size_S[0]):
        raise InputError(
            "the fit has no best size: larger models or more tokens did not lower the loss of "
            "these runs; fit runs that lie further apart"
        )
    return BestUse(
        budget=budget,
        parameters=Interval.of(size_S),
        tokens=Interval.of(tokens_S),
        loss=fit.predict(size_S[0], tokens_S[0]),
    )
