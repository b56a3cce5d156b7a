"""`dragoman translate` with documents: requests to the model, output files and messages."""

import json
import re
import signal
import sys
from importlib import import_module
from pathlib import Path
from typing import Self

import pytest
from tests.system.cli.command import Done, Run
from tests.system.cli.test_wrong_input import assert_refused
from tests.unit.tasks.tiny import save_translator
from tests.unit.train.made import file_size_limit
from tests.word_translator import WordTranslator

from dragoman.cli import translate
from dragoman.cli.main import main
from dragoman.decoding import TRANSLATING

PAGE = "<title>A page</title><p>One <b>red</b> word.</p><p>x</p><pre>left</pre>"
IN_CAPITALS = "<title>A PAGE</title><p>ONE <b>RED</b> WORD.</p><p>X</p><pre>left</pre>"


class Model(WordTranslator):
    """A fake model."""

    def aligning(self) -> Self:
        """Return itself."""
        return self


def translated(
    run: Run,
    folder: Path,
    *options: str | Path,
    most: int | None = None,
    stdin: bytes | None = None,
) -> Done:
    """Run the command with a model that writes capitals and fails after `most` texts."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            translate,
            "load_translator",
            lambda *_, **__: (Model(str.upper, most=most), TRANSLATING),
        )
        return run("translate", folder, *options, stdin=stdin)


def test_a_document_is_translated(run: Run, tmp_path: Path) -> None:
    """The extension chooses the format; skipped parts are reported on stderr or as JSON."""
    page, output = tmp_path / "page.html", tmp_path / "page.de.html"
    page.write_text(PAGE)
    done = translated(run, tmp_path, page, "--output", output)
    assert (done.code, done.out) == (0, "")
    assert output.read_text() == IN_CAPITALS
    assert "3 texts of 3 translated in" in done.err
    assert "left as it is: <pre>, text whose spaces" in done.err
    done = translated(run, tmp_path, page, "--output", output, "--overwrite", "--json")
    assert json.loads(done.out)["translated"] == 3
    tm = tmp_path / "a.tsv"
    tm.write_text("x\ty\n")
    done = translated(run, tmp_path, page, "--output", output, "--overwrite", "--tm", tm)
    assert re.search(r"3 texts of 3 translated in .* s, 0 of them by the memory\n", done.err)
    page.write_text("<pre>left</pre><p>1")
    done = translated(run, tmp_path, page, "--output", output, "--overwrite")
    assert (done.code, output.read_text()) == (0, page.read_text())
    assert f"{page} has no text to translate; {output} is a copy of it" in done.err


@pytest.mark.filterwarnings("default:.*is read as the names")
def test_a_glossary_is_read_in_the_direction_of_the_translation(run: Run, tmp_path: Path) -> None:
    """Its header may name the languages the other way round; a warning says how it is read."""
    (page := tmp_path / "page.html").write_text(PAGE)
    (terms := tmp_path / "terms.tsv").write_text("German\tEnglish\nrot\tred\n")
    given = (page, "--output", tmp_path / "page.de.html", "--glossary", terms)
    done = translated(run, tmp_path, *given, "--src-lang=en", "--tgt-lang=de")
    assert done.code == 0
    assert "'English' with 'German', is read as the names of the columns" in done.err


def test_an_interrupted_document_goes_on(run: Run, tmp_path: Path) -> None:
    """Finished translations are kept next to the file and not requested again."""
    page, output = tmp_path / "page.html", tmp_path / "page.de.html"
    page.write_text(PAGE)
    done = translated(run, tmp_path, page, "--output", output, most=2)
    assert done.code == 130
    assert not output.exists()
    assert "add --resume to the same command to continue" in done.err
    assert "add --resume" in translated(run, tmp_path, page, "--output", output).err
    page.write_text(PAGE + " ")
    done = translated(run, tmp_path, page, "--output", output, "--resume")
    assert "was written with another document" in done.err
    page.write_text(PAGE)
    translated(run, tmp_path, page, "--output", output, "--resume", most=2).succeeded()
    assert output.read_text() == IN_CAPITALS
    assert sorted(file.name for file in tmp_path.iterdir()) == ["page.de.html", "page.html"]


def test_who_ends_a_command_is_told_what_is_kept(run: Run, tmp_path: Path) -> None:
    """SIGTERM reports the kept results as Ctrl-C does."""
    page, output = tmp_path / "page.html", tmp_path / "page.de.html"
    page.write_text(PAGE)

    def change(word: str) -> str:
        if word == "red":
            signal.raise_signal(signal.SIGTERM)
        return word.upper()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(translate, "load_translator", lambda *_: (Model(change), TRANSLATING))
        done = run("translate", tmp_path, page, "--output", output)
    assert done.code == 143
    assert "1 result kept in" in done.err
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
    translated(run, tmp_path, page, "--output", output, "--resume").succeeded()


def test_a_signal_ends_a_command_that_imports(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The process ends at once: an exception during an import could leave its locks held."""
    (tmp_path / "signalling.py").write_text("import signal; signal.raise_signal(signal.SIGTERM)")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr("os._exit", lambda code: sys.exit(f"ended with {code}"))
    monkeypatch.setattr("dragoman.cli.app.run", lambda _: import_module("signalling"))
    with pytest.raises(SystemExit, match="ended with 143"):
        main([])


