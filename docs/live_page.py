"""The page docs/live/index.html, on which a small Transformer translates in the reader's browser.

    python docs/live_page.py            train its model again and write docs/live/model.js (minutes)
    python docs/live_page.py runs/live  write the model of docs/live/model.js as a model folder

It is put together by `docs/make.py pages` from parts of the page of `dragoman inspect` and its own:
transformer.js is the model, translate.js the search and the text around it, page.js the drawings.
It needs no server, library or network.
"""

import base64
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import load_file
from torch import Tensor

from dragoman.decoding import Decoding
from dragoman.folder.format import FolderConfig, save_model
from dragoman.lens.page import as_json, fill, parts_with
from dragoman.models import EncoderDecoder, EncoderDecoderConfig
from dragoman.models.eight_bits import rounded
from dragoman.settings import parse_settings
from dragoman.text.tokenizer import Tokenizer
from excerpts import ROOT

LIVE = ROOT / "docs" / "live"
MODEL = LIVE / "model.js"
SHARED = ("base.js", "frame.js", "heat.js", "search.js", "beam.js")
"""Scripts of the page of `dragoman inspect`: elements, switches, heat maps, steps, the tree."""
OWN = ("transformer.js", "translate.js", "page.js")

SETTINGS = (
    *("model.d_model=64", "model.d_ff=192", "model.num_encoder_layers=2"),
    *("model.dropout=0.05", "tokenizer.vocab_size=1700", "train.learning_rate=3e-3"),
    *("train.max_steps=3000", "train.max_minutes=120", "train.validate_every=3000"),
)
"""What differs from the model of `dragoman demo`; the seed is the recipe's."""


def live_page() -> str:
    """The page, which loads its weights from model.js beside it."""
    return fill(_text(LIVE / "template.html"), parts_with(LIVE, SHARED, OWN))


def model_file(folder: Path) -> str:
    """A translator's config, tokenizer, and weights in 8 bits, as a script."""
    config = json.loads(_text(folder / "config.json"))["model"]
    shape = parse_settings(EncoderDecoderConfig, config, str(folder))
    state = rounded(load_file(folder / "model.safetensors"), shape)
    weights = {name: _packed(name, state) for name in state if not name.endswith(".scale")}
    tokenizer = json.loads(_text(folder / "tokenizer.json"))
    content = as_json({"config": config, "tokenizer": tokenizer, "weights": weights})
    return f"const MODEL = {content};\n"


def _packed(name: str, state: dict[str, Tensor]) -> dict[str, Any]:
    """A matrix as whole numbers and a scale for each row, anything else as float32: base64."""
    tensors = {"values": state[name], "scales": state.get(f"{name}.scale")}
    return {
        part: base64.b64encode(tensor.numpy().tobytes()).decode()
        for part, tensor in tensors.items()
        if tensor is not None
    }


def live_parts() -> dict[str, Any]:
    """What model.js holds: config, tokenizer and weights."""
    text = _text(MODEL).removeprefix("const MODEL = ").removesuffix(";\n")
    parts: dict[str, Any] = json.loads(text)
    return parts


def live_config() -> EncoderDecoderConfig:
    """The architecture of the page's model."""
    return parse_settings(EncoderDecoderConfig, live_parts()["config"], MODEL.name)


def live_model() -> tuple[EncoderDecoder, Tokenizer]:
    """The model of the page, and the tokenizer of both its languages."""
    parts, model = live_parts(), EncoderDecoder(live_config()).eval()
    weights = {name: _unpacked(**packed) for name, packed in parts["weights"].items()}
    with torch.no_grad():
        for name, weight in model.named_parameters():
            weight.copy_(weights.pop(name).view_as(weight))
    return model, Tokenizer.from_json(json.dumps(parts["tokenizer"]), origin=MODEL.name)


def live_folder(folder: Path) -> None:
    """Write the model of the page as a model folder."""
    model, tokenizer = live_model()
    decoding = Decoding(beam_size=4, length_penalty=1.0)
    config = FolderConfig(model=live_config(), decoding=decoding, src_lang="en", tgt_lang="zh")
    save_model(folder, model, config, tokenizers=(tokenizer, tokenizer))


def _unpacked(values: str, scales: str | None = None) -> Tensor:
    """The reverse of `_packed`: a row for each scale, or all numbers in a row."""

    def numbers(packed: str, kind: type) -> Tensor:
        return torch.tensor(np.frombuffer(base64.b64decode(packed), kind))

    if scales is None:
        return numbers(values, np.float32)
    scale = numbers(scales, np.float32)[:, None]
    return numbers(values, np.int8).view(len(scale), -1) * scale


def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8")


def main(folder: str | None = None) -> None:
    """Train the model of the page again, or write it as a model folder."""
    if folder is not None:
        live_folder(Path(folder))
        return
    out = ROOT / "build" / "live"
    subprocess.run(
        [sys.executable, "-m", "dragoman", "demo", "--out", str(out), *SETTINGS], check=True
    )
    MODEL.write_text(model_file(out / "model"), encoding="utf-8")
    print(f"{MODEL.relative_to(ROOT)}: {MODEL.stat().st_size:,} bytes")


if __name__ == "__main__":
    main(*sys.argv[1:])
