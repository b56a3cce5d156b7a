"""What is refused, and what stays of a conversion that fails: nothing."""

import re
from collections.abc import Callable
from copy import copy
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from tests.unit.convert.saving import BERT, GPT2, LABELS, LLAMA, OWN, save
from tests.unit.tasks.readers import TAGS, save_reader
from tests.unit.tasks.tiny import DECODING, make_config, make_model, make_tokenizer, save_translator

from dragoman.convert import limits
from dragoman.convert.probe import Answer, Answers, built_in_probe, our_side
from dragoman.convert.targets import TARGETS, TargetName, convert
from dragoman.errors import DragomanError, InputError
from dragoman.folder.format import FolderConfig, save_model
from dragoman.folder.opening import ModelFolder
from dragoman.models import ModelConfig
from dragoman.models.heads import ClassificationHead, TaggingHead
from dragoman.nn import (
    ALiBi,
    Causal,
    DynamicScaling,
    LinearAttention,
    LinearScaling,
    RelativeBias,
    Rotary,
    Sinusoidal,
    SlidingWindow,
)
from dragoman.tasks.folders import read_folder

CONFIG = make_config(make_tokenizer())
NEITHER = [
    ("num_kv_heads", 2),
    ("positions", Rotary()),
    ("norm_position", "deepnorm"),
    ("final_norm", True),
    ("encoder_patterns", (SlidingWindow(size=3),)),
    ("decoder_patterns", (SlidingWindow(size=3),)),
    ("qk_norm", True),
    ("score_soft_cap", 5.0),
    ("logit_soft_cap", 5.0),
]
NOT_MARIAN = [
    ("head_dim", 6),
    ("attention_scale", 1.0),
    ("logit_scale", 0.5),
    ("norm", "rms"),
    ("norm_eps", 1e-3),
    ("embedding_norm", True),
    ("gated", True),
    ("activation", "sigmoid"),
    ("positions", ALiBi()),
]
ONNX = "ONNX (opset 20)"
LINEAR = Rotary(scaling=LinearScaling(factor=2.0))
DYNAMIC = Rotary(scaling=DynamicScaling(factor=2.0, trained_length=9))
REFUSED: list[tuple[str, ModelConfig, str, object]] = [
    *(("Hugging Face's MarianMTModel", CONFIG, *pair) for pair in NEITHER + NOT_MARIAN),
    *(("CTranslate2", CONFIG, *pair) for pair in NEITHER),
    ("CTranslate2", replace(OWN, qk_norm=True), "positions", Rotary(before_norm=True)),
    ("CTranslate2", CONFIG, "positions", RelativeBias(max_length=50)),
    (ONNX, OWN, "positions", DYNAMIC),
    (ONNX, OWN, "patterns", (LinearAttention(),)),
    (ONNX, CONFIG, "encoder_patterns", (LinearAttention(),)),
    ("Hugging Face's BertForSequence", BERT, "head", ClassificationHead(labels=LABELS)),
    ("Hugging Face's BertModel", BERT, "positions", Rotary()),
    ("Hugging Face's BertModel", BERT, "norm_position", "pre"),
    ("Hugging Face's BertModel", BERT, "scale_embedding", True),
    ("Hugging Face's LlamaForCausalLM", LLAMA, "gated", False),
    ("Hugging Face's LlamaForCausalLM", LLAMA, "positions", LINEAR),
    ("Hugging Face's LlamaForCausalLM", LLAMA, "qkv_bias", True),
    ("Hugging Face's LlamaForCausalLM", LLAMA, "logit_soft_cap", 5.0),
    ("Hugging Face's Mistral", LLAMA, "patterns", (SlidingWindow(size=3), Causal())),
    ("Hugging Face's GPT2LMHeadModel", OWN, "positions", ALiBi()),
    ("Hugging Face's GPT2LMHeadModel", OWN, "positions", Sinusoidal()),
    ("Hugging Face's GPT2LMHeadModel", GPT2, "num_kv_heads", 2),
    ("Hugging Face's Starcoder2", OWN, "positions", Rotary(pairing="adjacent")),
    ("Hugging Face's Starcoder2", OWN, "output_bias", True),
    ("Hugging Face's Starcoder2", OWN, "norm_position", "post"),
]


@pytest.mark.parametrize(("target", "config", "key", "value"), REFUSED)
def test_what_a_target_cannot_express_is_refused(
    tmp_path: Path, target: str, config: ModelConfig, key: str, value: object
) -> None:
    """By the key of the config, before anything is written, with or without the package."""
    changed: Any = {key: value}
    save(tmp_path / "model", replace(config, **changed))
    others: dict[str, TargetName] = {"CTranslate2": "ctranslate2", ONNX: "onnx"}
    to = others.get(target, "huggingface")
    message = rf"^{key} = .*cannot be expressed in {re.escape(target)}"
    with pytest.raises(InputError, match=message):
        convert(tmp_path / "model", tmp_path / "out", to)
    assert [path.name for path in tmp_path.iterdir()] == ["model"]


@pytest.mark.parametrize("to", ["huggingface", "onnx", "ctranslate2"])
def test_no_target_has_what_words_look_like(tmp_path: Path, to: TargetName) -> None:
    """That is what is said of it, and no other target is proposed."""
    model = save_reader(tmp_path / "model", TaggingHead(labels=TAGS))
    with pytest.raises(InputError, match=r"^word_features = 300|encoders without a head$"):
        convert(model, tmp_path / "out", to)


