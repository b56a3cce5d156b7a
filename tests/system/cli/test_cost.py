"""`dragoman cost`, and what `dragoman train` says and refuses before it begins."""

import json
import re
from pathlib import Path

import pytest
from tests.system.cli.command import Run, write
from tests.system.cli.test_wrong_input import assert_refused

SIZES = ("model.d_model=32", "model.num_heads=2", "model.d_ff=64", "train.device=cpu")
SMALL = (
    *(*SIZES, "model.num_layers=1", "tokenizer.vocab_size=400"),
    *("batch.length=16", "batch.rows=4"),
)
NUMBERS = (
    *(*SIZES, "model.num_encoder_layers=1", "model.num_decoder_layers=1"),
    *("data.made.train=40", "data.made.valid=8", "tokenizer.vocab_size=300"),
)


@pytest.fixture(autouse=True)
def _own_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody's own file of devices has a say in these tests, and nobody's cache is written to."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def test_a_recipe_on_a_device(run: Run) -> None:
    """One object with every part; the price and the traffic that were given are reckoned with."""
    options = ("--device", "t4", "--price", "0.5", "--tokens-per-month", "1e9", "--json")
    done = run("cost", "tinyshakespeare", *SMALL, *options)
    assert (done.code, done.err) == (0, "")
    found = json.loads(done.out)
    assert found["kind"] == "decoder-only"
    assert found["device"]["device"].startswith("NVIDIA T4")
    month = found["texts"]["month"]
    assert month["money"] == pytest.approx(0.5 * month["seconds"] / 3600)
    assert month["seconds"] == pytest.approx(1000 * found["texts"]["million"]["seconds"])


def test_a_sweep_is_told_from_a_run(run: Run) -> None:
    """A recipe of many runs says that the figures are those of one; others say nothing."""
    done = run("cost", "scaling-sweep", "--device", "t4")
    assert (done.code, "scaling-sweep describes 13 runs" in done.err) == (0, True)
    assert run("cost", "tinyshakespeare", *SMALL, "--device", "t4").err == ""


def test_plain_lines_in_a_pipe(run: Run) -> None:
    """No colours, no boxes: columns with a tab between them, and this machine unless told else."""
    done = run("cost", "tinyshakespeare", *SMALL, "train.max_steps=10")
    assert (done.code, done.err) == (0, "")
    assert done.lines[0].startswith("tinyshakespeare: decoder-only, task generate")
    assert any(line.startswith("total\t") for line in done.lines)
    assert any(line.startswith("the training run\t") for line in done.lines)
    assert "this machine" in done.out
    assert not {"\x1b", "│", "┃"} & set(done.out)


def test_money_has_a_currency(run: Run) -> None:
    """Prices of the table are in dollars, and what a user gives is in the user's own currency."""
    fixed = ("cost", "tinyshakespeare", *SMALL, "--device", "t4")
    for options, currency in (((), " USD"), (("--price", "2"), " in your currency")):
        (row,) = (line for line in run(*fixed, *options).lines if line.startswith("a million"))
        assert row.endswith(currency)
    assert json.loads(run(*fixed, "--json").out)["texts"]["million"]["currency"] == "USD"


