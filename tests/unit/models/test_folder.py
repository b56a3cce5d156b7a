"""The model folder: what is saved loads again, and everything else is refused in one sentence."""

import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file
from tests.unit.models.family import DECODERS, ENCODERS

from dragoman.errors import DragomanError, InputError
from dragoman.models import EncoderDecoder, EncoderDecoderConfig, Model, ModelConfig, build
from dragoman.models.config import Tying
from dragoman.models.folder import (
    DecodingDefaults,
    FolderConfig,
    load_model,
    read_config,
    save_model,
    tokenizer_paths,
)

TINY = EncoderDecoderConfig(
    src_vocab_size=12,
    tgt_vocab_size=12,
    d_model=8,
    num_heads=2,
    d_ff=16,
    num_encoder_layers=1,
    num_decoder_layers=1,
)


@dataclass(frozen=True)
class Words:
    """A tokenizer as far as a folder knows one: it can write itself."""

    content: str = "{}"

    def save(self, path: Path) -> None:
        """Write the content."""
        path.write_text(self.content)


class FullDisk:
    """A tokenizer whose writing fails as on a full disk, after the first bytes."""

    def save(self, path: Path) -> None:
        """Begin to write, and fail."""
        path.write_text("{")
        raise OSError(28, "No space left on device")


JOINT = (Words(), Words())


def save(folder: Path, config: EncoderDecoderConfig = TINY, words: str = "{}") -> EncoderDecoder:
    """A saved model of random weights."""
    model = EncoderDecoder(config)
    tokenizer = Words(words)
    save_model(folder, model, FolderConfig(model=config), tokenizers=(tokenizer, tokenizer))
    return model


def edit_config(folder: Path, change: Callable[[dict[str, object]], object]) -> None:
    """Change the JSON of a saved config."""
    path = folder / "config.json"
    data = json.loads(path.read_text())
    change(data)
    path.write_text(json.dumps(data))


def edit_weights(folder: Path, change: Callable[[dict[str, torch.Tensor]], object]) -> None:
    """Change the saved weights."""
    path = folder / "model.safetensors"
    weights = load_file(path)
    change(weights)
    save_file(weights, path)


def logits(model: Model) -> torch.Tensor:
    """What the model says to one fixed pair."""
    assert isinstance(model, EncoderDecoder)
    said: torch.Tensor = model.eval()(torch.tensor([[5, 6, 3]]), torch.tensor([[2, 7]]))
    return said


@pytest.mark.parametrize("tying", ["none", "target-output", "source-target", "all"])
def test_what_is_saved_loads_again(tmp_path: Path, tying: Tying) -> None:
    """The same logits bit for bit, evaluation mode, shared matrices shared and stored once."""
    config = replace(TINY, tie_embeddings=tying, output_bias=True)
    model = save(tmp_path / "m", config)
    loaded, found = load_model(tmp_path / "m")
    assert torch.equal(logits(loaded), logits(model))
    assert not load_model(tmp_path / "m")[0].training
    assert found.model == config
    assert len(list(loaded.parameters())) == len(list(model.parameters()))
    assert set(load_file(tmp_path / "m" / "model.safetensors")) == {
        name for name, _ in model.named_parameters()
    }


@pytest.mark.parametrize("name", [*DECODERS, *ENCODERS])
def test_every_variant_is_saved_and_loads_again(tmp_path: Path, name: str) -> None:
    """Decoders and encoders alone, with every scheme and head: their config and their logits."""
    config: ModelConfig = DECODERS[name] if name in DECODERS else ENCODERS[name]
    model = build(config).eval()
    save_model(tmp_path / "m", model, FolderConfig(model=config), tokenizers=JOINT)
    loaded, found = load_model(tmp_path / "m")
    ids_BL = torch.tensor([[5, 6, 3]])
    assert found.model == config
    assert torch.equal(loaded(ids_BL), model(ids_BL))


