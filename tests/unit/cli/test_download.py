"""Downloading, with functions in place of the Hub's: what is asked for, said and left behind."""

from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from dragoman.cli.download import download
from dragoman.errors import DragomanError, InputError

hub: Any = pytest.importorskip("huggingface_hub", reason="needs the extra `download`")

NAME = "owner/tiny"
WHOLE = {"config.json": 20, "source.spm": 30, "model.safetensors": 1_200_000, "README.md": 4}
BESIDE = {"pytorch_model.bin": 9, "onnx/config.json": 9, "model.safetensors.index.json": 9}


class Hub:
    """The Hub with one model; it notes what was fetched, and may stop after some files."""

    def __init__(self, files: dict[str, int], licence: str | None = "cc-by-nc-4.0") -> None:
        self.files, self.licence = files, licence
        self.fetched: list[str] = []
        self.stop_after, self.lost = len(files), 0

    def model_info(self, name: str, *, files_metadata: bool) -> SimpleNamespace:
        """As `huggingface_hub.model_info`."""
        assert (name, files_metadata) == (NAME, True)
        siblings = [SimpleNamespace(rfilename=n, size=s) for n, s in self.files.items()]
        card = SimpleNamespace(license=self.licence)
        return SimpleNamespace(siblings=siblings, sha="abc", card_data=card)

    def snapshot_download(
        self, name: str, *, revision: str, local_dir: Path, allow_patterns: Sequence[str]
    ) -> None:
        """As `huggingface_hub.snapshot_download`: files that are there are not fetched again."""
        assert (name, revision) == (NAME, "abc")
        (local_dir / ".cache" / "huggingface").mkdir(parents=True, exist_ok=True)
        for file in allow_patterns:
            if not (local_dir / file).exists():
                if len(self.fetched) == self.stop_after:
                    raise ConnectionError("the line went dead")
                self.fetched.append(file)
                (local_dir / file).write_bytes(bytes(self.files[file] - self.lost))


@pytest.fixture
def connected(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[..., Hub]:
    """Puts a Hub in place of the real one, and goes to an empty folder."""
    monkeypatch.chdir(tmp_path)

    def connect(*arguments: Any, **settings: Any) -> Hub:  # noqa: ANN401
        fake = Hub(*arguments, **settings)
        for name in ("model_info", "snapshot_download"):
            monkeypatch.setattr(hub, name, getattr(fake, name))
        return fake

    return connect


def test_what_loading_needs_is_fetched(
    connected: Callable[..., Hub], capsys: pytest.CaptureFixture[str]
) -> None:
    """Nothing else; size and licence are said before the first file."""
    fake = connected(WHOLE | BESIDE)
    download(NAME)
    assert sorted(fake.fetched) == sorted(WHOLE)
    assert {path.name for path in Path("tiny").iterdir()} == set(WHOLE)
    first = capsys.readouterr().err.splitlines()[0]
    assert first == f"{NAME}: 1.2 MB in 4 files, licence cc-by-nc-4.0."
    with pytest.raises(InputError, match="tiny exists"):
        download(NAME)


def test_shards_come_with_their_index(connected: Callable[..., Hub]) -> None:
    """And weights for another library stay where they are; no licence is said to be none."""
    shards = {f"model-0000{n}-of-00002.safetensors": 7 for n in (1, 2)}
    needed = {"config.json": 5, "model.safetensors.index.json": 9} | shards
    fake = connected({**needed, "consolidated.safetensors": 99}, licence=None)
    download(NAME, Path("here"))
    assert sorted(fake.fetched) == sorted(needed)
    assert Path("here").is_dir()


def test_an_interrupted_download_goes_on(connected: Callable[..., Hub]) -> None:
    """There is no folder before all files are there, and no file is fetched twice."""
    fake = connected(WHOLE)
    fake.stop_after = 2
    with pytest.raises(DragomanError, match=r"the line went dead.*goes on where it stopped"):
        download(NAME)
    assert not Path("tiny").exists()
    fake.stop_after = 9
    download(NAME)
    assert sorted(fake.fetched) == sorted(WHOLE)
    assert Path("tiny", "config.json").exists()


def test_a_file_that_is_cut_short_is_no_download(connected: Callable[..., Hub]) -> None:
    """Sizes are compared with those that the Hub tells."""
    connected(WHOLE).lost = 1
    with pytest.raises(DragomanError, match=r"README\.md has 3 of 4 bytes|has .* of .* bytes"):
        download(NAME)
    assert not Path("tiny").exists()


@pytest.mark.parametrize(
    ("files", "words"),
    [
        ({"config.json": 1, "pytorch_model.bin": 2}, "no weights as safetensors, only pytorch_m"),
        ({"m.Q4.gguf": 2}, r"no config\.json, only m\.Q4\.gguf"),
    ],
)
def test_what_could_not_be_loaded_is_not_fetched(
    connected: Callable[..., Hub], files: dict[str, int], words: str
) -> None:
    """The files that there are, and where to look."""
    fake = connected(files)
    with pytest.raises(InputError, match=words):
        download(NAME)
    assert fake.fetched == []
    assert list(Path().iterdir()) == []


@pytest.mark.parametrize(
    ("error", "kind", "words"),
    [
        ("RepositoryNotFoundError", InputError, "no public model owner/tiny; look for its name"),
        ("GatedRepoError", InputError, "gated access; accept its terms .* hf auth login"),
        ("HFValidationError", InputError, "OWNER/MODEL"),
        ("HfHubHTTPError", DragomanError, "check the connection"),
        ("OfflineModeIsEnabled", DragomanError, "check the connection"),
    ],
)
def test_what_the_hub_refuses_is_told(
    connected: Callable[..., Hub],
    monkeypatch: pytest.MonkeyPatch,
    error: str,
    kind: type[DragomanError],
    words: str,
) -> None:
    """Without a traceback of its library."""
    connected(WHOLE)
    cls = getattr(hub.errors, error)

    def refuse(*_: object, **__: object) -> None:
        raise cls.__new__(cls, "no")  # its constructor wants an answer of a server

    monkeypatch.setattr(hub, "model_info", refuse)
    with pytest.raises(kind, match=words) as caught:
        download(NAME)
    assert type(caught.value) is kind


def test_a_missing_package_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """With the command that installs it."""
    monkeypatch.setitem(__import__("sys").modules, "huggingface_hub", None)
    with pytest.raises(InputError, match=r"pip install 'dragoman\[download\]'"):
        download(NAME)
