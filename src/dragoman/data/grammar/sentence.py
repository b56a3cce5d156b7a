"""A sentence in both languages, and the few words that hold one together."""

from __future__ import annotations

from typing import NamedTuple

from dragoman.data.grammar import chinese, english
from dragoman.data.grammar.lexicon import Adjective
from dragoman.data.grammar.phrases import Action, Both, Dice, Subject, Thing


class Sentence(NamedTuple):
    """English, Chinese, and the combinations of words in it (see `demo_corpus`)."""

    en: str
    zh: str
    links: tuple[str, ...] = ()


def state(en: str, zh: str, *actions: Action) -> Sentence:
    """A statement or request: capital letter, full stops, links of the actions in it."""
    return Sentence(f"{capital(en)}.", f"{zh}。", _links(actions))


def ask(en: str, zh: str, *actions: Action) -> Sentence:
    """A question."""
    return Sentence(f"{capital(en)}?", f"{zh}？", _links(actions))


def dated(dice: Dice, who: Subject, en: str, zh: str, time: Both) -> Both:
    """Adds the time: English at the end, Chinese before the verb; or both at the front.

    She came + yesterday -> She came yesterday. / 她昨天来了。 or Yesterday she came. / 昨天她来了。
    """
    if dice.chance(0.15):
        return f"{time[0]} {who.en} {en}", f"{time[1]}{who.zh}{zh}"
    return f"{who.en} {en} {time[0]}", f"{who.zh}{time[1]}{zh}"


def capital(text: str) -> str:
    """The text with a capital first letter."""
    return text[0].upper() + text[1:]


def present(who: Subject, verb: str) -> str:
    """The verb agreeing with its subject: she drinks, they drink."""
    return english.third(verb) if who.singular else verb


def acts(who: Subject, action: Action) -> str:
    """The whole verb phrase agreeing with its subject."""
    return action.en("third" if who.singular else "base")


def be(who: Subject | Thing) -> str:
    """am, is or are."""
    if isinstance(who, Thing):
        return "are" if who.plural else "is"
    return "am" if who.number == "I" else ("is" if who.singular else "are")


def was(who: Subject | Thing) -> str:
    """was or were."""
    if isinstance(who, Thing):
        return "were" if who.plural else "was"
    return "was" if who.singular or who.number == "I" else "were"


def do(who: Subject) -> str:
    """do or does."""
    return "does" if who.singular else "do"


def negated(dice: Dice, auxiliary: str) -> str:
    """isn't or, now and then, is not: one Chinese word for both."""
    if auxiliary == "am" or dice.chance(0.3):
        return "cannot" if auxiliary == "can" else f"{auxiliary} not"
    return {"will": "won't", "can": "can't"}.get(auxiliary, f"{auxiliary}n't")


def predicative(dice: Dice, adjective: Adjective) -> Both:
    """An adjective after "is", with its degree: very interesting / 很有意思.

    Chinese has no bare adjective there: "is busy" is 很忙 too.
    """
    en, zh, *_ = adjective
    degree = dice.weighted(_DEGREES)
    return degree[0].format(en), degree[1].format(zh)


_DEGREES: tuple[tuple[Both, float], ...] = (
    (("very {}", "很{}"), 5),
    (("{}", "很{}"), 4),
    (("extremely {}", "非常{}"), 2),
    (("too {}", "太{}了"), 2),
    (("not {}", "不{}"), 2),
    (("not very {}", "不太{}"), 1),
)


def age(number: int) -> Both:
    """eight years / 八岁, two years / 两岁."""
    return (
        f"{english.cardinal(number)} year{'s' if number > 1 else ''}",
        f"{chinese.count(number)}岁",
    )


def _links(actions: tuple[Action, ...]) -> tuple[str, ...]:
    return tuple(name for action in actions for name in action.links if name)
