"""What is: identity, quality, comparison, clothes."""

from __future__ import annotations

from dragoman.data.grammar import chinese, english
from dragoman.data.grammar.lexicon import Noun, lexicon
from dragoman.data.grammar.phrases import (
    Both,
    Dice,
    Subject,
    Thing,
    definite,
    future_time,
    name,
    past_time,
    quality,
    relative,
    somebody,
    somebody_else,
)
from dragoman.data.grammar.sentence import (
    Sentence,
    age,
    be,
    dated,
    negated,
    predicative,
    state,
    was,
)

_GOODS = (
    "text",
    "writing",
    "show",
    "clothes",
    "headwear",
    "vehicle",
    "device",
    "thing",
    "furniture",
)


def goods(dice: Dice) -> Noun:
    """Some countable thing."""
    return dice.pick(lexicon().nouns[dice.pick(_GOODS)])


def occupation(dice: Dice) -> Sentence:
    """She is a famous writer. / 她是一位有名的作家。 She isn't a doctor. / 她不是医生。"""
    who = dice.weighted(((name, 2.0), (relative, 2.0), (somebody, 2.0)))(dice)
    noun = dice.pick(lexicon().nouns["profession"])
    if who.zh.startswith(noun.zh):
        return occupation(dice)
    if dice.chance(0.4) and who.number != "many":
        trait = quality(dice, noun)
        en = english.article(f"{trait.en} {noun.en}")
        zh = f"一{noun.measure}{chinese.attribute(trait.zh)}{noun.zh}"
        return state(f"{who.en} {be(who)} {en}", f"{who.zh}是{zh}")
    en = noun.plural if who.number == "many" else english.article(noun.en)
    if dice.chance(0.25):
        return state(f"{who.en} {negated(dice, be(who))} {en}", f"{who.zh}不是{noun.zh}")
    if dice.chance(0.25):
        return state(f"{who.en} used to be {en}", f"{who.zh}以前是{noun.zh}")
    return state(f"{who.en} {be(who)} {en}", f"{who.zh}是{noun.zh}")


def acquaintance(dice: Dice) -> Sentence:
    """Tom is my younger brother's friend. / 汤姆是我弟弟的朋友。"""
    who, mate = name(dice), dice.pick(lexicon().nouns["mate"])
    whose = somebody_else(dice, who)
    owner, owner_zh = f"{whose.en}'s", f"{whose.zh}的"
    if (
        whose.number in ("I", "you")
        or whose.en in ("he", "she", "we", "they")
        or whose.owner is None
    ):
        owner, owner_zh = dice.pick(
            (("my", "我的"), ("your", "你的"), ("our", "我们的"), ("their", "他们的"))
        )
    isnt = (negated(dice, "is"), "不是") if dice.chance(0.2) else ("is", "是")
    return state(f"{who.en} {isnt[0]} {owner} {mate.en}", f"{who.zh}{isnt[1]}{owner_zh}{mate.zh}")


def belonging(dice: Dice) -> Sentence:
    """This is Mary's bike. / 这是玛丽的自行车。"""
    noun, who = goods(dice), somebody(dice)
    owner = who.owner if who.owner and dice.chance(0.5) else None
    en, zh = owner or (f"{name_of(who)}", f"{who.zh}的")
    this, this_zh = dice.pick((("this", "这"), ("that", "那")))
    isnt = (negated(dice, "is"), "不是") if dice.chance(0.3) else ("is", "是")
    return state(f"{this} {isnt[0]} {en} {noun.en}", f"{this_zh}{isnt[1]}{zh}{noun.zh}")


def name_of(who: Subject) -> str:
    """Mary's, my mother's, the students', her."""
    if who.en != who.obj or who.number == "you":
        return who.owner[0] if who.owner else "their"
    return f"{who.en}'" if who.en.endswith("s") else f"{who.en}'s"


def feeling(dice: Dice) -> Sentence:
    """She was very tired yesterday. / 她昨天很累。"""
    who = somebody(dice)
    table, now = ("state", dice.chance(0.4)) if dice.chance(0.6) else ("trait", True)
    how, how_zh = predicative(dice, dice.pick(lexicon().adjectives[table]))
    if now:
        return state(f"{who.en} {be(who)} {how}", f"{who.zh}{how_zh}")
    return state(*dated(dice, who, f"{was(who)} {how}", how_zh, past_time(dice)))


def judgement(dice: Dice) -> Sentence:
    """This book is very interesting. / 这本书很有意思。"""
    en, zh = opinion(dice)
    return state(en, zh)


def opinion(dice: Dice) -> Both:
    """A clause that says how something is."""
    roll = dice.number(1, 10)
    if roll <= 2:
        topic = dice.pick((*lexicon().titles["subject"], *lexicon().titles["language"]))
        how, how_zh = predicative(dice, dice.pick(lexicon().adjectives["study"]))
        return f"{topic.en} is {how}", f"{topic.zh}{how_zh}"
    if roll == 3:
        town = dice.pick(lexicon().titles["city"])
        how, how_zh = predicative(dice, dice.pick(lexicon().adjectives["place"][:-1]))
        return f"{town.en} is {how}", f"{town.zh}{how_zh}"
    noun, what = subject_thing(dice)
    how, how_zh = predicative(dice, quality(dice, noun))
    return f"{what.en} {be(what)} {how}", f"{what.zh}{how_zh}"


def subject_thing(dice: Dice) -> tuple[Noun, Thing]:
    """this dog / 这只狗, my shirts / 我的衬衫: a definite thing without an adjective."""
    kinds = (*_GOODS, "fruit", "dish", "animal", "room", "building")
    noun = dice.pick(lexicon().nouns[dice.pick(kinds)])
    return noun, definite(dice, noun._replace(kind=""))


