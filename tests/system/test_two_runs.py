"""`dragoman inspect RUN RUN` on real runs."""

import json
from pathlib import Path

from tests.system.conftest import CommandLine
from tests.system.corpora import SMALL, reversed_digits


def test_real_runs_are_compared(dragoman: CommandLine, tmp_path: Path) -> None:
    """The same command twice is the same to the last digit; another rate shows at once."""
    src, tgt = reversed_digits(tmp_path, 60)
    runs = {"a": (), "b": (), "c": ("train.learning_rate=5e-3",)}
    for name, settings in runs.items():
        texts = ("--src", src, "--tgt", tgt, "--out", tmp_path / name)
        quick = (*SMALL, "train.max_steps=3", "train.log_every=1", "train.warmup_steps=0")
        dragoman.run("train", *texts, *quick, *settings).succeeded()

    def compare(one: str, two: str, *options: str) -> str:
        return dragoman.run("inspect", tmp_path / one, tmp_path / two, *options).succeeded()

    assert compare("a", "b").splitlines() == [
        "The two runs are the same to the last digit: 3 steps in both logs, the last of them 3. "
        "No setting differs that changes a number."
    ]
    rates = json.loads(compare("a", "c", "--json"))
    places = {name: at["step"] for name, at in rates["figures"].items()}
    assert (places["learning_rate"], places["loss"]) == (1, 2)
    assert rates["first_setting"] == "train.learning_rate"
    shown = compare("a", "c").splitlines()
    assert shown[0] == rates["verdict"]
    assert f"setting\t{tmp_path / 'a'}\t{tmp_path / 'c'}" in shown
    assert "train.learning_rate\t0.001\t0.005" in shown
