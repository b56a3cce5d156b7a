"""The worked example of images: its code runs and learns."""

import io
from contextlib import redirect_stdout

from tests.docs.pages import ROOT, blocks


def test_the_example_learns_digits() -> None:
    """With a fifth of its epochs it knows far more digits than chance would."""
    (block,) = blocks(ROOT / "docs" / "vit.md", "python")
    code = block.text.replace("EPOCHS, BATCH, PATCH = 40,", "EPOCHS, BATCH, PATCH = 8,")
    assert code != block.text
    said = io.StringIO()
    with redirect_stdout(said):
        exec(compile(code, "vit.md", "exec"), {"__name__": "vit"})  # noqa: S102
    share, words = said.getvalue().split(" of ")
    assert float(share.removesuffix("%")) > 60
    assert words.startswith("450 unseen digits")
