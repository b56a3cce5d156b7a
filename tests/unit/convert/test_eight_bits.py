"""A folder in 8 bits: what is kept, what is counted, what is refused."""

import json
from collections.abc import Callable
from dataclasses import replace
from hashlib import sha256
from pathlib import Path

import pytest
from sacrebleu.metrics.chrf import CHRF
from tests.unit.tasks.readers import MASKED, TAG, save_reader
from tests.unit.tasks.tiny import random_lines, save_translator
from tests.unit.tasks.tiny_generator import save_generator

import dragoman
from dragoman.convert.eight_bits import quantize
from dragoman.errors import InputError
from dragoman.evaluate import evaluate
from dragoman.folder.opening import open_folder
from dragoman.tasks.translate.translator import Translator

LINES = [*random_lines(12, seed=4), "", "我喜欢学习。"]
SAVE: dict[str, Callable[[Path], Path]] = {
    "translator": save_translator,
    "generator": save_generator,
    "tagger": lambda folder: save_reader(folder, TAG),
    "masked": lambda folder: save_reader(folder, MASKED),
}


def translations(folder: Path) -> list[str]:
    """Of the lines, in float32."""
    return [each.text for each in Translator.load(folder, device="cpu").translate(LINES)]


@pytest.mark.parametrize("kind", ["translator", "generator", "tagger"])
def test_every_kind_of_model_can_be_rounded(tmp_path: Path, kind: str) -> None:
    """Without a probe. The folder has the config and the tokenizers of the original."""
    model = SAVE[kind](tmp_path / "model")
    assert quantize(model, tmp_path / "out") is None
    before, after = open_folder(model).config, open_folder(tmp_path / "out").config
    assert after == replace(before, format=3, weights_sha256=after.weights_sha256)
    assert after.weights_sha256 != before.weights_sha256
    names = {path.name for path in (tmp_path / "out").iterdir()}
    assert names == {"README.md", "config.json", "model.safetensors", "tokenizer.json"}
    assert sorted(path.name for path in tmp_path.iterdir()) == ["model", "out"]


def test_rounding_a_rounded_folder_changes_no_weight(tmp_path: Path) -> None:
    """And no translation."""
    model = save_translator(tmp_path / "model")
    quantize(model, tmp_path / "once")
    drift = quantize(tmp_path / "once", tmp_path / "twice", LINES)
    assert drift is not None
    assert (drift.sentences, drift.changed, drift.worst, drift.bleu) == (len(LINES), 0, None, None)
    files = [(tmp_path / each / "model.safetensors").read_bytes() for each in ("once", "twice")]
    assert files[0] == files[1]


def test_the_drift_is_counted(tmp_path: Path) -> None:
    """Changed translations, the one that changed most and BLEU are those of the two folders."""
    model, out = save_translator(tmp_path / "model"), tmp_path / "out"
    references = random_lines(len(LINES), seed=5)
    drift = quantize(model, out, LINES, references)
    before, after = translations(model), translations(out)
    changed = [n for n, (one, other) in enumerate(zip(before, after, strict=True)) if one != other]
    assert changed  # weights drawn at random have no opinion
    assert drift is not None
    assert (drift.sentences, drift.changed) == (len(LINES), len(changed))
    assert drift.worst is not None
    line, *texts = drift.worst
    assert texts == [before[line - 1], after[line - 1]]
    chrf = CHRF()
    scores = [chrf.sentence_score(after[n], [before[n]]).score for n in changed]
    assert chrf.sentence_score(texts[1], [texts[0]]).score == min(scores)
    wanted = tuple(evaluate(side, references, tgt_lang="zh").bleu for side in (before, after))
    assert drift.bleu == wanted
    assert str(drift).startswith(f"{len(changed)} of 14 translations changed, BLEU ")
    assert str(drift) in (out / "README.md").read_text()


def test_the_card_of_the_original_is_kept(tmp_path: Path) -> None:
    """It ends with what was done, also where somebody has edited it in another encoding."""
    model = save_translator(tmp_path / "model")
    for number, card in enumerate((b"# Card\n\n- bleu: 29.56\n", b"# K\xe4rtchen", None)):
        (model / "README.md").unlink(missing_ok=True)
        if card is not None:
            (model / "README.md").write_bytes(card)
        quantize(model, tmp_path / str(number))
        text = (tmp_path / str(number) / "README.md").read_text(encoding="utf-8")
        kept = (card or b"").decode(errors="replace").rstrip()
        assert text.startswith(f"{kept}\n\n## 8 bits\n\n" if kept else "## 8 bits\n\n")
        assert f"`dragoman convert --to int8`, dragoman {dragoman.__version__}" in text
        assert text.endswith("those of the model before.\n")


def test_two_tokenizers_and_a_task_of_ones_own_stay(tmp_path: Path) -> None:
    """The folder is copied as it is, with what only its own task understands."""
    model = save_generator(tmp_path / "model")
    data = json.loads((model / "config.json").read_text())
    tokenizer = (model / "tokenizer.json").read_bytes()
    (model / "tokenizer.src.json").write_bytes(tokenizer)
    (model / "tokenizer.tgt.json").write_bytes(tokenizer)
    (model / "tokenizer.json").unlink()
    digest = sha256(tokenizer).hexdigest()
    data["tokenizers"] = {"tokenizer.src.json": digest, "tokenizer.tgt.json": digest}
    data["task"] = "somebody.elses.task"
    (model / "config.json").write_text(json.dumps(data))
    quantize(model, tmp_path / "out")
    found = open_folder(tmp_path / "out").config
    assert (found.task, found.tokenizers) == ("somebody.elses.task", data["tokenizers"])


@pytest.mark.parametrize(
    ("kind", "sentences", "references", "message"),
    [
        ("translator", ["", "  "], ["a", "b"], "the probe has no sentence; give a file"),
        ("translator", ["a cat", ""], ["a"], "has 2 lines and the references have 1 line; give"),
        ("translator", ["a cat"], [], "the probe has 1 line and the references have 0 lines; give"),
        ("generator", ["a cat"], None, "model holds a model of the kind .*, which "),
        ("masked", ["a cat"], None, "model holds a model of the kind .*, which "),
    ],
)
def test_a_probe_must_fit(
    tmp_path: Path, kind: str, sentences: list[str], references: list[str] | None, message: str
) -> None:
    """It is for what translates; the sentence says what the model does instead."""
    model = SAVE[kind](tmp_path / "model")
    with pytest.raises(InputError, match=message):
        quantize(model, tmp_path / "out", sentences, references)
    assert [path.name for path in tmp_path.iterdir()] == ["model"]
