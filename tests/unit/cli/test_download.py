"""Downloads from a fake Hub: requests, messages and the files that are left."""

import io
import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from dragoman.cli.download import download
from dragoman.errors import DragomanError, InputError

hub: Any = pytest.importorskip("huggingface_hub", reason="needs the extra `download`")

NAME = "owner/tiny"
WHOLE = {"config.json": 20, "source.spm": 30, "model.safetensors": 1_200_000, "README.md": 4}
BESIDE = {"pytorch_model.bin": 9, "onnx/config.json": 9, "flax_model.msgpack": 9}
PICKLED = {"config.json": 20, "source.spm": 30, "pytorch_model.bin": 900}


class Hub:
    """A Hub with one model that records downloads and may stop after some files."""

    def __init__(self, files: dict[str, int], licence: str | None = "cc-by-nc-4.0") -> None:
        self.files, self.licence = files, licence
        self.fetched: list[str] = []
        self.stop_after = len(files)
        self.proposed: list[SimpleNamespace] = []
        self.content: dict[str, bytes] = {}

    def propose(self, files: dict[str, int], author: str = "SFconvertbot", **state: Any) -> None:  # noqa: ANN401
        """Open a pull request with these files."""
        state = {"status": "open", "is_pull_request": True, "disabled": False} | state
        number = len(self.proposed) + 1
        self.proposed.append(SimpleNamespace(author=author, num=number, files=files, **state))

    def get_repo_discussions(self, name: str, **_: str) -> Iterator[SimpleNamespace]:
        """As `huggingface_hub.get_repo_discussions`, ignoring the arguments."""
        assert name == NAME
        for each in self.proposed:
            if each.disabled:
                raise hub.errors.HfHubHTTPError.__new__(hub.errors.HfHubHTTPError, "disabled")
            yield each

    def _at(self, revision: str | None) -> dict[str, int]:
        if revision in {None, "abc"}:
            return self.files
        assert revision is not None
        files: dict[str, int] = self.proposed[int(revision.rpartition("/")[2]) - 1].files
        return files

    def model_info(
        self, name: str, *, files_metadata: bool, revision: str | None = None
    ) -> SimpleNamespace:
        """As `huggingface_hub.model_info`; the hash of a file is its size."""
        assert (name, files_metadata) == (NAME, True)
        siblings = [
            SimpleNamespace(rfilename=n, size=s, blob_id=str(s))
            for n, s in self._at(revision).items()
        ]
        card = SimpleNamespace(license=self.licence)
        return SimpleNamespace(siblings=siblings, sha=revision or "abc", card_data=card)

    def snapshot_download(
        self, name: str, *, revision: str, local_dir: Path, allow_patterns: Sequence[str]
    ) -> None:
        """As `huggingface_hub.snapshot_download`: existing files are not downloaded again."""
        assert name == NAME
        (local_dir / ".cache" / "huggingface").mkdir(parents=True, exist_ok=True)
        for file in allow_patterns:
            if not (local_dir / file).exists():
                if len(self.fetched) == self.stop_after:
                    raise ConnectionError("the line went dead")
                self.fetched.append(file)
                content = self.content.get(file, bytes(self._at(revision)[file]))
                (local_dir / file).parent.mkdir(exist_ok=True)
                (local_dir / file).write_bytes(content)


