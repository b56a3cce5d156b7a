"""Embeddings: from a text to a vector; products of vectors say how similar the texts are.

    embedder = dragoman.load("all-MiniLM-L6-v2")
    vectors = embedder.embed(lines)  # float32, (N, D)

A folder of sentence-transformers says in `modules.json` how the last hidden states become a vector
(Reimers and Gurevych, 2019, section 3); for any other encoder it is their mean. A text's vector
does not depend on the other texts: in fp32 on a CPU, it is bit-for-bit the same.
"""

import json
import re
import warnings
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, Self, cast, get_args

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn
from torch.nn.functional import normalize

from dragoman.decode import Course
from dragoman.errors import InputError
from dragoman.files.reading import read_file, read_object
from dragoman.files.writing import replacing
from dragoman.folder.format import ReadingDefaults
from dragoman.folder.opening import ModelFolder
from dragoman.folder.origin import NESTED, SENTENCES
from dragoman.models import EncoderOnly, ModelConfig
from dragoman.models.build import reading
from dragoman.models.heads import mean_of
from dragoman.nn import Arithmetic, Linear
from dragoman.plain import Plain
from dragoman.tasks.encoders import TOKENS, EncoderReader, Row, read
from dragoman.tasks.lines import as_texts, encode_each
from dragoman.tasks.task import model_of
from dragoman.text.tokenizer import Tokenizer
from dragoman.wording import counted

Vector = npt.NDArray[np.float32]
Mode = Literal["mean", "cls", "max", "lasttoken"]
MODULES = "modules.json"
ACTIVATIONS: Mapping[str, nn.Module] = {
    "Tanh": nn.Tanh(),
    "Identity": nn.Identity(),
    "ReLU": nn.ReLU(),
    "GELU": nn.GELU(),
}
"""Those of the module `Dense`, by the names of their classes in PyTorch."""
KINDS = [
    f"Transformer Pooling{dense}{end}" for dense in ("", " Dense") for end in ("", " Normalize")
]
"""The supported lists of modules."""
MOST = 1 << 20
"""Largest size of a list of modules, in bytes."""
FRAME = 2
"""The tokens at the ends of a text, which `max_seq_length` counts and pooling includes."""
POOLING_MODES = {
    "pooling_mode_cls_token": "cls",
    "pooling_mode_mean_tokens": "mean",
    "pooling_mode_max_tokens": "max",
    "pooling_mode_lasttoken": "lasttoken",
    "pooling_mode_mean_sqrt_len_tokens": "mean_sqrt_len_tokens",
    "pooling_mode_weightedmean_tokens": "weightedmean",
}
"""The switches of older folders, and their newer names; the mean is on unless it is off."""


@dataclass(frozen=True, slots=True)
class Dense:
    """`act(W x + b)` on the pooled vector (LaBSE)."""

    linear: Linear
    activation: nn.Module

    def __call__(self, pooled_BD: Tensor) -> Tensor:
        """Map `(B, D)` to `(B, O)`."""
        linear = self.linear.to(pooled_BD.device)
        out_BO: Tensor = self.activation(linear(pooled_BD))
        return out_BO


@dataclass(frozen=True, slots=True, kw_only=True)
class Pooling:
    """How hidden states become one vector."""

    mode: Mode = "mean"
    """The mean or the maximum of all hidden states, that of the first token or of the last."""
    dense: Dense | None = None
    """A layer on that vector."""
    normalize: bool = False
    """Whether vectors are scaled to length 1."""
    max_tokens: int | None = None
    """Number of tokens that are read from a text; the model's limit if None."""
    lowercase: bool = False
    """Whether texts are lowercased before they are encoded."""
    prompt: str = ""
    """Text that is put before every text."""
    published: bool = False
    """Whether the folder says how to pool."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Embedding(Plain):
    """The vector of a text."""

    vector: Vector = field(repr=False)
    """Shape `(D,)`."""
    flags: tuple[str, ...] = ()
    """What was unusual: "empty" (no piece of text) and "unreadable" (the tokenizer cannot encode
    the text), with the vector of the tokens around a text, and "max_length" (a long text, of which
    only the beginning was read)."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Embedding) and self._values == other._values

    def __hash__(self) -> int:
        return hash(self._values)

    @property
    def _values(self) -> tuple[object, ...]:
        return (*self.vector.tolist(), self.flags)


