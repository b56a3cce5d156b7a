"""Fine-tuning a Hugging Face translator: its class computes the same loss for the batches."""

from pathlib import Path
from typing import Any

import pytest
import torch
from rich.console import Console
from tests.disk import opened
from tests.foreign_folders import SENTENCES, set_keys
from tests.parity.test_foreign_texts import CASES, CODES, make_folder, read_tokenizer

from dragoman.convert.published import take_over
from dragoman.errors import InputError
from dragoman.folder.opening import open_folder
from dragoman.tasks.recipes import load_recipe, train_model
from dragoman.tasks.translate.job import TranslateJob, assemble
from dragoman.tasks.translate.recipe import TranslateRecipe
from dragoman.train.runfolder import RunFolder
from dragoman.train.start import copy_weights

PAIRS = list(zip(SENTENCES, [*SENTENCES[2:], *SENTENCES[:2]], strict=True))
SETTINGS = (
    *("batch.max_tokens=400", "batch.max_length=200", "model.dropout=0", "model.ffn_dropout=0"),
    *("model.attention_dropout=0", "train.device=cpu", "train.precision=fp32", "data.hold_out=1"),
    "train.label_smoothing=0",
)


def texts(folder: Path) -> tuple[str, ...]:
    """Write the pairs; return the settings that name the files."""
    for side, lines in zip(("src", "tgt"), zip(*PAIRS, strict=True), strict=True):
        (folder / f"text.{side}").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return tuple(f"data.{side}={folder / f'text.{side}'}" for side in ("src", "tgt"))


def make_recipe(folder: Path, *settings: str) -> TranslateRecipe:
    """Return the recipe of a run that starts from `folder/theirs`."""
    path = folder / "recipe.toml"
    path.write_text('task = "translate"\n', encoding="utf-8")
    start, out = folder / "theirs", folder / "run"
    where = (f"start.model={start}", f"out={out}", f"data.cache={folder / 'cache'}")
    recipe = load_recipe(str(path), (*texts(folder), *where, *SETTINGS, *settings))
    assert isinstance(recipe, TranslateRecipe)
    return recipe


def begin(folder: Path, *settings: str) -> TranslateJob:
    """Return the job of a run that starts from `folder/theirs`, with its weights."""
    recipe = make_recipe(folder, *settings)
    with RunFolder.of(recipe).open(recipe) as run:
        job = assemble(recipe, run, lambda _: None)
    start = open_folder(folder / "theirs")
    copy_weights(start.load(), start.config, job.model, job.config.model, recipe)
    return job


def languages(name: str) -> list[str]:
    """Return the settings that choose the languages of `CODES`."""
    sides = zip(("src", "tgt"), CODES.get(name, ()), strict=False)
    return [f"data.{side}_lang={code}" for side, code in sides]


def their_loss(theirs: Any, tokenizer: Any, pairs: list[tuple[str, str]]) -> float:  # noqa: ANN401
    """Sum the class's loss over pairs, one by one."""
    total = 0.0
    for src, tgt in pairs:
        batch = tokenizer(src, text_target=tgt, return_tensors="pt")
        if theirs.config.model_type == "fsmt":  # it does not shift the labels itself
            start = torch.tensor([[theirs.config.decoder_start_token_id]])
            batch["decoder_input_ids"] = torch.cat([start, batch["labels"][:, :-1]], dim=1)
        with torch.no_grad():
            total += float(theirs(**batch).loss) * batch["labels"].numel()
    return total


@pytest.mark.parametrize("name", [*CASES, "marian-deu"])
def test_the_loss_is_that_of_the_class(name: str, tmp_path: Path) -> None:
    """Sources and targets are in its tokenizer's frames, padded together, and counted."""
    family, _, into = name.partition("-")
    theirs = make_folder(tmp_path / "theirs", family)
    tokenizer = read_tokenizer(tmp_path / "theirs")
    if name in CODES:
        tokenizer.src_lang, tokenizer.tgt_lang = CODES[name]
    job = begin(tmp_path, *languages(name), *([f"data.tgt_lang={into}"] if into else []))
    job.model.eval()
    before = f">>{into}<< " if into else ""
    seen = list[int]()
    for _ in range(job.batches.num_batches):
        batch = next(job.batches)
        seen += batch.indices.tolist()
        pairs = [PAIRS[index] for index in batch.indices]
        wanted = their_loss(theirs, tokenizer, [(before + s, t) for s, t in pairs])
        with torch.no_grad():
            found = float(job.loss(batch))
        labels = sum(len(tokenizer(text_target=t)["input_ids"]) for _, t in pairs)
        assert batch.num_targets == labels
        assert found / labels == pytest.approx(wanted / labels, rel=1e-5)
    assert len(set(seen)) == len(seen) == len(PAIRS) - 1


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (("en_XX", "de_DEx"), "no target language de_DEx: .* did you mean de_DE?"),
        (("e_XX", "de_DE"), "no source language e_XX: .* did you mean"),
        ((None, None), "say which by --src-lang and --tgt-lang"),
        ((None, "de_DE"), "say in which by --src-lang"),
    ],
)
def test_languages_must_be_those_of_the_model(
    given: tuple[str | None, str | None], message: str, tmp_path: Path
) -> None:
    """A wrong or a missing one is refused before a text is read, with the nearest name."""
    make_folder(tmp_path / "theirs", "mbart50")
    sides = zip(("src", "tgt"), given, strict=True)
    with pytest.raises(InputError, match=message):
        begin(tmp_path, *(f"data.{side}_lang={code}" for side, code in sides if code))
    assert not (tmp_path / "cache").exists()


def test_a_second_run_keeps_the_languages_of_the_first(tmp_path: Path) -> None:
    """Its folder remembers them too, and BLEU uses the target language's tokenization."""
    make_folder(tmp_path / "published", "nllb")
    take_over(tmp_path / "published", tmp_path / "theirs")
    set_keys(tmp_path / "theirs", src_lang="eng_Latn", tgt_lang="zho_Hans")
    job = begin(tmp_path)
    assert (job.config.src_lang, job.config.tgt_lang) == ("eng_Latn", "zho_Hans")
    assert job.measure().signature == begin(tmp_path, "data.tgt_lang=zho_Hans").measure().signature
    assert "tok:zh" in job.measure().signature


@pytest.mark.parametrize("converted", [False, True])
def test_its_config_is_opened_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, converted: bool
) -> None:
    """The run takes everything from the first read; a published file is also copied."""
    make_folder(theirs := tmp_path / ("published" if converted else "theirs"), "marian")
    if converted:
        take_over(theirs, tmp_path / "theirs")
    settings = ("train.max_steps=2", "train.validate_every=1", "train.warmup_steps=1")
    recipe = make_recipe(tmp_path, *settings)
    counts = opened(monkeypatch)
    train_model(recipe, console=Console(quiet=True))
    assert counts[tmp_path / "theirs" / "config.json"] == (1 if converted else 2)
