"""What the tests themselves draw."""

import sys
from importlib import import_module
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st


def examples() -> list[tuple[int, str]]:
    """Those of a law of its own."""
    found: list[tuple[int, str]] = []

    @given(st.integers(-1000, 1000), st.text())
    @settings(derandomize=True, database=None)
    def law(number: int, text: str) -> None:
        found.append((number, text))

    law()
    return found


def test_examples_do_not_depend_on_what_is_loaded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A module with constants, such as another test may load before, changes none of them."""
    before = examples()
    (tmp_path / "with_constants.py").write_text(f"NUMBERS = {list(range(99))}\nTEXT = 'some'\n")
    monkeypatch.syspath_prepend(tmp_path)
    try:
        assert import_module("with_constants").TEXT == "some"
        assert examples() == before
    finally:
        sys.modules.pop("with_constants", None)
