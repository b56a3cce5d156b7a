"""Conversion of models from other libraries: tables of their settings and of their tensors.

Each file covers the families of Hugging Face's `transformers` that share parameter names. A
`Family` is two tables, one of settings and one of weights. Nothing here imports that library; the
tests in `tests/parity` compare with it.
"""

from collections.abc import Mapping

from dragoman.errors import InputError
from dragoman.folder.foreign import bart, bert, decoders, gemma, gpt2, llama, modernbert, t5
from dragoman.folder.foreign.reading import HF, Family, unsupported

__all__ = ["FAMILIES", "RULES", "Family", "family"]

FAMILIES: Mapping[str, Family] = {
    "bart": bart.BART,
    "bert": bert.BERT,
    "camembert": bert.CAMEMBERT,
    "distilbert": bert.DISTILBERT,
    "fsmt": bart.FSMT,
    "gemma": gemma.GEMMA,
    "gemma2": gemma.GEMMA2,
    "gemma3": gemma.GEMMA3_WITH_IMAGES,
    "gemma3_text": gemma.GEMMA3,
    "gpt2": gpt2.GPT2,
    "granite": decoders.GRANITE,
    "hunyuan_v1_dense": llama.HUNYUAN,
    "llama": llama.LLAMA,
    "m2m_100": bart.M2M100,
    "marian": bart.MARIAN,
    "mbart": bart.MBART,
    "mistral": llama.MISTRAL,
    "modernbert": modernbert.MODERNBERT,
    "mpnet": bert.MPNET,
    "mt5": t5.MT5,
    "olmo2": decoders.OLMO2,
    "olmo3": decoders.OLMO3,
    "phi3": decoders.PHI3,
    "qwen2": llama.QWEN2,
    "qwen3": llama.QWEN3,
    "roberta": bert.ROBERTA,
    "smollm3": decoders.SMOLLM3,
    "starcoder2": llama.STARCODER2,
    "t5": t5.T5,
    "umt5": t5.UMT5,
    "xlm-roberta": bert.XLM_ROBERTA,
}
RULES = {name: rules for each in FAMILIES.values() for name, rules in each.tokenizers.items()}
"""Tokenizer rules by kind of tokenizer."""

LACKING: Mapping[str, str] = {
    "cohere": "attention beside the feed-forward network",
    "cohere2": "attention beside the feed-forward network",
    "deberta": "scores by contents and positions apart",
    "deberta-v2": "scores by contents and positions apart",
    "gpt_oss": "mixtures of experts",
    "mixtral": "mixtures of experts",
    "nllb-moe": "mixtures of experts",
    "qwen3_moe": "mixtures of experts",
}
"""What dragoman lacks for other families, by the `model_type` of their configs."""
IN_LIBRARY = frozenset({"phi3"})
"""Families whose published files name code that transformers has had as a class since."""
_TAKE = f"take a model of a family that is read (docs/pretrained.md): {', '.join(FAMILIES)}"


def family(hf: HF) -> Family:
    """Return the family that the `model_type` of a config names.

    Raises InputError for an unknown family, quantized weights, and a folder with its own code.
    """
    name = hf.get("model_type")
    if scheme := hf.get("quantization_config"):
        method = scheme
        if isinstance(scheme, Mapping):  # older bitsandbytes files do not name it
            method = scheme.get("quant_method", "bitsandbytes" if "load_in_8bit" in scheme else "?")
        known = "take the model's folder with weights in 16 or 32 bits"
        raise InputError(unsupported("quantization_config", method, known))
    lacking = LACKING.get(str(name))
    if hf.get("auto_map") and name not in IN_LIBRARY and lacking is None:
        raise InputError(
            f"auto_map in the model's config asks for code of its own, which is not run; {_TAKE}"
        )
    if name is None:
        raise InputError("the model's config has no model_type; get the whole file")
    if not isinstance(name, str) or name not in FAMILIES:
        why = f"it has {lacking}" if lacking else "no conversion makes it so"
        raise InputError(unsupported("model_type", str(name), f"{why}; {_TAKE}"))
    return FAMILIES[name]
