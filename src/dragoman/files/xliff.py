"""XLIFF: the segments of a unit, and what tools for translators say of their translations."""

import re
from collections.abc import Iterator, Mapping

from dragoman.files.xml import Element

FINISHED = {"translated", "reviewed", "signed-off", "final"}
"""States of a target that is a translation."""
UNFINISHED = {"new", "needs-translation", "needs-l10n", "initial"}
"""States of a target that is no translation yet."""
_DRAFTS = {"fuzzy-match", "leveraged-mt", "mt-suggestion", "tm-suggestion"}
"""Where a target comes from that nobody has looked at."""
_CONFIRMED = {"ManuallyConfirmed", "Reviewer1Confirmed", "Proofread"}
_CONFIRMED |= {"Translated", "ApprovedTranslation", "ApprovedSignOff"}
"""What memoQ (`mq:status`) and Trados (`conf`) say of a translation that a person has confirmed."""

_CODE = re.compile(r"\{(\w+)>|<(\w+)\}|\{(\d+)\}")


def codes_in(text: str, unit: Element) -> Iterator[re.Match[str]]:
    """What is markup in a text of Phrase: `{b>bold<b}`, and `{1}` where the unit says what that is.

    The groups are the keys of what begins, of what ends, and of what does neither.
    """
    if "{" not in text or not any(name.startswith("m:") for name in unit.attributes):
        return
    told = unit.child("tunit-metadata")
    marks = {each.attributes.get("id") for each in told.elements} if told is not None else set()
    yield from (found for found in _CODE.finditer(text) if not found[3] or found[3] in marks)


def segments_of(element: Element | None) -> dict[str, Element]:
    """The segments of a side of XLIFF 1.2 by their numbers."""
    found = dict[str, Element]()
    for each in element.elements if element is not None else ():
        is_one = each.local == "mrk" and each.attributes.get("mtype") == "seg"
        found |= {each.attributes.get("mid", ""): each} if is_one else segments_of(each)
    return found


def languages_of(unit: Element) -> tuple[str | None, str | None]:
    """The languages that a file declares for a unit: from and into."""
    return (
        unit.inherited("source-language") or unit.inherited("srcLang"),
        unit.inherited("target-language") or unit.inherited("trgLang"),
    )


def said_of_segments(unit: Element) -> dict[str, dict[str, str]]:
    """What Trados says of the segments of a unit, by their numbers (`sdl:seg-defs`)."""
    definitions = unit.child("seg-defs")
    found = definitions.elements if definitions is not None else ()
    return {each.attributes.get("id", ""): each.attributes for each in found}


def is_confirmed(unit: Element, said: Mapping[str, str]) -> bool | None:
    """Whether a person has confirmed the translation of a unit, or of a segment of it of which
    Trados has `said` something; None if no tool says so.

    memoQ has it in `mq:status`, Phrase in `m:confirmed`, others in `approved`.
    """
    if said:
        return said.get("conf") in _CONFIRMED
    if status := unit.attributes.get("mq:status"):
        return status in _CONFIRMED
    if confirmed := unit.attributes.get("m:confirmed"):
        return confirmed not in {"0", "false"}
    return {"yes": True, "no": False}.get(unit.attributes.get("approved", ""))


def is_locked(unit: Element, said: Mapping[str, str]) -> bool:
    """Whether a tool keeps a unit, or a segment of it, from changes."""
    values = [value for name, value in unit.attributes.items() if name.endswith(":locked")]
    return not {"locked", "true"}.isdisjoint([*values, said.get("locked")])


def is_draft(unit: Element, target: Element, said: Mapping[str, str]) -> bool:
    """Whether a target may not count as a translation, by what a tool says of it."""
    confirmed = is_confirmed(unit, said)
    stated = (unit if unit.local == "segment" else target).attributes
    state, origin = stated.get("state", ""), stated.get("state-qualifier")
    if confirmed is None:
        by_origin = origin in _DRAFTS and state not in {"signed-off", "final"}
        return state in UNFINISHED or state.startswith("needs-") or by_origin
    return not confirmed
