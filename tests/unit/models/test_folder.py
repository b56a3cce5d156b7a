"""The model folder: what is saved loads again, and a failed save changes nothing."""

import errno
import json
import os
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file
from tests.disk import Disk
from tests.unit.data.killing import moments
from tests.unit.models.family import DECODERS, ENCODERS
from tests.unit.models.saved import JOINT, TINY, Words, logits, save
from tests.unit.train.made import file_size_limit

from dragoman.decoding import Decoding
from dragoman.errors import DragomanError, InputError
from dragoman.folder.format import FolderConfig, save_model
from dragoman.folder.opening import open_folder
from dragoman.models import EncoderDecoder, EncoderDecoderConfig, ModelConfig, build
from dragoman.models.config import Tying

TYINGS: tuple[Tying, ...] = ("none", "target-output", "source-target", "all")
SAVED: dict[str, ModelConfig] = {
    **{name: replace(TINY, tie_embeddings=name, output_bias=True) for name in TYINGS},
    **DECODERS,
    **ENCODERS,
}


@pytest.mark.parametrize("config", SAVED.values(), ids=SAVED)
def test_what_is_saved_loads_again(tmp_path: Path, config: ModelConfig) -> None:
    """Config and logits bit for bit, in evaluation mode; shared matrices are stored once."""
    model = build(config).eval()
    save_model(tmp_path / "m", model, FolderConfig(model=config), tokenizers=JOINT)
    opened = open_folder(tmp_path / "m")
    loaded, ids_BL = opened.model, torch.tensor([[5, 6, 3]])
    sides = (ids_BL, ids_BL) if isinstance(config, EncoderDecoderConfig) else (ids_BL,)
    assert opened.config.model == config
    assert torch.equal(loaded(*sides), model(*sides))
    assert not loaded.training
    stored = load_file(tmp_path / "m" / "model.safetensors")
    names = [name for name, _ in model.named_parameters()]
    assert set(stored) == {*names}
    assert [name for name, _ in loaded.named_parameters()] == names


def test_a_state_dict_saves_the_same_model(tmp_path: Path) -> None:
    """Averaged weights, whose tied matrices are separate copies, work in any float precision."""
    model = EncoderDecoder(TINY)
    copies = {name: value.double() for name, value in model.state_dict().items()}
    save_model(tmp_path / "m", copies, FolderConfig(model=TINY), tokenizers=JOINT)
    assert torch.equal(logits(open_folder(tmp_path / "m").model), logits(model))


def test_the_config_says_everything_and_is_sorted(tmp_path: Path) -> None:
    """Languages, decoding, format, version and the tokenizer's hash are kept; keys are sorted."""
    decoding = Decoding(beam_size=3, length_penalty=0.6)
    config = FolderConfig(model=TINY, decoding=decoding, src_lang="en", tgt_lang="zh")
    words = Words()
    written = save_model(
        tmp_path / "m", EncoderDecoder(TINY), config, tokenizers=(words, words), card="# Card\n"
    )
    assert open_folder(tmp_path / "m").config == written
    assert (written.decoding, written.src_lang, written.tgt_lang) == (decoding, "en", "zh")
    assert list(written.tokenizers) == ["tokenizer.json"]
    assert (tmp_path / "m" / "README.md").read_text() == "# Card\n"
    data = json.loads((tmp_path / "m" / "config.json").read_text())
    assert list(data) == sorted(data)
    assert list(data["model"]) == sorted(data["model"])


def test_two_tokenizers_replace_one_and_back(tmp_path: Path) -> None:
    """A folder has tokenizer.json or the two files, never leftovers of the other layout."""
    model, config = EncoderDecoder(TINY), FolderConfig(model=TINY)
    for src, tgt, names in (
        (Words(), Words("[]"), {"tokenizer.src.json", "tokenizer.tgt.json"}),
        (joint := Words(), joint, {"tokenizer.json"}),
    ):
        save_model(tmp_path, model, config, tokenizers=(src, tgt))
        assert {path.name for path in tmp_path.glob("tokenizer*")} == names
        assert {path.name for path in open_folder(tmp_path).tokenizer_paths()} == names


def test_a_loaded_model_needs_its_files_no_more(tmp_path: Path) -> None:
    """Its weights are its own: changing the file in place changes nothing."""
    model = save(tmp_path / "m")
    loaded = open_folder(tmp_path / "m").model
    with (tmp_path / "m" / "model.safetensors").open("r+b") as weights:
        weights.write(bytes((tmp_path / "m" / "model.safetensors").stat().st_size))
    assert torch.equal(logits(loaded), logits(model))


def test_loading_draws_no_random_number(tmp_path: Path) -> None:
    """A model may be loaded in the middle of a reproducible run."""
    save(tmp_path / "m")
    state = torch.get_rng_state()
    open_folder(tmp_path / "m").load()
    assert torch.equal(torch.get_rng_state(), state)


def test_every_file_may_be_read_by_whom_the_folder_may(tmp_path: Path) -> None:
    """The weights have the mode of the other files, not that of a private temporary file."""
    save(tmp_path / "m")
    assert len({path.stat().st_mode for path in (tmp_path / "m").iterdir()}) == 1


