"""The parts of a sentence, each made in both languages at once: who, what, doing what, when."""

from __future__ import annotations

from bisect import bisect
from collections.abc import Callable, Sequence
from itertools import accumulate
from random import Random
from typing import NamedTuple, TypeVar

from dragoman.data.grammar import chinese, english
from dragoman.data.grammar.lexicon import Adjective, Mass, Noun, Place, Title, Verb, lexicon

T = TypeVar("T")
Both = tuple[str, str]
"""The same phrase in English and Chinese."""


class Dice:
    """Choices from `Random.random()` alone, the one stream that Python keeps across versions."""

    def __init__(self, seed: int) -> None:
        self._random = Random(seed).random

    def pick(self, options: Sequence[T]) -> T:
        """One of the options, all alike."""
        return options[int(self._random() * len(options))]

    def weighted(self, options: Sequence[tuple[T, float]]) -> T:
        """One of the options, by weight."""
        limits = list(accumulate(weight for _, weight in options))
        return options[bisect(limits, self._random() * limits[-1])][0]

    def chance(self, probability: float) -> bool:
        """True with this probability."""
        return self._random() < probability

    def number(self, low: int, high: int) -> int:
        """A whole number from low to high, both included."""
        return low + int(self._random() * (high - low + 1))


class Subject(NamedTuple):
    """Somebody who does something; `number` is "I", "you", "one" or "many"."""

    en: str
    obj: str
    zh: str
    number: str
    owner: Both | None

    @property
    def singular(self) -> bool:
        """Whether the verb takes its -s."""
        return self.number == "one"


class Thing(NamedTuple):
    """A noun phrase that is no person; `form` is "bare", "counted" or "definite"."""

    en: str
    zh: str
    form: str
    word: Noun | Mass | Title
    plural: bool


