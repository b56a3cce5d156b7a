"""Models for the server tests, and a shared server for tests that do not change it."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.unit.tasks.tiny import save_several, save_translator

pytest.importorskip("uvicorn", reason="the extra 'serve' is not installed")

from tests.system.serve.live import Client, Live, serving


@pytest.fixture(scope="session")
def translator_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model folder."""
    return save_translator(tmp_path_factory.mktemp("served") / "en-zh")


@pytest.fixture(scope="session")
def several_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model folder for two languages, translated in both directions."""
    return save_several(tmp_path_factory.mktemp("served") / "several", "en", "zh")


@pytest.fixture(scope="session")
def scripts_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model folder that translates English into two scripts of one language."""
    return save_several(tmp_path_factory.mktemp("served") / "scripts", "en", "sr-Latn", "sr-Cyrl")


@pytest.fixture(scope="module")
def live(translator_folder: Path) -> Iterator[Live]:
    """A server with one translator."""
    with serving(translator_folder) as live:
        yield live


@pytest.fixture
def client(live: Live) -> Client:
    """DeepL's official client, pointed at this server."""
    deepl = pytest.importorskip("deepl", reason="the client 'deepl' is not installed")
    return deepl.DeepLClient("any:fx", server_url=f"http://127.0.0.1:{live.port}")
