"""What all tests share: everything that a test draws can be drawn again.

Weights and inputs come from a seed per test, so that they do not depend on which tests ran before
in the same worker. `--seed N` draws others; the header shows the seed. The kind of terminal makes
no difference either.
"""

import gc
import os
import random
import zlib

import pytest
import torch
from hypothesis import HealthCheck, register_random, settings
from hypothesis.internal.conjecture import providers
from hypothesis.internal.constants_ast import Constants

FIXED = 0
"""The default seed of a run; with it hypothesis draws the same examples too."""

TERMINAL = (
    "COLORTERM",
    "COLUMNS",
    "FORCE_COLOR",
    "GITHUB_ACTIONS",
    "LINES",
    "NO_COLOR",
    "PYTHONUNBUFFERED",
    "PY_COLORS",
    "TERM",
    "TERMINAL_WIDTH",
    "TTY_COMPATIBLE",
    "TTY_INTERACTIVE",
)
"""Variables by which typer and rich recognize a terminal or its kind, and by which Python writes
its output without buffering.
"""


seed_torch = (
    torch.manual_seed if torch.backends.cuda.is_built() else torch.default_generator.manual_seed
)
"""Seeds PyTorch for each test and example; where there is a GPU it may have to wait for it, and
notes the whole stack each time, which takes a millisecond."""


class TorchRandom:
    """Torch's generator with hypothesis's interface: a failed example repeats its weights."""

    run_seed = FIXED
    getstate = staticmethod(torch.get_rng_state)
    setstate = staticmethod(torch.set_rng_state)

    def seed(self, seed: int) -> None:
        """Start an example."""
        seed_torch(self.run_seed + seed)


TORCH_RANDOM = TorchRandom()  # hypothesis keeps only a weak reference
register_random(TORCH_RANDOM)

# Hypothesis would also draw constants from those of our modules that are loaded by then, so that
# a test's examples would depend on what ran before in the same worker (tests/unit/test_draws.py).
providers._get_local_constants = Constants


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add `--seed`, which lets a run draw other weights, inputs and examples."""
    parser.addoption("--seed", type=int, default=FIXED, help="what tests draw from (default: 0)")


def pytest_configure(config: pytest.Config) -> None:
    """Give drawn examples no time limit (machines are shared), and print how to repeat a failure.

    Terminal variables must not affect what the commands under test print.
    """
    gc.disable()  # until everything is imported, most of which stays
    for name in TERMINAL:
        os.environ.pop(name, None)
    TORCH_RANDOM.run_seed = config.getoption("seed")
    fixed = TORCH_RANDOM.run_seed == FIXED
    settings.register_profile(
        "dragoman",
        max_examples=50,
        deadline=None,
        print_blob=True,
        derandomize=fixed,
        suppress_health_check=[HealthCheck.too_slow],
    )
    settings.load_profile("dragoman")


def pytest_report_header(config: pytest.Config) -> str:
    """Show the seed that repeats this run."""
    return f"seed: {config.getoption('seed')} (--seed)"


def pytest_collectstart(collector: pytest.Collector) -> None:
    """Seed what a module draws during its import."""
    seed_all(collector.config, collector.nodeid)


def pytest_fixture_setup(
    fixturedef: pytest.FixtureDef[object], request: pytest.FixtureRequest
) -> None:
    """Seed what a fixture draws, whichever test requests it first."""
    seed_all(request.config, f"{fixturedef.baseid}::{fixturedef.argname}")


def pytest_collection_finish() -> None:
    """Let the garbage collector check new objects only, and no imported module again."""
    gc.freeze()
    gc.enable()


def pytest_runtest_call(item: pytest.Item) -> None:
    """Seed what a test draws."""
    seed_all(item.config, item.nodeid)


def seed_all(config: pytest.Config, name: str) -> None:
    """Seed every random number generator from the run's seed and a name."""
    seed = zlib.crc32(f"{config.getoption('seed')} {name}".encode())
    random.seed(seed)
    seed_torch(seed)
