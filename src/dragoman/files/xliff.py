"""XLIFF: the segments of a unit, and what translators' tools say about their translations."""

import re
from collections.abc import Iterator, Mapping

from dragoman.files.xml import Element

FINISHED = {"translated", "reviewed", "signed-off", "final"}
"""States of a target that may be the same as its source."""
UNFINISHED = {"new", "needs-translation", "needs-l10n", "initial"}
"""States of a target that is not a translation yet."""
_DRAFTS = {"fuzzy-match", "leveraged-mt", "mt-suggestion", "tm-suggestion"}
"""Origins of a target that nobody has reviewed."""
_CONFIRMED = {"ManuallyConfirmed", "Reviewer1Confirmed", "Proofread"}
_CONFIRMED |= {"Translated", "ApprovedTranslation", "ApprovedSignOff"}
"""Values of memoQ (`mq:status`) and Trados (`conf`) for a translation confirmed by a person."""

_CODE = re.compile(r"\{(\w+)>|<(\w+)\}|\{(\d+)\}")


def marks_of(unit: Element) -> frozenset[str] | None:
    """Return the numbers of a unit's Phrase placeholders; None if the unit is not from Phrase."""
    if not any(name.startswith("m:") for name in unit.attributes):
        return None
    marks = unit.child("tunit-metadata")
    return frozenset(each.attributes.get("id", "") for each in (marks.elements if marks else ()))


def codes_in(text: str, marks: frozenset[str] | None) -> Iterator[re.Match[str]]:
    """Yield the markup in a text of Phrase: `{b>bold<b}`, and `{1}` if 1 is among the marks.

    The groups are the keys of opening markup, of closing markup, and of the rest.
    """
    if marks is not None:
        yield from (found for found in _CODE.finditer(text) if not found[3] or found[3] in marks)


def segments_of(element: Element | None) -> dict[str, Element]:
    """Return the segments of a side of XLIFF 1.2 by their numbers, in order.

    Empty if one has no number, or two have the same: such a side is read as a whole.
    """
    found = [] if element is None else [*_segments(element)]
    numbers = [each.attributes.get("mid", "") for each in found]
    return dict(zip(numbers, found, strict=True)) if len({"", *numbers}) > len(numbers) else {}


def _segments(element: Element) -> Iterator[Element]:
    for each in element.elements:
        if each.local == "mrk" and each.attributes.get("mtype") == "seg":
            yield each
        else:
            yield from _segments(each)


def languages_of(unit: Element) -> tuple[str | None, str | None]:
    """Return the source and target languages that a file declares for a unit."""
    return (
        language(unit.inherited("source-language") or unit.inherited("srcLang")),
        language(unit.inherited("target-language") or unit.inherited("trgLang")),
    )


def language(code: str | None) -> str | None:
    """Return a language code; None if it names no language, such as und, x-dev or English."""
    return code if code and _CODE_OF_LANGUAGE.match(code) else None


_CODE_OF_LANGUAGE = re.compile(r"(?!(?:und|mul|zxx)\b)[a-z]{2,3}(?![^_-])", re.IGNORECASE)


def definitions_of(unit: Element) -> dict[str, dict[str, str]]:
    """Return the attributes of Trados's segment definitions of a unit (`sdl:seg-defs`), by their
    numbers.
    """
    definitions = unit.child("seg-defs")
    found = definitions.elements if definitions is not None else ()
    return {each.attributes.get("id", ""): each.attributes for each in found}


def is_confirmed(unit: Element, definition: Mapping[str, str]) -> bool | None:
    """Return whether a person has confirmed the translation of a unit, or of the segment with this
    Trados definition; None if no tool says.

    memoQ stores it in `mq:status`, Phrase in `m:confirmed`, others in `approved`.
    """
    if definition:
        return definition.get("conf") in _CONFIRMED
    if status := unit.attributes.get("mq:status"):
        return status in _CONFIRMED
    if confirmed := unit.attributes.get("m:confirmed"):
        return confirmed not in {"0", "false"}
    return {"yes": True, "no": False}.get(unit.attributes.get("approved", ""))


def is_locked(attributes: Mapping[str, str]) -> bool:
    """Return whether a tool has locked a unit, or the segment with these attributes."""
    found = (value for name, value in attributes.items() if name.rpartition(":")[2] == "locked")
    return not {"locked", "true"}.isdisjoint(found)


def is_draft(unit: Element, target: Element, definition: Mapping[str, str]) -> bool:
    """Return whether a target does not count as a translation, by what a tool says about it."""
    confirmed = is_confirmed(unit, definition)
    stated = (unit if unit.local == "segment" else target).attributes
    state, origin = stated.get("state", ""), stated.get("state-qualifier")
    if confirmed is None:
        by_origin = origin in _DRAFTS and state not in {"signed-off", "final"}
        return state in UNFINISHED or state.startswith("needs-") or by_origin
    return not confirmed
