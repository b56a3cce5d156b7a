"""The paper's dense path stays small, and the page that lists it stays true."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
ROW = re.compile(
    r"^\| \d+ \| \[[\w/.]+\]\([./]+(src/dragoman/[\w/.]+)\) \| .* \| (\d+) \|$", re.MULTILINE
)


@pytest.mark.parametrize("page", ["docs/architecture.md", "docs/zh/architecture.md"])
def test_the_list_of_the_dense_path_is_true(page: str) -> None:
    """At most 12 files and 1,500 lines; each file and the sum have the lines that the page says."""
    text = (ROOT / page).read_text(encoding="utf-8")
    listed = {path: int(count) for path, count in ROW.findall(text)}
    counted = {p: len((ROOT / p).read_text(encoding="utf-8").splitlines()) for p in listed}
    assert listed == counted
    assert 10 <= len(listed) <= 12
    assert sum(listed.values()) <= 1500
    assert f"{sum(listed.values()):,}" in text


def test_the_dense_path_knows_no_processor() -> None:
    """Whoever reads it meets no device, no oneDNN and no kernel: those are in nn/cpu."""
    text = (ROOT / "docs/architecture.md").read_text(encoding="utf-8")
    for path, _ in ROW.findall(text):
        code = (ROOT / path).read_text(encoding="utf-8")
        assert not re.search(r"mkldnn|onednn|device\.type ==|scaled_dot_product_attention", code), (
            path
        )
