"""Models of other libraries as ours: what their config says, and where each of their tensors goes.

One file for the families of Hugging Face's `transformers` that share their names, each of them a
`Family`: two tables, one of settings and one of weights. Nothing here imports that library; the
tests in `tests/parity` compare with it.
"""

from collections.abc import Mapping

from dragoman.errors import InputError, did_you_mean
from dragoman.models.foreign import bart, bert, gpt2, llama, starcoder2, t5
from dragoman.models.foreign.reading import HF, Family, unsupported

__all__ = ["FAMILIES", "Family", "family"]

FAMILIES: Mapping[str, Family] = {
    "bart": bart.BART,
    "bert": bert.BERT,
    "gpt2": gpt2.GPT2,
    "llama": llama.LLAMA,
    "m2m_100": bart.M2M100,
    "marian": bart.MARIAN,
    "mbart": bart.MBART,
    "mistral": llama.MISTRAL,
    "qwen2": llama.QWEN2,
    "qwen3": llama.QWEN3,
    "starcoder2": starcoder2.STARCODER2,
    "t5": t5.T5,
}


def family(hf: HF) -> Family:
    """Return the family that the `model_type` of a config names."""
    name = str(hf.get("model_type"))
    if name not in FAMILIES:
        hint = did_you_mean(name, FAMILIES)
        raise InputError(unsupported("model_type", name, f"known are {', '.join(FAMILIES)}{hint}"))
    return FAMILIES[name]