def test_a_document_that_cannot_be_written_goes_on(run: Run, tmp_path: Path) -> None:
    """Translations are kept if the output cannot be written, as on a full disk."""
    page, output = tmp_path / "page.html", tmp_path / "page.de.html"
    page.write_text(f"<!-- {'x' * 20_000} -->{PAGE}")
    with file_size_limit(10_000):
        done = translated(run, tmp_path, page, "--output", output)
    assert done.code != 0
    assert "File too large" in done.err
    assert "3 results kept in" in done.err
    assert "add --resume to the same command to continue" in done.err
    translated(run, tmp_path, page, "--output", output, "--resume", most=1).succeeded()
    assert IN_CAPITALS in output.read_text()


def test_the_format_can_be_told(run: Run, tmp_path: Path) -> None:
    """Options override the format and choose the columns of a table."""
    table, output = tmp_path / "table", tmp_path / "out"
    table.write_text("id,text\na b,c d\n")
    options = "--format", "csv", "--column", "text"
    translated(run, tmp_path, table, "--output", output, *options).succeeded()
    assert output.read_text() == "id,text\na b,C D\n"
    for source, name in (("x.strings", "y.strings"), ("x.htm", "y.xhtml"), ("x.txt", "y.txt")):
        (tmp_path / source).write_text("a")
        options = "--format", "html", "--output", str(tmp_path / name)
        translated(run, tmp_path, tmp_path / source, *options).succeeded()
        assert (tmp_path / name).read_text() == "A"


def test_a_document_on_standard_input_is_translated(run: Run, tmp_path: Path) -> None:
    """Standard input needs a format or columns; an option without effect is refused."""
    output = tmp_path / "page.de.html"
    options = "--format", "html", "--output", output
    translated(run, tmp_path, *options, stdin=PAGE.encode()).succeeded()
    assert output.read_text() == IN_CAPITALS
    options = "--column", "text", "--output", tmp_path / "out.csv"
    translated(run, tmp_path, *options, stdin=b"id,text\na b,c d\n").succeeded()
    assert (tmp_path / "out.csv").read_text() == "id,text\na b,C D\n"
    options = "--format", "json", "--output", tmp_path / "out.arb"
    arb = '{{"@@locale": "en", "@a": {{"description": "x y"}}, "a": "{}"}}'.format
    translated(run, tmp_path, *options, stdin=arb("b c").encode()).succeeded()
    assert (tmp_path / "out.arb").read_text() == arb("B C")
    done = translated(run, tmp_path, "--format", "html", stdin=PAGE.encode())
    assert done.code == 2
    assert "standard input is a document (html); name its translation" in done.err
    done = translated(run, tmp_path, "--format", "html", "--plain", stdin=PAGE.encode())
    assert "--plain reads lines" in done.err


