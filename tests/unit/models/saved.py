"""A small model and tokenizers to save, and the observable behaviour of the model afterwards."""

from dataclasses import dataclass
from pathlib import Path

import torch

from dragoman.folder.format import FolderConfig, save_model
from dragoman.models import EncoderDecoder, EncoderDecoderConfig, Model

TINY = EncoderDecoderConfig(
    src_vocab_size=12,
    tgt_vocab_size=12,
    d_model=8,
    num_heads=2,
    d_ff=16,
    num_encoder_layers=1,
    num_decoder_layers=1,
)


@dataclass(frozen=True)
class Words:
    """A tokenizer as seen by a folder: it can save itself."""

    content: str = "{}"

    def save(self, path: Path) -> None:
        """Write the content."""
        path.write_text(self.content)


JOINT = (Words(), Words())


def save(
    folder: Path,
    config: EncoderDecoderConfig = TINY,
    words: str = "{}",
    *,
    eight_bits: bool = False,
) -> EncoderDecoder:
    """Save a model of random weights."""
    model, about = EncoderDecoder(config), FolderConfig(model=config)
    tokenizers = (Words(words),) * 2
    save_model(folder, model, about, tokenizers=tokenizers, eight_bits=eight_bits)
    return model


def logits(model: Model) -> torch.Tensor:
    """Return the model's logits for a fixed pair."""
    assert isinstance(model, EncoderDecoder)
    said: torch.Tensor = model.eval()(torch.tensor([[5, 6, 3]]), torch.tensor([[2, 7]]))
    return said
