"""Two clauses in one sentence: 的-clauses before their noun, reasons, conditions, thoughts."""

from __future__ import annotations

from dragoman.data.grammar import english
from dragoman.data.grammar.descriptions import opinion
from dragoman.data.grammar.lexicon import Noun, lexicon
from dragoman.data.grammar.phrases import (
    Both,
    Dice,
    Subject,
    action,
    link,
    name,
    past_time,
    place,
    pronoun,
    quality,
    relative,
    somebody,
    somebody_else,
    travel,
)
from dragoman.data.grammar.sentence import (
    Sentence,
    acts,
    ask,
    be,
    do,
    negated,
    predicative,
    present,
    state,
    was,
)
from dragoman.data.grammar.statements import taste


def _owned(dice: Dice, *, plural: bool) -> tuple[Noun, Both, tuple[str, ...]]:
    """the book that I bought yesterday / 我昨天买的书: noun, both languages, links."""
    verbs = (
        *lexicon().verbs["achievement"],
        *lexicon().verbs["event"],
        *lexicon().verbs["activity"][:3],
    )
    verb = dice.pick(verbs)
    noun = dice.pick([word for word in verb.objects if isinstance(word, Noun)])
    who, (time, time_zh) = somebody(dice), past_time(dice)
    at, at_zh = place(dice, verb.place, 0.25)
    if verb.base != "read" and (at or dice.chance(0.3)):
        time, time_zh = "", ""
    head = noun.plural if plural else noun.en
    en = f"the {head} that {who.en} {english.past(verb.base)}{at} {time}".rstrip()
    return noun, (en, f"{who.zh}{time_zh}{at_zh}{verb.zh}的{noun.zh}"), (link(verb.base, noun.en),)


def described_thing(dice: Dice) -> Sentence:
    """The book that I bought yesterday is very interesting. / 我昨天买的书很有意思。"""
    plural = dice.chance(0.3)
    noun, (en, zh), links = _owned(dice, plural=plural)
    how, how_zh = predicative(dice, quality(dice, noun))
    return state(f"{en} {'are' if plural else 'is'} {how}", f"{zh}{how_zh}")._replace(links=links)


def described_object(dice: Dice) -> Sentence:
    """I like the coat that she bought last week. / 我喜欢她上周买的大衣。"""
    plural = dice.chance(0.3)
    _, (en, zh), links = _owned(dice, plural=plural)
    roll = dice.number(1, 5)
    if roll == 1:
        return ask(f"where {'are' if plural else 'is'} {en}", f"{zh}在哪里")._replace(links=links)
    if roll == 2:
        who = somebody(dice)
        return ask(f"{do(who)} {who.en} like {en}", f"{who.zh}喜欢{zh}吗")._replace(links=links)
    if roll == 3:
        is_, this, this_zh = ("are", "these", "这些") if plural else ("is", "this", "这")
        return state(f"{this} {is_} {en}", f"{this_zh}是{zh}")._replace(links=links)
    who = somebody(dice)
    return state(f"{who.en} {present(who, 'like')} {en}", f"{who.zh}喜欢{zh}")._replace(links=links)


def described_person(dice: Dice) -> Sentence:
    """The man who is reading a book in the library is my uncle. / 正在图书馆看一本书的男人是我叔叔。"""
    noun = dice.pick((*lexicon().nouns["person"][:5], *lexicon().nouns["profession"]))
    what = action(dice, "bare counted", at=0.4)
    roll = dice.number(1, 3)
    if roll == 1:
        how, how_zh = predicative(dice, dice.pick(lexicon().adjectives["trait"]))
        habit = action(dice, "bare", at=0.2)
        often, often_zh = dice.pick((("often ", "常常"), ("usually ", "通常"), ("always ", "总是")))
        en = f"the {noun.plural} who {often}{habit.en()} are {how}"
        return state(en, f"{often_zh}{habit.zh}的{noun.zh}{how_zh}", habit)
    who = relative(dice) if roll == 2 else name(dice)
    en = f"the {noun.en} who is {what.en('ing')} is {who.en}"
    return state(en, f"{what.doing}的{noun.zh}是{who.zh}", what)


def described_place(dice: Dice) -> Sentence:
    """The hotel next to the bank where he works is very big. / 他工作的银行很大。"""
    noun, who = dice.pick(lexicon().nouns["building"][:-1]), somebody(dice)
    how, how_zh = predicative(dice, quality(dice, noun))
    if dice.chance(0.4):
        return state(
            f"this is the {noun.en} where {who.en} {present(who, 'work')}",
            f"这是{who.zh}工作的{noun.zh}",
        )
    return state(
        f"the {noun.en} where {who.en} {present(who, 'work')} is {how}",
        f"{who.zh}工作的{noun.zh}{how_zh}",
    )


