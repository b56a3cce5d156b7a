"""`dragoman data back-translate` and `distill`: pairs that a model makes, by a stand-in."""

from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest
from tests.system.cli.command import Done, Run, write
from tests.unit.tasks.tiny import save_translator
from tests.word_translator import WordTranslator

from dragoman.cli import making
from dragoman.corpus.making import nearest
from dragoman.decoding import TRANSLATING, Decoding
from dragoman.tasks.results import Translation

LINES = ["Ein Haus am See.", "Ein Hund.", "Zu\tzweit im Regen.", "", "Noch ein Haus, rot."]
SKIP = ("--skip", "language", "--skip", "copy")


@pytest.fixture
def run(capfd: pytest.CaptureFixture[str]) -> Run:
    """A call of the command."""
    return Run(capfd)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of a model from English to Chinese."""
    return save_translator(tmp_path_factory.mktemp("made") / "model")


def made(run: Run, verb: str, *options: str | Path, most: int | None = None) -> Done:
    """A call of the verb, by a model that writes capitals, and fails after `most` texts."""
    with pytest.MonkeyPatch.context() as patch:
        model = WordTranslator(str.upper, most=most)
        patch.setattr(making, "load_translator", lambda *_: (model, TRANSLATING))
        return run("data", verb, *options)


def test_lines_get_sources_with_a_tag(run: Run, folder: Path, tmp_path: Path) -> None:
    """What breaks a rule is not written; the tag is no part of what the rules see."""
    file, output = write(tmp_path / "mono", LINES), tmp_path / "bt.tsv"
    done = made(run, "back-translate", folder, file, "--tag", "<BT>", "--output", output, *SKIP)
    assert done.code == 0, done.err
    assert output.read_text().splitlines() == [
        "<BT> EIN HAUS AM SEE.\tEin Haus am See.",
        "<BT> EIN HUND.\tEin Hund.",
        "<BT> ZU ZWEIT IM REGEN.\tZu zweit im Regen.",
        "<BT> NOCH EIN HAUS, ROT.\tNoch ein Haus, rot.",
    ]
    assert "5 pairs" in done.out
    assert "wrote 4 pairs" in done.err
    assert not [*tmp_path.glob("*.partial*")]


@pytest.mark.parametrize("verb", ["back-translate", "distill"])
def test_what_was_interrupted_ends_with_the_same_bytes(
    verb: str, run: Run, folder: Path, tmp_path: Path
) -> None:
    """Whenever that was: here after each number of lines."""
    file = write(tmp_path / "mono", LINES)
    call: list[str | Path] = [folder, *(["--src"] if verb == "distill" else []), file, *SKIP]
    whole = tmp_path / "whole.tsv"
    assert made(run, verb, *call, "--output", whole).code == 0
    for most in range(len(LINES)):
        output = tmp_path / f"{most}.tsv"
        done = made(run, verb, *call, "--output", output, most=most)
        assert (done.code, output.exists()) == (130, False)
        assert ("add --resume" in done.err) == (most > 0)
        done = made(run, verb, *call, "--output", output, "--resume")
        assert done.code == 0, done.err
        assert output.read_bytes() == whole.read_bytes()


class _Several(WordTranslator):
    """A model with three translations of a line."""

    def stream(
        self, lines: Iterable[str], options: Decoding | None = None, **_: object
    ) -> Iterator[Translation]:
        """The last one is the nearest to what its reference says."""
        del options
        for line in lines:
            others = (Translation(text="something else"), Translation(text=f"{line} in rot"))
            yield Translation(text="no", alternatives=others)


def test_the_nearest_to_the_reference_is_taken(run: Run, folder: Path, tmp_path: Path) -> None:
    """Of a corpus in any layout; without references there is nothing to choose by."""
    file, output = tmp_path / "a.jsonl", tmp_path / "easy.tsv"
    write(file, ['{"src": "Ein Haus", "n": 1, "tgt": "Das Haus in Rot"}'])
    call: list[str | Path] = ["data", "distill", folder, "--n-best", "3", "--output", output, *SKIP]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(making, "load_translator", lambda *_: (_Several(), TRANSLATING))
        assert run(*call, "--jsonl", file).code == 0
    assert output.read_text() == "Ein Haus\tEin Haus in rot\n"
    done = run(*call, "--src", file)
    assert (done.code, done.out) == (2, "")
    assert "--n-best chooses by references; name them with --tgt" in done.err
    assert nearest(Translation(text="a", alternatives=(Translation(text="b"),)), None) == "a"


def test_what_cannot_be_made(run: Run, folder: Path, tmp_path: Path) -> None:
    """Nothing is translated before that is known."""
    file = write(tmp_path / "mono", LINES)
    for options, sentence in (
        ([], "Name the file to write with --output"),
        (["--output", file], "is the file to read; give another --output"),
        (["--output", "/dev/stdout"], "Name the file to write with --output"),
        (["--output", tmp_path / "a.tsv", "--seed", "1"], "--seed requires sampling"),
    ):
        done = run("data", "back-translate", folder, file, *options)
        assert (done.code, done.out) == (2, "")
        assert sentence in done.err
