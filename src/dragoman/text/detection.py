"""Language detection by the script and the words of a text."""

import re
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from itertools import chain, groupby
from typing import Any

from dragoman.errors import how_to_install
from dragoman.languages import SCRIPT_NAMES, base_of, label_of, script_in, script_of_letter, tags

SURE = 0.5
"""Minimum probability to name one language; below it, there are only three candidates."""
CLEAR = 0.9
"""Minimum probability to name a language that no model reads. With it, none of the last one, two or
three words of 1,000 English lines of Multi30k is taken for German or French; by the likeliest
language alone, 280, 102 and 20 are."""
WORDS = 4.0
"""Minimum number of words of a text in a language that no model reads or writes."""
OURS = 0.02
"""Maximum probability that all languages of the models then have together. This is true of none of
45,000 lines, and pieces of lines, of corpora in English, German and Chinese, and of 91 to 100 % of
those of 40 letters in Django's translations into 16 other languages."""
SAMPLE = 2000
"""Number of characters of a text that are examined."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A language that a text may be in."""

    language: str
    confidence: float


@dataclass(frozen=True, slots=True)
class Detected:
    """The language of a text: its tag, or null if uncertain; and the three most likely ones."""

    language: str | None = None
    confidence: float = 0.0
    candidates: tuple[Candidate, ...] = ()


_SCRIPTS = """
HIRAGANA ja, KATAKANA ja, CJK zh ja, HANGUL ko, CYRILLIC ru uk bg sr mk be kk ky mn tg ba tt cv
os ce ab av kv uz, GREEK el, ARABIC ar fa ur ps sd ug ks ku, HEBREW he yi, DEVANAGARI hi mr ne
sa ks, BENGALI bn as, GURMUKHI pa, GUJARATI gu, ORIYA or, TAMIL ta, TELUGU te, KANNADA kn,
MALAYALAM ml, SINHALA si, THAI th, LAO lo, TIBETAN bo dz, MYANMAR my, GEORGIAN ka, ARMENIAN hy,
ETHIOPIC am ti, KHMER km, THAANA dv
"""
SCRIPTS = {name: tuple(codes) for name, *codes in map(str.split, _SCRIPTS.split(","))}
"""The languages written in each script, by the first word of its characters' names."""
_BOTH = frozenset(["sr", "uz", "ku", "ks"])
_ONLY = frozenset(chain(*SCRIPTS.values())) - _BOTH
"""Languages that are not written in Latin letters."""


class LanguageDetector:
    """Detects the language of a text, mostly among those that the server's models read or write."""

    def __init__(self, codes: Iterable[str], written: Iterable[str] = ()) -> None:
        """Take the codes of the languages that models read, and of those that they write.

        The latter are used only if the identifier knows all languages that are read.
        """
        read = [*codes]
        self._read = {*map(base_of, read)}
        self._told = bool(self._read) and all(map(is_told, self._read))
        self._tags = sorted({*tags([*read, *(written if self._told else ())]).values()})

    def detect(self, text: str) -> Detected:
        """Return the language of a text: by its script, then by its words.

        The result is a language that a model reads, unless the text is clearly in one that models
        only write. A text of some words that is clearly in no model's language can be in any.
        """
        text = without_asides(text[:SAMPLE])
        scripts = _scripts(text)
        ours = [each for each in self._tags if _can_be(each, scripts)]
        ranked = self._others(text, scripts) or self._own(text, ours)
        if not scripts or not ranked:
            return Detected()
        found = [Candidate(self._written(base, text, ours), share) for base, share in ranked[:3]]
        best = found[0]
        sure = best.confidence >= SURE
        return Detected(best.language if sure else None, best.confidence, tuple(found))

    def _own(self, text: str, tags: Sequence[str]) -> list[tuple[str, float]]:
        """Return the models' languages that a text may be in, with their relative shares."""
        bases = sorted({base_of(each) for each in tags})
        if len(bases) < 2:
            return [(each, 1.0) for each in bases]
        ranked = _ranked(by_main_script(text), bases)
        if ranked[0][0] not in self._read and ranked[0][1] < CLEAR:
            return [each for each in ranked if each[0] in self._read] or ranked
        return ranked

    def _others(self, text: str, scripts: Mapping[str, float]) -> list[tuple[str, float]]:
        """Return all languages by their shares, if a text is clearly in none of the models'."""
        mixed = _main(scripts) == "LATIN" and len(scripts) > 1  # names would decide
        if mixed or not self._told or sum(scripts.values()) < WORDS:
            return []
        labels = [each for each in _identifier().labels if _can_be(each, scripts)]
        ranked = _ranked(by_main_script(text), labels) if labels else [("", 0.0)]
        ours = {*map(label_of, self._tags)}
        of_ours = sum(share for label, share in ranked if label in ours)
        best, share = ranked[0]  # a three-letter code is not a model's language, or not a language
        return ranked if len(best) == 2 and share >= SURE and of_ours < OURS else []

    @staticmethod
    def _written(base: str, text: str, tags: Sequence[str]) -> str:
        """Return the tag of a language: for Chinese by its characters, else the served one."""
        if base == "zh":
            return chinese(text)
        return next((each for each in tags if base_of(each) == base), base)