def test_a_state_dict_saves_the_same_model(tmp_path: Path) -> None:
    """Averaged weights, whose tied matrices are separate copies, need no model to be saved."""
    model = EncoderDecoder(TINY)
    copies = {name: value.clone() for name, value in model.state_dict().items()}
    save_model(tmp_path / "m", copies, FolderConfig(model=TINY), tokenizers=JOINT)
    assert torch.equal(logits(load_model(tmp_path / "m")[0]), logits(model))


def test_the_config_says_everything_and_is_sorted(tmp_path: Path) -> None:
    """Languages, decoding, format, version and the tokenizer's hash survive; keys are sorted."""
    decoding = DecodingDefaults(beam_size=3, length_penalty=0.6)
    config = FolderConfig(model=TINY, decoding=decoding, src_lang="en", tgt_lang="zh")
    words = Words()
    written = save_model(
        tmp_path / "m", EncoderDecoder(TINY), config, tokenizers=(words, words), card="# Card\n"
    )
    assert read_config(tmp_path / "m") == written
    assert (written.decoding, written.src_lang, written.tgt_lang) == (decoding, "en", "zh")
    assert list(written.tokenizers) == ["tokenizer.json"]
    assert (tmp_path / "m" / "README.md").read_text() == "# Card\n"
    data = json.loads((tmp_path / "m" / "config.json").read_text())
    assert list(data) == sorted(data)
    assert list(data["model"]) == sorted(data["model"])


def test_two_tokenizers_replace_one_and_back(tmp_path: Path) -> None:
    """A folder holds tokenizer.json or the two files, never leftovers of the other layout."""
    model, config = EncoderDecoder(TINY), FolderConfig(model=TINY)
    for src, tgt, names in (
        (Words(), Words("[]"), {"tokenizer.src.json", "tokenizer.tgt.json"}),
        (joint := Words(), joint, {"tokenizer.json"}),
    ):
        written = save_model(tmp_path, model, config, tokenizers=(src, tgt))
        assert {path.name for path in tmp_path.glob("tokenizer*")} == names
        assert {path.name for path in tokenizer_paths(tmp_path, written)} == names


def test_loading_draws_no_random_number(tmp_path: Path) -> None:
    """A model may be loaded in the middle of a reproducible run."""
    save(tmp_path / "m")
    state = torch.get_rng_state()
    load_model(tmp_path / "m")
    assert torch.equal(torch.get_rng_state(), state)


def test_every_file_may_be_read_by_whom_the_folder_may(tmp_path: Path) -> None:
    """The weights have the mode of the other files, not that of a private temporary file."""
    save(tmp_path / "m")
    assert len({path.stat().st_mode for path in (tmp_path / "m").iterdir()}) == 1


def test_a_folder_keeps_what_else_it_holds(tmp_path: Path) -> None:
    """Saving again replaces the model and leaves the training run beside it alone."""
    (tmp_path / "training").mkdir()
    (tmp_path / "training" / "state").write_text("x")
    save(tmp_path)
    model = save(tmp_path)
    assert torch.equal(logits(load_model(tmp_path)[0]), logits(model))
    assert (tmp_path / "training" / "state").read_text() == "x"
    assert not (tmp_path / ".saving").exists()


# ---------------------------------------------------------------- saving that fails


def test_a_failed_saving_leaves_the_older_model(tmp_path: Path) -> None:
    """One sentence, nothing half-written, and the folder loads as before."""
    model = save(tmp_path / "m")
    before = sorted(path.name for path in (tmp_path / "m").iterdir())
    with pytest.raises(DragomanError, match="No space left on device"):
        save_model(
            tmp_path / "m",
            EncoderDecoder(TINY),
            FolderConfig(model=TINY),
            tokenizers=(FullDisk(), FullDisk()),
        )
    assert sorted(path.name for path in (tmp_path / "m").iterdir()) == before
    assert torch.equal(logits(load_model(tmp_path / "m")[0]), logits(model))