def cause(dice: Dice, who: Subject) -> Both:
    """A reason in the past: he was very tired / 他很累; it was raining / 下雨了."""
    if dice.chance(0.3):
        return dice.pick(
            (
                ("it was raining", "下雨了"),
                ("it was snowing", "下雪了"),
                ("it was too cold", "天气太冷了"),
                ("it was too hot", "天气太热了"),
            )
        )
    feeling = dice.pick(lexicon().adjectives["state"])
    very, zh = dice.pick((("very {}", "很{}"), ("too {}", "太{}了")))
    return f"{who.en} {was(who)} {very.format(feeling.en)}", f"{who.zh}{zh.format(feeling.zh)}"


def because(dice: Dice) -> Sentence:
    """I didn't go to school yesterday because I was very tired. / 因为我很累，所以我昨天没去学校。"""
    who, (time, time_zh) = pronoun(dice), past_time(dice)
    why, why_zh = cause(dice, who)
    what = travel(dice, by=0.0) if dice.chance(0.4) else action(dice, "bare", at=0.2)
    en = f"{who.en} {negated(dice, 'did')} {what.en()} {time}"
    zh = f"因为{why_zh}，所以{who.zh}{time_zh}没{what.zh}"
    if dice.chance(0.3):
        en_so = f"{who.en} {negated(dice, 'did')} {what.en()}"
        return state(f"{why}, so {en_so}", f"{why_zh}，所以{who.zh}没{what.zh}", what)
    return state(f"{en} because {why}", zh, what)


def although(dice: Dice) -> Sentence:
    """Although he is very busy, he often plays football. / 虽然他很忙，但是他常常踢足球。"""
    who, what = pronoun(dice), action(dice, "bare", at=0.2)
    adjective = dice.pick(lexicon().adjectives[dice.pick(("state", "trait"))])
    often, zh = dice.pick(lexicon().rows["frequency"])
    en = f"although {who.en} {be(who)} very {adjective.en}, {who.en} {often} {acts(who, what)}"
    return state(en, f"虽然{who.zh}很{adjective.zh}，但是{who.zh}{zh}{what.zh}", what)


def condition(dice: Dice) -> Sentence:
    """If it rains tomorrow, we won't go to the park. / 如果明天下雨，我们就不会去公园。"""
    who = somebody(dice)
    time, time_zh = dice.pick(lexicon().rows["future"][:2] + lexicon().rows["future"][5:])
    falls, falls_zh = dice.pick(lexicon().rows["weather"])
    what = travel(dice, by=0.0) if dice.chance(0.4) else action(dice, "bare", at=0.5)
    will, will_zh = ("will", "会") if dice.chance(0.5) else (negated(dice, "will"), "不会")
    if dice.chance(0.3):
        en = f"{who.en} {will} {what.en()} if it {english.third(falls)} {time}"
    else:
        en = f"if it {english.third(falls)} {time}, {who.en} {will} {what.en()}"
    return state(en, f"如果{time_zh}{falls_zh}，{who.zh}就{will_zh}{what.zh}", what)


_MOMENTS: tuple[Both, ...] = (
    ("get home", "到家"),
    ("wake up", "醒来"),
    ("leave", "离开"),
    ("arrive at school", "到学校"),
    ("arrive at the office", "到办公室"),
    ("go out", "出门"),
)


def meanwhile(dice: Dice) -> Sentence:
    """My mother was cooking dinner when I got home. / 我到家的时候，我妈妈正在做晚饭。"""
    who = pronoun(dice)
    whom, (came, came_zh) = somebody_else(dice, who), dice.pick(_MOMENTS)
    what = action(dice, "bare counted", at=0.2)
    main, sub = f"{whom.en} {was(whom)} {what.en('ing')}", f"when {who.en} {english.past(came)}"
    en = f"{main} {sub}" if dice.chance(0.5) else f"{sub}, {main}"
    return state(en, f"{who.zh}{came_zh}的时候，{whom.zh}{what.doing}", what)


