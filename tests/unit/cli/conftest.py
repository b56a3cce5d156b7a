"""What the tests of the verbs share."""

from tests.system.cli.conftest import run as run  # noqa: PLC0414 -- a fixture
