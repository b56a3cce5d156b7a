"""What is where, and who has what."""

from __future__ import annotations

from tools.dice import Dice
from tools.grammar import chinese, english
from tools.grammar.descriptions import goods
from tools.grammar.lexicon import Noun, lexicon
from tools.grammar.phrases import (
    Both,
    counted,
    definite,
    name,
    portion,
    pronoun,
    somebody,
    the,
)
from tools.grammar.sentence import Sentence, be, do, have, negated, state
from tools.numbers import cardinal


def spot(dice: Dice, noun: Noun) -> Both:
    """on the table / 桌子上: where such a thing may be."""
    while True:
        on, on_zh, fits = dice.pick(lexicon().rows["spot_nouns"])
        options = [row for row in _PREPOSITIONS if row[0] in fits.split(" ")]
        if "next to" in fits:
            options.append(("next to", "旁边"))
        if noun.kind == "furniture":
            options = [row for row in options if row[0] == "next to"]
        if noun.kind == "animal" and "under" not in fits:
            continue
        if options and on != noun.en:
            prep, zh = dice.pick(options)
            return f"{prep} the {on}", f"{on_zh}{zh}"


_PREPOSITIONS: tuple[Both, ...] = (("on", "上"), ("under", "下面"), ("in", "里"))
_LYING = ("text", "thing", "item", "headwear")


def existence(dice: Dice) -> Sentence:
    """There are two books on the table. / 桌子上有两本书。"""
    noun = dice.pick(lexicon().nouns[dice.pick((*_LYING, "fruit", "furniture"))])
    where, where_zh = spot(dice, noun)
    if dice.chance(0.2):
        return state(f"there are no {noun.plural} {where}", f"{where_zh}没有{noun.zh}")
    what = counted(dice, noun)
    return state(f"there {be(what)} {what.en} {where}", f"{where_zh}有{what.zh}")


def supplies(dice: Dice) -> Sentence:
    """There isn't any milk in the fridge. / 冰箱里没有牛奶。"""
    what = dice.pick((*lexicon().masses["drink"], *lexicon().masses["food"]))
    where, zh = dice.pick((("fridge", "冰箱"), ("kitchen", "厨房")))
    if dice.chance(0.5):
        portions = portion(dice, what)
        en = f"there {be(portions)} {portions.en} in the {where}"
        return state(en, f"{zh}里有{portions.zh}")
    en = f"there {negated(dice, 'is')} any {what.en} in the {where}"
    return state(en, f"{zh}里没有{what.zh}")


def animals(dice: Dice) -> Sentence:
    """There is a cat under the table. / 桌子下面有一只猫。"""
    pet = dice.pick((*lexicon().nouns["animal"][:3], lexicon().nouns["animal"][6]))
    what, (where, zh) = counted(dice, pet), spot(dice, pet)
    return state(f"there {be(what)} {what.en} {where}", f"{zh}有{what.zh}")


def people(dice: Dice) -> Sentence:
    """There are many tourists in the park. / 公园里有很多游客。"""
    what = counted(dice, dice.pick((*lexicon().nouns["person"], *lexicon().nouns["profession"])))
    there = dice.pick(lexicon().places_of["anywhere"])
    zh = there.at_zh.removeprefix("在").removesuffix("里")
    return state(f"there {be(what)} {what.en} {there.at_en}", f"{zh}里有{what.zh}")


def neighbourhood(dice: Dice) -> Sentence:
    """There is a bank next to the hotel. / 酒店旁边有一家银行。"""
    one, two = dice.pick(lexicon().nouns["building"]), dice.pick(lexicon().nouns["building"])
    if one == two:
        return neighbourhood(dice)
    prep, zh = dice.pick(_NEAR)
    if dice.chance(0.3):
        return state(f"the {one.en} is {prep} the {two.en}", f"{one.zh}在{two.zh}{zh}")
    what = counted(dice, one)
    return state(f"there {be(what)} {what.en} {prep} the {two.en}", f"{two.zh}{zh}有{what.zh}")


