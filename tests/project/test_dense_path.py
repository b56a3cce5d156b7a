"""The paper's dense path stays small, and the page that lists it stays true."""

import re
import sys
from functools import cache
from pathlib import Path
from types import FrameType

import pytest
import torch
from tests.unit.models.small import BOS, EOS, make_model, random_ids

from dragoman.decode import Beam, Greedy, Limits, search
from dragoman.nn.cpu.native import native

ROOT = Path(__file__).parents[2]
ROW = re.compile(
    r"^\| \d+ \| \[[\w/.]+\]\([./]+(src/dragoman/[\w/.]+)\) \| .* \| (\d+) \|$", re.MULTILINE
)
BESIDE = re.compile(r"^\| \[[\w/.]+\]\([./]+(src/dragoman/[\w/.]+)\) \| ", re.MULTILINE)
PAGES = ["docs/architecture.md", "docs/zh/architecture.md"]
READABLE = {"src/dragoman/decode/beam.py", "src/dragoman/decode/greedy.py"}
"""Files that `decode/compiled.py` takes the place of where there is compiled code."""


@pytest.mark.parametrize("page", PAGES)
def test_the_list_of_the_dense_path_is_true(page: str) -> None:
    """At most 12 files and 1,500 lines; each file and the sum have the lines that the page says."""
    text = (ROOT / page).read_text(encoding="utf-8")
    listed = {path: int(count) for path, count in ROW.findall(text)}
    counted = {p: len((ROOT / p).read_text(encoding="utf-8").splitlines()) for p in listed}
    assert listed == counted
    assert 10 <= len(listed) <= 12
    assert sum(listed.values()) <= 1500
    assert f"{sum(listed.values()):,}" in text


@pytest.mark.parametrize("page", ["README.md", "README.zh-CN.md"])
def test_the_readme_has_the_same_order(page: str) -> None:
    """All files of the list, among others."""
    expected = ROW.findall((ROOT / "docs/architecture.md").read_text(encoding="utf-8"))
    table = re.findall(r"^\| (?:\d\.\d|附录|appendix).*$", (ROOT / page).read_text("utf-8"), re.M)
    linked = re.findall(r"\]\((src/[^)]+)\)", "\n".join(table))
    assert [file for file in linked if file in dict(expected)] == [file for file, _ in expected]


AXES = re.compile(r"\b[a-z][a-z0-9_]*_([A-Z]*[A-Za-z][A-Z]*[a-z]?)\b")


def axes(text: str) -> set[str]:
    """The letters at the end of the names of tensors."""
    return {letter for found in AXES.findall(text) if re.search("[A-Z]", found) for letter in found}


def test_the_legends_of_axes_are_whole() -> None:
    """Of the list's files in `nn`, and of the walk on its first page, in both languages."""
    files = [path for path, _ in ROW.findall((ROOT / PAGES[0]).read_text(encoding="utf-8"))]
    in_files = axes("".join((ROOT / path).read_text(encoding="utf-8") for path in files))
    legend = (ROOT / "src/dragoman/nn/__init__.py").read_text(encoding="utf-8").split('"""')[1]
    assert in_files <= set(re.findall(r"(?:^|\s)(\w) {4}(?=\S)", legend))
    for walk in (ROOT / "docs" / "walk", ROOT / "docs" / "zh" / "walk"):
        on_pages = axes("".join(page.read_text(encoding="utf-8") for page in walk.glob("*.md")))
        index = (walk / "index.md").read_text(encoding="utf-8")
        (letters,) = re.findall(r"^- (?:Letters|字母).+?(?=^- |^$)", index, re.M | re.S)
        assert on_pages == set(re.findall(r"`(\w)` ", letters))


def test_the_dense_path_knows_no_processor() -> None:
    """Whoever reads it meets no device, no oneDNN and no kernel: those are in nn/cpu."""
    text = (ROOT / "docs/architecture.md").read_text(encoding="utf-8")
    for path, _ in ROW.findall(text):
        code = (ROOT / path).read_text(encoding="utf-8")
        assert not re.search(r"mkldnn|onednn|device\.type ==|scaled_dot_product_attention", code), (
            path
        )


@cache
def called(*, compiled: bool) -> set[str]:
    """The files with a function that a forward pass, beam search and greedy search call."""
    if not compiled:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("dragoman.decode.compiled.native", lambda: None)
            return traced()
    return traced()


def traced() -> set[str]:
    """The same, as the package is."""
    model, src_BS = make_model(dtype=torch.float32), random_ids(0, 2, 7)
    strategies = (Beam(beam_size=3), Greedy())
    limits = Limits(bos_id=BOS, eos_id=EOS, max_B=torch.tensor([6, 4]))
    files: set[str] = set()

    def look(frame: FrameType, event: str, _: object) -> None:
        if event == "call":
            files.add(frame.f_code.co_filename)

    for _ in range(2):  # the first time, compiled functions are loaded
        files.clear()
        sys.setprofile(look)
        try:
            model(src_BS, src_BS)
            for strategy in strategies:
                search(model, src_BS, strategy, limits=limits)
        finally:
            sys.setprofile(None)
    own = (Path(file) for file in files if file.startswith(str(ROOT / "src")))
    return {path.relative_to(ROOT).as_posix() for path in own}


@pytest.mark.parametrize("page", PAGES)
def test_the_run_calls_the_files_that_the_page_names(page: str) -> None:
    """Those of the list, those of the table of what it calls besides, and no others."""
    text = (ROOT / page).read_text(encoding="utf-8")
    listed, beside = {path for path, _ in ROW.findall(text)}, set(BESIDE.findall(text))
    assert not listed & beside
    assert called(compiled=False) == listed | beside
    if native() is not None:
        assert called(compiled=True) == (listed | beside) - READABLE
