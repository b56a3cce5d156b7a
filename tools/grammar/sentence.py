"""A sentence in both languages, and the few words that hold one together."""

from __future__ import annotations

from typing import NamedTuple

from tools.dice import Dice
from tools.grammar import chinese, english
from tools.grammar.doing import Action
from tools.grammar.lexicon import Adjective, Noun
from tools.grammar.phrases import Both, Subject, Thing
from tools.numbers import cardinal


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
    if time[0].startswith(_FRONTED) and dice.chance(0.2):
        return f"{time[0]} {who.en} {en}", f"{time[1]}{who.zh}{zh}"
    return f"{who.en} {en} {time[0]}", f"{who.zh}{time[1]}{zh}"


_FRONTED = ("yesterday", "tomorrow", "the day", "last", "next", "tonight", "this")


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


def have(who: Subject) -> str:
    """have or has."""
    return "has" if who.singular else "have"


def negated(dice: Dice, auxiliary: str) -> str:
    """isn't or, now and then, is not: the same in Chinese."""
    if auxiliary == "am" or dice.chance(0.3):
        return "cannot" if auxiliary == "can" else f"{auxiliary} not"
    return {"will": "won't", "can": "can't"}.get(auxiliary, f"{auxiliary}n't")


def occupied(who: Subject, job: Noun) -> str:
    """a doctor, or doctors: the job agreeing with who has it."""
    return job.plural if who.number == "many" else english.article(job.en)


def predicative(dice: Dice, adjective: Adjective) -> Both:
    """An adjective after "is", with its degree: very interesting / 很有意思.

    Chinese has no bare adjective there: "is busy" is 很忙 too.
    """
    en, zh, *_ = adjective
    roll = dice.number(1, 16)
    if roll <= 5:
        return f"very {en}", f"很{zh}"
    if roll <= 7:
        return f"extremely {en}", f"非常{zh}"
    if roll <= 9 and zh in _EXCESS:
        return f"too {en}", f"太{zh}了"
    if roll <= 12:
        return f"not {en}", chinese.negative(zh)
    if roll == 13:
        return f"not very {en}", f"不太{zh}"
    return en, f"很{zh}"


_EXCESS = frozenset(
    [
        "贵",
        "大",
        "小",
        "长",
        "短",
        "难",
        "脏",
        "吵闹",
        "热",
        "冷",
        "累",
        "忙",
        "饿",
        "困",
        "渴",
        "紧张",
        "激动",
        "胖",
        "懒惰",
        "害羞",
        "危险",
    ]
)
"""What one can have too much of."""


def age(number: int) -> Both:
    """eight years / 八岁, two years / 两岁."""
    return (
        f"{cardinal(number)} year{'s' if number > 1 else ''}",
        f"{chinese.count(number)}岁",
    )


def _links(actions: tuple[Action, ...]) -> tuple[str, ...]:
    return tuple(name for action in actions for name in action.links if name)