_NEAR: tuple[Both, ...] = (
    ("next to", "旁边"),
    ("near", "附近"),
    ("behind", "后面"),
    ("in front of", "前面"),
)


def location(dice: Dice) -> Sentence:
    """The keys are on the table. / 钥匙在桌子上。"""
    noun = dice.pick(lexicon().nouns[dice.pick(_LYING)])
    what = the(dice, noun) if dice.chance(0.4) else definite(dice, noun)
    where, where_zh = spot(dice, noun)
    if dice.chance(0.25):
        return state(f"{what.en} {negated(dice, be(what))} {where}", f"{what.zh}不在{where_zh}")
    return state(f"{what.en} {be(what)} {where}", f"{what.zh}在{where_zh}")


def whereabouts(dice: Dice) -> Sentence:
    """My mother is at the airport now. / 我妈妈现在在机场。"""
    who, there = somebody(dice), dice.pick(lexicon().places)
    if dice.chance(0.3):
        return state(f"{who.en} {negated(dice, be(who))} {there.at_en}", f"{who.zh}不{there.at_zh}")
    return state(f"{who.en} {be(who)} {there.at_en} now", f"{who.zh}现在{there.at_zh}")


def possession(dice: Dice) -> Sentence:
    """She doesn't have a car. / 她没有汽车。"""
    who, noun = somebody(dice), dice.pick((goods(dice), dice.pick(lexicon().nouns["animal"][:3])))
    if dice.chance(0.3):
        en = f"{who.en} {negated(dice, do(who))} have {english.article(noun.en)}"
        return state(en, f"{who.zh}没有{noun.zh}")
    what = counted(dice, noun)
    return state(f"{who.en} {have(who)} {what.en}", f"{who.zh}有{what.zh}")


def family(dice: Dice) -> Sentence:
    """I have two older brothers. / 我有两个哥哥。"""
    who, (kin, zh) = dice.pick((pronoun, name))(dice), sibling(dice)
    if dice.chance(0.3):
        en = f"{who.en} {negated(dice, do(who))} have {english.article(kin)}"
        return state(en, f"{who.zh}没有{zh}")
    number = dice.pick((1, 1, 2, 3))
    kins = english.article(kin) if number == 1 else f"{cardinal(number)} {english.plural(kin)}"
    return state(f"{who.en} {have(who)} {kins}", f"{who.zh}有{chinese.count(number)}个{zh}")


def sibling(dice: Dice) -> Both:
    """older brother / 哥哥: relatives of whom one may have several."""
    kin, zh, _ = dice.pick([row for row in lexicon().rows["kin"] if row[0] in _SEVERAL])
    return kin, zh


_SEVERAL = (
    "older brother",
    "younger brother",
    "older sister",
    "younger sister",
    "son",
    "daughter",
    "aunt",
    "uncle",
)


def headcount(dice: Dice) -> Sentence:
    """There are 320 students in our school. / 我们学校有320个学生。"""
    many = dice.number(12, 99) * dice.pick((1, 10))
    noun, zh, where, where_zh = dice.pick(_CROWDS)
    return state(f"there are {many} {noun} {where}", f"{where_zh}有{many}{zh}")


_CROWDS = (
    ("students", "个学生", "in our school", "我们学校"),
    ("students", "个学生", "in this university", "这所大学"),
    ("teachers", "位老师", "in our school", "我们学校"),
    ("workers", "位工人", "in our factory", "我们工厂"),
    ("engineers", "位工程师", "in this factory", "这家工厂"),
    ("doctors", "位医生", "in this hospital", "这家医院"),
    ("nurses", "位护士", "in this hospital", "这家医院"),
    ("rooms", "个房间", "in this hotel", "这家酒店"),
)


ALL = (
    existence,
    supplies,
    animals,
    people,
    neighbourhood,
    location,
    whereabouts,
    possession,
    family,
    headcount,
)
"""The constructions of this file."""