def test_several_documents_are_translated(run: Run, tmp_path: Path) -> None:
    """Outputs go to a folder; a faulty file does not stop the others, and --resume retries it."""
    files, folder = [tmp_path / name for name in ("a.html", "b.json", "c.txt")], tmp_path / "x/y"
    for file, text in zip(files, ("<p>a b", "{", "e f\n"), strict=True):
        file.write_text(text)
    done = translated(run, tmp_path, *files, "--output", folder)
    assert done.code == 2
    assert f"2/3 {files[1]}\n{files[1]} line 1 is not JSON; correct it.\n3/3" in done.err
    assert "1 of 3 documents were not translated" in done.err
    assert {file.name: file.read_text() for file in folder.iterdir()} == {
        "a.html": "<p>A B",
        "c.txt": "E F\n",
    }
    files[1].write_text('{"g": "h i"}')
    done = translated(run, tmp_path, *files, "--output", folder)
    assert f"{folder / 'a.html'} exists already; add --overwrite" in done.err
    done = translated(run, tmp_path, *files, "--output", folder, "--resume", "--json", most=1)
    assert json.loads(done.out)["document"] == str(files[1])
    assert f"1/3 {files[0]} was translated before" in done.err
    assert (folder / "b.json").read_text() == '{"g": "H I"}'
    files[1].write_text("{")
    done = translated(run, tmp_path, *files, "--output", folder, "--overwrite", "--json")
    told = [json.loads(line) for line in done.lines]
    assert [each["document"] for each in told] == [*map(str, files)]
    assert [each["output"] for each in told] == [str(folder / "a.html"), None, f"{folder}/c.txt"]
    assert told[1]["error"] == f"{files[1]} line 1 is not JSON; correct it."
    files[0].write_text("<p>j k")
    translated(run, tmp_path, files[0], "--output", folder, "--overwrite").succeeded()
    assert (folder / "a.html").read_text() == "<p>J K"


def test_a_name_that_ends_in_a_slash_is_a_folder(run: Run, tmp_path: Path) -> None:
    """A trailing slash means a folder, even for one document, as from a glob; it may exist."""
    page, folder = tmp_path / "a.html", tmp_path / "out"
    page.write_text(PAGE)
    translated(run, tmp_path, page, "--output", f"{folder}/").succeeded()
    assert (folder / page.name).read_text() == IN_CAPITALS
    for name in (f"{folder}/", folder / page.name):
        done = translated(run, tmp_path, page, "--output", name, "--resume", most=0).succeeded()
        assert f"{page} was translated before\n" in done.err


def test_a_document_goes_to_standard_output(run: Run, tmp_path: Path) -> None:
    """`--output -` writes to standard output."""
    page = tmp_path / "a.html"
    page.write_text(PAGE)
    done = translated(run, tmp_path, page, "--output", "-").succeeded()
    assert done.out == IN_CAPITALS
    assert [each.name for each in tmp_path.iterdir()] == [page.name]
    with (tmp_path / "log").open("ab", buffering=0) as log:
        log.write(b"begun ")
        translated(run, tmp_path, page, "--output", f"/dev/fd/{log.fileno()}").succeeded()
    assert (tmp_path / "log").read_text() == f"begun {IN_CAPITALS}"


def test_several_documents_of_an_interrupted_command(run: Run, tmp_path: Path) -> None:
    """The unfinished document continues, and the finished ones are unchanged."""
    files, folder = [tmp_path / "a.html", tmp_path / "b.html"], tmp_path / "out"
    for file in files:
        file.write_text(PAGE)
    assert translated(run, tmp_path, *files, "--output", folder, most=5).code == 130
    assert sorted(file.name for file in folder.glob("*.html")) == ["a.html"]
    translated(run, tmp_path, *files, "--output", folder, "--resume", most=2).succeeded()
    assert (folder / "b.html").read_text() == IN_CAPITALS


