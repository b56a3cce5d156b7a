"""Commands of pages run as the system tests run theirs."""

from tests.system.conftest import dragoman, environment, server

__all__ = ["dragoman", "environment", "server"]