@pytest.mark.parametrize(
    "decoding",
    [
        {"n_best": 3},
        {"mbr": 3},
        {"beam_size": 4, "beam_groups": 2, "diversity": 0.7},
        {"beam_size": 1, "temperature": 0.8},
        {"shortlist": True},
        {"forbidden_words": ("he",)},
    ],
)
def test_the_model_is_compared_however_the_folder_searches(
    tmp_path: Path, decoding: dict[str, Any]
) -> None:
    """Both sides write the most probable token of the model."""
    folders = [save_translator(tmp_path / "a"), save_translator(tmp_path / "b", **decoding)]
    sides = [our_side(read_folder(folder, device="cpu")) for folder in folders]
    plain, found = (side.answer("the cat sees")[0] for side in sides)
    assert found.ids == plain.ids


def test_two_tokenizers_are_not_one(tmp_path: Path) -> None:
    """AutoTokenizer returns one: it would decode the target by the tokenizer of the source."""
    about = FolderConfig(model=CONFIG, decoding=DECODING)
    sides = (make_tokenizer(), copy(make_tokenizer()))
    save_model(tmp_path / "model", make_model(CONFIG), about, tokenizers=sides)
    with pytest.raises(InputError, match=r"tokenizer\.joint = true"):
        convert(tmp_path / "model", tmp_path / "out", "huggingface")


@pytest.mark.parametrize(
    ("to", "name", "extra"),
    [
        ("huggingface", "transformers", "export"),
        ("ctranslate2", "ctranslate2", "export"),
        ("onnx", "onnxruntime", "onnx"),
    ],
)
def test_a_missing_package_is_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, to: TargetName, name: str, extra: str
) -> None:
    """It names the extra to install."""
    monkeypatch.setattr(limits, "find_spec", lambda asked: None if asked == name else 1)
    with pytest.raises(
        InputError, match=rf"{name}.*not installed; in a checkout: pip install '\.\[{extra}\]'"
    ):
        convert(save_translator(tmp_path / "model"), tmp_path / "out", to)


@dataclass
class Mirror:
    """A target that answers as our model does, but for what a test changes."""

    change: Callable[[Answer], Answer]
    name = "a mirror"

    def check(self, folder: ModelFolder) -> None:
        """Take any."""

    def write(self, folder: ModelFolder, out: Path) -> None:  # noqa: ARG002
        """Write something."""
        (out / "file").write_text("written")

    def open(self, folder: ModelFolder, out: Path) -> Answers:
        """Answer from the model itself."""
        assert (out / "file").is_file()
        side = our_side(folder)

        def answer(text: str, limit: int) -> Answer:
            ours, most = side.answer(text)
            assert limit == most
            return self.change(ours)

        return answer


def shifted(by: float) -> Callable[[Answer], Answer]:
    """Move one logit of the last step."""

    def change(answer: Answer) -> Answer:
        logits_TV = answer.logits_TV.clone()
        logits_TV[-1, 300] += by * float(logits_TV.abs().max())
        return replace(answer, logits_TV=logits_TV)

    return change


def test_what_agrees_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whole, under its name, with nothing beside it; differences of rounding are allowed."""
    monkeypatch.setitem(TARGETS, "huggingface", Mirror(shifted(5e-5)))
    model = save_translator(tmp_path / "model")
    proof = convert(model, tmp_path / "new" / "out", "huggingface")
    assert proof.sentences == len(built_in_probe(read_folder(model, device="cpu"))) > 5
    assert 1e-5 < proof.worst < 1e-4
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["out"]
    with pytest.raises(InputError, match="it exists"):
        convert(model, tmp_path / "new" / "out", "huggingface")
    assert (tmp_path / "new" / "out" / "file").read_text() == "written"


CHANGES: dict[str, tuple[Callable[[Answer], Answer], str]] = {
    "logits": (shifted(1e-3), r"differ by up to 1\.\de-03 \(sentence"),
    "nan": (shifted(float("nan")), r"differ by up to nan \(sentence 1 "),
    "text": (lambda a: replace(a, text=f"{a.text}!"), 'sentence 1 becomes ".*!", not "'),
    "ids": (lambda a: replace(a, ids=a.ids[:-1]), "the tokens of sentence 1 are others"),
}


@pytest.mark.parametrize(("change", "message"), CHANGES.values(), ids=CHANGES.keys())
def test_what_differs_is_not_written(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    change: Callable[[Answer], Answer],
    message: str,
) -> None:
    """The error names the worst difference, and a translation that changed."""
    monkeypatch.setitem(TARGETS, "ctranslate2", Mirror(change))
    model = save_translator(tmp_path / "model")
    with pytest.raises(DragomanError, match=message) as refused:
        convert(model, tmp_path / "out", "ctranslate2", ["a cat sees the dog"])
    assert not isinstance(refused.value, InputError)
    assert [path.name for path in tmp_path.iterdir()] == ["model"]


@pytest.mark.parametrize(("given", "message"), [(["", " "], "no sentence"), (["a b c"], "tokens")])
def test_a_probe_must_be_of_use(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, given: list[str], message: str
) -> None:
    """It has sentences, none of which would be translated in chunks."""
    monkeypatch.setitem(TARGETS, "huggingface", Mirror(lambda a: a))
    model = save_translator(tmp_path / "m", max_src_tokens=2)
    with pytest.raises(InputError, match=message):
        convert(model, tmp_path / "out", "huggingface", given)
