"""Marian's own folder, `model.npz` and its files: the same texts as its Hugging Face folder."""

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tests.foreign_folders import SENTENCES, noisy, set_keys, spm, without_special
from tests.parity.test_foreign_folders import as_npz
from tests.parity.test_foreign_texts import LINES, make_folder, their_texts
from transformers import MarianMTModel, MarianTokenizer

import dragoman
from dragoman.convert.published import hand_back, take_over
from dragoman.errors import InputError
from dragoman.folder.foreign.tokenizers import read_tokenizers
from dragoman.tasks.folders import read_folder

pytestmark = pytest.mark.filterwarnings("ignore:Recommended")  # from a punctuation package


def their_folder(folder: Path) -> MarianMTModel:
    """Write a model like OPUS-MT's: SiLU, and a zero row of padding after the vocabulary."""
    made = make_folder(folder, "marian")
    set_keys(folder, activation_function="swish")
    model = MarianMTModel.from_pretrained(folder).eval()
    with torch.no_grad():
        model.get_input_embeddings().weight[-1] = 0.0
        model.final_logits_bias[:, -1] = 0.0
    words = [[made.config.pad_token_id]]
    model.generation_config = made.generation_config
    model.generation_config.update(num_beams=4, bad_words_ids=words)
    model.save_pretrained(folder)
    return model


def own_folder(folder: Path, model: MarianMTModel, theirs: Path) -> Path:
    """Write the same in Marian's format, as OPUS-MT publishes it."""
    as_npz(folder, model)
    for name in ("source.spm", "target.spm"):
        shutil.copy(theirs / name, folder)
    vocab = json.loads((theirs / "vocab.json").read_text())
    lines = (f"{json.dumps(p)}: {i}\n" for p, i in vocab.items() if p != "<pad>")
    (folder / "opus.vocab.yml").write_text("".join(lines), "utf-8")
    said = "relative-paths: true\nvocabs:\n  - opus.vocab.yml\n  - opus.vocab.yml\nbeam-size: 4\n"
    (folder / "decoder.yml").write_text(said, "utf-8")
    return folder


@pytest.fixture
def own(tmp_path: Path) -> Path:
    """A folder in Marian's format."""
    return own_folder(tmp_path / "own", their_folder(tmp_path / "theirs"), tmp_path / "theirs")


def texts_of(folder: Path) -> list[str]:
    """Return our translations, with the same length limit as theirs."""
    translator = dragoman.load(folder, device="cpu")
    options = replace(translator.options, retry=False, split_sentences=False)
    options = replace(options, max_length_factor=0.0, max_length_constant=15)
    assert options.beam_size == 4
    return [found.text for found in translator.translate(LINES[:12], options=options)]


def test_marians_own_folder_translates_as_that_of_hugging_face(tmp_path: Path) -> None:
    """Directly, and converted to our folder, whose weights can be given back to the class."""
    model = their_folder(tmp_path / "theirs")
    own = own_folder(tmp_path / "own", model, tmp_path / "theirs")
    ends = {"forced_eos_token_id": model.config.eos_token_id}  # as in all OPUS-MT folders
    wanted = their_texts(tmp_path / "theirs", "marian", model, LINES[:12], **ends)
    assert texts_of(own) == wanted
    worst = take_over(own, tmp_path / "ours")
    assert worst is not None
    assert worst <= 1e-5
    shutil.rmtree(own)
    assert texts_of(tmp_path / "ours") == wanted
    hand_back(read_folder(tmp_path / "ours", device="cpu"), tmp_path / "back", "5GB")
    assert texts_of(tmp_path / "back") == wanted
    again = MarianMTModel.from_pretrained(tmp_path / "back").state_dict()
    for name, tensor in model.state_dict().items():
        assert torch.equal(again[name], tensor), name


