"""Models for the tests of the server, and one server for those that change nothing in it."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.unit.tasks.tiny import DECODING, make_config, make_model, make_tokenizer, save_translator

from dragoman.folder.format import FolderConfig, save_model
from dragoman.text.tags import tags_of
from dragoman.text.train import with_specials

pytest.importorskip("uvicorn", reason="the extra 'serve' is not installed")

from tests.system.serve.live import Client, Live, serving


@pytest.fixture(scope="session")
def translator_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model folder."""
    return save_translator(tmp_path_factory.mktemp("served") / "en-zh")


@pytest.fixture(scope="session")
def several_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model folder of two languages, each of which it translates into the other."""
    tokenizer = with_specials(make_tokenizer(), tags_of(["en", "zh"], told_source=True))
    sizes, directions = make_config(tokenizer), (("en", "zh"), ("zh", "en"))
    config = FolderConfig(model=sizes, decoding=DECODING, directions=directions)
    folder = tmp_path_factory.mktemp("served") / "several"
    save_model(folder, make_model(sizes), config, tokenizers=(tokenizer, tokenizer))
    return folder


@pytest.fixture(scope="module")
def live(translator_folder: Path) -> Iterator[Live]:
    """A server of a translator."""
    with serving(translator_folder) as live:
        yield live


@pytest.fixture
def client(live: Live) -> Client:
    """DeepL's official client, with the address of this server."""
    deepl = pytest.importorskip("deepl", reason="the client 'deepl' is not installed")
    return deepl.DeepLClient("any:fx", server_url=f"http://127.0.0.1:{live.port}")
