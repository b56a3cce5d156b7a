"""Codes of languages, as clients, models, publishers and files write them; scripts of letters."""

import re
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache, lru_cache

LONGEST = 35
"""Characters of a code that count."""

LangCodes = tuple[str | None, str | None]
"""Those of source and target; None for one that is not known, or not asked for."""

_NAMES = {
    "de": "deutsch 德语 德文 德語",
    "en": "englisch 英语 英文 英語",
    "fr": "französisch français 法语 法文 法語",
    "ja": "japanisch 日语 日文 日語 日本語",
    "ko": "koreanisch 韩语 韩文 韓語 韓文 한국어",
    "ru": "russisch русский 俄语 俄文 俄語",
    "es": "spanisch español 西班牙语 西班牙文",
    "zh": "chinesisch 中文 汉语 漢語 简体中文 簡體中文 繁体中文 繁體中文",
}
"""Names of languages that head columns, in German, in Chinese and in their own."""
_SIDES = {
    "source": "source src quelle quelltext quellsprache 原文 源文 术语 術語 源语言 源語言",
    "target": "target tgt ziel zieltext zielsprache 译文 譯文 目标语言 目標語言",
}
_REGION = re.compile(r"\s*[(（][^()（）]*[)）]$")
_CODE = re.compile(r"[a-z]{2,3}([-_][a-z0-9]{2,8}){0,2}")
_VARIANTS = {"Hans": "simplified", "Hant": "traditional", "BR": "Brazilian", "PT": "European"}
_VARIANTS |= {"Cans": "Canadian syllabics", "Olck": "Ol Chiki", "Jpan": "", "Hang": ""}
"""Names of what a code has beside its language; Japanese and Korean have one script each."""
_CHINESE = {"cn": "Hans", "sg": "Hans", "tw": "Hant", "hk": "Hant", "mo": "Hant"}
_CHINESE |= {"chs": "Hans", "cht": "Hant"}
_ALIASES = {"zt": "zh-Hant", "pb": "pt-BR", "iw": "he", "in": "id", "ji": "yi"}
_ALIASES |= {"chs": "zh-Hans", "cht": "zh-Hant", "enu": "en", "ptb": "pt-BR"}
"""Codes of LibreTranslate, those that ISO has withdrawn, and those that only Windows has."""
_SCRIPTS = """
latn LATIN, cyrl CYRILLIC, arab ARABIC, hebr HEBREW, grek GREEK, deva DEVANAGARI, beng BENGALI,
guru GURMUKHI, gujr GUJARATI, orya ORIYA, taml TAMIL, telu TELUGU, knda KANNADA, mlym MALAYALAM,
sinh SINHALA, thai THAI, laoo LAO, tibt TIBETAN, mymr MYANMAR, khmr KHMER, geor GEORGIAN,
armn ARMENIAN, ethi ETHIOPIC, thaa THAANA, hans CJK, hant CJK, hani CJK, jpan HIRAGANA,
hang HANGUL, mong MONGOLIAN, tfng TIFINAGH, syrc SYRIAC, adlm ADLAM, nkoo NKO, cans CANADIAN,
cher CHEROKEE, olck OL, java JAVANESE, mtei MEETEI
"""
SCRIPT_NAMES = dict[str, str](each.split() for each in _SCRIPTS.split(","))
"""The word by which letters name their script (`script_of_letter`), by its code of ISO 15924."""
_PART = re.compile(rf"[a-z]{{2}}|\d{{3}}|kore|aran|{'|'.join(SCRIPT_NAMES)}")
"""A region or a script in a code."""


@cache
def _listed() -> tuple[dict[str, str], dict[str, str]]:
    """The codes of two letters by those of three, and the names by those of two.

    Each line of the list is a code of ISO 639-1, those of 639-2 and 639-3 that mean the same or a
    part of it, and the name.
    """
    from importlib.resources import files  # most commands name no language

    lines = files("dragoman").joinpath("languages.txt").read_text("utf-8").splitlines()
    listed = [line.split(maxsplit=2) for line in lines]
    short = {three: two for two, threes, _ in listed for three in threes.split(",")}
    return short, {two: name for two, _, name in listed}


@dataclass(frozen=True, kw_only=True)  # without slots: some have another base beside it
class LanguagePair:
    """From which language into which, for a model of several."""

    src_lang: str | None = None
    """Language of the source, by its code in a multilingual model."""
    tgt_lang: str | None = None
    """Language to translate into, by its code in a multilingual model."""

    @property
    def languages(self) -> LangCodes:
        """Both."""
        return self.src_lang, self.tgt_lang


def tag(code: str) -> str:
    """Return a code in one form: `zho_Hans`, `zh_CN` and `zh-hans` are `zh-Hans`, `en_XX` is `en`.

    Of scripts those of Chinese are kept, of regions those of Portuguese.
    """
    return _tag(code[:LONGEST])


