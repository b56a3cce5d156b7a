"""Requests of our own API: their options are the fields of `Decoding`, generated from it."""

from dataclasses import fields
from types import NoneType, UnionType
from typing import Annotated, Any, Union, get_args, get_origin, get_type_hints

import msgspec

from dragoman.decoding import GENERATING, TRANSLATING, Decoding
from dragoman.ranges import Range
from dragoman.settings.fields import sentences

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
