"""What a translator keeps of its folder, and which requests share a batch."""

import gc
import json
import os
import shutil
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from tests.processors import needs_compiler
from tests.unit.tasks.readers import CLASSIFY, save_reader
from tests.unit.tasks.tiny import save_another, save_translator
from tests.unit.tasks.tiny_generator import save_generator
from torch import Tensor
from torch.nn import Parameter

from dragoman.decoding import TRANSLATING, Decoding, merged
from dragoman.folder.opening import Lender, ModelFolder, open_folder
from dragoman.folder.rereading import FolderFault
from dragoman.models import DecoderOnly, EncoderDecoder
from dragoman.models.build import Model
from dragoman.nn import Arithmetic
from dragoman.tasks.held import Held, held_bytes
from dragoman.tasks.loading import load
from dragoman.tasks.options import key_of


@needs_compiler
def test_a_model_that_was_read_is_not_read_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A model in memory is used; otherwise the weights are only lent, and read on demand."""
    folder = open_folder(save_translator(tmp_path / "m"))
    held = Held.read(folder, EncoderDecoder, "fp32")
    assert "model" not in vars(folder)
    assert held.whole().output.weight.device.type == "cpu"
    assert "model" in vars(folder)
    monkeypatch.delattr(ModelFolder, "lend_to")
    assert Held.read(folder, EncoderDecoder, "fp32").shape.output.weight.device.type == "cpu"


@needs_compiler
@pytest.mark.filterwarnings("ignore:.*was written by an older dragoman")
@pytest.mark.parametrize("number", [1, 2])
@pytest.mark.parametrize(
    ("save", "kind"), [(save_translator, EncoderDecoder), (save_generator, DecoderOnly)]
)
def test_a_model_is_read_again_only_where_it_is_the_same(
    tmp_path: Path, save: Callable[[Path], Path], kind: type[EncoderDecoder], number: int
) -> None:
    """Changes are detected by hash, or by file times in older folders without one."""

    def age() -> None:
        config = json.loads((path / "config.json").read_text("utf-8")) | {"format": number}
        if number == 1:
            del config["weights_sha256"], config["model_sha256"]
        (path / "config.json").write_text(json.dumps(config), "utf-8")

    path = save(tmp_path / "m")
    age()
    held = Held.read(open_folder(path), kind, "fp32")
    shutil.move(path, kept := tmp_path / "kept")
    with pytest.raises(FolderFault, match="There is no model folder"):
        held.whole()
    shutil.copytree(kept, path)
    save_another(path)
    age()
    for _ in range(2):
        with pytest.raises(FolderFault, match=r"m has changed since its model was loaded; .*"):
            held.whole()
    shutil.rmtree(path)
    shutil.copytree(kept, path)
    if number == 2:
        assert held.whole().output.weight.device.type == "cpu"


def tensors() -> dict[int, tuple[int, object]]:
    """Return the bytes of all tensors in this process, by the address of their data."""
    gc.collect()
    known = [each for each in gc.get_objects() if type(each) in {Tensor, Parameter}]
    here = [each for each in known if each.device.type == "cpu"]
    found: dict[int, tuple[int, object]] = {
        id(each): (each.numel() * each.element_size(), each) for each in here if each.is_mkldnn
    }
    stored = (each.untyped_storage() for each in here if not each.is_mkldnn)
    return found | {each.data_ptr(): (each.nbytes(), each) for each in stored}


@needs_compiler
@pytest.mark.parametrize(
    ("save", "arithmetic"),
    [
        (save_translator, "fp32"),
        (save_generator, "int8"),
        (partial(save_reader, head=CLASSIFY), "int8"),
    ],
)
def test_the_bytes_of_a_folder_are_known_before_it_is_loaded(
    tmp_path: Path, save: Callable[[Path], Path], arithmetic: Arithmetic
) -> None:
    """The estimate excludes the scales of int8, which matter only for such small matrices."""
    path = save(tmp_path / "m")
    said, before = held_bytes(open_folder(path), arithmetic, "cpu"), tensors()  # keeps them alive
    loaded = load(path, device="cpu", precision=arithmetic)
    held = sum(count for place, (count, _) in tensors().items() if place not in before)
    assert said <= held <= said * (1.02 if arithmetic == "fp32" else 1.3), loaded


def test_what_is_lent_is_of_one_save(tmp_path: Path) -> None:
    """If the file is replaced during loading, it is read again."""
    path = save_translator(tmp_path / "m")
    weights, calls = path / "model.safetensors", list[Model]()

    def make(model: Model, _lend: Lender) -> int:
        if not calls:
            (path / "new").write_bytes(weights.read_bytes())
            os.replace(path / "new", weights)  # noqa: PTH105 -- as a save does
        calls.append(model)
        return len(calls)

    assert open_folder(path).lend_to(make) == 2


def test_requests_with_processors_share_no_batch() -> None:
    """Processors are arbitrary callables: they are neither compared nor combined."""
    own = [Decoding(processors=(lambda logits, _: logits,)) for _ in range(2)]
    assert key_of(own[0]) != key_of(Decoding(processors=own[0].processors))
    assert key_of(own[0]) == key_of(own[0])
    assert key_of(merged(TRANSLATING)) == key_of(merged(TRANSLATING))
