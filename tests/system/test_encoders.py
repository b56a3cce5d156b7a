"""Classifiers and taggers from the outside: from a file to a folder to answers."""

import json
from collections.abc import Callable
from pathlib import Path

from tests.system.conftest import CommandLine
from tests.unit.train.encoder_recipes import classify_recipe, tag_recipe

from dragoman.plain import to_plain
from dragoman.train.recipe import RunRecipe


def write_recipe(folder: Path, make: Callable[[Path], RunRecipe]) -> Path:
    """A recipe in a file, as a run keeps it."""
    path = folder / "recipe.json"
    path.write_text(json.dumps(to_plain(make(folder))), encoding="utf-8")
    return path


def test_a_classifier(dragoman: CommandLine, tmp_path: Path) -> None:
    """Trained, it labels lines, is evaluated, is inspected, and the last line says what is next.

    A label that it does not have is told, and there is a setting that mends it.
    """
    file, out = tmp_path / "texts.tsv", tmp_path / "run"
    said = dragoman.run("train", write_recipe(tmp_path, classify_recipe)).succeeded()
    assert f"dragoman classify {out} < FILE" in said
    lines = tmp_path / "lines"
    lines.write_text("so good\n\nwas very bad\n", encoding="utf-8")
    said = dragoman.run("classify", out, lines).succeeded()
    first, empty, last = said.splitlines()[:3]
    assert (first[:2], empty, last[:2]) == ("1\t", "", "0\t")
    ended = dragoman.run("classify", out, lines, "--json")
    found = [json.loads(line) for line in ended.said.splitlines()[:3]]
    assert [sorted(one["probabilities"]) for one in found] == [["0", "1"], [], ["0", "1"]]
    said = dragoman.run("evaluate", out, "--data", file).succeeded()
    assert "accuracy  100.00" in said
    assert "classify" in dragoman.run("inspect", out).said
    other = tmp_path / "other.tsv"
    other.write_text("yes\tso good\nno\tso bad\n", encoding="utf-8")
    wrong = dragoman.run("evaluate", out, "--data", other)
    wrong.assert_refused("has the label 'no', and the model knows 0, 1")
    names = ("--layout", "rename.no=0", "--layout", "rename.yes=1")
    dragoman.run("evaluate", out, "--data", other, *names).succeeded()


def test_a_tagger(dragoman: CommandLine, tmp_path: Path) -> None:
    """Trained, it tags words in all forms of texts, is evaluated, and the last line is right."""
    file, out = tmp_path / "words.conll", tmp_path / "run"
    said = dragoman.run("train", write_recipe(tmp_path, tag_recipe)).succeeded()
    assert f"dragoman tag {out} < FILE" in said
    texts = tmp_path / "texts"
    texts.write_text("so Ann Bo\n\nAnn was\n", encoding="utf-8")
    expected = ["so\tO", "Ann\tB-PER", "Bo\tI-PER", "", "", "Ann\tB-PER", "was\tO", ""]
    for form in ("text", "words"):
        said = dragoman.run("tag", out, texts, "--input", form).succeeded()
        assert said.splitlines()[:8] == expected
    columns = tmp_path / "columns"
    columns.write_text("so x\nAnn y\nBo\n\nAnn\nwas z\n", encoding="utf-8")
    ended = dragoman.run("tag", out, columns, "--input", "columns")
    assert ended.said.splitlines()[:7] == [*expected[:4], *expected[5:]]
    ended = dragoman.run("tag", out, texts, "--json")
    spans = [json.loads(line)["spans"] for line in ended.said.splitlines()[:3]]
    assert [[span["text"] for span in found] for found in spans] == [["Ann Bo"], [], ["Ann"]]
    said = dragoman.run("evaluate", out, "--data", file).succeeded()
    assert "PER" in said
