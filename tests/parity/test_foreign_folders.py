"""Folders as Hugging Face writes them load unchanged; other folders are refused."""

from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from tests.parity.foreign import assert_same_logits, make_named, random_ids, run
from tests.parity.foreign_sizes import FSMT, T5
from tests.parity.test_foreign_files import SMALL
from torch import Tensor
from transformers import PreTrainedModel

from dragoman.errors import InputError
from dragoman.folder.foreign.files import read_checkpoint
from dragoman.folder.foreign.marian import LAYER
from dragoman.folder.format import ORIGIN
from dragoman.folder.opening import ModelFolder, open_folder
from dragoman.folder.origin import give_back, keep_origin
from dragoman.models import Model


@cache
def theirs(name: str) -> PreTrainedModel:
    """Return one of their small models in fp32."""
    return make_named(*SMALL[name], torch.float32)


def saved(name: str, folder: Path, **how: object) -> Path:
    """Save it with their code."""
    theirs(name).save_pretrained(folder, **how)
    return folder


def both_logits(folder: Path, wanted: PreTrainedModel) -> tuple[Tensor, Tensor]:
    """Return the logits of the model in a folder, and theirs."""
    return logits_of(open_folder(folder).load(), wanted)


def logits_of(model: Model, wanted: PreTrainedModel) -> tuple[Tensor, Tensor]:
    """Return the logits of our model, and theirs."""
    assert not model.training
    ids = random_ids(6, 28, 2, 9)
    if not wanted.config.is_encoder_decoder:
        return model(ids), run(wanted, input_ids=ids)
    return model(ids, ids), run(wanted, input_ids=ids, decoder_input_ids=ids)


def kept(folder: Path, ours: Path) -> ModelFolder:
    """Open their folder, and write what our folder keeps of it into `ours`."""
    opened = open_folder(folder)
    (ours / ORIGIN).mkdir(parents=True)
    for name, content in keep_origin(opened, opened.model.state_dict()).items():
        content.save(ours / name)
    return opened


@torch.no_grad()
def test_a_new_t5_without_ties_has_the_embedding_as_its_output(tmp_path: Path) -> None:
    """`transformers` ties it nevertheless, saves no output matrix, and does not scale."""
    keys = T5 | {"feed_forward_proj": "gated-gelu", "tie_word_embeddings": False}
    model = make_named("T5ForConditionalGeneration", keys, torch.float32)
    model.save_pretrained(tmp_path)
    assert "lm_head.weight" not in load_file(tmp_path / "model.safetensors")
    wanted = type(model).from_pretrained(tmp_path).eval()
    assert_same_logits(*both_logits(tmp_path, wanted))


@pytest.mark.parametrize(
    ("kind", "keys"),
    [
        ("T5ForConditionalGeneration", {}),
        ("T5ForConditionalGeneration", {"tie_word_embeddings": False}),
        ("MT5ForConditionalGeneration", {}),  # whose published files have two matrices nevertheless
        ("UMT5ForConditionalGeneration", {}),
    ],
)
@torch.no_grad()
def test_an_output_of_its_own_is_taken_whatever_t5_says_of_ties(
    kind: str, keys: dict[str, Any], tmp_path: Path
) -> None:
    """`transformers` ties only equal matrices, and scales by the config; ours converts back."""
    folder, ours = tmp_path / "theirs", tmp_path / "ours"
    made = make_named(kind, T5 | keys, torch.float32)
    made.save_pretrained(folder)
    stored = load_file(folder / "model.safetensors")
    stored["lm_head.weight"] = torch.randn_like(stored["shared.weight"])
    save_file(stored, folder / "model.safetensors", {"format": "pt"})
    wanted = type(made).from_pretrained(folder).eval()
    assert torch.equal(wanted.lm_head.weight, stored["lm_head.weight"])
    assert_same_logits(*both_logits(folder, wanted))
    opened = kept(folder, ours)
    back, _ = give_back(ours / ORIGIN, opened.model.state_dict(), opened.config.model)
    assert all(torch.equal(back[name], tensor) for name, tensor in stored.items())


def test_what_fsmt_would_compute_otherwise_is_refused(tmp_path: Path) -> None:
    """Its class uses a stored table of positions, which may be learned; and one width per stack."""
    make_named("FSMTForConditionalGeneration", FSMT, torch.float32).save_pretrained(tmp_path)
    file = tmp_path / "model.safetensors"
    stored = load_file(file)
    table, matrix = "model.encoder.embed_positions.weight", "model.decoder.layers.1.fc1.weight"
    assert table in stored
    for name, changed, said in (
        (table, stored[table] + 0.01, "holds learned positions, but FSMT is read with sinusoids"),
        (table, stored[table][:, :7], "holds learned positions"),
        (
            matrix,
            stored[matrix][:-1],
            r"has the shape \(19, 12\), but the config makes it \(20, 12\)",
        ),
    ):
        save_file({**stored, name: changed.contiguous()}, file, {"format": "pt"})
        with pytest.raises(InputError, match=rf"{tmp_path.name}: {name} {said}"):
            open_folder(tmp_path).load()
    moved = stored[table].clone()
    moved[FSMT.get("pad_token_id", 1)] = 1.0  # the row of padding, which is not used
    save_file({**stored, table: moved.half()}, file, {"format": "pt"})
    open_folder(tmp_path).load()


