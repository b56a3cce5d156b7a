"""Models of published shapes with random weights, as a folder that `transformers` writes.

Ours reads that folder as it is; CTranslate2 reads what its own converter makes of it. Neither needs
a tokenizer here: the engines are given ids.
"""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import transformers
from ctranslate2.converters import TransformersConverter

LAYERS = ("encoder_layers", "decoder_layers")
HEADS = ("encoder_attention_heads", "decoder_attention_heads")
FFN = ("encoder_ffn_dim", "decoder_ffn_dim")
SHAPES: dict[str, tuple[str, str, dict[str, Any]]] = {
    "opus": (
        "MarianConfig",
        "MarianMTModel",
        {
            "vocab_size": 58101,
            "d_model": 512,
            **dict.fromkeys(LAYERS, 6),
            **dict.fromkeys(HEADS, 8),
            **dict.fromkeys(FFN, 2048),
            "activation_function": "swish",
            "scale_embedding": True,
            "max_position_embeddings": 512,
            "pad_token_id": 58100,
            "decoder_start_token_id": 58100,
            "eos_token_id": 0,
            "forced_eos_token_id": None,
        },
    ),
    "nllb": (
        "M2M100Config",
        "M2M100ForConditionalGeneration",
        {
            "vocab_size": 256206,
            "d_model": 1024,
            **dict.fromkeys(LAYERS, 12),
            **dict.fromkeys(HEADS, 16),
            **dict.fromkeys(FFN, 4096),
            "activation_function": "relu",
            "scale_embedding": True,
            "decoder_start_token_id": 2,
        },
    ),
    "t5": (
        "T5Config",
        "T5ForConditionalGeneration",
        {
            "vocab_size": 32128,
            "d_model": 512,
            "d_ff": 2048,
            "num_layers": 6,
            "num_heads": 8,
            "d_kv": 64,
            "decoder_start_token_id": 0,
        },
    ),
    "llama100": (
        "LlamaConfig",
        "LlamaForCausalLM",
        {
            "vocab_size": 32000,
            "hidden_size": 768,
            "intermediate_size": 2048,
            "num_hidden_layers": 12,
            "num_attention_heads": 12,
            "tie_word_embeddings": True,
        },
    ),
}
"""OPUS-MT, NLLB-200 of 600 M parameters, T5-small, and a Llama of 110 M: class and config."""
SPECIALS = {
    "opus": ("</s>", "<unk>"),
    "nllb": ("<s>", "<pad>", "</s>", "<unk>"),
    "t5": ("<pad>", "</s>", "<unk>"),
    "llama100": ("<unk>", "<s>", "</s>"),
}
"""The first ids. Marian's padding is the last one."""


class _Converter(TransformersConverter):
    """Theirs, for a folder without a tokenizer."""

    def __init__(self, folder: Path, pieces: list[str]) -> None:
        super().__init__(str(folder))
        self._pieces = pieces

    def load_tokenizer(self, *_: object, **__: object) -> Any:  # noqa: ANN401 -- what it asks for
        """Pieces that nobody reads."""
        id_of = {piece: id_ for id_, piece in enumerate(self._pieces)}
        return SimpleNamespace(
            get_vocab=lambda: id_of,
            convert_ids_to_tokens=self._pieces.__getitem__,
            unk_token="<unk>",  # noqa: S106 -- no password
            unk_token_id=id_of["<unk>"],
            pad_token="<pad>" if "<pad>" in id_of else None,
            bos_token="<s>" if "<s>" in id_of else None,
            eos_token="</s>",  # noqa: S106
            special_tokens_map={},
        )


def published_folders(shape: str, scratch: Path) -> dict[str, Path]:
    """Write the model, once for Hugging Face and us, and once for CTranslate2."""
    kind, model, sizes = SHAPES[shape]
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    transformers.set_seed(0)
    written, converted = scratch / shape, scratch / "ctranslate2"
    config = getattr(transformers, kind)(**sizes, dtype="float32")
    getattr(transformers, model)(config).save_pretrained(written)
    specials = SPECIALS[shape]
    pieces = [*specials, *(f"piece{id_}" for id_ in range(len(specials), config.vocab_size))]
    if config.pad_token_id == len(pieces) - 1:
        pieces[-1] = "<pad>"
    _Converter(written, pieces).convert(str(converted))
    return {"dragoman": written, "huggingface": written, "ctranslate2": converted}
