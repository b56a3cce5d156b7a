"""`--verify`: a Hugging Face model against its class, or against what conversion has stored."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from tests.foreign_folders import FAMILIES, set_keys
from tests.parity.foreign import make_named
from tests.parity.foreign_sizes import IMAGES
from tests.parity.test_foreign_answers import ENCODER, GPT2, LONG, PHI, SIZES
from tests.parity.test_foreign_answers import make as make_model
from tests.parity.test_foreign_texts import SMALL, make_folder

from dragoman.convert.eight_bits import quantize
from dragoman.convert.published import hand_back, take_over, tolerance, verify
from dragoman.errors import DragomanError, InputError
from dragoman.folder.opening import ModelFolder
from dragoman.models import EncoderDecoderConfig
from dragoman.tasks.folders import read_folder

transformers = pytest.importorskip("transformers", reason="needs transformers")

WINDOW = {**SIZES, "use_sliding_window": True, "sliding_window": 6, "max_window_layers": 1}
CASES: dict[str, tuple[str, str, dict[str, Any]]] = {
    "bart": ("bart", "BartForConditionalGeneration", SMALL),
    "gpt2": ("gpt2", "GPT2LMHeadModel", GPT2),
    "llama": ("llama", "LlamaForCausalLM", SIZES),
    "mistral": ("llama", "MistralForCausalLM", SIZES),
    "bert": ("bert", "BertModel", ENCODER),
    "qwen2": ("qwen2", "Qwen2ForCausalLM", SIZES),
    "qwen2-window": ("qwen2", "Qwen2ForCausalLM", WINDOW),
    "qwen3-window": ("qwen2", "Qwen3ForCausalLM", WINDOW),
    "gemma2": ("gemma", "Gemma2ForCausalLM", {**SIZES, "sliding_window": 6}),
    "gemma3": ("gemma", "Gemma3ForCausalLM", {**SIZES, "sliding_window": 6}),
    "bert-classes": ("bert", "BertForSequenceClassification", ENCODER),
    "bert-tags": ("bert", "BertForTokenClassification", ENCODER),
    "bert-words": ("bert", "BertForMaskedLM", ENCODER),
    "xlm-r": ("xlm-roberta", "XLMRobertaModel", {**ENCODER, "pad_token_id": 1}),
    "modern-words": ("roberta", "ModernBertForMaskedLM", {**ENCODER, "pad_token_id": 1}),
    "camembert-words": ("camembert", "CamembertForMaskedLM", {**ENCODER, "pad_token_id": 1}),
}
LAYER = {
    "bart": ("model.decoder.layers.1.fc1.weight", "decoder layer 2"),
    "qwen2": ("model.layers.0.mlp.up_proj.weight", "decoder layer 1"),
    "bert-words": ("bert.encoder.layer.1.output.dense.weight", "encoder layer 2"),
}
"""A matrix, and the part that differs if it does."""


def make(path: Path, case: str, spread: float = 0.2, **sizes: int) -> Path:
    """Write a folder of random weights with a tokenizer of its family."""
    tokenizer, name, usual = CASES[case]
    make_model(path, tokenizer, name, {**usual, **sizes}, spread).save_pretrained(path)
    return path


def read(path: Path) -> ModelFolder:
    """Load a folder."""
    return read_folder(path, device="cpu")


@pytest.mark.filterwarnings("ignore:.*for text and images")
def test_a_model_for_images_is_compared_by_its_part_for_text(tmp_path: Path) -> None:
    """The rest is not read, which is said; it is kept for the way back."""
    theirs, ours = tmp_path / "theirs", tmp_path / "ours"
    text = {**IMAGES["text_config"], "vocab_size": 1000}
    model = make_named(
        "Gemma3ForConditionalGeneration", {**IMAGES, "text_config": text}, torch.float32
    )
    model.save_pretrained(theirs)
    FAMILIES["gemma"](theirs)
    with pytest.warns(UserWarning, match="theirs holds a model for text and images"):
        assert (worst := take_over(theirs, ours)) is not None
    assert worst <= 1e-5
    assert verify(read(ours)) <= 1e-5
    assert verify(read(theirs)) <= 1e-5


@pytest.mark.parametrize("case", CASES)
def test_a_folder_as_it_is_is_compared_with_its_class(case: str, tmp_path: Path) -> None:
    """Two rows are compared, one padded; a different matrix is found, and its layer named."""
    path = make(tmp_path / "theirs", case)
    folder = read(path)
    assert verify(folder) <= 1e-5
    if case not in LAYER:
        return
    matrix, where = LAYER[case]
    file = path / "model.safetensors"
    stored = load_file(file)
    stored[matrix] *= 1.01
    save_file(stored, file, {"format": "pt"})
    with pytest.raises(DragomanError, match=rf"\({where}\), so it is not used"):
        verify(folder)


@pytest.mark.parametrize(
    ("case", "name"), [("gpt2", "GPT2Model"), ("t5-deep", "T5WithLMHeadModel")]
)
def test_the_class_with_an_output_stands_for_the_one_that_is_named(
    case: str, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The model was saved without its output, which is the embedding, or names an old class."""
    monkeypatch.setitem(CASES, "t5-deep", ("t5", "T5ForConditionalGeneration", T5))
    path = make(tmp_path / "theirs", case, spread=0.02)
    set_keys(path, architectures=[name])
    if name == "GPT2Model":
        stored = load_file(path / "model.safetensors")
        bare = {key.removeprefix("transformer."): value for key, value in stored.items()}
        save_file(bare, path / "model.safetensors", {"format": "pt"})
    folder = read(path)
    assert verify(folder) <= tolerance(folder.config.model)
    assert take_over(path, tmp_path / "ours") is not None


