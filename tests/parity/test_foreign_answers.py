"""Hugging Face folders of further families: the same answers as from their classes.

Decoders with a beam and several end tokens, in half precision and in shards;
classifiers and taggers.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import torch
from tests.foreign_folders import FAMILIES, SENTENCES, noisy, without_special
from tests.parity.test_foreign_texts import read_tokenizer

import dragoman
from dragoman.convert.published import take_over
from dragoman.data.batches import BatchConfig
from dragoman.data.tagged import TaggedLayout, load_tagged
from dragoman.folder.opening import open_folder
from dragoman.lens.choices import Choices
from dragoman.lens.inspecting import inspect_folder
from dragoman.tasks.folders import read_folder
from dragoman.tasks.lines import one_line
from dragoman.tasks.tag.tagger import Tagger
from dragoman.tasks.tag.task import NO_TAG, evaluate_tagger, tag_batches
from dragoman.tasks.task import EvaluationData

transformers = pytest.importorskip("transformers", reason="needs transformers")

LINES = [line for line in map(one_line, without_special(noisy(SENTENCES, 14))) if line]
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
GPT2 = {"n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 256}
LONG = {  # Phi-4-mini: longer texts than in training, three quarters of each head rotated
    "rope_type": "longrope",
    "rope_theta": 10_000.0,
    "short_factor": [1.0, 1.2, 2.0],
    "long_factor": [1.0, 3.0, 9.0],
    "partial_rotary_factor": 0.75,
}
PHI = {**SIZES, "pad_token_id": None, "original_max_position_embeddings": 24}
DECODERS: Mapping[str, tuple[str, dict[str, Any]]] = {
    "GPT2LMHeadModel": ("gpt2", GPT2),
    "LlamaForCausalLM": ("llama", SIZES),
    "Qwen2ForCausalLM": ("qwen2", SIZES),
    "Qwen3ForCausalLM": ("qwen2", SIZES),
    "MistralForCausalLM": ("qwen2", {**SIZES, "sliding_window": 6}),
    "HunYuanDenseV1ForCausalLM": ("qwen2", SIZES),
    "Phi3ForCausalLM": ("llama", {**PHI, "rope_parameters": LONG, "sliding_window": 9}),
    "SmolLM3ForCausalLM": ("qwen2", {**SIZES, "pad_token_id": None, "no_rope_layer_interval": 2}),
    "Olmo2ForCausalLM": ("gpt2", {**SIZES, "pad_token_id": None}),
    "Olmo3ForCausalLM": ("gpt2", {**SIZES, "pad_token_id": None, "sliding_window": 6}),
    "GraniteForCausalLM": ("gpt2", {**SIZES, "embedding_multiplier": 3, "logits_scaling": 2}),
    "GemmaForCausalLM": ("qwen2", SIZES),
    "Gemma2ForCausalLM": ("gemma", {**SIZES, "sliding_window": 6}),
    "Gemma3ForCausalLM": ("gemma", {**SIZES, "sliding_window": 6, "sliding_window_pattern": 2}),
}
CLASSIFIERS: Mapping[str, tuple[str, dict[str, Any]]] = {
    "BertForSequenceClassification": ("bert", ENCODER),
    "RobertaForSequenceClassification": ("roberta", {**ENCODER, "pad_token_id": 1}),
    "XLMRobertaForSequenceClassification": ("xlm-roberta", {**ENCODER, "pad_token_id": 1}),
    "CamembertForSequenceClassification": ("camembert", {**ENCODER, "pad_token_id": 1}),
    "DistilBertForSequenceClassification": ("bert", DISTIL),
}
LABELS = {0: "bad", 1: "good", 2: "fair"}


def make(
    folder: Path, tokenizer: str, name: str, sizes: Mapping[str, Any], spread: float = 0.2
) -> Any:  # noqa: ANN401
    """Write the tokenizer; return a model of random weights."""
    folder.mkdir(exist_ok=True)
    FAMILIES[tokenizer](folder)
    kind = getattr(transformers, name)
    torch.manual_seed(0)
    model = kind(kind.config_class(**sizes, vocab_size=len(read_tokenizer(folder)))).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(spread * torch.randn_like(parameter))
    return model


def test_gemma_3_as_it_is_published(tmp_path: Path) -> None:
    """A model for text alone has no row for the token of images; its context need not be told."""
    name, sizes = DECODERS["Gemma3ForCausalLM"]
    make(tmp_path, name, "Gemma3ForCausalLM", sizes).save_pretrained(tmp_path)
    tokenizer = read_tokenizer(tmp_path)
    tokenizer.add_special_tokens({"additional_special_tokens": ["<image_soft_token>"]})
    tokenizer.save_pretrained(tmp_path)
    config = json.loads((tmp_path / "config.json").read_text())
    del config["max_position_embeddings"]
    (tmp_path / "config.json").write_text(json.dumps(config))
    assert dragoman.load(tmp_path).generate("a <image_soft_token>", max_tokens=3).text
    defaults = open_folder(tmp_path).config.generation
    assert defaults
    assert defaults.context == 131_072


@pytest.mark.parametrize(
    ("name", "num_beams", "several"),
    [
        *((name, 1, True) for name in DECODERS),
        ("GPT2LMHeadModel", 1, False),
        ("GemmaForCausalLM", 3, True),
    ],
)
def test_a_decoder_generates_as_its_class(
    name: str, num_beams: int, tmp_path: Path, *, several: bool
) -> None:
    """In half precision, in shards, greedily and with a beam; with one end token or many."""
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
    """The labels have the same probabilities."""
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
    if tokenizer == "bert":  # it drops characters without width
        texts = [LINES[0], "\ufeff\u200b", LINES[1]]
        found = classifier.classify(texts)
        assert [each.flags for each in found] == [(), ("empty",), ()]
        assert (found[1].label, found[1].probabilities) == ("", {})


TAGGERS = {name.replace("Sequence", "Token"): case for name, case in CLASSIFIERS.items()}
HARD = (
    "Anna 😀 lives",
    "👩‍👩‍👧 e\u0301 \u0301 کِتاب \u064e",
    "\ufeff",
    "\ufeffAnna \ufffd in \u200b Basel",
    "  two  spaces .\u201d",
    "\u064b",
    "機械학습 ﬁ①",
)
"""Texts with words that a tokenizer drops, changes or joins."""


def make_tagger(folder: Path, name: str) -> tuple[Any, Any, Tagger]:
    """Return their model and tokenizer, and our tagger of the same folder."""
    kind, sizes = TAGGERS[name]
    model = make(folder, kind, name, {**sizes, "id2label": LABELS})
    model.save_pretrained(folder)
    return model, read_tokenizer(folder), dragoman.load(folder, device="cpu")


@pytest.mark.parametrize("name", TAGGERS)
def test_a_tagger_reads_as_its_class(name: str, tmp_path: Path) -> None:
    """Ids of the whole text agree; a word has the tag of the piece with its first character."""
    model, tokenizer, tagger = make_tagger(tmp_path, name)
    texts = [*LINES, *HARD]
    for text, found in zip(texts, tagger.tag(texts), strict=True):
        places = [(word.start, word.end) for word in found.words]
        inputs = tokenizer(text, return_tensors="pt", return_offsets_mapping=True)
        (ids, _), *_ = tagger.tokenizer.encode_words([text], [places])
        assert [inputs["input_ids"][0, 0], *ids, inputs["input_ids"][0, -1]] == [
            *inputs["input_ids"][0]
        ]
        with torch.no_grad():
            (given,) = model(inputs["input_ids"]).logits.softmax(-1)
        spans = [(int(a), int(b)) for a, b in inputs["offset_mapping"][0]]
        for word in found.words:
            covering = [
                at
                for at, (start, end) in enumerate(spans[1:-1], start=1)
                if (start < word.end and end > word.start) or start == end == word.start
            ]
            probability, tag = given[covering[0]].max(-1) if covering else (0.0, None)
            assert word.tag == ("O" if tag is None else LABELS[int(tag)])
            assert word.probability == pytest.approx(float(probability), rel=1e-4, abs=1e-5)


def test_a_tagger_that_learned_iob1_finds_its_names(tmp_path: Path) -> None:
    """I- begins a name if B- is improbable, as in their pipeline; also converted and evaluated."""
    names = {0: "O", 1: "B-PER", 2: "I-PER"}
    kind, sizes = TAGGERS["BertForTokenClassification"]
    theirs = tmp_path / "theirs"
    model = make(theirs, kind, "BertForTokenClassification", {**sizes, "id2label": names})
    with torch.no_grad():
        model.classifier.weight.zero_()
        model.classifier.bias.copy_(torch.tensor([0.0, -6.0, 5.0]))
    model.save_pretrained(theirs)
    text = "A man sits"
    (wanted,) = transformers.pipeline("ner", str(theirs), aggregation_strategy="simple")(text)
    take_over(theirs, tmp_path / "ours")
    (tmp_path / "words.conll").write_text("A B-PER\nman I-PER\n\nA B-PER\n", encoding="utf-8")
    for folder in (theirs, tmp_path / "ours"):
        tagging = dragoman.load(folder, device="cpu").tag(text)
        (span,) = tagging.spans
        assert (span.label, span.start, span.end) == ("PER", wanted["start"], wanted["end"])
        assert span.score == pytest.approx(float(wanted["score"]), abs=1e-6)
        assert [word.tag for word in tagging.words] == ["I-PER"] * 3
        measured = EvaluationData(data=tmp_path / "words.conll", device="cpu")
        figures = evaluate_tagger(read_folder(folder, device="cpu"), measured).figures
        assert (figures["spans"]["f1"], figures["accuracy"]) == (100.0, 100.0)


@pytest.mark.parametrize("name", TAGGERS)
def test_inspect_shows_what_a_tagger_reads(name: str, tmp_path: Path) -> None:
    """It shows the ids of the whole text, and each word's tag at the tagger's piece."""
    _, _, tagger = make_tagger(tmp_path, name)
    folder, text = read_folder(tmp_path, device="cpu"), f"{LINES[0]} \u064e {HARD[0]}"
    looked, tagged = inspect_folder(folder, text, Choices()), tagger.tag(text)
    places = [(word.start, word.end) for word in tagged.words]
    ((ids, starts),) = tagger.tokenizer.encode_words([text], [places])
    assert looked.src.tokens[1:-1] == tuple(tagger.tokenizer.tokens(ids))
    assert looked.prediction is not None
    shown = looked.prediction.tags[1:-1]
    for word, start in zip(tagged.words, starts, strict=True):
        assert start is None or shown[start] == word.tag
    assert sum(tag is not None for tag in shown) == len({*starts} - {None})


@pytest.mark.parametrize("name", TAGGERS)
def test_words_are_tagged_and_learned_as_its_class_does(name: str, tmp_path: Path) -> None:
    """Presplit words have their ids, and the piece that carries the tag is theirs."""
    model, tokenizer, tagger = make_tagger(tmp_path, name)
    if name.startswith("Roberta"):  # theirs requires a space before the first word too
        tokenizer = transformers.AutoTokenizer.from_pretrained(tmp_path, add_prefix_space=True)
        tokenizer.save_pretrained(tmp_path)
        tagger = dragoman.load(tmp_path, device="cpu")
    words = [line.split() for line in (*SENTENCES, "Anna 😀 e\u0301 \u0301 کِتاب \u064e \ufeff")]
    path = tmp_path / "words.conll"
    path.write_text("\n\n".join("\n".join(f"{w} x{n % 3}" for n, w in enumerate(s)) for s in words))
    dataset = load_tagged(path, TaggedLayout(scheme="plain"), tagger.tokenizer)
    batches = tag_batches(dataset, BatchConfig(max_tokens=1))
    learned = {int(batch.indices[0]): batch for batch in batches.fixed()}
    for number, (sentence, found) in enumerate(zip(words, tagger.tag_words(words), strict=True)):
        inputs = tokenizer(sentence, is_split_into_words=True, return_tensors="pt")
        with torch.no_grad():
            (given,) = model(**inputs).logits
        places = inputs.word_ids(0)
        firsts = {n: places.index(n) for n in range(len(sentence)) if n in places}
        tags = [
            LABELS[int(given[firsts[n]].argmax())] if n in firsts else "O"
            for n in range(len(sentence))
        ]
        assert [word.tag for word in found.words] == tags
        assert torch.equal(learned[number].ids_BL, inputs["input_ids"])
        wanted = torch.full_like(inputs["input_ids"], NO_TAG)
        for n, first in firsts.items():
            wanted[0, first] = n % 3
        assert torch.equal(learned[number].tags_BL, wanted)
