"""`dragoman train` from the outside: it learns, and wrong input is one sentence."""

import random
from pathlib import Path

import pytest
from tests.system.conftest import CommandLine
from tests.system.corpora import SMALL, reversed_digits

QUICK = (*SMALL, "train.max_steps=3")


@pytest.mark.slow
def test_learns_to_turn_digits_round(dragoman: CommandLine, tmp_path: Path) -> None:
    """Whatever the seed, half a minute's training turns unseen rows of digits round."""
    src, tgt = reversed_digits(tmp_path, 4000)
    out = tmp_path / "run"
    texts = [f"--src={src}", f"--tgt={tgt}", f"--out={out}"]
    settings = [
        *SMALL,
        f"train.seed={random.randrange(10**6)}",
        "train.max_steps=400",
        "train.learning_rate=5e-3",
        "train.validate_every=200",
        "train.save_every=200",
        "train.precision=fp32",
        "model.dropout=0",
        "batch.max_tokens=1000",
        "data.hold_out=100",
    ]
    stdout, lines = tmp_path / "stdout", tmp_path / "lines"
    trained = dragoman.start(["train", *texts, *settings], places={"stdout": stdout}).end()
    assert (trained.code, stdout.read_text("utf-8")) == (0, ""), trained.said
    rows = [" ".join(random.choices("0123456789", k=random.randint(2, 5))) for _ in range(100)]
    lines.write_text("".join(f"{row}\n" for row in rows), encoding="utf-8")
    places = {"stdin": lines, "stdout": stdout}
    assert dragoman.start(["translate", out], places=places).end().code == 0
    outputs = stdout.read_text("utf-8").splitlines()
    exact = sum(output == row[::-1] for output, row in zip(outputs, rows, strict=True))
    assert exact >= 90, trained.said


def test_two_files_and_a_folder(dragoman: CommandLine, tmp_path: Path) -> None:
    """With two files and a folder the rest is chosen and said, and the folder is a model."""
    src, tgt = reversed_digits(tmp_path, 60)
    out = tmp_path / "run"
    said = dragoman.run("train", "--src", src, "--tgt", tgt, "--out", out, *QUICK).succeeded()
    assert "Chosen for 60 pairs: 1+1 layers, d_model 64" in said
    assert "pairs are used" in said
    _, references, *_ = said.split("reference\n")
    held_out = [line.split()[-1] for line in references.splitlines()[:3]]
    assert len(set(held_out) & set(tgt.read_text(encoding="utf-8").split())) >= 1
    assert f"dragoman translate {out}" in said
    assert "\x1b" not in said
    names = {path.name for path in out.iterdir()}
    assert names == {"config.json", "model.safetensors", "tokenizer.json", "README.md", "training"}
    assert dragoman.run("translate", out, src).code == 0


def test_what_looks_wrong_is_told_once(dragoman: CommandLine, tmp_path: Path) -> None:
    """When a run first reads its texts; what they hold is printed as it is, no markup of rich."""
    draw = random.Random(5)
    rows = [" ".join(draw.choices("abcdefgh", k=draw.randint(1, 20))) for _ in range(240)]
    other = str.maketrans("abcdefgh", "stuvwxyz")
    sides = {
        "src": [f"{row.translate(other)} [/b]" for row in rows[1:]],
        "tgt": [f"{r} :x:" for r in rows[:-1]],
    }
    for side, lines in sides.items():
        (tmp_path / side).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    src, tgt, out = (tmp_path / name for name in ("src", "tgt", "run"))
    valid = (f"data.valid_src={src}", f"data.valid_tgt={tgt}", "train.validate_limit=2")
    command = ("train", "--src", src, "--tgt", tgt, "--out", out, *valid, *SMALL)
    begun = dragoman.run(*command, "train.max_steps=1")
    assert begun.code == 0, begun.said
    told = [line for line in begun.said.splitlines() if line.startswith("Warning: ")]
    assert ["fit the targets 1 line below" in line for line in told] == [True, True, False]
    assert "in the training texts too" in told[-1]
    assert all("[/b]' with '" in line and ":x:'" in line for line in told)
    resumed = dragoman.run(*command, "train.max_steps=2")
    assert resumed.code == 0, resumed.said
    assert "Warning" not in resumed.said


def test_one_pair(dragoman: CommandLine, tmp_path: Path) -> None:
    """A corpus of one pair is learnt."""
    (tmp_path / "a").write_text("hello world\n", encoding="utf-8")
    (tmp_path / "b").write_text("hallo welt\n", encoding="utf-8")
    texts = ("--src", tmp_path / "a", "--tgt", tmp_path / "b", "--out", tmp_path / "run")
    settings = ("train.max_steps=60", "train.learning_rate=1e-2", "model.dropout=0")
    dragoman.run("train", *texts, *SMALL, *settings).succeeded()
    translated = dragoman.run("translate", tmp_path / "run", tmp_path / "a")
    assert translated.said.splitlines()[0] == "hallo welt"


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["nowhere.toml"], "nowhere.toml"),
        ([], "there are no texts"),
        (["data.src=a"], "--tgt is missing: give the file with the translations of a"),
        (
            ["--src", "a", __file__],
            f"{__file__}: not a recipe (its name must end in .toml, or be recipe.json)",
        ),
        (["demo", "demo"], "one recipe at a time"),
        (["demo"], "data.src"),
        (["--src", "a.src", "--tgt", "a.tgt"], "a.src"),
        (["demo", "--out", "A"], "--out A and out="),
        (
            ["--src", "a", "--tgt", "b", "data.tgt=c"],
            "--tgt b and data.tgt=c set the same key; give one of them",
        ),
        ([__file__, __file__], f"--src {__file__} --tgt {__file__} --out DIR"),
    ],
)
def test_wrong_command(
    dragoman: CommandLine, tmp_path: Path, arguments: list[str], expected: str
) -> None:
    """A wrong recipe, setting or option is one sentence with exit code 2, and writes nothing."""
    ended = dragoman.run("train", *arguments, *[f"out={tmp_path / 'run'}"] * bool(arguments))
    ended.assert_refused(expected)
    assert "Estimate" not in ended.said
    assert not (tmp_path / "run").exists()
