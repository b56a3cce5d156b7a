"""Published models by the command line: what cannot be used is one sentence, and exit code 2."""

import json
import os
import shutil
from pathlib import Path

import pytest
from tests.parity.test_foreign_texts import make_folder
from tests.system.cli.command import Run, in_own_process, write
from tests.system.cli.test_wrong_input import assert_refused


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Folders of three families."""
    made = {name: tmp_path_factory.mktemp(name) for name in ("marian", "nllb", "t5")}
    for name, folder in made.items():
        make_folder(folder, name)
    return made


def test_what_is_no_usable_model_is_told(
    run: Run, folders: dict[str, Path], tmp_path: Path
) -> None:
    """What is wrong, in which file, and what to do; parity/test_foreign_damage.py has more."""
    folder = shutil.copytree(folders["marian"], tmp_path / "model")
    (folder / "generation_config.json").write_text('{"num_beams": "many"}')
    said = "generation_config.json", "beam_size is 'many'"
    assert_refused(run("translate", folder, "A man."), *said)
    for name in ("generation_config.json", "source.spm"):
        (folder / name).unlink()
    assert_refused(run("translate", folder, "A man."), "has no source.spm; get the whole")


def test_a_pipe_in_place_of_the_config_is_not_waited_for(
    folders: dict[str, Path], tmp_path: Path
) -> None:
    """The command looks at the config before the model is loaded."""
    folder = shutil.copytree(folders["marian"], tmp_path / "model")
    (folder / "config.json").unlink()
    os.mkfifo(folder / "config.json")
    assert_refused(in_own_process("translate", folder, "A man."), "has model.safetensors but no")


def test_a_file_in_place_of_the_folder_is_told(run: Run, tmp_path: Path) -> None:
    """By what it is."""
    for name, words in {
        "a.gguf": "llama.cpp",
        "a.pt": "fairseq",
        "model.safetensors": "is a file;",
    }.items():
        (tmp_path / name).write_bytes(b"")
        assert_refused(run("translate", tmp_path / name, "A man."), name, words)


def test_languages_are_told(run: Run, folders: dict[str, Path], tmp_path: Path) -> None:
    """The nearest code, those that there are, and that there are none."""
    src, tgt, text = "--src-lang", "--tgt-lang", "A man."
    nllb: list[str | Path] = ["translate", folders["nllb"], text]
    assert_refused(run(*nllb), "has 3 languages", src, tgt, "deu_Latn, eng_Latn, zho_Hans")
    wrong = run(*nllb, src, "eng_Latn", tgt, "deu_Latin")
    assert_refused(wrong, "no target language deu_Latin", "did you mean deu_Latn?")
    assert_refused(run(*nllb, src, "xx", tgt, "deu_Latn"), "no source language xx: it has deu_L")
    assert_refused(run(*nllb, src, "zh-TW", tgt, "deu_Latn"), "it has zho_Hans, deu_Latn, eng_L")
    usual, own = run(*nllb, src, "zh", tgt, "de-DE"), run(*nllb, src, "zho_Hans", tgt, "deu_Latn")
    assert (usual.code, usual.out) == (0, own.out)
    assert_refused(run("translate", folders["t5"], text, tgt, "de"), "no codes of languages", "T5")
    pairs = write(tmp_path / "a.tsv", ["A man.\tEin Mann."] * 3)
    scored = run("data", "check", "--tsv", pairs, "--score-by", folders["t5"], src, "en", tgt, "de")
    assert_refused(scored, "no codes of languages", "T5")


def test_languages_of_marian_are_shown(run: Run, folders: dict[str, Path], tmp_path: Path) -> None:
    """Of the settings of its tokenizer, converted too; an odd one commands no terminal."""
    folder = shutil.copytree(folders["marian"], tmp_path / "marian")
    assert "unknown" not in run("inspect", folder).out
    said = {"source_lang": "en", "target_lang": "RO\x1b[2J"}
    (folder / "tokenizer_config.json").write_text(json.dumps(said))
    assert run("convert", folder, tmp_path / "ours").code == 0
    for each in (folder, tmp_path / "ours"):
        assert "encoder-decoder, en to RO\\x1b[2J" in run("inspect", each).out
    shown = json.loads(run("inspect", folder, "--json").out)
    assert (shown["src_lang"], shown["tgt_lang"]) == ("en", said["target_lang"])
