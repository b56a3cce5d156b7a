"""The command line of the system tests."""

from tests.system.conftest import dragoman, environment, server

__all__ = ["dragoman", "environment", "server"]