def save_vectors(
    results: Iterable[Embedding], dim: int, path: Path
) -> tuple[int, Mapping[str, int]]:
    """Write all vectors to one NumPy array, which grows in memory as they come.

    Returns how many there are, and how many have each flag.
    """
    flags = Counter[str]()

    def take(result: Embedding) -> Vector:
        flags.update(result.flags)
        return result.vector

    vectors = np.fromiter(map(take, results), np.dtype((np.float32, dim)))
    with replacing(path, "vectors") as part, part.open("wb") as stream:
        np.save(stream, vectors)
    return len(vectors), flags


class Embedder(EncoderReader[Embedding, Vector]):
    """Texts to vectors: an encoder, whose head is not used, its tokenizer and a pooling."""

    def __init__(
        self,
        model: EncoderOnly,
        tokenizer: Tokenizer,
        pooling: Pooling | None = None,
        reading: ReadingDefaults | None = None,
        *,
        precision: Arithmetic = "fp32",
    ) -> None:
        super().__init__(model, tokenizer, (), reading, precision=precision)
        self.pooling = pooling or Pooling()
        limit = self.reading.max_tokens
        self.max_tokens = min(self.pooling.max_tokens or limit, limit)
        dense, width = self.pooling.dense, model.embedding.weight.shape[1]
        self.dim: int = width if dense is None else dense.linear.out_features

    @classmethod
    def of(cls, folder: ModelFolder, precision: Arithmetic = "fp32") -> Self:
        """Create one from an open folder. Raises InputError for another kind of model."""
        model, pooling = model_of(folder, EncoderOnly), read_pooling(folder)
        if model.words is not None:
            raise InputError(
                f"{folder.path} holds a tagger that reads features of words (word_features), which "
                "a text alone has not; take another encoder."
            )
        reading = folder.config.reading
        return cls(model, folder.src_tokenizer, pooling, reading, precision=precision)

    def embed(self, text: str | Iterable[str], *, max_batch_tokens: int = TOKENS) -> Vector:
        """Return the vectors of texts, `(N, D)` in their order, or of one text, `(D,)`.

        White space around a text is dropped. Warns if only the beginning of a text was read. Raises
        InputError for a text that cannot be encoded. `max_batch_tokens`, padding included, affects
        only memory and speed.
        """
        found = [*self.submit(as_texts(text), max_batch_tokens).in_order()]
        for number, each in enumerate(found, start=1):
            if "unreadable" in each.flags:
                raise InputError(f"Text {number} cannot be encoded by the tokenizer; correct it.")
        if cut := [n for n, each in enumerate(found, start=1) if "max_length" in each.flags]:
            warnings.warn(
                f"{counted(len(cut), 'text is', 'texts are')} longer than {self.max_tokens} tokens "
                f"(the first is text {cut[0]}); the rest was not read.",
                stacklevel=2,
            )
        if isinstance(text, str):
            return found[0].vector
        return np.array([each.vector for each in found], np.float32).reshape(-1, self.dim)

    def courses(self, texts: Sequence[str], options: int) -> list[Course[Row, Vector, Embedding]]:
        """Return how each text is embedded, in batches of at most this many tokens."""
        return [self._course(ids, options) for ids in self._encode(texts)]

    def size(self, texts: Sequence[str]) -> int:
        """Return how many tokens are read from texts, including those around each."""
        return sum(min(len(ids or ()), self.max_tokens) + 2 for ids in self._encode(texts))

    def _encode(self, texts: Sequence[str]) -> list[list[int] | None]:
        read_texts = [f"{self.pooling.prompt}{text}".strip() for text in texts]
        if self.pooling.lowercase:
            read_texts = [text.lower() for text in read_texts]
        return encode_each(self.tokenizer.encode_batch, read_texts)

    def _course(self, ids: list[int] | None, budget: int) -> Course[Row, Vector, Embedding]:
        """Embed a text; without ids, only the tokens around it."""
        (vector,) = yield read([Row((ids or [])[: self.max_tokens])], budget)
        if ids is None:
            return Embedding(vector=vector, flags=("unreadable",))
        flags = ("empty",) * (not ids) + ("max_length",) * (len(ids) > self.max_tokens)
        return Embedding(vector=vector, flags=flags)

    def _found(self, ids_BL: Tensor, rows: Sequence[Row]) -> Vector:  # noqa: ARG002 -- as others
        """Return the vectors of a batch, `(B, D)`; padding is ignored."""
        mask_BL = ids_BL != self._model.pad_id
        hidden_BLD = self._model.hidden(ids_BL, mask_BL).float()
        match self.pooling.mode:
            case "mean":
                pooled_BD = mean_of(hidden_BLD, mask_BL)
            case "max":
                pooled_BD = hidden_BLD.masked_fill(~mask_BL[..., None], float("-inf")).amax(1)
            case "cls":
                pooled_BD = hidden_BLD[:, 0]
            case "lasttoken":
                every_B = torch.arange(len(ids_BL), device=ids_BL.device)
                pooled_BD = hidden_BLD[every_B, mask_BL.sum(1) - 1]
        if self.pooling.dense is not None:
            pooled_BD = self.pooling.dense(pooled_BD)
        if self.pooling.normalize:
            pooled_BD = normalize(pooled_BD, dim=1)
        vectors_BD: Vector = pooled_BD.cpu().numpy()
        return vectors_BD


