"""Folders of sentence-transformers: the vectors of BERT's class, pooled as their files say."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import save_file
from tests.foreign_folders import SENTENCES, set_keys
from tests.parity.test_foreign_answers import DISTIL, ENCODER, HARD, LINES, make
from tests.parity.test_foreign_texts import read_tokenizer
from tests.processors import ROUNDING, needs_independent_rows
from tests.system.cli.command import Run

import dragoman
from dragoman.convert.published import take_over
from dragoman.convert.targets import convert
from dragoman.errors import InputError
from dragoman.folder.opening import open_folder

TEXTS = ["", *LINES, *HARD, " ".join(SENTENCES)]
MODES = {
    "mean": "pooling_mode_mean_tokens",
    "cls": "pooling_mode_cls_token",
    "max": "pooling_mode_max_tokens",
    "lasttoken": "pooling_mode_lasttoken",
}
LONGEST = 40
ST = "sentence_transformers.models"


def write(path: Path, content: object) -> None:
    """Write a JSON file, and its folder."""
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(content))


XLM_R = {**ENCODER, "pad_token_id": 1, "type_vocab_size": 1}
KINDS: Mapping[str, tuple[str, str, Mapping[str, Any]]] = {
    "bert": ("bert", "BertModel", ENCODER),
    "xlm-r": ("xlm-roberta", "XLMRobertaModel", XLM_R),  # bge-m3, multilingual-e5
    "xlm-r-pieces": ("xlm-roberta", "BertModel", ENCODER),  # paraphrase-multilingual-MiniLM
    "camembert": ("camembert", "CamembertModel", XLM_R),
    "mpnet": ("roberta", "MPNetModel", XLM_R),
    "modernbert": ("roberta", "ModernBertModel", {**XLM_R, "local_attention": 6}),
    "bert-headless": ("bert", "BertModel", ENCODER),
    "distilbert": ("bert", "DistilBertModel", {**ENCODER, **DISTIL}),
}
HEADLESS = {"modernbert", "mpnet", "bert-headless", "distilbert"}


def dense_weights(activation: str) -> dict[str, torch.Tensor]:
    """Draw the weights of a module to 24 numbers, without a bias for no activation."""
    draw = torch.Generator().manual_seed(5)
    weight = torch.randn(24, ENCODER["hidden_size"], generator=draw)
    bias = {} if activation == "Identity" else {"linear.bias": torch.randn(24, generator=draw)}
    return {"linear.weight": weight, **bias}


def sentence_folder(
    folder: Path,
    pooling: dict[str, Any],
    *,
    normalized: bool = True,
    kind: str = "bert",
    dense: str | None = None,
) -> Any:  # noqa: ANN401
    """Write a folder in the format of sentence-transformers; return its transformers model."""
    model = make(folder, *KINDS[kind])
    model.save_pretrained(folder)
    if kind in HEADLESS:  # as all-mpnet-base-v2 says, which has no head
        set_keys(folder, architectures=[KINDS[kind][1].replace("Model", "ForMaskedLM")])
    kinds = ["Transformer", "Pooling", *["Dense"] * bool(dense), *["Normalize"] * normalized]
    paths = ["", *(f"{number}_{name}" for number, name in enumerate(kinds[1:], start=1))]
    if dense is not None:
        name = f"torch.nn.modules.activation.{dense}"
        write(folder / "2_Dense" / "config.json", {"activation_function": name})
        save_file(dense_weights(dense), folder / "2_Dense" / "model.safetensors")
    write(
        folder / "modules.json",
        [
            {"idx": n, "name": str(n), "path": path, "type": f"sentence_transformers.models.{kind}"}
            for n, (kind, path) in enumerate(zip(kinds, paths, strict=False))
        ],
    )
    write(folder / "1_Pooling" / "config.json", pooling)
    write(folder / "sentence_bert_config.json", {"max_seq_length": LONGEST, "do_lower_case": False})
    return model


@torch.no_grad()
def pooled(model: Any, tokenizer: Any, text: str, mode: str) -> torch.Tensor:  # noqa: ANN401
    """Compute the vector that sentence-transformers has before normalization."""
    inputs = tokenizer(text.strip(), truncation=True, max_length=LONGEST, return_tensors="pt")
    (hidden,) = model(**inputs).last_hidden_state
    vectors: dict[str, torch.Tensor] = {
        "mean": hidden.mean(0),
        "cls": hidden[0],
        "max": hidden.amax(0),
        "lasttoken": hidden[-1],
    }
    return vectors[mode]


@pytest.mark.parametrize(
    ("kind", "mode", "normalized"),
    [
        *(("bert", mode, normalized) for mode in MODES for normalized in (True, False)),
        ("xlm-r", "cls", True),
        ("xlm-r", "mean", True),
        ("xlm-r-pieces", "mean", False),
        ("camembert", "mean", False),
        ("mpnet", "mean", True),
        ("modernbert", "cls", True),
        ("bert-headless", "mean", True),
        ("distilbert", "mean", True),
    ],
)
def test_vectors_are_those_of_its_class(
    kind: str, mode: str, tmp_path: Path, *, normalized: bool
) -> None:
    """This holds for empty and hard texts, and for a too long one, which is cut with a warning."""
    keys = {key: key == MODES[mode] for key in MODES.values()}
    model = sentence_folder(tmp_path, keys, normalized=normalized, kind=kind)
    tokenizer = read_tokenizer(tmp_path)
    embedder = dragoman.load(tmp_path, device="cpu")
    with pytest.warns(UserWarning, match=f"longer than {LONGEST - 2} tokens .*text"):
        found = embedder.embed(TEXTS)
    expected = torch.stack([pooled(model, tokenizer, text, mode) for text in TEXTS])
    if normalized:
        expected = torch.nn.functional.normalize(expected, dim=1)
    assert found.dtype == np.float32
    torch.testing.assert_close(torch.from_numpy(found), expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(("pad", "masks"), [("[PAD]", True), ("[UNK]", False), ("[SEP]", False)])
def test_padding_is_no_id_that_texts_have(tmp_path: Path, pad: str, *, masks: bool) -> None:
    """Some tokenizers pad with another token: unknown words or text ends would be masked."""
    other = {**ENCODER, "pad_token_id": 7}
    make(tmp_path, "bert", "BertModel", other).save_pretrained(tmp_path)
    path = tmp_path / "tokenizer_config.json"
    said = json.loads(path.read_text(encoding="utf-8"))
    write(path, {**said, "pad_token": pad})
    opened = open_folder(tmp_path)
    padded = opened.src_tokenizer.pad_id
    assert (opened.config.model.pad_id == padded) == masks


@needs_independent_rows
def test_a_vector_does_not_depend_on_its_neighbours(tmp_path: Path) -> None:
    """It has the same bits alone, in another order and in other batches."""
    sentence_folder(tmp_path, {"pooling_mode": "mean"})
    embedder = dragoman.load(tmp_path, device="cpu")
    short = [text for text in TEXTS if len(text) < LONGEST]
    together = embedder.embed(short)
    assert together.shape == (len(short), embedder.dim)
    assert np.array_equal(np.stack([embedder.embed(text) for text in short]), together)
    assert np.array_equal(embedder.embed(short[::-1], max_batch_tokens=100)[::-1], together)
    assert embedder.embed([]).shape == (0, embedder.dim)


def test_the_command_writes_a_vector_for_each_line(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """Text, JSON and NumPy have the same numbers; cut and empty texts are counted."""
    sentence_folder(tmp_path / "made", {"pooling_mode": "mean"})
    capfd.readouterr()  # discard what transformers printed
    call = Run(capfd)
    lines = tmp_path / "lines.txt"
    lines.write_text("".join(f"{line}\n" for line in [*SENTENCES[:2], "", " ".join(SENTENCES)]))
    output = tmp_path / "vectors.npy"
    text, as_json, array = (
        call("embed", tmp_path / "made", lines, *options)
        for options in ([], ["--json"], ["--output", output])
    )
    assert (text.code, as_json.code, array.code) == (0, 0, 0)
    expected = np.load(output)
    assert expected.shape == (4, ENCODER["hidden_size"])
    read = np.array([line.split() for line in text.out.splitlines()], np.float32)
    assert np.array_equal(read, expected)
    objects = [json.loads(line) for line in as_json.out.splitlines()]
    assert np.array_equal(np.array([one["vector"] for one in objects], np.float32), expected)
    assert [one["flags"] for one in objects] == [[], [], ["empty"], ["max_length"]]
    for done, cut in ((text, "1 (line 4) cut"), (array, "1 cut")):
        assert f"{cut} at the length limit" in done.err
        assert "1 empty" in done.err
    assert "does not say how to pool" not in text.err


@pytest.mark.parametrize("activation", ["Tanh", "Identity"])
@torch.no_grad()
def test_a_dense_module_maps_the_pooled_vector(tmp_path: Path, activation: str) -> None:
    """LaBSE and distiluse end in one; it stays when the folder is converted there and back."""
    theirs = tmp_path / "theirs"
    model = sentence_folder(theirs, {"pooling_mode": "cls"}, dense=activation)
    assert_dense(theirs, model, activation)
    take_over(theirs, tmp_path / "ours")
    assert_dense(tmp_path / "ours", model, activation)
    convert(tmp_path / "ours", tmp_path / "back", "huggingface")
    assert_dense(tmp_path / "back", model, activation)


def assert_dense(folder: Path, model: Any, activation: str) -> None:  # noqa: ANN401
    """Assert that a folder gives their vectors: pooled, mapped and normalized."""
    embedder = dragoman.load(folder, device="cpu")
    found = embedder.embed(TEXTS[:5])
    assert found.shape == (5, embedder.dim)
    act = getattr(torch.nn, activation)()
    tokenizer = read_tokenizer(
        folder if (folder / "vocab.txt").exists() else folder / "huggingface"
    )
    pooled_texts = [pooled(model, tokenizer, text, "cls") for text in TEXTS[:5]]
    weights = dense_weights(activation)
    rows = torch.stack(pooled_texts) @ weights["linear.weight"].T
    rows = torch.nn.functional.normalize(act(rows + weights.get("linear.bias", 0.0)), dim=1)
    torch.testing.assert_close(torch.from_numpy(found), rows, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("kind", ["bert", *sorted(HEADLESS)])
def test_a_converted_folder_pools_as_before(kind: str, tmp_path: Path) -> None:
    """It can be converted back; from the cache of a Hub, and without the head it names, as well."""
    blobs, theirs = tmp_path / "blobs", tmp_path / "snapshots" / "0123abc"
    theirs.mkdir(parents=True)
    sentence_folder(theirs, {"pooling_mode": "max"}, kind=kind)
    (theirs / "1_Pooling").rename(blobs)
    (theirs / "1_Pooling").mkdir()
    (theirs / "1_Pooling" / "config.json").symlink_to("../../../blobs/config.json")
    expected = dragoman.load(theirs, device="cpu").embed(TEXTS[:3])
    take_over(theirs, tmp_path / "ours")
    assert np.allclose(dragoman.load(tmp_path / "ours", device="cpu").embed(TEXTS[:3]), expected)
    convert(tmp_path / "ours", tmp_path / "back", "huggingface")
    assert (tmp_path / "back" / "1_Pooling" / "config.json").read_bytes() == (
        blobs / "config.json"
    ).read_bytes()
    assert not (tmp_path / "back" / "pooling.json").exists()
    for name in ("config.json", "model.safetensors"):
        assert (tmp_path / "back" / name).read_bytes() == (theirs / name).read_bytes()


def test_a_pooling_elsewhere_is_not_taken_over(tmp_path: Path) -> None:
    """A link to another folder's settings is not followed into the published files."""
    sentence_folder(tmp_path / "theirs", {"pooling_mode": "max"})
    (tmp_path / "theirs" / "1_Pooling").rename(tmp_path / "private")
    (tmp_path / "theirs" / "1_Pooling").symlink_to(tmp_path / "private")
    take_over(tmp_path / "theirs", tmp_path / "ours")
    with pytest.raises(InputError, match=r"has no 1_Pooling/config\.json"):
        dragoman.load(tmp_path / "ours", device="cpu")