def test_a_failed_first_saving_leaves_no_folder(tmp_path: Path) -> None:
    """What did not exist before does not exist after."""
    with pytest.raises(DragomanError, match="failed"):
        save_model(
            tmp_path / "m",
            EncoderDecoder(TINY),
            FolderConfig(model=TINY),
            tokenizers=(FullDisk(), FullDisk()),
        )
    assert not (tmp_path / "m").exists()


@pytest.mark.skipif(sys.platform == "win32", reason="there are no resource limits")
def test_a_disk_that_fills_while_the_weights_are_written(tmp_path: Path) -> None:
    """The operating system itself refuses to go on: the older model stays, one sentence is said."""
    save(tmp_path / "m")
    before = {path.name: path.read_bytes() for path in (tmp_path / "m").iterdir()}
    program = f"""
import resource, sys
from pathlib import Path
sys.path.insert(0, {str(Path(__file__).parent)!r})
from test_folder import save
from dragoman.errors import DragomanError
resource.setrlimit(resource.RLIMIT_FSIZE, (4000, resource.RLIM_INFINITY))
try:
    save(Path({str(tmp_path / "m")!r}))
except DragomanError as error:
    print(type(error).__name__, error)
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False, timeout=120
    )
    assert done.stdout.startswith("DragomanError Saving the model"), done.stderr
    assert "too large" in done.stdout
    assert {path.name: path.read_bytes() for path in (tmp_path / "m").iterdir()} == before


def test_a_process_killed_while_saving_does_not_stand_in_the_way(tmp_path: Path) -> None:
    """What it had written is removed by the next saving."""
    save(tmp_path / "m")
    (tmp_path / "m" / ".saving").mkdir()
    (tmp_path / "m" / ".saving" / "model.safetensors").write_text("half")
    model = save(tmp_path / "m")
    assert not (tmp_path / "m" / ".saving").exists()
    assert torch.equal(logits(load_model(tmp_path / "m")[0]), logits(model))


def test_no_folder_can_be_where_a_file_is(tmp_path: Path) -> None:
    """Also further up the path."""
    (tmp_path / "file").write_text("x")
    for folder in (tmp_path / "file", tmp_path / "file" / "m"):
        with pytest.raises(InputError, match="Cannot write the model"):
            save(folder)
    assert (tmp_path / "file").read_text() == "x"


@pytest.mark.skipif(not Path("/proc/self").is_dir(), reason="there is no /proc")
def test_a_folder_that_cannot_be_written_to() -> None:
    """A file system that refuses even the administrator, for whom no permission is missing."""
    with pytest.raises(InputError, match="Cannot write the model to /proc/self/model"):
        save(Path("/proc/self/model"))


# ---------------------------------------------------------------- loading that is refused


def cut_weights(folder: Path) -> None:
    """Take away the end of the weights."""
    path = folder / "model.safetensors"
    path.write_bytes(path.read_bytes()[:-100])


def set_weight(name: str, value: torch.Tensor) -> Callable[[Path], None]:
    """What puts a value among the weights."""
    return lambda folder: edit_weights(folder, lambda weights: weights.update({name: value}))


def set_config(key: str, value: object) -> Callable[[Path], None]:
    """What puts a value into the config."""
    return lambda folder: edit_config(folder, lambda data: data.update({key: value}))


DAMAGES: dict[str, tuple[Callable[[Path], object], str]] = {
    "cut short": (cut_weights, "model.safetensors is damaged or cut short"),
    "not weights": (
        lambda folder: (folder / "model.safetensors").write_text("hello"),
        "model.safetensors is damaged",
    ),
    "empty": (
        lambda folder: (folder / "model.safetensors").write_bytes(b""),
        "model.safetensors is damaged",
    ),
    "no weights": (lambda folder: (folder / "model.safetensors").unlink(), "has no weights"),
    "missing": (
        lambda folder: edit_weights(folder, lambda weights: weights.pop("src_embedding.weight")),
        r"lacks weights that config.json asks for: src_embedding.weight\.",
    ),
    "left over": (
        set_weight("encoder.extra", torch.zeros(1)),
        r"no place for: encoder.extra\.",
    ),
    "shape": (
        set_weight("src_embedding.weight", torch.zeros(13, 8)),
        r"src_embedding.weight has shape \(13, 8\), but config.json makes it \(12, 8\)",
    ),
    "nan": (
        set_weight("src_embedding.weight", torch.full((12, 8), float("nan"))),
        "weights src_embedding.weight hold NaN",
    ),
    "infinity": (
        set_weight("src_embedding.weight", torch.full((12, 8), float("inf"))),
        "src_embedding.weight hold NaN or infinity",
    ),
    "newer": (set_config("format", 2), r"format 2, made by a newer dragoman .*upgrade"),
    "no format": (set_config("format", None), "no format number"),
    "unknown key": (set_config("decodin", {}), "decodin; did you mean decoding"),
    "another kind": (
        lambda folder: edit_config(folder, lambda data: data["model"].update(kind="encoder")),  # type: ignore[attr-defined]
        "model.kind must be",
    ),
    "not JSON": (
        lambda folder: (folder / "config.json").write_text("{"),
        "config.json is damaged: it is not JSON",
    ),
    "not UTF-8": (
        lambda folder: (folder / "config.json").write_bytes(b"\xff\xfe"),
        "config.json is damaged",
    ),
    "wrong tokenizer": (
        lambda folder: (folder / "tokenizer.json").write_text("[]"),
        "tokenizer.json is not the tokenizer that the weights were trained with",
    ),
    "no tokenizer": (lambda folder: (folder / "tokenizer.json").unlink(), "Cannot read"),
    "no tokenizer named": (set_config("tokenizers", {}), "tokenizers must name tokenizer.json"),
}


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model folder to damage copies of."""
    folder = tmp_path_factory.mktemp("model")
    save(folder)
    return folder


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_folder_is_refused_in_one_sentence(
    whole: Path, tmp_path: Path, damage: str
) -> None:
    """The sentence names the file and what is wrong with it."""
    folder = shutil.copytree(whole, tmp_path / "m")
    spoil, sentence = DAMAGES[damage]
    spoil(folder)
    with pytest.raises(InputError, match=sentence) as caught:
        load_model(folder)
    assert "\n" not in str(caught.value)
    assert str(folder) in str(caught.value)


def test_tokenizers_of_another_saving_are_refused(whole: Path, tmp_path: Path) -> None:
    """A process killed between two renames leaves no mixture that loads."""
    folder = shutil.copytree(whole, tmp_path / "m")
    save(tmp_path / "other", words="[1]")
    shutil.copy(tmp_path / "other" / "tokenizer.json", folder)
    shutil.copy(tmp_path / "other" / "model.safetensors", folder)
    with pytest.raises(InputError, match="not the tokenizer"):
        load_model(folder)


def test_a_folder_that_is_none_says_what_it_is(whole: Path, tmp_path: Path) -> None:
    """Missing (with the nearest name), a file, an unfinished run, something else."""
    shutil.copytree(whole, tmp_path / "en-zh")
    (tmp_path / "run" / "training").mkdir(parents=True)
    (tmp_path / "other").mkdir()
    for name, sentence in {
        "en-hz": "There is no model folder .*en-hz; did you mean .*en-zh?",
        "quite/else": r"There is no model folder .*else\.",
        "en-zh/config.json": "is a file; give the model folder",
        "run": "holds a training run that has not written a model yet",
        "other": "is no model folder",
    }.items():
        with pytest.raises(InputError, match=sentence):
            load_model(tmp_path / name)
