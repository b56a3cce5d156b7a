"""The options of `dragoman cost`: each is declared once, with its type, range and description.

The command line's options and their help are made from the fields.
"""

from dataclasses import dataclass, fields
from pathlib import Path

from dragoman.errors import InputError
from dragoman.ranges import Count, Positive, check_ranges

BUDGETS = ("flops", "minutes", "money")
FITTING = ("predict", *BUDGETS, "png")
"""Options of a fit only; with `price` they are all that it takes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CostOptions:
    """What is asked about a recipe, or with `fit` about finished runs."""

    device: str | None = None
    """Device from the table; default: this machine."""
    devices: Path | None = None
    """TOML file with devices of your own."""
    length: Count | None = None
    """Tokens per sentence and side; default: 30."""
    tokens_per_month: Positive | None = None
    """Monthly traffic to estimate."""
    price: Positive | None = None
    """Price per hour; default: the table's, in USD."""
    kwh_price: Positive | None = None
    """Price per kilowatt-hour."""
    measure: bool = False
    """Time real steps on this machine (takes a minute)."""
    nproc: tuple[int, ...] = ()
    """Number of devices that train together; may be repeated."""
    link_gb: Positive | None = None
    """With --nproc: bandwidth between devices, in 1e9 bytes per second."""
    fit: bool = False
    """Fit a scaling law to finished runs."""
    predict: tuple[Path, ...] = ()
    """With --fit: run to predict."""
    flops: Positive | None = None
    """With --fit: budget in training FLOPs."""
    minutes: Positive | None = None
    """With --fit: budget in minutes of training."""
    money: Positive | None = None
    """With --fit: budget in money, at --price per hour."""
    png: Path | None = None
    """With --fit: draw the law to this PNG file."""

    def __post_init__(self) -> None:
        """Raise InputError for options out of range, or options that do not go together."""
        check_ranges(self)
        for name in (
            each.name for each in fields(self) if getattr(self, each.name) != each.default
        ):
            flag = f"--{name.replace('_', '-')}"
            if self.fit and name not in ("fit", "price", *FITTING):
                raise InputError(f"{flag} has no meaning with --fit")
            if not self.fit and name in FITTING:
                raise InputError(f"{flag} needs --fit and the folders of runs")
        budgets = [name for name in BUDGETS if getattr(self, name) is not None]
        if len(budgets) > 1:
            raise InputError(f"one budget at a time, not {' and '.join(budgets)}")
        if self.fit and (self.money is None) != (self.price is None):
            raise InputError("a budget of money needs a price per hour, and a price needs money")
        if self.measure and self.device is not None:
            raise InputError("--measure times this machine, and --device names another; give one")
        if bool(self.nproc) != (self.link_gb is not None):
            raise InputError("--nproc and --link-gb belong together: give both, or neither")
        if self.nproc and min(self.nproc) < 1:
            raise InputError(f"--nproc is {min(self.nproc)}; it must be 1 or more")

    @property
    def seconds(self) -> float | None:
        """The time that a budget of time or money buys on the machine of the runs."""
        if self.money is not None and self.price is not None:
            return 3600.0 * self.money / self.price
        return None if self.minutes is None else 60.0 * self.minutes