@pytest.fixture
def connected(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[..., Hub]:
    """Replace the Hub by a fake one, and change to an empty folder."""
    monkeypatch.chdir(tmp_path)

    def connect(*arguments: Any, **settings: Any) -> Hub:  # noqa: ANN401
        fake = Hub(*arguments, **settings)
        for name in ("model_info", "snapshot_download", "get_repo_discussions"):
            monkeypatch.setattr(hub, name, getattr(fake, name))
        return fake

    return connect


def test_what_loading_needs_is_fetched(
    connected: Callable[..., Hub], capsys: pytest.CaptureFixture[str]
) -> None:
    """Only the required files are downloaded; size and licence are shown before the first one."""
    fake = connected(WHOLE | BESIDE)
    download(NAME)
    assert sorted(fake.fetched) == sorted(WHOLE)
    assert {path.name for path in Path("tiny").iterdir()} == set(WHOLE)
    first = capsys.readouterr().err.splitlines()[0]
    assert first == f"{NAME}: 1.2 MB in 4 files, licence cc-by-nc-4.0."
    with pytest.raises(InputError, match="tiny exists"):
        download(NAME)


POOLING = ("modules.json", "1_Pooling/config.json", "sentence_bert_config.json")
INDEX = ("config.json", "model.safetensors.index.json")
SHARDS = ("model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors")


@pytest.mark.parametrize(
    ("needed", "beside"),
    [([*WHOLE, *POOLING], [*BESIDE]), ([*INDEX, *SHARDS], ["consolidated.safetensors"])],
    ids=["how sentences are pooled", "shards"],
)
def test_what_goes_with_weights_is_fetched(
    connected: Callable[..., Hub], needed: list[str], beside: list[str]
) -> None:
    """Files for the weights are included, those for other libraries are not; no licence is fine."""
    fake = connected(dict.fromkeys([*needed, *beside], 9), licence=None)
    download(NAME, Path("here"))
    assert sorted(fake.fetched) == sorted(needed)
    assert Path("here").is_dir()


def test_an_interrupted_download_goes_on(connected: Callable[..., Hub]) -> None:
    """The folder appears once all files are complete, and no file is downloaded twice."""
    fake = connected(WHOLE)
    fake.stop_after = 2
    with pytest.raises(DragomanError, match=r"the line went dead.*resumes where it stopped"):
        download(NAME)
    assert not Path("tiny").exists()
    fake.stop_after = 9
    download(NAME)
    assert sorted(fake.fetched) == sorted(WHOLE)
    assert Path("tiny", "config.json").exists()


def test_what_others_put_beside_the_folder_is_refused(connected: Callable[..., Hub]) -> None:
    """A link could redirect the files into another folder of the user."""
    fake = connected(WHOLE)
    Path("mine").mkdir()
    Path(".tiny.part").symlink_to("mine")
    with pytest.raises(
        InputError, match=r"tiny\.part is a link, not a folder, or .*; remove it\.$"
    ):
        download(NAME)
    assert (fake.fetched, [*Path("mine").iterdir()]) == ([], [])


SAFE = {"model.safetensors": 901}


def test_safetensors_of_the_conversion_bot_are_taken(
    connected: Callable[..., Hub], capsys: pytest.CaptureFixture[str]
) -> None:
    """Only the bot's weights come from its pull request, by number; the rest from main."""
    fake = connected(PICKLED)
    fake.propose(PICKLED | SAFE | {"config.json": 1})  # older than the current config
    download(NAME)
    assert sorted(fake.fetched) == ["config.json", "model.safetensors", "source.spm"]
    assert Path("tiny", "config.json").stat().st_size == PICKLED["config.json"]
    told = capsys.readouterr().err
    assert "SFconvertbot" in told
    assert "pull request 1, trusted to hold what pytorch_model.bin does" in told


@pytest.mark.parametrize(
    "proposal",
    [
        {"files": PICKLED | SAFE, "author": "SFconvertbott"},
        {"files": PICKLED | SAFE, "status": "closed"},
        {"files": PICKLED | SAFE, "is_pull_request": False},
        {"files": PICKLED | SAFE, "disabled": True},
        {"files": PICKLED | SAFE | {"modeling.py": 3}},
        {"files": PICKLED | SAFE | {"pytorch_model.bin": 7}},
        {"files": PICKLED},
    ],
)
def test_no_other_proposal_is_trusted(
    connected: Callable[..., Hub], capsys: pytest.CaptureFixture[str], proposal: dict[str, Any]
) -> None:
    """Other authors, more files or another model are ignored: main's pickle is used."""
    fake = connected(PICKLED)
    fake.propose(**proposal)
    with_weights(fake, "pytorch_model.bin")
    download(NAME)
    assert "model.safetensors" not in fake.fetched
    assert "pytorch_model.bin of the main revision, read by" in capsys.readouterr().err


def with_weights(fake: Hub, file: str, *names: str) -> None:
    """Write weights to a file, two of which share memory."""
    torch = pytest.importorskip("torch")
    matrix, content = torch.arange(6.0).reshape(2, 3), io.BytesIO()
    names = names or ("a", "b", "c")
    torch.save(dict(zip(names, (matrix, matrix, torch.ones(2)), strict=False)), content)
    fake.content |= {file: content.getvalue(), "config.json": b"{}".ljust(20)}
    fake.files[file] = len(content.getvalue())


@pytest.mark.parametrize("shards", [False, True])
def test_pickled_weights_become_safetensors(connected: Callable[..., Hub], *, shards: bool) -> None:
    """The tensors are equal, from one file or several, and no pickle is left."""
    from dragoman.folder.foreign.files import read_checkpoint

    fake = connected(dict(PICKLED))
    if shards:
        del fake.files["pytorch_model.bin"]
        fake.stop_after = 9
        places = {"a": "pytorch_model-00001-of-00002.bin", "c": "pytorch_model-00002-of-00002.bin"}
        for name, file in places.items():
            with_weights(fake, file, name)
        index = json.dumps({"weight_map": places}).encode()
        fake.content["pytorch_model.bin.index.json"] = index
        fake.files["pytorch_model.bin.index.json"] = len(index)
    else:
        with_weights(fake, "pytorch_model.bin")
    download(NAME)
    files = {path.name for path in Path("tiny").iterdir()}
    assert files == {"config.json", "source.spm", "model.safetensors"}
    tensors = read_checkpoint(Path("tiny"))[1]
    assert {name: tensor.shape for name, tensor in tensors.items() if name != "b"} == {
        "a": (2, 3),
        "c": (2, 3) if shards else (2,),
    }


def test_a_pickle_that_is_refused_leaves_no_folder(connected: Callable[..., Hub]) -> None:
    """A refused pickle leaves no folder, and the error has the reason."""
    fake = connected(dict(PICKLED))
    fake.content["config.json"] = b"{}".ljust(20)
    with pytest.raises(InputError, match=r"pytorch_model\.bin is damaged"):
        download(NAME)
    assert not Path("tiny").exists()


@pytest.mark.parametrize(
    ("files", "words"),
    [
        ({"config.json": 1, "tf_model.h5": 2}, "no weights that are read, only tf_model.h5"),
        ({"m.Q4.gguf": 2}, r"no config\.json, only m\.Q4\.gguf"),
    ],
)
def test_what_could_not_be_loaded_is_not_fetched(
    connected: Callable[..., Hub], files: dict[str, int], words: str
) -> None:
    """The error lists the available files and where to look."""
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
    """Errors of the Hub are reported without a traceback of its library."""
    connected(WHOLE)
    cls = getattr(hub.errors, error)

    def refuse(*_: object, **__: object) -> None:
        raise cls.__new__(cls, "no")  # its constructor requires a server's response

    monkeypatch.setattr(hub, "model_info", refuse)
    with pytest.raises(kind, match=words) as caught:
        download(NAME)
    assert type(caught.value) is kind


def test_a_missing_package_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """The error has the command that installs the package."""
    monkeypatch.setitem(__import__("sys").modules, "huggingface_hub", None)
    with pytest.raises(InputError, match=r"pip install '\.\[download\]'"):
        download(NAME)