def test_documents_that_are_replaced_are_all_replaced(run: Run, tmp_path: Path) -> None:
    """--overwrite applies to all outputs, also after a resume; inputs are never overwritten."""
    files, folder = [tmp_path / "a.html", tmp_path / "b.txt"], tmp_path / "out"
    folder.mkdir()
    for file in files:
        file.write_text("a b")
        (folder / file.name).write_text("old")
    replacing = ("--overwrite", "--resume")
    translated(run, tmp_path, *files, *files, "--output", folder, *replacing).succeeded()
    assert [file.read_text() for file in sorted(folder.iterdir())] == ["A B", "A B"]
    link = tmp_path / "links"
    link.mkdir()
    (link / "a.html").symlink_to(files[1])
    done = translated(run, tmp_path, *files, "--output", link, "--overwrite")
    assert "is the file to read" in done.err
    assert files[1].read_text() == "a b"
    done = translated(run, tmp_path, files[1], "--output", folder, "--overwrite")
    assert "it is a folder" in done.err  # as for plain lines


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ("a.html b.html", "2 documents go into a folder; name it with --output."),
        ("a.html b.html --output -", "2 documents go into a folder; name it"),
        ("a.html b.html --output c.html", "c.html is a file; give the folder of the trans"),
        ("a.html --output c.html/", "c.html is a file; give the folder of the translations as"),
        ("a.html --output - --json", "--json prints the report where --output - prints;"),
        ("a.html no.html --output d", "There is no file 'no.html'; a text of several"),
        ("a.html d/a.html --output o", "a.html and d/a.html would both be written to o/a.html"),
        ("a.html b.html --output o --plain", "--plain reads the lines of one file"),
        ("a.html b.html --output .", "a.html is the file to read; give another"),
        ("a.html b.html --output o --n-best 2", "A document has one translation"),
        ("a.html b.html --output c.html/d", "is not a model folder"),
        ("a.html", "is a document (html); name its translation with --output, or add --plain"),
        ("a.pdf --output o", "is a PDF, which has places of letters"),
        ("a.html --output o --n-best 2", "A document has one translation"),
        ("a.html --format html --plain", "--plain reads lines"),
        ("a.html --output o.pdf", "o.pdf would be html as a.html is, whatever its name"),
        ("a.csv --output o.JSON", "give it the ending .csv."),
        ("a --output o.md --format csv", "give it the ending .csv."),
        ("a.html --output o --format htm", "'htm' is not a format; did you mean html?"),
        ("a.html --output o --column x", "has no columns to choose from"),
        ("a.csv --output o --column x", "has no column x; it has a, b."),
        ("a.json --output o", "line 1 is not JSON; correct it."),
        ("nothing --output o --format html", "There is no file"),
    ],
)
def test_what_cannot_be_is_said(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: str, sentence: str
) -> None:
    """An impossible request is refused in one sentence before loading; nothing is written."""
    monkeypatch.chdir(tmp_path)
    Path("d").mkdir()
    for name in ("a", "a.html", "a.pdf", "a.csv", "a.json", "b.html", "c.html", "d/a.html"):
        Path(name).write_text("a,b\nc,d\n")
    before = {*tmp_path.rglob("*")}
    assert_refused(run("translate", tmp_path, *arguments.split()), sentence)
    assert {*tmp_path.rglob("*")} == before


def test_a_model_translates_a_document(run: Run, tmp_path: Path) -> None:
    """A random model keeps tags and copied text, whatever it writes."""
    model, page, output = tmp_path / "model", tmp_path / "page.html", tmp_path / "out.html"
    save_translator(model)
    page.write_text("<p>a <b>b</b> <code>c d</code> <br>e <i>f <u>g</u></i></p><p>h")
    run("translate", model, page, "--output", output).succeeded()
    written = output.read_text()
    tags = re.compile("<[^>]*>")
    assert sorted(tags.findall(written)) == sorted(tags.findall(page.read_text()))
    assert "<code>c d</code>" in written
