"""Converted folders, loaded by the libraries they are for, against the model itself.

`convert` compares greedy translations and their logits; these tests cover the rest.
"""

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from tests.unit.convert.saving import TOKENIZER, save
from tests.unit.models.small import distance
from tests.unit.tasks.complete import translating
from tests.unit.tasks.tiny import DECODING, make_config, random_lines
from transformers import AutoModelForSeq2SeqLM, AutoTokenizer

from dragoman.convert.targets import TargetName, convert
from dragoman.models import EncoderDecoder, EncoderDecoderConfig
from dragoman.nn import Learned, RelativeBias, Sinusoidal
from dragoman.tasks.translate.translator import Translator
from dragoman.text.tokenizer import Tokenizer

PAPER = replace(
    make_config(TOKENIZER),
    num_encoder_layers=2,
    num_decoder_layers=2,
    tie_embeddings="all",
    output_bias=False,
)
BOTH = {
    "paper": PAPER,
    "untied": replace(PAPER, tie_embeddings="none", output_bias=True, num_encoder_layers=1),
    "target-output": replace(PAPER, tie_embeddings="target-output", activation="gelu"),
    "source-target": replace(PAPER, tie_embeddings="source-target", activation="gelu_tanh"),
    "halves": replace(PAPER, positions=Sinusoidal(layout="halves")),
    "unscaled": replace(PAPER, scale_embedding=False, activation="silu"),
    "no-bias": replace(PAPER, bias=False),
    "spare-rows": replace(PAPER, src_vocab_size=330, tgt_vocab_size=330),
}
PRE = {
    "pre": replace(PAPER, norm_position="pre"),
    "pre-untied": replace(PAPER, norm_position="pre", tie_embeddings="none", output_bias=True),
    "pre-target": replace(PAPER, norm_position="pre", tie_embeddings="target-output"),
}
CT2_ONLY = {
    "rms": replace(PAPER, norm="rms", norm_eps=1e-3),
    "gated": replace(PAPER, gated=True),
    "learned": replace(PAPER, positions=Learned(max_length=99), embedding_norm=True),
    "head-dim": replace(PAPER, head_dim=6, attention_scale=0.3),
    "t5": replace(
        PAPER,
        positions=RelativeBias(num_buckets=8, max_distance=12),
        norm="rms",
        norm_position="pre",
        bias=False,
        scale_embedding=False,
        attention_scale=1.0,
        logit_scale=0.5,
    ),
    "fairseq": replace(PAPER, positions=Sinusoidal(exponent="d/2-1", first=2)),
}
ALL = BOTH | PRE | CT2_ONLY
LINES = [*random_lines(6, seed=3), "</s> <pad>", "😀 我喜欢  a "]


def converted(tmp_path: Path, config: EncoderDecoderConfig, to: TargetName) -> EncoderDecoder:
    """Save a model as `model` and convert it to `out`."""
    model = save(tmp_path / "model", config, decoding=DECODING)
    assert isinstance(model, EncoderDecoder)
    assert convert(tmp_path / "model", tmp_path / "out", to, LINES).worst < 1e-5
    return model


@pytest.mark.parametrize("name", BOTH | PRE)
def test_transformers_computes_the_same(tmp_path: Path, name: str) -> None:
    """Ids and logits of a padded batch agree, with the classes that users call."""
    model = converted(tmp_path, (BOTH | PRE)[name], "huggingface")
    theirs = AutoModelForSeq2SeqLM.from_pretrained(tmp_path / "out")
    tokenizer = AutoTokenizer.from_pretrained(tmp_path / "out")
    assert tokenizer.model_max_length == translating().max_src_tokens + 1

    batch = tokenizer(LINES, padding=True, return_tensors="pt")
    for row, ids in zip(batch.input_ids.tolist(), TOKENIZER.encode_batch(LINES), strict=True):
        assert row[: len(ids) + 1] == [*ids, TOKENIZER.eos_id]
        assert not any(row[len(ids) + 1 :])
        assert tokenizer.decode(row, skip_special_tokens=True) == TOKENIZER.decode(ids)
    targets_BT = torch.randint(4, 300, (len(LINES), 9))
    with torch.inference_mode():
        found = theirs(**batch, decoder_input_ids=targets_BT).logits
        assert distance(found, model(batch.input_ids, targets_BT)) < 1e-5


@pytest.mark.parametrize("config", ALL.values(), ids=ALL.keys())
def test_ctranslate2_computes_the_same(tmp_path: Path, config: EncoderDecoderConfig) -> None:
    """The log-probabilities of given targets agree, in a batch."""
    ctranslate2 = pytest.importorskip("ctranslate2", reason="the extra `export` is not installed")
    converted(tmp_path, config, "ctranslate2")
    engine = ctranslate2.Translator(str(tmp_path / "out"), compute_type="float32")
    tokenizer = Tokenizer.load(tmp_path / "out" / "tokenizer.json")
    translator = Translator.load(tmp_path / "model", device="cpu")
    sources = [tokenizer.tokens(tokenizer.encode(line.strip())) for line in LINES]
    targets = list(reversed(sources))
    scored = engine.score_batch(sources, targets)
    pairs = list(zip(LINES, reversed(LINES), strict=True))
    for theirs, own in zip(scored, translator.score([(a, b) for a, b in pairs]), strict=True):
        assert theirs.log_probs == pytest.approx(own.token_log_probs, abs=1e-3, rel=1e-4)
