"""Requests and answers of our own API; options are generated from the fields of `Decoding`."""

from dataclasses import dataclass, fields
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

import msgspec

from dragoman.decoding import GENERATING, TRANSLATING, Decoding
from dragoman.ranges import Range
from dragoman.settings.fields import sentences
from dragoman.tasks.classify.classifier import Classification
from dragoman.tasks.results import Generation, Scored, Translation
from dragoman.tasks.tag.tagger import Tagging
from dragoman.text.detection import Detected

WITHHELD = frozenset({"processors", "max_batch_tokens"})
"""Options reserved for the operator: what is computed, and the batch size."""


class DetectForm(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """Texts whose language to detect."""

    text: str | list[str]


class TextForm(DetectForm, kw_only=True):
    """Texts to label."""

    model: str | None = None


class ChoiceForm(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """The model to use: by its name, or by the languages that it translates."""

    model: str | None = None
    src_lang: str | None = None
    tgt_lang: str | None = None


class TranslateForm(ChoiceForm, kw_only=True):
    """Texts to translate."""

    text: str | list[str]
    prefix: str | list[str] | None = None
    alignment: bool = False
    format: Literal["text", "html", "xml"] = "text"
    glossary: dict[str, str] = {}


class DocumentForm(ChoiceForm, kw_only=True):
    """How to translate a document; the file itself is part of the form."""

    glossary: str = ""
    """Terms: a source, a tab and a target in each line."""


class GenerateForm(TextForm, kw_only=True):
    """Prompts to continue."""

    stream: bool = False


class ScoreForm(ChoiceForm, kw_only=True):
    """Pairs to score: a source or a prompt, and its translation or continuation."""

    src: str | list[str]
    tgt: str | list[str]


class InspectForm(ChoiceForm, kw_only=True):
    """A text for a translator of one language pair."""

    text: str


class InspectAnswer(msgspec.Struct):
    """The output of `dragoman inspect --json`."""

    model: str
    inspection: dict[str, Any]


class VectorForm(msgspec.Struct):
    """The vector of a text; empty if a library failed on it."""

    vector: list[float | None]
    flags: list[str]


@dataclass(frozen=True, kw_only=True)
class LinkedTranslation(Translation):
    """A translation, with its alignment if requested."""

    src_tokens: tuple[str, ...] | None = None
    alignment: tuple[tuple[int, int], ...] | None = None  # type: ignore[assignment] # in JSON


def answer_of(task: str, key: str, kind: Any) -> Any:  # noqa: ANN401 -- types
    """Return the type of an answer: the model's name, and under `key` a `kind` for each text.

    Generated answers have a seed, which reproduces sampled ones.
    """
    seed = [("seed", int | None, None)] if kind is Generation else []
    named: list[tuple[str, Any]] = [("model", str), (key, list[kind])]
    return msgspec.defstruct(f"{task}Answer", [*named, *seed])


TranslateAnswer = answer_of("Translate", "translations", LinkedTranslation)
GenerateAnswer = answer_of("Generate", "generations", Generation)
ClassifyAnswer = answer_of("Classify", "classifications", Classification)
TagAnswer = answer_of("Tag", "taggings", Tagging)
EmbedAnswer = answer_of("Embed", "embeddings", VectorForm)
DetectAnswer = msgspec.defstruct("DetectAnswer", [("detections", list[Detected])])
ScoreAnswer = answer_of("Score", "scores", Scored)


class ModelForm(msgspec.Struct, kw_only=True):
    """A model of the server, in a form that OpenAI's clients can read too."""

    name: str = msgspec.field(name="id")
    task: str | None
    state: str
    src_lang: str | None
    tgt_lang: str | None
    languages: tuple[str, ...]
    object: Literal["model"] = "model"
    created: int = 0
    owned_by: str = "operator"


class ModelsAnswer(msgspec.Struct):
    """All models."""

    data: list[ModelForm]
    object: Literal["list"] = "list"


class ErrorForm(msgspec.Struct):
    """What is wrong, where, and what to do; the message is the first and the last."""

    message: str
    what: str
    where: str
    do: str


ErrorAnswer = msgspec.defstruct("ErrorAnswer", [("error", ErrorForm)])


def with_options(form: type[msgspec.Struct], task: Decoding) -> Any:  # noqa: ANN401 -- a type
    """Return a form with a field for each option of a task, unset by default."""
    hints, said = get_type_hints(Decoding, include_extras=True), sentences(Decoding)
    options = [
        (
            name,
            Annotated[
                _bounded(hints[name]) | msgspec.UnsetType,
                msgspec.Meta(description=" ".join(said.get(name, "").split())),
            ],
            msgspec.UNSET,
        )
        for name in task.given()
        if name not in WITHHELD
    ]
    return msgspec.defstruct(
        form.__name__.replace("Form", "Request"),
        options,
        bases=(form,),
        namespace={"__doc__": form.__doc__},
        kw_only=True,
        forbid_unknown_fields=True,
    )


def as_list(given: str | list[str]) -> list[str]:
    """Return one or several texts as a list."""
    return [given] if isinstance(given, str) else given


def options_of(form: msgspec.Struct) -> Decoding:
    """Return the options of a form. Raises InputError for options that exclude each other."""
    named = {each.name: getattr(form, each.name, msgspec.UNSET) for each in fields(Decoding)}
    return Decoding(**{name: value for name, value in named.items() if value is not msgspec.UNSET})


def _bounded(hint: Any) -> Any:  # noqa: ANN401 -- a type
    """Return a type with its range as msgspec's constraints."""
    if get_origin(hint) is Annotated:
        kind, bounds = get_args(hint)
        assert isinstance(bounds, Range)  # noqa: S101 (options have no other notes)
        named = {"ge": bounds.least, "gt": bounds.above, "le": bounds.most, "lt": bounds.below}
        given: dict[str, Any] = {name: value for name, value in named.items() if value is not None}
        return Annotated[kind, msgspec.Meta(**given)]
    if get_origin(hint) in {Union, UnionType}:
        return Union[tuple(_bounded(arm) for arm in get_args(hint))]  # noqa: UP007 -- made of a tuple
    return NoneType if hint is None else hint


TranslateRequest = with_options(TranslateForm, TRANSLATING)
GenerateRequest = with_options(GenerateForm, GENERATING)