@pytest.mark.parametrize("tied", [False, True])
def test_a_umt5_with_its_own_output_is_converted(tmp_path: Path, *, tied: bool) -> None:
    """Whether it scales is what the file says, though their class says that it always does."""
    theirs, ours = tmp_path / "theirs", tmp_path / "ours"
    make_folder(theirs, "umt5", {"feed_forward_proj": "gated-gelu"})
    set_keys(theirs, tie_word_embeddings=tied)
    file = theirs / "model.safetensors"
    stored = load_file(file)
    stored["lm_head.weight"] = torch.randn_like(stored["shared.weight"])
    save_file(stored, file, {"format": "pt"})
    assert (worst := take_over(theirs, ours)) is not None
    assert worst <= 1e-5
    assert hand_back(read(ours), tmp_path / "back", "5GB").worst <= 1e-5
    back = load_file(tmp_path / "back" / "model.safetensors")
    assert torch.equal(back["lm_head.weight"], stored["lm_head.weight"])


@pytest.mark.parametrize("name", ["su", "yarn", "longrope"])
def test_the_scaling_of_phi_3_has_had_three_names(name: str, tmp_path: Path) -> None:
    """The first two are those of files from 2024, with code that transformers has had since."""
    rope = {key: LONG[key] for key in ("short_factor", "long_factor")}
    model = make_model(tmp_path, "llama", "Phi3ForCausalLM", {**PHI, "rope_parameters": LONG})
    model.save_pretrained(tmp_path)
    set_keys(tmp_path, rope_parameters=None, rope_theta=10_000.0, partial_rotary_factor=0.75)
    set_keys(tmp_path, rope_scaling={"type": name, **rope}, auto_map={"AutoModel": "m.M"})
    assert verify(read(tmp_path)) <= 1e-5


T5: dict[str, Any] = {
    "d_model": 128, "d_kv": 32, "d_ff": 1024, "num_layers": 6, "num_heads": 4,
    "feed_forward_proj": "gated-gelu", "tie_word_embeddings": False,
}  # fmt: skip
FAULTS: dict[str, tuple[str, dict[str, Any]]] = {
    "another activation": ("t5-deep", {"dense_act_fn": "silu"}),
    "epsilon": ("bert-words", {"layer_norm_eps": 1e-5}),
    "the gelu with tanh": ("bert-words", {"hidden_act": "gelu_new"}),
}
"""Keys that their class reads with another value than ours."""


