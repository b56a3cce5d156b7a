"""Folders of Hugging Face of further families: the same answers as their classes.

Decoders by a beam and with several tokens that end a text, in half precision and in shards;
classifiers and taggers.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import torch
from tests.foreign_folders import FAMILIES, SENTENCES, noisy

import dragoman
from dragoman.tasks.lines import one_line

transformers = pytest.importorskip("transformers", reason="needs transformers")

LINES = [line for line in map(one_line, noisy(SENTENCES, 10)) if line]
SIZES = {
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 8,
    "max_position_embeddings": 256,
}
ENCODER = {key: SIZES[key] for key in [*SIZES][:4]} | {"max_position_embeddings": 258}
DISTIL = {"dim": 32, "hidden_dim": 48, "n_layers": 2, "n_heads": 4}
DECODERS: Mapping[str, tuple[str, dict[str, Any]]] = {
    "Qwen3ForCausalLM": ("qwen2", SIZES),
    "MistralForCausalLM": ("qwen2", {**SIZES, "sliding_window": 6}),
    "GemmaForCausalLM": ("qwen2", SIZES),
}
CLASSIFIERS: Mapping[str, tuple[str, dict[str, Any]]] = {
    "RobertaForSequenceClassification": ("roberta", {**ENCODER, "pad_token_id": 1}),
    "DistilBertForSequenceClassification": ("bert", DISTIL),
}
LABELS = {0: "bad", 1: "good", 2: "fair"}


def read_tokenizer(folder: Path) -> Any:  # noqa: ANN401 -- theirs
    """Theirs."""
    return transformers.AutoTokenizer.from_pretrained(folder, local_files_only=True)


def make(folder: Path, tokenizer: str, name: str, sizes: Mapping[str, Any]) -> Any:  # noqa: ANN401
    """Write the tokenizer, and return a model of random weights."""
    FAMILIES[tokenizer](folder)
    kind = getattr(transformers, name)
    torch.manual_seed(0)
    model = kind(kind.config_class(**sizes, vocab_size=len(read_tokenizer(folder)))).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.2 * torch.randn_like(parameter))
    return model


@pytest.mark.parametrize(
    ("name", "num_beams"), [*((name, 1) for name in DECODERS), ("GemmaForCausalLM", 3)]
)
@pytest.mark.parametrize("several", [True, False])
def test_a_decoder_generates_as_its_class(
    name: str, num_beams: int, tmp_path: Path, *, several: bool
) -> None:
    """In half precision, in shards, greedily and by a beam; one token ends a text, or many do."""
    tokenizer_of, sizes = DECODERS[name]
    model = make(tmp_path, tokenizer_of, name, sizes)
    tokenizer = read_tokenizer(tmp_path)
    ends = [tokenizer.eos_token_id, *range(20, 90)] if several else [344]
    model.generation_config = transformers.GenerationConfig(
        max_new_tokens=12,
        eos_token_id=ends,
        pad_token_id=tokenizer.eos_token_id,
        num_beams=num_beams,
        **({"length_penalty": 0.7} if num_beams > 1 else {}),
    )
    model.half().save_pretrained(tmp_path, max_shard_size="40KB")
    assert len([*tmp_path.glob("model-*.safetensors")]) > 1
    model.float()
    generator = dragoman.load(tmp_path, device="cpu")
    assert generator.options.beam_size == num_beams
    stopped = 0
    for line, found in zip(LINES, generator.generate(LINES), strict=True):
        given = tokenizer(line, return_tensors="pt")["input_ids"]
        with torch.no_grad():
            (theirs,) = model.generate(given, attention_mask=torch.ones_like(given))
        written = theirs[given.shape[1] :].tolist()
        end = next((place for place, id_ in enumerate(written) if id_ in ends), len(written))
        assert list(found.ids) == written[:end]
        stopped += found.stopped == "eos"
    assert stopped or (num_beams == 1 and not several)
    assert generator.generate("A man", temperature=0.9).text is not None


@pytest.mark.parametrize("name", CLASSIFIERS)
def test_a_classifier_reads_as_its_class(name: str, tmp_path: Path) -> None:
    """The same probabilities under the same labels."""
    tokenizer, sizes = CLASSIFIERS[name]
    model = make(tmp_path, tokenizer, name, {**sizes, "id2label": LABELS})
    model.save_pretrained(tmp_path)
    theirs = read_tokenizer(tmp_path)
    classifier = dragoman.load(tmp_path, device="cpu")
    for line, found in zip(LINES, classifier.classify(LINES), strict=True):
        inputs = theirs(line, return_tensors="pt")
        with torch.no_grad():
            (expected,) = model(
                inputs["input_ids"], attention_mask=inputs["attention_mask"]
            ).logits.softmax(-1)
        ours = torch.tensor([found.probabilities[label] for label in LABELS.values()])
        torch.testing.assert_close(ours, expected, rtol=1e-4, atol=1e-5)


def test_a_tagger_reads_as_its_class(tmp_path: Path) -> None:
    """The tag of a word is that of its first piece, as the class is trained."""
    model = make(tmp_path, "bert", "BertForTokenClassification", {**ENCODER, "id2label": LABELS})
    model.save_pretrained(tmp_path)
    tokenizer = read_tokenizer(tmp_path)
    tagger = dragoman.load(tmp_path, device="cpu")
    words = [line.split() for line in SENTENCES[:4]]
    for sentence, found in zip(words, tagger.tag_words(words), strict=True):
        inputs = tokenizer(sentence, is_split_into_words=True, return_tensors="pt")
        with torch.no_grad():
            (given,) = model(**inputs).logits.softmax(-1)
        places = inputs.word_ids(0)
        firsts = [places.index(number) for number in range(len(sentence))]
        expected = [LABELS[int(given[place].argmax())] for place in firsts]
        assert [word.tag for word in found.words] == expected
