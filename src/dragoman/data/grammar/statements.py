"""Statements that hold now: habits, likes, wishes, duties, skills, manner."""

from __future__ import annotations

from dragoman.data.grammar.lexicon import lexicon
from dragoman.data.grammar.phrases import (
    Both,
    Dice,
    Subject,
    action,
    bare,
    name,
    role,
    somebody,
    somebody_else,
)
from dragoman.data.grammar.sentence import (
    Sentence,
    acts,
    be,
    do,
    negated,
    present,
    state,
)


def habit(dice: Dice) -> Sentence:
    """She often drinks coffee at home in the morning. / 她早上常常在家喝咖啡。"""
    who, what = somebody(dice), action(dice, "bare", at=0.4)
    often, often_zh = "", ""
    time, time_zh = dice.pick(lexicon().rows["habit"])
    if dice.chance(0.6):
        often, often_zh = dice.pick(lexicon().rows["frequency"])
        if time.startswith("every") or dice.chance(0.5):
            time, time_zh = "", ""
    en = f"{who.en} {often} {acts(who, what)} {time}"
    return state(" ".join(en.split()), f"{who.zh}{time_zh}{often_zh}{what.zh}", what)


def no_habit(dice: Dice) -> Sentence:
    """My mother doesn't work on weekends. / 我妈妈周末不工作。"""
    who, what = somebody(dice), action(dice, "bare")
    time, time_zh = dice.pick(lexicon().rows["habit"][4:]) if dice.chance(0.5) else ("", "")
    en = f"{who.en} {negated(dice, do(who))} {what.en()} {time}".rstrip()
    return state(en, f"{who.zh}{time_zh}不{what.zh}", what)


def progressive(dice: Dice) -> Sentence:
    """The children are playing football in the park. / 孩子们正在公园踢足球。"""
    who = somebody(dice)
    what = action(dice, "bare counted definite", at=0.5)
    return state(f"{who.en} {be(who)} {what.en('ing')}", f"{who.zh}{what.doing}", what)


def wish(dice: Dice) -> Sentence:
    """I want to study machine learning. / 我想学习机器学习。"""
    who = somebody(dice)
    what = action(dice, "bare counted definite", owner=who.owner)
    verb, zh = dice.weighted(_WISHES)
    if zh != "希望" and dice.chance(0.25):
        return state(
            f"{who.en} {negated(dice, do(who))} {verb} {what.en()}",
            f"{who.zh}不{zh}{what.zh}",
            what,
        )
    return state(f"{who.en} {present(who, verb)} {what.en()}", f"{who.zh}{zh}{what.zh}", what)


_WISHES: tuple[tuple[tuple[str, str], float], ...] = (
    (("want to", "想"), 4),
    (("hope to", "希望"), 1),
    (("plan to", "打算"), 2),
    (("need to", "需要"), 2),
    (("decide to", "决定"), 0),
)


def duty(dice: Dice) -> Sentence:
    """You shouldn't watch TV every day. / 你不应该每天看电视。"""
    who, what = somebody(dice), action(dice, "bare definite", at=0.2)
    time, time_zh = dice.pick(lexicon().rows["habit"][:3]) if dice.chance(0.3) else ("", "")
    verb, zh = dice.pick((("should", "应该"), ("must", "必须")))
    if verb == "should" and dice.chance(0.4):
        verb, zh = negated(dice, "should"), "不应该"
    return state(
        f"{who.en} {verb} {what.en()} {time}".rstrip(), f"{who.zh}{zh}{time_zh}{what.zh}", what
    )


def liking_to(dice: Dice) -> Sentence:
    """I like studying artificial intelligence. / 我喜欢学习人工智能。"""
    who, what = somebody(dice), action(dice, "bare", at=0.2)
    verb, zh = dice.pick(lexicon().rows["like"])
    also, also_zh = ("also ", "也") if dice.chance(0.15) else ("", "")
    if verb == "like" and not also and dice.chance(0.3):
        en = f"{who.en} {negated(dice, do(who))} like {what.en('ing')}"
        return state(en, f"{who.zh}不喜欢{what.zh}", what)
    en = f"{who.en} {also}{present(who, verb)} {what.en('ing')}"
    return state(en, f"{who.zh}{also_zh}{zh}{what.zh}", what)


def taste(dice: Dice) -> Both:
    """dogs / 狗, coffee / 咖啡, math / 数学: what one may like."""
    words = lexicon()
    tables = (
        words.nouns["animal"],
        words.nouns["fruit"],
        words.masses["drink"],
        words.titles["subject"],
    )
    what = bare(dice.pick(dice.pick((*tables, words.masses["food"], words.titles["city"]))))
    return what.en, what.zh


