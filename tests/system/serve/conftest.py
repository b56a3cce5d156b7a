"""Models for the tests of the server, and one server for those that change nothing in it."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.unit.tasks.tiny import save_translator

pytest.importorskip("uvicorn", reason="the extra 'serve' is not installed")

from tests.system.serve.live import Live, serving


@pytest.fixture(scope="session")
def translator_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model folder."""
    return save_translator(tmp_path_factory.mktemp("served") / "en-zh")


@pytest.fixture(scope="module")
def live(translator_folder: Path) -> Iterator[Live]:
    """A server of a translator."""
    with serving(translator_folder) as live:
        yield live
