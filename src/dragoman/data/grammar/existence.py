"""What is where, and who has what."""

from __future__ import annotations

from dragoman.data.grammar import english
from dragoman.data.grammar.descriptions import goods
from dragoman.data.grammar.lexicon import Noun, lexicon
from dragoman.data.grammar.phrases import (
    Both,
    Dice,
    counted,
    definite,
    somebody,
    the,
)
from dragoman.data.grammar.sentence import (
    Sentence,
    be,
    do,
    negated,
    present,
    state,
)


def spot(dice: Dice, noun: Noun) -> Both:
    """on the table / 桌子上: where a thing may lie."""
    while True:
        on, on_zh, fits = dice.pick(lexicon().rows["spot_nouns"])
        if on in noun.en or noun.en in on:
            continue
        options = [row for row in (*lexicon().rows["spots"], ("in", "里")) if row[0] in fits]
        if noun.kind in ("furniture", "vehicle"):
            options = [row for row in options if row[0] == "next to"]
        if options:
            prep, zh = dice.pick(options)
            return f"{prep} the {on}", f"{on_zh}{zh}"


def existence(dice: Dice) -> Sentence:
    """There are two books on the table. / 桌子上有两本书。"""
    noun = dice.pick(
        lexicon().nouns[dice.pick(("text", "thing", "fruit", "headwear", "furniture"))]
    )
    where, where_zh = spot(dice, noun)
    if dice.chance(0.2):
        drink = dice.pick((*lexicon().masses["drink"], *lexicon().masses["food"]))
        isnt = negated(dice, "is")
        return (
            state(f"there {isnt} any {drink.en} in the fridge", f"冰箱里没有{drink.zh}")
            if drink.en != "noodles"
            else existence(dice)
        )
    if dice.chance(0.2):
        return state(f"there are no {noun.plural} {where}", f"{where_zh}没有{noun.zh}")
    what = counted(dice, noun)
    return state(f"there {be(what)} {what.en} {where}", f"{where_zh}有{what.zh}")


def animals(dice: Dice) -> Sentence:
    """There is a cat under the table. / 桌子下面有一只猫。 There are many tourists in the park. / 公园里有很多游客。"""
    if dice.chance(0.5):
        pet = dice.pick((*lexicon().nouns["animal"][:3], lexicon().nouns["animal"][6]))
        what, (where, where_zh) = counted(dice, pet), spot(dice, pet._replace(kind="text"))
        return state(f"there {be(what)} {what.en} {where}", f"{where_zh}有{what.zh}")
    what = counted(dice, dice.pick((*lexicon().nouns["person"], lexicon().nouns["profession"][-3])))
    there = dice.pick(lexicon().places_of["anywhere"])
    zh = there.at_zh.removeprefix("在").removesuffix("里")
    return state(f"there {be(what)} {what.en} {there.at_en}", f"{zh}里有{what.zh}")


def neighbourhood(dice: Dice) -> Sentence:
    """There is a bank next to the hotel. / 酒店旁边有一家银行。"""
    one, two = dice.pick(lexicon().nouns["building"]), dice.pick(lexicon().nouns["building"])
    if one == two:
        return neighbourhood(dice)
    prep, zh = dice.pick(
        (("next to", "旁边"), ("near", "附近"), ("behind", "后面"), ("in front of", "前面"))
    )
    what = counted(dice, one)
    if dice.chance(0.3):
        return state(f"the {one.en} is {prep} the {two.en}", f"{one.zh}在{two.zh}{zh}")
    return state(f"there {be(what)} {what.en} {prep} the {two.en}", f"{two.zh}{zh}有{what.zh}")


def location(dice: Dice) -> Sentence:
    """The keys are on the table. / 钥匙在桌子上。"""
    if dice.chance(0.35):
        who, there = somebody(dice), dice.pick(lexicon().places)
        if dice.chance(0.3):
            return state(
                f"{who.en} {negated(dice, be(who))} {there.at_en}", f"{who.zh}不{there.at_zh}"
            )
        return state(f"{who.en} {be(who)} {there.at_en} now", f"{who.zh}现在{there.at_zh}")
    noun = dice.pick(lexicon().nouns[dice.pick(("text", "thing", "headwear"))])
    what = the(dice, noun) if dice.chance(0.4) else definite(dice, noun)
    where, where_zh = spot(dice, noun)
    if dice.chance(0.25):
        return state(f"{what.en} {negated(dice, be(what))} {where}", f"{what.zh}不在{where_zh}")
    return state(f"{what.en} {be(what)} {where}", f"{what.zh}在{where_zh}")


def possession(dice: Dice) -> Sentence:
    """I have two older brothers. / 我有两个哥哥。 She doesn't have a car. / 她没有汽车。"""
    who = somebody(dice)
    if dice.chance(0.3):
        kin, zh, _ = dice.pick(lexicon().rows["kin"][2:6] + lexicon().rows["kin"][10:])
        noun = Noun(kin, "个", zh, english.plural(kin), "kin")
    else:
        noun = dice.pick((goods(dice), dice.pick(lexicon().nouns["animal"][:3])))
    if dice.chance(0.3):
        en = f"{who.en} {negated(dice, do(who))} have {english.article(noun.en)}"
        return state(en, f"{who.zh}没有{noun.zh}")
    what = counted(dice, noun)
    return state(f"{who.en} {present(who, 'have')} {what.en}", f"{who.zh}有{what.zh}")


def headcount(dice: Dice) -> Sentence:
    """There are 320 students in our school. / 我们学校有320个学生。"""
    many = dice.number(12, 99) * dice.pick((1, 10))
    noun = dice.pick(
        (
            lexicon().nouns["profession"][0],
            lexicon().nouns["profession"][14],
            lexicon().nouns["profession"][15],
        )
    )
    where, zh = dice.pick(
        (
            ("in our school", "我们学校"),
            ("in this university", "这所大学"),
            ("in our factory", "我们工厂"),
            ("in this city", "这座城市"),
        )
    )
    return state(f"there are {many} {noun.plural} {where}", f"{zh}有{many}{noun.measure}{noun.zh}")


ALL = (
    existence,
    animals,
    neighbourhood,
    location,
    possession,
    headcount,
)
