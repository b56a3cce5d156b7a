"""What the tests of the command line share."""

from pathlib import Path

import pytest
from tests.system.cli.command import Run
from tests.unit.tasks.tiny import save_translator


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model folder."""
    return save_translator(tmp_path_factory.mktemp("cli") / "en-zh")


@pytest.fixture
def run(capfd: pytest.CaptureFixture[str]) -> Run:
    """Calls the command in this process."""
    return Run(capfd)
