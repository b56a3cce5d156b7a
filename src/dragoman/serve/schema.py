"""Requests of our own API: their options are the fields of `Decoding`, generated from it."""

from dataclasses import fields
from types import NoneType, UnionType
from typing import Annotated, Any, Union, get_args, get_origin, get_type_hints

import msgspec

from dragoman.decoding import GENERATING, TRANSLATING, Decoding
from dragoman.ranges import Range
from dragoman.settings.fields import sentences
from dragoman.tasks.classify.classifier import Classification
from dragoman.tasks.results import Generation, Scored, Translation
from dragoman.tasks.tag.tagger import Tagging

WITHHELD = frozenset({"processors", "max_batch_tokens"})
"""Options that are the operator's: what is computed, and in how large batches."""


class RequestForm(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """What requests have in common."""

    model: str | None = None


class TranslateForm(RequestForm, kw_only=True):
    """Texts to translate."""

    text: str | list[str]
    src_lang: str | None = None
    tgt_lang: str | None = None
    prefix: str | list[str] | None = None
    alignment: bool = False


class GenerateForm(RequestForm, kw_only=True):
    """Prompts to continue."""

    text: str | list[str]
    stream: bool = False


class TextForm(RequestForm, kw_only=True):
    """Texts to label."""

    text: str | list[str]


class ScoreForm(RequestForm, kw_only=True):
    """Pairs to score: a source or a prompt, and what follows."""

    src: str | list[str]
    tgt: str | list[str]
    src_lang: str | None = None
    tgt_lang: str | None = None


class DetectForm(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """Texts whose language is asked for."""

    text: str | list[str]


class TranslateAnswer(msgspec.Struct):
    """A translation for each text; with `alignment` also its `src_tokens` and `alignment`."""

    model: str
    translations: list[Translation]


class GenerateAnswer(msgspec.Struct):
    """A continuation for each prompt."""

    model: str
    generations: list[Generation]
    seed: int | None = None
    """By which it was sampled."""


class ClassifyAnswer(msgspec.Struct):
    """A label for each text."""

    model: str
    classifications: list[Classification]


class TagAnswer(msgspec.Struct):
    """The words of each text with their tags, and what they form."""

    model: str
    taggings: list[Tagging]


class VectorForm(msgspec.Struct):
    """The vector of a text."""

    vector: list[float]
    flags: list[str]


class EmbedAnswer(msgspec.Struct):
    """A vector for each text."""

    model: str
    embeddings: list[VectorForm]


class ScoreAnswer(msgspec.Struct):
    """The log-probability of each pair's second text, given the first."""

    model: str
    scores: list[Scored]


class CandidateForm(msgspec.Struct):
    """A language that a text may be in."""

    language: str
    confidence: float


class DetectionForm(msgspec.Struct):
    """The language of a text; null where it is unsure."""

    language: str | None
    confidence: float
    candidates: list[CandidateForm]


class DetectAnswer(msgspec.Struct):
    """The language of each text."""

    detections: list[DetectionForm]


class ModelForm(msgspec.Struct):
    """A model of the server."""

    name: str
    task: str | None
    state: str
    src_lang: str | None
    tgt_lang: str | None
    languages: list[str]


class ModelsAnswer(msgspec.Struct):
    """All models."""

    models: list[ModelForm]


class ErrorForm(msgspec.Struct):
    """What is wrong, where, and what to do."""

    what: str
    where: str
    do: str


class ErrorAnswer(msgspec.Struct):
    """A request without an answer."""

    error: ErrorForm


def with_options(form: type[msgspec.Struct], task: Decoding) -> Any:  # noqa: ANN401 -- a type
    """Return a form with a field for each option of a task, absent unless it is given."""
    hints, said, given = (
        get_type_hints(Decoding, include_extras=True),
        sentences(Decoding),
        task.given(),
    )
    return msgspec.defstruct(
        form.__name__.replace("Form", "Request"),
        [
            (
                each.name,
                Annotated[
                    _bounded(hints[each.name]) | msgspec.UnsetType,
                    msgspec.Meta(description=" ".join(said.get(each.name, "").split())),
                ],
                msgspec.UNSET,
            )
            for each in fields(Decoding)
            if each.name in given and each.name not in WITHHELD
        ],
        bases=(form,),
        namespace={"__doc__": form.__doc__},
        kw_only=True,
        forbid_unknown_fields=True,
    )


def options_of(form: msgspec.Struct) -> Decoding:
    """Return the options that a form gives. Raises InputError for ones that exclude each other."""
    named = {each.name: getattr(form, each.name, msgspec.UNSET) for each in fields(Decoding)}
    return Decoding(**{name: value for name, value in named.items() if value is not msgspec.UNSET})


def _bounded(hint: Any) -> Any:  # noqa: ANN401 -- a type
    """The type with its range as msgspec has it."""
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