def chinese(text: str) -> str:
    """Return `zh-Hant` for a text of traditional characters, else `zh-Hans`.

    Characters of GB 2312 that Big5 lacks are simplified; those of Big5 that GB 2312 lacks are
    traditional.
    """
    balance = 0
    for char in text:
        if "\u4e00" <= char <= "\u9fff":
            balance += _has("big5", char) - _has("gb2312", char)
    return "zh-Hant" if balance > 0 else "zh-Hans"


def _has(charset: str, char: str) -> bool:
    try:
        char.encode(charset)
    except UnicodeEncodeError:
        return False
    return True


_ASIDES = re.compile(
    r"(?:https?://|ftp://|www\.)[!-;=?-~]*|(?<![\w.+-])[\w.+-]+@[\w-]+(?:\.[\w-]+)+|`[^`]*`|</?[a-z][^<>]*>"
    r"|\{\{[^{}]*\}\}|[$%#]?\{[\w.:-]*\}|%(?:\(\w+\)|\d+\$)?[sdif@](?![a-z])|(?<!\w)[a-z]\w*_\w*",
    re.ASCII | re.IGNORECASE,
)
"""URLs, e-mail addresses, code, tags and placeholders, which are the same in every language."""
_BRACKETS = re.compile(r"[(（][^()（）]*[)）]")
_OF_A_WORD = dict.fromkeys(["CJK", "KATAKANA", "HIRAGANA", "HANGUL"], 2)
"""Number of characters that count as much as a lower-case word; four in other scripts without
capitals."""
_NAMES = 0.25
"""Weight of a capitalised word or a single letter, relative to a lower-case word: it may be part of
a name or a button, which occur in texts of every language."""
_OF_SENTENCES = frozenset("的了是在和我你他她们這那这们們不也把被吗呢吧与與从從就都说說を")
_SENTENCE = 2.0
"""Weight of a character that makes sentences, and so occurs in no name."""
_NOT_LATIN = 3.0
"""Weight of a lower-case word that is not Latin: Latin ones may be commands, in any script."""


def without_asides(text: str) -> str:
    """Return the text without asides, or unchanged if it has no other letters."""
    rest = _ASIDES.sub(" ", text)
    return rest if any(map(str.isalpha, rest)) else text


def by_main_script(text: str) -> str:
    """Return the text without Latin words if most of it is in another script."""
    if text.isascii() or not _LATIN.search(text) or _main(_scripts(text)) in {"", "LATIN"}:
        return text
    return _LATIN.sub(" ", text)


_LATIN = re.compile("[A-Za-z\u00c0-\u024f\uff21-\uff3a\uff41-\uff5a]+")


