"""Fixtures for the command-line tests."""

from tests.system.cli.conftest import run as run  # noqa: PLC0414 -- a fixture