@lru_cache(4096)
def _tag(code: str) -> str:
    base, *rest = _parts(code.strip("><"))
    base = _listed()[0].get(base, base)
    if base in _ALIASES:
        return _ALIASES[base]
    for part in rest:
        if base == "zh" and (script := _CHINESE.get(part, part.title())) in {"Hans", "Hant"}:
            return f"zh-{script}"
        if base == "pt" and part in {"br", "pt"}:
            return f"pt-{part.upper()}"
    return base


def base_of(code: str) -> str:
    """Return the language of a code, without script and region."""
    return tag(code).partition("-")[0]


def script_in(code: str) -> str:
    """Return the script that a code names, by its code in small letters; "" where it names none."""
    _, *rest = _parts(code[:LONGEST].strip("><"))
    script = next((part for part in rest if len(part) == 4 and part.isalpha()), "")
    return {"kore": "hang", "aran": "arab"}.get(script, script)


def is_usual(code: str) -> bool:
    """Whether all that a code has beside its language is a region or a script: no misspelling."""
    _, *rest = _parts(code)
    return all(map(_PART.fullmatch, rest))


def tags(codes: Iterable[str]) -> dict[str, str]:
    """Return the tag of each code, and its script where a language has several among them."""
    scripts: dict[str, set[str]] = {}
    for code in (codes := [*codes]):
        scripts.setdefault(tag(code), set()).update({script_in(code)} - {""})
    return {
        code: f"{one}-{script.title()}" if script and len(scripts[one]) > 1 else one
        for code in codes
        for one, script in [(tag(code), script_in(code))]
    }


def name_of(code: str) -> str:
    """Return the English name of a language, or its tag where it has none here."""
    base, _, part = tag(code).partition("-")
    script = script_in(code)
    part = _VARIANTS.get(part or script.title(), SCRIPT_NAMES.get(script, script).title())
    return _listed()[1].get(base, base) + (f" ({part})" if part else "")


@lru_cache(1024)
def language_named(text: str) -> str | None:
    """Return the language that a text is the code or the name of; None where it is none.

    Names are English, or those that head columns elsewhere; a region may follow: `English (US)`.
    """
    name, names = _REGION.sub("", text.strip().lower()), _listed()[1]
    if _CODE.fullmatch(name) and (base := base_of(name)) in names:
        return base
    known = (code for code, each in names.items() if each.lower() == name)
    return next(known, None) or _listed_under(name, _NAMES)


def side_named(text: str) -> str | None:
    """Return `source` or `target` where a text names that side of a table; None otherwise."""
    return _listed_under(text.strip().lower(), _SIDES)


def _listed_under(word: str, words: dict[str, str]) -> str | None:
    return next((key for key, some in words.items() if word in some.split()), None)


def resolve(asked: str, codes: Iterable[str]) -> str | None:
    """Return the code of a model that means what was asked for; None where there is none, or two.

    A code without script or region means any of them, but of the scripts of a language, other than
    Chinese, none.
    """
    found = meant(asked, codes)
    return found[0] if len(found) == 1 else None


def resolve_target(asked: str, codes: Iterable[str]) -> str | None:
    """Return the same of what models write: whose code is plain `zh` do not write traditional."""
    found = resolve(asked, codes)
    return None if found and (tag(asked), tag(found)) == ("zh-Hant", "zh") else found


def meant(asked: str, codes: Iterable[str]) -> list[str]:
    """Return the code that `resolve` finds; of a language in several scripts one of each."""
    codes = sorted(codes, key=tag)  # simplified Chinese before traditional
    if asked in codes:
        return [asked]
    wanted, base, script = tag(asked), base_of(asked), script_in(asked)
    alike = [code for code in codes if base_of(code) == base]
    if base != "zh":  # whose scripts are in its tags
        alike = [code for code in alike if not script or script_in(code) in {"", script}]
    exact = [code for code in alike if tag(code) == wanted]
    found = exact or [code for code in alike if base in {wanted, tag(code)}]
    found = [code for code in found if script_in(code) == script] or found
    parts = {*_parts(asked)}
    found.sort(key=lambda code: -len(parts.intersection(_parts(code))))
    each: dict[str, str] = {}
    for code in found:
        each.setdefault("" if base == "zh" else script_in(code), code)
    return [*each.values()]


def covers(asked: str, code: str) -> bool:
    """Whether what is in one language is in the one that is asked for, as far as codes tell it.

    A language whose variant is not told may be in another than the one that is asked for.
    """
    is_other = tag(asked) not in {tag(code), base_of(code)}
    return not is_other and len({script_in(asked), script_in(code)} - {""}) < 2


def _parts(code: str) -> list[str]:
    return code.replace("_", "-").lower().split("-")


def label_of(code: str) -> str:
    """The name that `likely_language` has for a language: Norwegian is one for it, and Kurdish."""
    base = base_of(code)
    return {"nb": "no", "mo": "ro", "sdh": "ku"}.get(base, base)


@lru_cache(1 << 16)
def script_of_letter(letter: str) -> str:
    """The first word of the name of a letter, of whatever width, in Unicode: LATIN, CJK."""
    plain = unicodedata.normalize("NFKC", letter)[0]
    return re.split("[ -]", unicodedata.name(plain, "unnamed"))[0]
