"""What is: identity, quality, comparison, clothes, weather."""

from __future__ import annotations

from tools.dice import Dice
from tools.grammar import chinese, english
from tools.grammar.lexicon import Adjective, Noun, lexicon
from tools.grammar.phrases import (
    Both,
    definite,
    name,
    possessive,
    pronoun,
    quality,
    relative,
    somebody,
    somebody_else,
    unqualified,
)
from tools.grammar.sentence import (
    Sentence,
    age,
    be,
    dated,
    negated,
    occupied,
    predicative,
    state,
    was,
)
from tools.grammar.times import future_time, past_time

_GOODS = ("text", "clothes", "headwear", "vehicle", "device", "thing", "furniture")


def goods(dice: Dice) -> Noun:
    """Some countable thing that one owns."""
    return dice.pick(lexicon().nouns[dice.pick(_GOODS)])


def occupation(dice: Dice) -> Sentence:
    """She is a famous writer. / 她是一位出名的作家。 She isn't a doctor. / 她不是医生。"""
    who = dice.pick((name, relative, pronoun))(dice)
    job, trait = dice.pick(lexicon().nouns["profession"]), dice.pick(lexicon().adjectives["trait"])
    if dice.chance(0.4) and who.number != "many" and trait.en != "tall":
        en = english.article(f"{trait.en} {job.en}")
        zh = f"一{job.measure}{chinese.attribute(trait.zh)}{job.zh}"
        return state(f"{who.en} {be(who)} {en}", f"{who.zh}是{zh}")
    en = occupied(who, job)
    if dice.chance(0.25):
        return state(f"{who.en} {negated(dice, be(who))} {en}", f"{who.zh}不是{job.zh}")
    if dice.chance(0.25):
        return state(f"{who.en} used to be {en}", f"{who.zh}以前是{job.zh}")
    return state(f"{who.en} {be(who)} {en}", f"{who.zh}是{job.zh}")


def acquaintance(dice: Dice) -> Sentence:
    """Tom is my younger brother's friend. / 汤姆是我弟弟的朋友。"""
    who, mate = name(dice), dice.pick(lexicon().nouns["mate"])
    whose = somebody_else(dice, who)
    while whose.en in ("he", "she"):
        whose = somebody_else(dice, who)
    en, zh = possessive(whose)
    isnt, isnt_zh = (negated(dice, "is"), "不是") if dice.chance(0.2) else ("is", "是")
    return state(f"{who.en} {isnt} {en} {mate.en}", f"{who.zh}{isnt_zh}{zh}{mate.zh}")


def belonging(dice: Dice) -> Sentence:
    """This is Mary's bike. / 这是玛丽的自行车。"""
    noun, (en, zh) = goods(dice), possessive(somebody(dice))
    this, this_zh = dice.pick((("this", "这"), ("that", "那")))
    isnt, isnt_zh = (negated(dice, "is"), "不是") if dice.chance(0.3) else ("is", "是")
    return state(f"{this} {isnt} {en} {noun.en}", f"{this_zh}{isnt_zh}{zh}{noun.zh}")


def feeling(dice: Dice) -> Sentence:
    """She was very tired yesterday. / 她昨天很累。"""
    who, table = somebody(dice), dice.pick(("state", "state", "trait"))
    how, how_zh = predicative(dice, dice.pick(lexicon().adjectives[table]))
    if table == "trait" or dice.chance(0.4):
        return state(f"{who.en} {be(who)} {how}", f"{who.zh}{how_zh}")
    return state(*dated(dice, who, f"{was(who)} {how}", how_zh, past_time(dice)))


def judgement(dice: Dice) -> Sentence:
    """This book is very interesting. / 这本书很有意思。"""
    return state(*opinion(dice))


def opinion(dice: Dice) -> Both:
    """A clause that says how something is."""
    roll = dice.number(1, 10)
    if roll <= 4:
        return topic(dice)
    if roll == 5:
        town = dice.pick(lexicon().titles["city"])
        of_towns = [how for how in lexicon().adjectives["place"] if how.en not in ("small", "new")]
        how, how_zh = predicative(dice, dice.pick(of_towns))
        return f"{town.en} is {how}", f"{town.zh}{how_zh}"
    noun = dice.pick(lexicon().nouns[dice.pick(_JUDGED)])
    what = definite(dice, unqualified(noun))
    how, how_zh = predicative(dice, quality(dice, noun))
    return f"{what.en} {be(what)} {how}", f"{what.zh}{how_zh}"


def topic(dice: Dice) -> Both:
    """physics is very interesting / 物理很有意思."""
    what = dice.pick(lexicon().titles[dice.pick(("subject", "subject", "language"))])
    how, how_zh = predicative(dice, dice.pick(lexicon().adjectives["study"]))
    return f"{what.en} is {how}", f"{what.zh}{how_zh}"


_JUDGED = (*_GOODS, "writing", "show", "fruit", "dish", "animal", "room", "building")


def comparison(dice: Dice) -> Sentence:
    """This car is much cheaper than that one. / 这辆汽车比那辆便宜得多。"""
    noun = dice.pick(lexicon().nouns[dice.pick((*_GOODS, "animal", "room", "building"))])
    how = quality(dice, noun)
    this, that, zh = dice.pick((("this", "that", "这那"), ("that", "this", "那这")))
    one, two = f"{zh[0]}{noun.measure}{noun.zh}", f"{zh[1]}{noun.measure}"
    en = f"{this} {noun.en} {{}} {that} one"
    relation, pattern = relate(dice, how, "is")
    return state(en.format(relation), pattern.format(one, two))