def test_a_model_of_sentencepiece_has_the_ids_of_its_pieces(tmp_path: Path) -> None:
    """Marian with built-in SentencePiece: no separate vocabulary, padding after the pieces."""
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "vocab.spm").write_bytes(model := spm("unigram", 500))
    (theirs := tmp_path / "theirs").mkdir()
    for name in ("source.spm", "target.spm"):
        (theirs / name).write_bytes(model)
    from sentencepiece import SentencePieceProcessor

    pieces = SentencePieceProcessor(model_proto=model)
    vocab = {pieces.id_to_piece(id_): id_ for id_ in range(len(pieces))} | {"<pad>": len(pieces)}
    (theirs / "vocab.json").write_text(json.dumps(vocab))
    config = {"model_type": "marian", "pad_token_id": len(pieces)}
    ours, tgt = read_tokenizers(tmp_path / "own", config)
    assert (ours.pad_id, ours.eos_id, ours.vocab_size) == (len(pieces), 2, len(pieces) + 1)
    their = MarianTokenizer.from_pretrained(theirs)
    for line in without_special(noisy(SENTENCES, 240)):
        wanted = their(line).input_ids
        assert [*ours.encode(line), ours.eos_id] == wanted, line
        assert tgt.decode(wanted) == their.decode(wanted, skip_special_tokens=True), line


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("source.spm", r"no source.spm: opus.vocab.yml numbers the pieces"),
        ("opus.vocab.yml", r"lacks opus.vocab.yml, which its decoder.yml names"),
        ("more", r"opus.vocab.yml has more pieces than the 269 of the model"),
    ],
)
def test_half_a_folder_of_marian_is_refused(change: str, message: str, own: Path) -> None:
    """The missing or mismatched file is named."""
    if change == "more":
        with (own / "opus.vocab.yml").open("a") as file:
            file.write("more: 269\n")
    else:
        (own / change).unlink()
    with pytest.raises(InputError, match=message):
        dragoman.load(own, device="cpu")


Arrays = dict[str, Any]
PACK: dict[str, Callable[..., None]] = {
    "compressed": np.savez_compressed,
    "pickled": partial(np.savez, allow_pickle=True),
}
CHANGED: dict[str, tuple[Callable[[Arrays], Arrays], str]] = {
    "compressed": (lambda _: {}, r"model\.npz is compressed; write it again by numpy\.savez"),
    "pickled": (lambda _: {"more": np.array([{}], dtype=object)}, "Object arrays cannot be loaded"),
    "integers": (lambda a: {"Wemb": a["Wemb"].astype("i4")}, "Wemb holds int32"),
    "a row": (lambda a: {"Wemb": a["Wemb"][0]}, "Wemb"),
    "a number": (lambda _: {"Wemb": np.float32(0)}, "Wemb"),
    "no biases": (lambda _: {"decoder_ff_logit_out_b": np.float32(0)}, "own"),
}


@pytest.mark.parametrize("case", CHANGED)
def test_arrays_of_another_kind_are_refused(case: str, own: Path) -> None:
    """There is one sentence for pickled or compressed arrays, and for other shapes and types."""
    with np.load(own / "model.npz") as stored:
        arrays = dict(stored)
    change, message = CHANGED[case]
    PACK.get(case, np.savez)(own / "model.npz", **arrays | change(arrays))
    with pytest.raises(InputError, match=message):
        read_folder(own, device="cpu").load()


def test_the_state_of_the_optimizer_is_no_second_model(own: Path) -> None:
    """Marian's training leaves it next to the model; other checkpoints there are named."""
    np.savez(own / "model.npz.optimizer.npz", adam_mt=np.zeros(1))
    assert read_folder(own, device="cpu").config.model.d_model == 32
    shutil.copy(own / "model.npz", own / "model.iter9000.npz")
    with pytest.raises(InputError, match=r"2 models, .*iter9000\.npz, .*model\.npz; leave one"):
        read_folder(own, device="cpu")
    with pytest.raises(InputError, match=r"is a file; give the model folder, which holds it"):
        read_folder(own / "model.npz", device="cpu")


def test_numbers_of_the_other_byte_order_are_the_same(own: Path) -> None:
    """The file may come from a big-endian machine."""
    wanted = read_folder(own, device="cpu").model.state_dict()
    with np.load(own / "model.npz") as stored:
        arrays = {n: a.astype(">f4") if a.dtype.kind == "f" else a for n, a in stored.items()}
    np.savez(own / "model.npz", **arrays)
    found = read_folder(own, device="cpu").model.state_dict()
    assert all(torch.equal(found[name], wanted[name]) for name in wanted)


def test_more_arrays_than_a_model_has_are_refused(
    own: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are counted before any is read."""
    monkeypatch.setattr(import_module("dragoman.models.build"), "MOST_TENSORS", 9)
    with pytest.raises(InputError, match=r"model\.npz has more than 9 tensors"):
        read_folder(own, device="cpu").load()
