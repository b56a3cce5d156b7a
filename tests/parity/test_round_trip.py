"""From Hugging Face to our folder and back: every tensor, bit for bit, and every other file."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from safetensors.torch import load, load_file
from tests.parity.foreign import make_named
from tests.parity.foreign_sizes import (
    BART,
    BERT,
    DISTIL,
    FSMT,
    GEMMA2,
    GEMMA3,
    GPT2,
    GRANITE,
    LLAMA,
    MARIAN,
    MODERN,
    OLMO3,
    PHI3,
    SMOLLM3,
    T5,
)
from tests.parity.test_foreign_files import MANY_HEADS, SMALL
from tests.parity.test_foreign_folders import kept

from dragoman.folder.foreign import FAMILIES, family
from dragoman.folder.format import ORIGIN
from dragoman.folder.origin import give_back

TWO = {"encoder_layers": 2, "decoder_layers": 2}
LABELS = {"id2label": {0: "a", 1: "b", 2: "c"}}
MORE: dict[str, tuple[str, dict[str, Any]]] = {
    "marian-untied": (
        "MarianMTModel",
        {
            **MARIAN,
            "decoder_vocab_size": 31,
            "share_encoder_decoder_embeddings": False,
            "tie_word_embeddings": False,
        },
    ),
    "mbart": ("MBartForConditionalGeneration", {**BART, **TWO}),
    "fsmt": ("FSMTForConditionalGeneration", {**FSMT, "decoder_ffn_dim": 28}),
    "bert-classes": ("BertForSequenceClassification", {**BERT, **LABELS}),
    "bert-tags": ("BertForTokenClassification", {**BERT, **LABELS}),
    "bert-bare": ("BertModel", BERT),
    "gpt2-untied": ("GPT2LMHeadModel", {**GPT2, "n_layer": 2, "tie_word_embeddings": False}),
    "mistral": ("MistralForCausalLM", {**MANY_HEADS, "sliding_window": 3}),
    "qwen2": ("Qwen2ForCausalLM", {**MANY_HEADS, "num_key_value_heads": 32}),
    "qwen3": ("Qwen3ForCausalLM", {**LLAMA, "num_key_value_heads": 1, "head_dim": 6}),
    "starcoder2": ("Starcoder2ForCausalLM", {**LLAMA, "num_key_value_heads": 2}),
    "hunyuan": ("HunYuanDenseV1ForCausalLM", {**LLAMA, "head_dim": 6}),
    "smollm3": ("SmolLM3ForCausalLM", SMOLLM3),
    "olmo2": ("Olmo2ForCausalLM", PHI3),
    "olmo3": ("Olmo3ForCausalLM", OLMO3),
    "granite": ("GraniteForCausalLM", GRANITE),
    "phi3": ("Phi3ForCausalLM", PHI3),
    "gemma": ("GemmaForCausalLM", {**MANY_HEADS, "num_attention_heads": 16}),
    "gemma2": ("Gemma2ForCausalLM", GEMMA2),
    "gemma3-text": ("Gemma3ForCausalLM", GEMMA3),
    "mt5": ("MT5ForConditionalGeneration", T5),
    "umt5": ("UMT5ForConditionalGeneration", T5),
    "roberta": ("RobertaForMaskedLM", {**BERT, "max_position_embeddings": 18}),
    "xlm-roberta": (
        "XLMRobertaForSequenceClassification",
        {**BERT, **LABELS, "max_position_embeddings": 18},
    ),
    "camembert": ("CamembertForTokenClassification", {**BERT, **LABELS}),
    "modernbert": ("ModernBertForMaskedLM", MODERN),
    "mpnet": ("MPNetForMaskedLM", {**BERT, "max_position_embeddings": 18}),
    "distilbert": ("DistilBertForSequenceClassification", {**DISTIL, **LABELS}),
}
REST = {  # parts that our models have no place for
    "model.encoder.embed_positions.weight",
    "model.decoder.embed_positions.weight",
    "roberta.embeddings.position_embeddings.weight",
    "mpnet.embeddings.position_embeddings.weight",
    "pooler.dense.weight",
    "pooler.dense.bias",
}
BESIDE = ("vision_tower.", "multi_modal_projector.")
IMAGELESS = pytest.mark.filterwarnings("ignore:.*for text and images")
CASES = SMALL | MORE


def test_every_family_is_here() -> None:
    """A new family's way back is tested too."""
    kinds = [getattr(transformers, name) for name, _ in CASES.values()]
    assert {kind.config_class.model_type for kind in kinds} == set(FAMILIES)


@IMAGELESS
@pytest.mark.parametrize("case", CASES)
def test_the_way_back_gives_every_bit(case: str, tmp_path: Path) -> None:
    """This holds through our folder; digits lost from fp64 are stored separately."""
    theirs = make_named(*CASES[case], torch.float32)
    for dtype in (torch.float32, torch.bfloat16, torch.float64):
        folder = tmp_path / str(dtype)
        theirs.to(dtype).save_pretrained(folder)
        expected = load_file(folder / "model.safetensors")
        origin = tmp_path / f"ours-{dtype}" / ORIGIN
        opened = kept(folder, origin.parent)
        found, others = give_back(origin, opened.model.state_dict(), opened.config.model)
        assert {name: content.data for name, content in others.items()} == {
            path.name: path.read_bytes() for path in folder.glob("*.json")
        }
        assert found.keys() == expected.keys()
        for name, tensor in expected.items():
            assert found[name].dtype == dtype
            assert torch.equal(found[name], tensor), name
        if dtype == torch.bfloat16:
            rest = {*load((origin / "rest.safetensors").read_bytes())}
            assert not {name for name in rest if not name.startswith(BESIDE)} - REST


@IMAGELESS
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("case", ["gemma", "gemma3", "bart", "mt5", "phi3"])
def test_weights_that_were_trained_go_back_too(
    case: str, dtype: torch.dtype, tmp_path: Path
) -> None:
    """Kept originals do not replace trained weights; 16 bits become 32."""
    make_named(*CASES[case], torch.float32).to(dtype).save_pretrained(tmp_path)
    opened = kept(tmp_path, tmp_path / "ours")
    model = opened.config.model
    trained = {name: tensor + 0.5 for name, tensor in opened.model.state_dict().items()}
    found, files = give_back(tmp_path / "ours" / ORIGIN, trained, model)
    assert json.loads(files["config.json"].data)["dtype"] == "float32"
    assert {tensor.dtype for tensor in found.values()} == {torch.float32}
    for name, tensor in family(opened.hf).each_weight(found, model):
        assert torch.allclose(tensor, trained[name], atol=1e-6), name
