"""English word forms: regular by rule, irregular from a table."""

from __future__ import annotations

from functools import cache

# base: past, past participle, -ing form where it is irregular too
_IRREGULAR: dict[str, tuple[str, ...]] = {
    "be": ("was", "been", "being"),
    "begin": ("began", "begun", "beginning"),
    "borrow": ("borrowed", "borrowed"),
    "break": ("broke", "broken"),
    "bring": ("brought", "brought"),
    "buy": ("bought", "bought"),
    "catch": ("caught", "caught"),
    "chat": ("chatted", "chatted", "chatting"),
    "choose": ("chose", "chosen"),
    "do": ("did", "done"),
    "draw": ("drew", "drawn"),
    "drink": ("drank", "drunk"),
    "drive": ("drove", "driven"),
    "eat": ("ate", "eaten"),
    "find": ("found", "found"),
    "fly": ("flew", "flown"),
    "get": ("got", "got", "getting"),
    "give": ("gave", "given"),
    "go": ("went", "gone"),
    "have": ("had", "had"),
    "hide": ("hid", "hidden"),
    "know": ("knew", "known"),
    "leave": ("left", "left"),
    "lend": ("lent", "lent"),
    "lose": ("lost", "lost"),
    "make": ("made", "made"),
    "meet": ("met", "met"),
    "put": ("put", "put", "putting"),
    "read": ("read", "read"),
    "ride": ("rode", "ridden"),
    "run": ("ran", "run", "running"),
    "see": ("saw", "seen"),
    "sell": ("sold", "sold"),
    "send": ("sent", "sent"),
    "sing": ("sang", "sung"),
    "ski": ("skied", "skied", "skiing"),
    "sleep": ("slept", "slept"),
    "speak": ("spoke", "spoken"),
    "steal": ("stole", "stolen"),
    "swim": ("swam", "swum", "swimming"),
    "take": ("took", "taken"),
    "teach": ("taught", "taught"),
    "throw": ("threw", "thrown"),
    "travel": ("traveled", "traveled", "traveling"),
    "understand": ("understood", "understood"),
    "wake": ("woke", "woken"),
    "write": ("wrote", "written"),
}
_VOWELS = "aeiou"


@cache
def third(verb: str) -> str:
    """Third person singular of a verb or verb phrase: "go to bed" -> "goes to bed"."""
    head, tail = _split(verb)
    return _with_s(head) + tail


@cache
def past(verb: str) -> str:
    """Simple past: "play chess" -> "played chess", "swim" -> "swam"."""
    head, tail = _split(verb)
    return (_IRREGULAR[head][0] if head in _IRREGULAR else _with_ed(head)) + tail


@cache
def participle(verb: str) -> str:
    """Past participle: "write" -> "written", "throw away" -> "thrown away"."""
    head, tail = _split(verb)
    return (_IRREGULAR[head][1] if head in _IRREGULAR else _with_ed(head)) + tail


@cache
def ing(verb: str) -> str:
    """Present participle or gerund: "take a walk" -> "taking a walk"."""
    head, tail = _split(verb)
    if len(_IRREGULAR.get(head, ())) == 3:
        return _IRREGULAR[head][2] + tail
    if head.endswith("e"):
        return head[:-1] + "ing" + tail
    return head + "ing" + tail


@cache
def plural(noun: str) -> str:
    """Regular plural: "box" -> "boxes", "story" -> "stories", "potato" -> "potatoes"."""
    if noun.endswith(("tato", "mato")):
        return noun + "es"
    return _with_s(noun) if not noun.endswith("o") else noun + "s"


@cache
def article(phrase: str) -> str:
    """The phrase with "a" or "an" by its first sound: "an hour", "a university"."""
    first = phrase.lower()
    silent_h = first.startswith(("hour", "honest"))
    sounded_y = first.startswith(("uni", "use", "eu"))
    vowel = silent_h or (first[0] in _VOWELS and not sounded_y)
    return f"{'an' if vowel else 'a'} {phrase}"


def superlative(comparative: str) -> str:
    """From the comparative: "bigger" -> "biggest", "better" -> "best"."""
    return "best" if comparative == "better" else comparative[:-1] + "st"


def _split(verb: str) -> tuple[str, str]:
    head, space, tail = verb.partition(" ")
    return head, space + tail


def _with_s(word: str) -> str:
    if word.endswith(("s", "x", "ch", "sh", "o", "z")):
        return word + "es"
    if word.endswith("y") and word[-2] not in _VOWELS:
        return word[:-1] + "ies"
    return word + "s"


def _with_ed(word: str) -> str:
    if word.endswith("e"):
        return word + "d"
    if word.endswith("y") and word[-2] not in _VOWELS:
        return word[:-1] + "ied"
    return word + "ed"