def read_pooling(folder: ModelFolder) -> Pooling:
    """Return the pooling of a folder's sentence-transformers files; the mean without them.

    Raises InputError for a module or a setting that is not supported.
    """
    if folder.config.published is None:
        return Pooling()
    path = folder.origin
    if not (path / MODULES).is_file():
        return Pooling()
    modules = _modules(path)
    kinds = [kind for kind, _ in modules]
    if " ".join(kinds) not in KINDS:
        raise InputError(
            f"{path / MODULES} has the modules {', '.join(kinds)}; only Transformer, Pooling and "
            "then, if at all, Dense and Normalize are supported."
        )
    file = next((path / name for name in SENTENCES if (path / name).is_file()), path / SENTENCES[0])
    settings = _optional(file)
    named = _optional(path / "config_sentence_transformers.json")
    length = _length(file, settings.get("max_seq_length"))
    pooling = _of_module(path, f"{modules[1][1]}/config.json")
    hf = read_object(pooling)
    prompt = _prompt(path, named)
    if prompt and not hf.get("include_prompt", True):
        raise InputError(f"{pooling}: include_prompt = false is not supported.")
    return Pooling(
        mode=_mode(pooling, hf),
        dense=_dense(path, modules[2][1], folder.config.model) if "Dense" in kinds else None,
        normalize="Normalize" in kinds,
        max_tokens=None if length is None else length - FRAME,
        lowercase=bool(settings.get("do_lower_case")),
        prompt=prompt,
        published=True,
    )


def _length(file: Path, length: object) -> int | None:
    """Return how many tokens are read: `max_seq_length`, or what the tokenizer says without it."""
    beside = file.with_name("tokenizer_config.json")
    tokenizer = _optional(beside)
    if (side := tokenizer.get("truncation_side", "right")) != "right":
        raise InputError(
            f'{beside}: truncation_side = {json.dumps(side)} is not supported; only "right" is.'
        )
    if length is None:
        most = tokenizer.get("model_max_length")
        return most if type(most) is int and most > FRAME else None  # some files say 1e30
    if type(length) is not int or length <= FRAME:
        raise InputError(
            f"{file}: max_seq_length must be a whole number above {FRAME}, not {length!r}."
        )
    return length


