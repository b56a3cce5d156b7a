"""Tokenizers of Hugging Face folders: ids and texts are those of `transformers`."""

import json
from pathlib import Path
from typing import Any

import pytest
from tests.foreign_folders import FAMILIES, SENTENCES, noisy

from dragoman.text.foreign import read_tokenizers
from dragoman.text.tokenizer import Tokenizer

transformers = pytest.importorskip("transformers", reason="the other side of the comparison")

pytestmark = pytest.mark.filterwarnings("ignore:Recommended")  # of what changes punctuation

LINES = noisy(SENTENCES, 2000)
BOTH = [(family, fast) for family in FAMILIES for fast in (True, False)]


def both(folder: Path, family: str, *, fast: bool = True) -> tuple[Tokenizer, Tokenizer, Any]:
    """Our two sides of a folder of a family, and theirs."""
    config = FAMILIES[family](folder, fast=fast)
    (folder / "config.json").write_text(json.dumps(config))
    return *read_tokenizers(folder, config), transformers.AutoTokenizer.from_pretrained(folder)


@pytest.mark.parametrize(("family", "fast"), BOTH)
def test_ids_and_texts_are_theirs(tmp_path: Path, family: str, fast: bool) -> None:
    """Whatever stands in a line, its ids, its frame and what is decoded are equal."""
    ours, _, theirs = both(tmp_path, family, fast=fast)
    frame = ours.frame()
    for line, ids in zip(LINES, ours.encode_batch(LINES), strict=True):
        wanted = theirs(line).input_ids
        assert [*frame.before, *ids, *frame.after] == wanted, line
        assert ours.decode(wanted) == theirs.decode(wanted, skip_special_tokens=True), line
