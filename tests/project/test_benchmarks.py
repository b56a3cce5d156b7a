"""The benchmarks start and measure; what they find is for their own runs to say."""

from importlib import import_module
from itertools import count

import pytest
from benchmarks.__main__ import BENCHMARKS
from tests.docs.pages import ROOT


@pytest.mark.parametrize("name", BENCHMARKS)
def test_each_explains_itself(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Each that can be named has its file, two places in the page on benchmarks, and a help."""
    page = (ROOT / "benchmarks" / "README.md").read_text("utf-8")
    with pytest.raises(SystemExit) as ended:
        import_module(f"benchmarks.{name.replace('-', '_')}").main(["--help"])
    assert ended.value.code == 0
    assert f"benchmarks {name}" in capsys.readouterr().out
    assert f"python -m benchmarks {name} " in page
    assert f"- **{name}**: " in page


def test_a_ratio_is_taken_within_rounds() -> None:
    """Both sides run in turn, and the first round, which warms up, does not count."""
    order: list[str] = []
    calls = count()

    def work(side: str, tokens: int) -> int:
        order.append(side)
        return 0 if next(calls) < 2 else tokens

    paired = import_module("benchmarks.paired").paired
    found = paired(lambda: work("ours", 10), lambda: work("peer", 5), 3)
    assert order == ["ours", "peer"] * 4
    assert found["ratios"] == sorted(found["ratios"])
    assert len(found["ratios"]) == 3
    assert found["ratio"] > 0.0