def _modules(path: Path) -> list[tuple[str, str]]:
    file = path / MODULES
    try:
        listed = json.loads(read_file(file, MOST))
        modules = [(_name(one["type"]), one["path"]) for one in listed]
        inside = all(re.fullmatch(r"[\w-]*", name) for _, name in modules)
    except (TypeError, KeyError, ValueError, AttributeError, RecursionError) as error:
        raise InputError(f"{file} does not list modules; download it again.") from error
    if not inside or (modules and modules[0][1]):
        raise InputError(
            f"{file} must have the first module in the folder itself, the others in one below."
        )
    return modules


def _name(kind: str) -> str:
    """Return the name of a class, with its package if it is another's."""
    return kind.rpartition(".")[2] if kind.startswith("sentence_transformers.") else kind


def _of_module(path: Path, name: str) -> Path:
    """Return a file of a module, which a converted folder has under another name."""
    if name not in NESTED:  # it would be missing from a converted folder
        raise InputError(
            f"{path / MODULES} asks for {name}, but only {', '.join(NESTED)} are read; rename the "
            "module's folder, and its path there."
        )
    for file in (path / name, path / NESTED[name]):
        if file.is_file():
            return file
    raise InputError(f"{path} has no {name}; use the publisher's folder.")


def _dense(path: Path, name: str, model: ModelConfig) -> Dense:
    config = _of_module(path, f"{name}/config.json")
    hf = read_object(config)
    activation = str(hf.get("activation_function", "Tanh")).rpartition(".")[2]
    if activation not in ACTIVATIONS:
        raise InputError(
            f"{config}: activation_function = {activation:.40} is not supported; it must be one of "
            f"{', '.join(ACTIVATIONS)}."
        )
    pickled = path / name / "pytorch_model.bin"
    if pickled.is_file() and not pickled.with_name("model.safetensors").is_file():
        raise InputError(f"{pickled} is a pickle, which is not read; save it as model.safetensors.")
    weights = _of_module(path, f"{name}/model.safetensors")
    with reading(weights) as stored:
        names = {*stored.keys()}
        found = {each: stored.get_tensor(each).float() for each in names}
    weight = found.get("linear.weight", torch.empty(0))
    rows = len(weight)
    shapes = {"linear.weight": (rows, model.d_model), "linear.bias": (rows,)}
    if not names or any(tuple(t.shape) != shapes.get(n, ()) for n, t in found.items()):
        raise InputError(f"{weights} does not hold a layer on vectors of {model.d_model} numbers.")
    linear = Linear(model.d_model, rows, bias="linear.bias" in found)
    linear.load_state_dict({n.removeprefix("linear."): tensor for n, tensor in found.items()})
    return Dense(linear, ACTIVATIONS[activation])


def _optional(path: Path) -> dict[str, Any]:
    return read_object(path) if path.is_file() else {}


def _mode(path: Path, hf: Mapping[str, Any]) -> Mode:
    switched = [name for key, name in POOLING_MODES.items() if hf.get(key, name == "mean")]
    chosen = hf.get("pooling_mode", switched)
    chosen = [chosen] if isinstance(chosen, str) else chosen
    for mode in get_args(Mode):
        if chosen == [mode]:
            return cast("Mode", mode)
    raise InputError(
        f"{path}: pooling by {json.dumps(chosen)} is not supported; it must be one of "
        f"{', '.join(get_args(Mode))}."
    )


def _prompt(path: Path, named: Mapping[str, Any]) -> str:
    if (name := named.get("default_prompt_name")) is None:
        return ""
    prompts = named.get("prompts")
    prompt = prompts.get(name) if isinstance(prompts, dict) else None
    if not isinstance(prompt, str):
        raise InputError(
            f"{path / 'config_sentence_transformers.json'}: default_prompt_name is {name!r}, but "
            "prompts has no such text."
        )
    return prompt