OPTIONS: dict[str, Any] = {
    "type": "transformer",
    "transformer-ffn-activation": "swish",
    "transformer-preprocess": '""',
    "transformer-postprocess": "dan",
    "transformer-postprocess-emb": "d",
    "transformer-tied-layers": "\n  []",
    "tied-embeddings-all": "true",
    "dim-vocabs": "\n  - 28\n  - 28",
}


def as_npz(folder: Path, model: PreTrainedModel, **options: str) -> Path:
    """Write Marian's own file of a model, with our table reversed."""
    state, shared = model.state_dict(), model.config.share_encoder_decoder_embeddings
    arrays = {"decoder_ff_logit_out_b": state["final_logits_bias"][:, :-1]}
    embeddings = {"Wemb": "shared"} if shared else {
        f"{stack}_Wemb": f"{stack}.embed_tokens" for stack in ("encoder", "decoder")
    }  # fmt: skip
    arrays |= {name: state[f"model.{place}.weight"][:-1] for name, place in embeddings.items()}
    sizes = model.config
    for stack in ("encoder", "decoder"):
        for layer in range(getattr(sizes, f"{stack}_layers")):
            for name, place in LAYER.items():
                tensor = state.get(f"model.{stack}.layers.{layer}.{place}")
                if tensor is not None:
                    arrays[f"{stack}_l{layer + 1}_{name}"] = (
                        tensor.T if tensor.dim() == 2 else tensor[None]
                    )
    given = {
        "dim-emb": sizes.d_model,
        "enc-depth": sizes.encoder_layers,
        "dec-depth": sizes.decoder_layers,
        "transformer-heads": sizes.encoder_attention_heads,
        "transformer-dim-ffn": sizes.encoder_ffn_dim,
    }
    given |= OPTIONS | options
    text = "".join(f"{key}: {value}\n" for key, value in given.items()) + "\0"
    folder.mkdir(exist_ok=True)
    values: dict[str, Any] = {name: array.numpy() for name, array in arrays.items()}
    values["special:model.yml"] = np.frombuffer(text.encode(), np.int8)
    np.savez(folder / "model.npz", **values)
    (folder / "opus.vocab.yml").write_text('"<unk>": 1\n</s>: 7\n')
    (folder / "decoder.yml").write_text("beam-size: 4\nnormalize: 1\n")
    return folder


@pytest.mark.parametrize("name", ["marian", "marian-two"])
@torch.no_grad()
def test_marians_own_file_gives_the_same_logits(name: str, tmp_path: Path) -> None:
    """Matrices are transposed, padding is a row of zeros, and the vocabulary gives eos."""
    model = theirs(name)
    for part in {model.model.get_input_embeddings(), model.model.decoder.embed_tokens}:
        part.weight[-1] = 0.0
    model.final_logits_bias[:, -1] = 0.0
    options = {"tied-embeddings-all": "false", "tied-embeddings": "true"} if "two" in name else {}
    options["transformer-ffn-activation"] = model.config.activation_function
    folder = as_npz(tmp_path, model, **options)
    hf, _ = read_checkpoint(folder)
    assert (hf["pad_token_id"], hf["eos_token_id"], hf["num_beams"]) == (28, 7, 4)
    assert_same_logits(*both_logits(folder, model))


@pytest.mark.parametrize(("cut", "rows"), [("encoder_Wemb", 28), ("decoder_Wemb", 25)])
@torch.no_grad()
def test_two_vocabularies_of_marian_may_differ_in_size(cut: str, rows: int, tmp_path: Path) -> None:
    """The smaller is filled up with ids that no source has and no target can have."""
    model = theirs("marian-two")
    options = {"tied-embeddings-all": "false", "tied-embeddings": "true"}
    options["transformer-ffn-activation"] = model.config.activation_function
    options["dim-vocabs"] = "\n  - 25\n  - 28" if cut[0] == "e" else "\n  - 28\n  - 25"
    file = as_npz(tmp_path, model, **options) / "model.npz"
    with np.load(file) as stored:
        arrays = dict(stored)
    bias = "decoder_ff_logit_out_b"
    arrays |= {cut: arrays[cut][:25], bias: arrays[bias][:, :rows]}
    np.savez(file, **arrays)
    src, tgt = torch.randint(3, 25, (2, 3, 9)).unbind()
    ours: Any = open_folder(tmp_path).load()
    logits, wanted = ours(src, tgt), model(input_ids=src, decoder_input_ids=tgt).logits
    torch.testing.assert_close(logits[..., :rows], wanted[..., :rows].float(), rtol=1e-4, atol=1e-4)
    assert bool((logits.softmax(-1)[..., 25:] == 0).all()) == (rows == 25)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("type", "s2s"),
        ("transformer-preprocess", "n"),
        ("transformer-decoder-autoreg", "average-attention"),
        ("transformer-ffn-activation", "gelu"),
        ("transformer-tied-layers", "\n  - 1\n  - 1"),
        ("tied-embeddings-all", "false"),
        ("enc-depth", "many"),
    ],
)
def test_options_of_marian_that_we_lack_are_named(key: str, value: str, tmp_path: Path) -> None:
    """One option is changed, and the error names it."""
    folder = as_npz(tmp_path, theirs("marian"), **{key: value})
    with pytest.raises(InputError, match=key.replace("-all", "")):
        open_folder(folder).load()