def _scripts(text: str) -> dict[str, float]:
    """Count the words of each script; Latin comes last, as its names occur in all languages.

    Text in brackets is skipped if there is other text.
    """
    rest = _BRACKETS.sub(" ", text)
    text = rest if any(map(str.isalpha, rest)) else text
    found = dict[str, float]()
    for is_word, run in groupby(text, _is_of_word):
        letters = "".join(filter(str.isalpha, run))
        for char in letters[:1] if is_word else letters:
            script = script_of_letter(char)
            share = _of_word(letters, script) if is_word else _of_character(char, script)
            found[script] = found.get(script, 0.0) + share
    return dict(sorted(found.items(), key=lambda item: item[0] == "LATIN"))


def _main(scripts: Mapping[str, float]) -> str:
    """Return the script of most of a text; "" for a text without letters."""
    return max(scripts, key=lambda script: scripts[script], default="")


def _of_word(letters: str, script: str) -> float:
    """Return the weight of a word in a script with capitals."""
    if script == "LATIN":
        return 1.0 if letters.islower() and len(letters) > 1 else _NAMES
    return _NOT_LATIN if letters.islower() else _NAMES


def _of_character(char: str, script: str) -> float:
    """Return the weight of a character of any other script."""
    return _SENTENCE if char in _OF_SENTENCES else 1 / _OF_A_WORD.get(script, 4)


def _is_of_word(char: str) -> bool:
    """Return whether a character is a letter with case, or joins those in a word: `utf-8`."""
    return char.lower() != char.upper() or char.isdecimal() or char in "-._/'’"


def _can_be(code: str, scripts: Mapping[str, float]) -> bool:
    """Return whether a language is written in the script of most of a text.

    Kana and Chinese characters count together, and are Japanese unless kana are few.
    """
    if not scripts:
        return False
    language = base_of(code)
    kana = scripts.get("HIRAGANA", 0.0) + scripts.get("KATAKANA", 0.0)
    chinese, most = scripts.get("CJK", 0.0), _main(scripts)
    if kana and kana + chinese >= scripts[most]:
        most = "HIRAGANA" if kana * 10 > chinese else "CJK"
    if most == "HIRAGANA":
        return language == "ja"
    if named := SCRIPT_NAMES.get(script_in(code)):
        return most == named
    if most in SCRIPTS:
        return language in SCRIPTS[most]
    return language not in _ONLY


def _ranked(text: str, bases: Sequence[str]) -> list[tuple[str, float]]:
    """Rank the languages that the identifier knows by the probability of a text."""
    shares = {code: share for code, share in _identifier().rank(text) if code in bases}
    total = sum(shares.values())
    if not total:
        return [(bases[0], 0.0)]
    return [(code, share / total) for code, share in shares.items()]


@cache
def is_told(code: str) -> bool:
    """Return whether `likely_language` knows a language."""
    return find_spec("py3langid") is None or label_of(code) in _identifier().labels


def likely_language(text: str) -> tuple[str, float]:
    """Return the most probable of all known languages of a text, and its probability.

    Without the extra `data` the probability is 0, and a warning says so once.
    """
    if find_spec("py3langid") is None:
        warnings.warn(
            "py3langid is not installed, so languages are told by their letters alone; "
            f"{how_to_install('data')}.",
            stacklevel=2,
        )
        return "", 0.0
    found, share = _identifier().classify(text[:SAMPLE])
    return {"sdh": "ku"}.get(found, str(found)), float(share)  # Kurdish of both scripts


@cache
def _identifier() -> Any:  # noqa: ANN401 -- without annotations
    """Load the model of py3langid, which takes half a second.

    Its table is used in float32, so it is converted once instead of for each text.
    """
    from py3langid.langid import MODEL_FILE, LanguageIdentifier

    identifier = LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)
    identifier.nb_ptc = identifier.nb_ptc.astype("float32")
    return identifier