def test_a_prompt_and_lowercasing_are_the_folders(tmp_path: Path) -> None:
    """The default prompt precedes every text, and texts are lowercased if the folder says so."""
    sentence_folder(tmp_path, {"pooling_mode": "mean"})
    plain = dragoman.load(tmp_path, device="cpu").embed(["query: A man", "query: a man"])
    prompts = {"prompts": {"query": "query: "}, "default_prompt_name": "query"}
    write(tmp_path / "config_sentence_transformers.json", prompts)
    assert np.allclose(
        dragoman.load(tmp_path, device="cpu").embed("A man"), plain[0], rtol=0, atol=ROUNDING
    )
    (tmp_path / "sentence_bert_config.json").unlink()
    write(tmp_path / "sentence_roberta_config.json", {"do_lower_case": True})
    assert np.allclose(
        dragoman.load(tmp_path, device="cpu").embed("A MAN"), plain[1], rtol=0, atol=ROUNDING
    )


def test_the_prompt_is_stripped_with_its_text(tmp_path: Path) -> None:
    """sentence-transformers drops white space around both, none between them, which bytes see."""
    sentence_folder(tmp_path, {}, kind="modernbert")
    plain = dragoman.load(tmp_path, device="cpu").embed(["query:  A man", "query:"])
    prompts = {"prompts": {"query": " query: "}, "default_prompt_name": "query"}
    write(tmp_path / "config_sentence_transformers.json", prompts)
    found = dragoman.load(tmp_path, device="cpu").embed([" A man ", ""])
    assert np.allclose(found, plain, rtol=0, atol=ROUNDING)


