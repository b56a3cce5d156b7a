"""The cost of a request, and work that is skipped for clients that have disconnected."""

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from threading import Event
from unittest.mock import Mock

import pytest
from tests.unit.tasks import tiny

pytest.importorskip("starlette", reason="the extra 'serve' is not installed")

from dragoman.serve.refusals import Refusal
from dragoman.serve.work import PricedRequest, run_steps
from dragoman.tasks.results import Translation


def price(prefix: str = "", min_length: int = 0) -> int:
    """Return the tokens that the translation of one word counts as."""
    translator = tiny.make_translator()
    options = replace(translator.options, min_length=min_length)
    courses = translator.courses(["the"], options, [prefix] if prefix else None)
    request = PricedRequest[Translation](translator.scheduler)
    return request.price(courses)


def test_what_must_be_written_costs_as_what_is_read() -> None:
    """A minimum length or a prefix takes search steps like any other tokens."""
    assert price(min_length=40) >= price() + 40
    assert price("a dog " * 20) >= price() + 20


def test_a_step_that_waits_is_not_computed_for_who_has_left() -> None:
    """It checks again once it has acquired the lock."""
    step, withdrawn = Mock(return_value=[1]), Event()

    @contextmanager
    def lock() -> Iterator[None]:
        withdrawn.set()
        yield

    with pytest.raises(Refusal):
        run_steps([step], lock(), withdrawn)
    assert not step.called
    assert run_steps([step, step], nullcontext(), Event()) == [1, 1]
