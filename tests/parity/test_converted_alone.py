"""Converted decoder-only and encoder-only models, loaded by the `Auto` classes that users call."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from tests.unit.convert.saving import BERT, GPT2, LABELS, LLAMA, OWN, TOKENIZER, save
from tests.unit.models.small import distance
from tests.unit.tasks import tiny_chat
from tests.unit.tasks.tiny import random_lines

from dragoman.convert.targets import convert
from dragoman.errors import InputError
from dragoman.folder.format import GenerationDefaults, ReadingDefaults
from dragoman.models import DecoderOnly, DecoderOnlyConfig, EncoderOnly, EncoderOnlyConfig
from dragoman.models.heads import ClassificationHead, MaskedLanguageHead, TaggingHead
from dragoman.nn import Causal, Llama3Scaling, Rotary, Sinusoidal, SlidingWindow, YaRN
from dragoman.tasks.classify.classifier import Classifier
from dragoman.tasks.generate.generator import Generator

DECODERS: dict[str, tuple[str, DecoderOnlyConfig]] = {
    "own": ("Starcoder2", OWN),
    "own-no-bias": ("Starcoder2", replace(OWN, bias=False, activation="gelu")),
    "own-untied": ("Starcoder2", replace(OWN, tie_embeddings=False, num_kv_heads=2)),
    "own-window": ("Starcoder2", replace(OWN, patterns=(SlidingWindow(size=3),))),
    "llama": ("Llama", LLAMA),
    "llama-tied": ("Llama", replace(LLAMA, tie_embeddings=True, positions=Rotary(base=500.0))),
    "llama-bias": ("Llama", replace(LLAMA, bias=True, head_dim=10)),
    "mistral": ("Mistral", replace(LLAMA, patterns=(SlidingWindow(size=4),))),
    "qwen3": ("Qwen3", replace(LLAMA, qk_norm=True)),
    "two-patterns": (
        "Qwen3",
        replace(LLAMA, qk_norm=True, patterns=(SlidingWindow(size=3), Causal())),
    ),
    "gpt2": ("GPT2", GPT2),
    "gpt2-untied": ("GPT2", replace(GPT2, tie_embeddings=False, bias=False, attention_scale=1.0)),
}
FOR_CTRANSLATE2: dict[str, DecoderOnlyConfig] = {
    "own": OWN,
    "adjacent": replace(OWN, positions=Rotary(pairing="adjacent"), norm_position="post"),
    "sinusoidal": replace(OWN, positions=Sinusoidal(), logit_scale=0.5, output_bias=True),
    "gpt2": GPT2,
    "qwen3": replace(LLAMA, qk_norm=True, num_kv_heads=2, head_dim=10),
    "yarn": replace(LLAMA, positions=Rotary(scaling=YaRN(factor=4.0, trained_length=16))),
    "llama3": replace(LLAMA, positions=Rotary(scaling=Llama3Scaling(trained_length=16))),
}
HEADS = {
    "MaskedLM": replace(BERT, head=MaskedLanguageHead()),
    "SequenceClassification": replace(
        BERT, head=ClassificationHead(labels=LABELS, pooling="first", pooler=True)
    ),
    "TokenClassification": replace(
        BERT, head=TaggingHead(labels=LABELS), num_token_types=2, bias=False
    ),
    "": replace(BERT, activation="gelu_tanh"),
}
PROMPTS = [*random_lines(5, seed=3, longest=8), "</s> <pad>", "😀 我喜欢  a "]


@pytest.mark.parametrize("case", DECODERS)
def test_a_decoder_goes_on_alike(tmp_path: Path, case: str) -> None:
    """Ids, logits of a batch padded in front, and greedy continuations of a prompt agree."""
    from transformers import AutoModelForCausalLM, AutoTokenizer

    name, config = DECODERS[case]
    opening = "\n" if case == "own-no-bias" else None  # as in the recipe for code
    defaults = GenerationDefaults(temperature=0.0, max_tokens=9, opening=opening)
    model = save(tmp_path / "model", config, generation=defaults)
    assert isinstance(model, DecoderOnly)
    assert convert(tmp_path / "model", tmp_path / "out", "huggingface").worst < 1e-5
    theirs = AutoModelForCausalLM.from_pretrained(tmp_path / "out")
    tokenizer = AutoTokenizer.from_pretrained(tmp_path / "out")
    assert type(theirs).__name__.startswith(name)

    generator = Generator.load(tmp_path / "model", device="cpu")
    texts = [(opening or "") + prompt for prompt in PROMPTS]
    batch = tokenizer(texts, padding=True, return_tensors="pt")
    for row, prompt in zip(batch.input_ids.tolist(), PROMPTS, strict=True):
        ids = generator.encode(prompt)
        assert row[-len(ids) :] == ids
        assert not any(row[: -len(ids)])
    mask_BL = batch.attention_mask.bool()
    with torch.inference_mode():
        places_BL = (mask_BL.long().cumsum(1) - 1).clamp(min=0)  # as their generate counts
        found = theirs(**batch, position_ids=places_BL).logits
        assert distance(found[mask_BL], model(batch.input_ids, mask_BL)[mask_BL]) < 1e-5
        written = theirs.generate(**batch)[:, mask_BL.shape[1] :].tolist()
    for row, ours in zip(written, generator.generate(PROMPTS), strict=True):
        assert tuple(row[: len(ours.ids)]) == ours.ids
        assert set(row[len(ours.ids) :]) <= {TOKENIZER.eos_id, TOKENIZER.pad_id}


def test_a_dialogue_is_held_alike(tmp_path: Path) -> None:
    """The chat template gives the ids that we read from turns, and the answers are the same."""
    from transformers import AutoModelForCausalLM, AutoTokenizer

    roles = tiny_chat.make_tokenizer()
    config = replace(OWN, vocab_size=roles.vocab_size)
    defaults = replace(tiny_chat.CHAT, temperature=0.0, max_tokens=9)
    save(tmp_path / "model", config, roles, generation=defaults)
    assert convert(tmp_path / "model", tmp_path / "out", "huggingface").worst < 1e-5
    theirs = AutoModelForCausalLM.from_pretrained(tmp_path / "out")
    tokenizer = AutoTokenizer.from_pretrained(tmp_path / "out")
    ours = [Generator.load(tmp_path / name, device="cpu") for name in ("model", "out")]
    for said in (["the cat"], ["  a\nb ", "", "我喜欢\u2028 😀"], [PROMPTS[0], "< user > <b>", ""]):
        turns = [
            {"role": ("user", "assistant")[n % 2], "content": turn} for n, turn in enumerate(said)
        ]
        read = tokenizer.apply_chat_template(
            turns, add_generation_prompt=True, return_dict=True, return_tensors="pt"
        )
        ids = read.input_ids[0].tolist()
        answer = tokenizer.decode(theirs.generate(**read)[0, len(ids) :], skip_special_tokens=True)
        for generator in ours:
            assert generator.asking(said, generator.options).ids == ids
            chat = generator.chat()
            chat.turns = said[:-1]
            assert chat.say(said[-1]) == answer
    with pytest.raises(Exception, match="must take turns"):
        tokenizer.apply_chat_template([{"role": "system", "content": "a"}])


@pytest.mark.parametrize("case", FOR_CTRANSLATE2)
def test_ctranslate2_goes_on_alike(tmp_path: Path, case: str) -> None:
    """The greedy continuation of each prompt agrees, as the conversion itself compares."""
    pytest.importorskip("ctranslate2", reason="the extra `export` is not installed")
    opening = "\n" if case == "own" else None
    defaults = GenerationDefaults(temperature=0.0, max_tokens=9, opening=opening)
    save(tmp_path / "model", FOR_CTRANSLATE2[case], generation=defaults)
    assert convert(tmp_path / "model", tmp_path / "out", "ctranslate2", PROMPTS).worst < 1e-5


@pytest.mark.parametrize(("name", "config"), HEADS.items(), ids=HEADS)
def test_an_encoder_answers_alike(tmp_path: Path, name: str, config: EncoderOnlyConfig) -> None:
    """Logits of a padded batch and the names of the labels agree."""
    import transformers

    model = save(tmp_path / "model", config, reading=ReadingDefaults(max_tokens=40))
    assert isinstance(model, EncoderOnly)
    assert convert(tmp_path / "model", tmp_path / "out", "huggingface").worst < 1e-5
    kind = getattr(transformers, f"AutoModelFor{name}" if name else "AutoModel")
    theirs = kind.from_pretrained(tmp_path / "out").eval()
    tokenizer = transformers.AutoTokenizer.from_pretrained(tmp_path / "out")
    assert tokenizer.model_max_length == 42
    batch = tokenizer(PROMPTS, padding=True, return_tensors="pt")
    with torch.inference_mode():
        found, ours = theirs(**batch), model(batch.input_ids)
    logits = found["last_hidden_state" if name == "" else "logits"]
    real = batch.attention_mask.bool() if logits.dim() == 3 else slice(None)
    assert distance(logits[real], ours[real]) < 1e-5
    if name.endswith("Classification"):
        assert theirs.config.id2label == dict(enumerate(LABELS))
    if name.startswith("Sequence"):
        labels = Classifier.load(tmp_path / "model", device="cpu").classify(PROMPTS)
        chosen = [theirs.config.id2label[int(row.argmax())] for row in logits]
        assert chosen == [each.label for each in labels]


def test_weights_are_cut_into_files_with_an_index(tmp_path: Path) -> None:
    """The files have the requested size; the probe has read them back."""
    save(tmp_path / "model", LLAMA)
    proof = convert(tmp_path / "model", tmp_path / "out", "huggingface", shard_size="30KB")
    assert proof.worst < 1e-5
    files = sorted(path.name for path in (tmp_path / "out").glob("*.safetensors*"))
    assert files[-1] == "model.safetensors.index.json"
    count = len(files) - 1
    assert count > 2
    wanted = [f"model-{n:05}-of-{count:05}.safetensors" for n in range(1, count + 1)]
    assert files[:-1] == wanted


@pytest.mark.parametrize(
    ("to", "size", "message"),
    [("huggingface", "big", "not a file size"), ("onnx", "5GB", "requires --to huggingface")],
)
def test_only_a_size_is_one(tmp_path: Path, to: Any, size: str, message: str) -> None:  # noqa: ANN401
    """An invalid size is refused, and so is any size for weights that are not written in shards."""
    save(tmp_path / "model", LLAMA)
    with pytest.raises(InputError, match=message):
        convert(tmp_path / "model", tmp_path / "out", to, shard_size=size)
    assert not (tmp_path / "out").exists()
