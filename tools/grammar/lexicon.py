"""The words of the grammar as typed values, read once from the TOML tables beside this file."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any, NamedTuple

from tools.grammar import english

Rows = dict[str, tuple[tuple[str, ...], ...]]


class Noun(NamedTuple):
    """A thing one can count: two dogs, 两只狗."""

    en: str
    measure: str
    zh: str
    plural: str
    kind: str


class Mass(NamedTuple):
    """A thing counted by its container: two cups of tea, 两杯茶."""

    en: str
    container: str
    measure: str
    zh: str


class Title(NamedTuple):
    """A name without article and measure word: French, machine learning, Beijing."""

    en: str
    zh: str


class Adjective(NamedTuple):
    """An adjective with its degrees: useful, more useful, most useful, 有用."""

    en: str
    zh: str
    comparative: str
    superlative: str


class Verb(NamedTuple):
    """A verb with the objects that make sense after it and the kind of place it happens in."""

    base: str
    zh: str
    objects: tuple[Noun | Mass | Title, ...]
    place: str
    achievement: bool


class Place(NamedTuple):
    """Where something happens (in the park, 在公园) or where one goes (to the park, 去公园)."""

    at_en: str
    at_zh: str
    to_en: str
    to_zh: str
    kinds: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Lexicon:
    """Every table of the three TOML files."""

    nouns: Mapping[str, tuple[Noun, ...]]
    """Countable nouns by class."""
    masses: Mapping[str, tuple[Mass, ...]]
    """Uncountable nouns by class."""
    titles: Mapping[str, tuple[Title, ...]]
    """Languages, subjects, cities, ... by class."""
    adjectives: Mapping[str, tuple[Adjective, ...]]
    """Adjectives by table."""
    suits: Mapping[str, tuple[Adjective, ...]]
    """The adjectives that suit each class of nouns."""
    verbs: Mapping[str, tuple[Verb, ...]]
    """Transitive verbs by aspect: activity, achievement, event."""
    places: tuple[Place, ...]
    """All places."""
    places_of: Mapping[str, tuple[Place, ...]]
    """Places by what is done there."""
    disposals: tuple[Verb, ...]
    """Verbs of a 把 sentence; `zh` holds verb and result joined by a bar."""
    rows: Rows
    """The plain tables: pronouns, names, times, activities, ..."""


@cache
def lexicon() -> Lexicon:
    """The lexicon, read at the first call."""
    words, actions, times = (_read(name) for name in ("lexicon", "actions", "times"))
    verbs = actions["verbs"]
    nouns = {
        kind: tuple(_noun(kind, row) for row in rows)
        for kind, rows in (words["nouns"] | actions["things"]).items()
    }
    masses = {kind: tuple(Mass(*row) for row in rows) for kind, rows in words["mass"].items()}
    titles = {kind: tuple(Title(*row) for row in rows) for kind, rows in words["names_of"].items()}
    adjectives = {
        table: tuple(_adjective(row) for row in rows) for table, rows in words["adjectives"].items()
    }
    objects: Mapping[str, tuple[Noun | Mass | Title, ...]] = {**nouns, **masses, **titles}
    places = tuple(_place(row) for row in actions["places"]["rows"])
    plain = _tables(words) | _tables(verbs) | _tables(actions["places"]) | _tables(times)
    return Lexicon(
        nouns=nouns,
        masses=masses,
        titles=titles,
        adjectives=adjectives,
        suits={kind: adjectives[table] for kind, table in words["suits"].items()},
        verbs={
            aspect: tuple(_verb(row, objects, aspect) for row in verbs[aspect])
            for aspect in ("activity", "achievement", "event")
        },
        places=places,
        places_of={
            kind: tuple(place for place in places if kind in place.kinds)
            for kind in sorted({kind for place in places for kind in place.kinds})
        },
        disposals=tuple(
            Verb(base, f"{zh}|{result}", _union(kinds, objects), "", achievement=True)
            for base, zh, result, kinds in verbs["dispose"]
        ),
        rows=plain,
    )


def _read(name: str) -> dict[str, Any]:
    return tomllib.loads(files(__package__).joinpath(f"{name}.toml").read_text(encoding="utf-8"))


def _noun(kind: str, row: Sequence[str]) -> Noun:
    en, measure, zh, *irregular = row
    return Noun(en, measure, zh, irregular[0] if irregular else english.plural(en), kind)


def _place(row: Sequence[str]) -> Place:
    at_en, at_zh, to_en, to_zh, kinds = row
    return Place(at_en, at_zh, to_en, to_zh, tuple(kinds.split()))


def _adjective(row: Sequence[str]) -> Adjective:
    en, zh, *short = row
    if short:
        return Adjective(en, zh, short[0], english.superlative(short[0]))
    return Adjective(en, zh, f"more {en}", f"most {en}")


def _verb(
    row: Sequence[str], objects: Mapping[str, tuple[Noun | Mass | Title, ...]], aspect: str
) -> Verb:
    base, zh, kinds, place = row
    return Verb(base, zh, _union(kinds, objects), place, aspect != "activity")


def _union(
    kinds: str, objects: Mapping[str, tuple[Noun | Mass | Title, ...]]
) -> tuple[Noun | Mass | Title, ...]:
    return tuple(word for kind in kinds.split() for word in objects[kind])


def _tables(data: Mapping[str, Any]) -> Rows:
    return {name: _tuples(rows) for name, rows in data.items() if isinstance(rows, list)}


def _tuples(rows: Sequence[str | Sequence[str]]) -> tuple[tuple[str, ...], ...]:
    return tuple((row,) if isinstance(row, str) else tuple(row) for row in rows)
