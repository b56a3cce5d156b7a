"""The rest of a Hugging Face folder, kept next to our weights so that the way back is exact.

In the converted model folder, `huggingface/` contains

    config.json, tokenizer.json ...   its files unchanged, except the weights
    pooling.json, dense.json ...      of sentence-transformers, 1_Pooling/config.json ... there
    tensors.json                      the name, dtype and shape of each of its tensors
    rest.safetensors                  tensors that our weights do not reproduce bit for bit

The last are those that have no place in our models: unused rows of positions, a pooler without a
head, digits lost in a sum.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import torch
from safetensors.torch import load_file, save
from torch import Tensor

from dragoman.files.reading import read_object, read_own
from dragoman.folder.foreign import family
from dragoman.folder.foreign.files import read_checkpoint
from dragoman.folder.format import CONFIG, ORIGIN, FolderConfig, PublishedDefaults
from dragoman.folder.opening import ModelFolder
from dragoman.models.config import ModelConfig

LAYOUT, REST = "tensors.json", "rest.safetensors"
SENTENCES = tuple(
    f"sentence_{kind}_config.json"
    for kind in ("bert", "roberta", "distilbert", "camembert", "xlm-roberta")
)
"""The names that sentence-transformers has had for one file; it reads the first that exists."""
KEPT = (
    *("config.json", "generation_config.json", "chat_template.jinja", "chat_template.json"),
    *("preprocessor_config.json", "processor_config.json"),
    *("tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "added_tokens.json"),
    *("modules.json", *SENTENCES, "config_sentence_transformers.json"),
    *("vocab.json", "target_vocab.json", "vocab-src.json", "vocab-tgt.json"),
    *("vocab.txt", "merges.txt"),
    *("source.spm", "target.spm", "spiece.model", "sentencepiece.bpe.model", "tokenizer.model"),
    *("README.md", "LICENSE", "LICENSE.md", "LICENSE.txt", "NOTICE"),
)
"""The files that are copied: settings, vocabularies, the card, the licence. Nothing reads the
others."""
NESTED: Mapping[str, str] = {
    "1_Pooling/config.json": "pooling.json",
    "2_Dense/config.json": "dense.json",
    "2_Dense/model.safetensors": "dense.safetensors",
}
"""Files of sentence-transformers: their names in its folders and in `huggingface/`."""
LARGEST = 1 << 40
"""Maximum size of `rest.safetensors` in bytes; it may be as large as the weights."""


@dataclass(frozen=True, slots=True)
class Content:
    """A file that is copied unchanged."""

    data: bytes

    def save(self, path: Path) -> None:
        """Write it to `path`."""
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(self.data)


def keep_origin(opened: ModelFolder, weights: Mapping[str, Tensor]) -> dict[str, Content]:
    """Return the files of `huggingface/` for a model folder with these weights, by name."""
    folder, config = opened.path, opened.config
    if not config.as_it_is:
        return {name: Content(read_own(folder / name, LARGEST)) for name in config.tokenizers}
    hf, stored = read_checkpoint(folder, opened.hf)
    made = {name: torch.zeros_like(tensor) for name, tensor in stored.items()}
    family(hf).restore(weights, config.model, made)
    rest = {name: t.clone() for name, t in stored.items() if not _same_bits(t, made[name])}
    layout = {name: [str(t.dtype).removeprefix("torch."), [*t.shape]] for name, t in made.items()}
    names = [*KEPT, *family(hf).vocabularies(folder)]
    files = {name: read_own(folder / name) for name in names if (folder / name).is_file()}
    for name, flat in NESTED.items():
        if (folder / name).is_file() and not (folder / name).parent.is_symlink():
            files[flat] = read_own(folder / name)
    files.setdefault(CONFIG, json.dumps(hf, indent=2).encode())  # Marian's own folders have none
    files |= {LAYOUT: json.dumps(layout, indent=0).encode(), REST: save(rest)}
    return {f"{ORIGIN}/{name}": Content(data) for name, data in files.items()}


def for_other_weights(config: FolderConfig) -> PublishedDefaults | None:
    """Return the publisher's settings without the probe, whose logits modified weights change."""
    return None if config.published is None else replace(config.published, probe=())


def give_back(
    folder: Path, weights: Mapping[str, Tensor], config: ModelConfig
) -> tuple[dict[str, Tensor], dict[str, Content]]:
    """Return the tensors of the original Hugging Face folder, and its other files.

    Tensors of unchanged weights are the same bit for bit. If 16 bits would round trained weights,
    all 16-bit tensors become float32, and the config says so. `folder` is `huggingface/`.
    """
    layout, kind = read_object(folder / LAYOUT), family(hf := read_object(folder / CONFIG))
    rest = load_file(folder / REST)
    tensors = {
        name: rest[name] if name in rest else torch.zeros(shape, dtype=getattr(torch, dtype))
        for name, (dtype, shape) in layout.items()
    }
    kind.restore(weights, config, tensors)
    names = sorted({path.name for path in folder.iterdir()} - {LAYOUT, REST})
    theirs = {flat: name for name, flat in NESTED.items()}
    files = {theirs.get(name, name): Content(read_own(folder / name)) for name in names}
    found = kind.each_weight(tensors, config)
    if any(tensor.itemsize == 2 for tensor in tensors.values()) and not all(
        torch.equal(tensor.float(), weights[name].float()) for name, tensor in found
    ):
        tensors = {
            name: tensor.float() if tensor.itemsize == 2 else tensor
            for name, tensor in tensors.items()
        }
        kind.restore(weights, config, tensors)
        hf |= {key: "float32" for key in ("dtype", "torch_dtype") if key in hf}
        files[CONFIG] = Content(json.dumps(hf, indent=2).encode())
    return tensors, files


def _same_bits(one: Tensor, other: Tensor) -> bool:
    """Whether two tensors of the same dtype and shape have the same bits, even signs of zeros."""
    return torch.equal(*(each.contiguous().reshape(-1).view(torch.uint8) for each in (one, other)))