@pytest.mark.parametrize("fault", FAULTS)
def test_a_layer_that_computes_something_else_exceeds_the_tolerance(
    fault: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """This holds even for a deep model, whose tolerance is wider than a small model's."""
    monkeypatch.setitem(CASES, "t5-deep", ("t5", "T5ForConditionalGeneration", T5))
    case, changed = FAULTS[fault]
    path = make(tmp_path / "theirs", case, spread=0.02)
    folder = read(path)
    assert verify(folder) <= tolerance(folder.config.model)
    set_keys(path, **changed)
    with pytest.raises(DragomanError, match="so it is not used"):
        verify(folder)


def test_the_tolerance_grows_like_a_random_walk() -> None:
    """It grows with the square root of the layers and of their width, within its bounds."""
    config = EncoderDecoderConfig(src_vocab_size=9, tgt_vocab_size=9, d_model=512, d_ff=2048)
    config = replace(config, num_encoder_layers=6, num_decoder_layers=6)
    assert 3.2e-5 < tolerance(config) < 3.3e-5
    twice = replace(config, num_encoder_layers=12, num_decoder_layers=12, d_ff=4096)
    assert tolerance(twice) == pytest.approx(2 * tolerance(config))
    assert tolerance(replace(config, d_ff=16, num_encoder_layers=1)) == 1e-5
    assert tolerance(replace(config, d_ff=1 << 20)) == 1e-4


def test_a_converted_folder_is_compared_with_what_was_stored(tmp_path: Path) -> None:
    """Other logits are refused; rounded weights have no published logits to compare with."""
    path = make(tmp_path / "theirs", "bart")
    take_over(path, tmp_path / "ours")
    folder = read(tmp_path / "ours")
    assert verify(folder) <= 1e-6
    with torch.no_grad():
        folder.model.get_parameter("encoder.layers.0.ffn.down.weight").mul_(1.01)
    with pytest.raises(DragomanError, match="differ from those at its conversion"):
        verify(folder)
    quantize(tmp_path / "ours", tmp_path / "int8")
    with pytest.raises(InputError, match="remove --verify"):
        verify(read(tmp_path / "int8"))


def test_numbers_of_another_shape_are_not_compared(tmp_path: Path) -> None:
    """The message has both shapes."""
    take_over(make(tmp_path / "theirs", "bart"), tmp_path / "ours")
    file = tmp_path / "ours" / "config.json"
    config = json.loads(file.read_bytes())
    size = len(config["published"]["probe"])
    config["published"]["probe"] = config["published"]["probe"][:3]
    file.write_text(json.dumps(config))
    with pytest.raises(DragomanError, match=rf"of shape \({size},\) where .* have shape \(3,\)"):
        verify(read(tmp_path / "ours"))


def test_what_was_never_compared_is_not_proven(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A folder converted without transformers has no logits from its publisher."""
    path = make(tmp_path / "theirs", "bart")
    monkeypatch.setattr("dragoman.convert.published.find_spec", {}.get)
    assert take_over(path, tmp_path / "ours") is None
    with pytest.raises(InputError, match="converted without transformers: remove --verify"):
        verify(read(tmp_path / "ours"))


def test_nothing_is_equal_to_nan(tmp_path: Path) -> None:
    """NaN weights in memory differ from their class, and from what was stored."""
    path = make(tmp_path / "theirs", "bart")
    take_over(path, tmp_path / "ours")
    for folder in (read(path), read(tmp_path / "ours")):
        with torch.no_grad():
            folder.model.get_parameter("decoder.layers.1.ffn.down.bias")[0] = torch.nan
        with pytest.raises(DragomanError, match=r"the logits of .* differ from"):
            verify(folder)


def test_a_folder_of_theirs_is_rounded_with_its_tokenizer(tmp_path: Path) -> None:
    """This needs no conversion first."""
    path = make(tmp_path / "theirs", "bart")
    quantize(path, tmp_path / "int8")
    ours, theirs = (read(folder).src_tokenizer for folder in (tmp_path / "int8", path))
    assert ours.encode("A man.") == theirs.encode("A man.")
