"""Writes a golden folder of ours: `python -m tests.golden.make NAME ...`, from the repository.

Run it for a folder of a new format only. Those that are here stay as they were written, so that a
later version is held to reading them; what they answer stands in `answers.json`. Of a folder that
is there already, such as one of another library, the answers are written.
"""

import json
import sys
from pathlib import Path

import torch
from tests.golden.test_golden import ANSWERS, LINES, MODELS, answers

from dragoman.convert.eight_bits import quantize
from dragoman.convert.published import take_over
from dragoman.decoding import Decoding
from dragoman.folder.format import FolderConfig, save_model
from dragoman.models import EncoderDecoder, EncoderDecoderConfig
from dragoman.text.train import TokenizerConfig, train_tokenizer

DECODING = Decoding(beam_size=3, max_length_factor=0.5, max_length_constant=6)


def ours(folder: Path, *, apart: bool) -> None:
    """A translator of dragoman, with one tokenizer or two."""
    src = train_tokenizer(LINES, TokenizerConfig(vocab_size=320))
    tgt = train_tokenizer(LINES[::-2], TokenizerConfig(vocab_size=310)) if apart else src
    config = EncoderDecoderConfig(
        src_vocab_size=src.vocab_size, tgt_vocab_size=tgt.vocab_size, tie_embeddings="none",
        output_bias=True, d_model=8, num_heads=2, d_ff=16, num_encoder_layers=1,
        num_decoder_layers=1,
    )  # fmt: skip
    model = EncoderDecoder(config)
    with torch.no_grad():
        model.output.weight *= 8.0
        model.output.bias[config.eos_id] += 2.0
        model.output.bias[4:260] -= 99.0  # bytes alone make no text
    said = FolderConfig(model=config, decoding=DECODING, src_lang="aa", tgt_lang="bb")
    save_model(folder, model, said, tokenizers=(src, tgt))


def make(name: str) -> None:
    """Write one folder, unless it is there, and its answers."""
    folder = MODELS / name
    torch.manual_seed(0)
    if name.endswith("-8-bits"):
        quantize(MODELS / name.removesuffix("-8-bits"), folder)
    elif name.endswith("-converted"):
        take_over(MODELS / name.removesuffix("-converted"), folder)
    elif not folder.exists():
        ours(folder, apart=name.endswith("-apart"))
    known = json.loads(ANSWERS.read_text(encoding="utf-8")) if ANSWERS.exists() else {}
    text = json.dumps(known | {name: answers(folder)}, indent=1, ensure_ascii=False)
    ANSWERS.write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    for each in sys.argv[1:]:
        make(each)
