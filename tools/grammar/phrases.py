"""Who and what: persons and things, each phrase made in both languages at once."""

from __future__ import annotations

from typing import NamedTuple

from tools.dice import Dice
from tools.grammar import chinese, english
from tools.grammar.lexicon import Adjective, Mass, Noun, Title, lexicon
from tools.numbers import cardinal

Both = tuple[str, str]
"""The same phrase in English and Chinese."""

NO_PHRASE: Both = ("", "")
"""What is left out in both languages."""


class Subject(NamedTuple):
    """Somebody who does something."""

    en: str
    """As subject: she."""
    obj: str
    """As object: her."""
    zh: str
    """Chinese, for both."""
    number: str
    """"I", "you", "one" or "many"."""
    owner: Both | None
    """Her / 她的; none where the English word does not say he or she."""

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


# ---------------------------------------------------------------- who


def pronoun(dice: Dice) -> Subject:
    """She / 她."""
    en, obj, owner, zh, number = dice.pick(lexicon().rows["pronouns"])
    return Subject(en, obj, zh, en if number == "self" else number, (owner, f"{zh}的"))


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
    """the teacher / 老师, the man / 那个男人."""
    noun = dice.pick(lexicon().nouns[dice.pick(("profession", "person"))])
    if dice.chance(0.4) and noun.en not in ("man", "woman"):
        return group(noun)
    en = f"the {noun.en}"
    zh = noun.zh if noun.kind == "profession" else f"那{noun.measure}{noun.zh}"
    return Subject(en, en, zh, "one", None)


def group(noun: Noun) -> Subject:
    """the children / 孩子们."""
    en = f"the {noun.plural}"
    return Subject(en, en, f"{noun.zh}们", "many", ("their", "他们的"))


def other(dice: Dice) -> Subject:
    """Anybody but a pronoun."""
    return dice.pick((*[name] * 4, *[relative] * 4, *[role] * 3))(dice)


def somebody(dice: Dice) -> Subject:
    """Anybody."""
    return pronoun(dice) if dice.chance(0.5) else other(dice)


def asked_about(dice: Dice) -> Subject:
    """Anybody one asks about: not oneself."""
    while (who := somebody(dice)).en in ("I", "we"):
        pass
    return who


def somebody_else(dice: Dice, than: Subject) -> Subject:
    """Anybody who may be the object where `than` is the subject: no "I helped me"."""
    while (who := somebody(dice)).zh[0] == than.zh[0]:
        pass
    return who


def possessive(who: Subject) -> Both:
    """Mary's / 玛丽的, the students' / 学生们的, my / 我的."""
    if who.owner and (who.en != who.obj or who.number == "you"):
        return who.owner
    return (f"{who.en}'" if who.en.endswith("s") else f"{who.en}'s"), f"{who.zh}的"


def _owner(owner: str) -> Both:
    return owner, "他的" if owner == "his" else "她的"


# ---------------------------------------------------------------- what


def bare(word: Noun | Mass | Title) -> Thing:
    """books / 书; tea / 茶; French / 法语."""
    if isinstance(word, Noun):
        return Thing(word.plural, word.zh, "bare", word, plural=True)
    return Thing(word.en, word.zh, "bare", word, plural=False)


def portion(dice: Dice, word: Mass) -> Thing:
    """a cup of tea / 一杯茶; two pieces of bread / 两块面包."""
    number = dice.pick((1, 1, 1, 2, 3))
    zh = f"{chinese.count(number)}{word.measure}{word.zh}"
    if number == 1:
        cup = f"{english.article(word.container)} of {word.en}"
        return Thing(cup, zh, "counted", word, plural=False)
    cups = f"{cardinal(number)} {english.plural(word.container)} of {word.en}"
    return Thing(cups, zh, "counted", word, plural=True)


