"""`dragoman inspect MODEL TEXT`: what heads do to the logits, and the text without one of them."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from tests.system.cli.command import Run
from tests.system.cli.test_inspect import TEXT, look
from tests.system.cli.test_wrong_input import assert_refused
from tests.unit.tasks.tiny_generator import save_generator
from torch import Tensor

from dragoman.folder.opening import ModelFolder
from dragoman.lens.trace import attentions
from dragoman.tasks.folders import read_folder
from dragoman.tasks.generate.generator import Generator
from dragoman.tasks.translate.translator import Translator


def written(found: dict[str, Any], folder: ModelFolder) -> list[int]:
    """The ids of a translation."""
    names = folder.tgt_tokenizer.tokens(range(folder.tgt_tokenizer.vocab_size))
    return [names.index(token) for token in found["tgt"]["tokens"]]


def assert_explained(found: dict[str, Any], logits_TV: Tensor, ids: list[int]) -> None:
    """The shares of each step sum to its logit; after the last layer the lens is the model."""
    assert len(found["steps"]) == len(ids)
    sums = [sum(step) for step in zip(*(each["shares"] for each in found["logits"]), strict=True)]
    assert sums == pytest.approx(logits_TV[range(len(ids)), ids].tolist(), abs=0.01)  # 4 digits
    for step, probs_V in zip(found["steps"], logits_TV.softmax(-1), strict=True):
        assert len(step["lens"]) == max(each["layer"] or 0 for each in found["logits"]) + 1
        assert step["lens"][-1]["prob"] == pytest.approx(float(probs_V.max()), abs=1e-5)


def test_the_logits_of_a_translation_are_explained(run: Run, model: Path) -> None:
    """Each by heads of the decoder, feed-forward networks, the embedding and biases."""
    found, folder = look(run, model, TEXT), read_folder(model, device="cpu")
    ids = written(found, folder)
    src = [*folder.src_tokenizer.encode(TEXT), folder.src_tokenizer.eos_id]
    read = [folder.tgt_tokenizer.bos_id, *ids[:-1]]
    with torch.no_grad():
        [logits_TV] = folder.model(torch.tensor([src]), torch.tensor([read]))
    assert_explained(found, logits_TV, ids)
    heads = [(each["name"], each["head"]) for each in found["logits"] if each["head"] is not None]
    number = attentions(folder.model)["decoder"][0].num_heads
    assert heads == [(name, head) for name in ("cross", "decoder") for head in range(number)]


def test_the_logits_of_a_continuation_are_explained(run: Run, tmp_path: Path) -> None:
    """Those of given tokens too."""
    folder = save_generator(tmp_path / "model")
    found = look(run, folder, TEXT, "--max-tokens", "4", "--temperature", "0")
    opened = read_folder(folder, device="cpu")
    generator = Generator.of(opened)
    prompt = generator.encode(TEXT)
    best = generator.generate(TEXT, max_tokens=4, temperature=0.0)
    ids = [*prompt, *best.ids, *[opened.tgt_tokenizer.eos_id] * (best.stopped == "eos")]
    with torch.no_grad():
        [logits_TV] = opened.model(torch.tensor([ids[:-1]]))
    assert_explained(found, logits_TV, ids[1:])


def test_heads_can_be_switched_off(run: Run, model: Path, tmp_path: Path) -> None:
    """What is found without a head, and what the model without it thinks of the translation."""
    found = look(run, model, TEXT, "--switch-off", "--heads=1", "--beam-size=2")
    each = found["switched_off"]
    heads = [(off["name"], off["layer"], off["head"]) for off in each]
    assert heads == [("encoder", 0, 1), ("decoder", 0, 1), ("cross", 0, 1)]
    src_ids = Translator.load(model, device="cpu").src_tokenizer.encode(TEXT)
    for off in each:
        folder = read_folder(model, device="cpu")
        ids = written(found, folder)
        pair = src_ids, ids[: -1 if ids[-1] == folder.tgt_tokenizer.eos_id else None]
        [whole] = Translator.of(folder).score_ids([pair])
        attention = attentions(folder.model)[off["name"]][0]
        d = attention.head_dim
        attention.out_proj.weight.data[:, d : 2 * d] = 0.0
        translator = Translator.of(folder)
        options = replace(translator.options, retry=False, beam_size=2)
        assert off["text"] == translator.translate(TEXT, options=options).text
        [scored] = translator.score_ids([pair])
        now, before = (sum(each.token_log_probs[: len(ids)]) for each in (scored, whole))
        assert off["log_prob"] == pytest.approx(now, abs=1e-4)
        assert off["change"] == pytest.approx(now - before, abs=1e-4)
    assert any(off["text"] != found["tgt"]["text"] for off in each)
    assert any(abs(off["change"]) > 0.01 for off in each)
    assert look(run, model, TEXT)["switched_off"] == []
    generator = save_generator(tmp_path / "model")
    refused = "is decoder-only, which has no --switch-off; leave it out."
    assert_refused(run("inspect", generator, TEXT, "--switch-off"), refused)
