"""Doing what, where: verb phrases in both languages at once, with the rule for 了."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from tools.dice import Dice
from tools.grammar import english
from tools.grammar.lexicon import Mass, Place, Verb, lexicon
from tools.grammar.phrases import NO_PHRASE, Both, Subject, somebody_else, thing


class Action(NamedTuple):
    """A verb phrase: English base form and what follows it; Chinese place, verb and object.

    `le` says where 了 of the past goes: after the "verb", at the "end", or "" for nowhere.
    `links` are the combinations of words in it that `demo_corpus` may withhold.
    """

    base: str
    tail: str
    where: str
    verb: str
    object: str
    le: str
    links: tuple[str, ...]

    def en(self, form: str = "base") -> str:
        """English, the verb in the form "base", "third", "past", "participle" or "ing"."""
        return _FORMS[form](self.base) + self.tail

    @property
    def zh(self) -> str:
        """Chinese without aspect: 在图书馆看书."""
        return self.where + self.verb + self.object

    @property
    def done(self) -> str:
        """Chinese past: 买了三本书, 游泳了, but 在图书馆看书."""
        after, end = ("了" if self.le == place else "" for place in ("verb", "end"))
        return f"{self.where}{self.verb}{after}{self.object}{end}"

    @property
    def asked(self) -> str:
        """Chinese past in a question, where 了 is never missing: 在图书馆看书了."""
        return self.done if self.le else f"{self.zh}了"

    @property
    def doing(self) -> str:
        """Chinese progressive: 正在看书, 正在图书馆看书."""
        return f"正{self.where or '在'}{self.verb}{self.object}"


_FORMS: dict[str, Callable[[str], str]] = {
    "base": str,
    "third": english.third,
    "past": english.past,
    "participle": english.participle,
    "ing": english.ing,
}


def transitive(
    dice: Dice, verb: Verb, forms: str, *, owner: Both | None = None, at: float = 0.3
) -> Action:
    """read three books in the library / 在图书馆看三本书."""
    word = dice.pick(verb.objects)
    if verb.base in ("make", "draw"):
        forms = forms.replace("definite", "counted" if "counted" in forms else "bare")
    if verb.base == "buy" and isinstance(word, Mass) and word.container in ("cup", "glass", "bowl"):
        forms = "bare"
    what = thing(dice, word, forms, owner)
    where, where_zh = place(dice, verb.place, at)
    le = "" if what.form == "bare" and where and not verb.achievement else "verb"
    links = (link(verb.base, word.en),)
    return Action(verb.base, f" {what.en}{where}", where_zh, verb.zh, what.zh, le, links)


def activity(dice: Dice, at: float = 0.3) -> Action:
    """play football in the park / 在公园踢足球."""
    return _activity(dice, lexicon().rows["activities"], at)


def activity_of(dice: Dice, kinds: str, at: float = 0.3) -> Action:
    """An activity whose kind of place is one of these: "sport swimming"."""
    kept = [row for row in lexicon().rows["activities"] if row[3] in kinds.split()]
    return _activity(dice, tuple(kept), at)


def _activity(dice: Dice, rows: tuple[tuple[str, ...], ...], at: float) -> Action:
    en, verb, what, kind = dice.pick(rows)
    where, where_zh = place(dice, kind, at)
    return Action(en, where, where_zh, verb, what, "" if where else "end", (link(en, where),))


def person_action(dice: Dice, subject: Subject, *, planned: bool) -> Action:
    """wait for Mary at the airport / 在机场等玛丽; `planned` leaves out what only befalls one."""
    while True:
        en, verb, kind, later = dice.pick(lexicon().rows["person"])
        if later or not planned:
            break
    whom = somebody_else(dice, subject)
    where, where_zh = place(dice, kind, 0.2)
    return Action(en, f" {whom.obj}{where}", where_zh, verb, whom.zh, "verb", (link(en, whom.en),))


def action(dice: Dice, forms: str, *, owner: Both | None = None, at: float = 0.3) -> Action:
    """Something people do again and again, with an object or without."""
    if dice.chance(0.4):
        return activity(dice, at)
    verbs = lexicon().verbs["activity" if dice.chance(0.9) else "achievement"]
    return transitive(dice, dice.pick(verbs), forms, owner=owner, at=at)


def past_action(dice: Dice, subject: Subject) -> Action:
    """Something that happened once; an indefinite object without number needs its place."""
    roll = dice.number(1, 10)
    if roll <= 2:
        return activity(dice, 0.5)
    if roll == 3:
        return person_action(dice, subject, planned=False)
    aspect = dice.pick(("activity", "activity", "achievement", "event", "event"))
    verb = dice.pick(lexicon().verbs[aspect])
    if verb.place and aspect != "event" and dice.chance(0.3):
        return transitive(dice, verb, "bare", at=1.0)
    return transitive(dice, verb, "counted counted definite", owner=subject.owner)


def future_action(dice: Dice, subject: Subject) -> Action:
    """Something that will happen: travel, work, a purchase."""
    roll = dice.number(1, 10)
    if roll <= 2:
        return travel(dice)
    if roll == 3:
        return person_action(dice, subject, planned=True)
    if roll == 4:
        trade = dice.pick(lexicon().verbs["event"][:2])
        return transitive(dice, trade, "counted definite", owner=subject.owner)
    return action(dice, "bare counted definite", owner=subject.owner)


def acquisition(dice: Dice, forms: str, *, owner: Both | None = None, at: float = 0.0) -> Action:
    """buy this book / 买这本书, find those keys / 找到那些钥匙: a single event with a result."""
    verbs = (*lexicon().verbs["achievement"], *lexicon().verbs["event"])
    return transitive(dice, dice.pick(verbs), forms, owner=owner, at=at)


def purchase(dice: Dice, forms: str) -> Action:
    """buy a red coat / 买一件红色的大衣."""
    verb = dice.pick((lexicon().verbs["achievement"][0], lexicon().verbs["event"][0]))
    return transitive(dice, verb, forms, at=0.0)


def travel(dice: Dice, by: float = 0.5) -> Action:
    """go to Beijing by train / 坐火车去北京; go to the park by bus / 坐公交车去公园."""
    to_en, to_zh = goal(dice)
    far = is_far(to_en)
    how_en, how_zh = NO_PHRASE
    if dice.chance(by):
        how_en, how_zh = dice.pick(lexicon().rows["far_means" if far else "means"])
    tail = f" {to_en} {how_en}".rstrip()
    return Action("go", tail, how_zh, to_zh[0], to_zh[1:], "verb", (link(to_en, how_en),))


def goal(dice: Dice) -> Both:
    """to the park / 去公园, to London / 去伦敦."""
    if dice.chance(0.35):
        town = dice.pick(lexicon().titles["city"])
        return f"to {town.en}", f"去{town.zh}"
    while not (there := dice.pick(lexicon().places)).to_en:
        pass
    return there.to_en, there.to_zh


def is_far(goal_en: str) -> bool:
    """Whether that goal is a city or a country, which have capital letters."""
    return goal_en.split()[1][0].isupper()


def place(dice: Dice, kind: str, probability: float) -> Both:
    """A place of that kind, English with the space before it; or nothing."""
    if not kind or not dice.chance(probability):
        return NO_PHRASE
    there: Place = dice.pick(lexicon().places_of[kind])
    return f" {there.at_en}", there.at_zh


def link(left: str, right: str) -> str:
    """The name of a combination of two words; none if one of them is missing."""
    return f"{left} + {right.strip()}" if right.strip() else ""