def counted(dice: Dice, word: Noun) -> Thing:
    """a new book / 一本新书; two dogs / 两只狗; many tourists / 很多游客."""
    en, zh = _attribute(dice, word, 0.25)
    roll = dice.number(1, 20)
    if roll <= 10:
        one = english.article(f"{en}{word.en}")
        return Thing(one, f"一{word.measure}{zh}{word.zh}", "counted", word, plural=False)
    if roll == 11:
        many, many_zh = "many", "很多"
    elif roll == 12:
        many, many_zh = "several", f"几{word.measure}"
    else:
        number = dice.pick(_FEW if word.kind in _LARGE else _SOME)
        many, many_zh = cardinal(number), f"{chinese.count(number)}{word.measure}"
    return Thing(
        f"{many} {en}{word.plural}", f"{many_zh}{zh}{word.zh}", "counted", word, plural=True
    )


_POINTED = ("room", "building", "show", "single")
"""Kinds of which one says this and that, but hardly my and these."""
_FEW = (2, 2, 3)
_SOME = (2, 2, 3, 3, 4, 5, 6, 8, 10)
_LARGE = ("show", "song", "vehicle", "device", "furniture", "room", "building")


def definite(dice: Dice, word: Noun, owner: Both | None = None) -> Thing:
    """this book / 这本书; those red shirts / 那些红色的衬衫; my phone / 我的手机."""
    if word.kind in _POINTED or dice.chance(0.55):
        return pointed(dice, word)
    en, zh = _attribute(dice, word, 0.15)
    if zh.endswith("的"):
        en, zh = NO_PHRASE
    mine, mine_zh = owner or pronoun(dice).owner or NO_PHRASE
    plural = dice.chance(0.25)
    noun = word.plural if plural else word.en
    return Thing(f"{mine} {en}{noun}", f"{mine_zh}{zh}{word.zh}", "definite", word, plural)


def pointed(dice: Dice, word: Noun) -> Thing:
    """this book / 这本书; those red shirts / 那些红色的衬衫."""
    en, zh = _attribute(dice, word, 0.15)
    near = dice.chance(0.5)
    this_zh = "这" if near else "那"
    if word.kind not in _POINTED and dice.chance(0.3):
        these = "these" if near else "those"
        return Thing(
            f"{these} {en}{word.plural}", f"{this_zh}些{zh}{word.zh}", "definite", word, plural=True
        )
    this = "this" if near else "that"
    zh = f"{this_zh}{word.measure}{zh}{word.zh}"
    return Thing(f"{this} {en}{word.en}", zh, "definite", word, plural=False)


def the(dice: Dice, word: Noun) -> Thing:
    """the keys / 钥匙: definite by its place in the sentence, in Chinese without a word for it."""
    plural = word.kind not in ("task", "opening", "switch", "room") and dice.chance(0.35)
    return Thing(f"the {word.plural if plural else word.en}", word.zh, "definite", word, plural)


def thing(dice: Dice, word: Noun | Mass | Title, forms: str, owner: Both | None = None) -> Thing:
    """The word in one of the forms, as far as it has them: tea is not definite."""
    form = dice.pick(forms.split())
    if isinstance(word, Title) or form == "bare":
        return bare(word)
    if isinstance(word, Mass):
        return portion(dice, word) if "counted" in forms else bare(word)
    if form == "counted":
        return counted(dice, word)
    return definite(dice, word, owner)


def unqualified(word: Noun) -> Noun:
    """The noun without its adjectives: the subject of "is very new" is not a new one."""
    return word._replace(kind="single" if word.kind in _POINTED else "plain")


def quality(dice: Dice, word: Noun) -> Adjective:
    """An adjective that suits the noun."""
    return dice.pick(lexicon().suits[word.kind])


def _attribute(dice: Dice, word: Noun, probability: float) -> Both:
    """An adjective before its noun, now and then a colour, English with a space; or nothing."""
    if word.kind not in lexicon().suits or not dice.chance(probability):
        return NO_PHRASE
    if word.kind in ("clothes", "headwear", "vehicle") and dice.chance(0.4):
        en, zh, *_ = dice.pick(lexicon().adjectives["color"])
    else:
        en, zh, *_ = dice.pick(lexicon().suits[word.kind])
    return (f"{en} ", chinese.attribute(zh)) if en != "tall" else NO_PHRASE
