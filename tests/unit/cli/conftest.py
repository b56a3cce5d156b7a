"""What the tests of the verbs share."""

import pytest
from tests.system.cli.command import Run


@pytest.fixture
def run(capfd: pytest.CaptureFixture[str]) -> Run:
    """Calls the command in this process."""
    return Run(capfd)
