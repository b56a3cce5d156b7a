"""Output at the end of a sweep."""

from pathlib import Path

import pytest
from tests.unit.train.made import make_console

from dragoman.cli.train import _run_sweep
from dragoman.tasks.recipes import load_sweep
from dragoman.train.runfolder import RunFolder

SEEDS = """
[model]
d_model = 8
[[sweep]]
rate.low = {train.learning_rate = 1e-4}
rate.high = {train.learning_rate = 1e-3}
seed.1 = {train.seed = 1}
seed.2 = {train.seed = 2}
seed.3 = {train.seed = 3}
"""


@pytest.mark.parametrize("name", ["scaling-sweep", "seeds.toml"])
def test_a_law_is_named_where_it_can_be_fitted(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Fitting a law is suggested only for several sizes; other sweeps are listed."""
    monkeypatch.chdir(tmp_path)
    Path("seeds.toml").write_text(SEEDS, encoding="utf-8")
    monkeypatch.setattr(RunFolder, "is_finished", lambda *_: True)
    console, file = make_console(terminal=False)
    _run_sweep(load_sweep(name, ["out=runs"]), console)
    assert "Next:\ndragoman runs runs\n" in file.getvalue()
    assert ("cost --fit runs" in file.getvalue()) == (name == "scaling-sweep")