def comparison(dice: Dice) -> Sentence:
    """This car is much cheaper than that one. / 这辆汽车比那辆便宜得多。"""
    noun = dice.pick(lexicon().nouns[dice.pick((*_GOODS, "animal", "room", "building"))])
    how = quality(dice, noun)
    this, other, zh = dice.pick((("this", "that", "这那"), ("that", "this", "那这")))
    one, two = f"{zh[0]}{noun.measure}{noun.zh}", f"{zh[1]}{noun.measure}"
    roll = dice.number(1, 5)
    if roll == 1:
        en = f"{this} {noun.en} {negated(dice, 'is')} as {how.en} as {other} one"
        return state(en, f"{one}没有{two}{how.zh}")
    if roll == 2:
        return state(f"{this} {noun.en} is as {how.en} as {other} one", f"{one}和{two}一样{how.zh}")
    much, much_zh = dice.pick((("", ""), ("", ""), ("much ", "得多")))
    return state(
        f"{this} {noun.en} is {much}{how.comparative} than {other} one",
        f"{one}比{two}{how.zh}{much_zh}",
    )


def rivalry(dice: Dice) -> Sentence:
    """My older brother is taller than me. / 我哥哥比我高。"""
    who = somebody(dice)
    whom = somebody_else(dice, who)
    how = dice.pick(lexicon().adjectives["trait"])
    roll = dice.number(1, 6)
    if roll == 1:
        en = f"{who.en} {negated(dice, be(who))} as {how.en} as {whom.obj}"
        return state(en, f"{who.zh}没有{whom.zh}{how.zh}")
    if roll == 2:
        return state(
            f"{who.en} {be(who)} as {how.en} as {whom.obj}", f"{who.zh}和{whom.zh}一样{how.zh}"
        )
    if roll == 3 and "many" not in (who.number, whom.number):
        years = dice.number(1, 12)
        older, older_zh = dice.pick((("older", "大"), ("younger", "小")))
        en, zh = age(years)
        return state(
            f"{who.en} {be(who)} {en} {older} than {whom.obj}", f"{who.zh}比{whom.zh}{older_zh}{zh}"
        )
    much, much_zh = dice.pick((("", ""), ("", ""), ("much ", "得多")))
    en = f"{who.en} {be(who)} {much}{how.comparative} than {whom.obj}"
    return state(en, f"{who.zh}比{whom.zh}{how.zh}{much_zh}")


def best(dice: Dice) -> Sentence:
    """Tom is the tallest student in our class. / 汤姆是我们班最高的学生。"""
    if dice.chance(0.4):
        who, how = name(dice), dice.pick(lexicon().adjectives["trait"])
        noun, where, where_zh = dice.pick(_GROUPS)
        return state(
            f"{who.en} is the {how.superlative} {noun[0]} {where}",
            f"{who.zh}是{where_zh}最{how.zh}的{noun[1]}",
        )
    word = goods(dice)
    how = quality(dice, word)
    this, this_zh = dice.pick((("this", "这"), ("that", "那")))
    where, where_zh = dice.pick(
        (("in the shop", "商店里"), ("in the house", "家里"), ("of all", "所有"), ("here", "这里"))
    )
    if where == "of all":
        return state(
            f"{this} {word.en} is the {how.superlative}",
            f"{this_zh}{word.measure}{word.zh}最{how.zh}",
        )
    return state(
        f"{this} is the {how.superlative} {word.en} {where}",
        f"{this_zh}是{where_zh}最{how.zh}的{word.zh}",
    )


_GROUPS = (
    (("student", "学生"), "in our class", "我们班"),
    (("student", "学生"), "in our school", "我们学校"),
    (("teacher", "老师"), "in our school", "我们学校"),
    (("doctor", "医生"), "in this hospital", "这家医院"),
    (("engineer", "工程师"), "in this factory", "这家工厂"),
)


def outfit(dice: Dice) -> Sentence:
    """She is wearing a red skirt. / 她穿着一条红色的裙子。"""
    who, kind = somebody(dice), dice.pick(("clothes", "clothes", "headwear"))
    if who.number == "many":
        return outfit(dice)
    noun = dice.pick(lexicon().nouns[kind])
    color, color_zh = dice.pick(lexicon().adjectives["color"])[:2]
    how, how_zh = (color, color_zh) if dice.chance(0.7) else quality(dice, noun)[:2]
    zh = f"{'穿' if kind == 'clothes' else '戴'}着一{noun.measure}{chinese.attribute(how_zh)}{noun.zh}"
    return state(
        f"{who.en} {be(who)} wearing {english.article(f'{how} {noun.en}')}", f"{who.zh}{zh}"
    )


def weather(dice: Dice) -> Sentence:
    """It was very cold in Beijing yesterday. / 北京昨天很冷。"""
    town = dice.pick(lexicon().titles[dice.pick(("city", "country"))])
    how, how_zh = predicative(dice, dice.pick(lexicon().adjectives["weather"]))
    roll = dice.number(1, 5)
    if roll <= 2:
        time, time_zh = dice.pick(lexicon().rows["past"][:2] + lexicon().rows["past"][6:])
        return state(f"it was {how} in {town.en} {time}", f"{town.zh}{time_zh}{how_zh}")
    falls, falls_zh = dice.pick(lexicon().rows["weather"])
    if roll == 3:
        time, time_zh = future_time(dice)
        return state(f"it will {falls} in {town.en} {time}", f"{town.zh}{time_zh}会{falls_zh}")
    if roll == 4:
        return state(f"it is {english.ing(falls)} in {town.en}", f"{town.zh}正在{falls_zh}")
    return state(f"it often {english.third(falls)} in {town.en}", f"{town.zh}常常{falls_zh}")


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