def rivalry(dice: Dice) -> Sentence:
    """My older brother is taller than me. / 我哥哥比我高。"""
    who = somebody(dice)
    whom = somebody_else(dice, who)
    if dice.chance(0.2) and "many" not in (who.number, whom.number):
        older, older_zh = dice.pick((("older", "大"), ("younger", "小")))
        en, zh = age(dice.number(1, 12))
        return state(
            f"{who.en} {be(who)} {en} {older} than {whom.obj}", f"{who.zh}比{whom.zh}{older_zh}{zh}"
        )
    relation, pattern = relate(dice, dice.pick(lexicon().adjectives["trait"]), be(who))
    return state(f"{who.en} {relation} {whom.obj}", pattern.format(who.zh, whom.zh))


def relate(dice: Dice, how: Adjective, verb: str) -> Both:
    """is taller than / {}比{}高: a comparison, Chinese with gaps for the two compared."""
    roll = dice.number(1, 6)
    if roll == 1:
        return f"{negated(dice, verb)} as {how.en} as", f"{{}}没有{{}}{how.zh}"
    if roll == 2:
        return f"{verb} as {how.en} as", f"{{}}和{{}}一样{how.zh}"
    if roll == 3:
        return f"{verb} much {how.comparative} than", f"{{}}比{{}}{how.zh}得多"
    return f"{verb} {how.comparative} than", f"{{}}比{{}}{how.zh}"


def best(dice: Dice) -> Sentence:
    """Tom is the tallest student in our class. / 汤姆是我们班最高的学生。"""
    if dice.chance(0.5):
        who, how = name(dice), dice.pick(lexicon().adjectives["trait"])
        noun, noun_zh, where, where_zh = dice.pick(_GROUPS)
        en = f"{who.en} is the {how.superlative} {noun} {where}"
        return state(en, f"{who.zh}是{where_zh}最{how.zh}的{noun_zh}")
    word = goods(dice)
    how = quality(dice, word)
    this, this_zh = dice.pick((("this", "这"), ("that", "那")))
    if dice.chance(0.4):
        en = f"{this} {word.en} is the {how.superlative}"
        return state(en, f"{this_zh}{word.measure}{word.zh}最{how.zh}")
    where, where_zh = ("library", "图书馆") if word.kind == "text" else ("shop", "商店")
    en = f"{this} is the {how.superlative} {word.en} in the {where}"
    return state(en, f"{this_zh}是{where_zh}里最{how.zh}的{word.zh}")


_GROUPS = (
    ("student", "学生", "in our class", "我们班"),
    ("student", "学生", "in our school", "我们学校"),
    ("teacher", "老师", "in our school", "我们学校"),
    ("doctor", "医生", "in this hospital", "这家医院"),
    ("engineer", "工程师", "in this factory", "这家工厂"),
)


def outfit(dice: Dice) -> Sentence:
    """She is wearing a red skirt. / 她穿着一条红色的裙子。"""
    who, color = somebody(dice), dice.pick(lexicon().adjectives["color"])
    if who.number == "many":
        return outfit(dice)
    kind = dice.pick(("clothes", "clothes", "headwear", "pair"))
    if kind == "pair":
        pair = dice.pick(lexicon().masses["pair"])
        puts_on = "戴" if pair.en == "gloves" else "穿"
        en = f"{who.en} {be(who)} wearing a pair of {color.en} {pair.en}"
        return state(en, f"{who.zh}{puts_on}着一{pair.measure}{color.zh}的{pair.zh}")
    noun = dice.pick(lexicon().nouns[kind])
    how = quality(dice, noun) if dice.chance(0.3) else color
    zh = f"{'穿' if kind == 'clothes' else '戴'}着一{noun.measure}{chinese.attribute(how.zh)}"
    en = f"{who.en} {be(who)} wearing {english.article(f'{how.en} {noun.en}')}"
    return state(en, f"{who.zh}{zh}{noun.zh}")


def weather(dice: Dice) -> Sentence:
    """It was very cold in Beijing yesterday. / 北京昨天很冷。"""
    town = dice.pick(lexicon().titles["city"])
    how, how_zh = predicative(dice, dice.pick(lexicon().adjectives["weather"]))
    falls, falls_zh = dice.pick(lexicon().rows["weather"])
    roll = dice.number(1, 5)
    if roll <= 2:
        time, time_zh = past_time(dice)
        return state(f"it was {how} in {town.en} {time}", f"{town.zh}{time_zh}{how_zh}")
    if roll == 3:
        time, time_zh = future_time(dice)
        return state(f"it will {falls} in {town.en} {time}", f"{town.zh}{time_zh}会{falls_zh}")
    if roll == 4:
        return state(f"it is {english.ing(falls)} in {town.en}", f"{town.zh}正在{falls_zh}")
    often, zh = dice.pick(lexicon().rows["frequency"])
    return state(f"it {often} {english.third(falls)} in {town.en}", f"{town.zh}{zh}{falls_zh}")


ALL = (
    occupation,
    acquaintance,
    belonging,
    feeling,
    judgement,
    comparison,
    rivalry,
    best,
    outfit,
    weather,
)
"""The constructions of this file."""