class Action(NamedTuple):
    """A verb phrase: base form and English tail; Chinese place, verb, object.

    `le` says where 了 of the past goes: after the "verb", at the "end", or "" for none.
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


# ---------------------------------------------------------------- who


def pronoun(dice: Dice) -> Subject:
    """She / 她."""
    en, obj, owner, zh, number = dice.pick(lexicon().rows["pronouns"])
    return Subject(en, obj, zh, en if number == "self" else number, (owner, f"{zh}的"))


def third_pronoun(dice: Dice) -> Subject:
    """He, she or they / 他."""
    while (who := pronoun(dice)).number not in ("one", "many") or who.en == "we":
        pass
    return who


def name(dice: Dice) -> Subject:
    """Mary / 玛丽."""
    en, zh, owner = dice.pick(lexicon().rows["names"])
    return Subject(en, en, zh, "one", _owner(owner))


def relative(dice: Dice) -> Subject:
    """my mother / 我妈妈."""
    en, zh, owner = dice.pick(lexicon().rows["kin"])
    owners = [("my", "我"), ("your", "你")]
    owners += [("his", "他")] if en != "husband" else []
    owners += [("her", "她")] if en != "wife" else []
    mine, mine_zh = dice.pick(owners)
    return Subject(f"{mine} {en}", f"{mine} {en}", mine_zh + zh, "one", _owner(owner))


def role(dice: Dice) -> Subject:
    """the teacher / 老师, the children / 孩子们."""
    noun = dice.pick(lexicon().nouns[dice.pick(("profession", "person"))])
    if dice.chance(0.6):
        return Subject(f"the {noun.en}", f"the {noun.en}", noun.zh, "one", None)
    many = f"the {noun.plural}"
    return Subject(many, many, f"{noun.zh}们", "many", ("their", "他们的"))


def other(dice: Dice) -> Subject:
    """Anybody but a pronoun."""
    return dice.weighted(((name, 4.0), (relative, 4.0), (role, 3.0)))(dice)


def somebody(dice: Dice) -> Subject:
    """Anybody."""
    return pronoun(dice) if dice.chance(0.5) else other(dice)


def somebody_else(dice: Dice, than: Subject) -> Subject:
    """Anybody who may be the object where `than` is the subject: no "I helped me"."""
    while (who := somebody(dice)).zh[0] == than.zh[0]:
        pass
    return who


def _owner(owner: str) -> Both:
    return owner, "他的" if owner == "his" else "她的"


# ---------------------------------------------------------------- what


def bare(word: Noun | Mass | Title) -> Thing:
    """books / 书; tea / 茶; French / 法语."""
    if isinstance(word, Noun):
        return Thing(word.plural, word.zh, "bare", word, plural=True)
    return Thing(word.en, word.zh, "bare", word, plural=False)


def counted(dice: Dice, word: Noun | Mass) -> Thing:
    """a new book / 一本新书; two cups of tea / 两杯茶; many dogs / 很多狗."""
    if isinstance(word, Mass):
        number = dice.pick((1, 1, 1, 2, 3))
        cups = word.container if number == 1 else english.plural(word.container)
        en = english.article(cups) if number == 1 else f"{english.cardinal(number)} {cups}"
        zh = f"{chinese.count(number)}{word.measure}{word.zh}"
        return Thing(f"{en} of {word.en}", zh, "counted", word, plural=number > 1)
    en, zh = _attribute(dice, word, 0.25)
    many = f"{en}{word.plural}"
    roll = dice.number(1, 20)
    if roll <= 10:
        one = english.article(f"{en}{word.en}")
        return Thing(one, f"一{word.measure}{zh}{word.zh}", "counted", word, plural=False)
    if roll == 11:
        return Thing(f"many {many}", f"很多{zh}{word.zh}", "counted", word, plural=True)
    if roll == 12:
        return Thing(
            f"several {many}", f"几{word.measure}{zh}{word.zh}", "counted", word, plural=True
        )
    number = dice.pick((2, 2, 3, 3, 4, 5, 6, 8, 10, 12))
    zh = f"{chinese.count(number)}{word.measure}{zh}{word.zh}"
    return Thing(f"{english.cardinal(number)} {many}", zh, "counted", word, plural=True)


def definite(dice: Dice, word: Noun, owner: Both | None = None) -> Thing:
    """this book / 这本书; those red shirts / 那些红色的衬衫; my phone / 我的手机."""
    en, zh = _attribute(dice, word, 0.15)
    plural = dice.chance(0.25)
    noun = word.plural if plural else word.en
    if dice.chance(0.45):
        mine, mine_zh = owner or pronoun(dice).owner
        return Thing(f"{mine} {en}{noun}", f"{mine_zh}{zh}{word.zh}", "definite", word, plural)
    near = dice.chance(0.5)
    that = (
        (("these" if near else "those"), "些")
        if plural
        else (("this" if near else "that"), word.measure)
    )
    zh = f"{'这' if near else '那'}{that[1]}{zh}{word.zh}"
    return Thing(f"{that[0]} {en}{noun}", zh, "definite", word, plural)


def the(dice: Dice, word: Noun) -> Thing:
    """the keys / 钥匙: definite by its place in the sentence, in Chinese without a word for it."""
    plural = word.kind not in ("task", "opening", "switch") and dice.chance(0.35)
    return Thing(f"the {word.plural if plural else word.en}", word.zh, "definite", word, plural)


def thing(dice: Dice, word: Noun | Mass | Title, forms: str, owner: Both | None = None) -> Thing:
    """The word in one of the forms that are possible for it."""
    form = dice.pick(forms.split())
    if (
        isinstance(word, Title)
        or form == "bare"
        or (isinstance(word, Noun) and word.kind == "dinner")
    ):
        return _meal(word) if isinstance(word, Noun) and word.kind == "dinner" else bare(word)
    if isinstance(word, Mass) or form == "counted":
        return counted(dice, word) if "counted" in forms else bare(word)
    return definite(dice, word, owner)


def _meal(word: Noun) -> Thing:
    return Thing(word.en, word.zh, "bare", word, plural=False)


def _attribute(dice: Dice, word: Noun, probability: float) -> Both:
    """An adjective and the space after it; now and then a colour."""
    if word.kind not in lexicon().suits or not dice.chance(probability):
        return "", ""
    coloured = word.kind in ("clothes", "headwear", "vehicle") and dice.chance(0.4)
    if coloured:
        en, zh, *_ = dice.pick(lexicon().adjectives["color"])
    else:
        en, zh, *_ = dice.pick(lexicon().suits[word.kind])
    return f"{en} ", chinese.attribute(zh)


def quality(dice: Dice, word: Noun) -> Adjective:
    """An adjective that suits the noun."""
    return dice.pick(lexicon().suits[word.kind])


# ---------------------------------------------------------------- doing what


def transitive(
    dice: Dice, verb: Verb, forms: str, *, owner: Both | None = None, at: float = 0.3
) -> Action:
    """read three books in the library / 在图书馆看三本书."""
    what = thing(dice, dice.pick(verb.objects), forms, owner)
    where = place(dice, verb.place, at)
    le = "" if what.form == "bare" and where[0] and not verb.achievement else "verb"
    tail = f" {what.en}{where[0]}"
    return Action(verb.base, tail, where[1], verb.zh, what.zh, le, (link(verb.base, what.word.en),))


def activity(dice: Dice, at: float = 0.3) -> Action:
    """play football in the park / 在公园踢足球."""
    en, verb, what, kind = dice.pick(lexicon().rows["activities"])
    where = place(dice, kind, at)
    return Action(
        en, where[0], where[1], verb, what, "" if where[0] else "end", (link(en, where[0]),)
    )


def person_action(dice: Dice, subject: Subject, at: float = 0.2) -> Action:
    """wait for Mary at the airport / 在机场等玛丽."""
    en, verb, kind = dice.pick(lexicon().rows["person"])
    whom = somebody_else(dice, subject)
    where = place(dice, kind, at)
    return Action(
        en, f" {whom.obj}{where[0]}", where[1], verb, whom.zh, "verb", (link(en, whom.en),)
    )


def action(dice: Dice, forms: str, *, owner: Both | None = None, at: float = 0.3) -> Action:
    """Something people do again and again, with an object or without."""
    if dice.chance(0.3):
        return activity(dice, at)
    verbs = lexicon().verbs["activity" if dice.chance(0.75) else "achievement"]
    return transitive(dice, dice.pick(verbs), forms, owner=owner, at=at)


def past_action(dice: Dice, subject: Subject) -> Action:
    """Something that happened once; an indefinite object without number needs its place."""
    roll = dice.number(1, 10)
    if roll <= 2:
        return activity(dice, 0.5)
    if roll == 3:
        return person_action(dice, subject)
    verb = dice.pick(lexicon().verbs[dice.pick(("activity", "activity", "achievement", "event"))])
    if verb.place and dice.chance(0.25):
        return transitive(dice, verb, "bare", at=1.0)
    return transitive(dice, verb, "counted counted definite", owner=subject.owner)


def future_action(dice: Dice, subject: Subject) -> Action:
    """Something that will happen: travel, work, a purchase."""
    roll = dice.number(1, 10)
    if roll <= 2:
        return travel(dice)
    if roll == 3:
        return person_action(dice, subject)
    return action(dice, "bare counted definite", owner=subject.owner)


def travel(dice: Dice, by: float = 0.5) -> Action:
    """go to Beijing by train / 坐火车去北京."""
    to_en, to_zh = goal(dice)
    how_en, how_zh = _means(dice) if dice.chance(by) else ("", "")
    tail = f" {to_en} {how_en}".rstrip()
    return Action("go", tail, how_zh, to_zh[0], to_zh[1:], "verb", (link(how_en, to_en),))


def _means(dice: Dice) -> Both:
    en, zh = dice.pick(lexicon().rows["means"])
    return en, zh


def goal(dice: Dice) -> Both:
    """to the park / 去公园, to London / 去伦敦."""
    if dice.chance(0.35):
        en, zh = dice.pick(lexicon().titles["city"])
        return f"to {en}", f"去{zh}"
    while not (there := dice.pick(lexicon().places)).to_en:
        pass
    return there.to_en, there.to_zh


def place(dice: Dice, kind: str, probability: float) -> Both:
    """A place of that kind, English with the space before it; or nothing."""
    if not kind or not dice.chance(probability):
        return "", ""
    there: Place = dice.pick(lexicon().places_of[kind])
    return f" {there.at_en}", there.at_zh


def link(left: str, right: str) -> str:
    """The name of a combination of two words, which `demo_corpus` may withhold."""
    return f"{left.strip()} + {right.strip()}" if left.strip() and right.strip() else ""


# ---------------------------------------------------------------- when


def past_time(dice: Dice) -> Both:
    """yesterday / 昨天; three days ago / 三天前; last Monday / 上周一."""
    roll = dice.number(1, 10)
    if roll <= 7:
        en, zh = dice.pick(lexicon().rows["past"])
        return en, zh
    if roll == 8:
        day, zh = dice.pick(lexicon().rows["weekdays"])
        return f"last {day}", f"上周{zh.replace('天', '日')}"
    en, zh = duration(dice, long=True)
    return f"{en} ago", f"{zh}前"


def future_time(dice: Dice) -> Both:
    """tomorrow / 明天; next Friday / 下周五; in two days / 两天后."""
    roll = dice.number(1, 10)
    if roll <= 7:
        en, zh = dice.pick(lexicon().rows["future"])
        return en, zh
    if roll == 8:
        day, zh = dice.pick(lexicon().rows["weekdays"])
        return f"next {day}", f"下周{zh.replace('天', '日')}"
    en, zh = duration(dice, long=True)
    return f"in {en}", f"{zh}后"


def duration(dice: Dice, *, long: bool) -> Both:
    """two hours / 两个小时, three years / 三年; `long` leaves out minutes and hours."""
    units = lexicon().rows["units"]
    en, zh = dice.pick(units[2:] if long else units[:2])
    number = dice.pick((10, 15, 20, 30, 40) if en == "minute" else (1, 2, 2, 3, 4, 5, 6, 8))
    if number == 1:
        return english.article(en), f"一{zh}"
    return f"{english.cardinal(number)} {en}s", f"{chinese.count(number)}{zh}"


def clock(dice: Dice) -> Both:
    """seven o'clock / 七点; half past six / 六点半; 7:20 / 7点20分."""
    hour = dice.number(1, 12)
    roll = dice.number(1, 5)
    if roll <= 2:
        return f"{english.cardinal(hour)} o'clock", f"{chinese.count(hour)}点"
    if roll == 3:
        return f"half past {english.cardinal(hour)}", f"{chinese.count(hour)}点半"
    if roll == 4:
        return f"a quarter past {english.cardinal(hour)}", f"{chinese.count(hour)}点一刻"
    minute = dice.pick((10, 20, 25, 35, 40, 50, 55))
    return f"{hour}:{minute}", f"{hour}点{minute}分"


def date(dice: Dice, *, year: bool) -> Both:
    """March 5th, 2019 / 2019年3月5日."""
    number = dice.number(1, 12)
    (month,) = lexicon().rows["months"][number - 1]
    day = dice.number(1, 28)
    en, zh = f"{month} {english.ordinal(day)}", f"{number}月{day}日"
    if not year:
        return en, zh
    when = dice.number(1990, 2029)
    return f"{en}, {when}", f"{when}年{zh}"