@pytest.mark.parametrize(
    ("reading", "said"),
    [
        (1e-7, r"A token is written in [1-9][\d.]* minutes\."),
        (3e-5, r" [1-9]\.\d tokens are written in a second\."),
        (300, r" [1-9][\d,]+ tokens are written in a second\."),
    ],
)
def test_a_slow_device_writes_more_than_nothing(
    run: Run, tmp_path: Path, reading: float, said: str
) -> None:
    """Below ten tokens a second the tenths are told, below one the time of a token."""
    own = tmp_path / "devices.toml"
    own.write_text(f"devices.t4.bandwidth_gb = {reading}")
    done = run("cost", "tinyshakespeare", *SMALL, "--device", "t4", "--devices", own)
    assert re.search(said, done.lines[-1]), done.lines[-1]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("sst",), "did you mean sst2"),
        (("base", "tiny"), "one recipe, preset or model folder at a time"),
        (("base", "--device", "h10"), "did you mean h100"),
        (("base", "--device", "h100", "--measure"), "give one"),
        (("base", "--price", "-1"), "--price is -1.0; it must be above 0"),
        (("base", "--length", "100000"), "length = 100000 is over the recipe's batch.max_length"),
        (("base", "--flops", "1"), "--flops needs --fit"),
        (("--fit",), "0 runs of 0 sizes and 0 lengths cannot decide the five numbers"),
        (("--fit", "nowhere"), "nowhere is not the folder of a training run and holds none"),
        (("--fit", "runs", "--kwh-price", "1"), "--kwh-price has no meaning with --fit"),
        (("--fit", "runs", "--src", "a"), "--src has no meaning with --fit"),
        (("--fit", "runs", "--measure"), "--measure has no meaning with --fit"),
        (("--fit", "runs", "--flops", "inf"), "--flops is inf; it must be above 0 and finite"),
        (("--fit", "runs", "--minutes", "0"), "--minutes is 0.0; it must be above 0"),
        (("--fit", "runs", "--flops", "1e9", "--minutes", "3"), "one budget at a time"),
        (("--fit", "runs", "--money", "3"), "a budget of money needs a price per hour"),
        (("--fit", "runs", "--price", "3"), "and a price needs money"),
    ],
)
def test_wrong_input_is_one_sentence(run: Run, arguments: tuple[str, ...], said: str) -> None:
    """With what to do, on standard error, and exit code 2."""
    done = run("cost", *arguments)
    assert (done.code, done.out) == (2, "")
    assert said in done.err


TABLE = ["id,English,German", *(f"{n},a dog {n},ein Hund {n}" for n in range(30))]


def test_files_have_the_recipe_that_is_chosen_for_them(run: Run, tmp_path: Path) -> None:
    """As training has it, from options or settings; no folder to write to is needed."""
    table = write(tmp_path / "a.csv", TABLE)
    keys = ("--src-key", "English", "--tgt-key", "German", "--src-lang", "en", "--tgt-lang", "de")
    done = run("cost", "--tsv", table, *keys, "--device", "t4", "--json").succeeded()
    found = json.loads(done.out)
    assert (found["name"], found["training"]["steps"]) == (str(table), 300)
    assert "Chosen for 30 pairs: tiny" in done.err
    corpus = f'data.corpora=[{{tsv = "{table}", src_key = "2", tgt_key = "3"}}]'
    done = run("cost", corpus, "model.d_model=64", "train.max_steps=9", "--device", "t4")
    assert done.succeeded().lines[0].startswith(f"{table}: encoder-decoder, task translate")
    assert "Chosen for 31 pairs: 3+2 layers, d_model 64" in done.err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--tsv", "a.csv", "--src-key", "French"), "a.csv names no column 'French'"),
        (("--tm", "a.csv", "--src-lang", "fr", "--tgt-lang", "de"), "as --tsv with --src-key"),
        (("--tm", "a.csv", "--src-key", "English"), "are of a table; give it as --tsv or --jsonl"),
        (("--tsv", "a.csv", "--jsonl", "b"), "--tsv and --jsonl name two corpora; give one of"),
        (("--tsv", "a.csv", "data.corpora=[]"), "--tsv and data.corpora=[] set the same key"),
    ],
)
def test_tables_are_trained_on_by_their_columns(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], said: str
) -> None:
    """Both commands read the same options."""
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "a.csv", TABLE)
    for verb, *more in (("cost",), ("train", "--out", "run")):
        assert_refused(run(verb, *arguments, *more), said)


def test_training_says_its_estimate_first(run: Run, tmp_path: Path) -> None:
    """Time, steps, memory and energy, before anything is learnt; then those of the rest."""
    done = run("train", "numbers", *NUMBERS, "train.max_steps=1", f"out={tmp_path / 'run'}")
    said = " ".join(done.succeeded().err.split())
    estimate = said.index("Estimate for the whole run on this machine: about")
    learning = said.index("Training a tokenizer")
    assert estimate < learning
    assert "for 1 step," in said[estimate:learning]
    for words in (
        "Starting, reading the texts and the long answers of a model that",
        "for weights, gradients, optimizer and activations",
    ):
        assert words in said[estimate:learning]
    again = run("train", "numbers", *NUMBERS, "train.max_steps=3", f"out={tmp_path / 'run'}")
    said = " ".join(again.err.split())
    assert "Estimate for the rest of the run (after step 1) on this machine: about" in said
    assert "for 2 steps," in said
