"""What all tests share: whatever a test draws can be drawn again.

Weights and inputs come from a seed that each test has of its own, so that they do not hang on which
tests ran before in the same worker. `--seed N` draws others; the header says which. Nor does it
matter for what terminal the tests are run.
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
"""The seed of a run that asks for none; with it hypothesis draws the same examples too."""

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
"""Variables by which typer and rich take a pipe for a terminal, or for one of another kind, and by
which Python writes at once what a program has not flushed."""


class TorchRandom:
    """Torch's generator as hypothesis wants one: a failed example comes back with its weights."""

    run_seed = FIXED
    getstate = staticmethod(torch.get_rng_state)
    setstate = staticmethod(torch.set_rng_state)

    def seed(self, seed: int) -> None:
        """Begin an example."""
        torch.manual_seed(self.run_seed + seed)


TORCH_RANDOM = TorchRandom()  # hypothesis keeps only a weak reference
register_random(TORCH_RANDOM)

# Hypothesis would also draw constants of whichever modules of ours are loaded by then, so that the
# examples of a test hung on what ran before in the same worker (tests/unit/test_draws.py).
providers._get_local_constants = Constants


def pytest_addoption(parser: pytest.Parser) -> None:
    """Let a run draw other weights, inputs and examples than the last one."""
    parser.addoption("--seed", type=int, default=FIXED, help="what tests draw from (default: 0)")


def pytest_configure(config: pytest.Config) -> None:
    """Give drawn examples no time limit (machines are shared) and print what repeats a failure.

    What the commands under test print is not for whoever set the variables of a terminal.
    """
    gc.disable()  # until all is imported, most of which stays
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
    """Say what to type to repeat this run."""
    return f"seed: {config.getoption('seed')} (--seed)"


def pytest_collectstart(collector: pytest.Collector) -> None:
    """Seed what a module draws while it is imported."""
    seed_all(collector.config, collector.nodeid)


def pytest_fixture_setup(
    fixturedef: pytest.FixtureDef[object], request: pytest.FixtureRequest
) -> None:
    """Seed what a fixture draws, whichever test asks for it first."""
    seed_all(request.config, f"{fixturedef.baseid}::{fixturedef.argname}")


def pytest_collection_finish() -> None:
    """Let the garbage collector look at what comes from now on, and at no imported module again."""
    gc.freeze()
    gc.enable()


def pytest_runtest_call(item: pytest.Item) -> None:
    """Seed what a test draws."""
    seed_all(item.config, item.nodeid)


def seed_all(config: pytest.Config, name: str) -> None:
    """Seed every stream of random numbers by the run's seed and a name."""
    seed = zlib.crc32(f"{config.getoption('seed')} {name}".encode())
    random.seed(seed)
    torch.manual_seed(seed)