def liking(dice: Dice) -> Sentence:
    """Mary also likes cats. / 玛丽也喜欢猫。"""
    who, (what, what_zh) = somebody(dice), taste(dice)
    verb, zh = dice.pick(lexicon().rows["like"][:2])
    roll = dice.number(1, 4)
    if roll == 1:
        return state(f"{who.en} {negated(dice, do(who))} like {what}", f"{who.zh}不喜欢{what_zh}")
    if roll == 2:
        return state(f"{who.en} also {present(who, verb)} {what}", f"{who.zh}也{zh}{what_zh}")
    return state(f"{who.en} {present(who, verb)} {what}", f"{who.zh}{zh}{what_zh}")


def together(dice: Dice) -> Sentence:
    """Tom and Mary both like swimming. / 汤姆和玛丽都喜欢游泳。"""
    one = somebody(dice)
    two = somebody_else(dice, one)
    if one.number in ("I", "you") or two.number == "many" or one.number == "many":
        one, two = name(dice), Subject("I", "me", "我", "I", ("my", "我的"))
    what = action(dice, "bare", at=0.2)
    who, zh = f"{one.en} and {two.en if two.number == 'I' else two.obj}", f"{one.zh}和{two.zh}"
    if two.obj in ("him", "her", "you"):
        who = f"{one.en} and {two.en}"
    if dice.chance(0.5):
        return state(f"{who} both like {what.en('ing')}", f"{zh}都喜欢{what.zh}", what)
    return state(f"{who} both want to {what.en()}", f"{zh}都想{what.zh}", what)


def everybody(dice: Dice) -> Sentence:
    """All the students study English at school. / 学生们都在学校学习英语。"""
    who, what = role(dice), action(dice, "bare", at=0.4)
    while who.number != "many":
        who = role(dice)
    return state(f"all {who.en} {what.en()}", f"{who.zh}都{what.zh}", what)


def skill(dice: Dice) -> Sentence:
    """She can't speak French. / 她不会说法语。"""
    who = somebody(dice)
    en, zh = dice.pick(lexicon().rows["skills"])
    if dice.chance(0.4):
        language = dice.pick(lexicon().titles["language"])
        en, zh = f"speak {language.en}", f"说{language.zh}"
    roll = dice.number(1, 4)
    if roll == 1:
        return state(f"{who.en} {negated(dice, 'can')} {en}", f"{who.zh}不会{zh}")
    if roll == 2:
        return state(f"{who.en} can also {en}", f"{who.zh}也会{zh}")
    return state(f"{who.en} can {en}", f"{who.zh}会{zh}")


def manner(dice: Dice) -> Sentence:
    """He plays football very well. / 他足球踢得很好。"""
    who = somebody(dice)
    en, zh, fits = dice.pick(lexicon().rows["manners"])
    how, how_zh = dice.pick([row for row in lexicon().rows["adverbs"] if row[0] in fits.split()])
    if dice.chance(0.25):
        language = dice.pick(lexicon().titles["language"])
        en, zh = f"speak {language.en}", f"{language.zh}说得"
    much, much_zh = dice.pick((("very ", "很"), ("very ", "很"), ("too ", "太")))
    ends = "了" if much_zh == "太" else ""
    return state(f"{who.en} {present(who, en)} {much}{how}", f"{who.zh}{zh}{much_zh}{how_zh}{ends}")


def residence(dice: Dice) -> Sentence:
    """My uncle still lives in Paris. / 我叔叔还住在巴黎。"""
    who, town = somebody(dice), dice.pick(lexicon().titles[dice.pick(("city", "country"))])
    still, still_zh = dice.pick((("", ""), ("still ", "还"), ("now ", "现在")))
    if dice.chance(0.3):
        return state(f"{who.en} {present(who, 'come')} from {town.en}", f"{who.zh}来自{town.zh}")
    return state(
        f"{who.en} {still}{present(who, 'live')} in {town.en}", f"{who.zh}{still_zh}住在{town.zh}"
    )


def commute(dice: Dice) -> Sentence:
    """Anna goes to work by bus every day. / 安娜每天坐公交车上班。"""
    who = somebody(dice)
    (to, to_zh), (by, by_zh) = dice.pick((("work", "上班"), ("school", "上学"))), dice.pick(_LAND)
    time, time_zh = dice.pick(lexicon().rows["habit"][:2])
    if dice.chance(0.4):
        time, time_zh = "", dice.pick(lexicon().rows["frequency"][:2])[1]
        often = "often" if time_zh == "常常" else "usually"
        return state(
            f"{who.en} {often} {present(who, 'go')} to {to} {by}",
            f"{who.zh}{time_zh}{by_zh}{to_zh}",
        )
    return state(
        f"{who.en} {present(who, 'go')} to {to} {by} {time}", f"{who.zh}{time_zh}{by_zh}{to_zh}"
    )


_LAND = (
    ("by bus", "坐公交车"),
    ("by subway", "坐地铁"),
    ("by taxi", "坐出租车"),
    ("by car", "开车"),
    ("by bike", "骑自行车"),
)


ALL = (
    habit,
    no_habit,
    progressive,
    wish,
    duty,
    liking_to,
    liking,
    together,
    everybody,
    skill,
    manner,
    residence,
    commute,
)
