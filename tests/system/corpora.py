"""Small made corpora for the system tests."""

import random
from pathlib import Path

SMALL = (
    "tokenizer.vocab_size=300",
    "model.d_model=64",
    "model.num_heads=4",
    "model.d_ff=128",
    "model.num_encoder_layers=1",
    "model.num_decoder_layers=1",
    "model.norm_position=pre",
    "train.device=cpu",
)
"""Settings of a model that learns to turn a row of digits round in a few seconds."""


def reversed_digits(folder: Path, count: int) -> tuple[Path, Path]:
    """Two parallel files: two to five digits, and the same digits turned round."""
    rows = [random.choices("0123456789", k=random.randint(2, 5)) for _ in range(count)]
    src, tgt = folder / "a.src", folder / "a.tgt"
    src.write_text("".join(" ".join(row) + "\n" for row in rows), encoding="utf-8")
    tgt.write_text("".join(" ".join(reversed(row)) + "\n" for row in rows), encoding="utf-8")
    return src, tgt