def test_the_tokenizer_limits_a_length_that_is_not_given(tmp_path: Path) -> None:
    """Its model_max_length applies; some files have no number of tokens there."""
    sentence_folder(tmp_path, {"pooling_mode": "mean"})
    write(tmp_path / "sentence_bert_config.json", {"max_seq_length": None})
    for said, length in ((20, 18), (1e30, ENCODER["max_position_embeddings"] - 2)):
        set_keys(tmp_path, "tokenizer_config.json", model_max_length=said)
        assert dragoman.load(tmp_path, device="cpu").max_tokens == length


@pytest.mark.parametrize(
    ("file", "content", "said"),
    [
        ("1_Pooling/config.json", {"pooling_mode": "weightedmean"}, 'by ."weightedmean". is not'),
        (
            "1_Pooling/config.json",
            {"pooling_mode_cls_token": True, "pooling_mode_max_tokens": True},
            "is not supported",
        ),
        ("1_Pooling/config.json", {"pooling_mode_cls_token": True}, 'by .*"cls", "mean".* is not'),
        ("tokenizer_config.json", {"truncation_side": "left"}, 'truncation_side = "left" is not'),
        ("modules.json", [{"path": "../..", "type": "a.Transformer"}], "in one below"),
        ("modules.json", [{"path": "", "type": f"{ST}.CLIPModel"}], "has the modules CLIPModel"),
        ("modules.json", {"path": 3}, "does not list modules"),
        ("modules.json", [{"path": 3, "type": 4}], "does not list modules"),
        (
            "modules.json",
            [{"path": "", "type": f"{ST}.Transformer"}, {"path": "Mean", "type": f"{ST}.Pooling"}],
            "asks for Mean/config.json, but only 1_Pooling/config.json, ",
        ),
        (
            "modules.json",
            [
                {"path": "", "type": "custom_st.Transformer"},
                {"path": "1_P", "type": f"{ST}.Pooling"},
            ],
            "has the modules custom_st.Transformer, Pooling; only",
        ),
        ("2_Dense/config.json", {"activation_function": "torch.nn.Softmax"}, "Softmax is not"),
        ("2_Dense/config.json", {"activation_function": "torch.nn.Tanh"}, "32 numbers"),
        ("sentence_bert_config.json", {"max_seq_length": 10.5}, "must be a whole number"),
        ("config_sentence_transformers.json", {"default_prompt_name": "a"}, "no such text"),
    ],
)
def test_other_folders_are_refused(file: str, content: object, said: str, tmp_path: Path) -> None:
    """Each error is one sentence, before anything is embedded."""
    sentence_folder(tmp_path, {"pooling_mode": "mean"}, dense="Tanh")
    save_file({"linear.weight": torch.ones(24, 31)}, tmp_path / "2_Dense" / "model.safetensors")
    write(tmp_path / file, content)
    with pytest.raises(InputError, match=said):
        dragoman.load(tmp_path, device="cpu")


def test_a_pickled_dense_module_is_not_read(tmp_path: Path) -> None:
    """The file that is there is named."""
    sentence_folder(tmp_path, {"pooling_mode": "mean"}, dense="Tanh")
    weights = tmp_path / "2_Dense" / "model.safetensors"
    weights.rename(weights.with_name("pytorch_model.bin"))
    with pytest.raises(InputError, match=r"2_Dense/pytorch_model\.bin is a pickle, .*; save it as"):
        dragoman.load(tmp_path, device="cpu")


def test_an_encoder_reads_up_to_its_last_position(tmp_path: Path) -> None:
    """RoBERTa's table has two rows that no position uses; longer texts are cut, not refused."""
    sizes = {**ENCODER, "pad_token_id": 1, "max_position_embeddings": 34}
    make(tmp_path, "roberta", "RobertaModel", sizes).save_pretrained(tmp_path)
    embedder = dragoman.load(tmp_path, device="cpu")
    assert not embedder.pooling.published
    assert embedder.max_tokens == 30
    with pytest.warns(UserWarning, match="longer than 30 tokens"):
        assert np.isfinite(embedder.embed(" ".join(SENTENCES))).all()
