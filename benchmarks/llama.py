"""A decoder-only model with random weights as a folder of each engine: the shape of a small Llama.

Hugging Face's class makes it, our tables of the family read it, and CTranslate2's own converter.
"""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

from ctranslate2.converters import TransformersConverter
from transformers import LlamaConfig, LlamaForCausalLM, logging, set_seed

from dragoman.folder.foreign import family
from dragoman.folder.format import FolderConfig, save_model
from dragoman.text.tokenizer import Tokenizer

SIZE = LlamaConfig(
    vocab_size=32000,
    hidden_size=512,
    intermediate_size=1408,
    num_hidden_layers=8,
    num_attention_heads=8,
    num_key_value_heads=4,
    max_position_embeddings=2048,
    dtype="float32",
)
SPECIALS = ("<unk>", "<s>", "</s>")
"""As `SIZE` numbers them."""


class _Converter(TransformersConverter):
    """Theirs, for a folder without a tokenizer."""

    def load_tokenizer(self, *_: object, **__: object) -> Any:  # noqa: ANN401 -- what it asks for
        """Pieces that nobody reads."""
        pieces = [*SPECIALS, *(f"piece{id_}" for id_ in range(len(SPECIALS), SIZE.vocab_size))]
        vocabulary = {piece: id_ for id_, piece in enumerate(pieces)}
        unk, bos, eos = SPECIALS
        return SimpleNamespace(
            get_vocab=lambda: vocabulary, unk_token=unk, bos_token=bos, eos_token=eos
        )


def llama_folders(tokenizer: Tokenizer, out: Path) -> dict[str, Path]:
    """Write the model into a folder for each engine; ours also needs some tokenizer."""
    folders = {name: out / name for name in ("huggingface", "ctranslate2", "dragoman")}
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    set_seed(0)
    theirs = LlamaForCausalLM(SIZE)
    theirs.save_pretrained(folders["huggingface"])
    _Converter(str(folders["huggingface"])).convert(str(folders["ctranslate2"]))
    known = family(SIZE.to_dict())
    config = known.config(SIZE.to_dict())
    weights = dict(known.each_weight(theirs.state_dict(), config))
    about = FolderConfig(model=config)
    save_model(folders["dragoman"], weights, about, tokenizers=(tokenizer, tokenizer))
    return folders