def test_a_folder_keeps_what_else_it_holds(tmp_path: Path) -> None:
    """Saving again replaces the model and leaves the training run next to it alone."""
    (tmp_path / "training").mkdir()
    (tmp_path / "training" / "state").write_text("x")
    save(tmp_path)
    model = save(tmp_path)
    assert torch.equal(logits(open_folder(tmp_path).model), logits(model))
    assert (tmp_path / "training" / "state").read_text() == "x"
    assert not (tmp_path / ".saving").exists()


@pytest.mark.skipif(sys.platform == "win32", reason="there are no resource limits")
def test_a_disk_that_fills_while_the_weights_are_written(tmp_path: Path) -> None:
    """The older model stays, or no folder if there was none; one sentence reports it."""
    save(tmp_path / "m")
    before = {path.name: path.read_bytes() for path in (tmp_path / "m").iterdir()}
    for name in ("m", "new"):
        full = pytest.raises(DragomanError, match=r"^Saving the model .*too large")
        with file_size_limit(4000), full:
            save(tmp_path / name)
    assert [path.name for path in tmp_path.iterdir()] == ["m"]
    assert {path.name: path.read_bytes() for path in (tmp_path / "m").iterdir()} == before


def test_files_are_on_the_disk_before_they_have_their_names(tmp_path: Path, disk: Disk) -> None:
    """The first config comes last; later ones precede the weights, and know the old ones."""
    config = FolderConfig(model=TINY)
    save_model(tmp_path / "m", EncoderDecoder(TINY), config, tokenizers=JOINT, card="# Card\n")
    tokenizers = ["tokenizer.src.json", "tokenizer.tgt.json"]
    disk.assert_renamed(*tokenizers, "README.md", "model.safetensors", "config.json")
    disk.clear()
    save_model(tmp_path / "m", EncoderDecoder(TINY), config, tokenizers=JOINT)
    disk.assert_renamed(*tokenizers, "config.json", "model.safetensors")


def test_a_disk_that_fails_when_it_is_synced_leaves_the_older_model(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Some disks are full only then; nothing has been renamed yet, whichever file fails."""
    model, fsync = save(tmp_path / "m"), os.fsync

    def fail_at(name: str) -> None:
        staged = tmp_path / "m" / ".saving" / name

        def fail(descriptor: int) -> None:
            if staged.exists() and os.path.samestat(os.fstat(descriptor), staged.stat()):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            fsync(descriptor)

        monkeypatch.setattr(os, "fsync", fail)

    for name in ("tokenizer.json", "model.safetensors", "config.json"):
        fail_at(name)
        with pytest.raises(DragomanError, match="No space left"):
            save(tmp_path / "m", words="[]")
        assert torch.equal(logits(open_folder(tmp_path / "m").model), logits(model))


WRITES = """
import shutil, sys
sys.path.insert(0, sys.argv[2])
from dataclasses import replace
from pathlib import Path
import torch
from dragoman.errors import InputError
from dragoman.folder.opening import open_folder
from tests.unit.models.saved import TINY, logits, save
folder, kept = Path(sys.argv[1]), Path(sys.argv[1]).with_name("kept")
same = sys.argv[3] == "same"
config, words = (TINY, "{}") if same else (replace(TINY, num_heads=4), "[1]")
old = logits(save(kept))
def before():
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(kept, folder)
def write():
    torch.manual_seed(1)
    save(folder, config, words, eight_bits=not same)
    return logits(open_folder(folder).model)
def check():
    try:
        found = logits(open_folder(folder).model)
        assert any(torch.equal(found, model) for model in (old, saved))
    except InputError as error:
        assert not same and ("not the" in str(error) or "32-bit" in str(error)), error
    assert torch.equal(write(), saved)
    assert not (folder / ".saving").exists()
saved = write()
"""


@pytest.mark.parametrize("model", ["same", "other"])
def test_killed_at_every_change_of_a_file(tmp_path: Path, model: str) -> None:
    """The weights are the old or the new ones, or are refused if another model's are in 8 bits."""
    assert moments(WRITES, tmp_path / "m", Path(__file__).parents[3], model) > 10


def test_a_model_can_be_loaded_while_it_is_saved(tmp_path: Path) -> None:
    """A reader gets the old weights or the new ones at any time."""
    models, found = [save(tmp_path / "m")], []
    with ThreadPoolExecutor(1) as thread:
        saving = thread.submit(lambda: [save(tmp_path / "m") for _ in range(12)])
        while not saving.done():
            found.append(logits(open_folder(tmp_path / "m").model))
        models += saving.result()
    saved = {tuple(logits(model).flatten().tolist()) for model in models}
    assert {tuple(each.flatten().tolist()) for each in found} <= saved


def test_a_path_that_is_not_utf8_is_no_damage(tmp_path: Path) -> None:
    """A folder that was moved there is whole, but safetensors cannot open it."""
    save(tmp_path / "m")
    moved = (tmp_path / "m").rename(tmp_path / "caf\udce9")
    with pytest.raises(InputError, match="is not UTF-8"):
        open_folder(moved).model.eval()


def test_no_folder_can_be_where_a_file_is(tmp_path: Path) -> None:
    """Neither further up the path, nor where even the administrator cannot write."""
    (tmp_path / "file").write_text("x")
    for folder in (tmp_path / "file", tmp_path / "file" / "m", Path("/proc/self/model")):
        with pytest.raises(InputError, match="Cannot write the model"):
            save(folder)
    assert (tmp_path / "file").read_text() == "x"