def sequence(dice: Dice) -> Sentence:
    """He often listens to music before he goes to bed. / 他睡觉以前常常听音乐。"""
    who, what = pronoun(dice), action(dice, "bare", at=0.2)
    (daily, daily_zh), (often, zh) = (
        dice.pick(lexicon().rows["daily"]),
        dice.pick(lexicon().rows["frequency"][:4]),
    )
    order, order_zh = dice.pick((("before", "以前"), ("after", "以后")))
    en = f"{who.en} {often} {acts(who, what)} {order} {who.en} {present(who, daily)}"
    return state(en, f"{who.zh}{daily_zh}{order_zh}{zh}{what.zh}", what)


def contrast(dice: Dice) -> Sentence:
    """I like tea, but my wife likes coffee. / 我喜欢茶，但是我妻子喜欢咖啡。"""
    one, (this, this_zh), (that, that_zh) = somebody(dice), taste(dice), taste(dice)
    two = somebody_else(dice, one)
    if this == that:
        return contrast(dice)
    left, left_zh = f"{one.en} {present(one, 'like')} {this}", f"{one.zh}喜欢{this_zh}"
    if dice.chance(0.3):
        no = negated(dice, do(one))
        return state(
            f"{left}, but {one.en} {no} like {that}", f"{left_zh}，但是{one.zh}不喜欢{that_zh}"
        )
    if dice.chance(0.4):
        return state(
            f"{left}, and {two.en} {present(two, 'like')} {that}",
            f"{left_zh}，{two.zh}喜欢{that_zh}",
        )
    return state(
        f"{left}, but {two.en} {present(two, 'like')} {that}",
        f"{left_zh}，但是{two.zh}喜欢{that_zh}",
    )


def thought(dice: Dice) -> Sentence:
    """I think this book is very interesting. / 我觉得这本书很有意思。"""
    who, (that, that_zh) = somebody(dice), opinion(dice)
    verb, zh = dice.pick((("think", "觉得"), ("think", "觉得"), ("say", "说"), ("believe", "相信")))
    opener = " that" if dice.chance(0.4) else ""
    return state(f"{who.en} {present(who, verb)}{opener} {that}", f"{who.zh}{zh}{that_zh}")


def knowledge(dice: Dice) -> Sentence:
    """Do you know where he lives? / 你知道他住在哪里吗？"""
    who = pronoun(dice) if dice.chance(0.7) else name(dice)
    whom = somebody_else(dice, who)
    roll = dice.number(1, 4)
    if roll == 1:
        en, zh = f"where {whom.en} {present(whom, 'live')}", f"{whom.zh}住在哪里"
    elif roll == 2:
        travels = travel(dice, by=0.0)
        en, zh = f"when {whom.en} will {travels.en()}", f"{whom.zh}什么时候{travels.zh}"
    elif roll == 3:
        doing = action(dice, "bare", at=0.0)
        en, zh = (
            f"why {whom.en} {present(whom, 'like')} {doing.en('ing')}",
            f"{whom.zh}为什么喜欢{doing.zh}",
        )
    else:
        job = dice.pick(lexicon().nouns["profession"])
        if whom.zh.startswith(job.zh):
            return knowledge(dice)
        what = job.plural if whom.number == "many" else english.article(job.en)
        en, zh = f"that {whom.en} {be(whom)} {what}", f"{whom.zh}是{job.zh}"
    if dice.chance(0.4):
        return ask(f"{do(who)} {who.en} know {en}", f"{who.zh}知道{zh}吗")
    if roll != 4 and dice.chance(0.6):
        return state(f"{who.en} {negated(dice, do(who))} know {en}", f"{who.zh}不知道{zh}")
    return state(f"{who.en} {present(who, 'know')} {en}", f"{who.zh}知道{zh}")


def causation(dice: Dice) -> Sentence:
    """My mother asked me to clean this room. / 我妈妈让我打扫这个房间。"""
    who = somebody(dice)
    whom, what = somebody_else(dice, who), action(dice, "bare counted definite", at=0.2)
    roll = dice.number(1, 3)
    if roll == 1:
        want = present(who, "want")
        return state(
            f"{who.en} {want} {whom.obj} to {what.en()}", f"{who.zh}想让{whom.zh}{what.zh}", what
        )
    if roll == 2:
        en = f"{who.en} often {present(who, 'help')} {whom.obj} {what.en()}"
        return state(en, f"{who.zh}常常帮{whom.zh}{what.zh}", what)
    return state(f"{who.en} asked {whom.obj} to {what.en()}", f"{who.zh}让{whom.zh}{what.zh}", what)


ALL = (
    described_thing,
    described_object,
    described_person,
    described_place,
    because,
    although,
    condition,
    meanwhile,
    sequence,
    contrast,
    thought,
    knowledge,
    causation,
)
