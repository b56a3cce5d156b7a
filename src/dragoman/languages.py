"""Language codes, as clients, models, publishers and files write them; scripts of letters."""

import re
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache, lru_cache

LONGEST = 35
"""Maximum number of characters of a code that are read."""

LangCodes = tuple[str | None, str | None]
"""The codes of source and target; None if unknown or not requested."""

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
"""Names of languages in column headers: in German, in Chinese and in the language itself."""
_SIDES = {
    "source": "source src term quelle quelltext quellsprache 原文 源文 术语 術語 源语言 源語言",
    "target": "target tgt translation ziel zieltext zielsprache 译文 譯文 翻译 目标语言 目標語言",
}
_REGION = re.compile(r"(?<!\s)\s*[(（][^()（）]*[)）]$")
_KIND = re.compile("(?<=source|target)[ _-](term|text)$")
_CODE = re.compile(r"[a-z]{2,3}([-_][a-z0-9]{2,8}){0,2}")
_VARIANTS = {"Hans": "simplified", "Hant": "traditional", "BR": "Brazilian", "PT": "European"}
_VARIANTS |= {"Cans": "Canadian syllabics", "Olck": "Ol Chiki", "Jpan": "", "Hang": ""}
"""Names of the script or region of a code; Japanese and Korean have one script each."""
_CHINESE = {"cn": "Hans", "sg": "Hans", "tw": "Hant", "hk": "Hant", "mo": "Hant"}
_CHINESE |= {"chs": "Hans", "cht": "Hant"}
_ALIASES = {"zt": "zh-Hant", "pb": "pt-BR", "iw": "he", "in": "id", "ji": "yi"}
_ALIASES |= {"chs": "zh-Hans", "cht": "zh-Hant", "enu": "en", "ptb": "pt-BR"}
"""Codes of LibreTranslate, those that ISO has withdrawn, and those that only Windows uses."""
_SCRIPTS = """
latn LATIN, cyrl CYRILLIC, arab ARABIC, hebr HEBREW, grek GREEK, deva DEVANAGARI, beng BENGALI,
guru GURMUKHI, gujr GUJARATI, orya ORIYA, taml TAMIL, telu TELUGU, knda KANNADA, mlym MALAYALAM,
sinh SINHALA, thai THAI, laoo LAO, tibt TIBETAN, mymr MYANMAR, khmr KHMER, geor GEORGIAN,
armn ARMENIAN, ethi ETHIOPIC, thaa THAANA, hans CJK, hant CJK, hani CJK, jpan HIRAGANA,
hang HANGUL, mong MONGOLIAN, tfng TIFINAGH, syrc SYRIAC, adlm ADLAM, nkoo NKO, cans CANADIAN,
cher CHEROKEE, olck OL, java JAVANESE, mtei MEETEI
"""
SCRIPT_NAMES = dict[str, str](each.split() for each in _SCRIPTS.split(","))
"""The word that names the script of a letter (`script_of_letter`), by ISO 15924 code."""
_LEFTWARDS = {"arab", "hebr", "thaa", "syrc", "nkoo", "adlm"}
"""Scripts that are written from right to left."""
_IN_THEM = re.compile(
    "acm|aeb|apc|ar|ary|arz|azb|ckb|dv|fa|he|ks|mzn|nqo|pnb|prs|ps|sd|syr|ug|ur|yi"
)
"""Languages that are usually written in these."""
_PART = re.compile(rf"[a-z]{{2}}|\d{{3}}|kore|aran|{'|'.join(SCRIPT_NAMES)}")
"""A region or a script in a code."""


@cache
def _listed() -> tuple[dict[str, str], dict[str, str]]:
    """Return the two-letter codes by three-letter ones, and the names by two-letter codes.

    Each line of the list contains a code of ISO 639-1, those of 639-2 and 639-3 with the same
    meaning or a part of it, and the name.
    """
    from importlib.resources import files  # most commands do not name a language

    lines = files("dragoman").joinpath("languages.txt").read_text("utf-8").splitlines()
    listed = [line.split(maxsplit=2) for line in lines]
    short = {three: two for two, threes, _ in listed for three in threes.split(",")}
    return short, {two: name for two, _, name in listed}


@dataclass(frozen=True, kw_only=True)  # without slots: some subclasses have another base
class LanguagePair:
    """The language of the source and that of its translation, for a multilingual model."""

    src_lang: str | None = None
    """Language of the source, as its code in a multilingual model."""
    tgt_lang: str | None = None
    """Language to translate into, as its code in a multilingual model."""

    @property
    def languages(self) -> LangCodes:
        """Source and target language."""
        return self.src_lang, self.tgt_lang


def tag(code: str) -> str:
    """Return a code in one form: `zho_Hans`, `zh_CN` and `zh-hans` are `zh-Hans`, `en_XX` is `en`.

    Scripts are kept only for Chinese, and regions only for Portuguese.
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
    """Return the lowercase code of the script that a language code names; "" if there is none."""
    _, *rest = _parts(code[:LONGEST].strip("><"))
    script = next((part for part in rest if len(part) == 4 and part.isalpha()), "")
    return {"kore": "hang", "aran": "arab"}.get(script, script)


def is_right_to_left(code: str) -> bool:
    """Return whether a language is written from right to left."""
    script = script_in(code)
    return script in _LEFTWARDS if script else _IN_THEM.fullmatch(base_of(code)) is not None


def is_usual(code: str) -> bool:
    """Return whether a code names only regions and scripts after its language: no misspelling."""
    _, *rest = _parts(code)
    return all(map(_PART.fullmatch, rest))


def tags(codes: Iterable[str]) -> dict[str, str]:
    """Return the tag of each code, with its script if its language has several among them."""
    scripts: dict[str, set[str]] = {}
    for code in (codes := [*codes]):
        scripts.setdefault(tag(code), set()).update({script_in(code)} - {""})
    return {
        code: f"{one}-{script.title()}" if script and len(scripts[one]) > 1 else one
        for code in codes
        for one, script in [(tag(code), script_in(code))]
    }


def name_of(code: str) -> str:
    """Return the English name of a language, or its tag if it is not listed."""
    base, _, part = tag(code).partition("-")
    script = script_in(code)
    part = _VARIANTS.get(part or script.title(), SCRIPT_NAMES.get(script, script).title())
    return _listed()[1].get(base, base) + (f" ({part})" if part else "")


@lru_cache(1024)
def language_named(text: str) -> str | None:
    """Return the language of which a text is the code or the name; None otherwise.

    Names are in English, or those of column headers in other languages. A region may follow, as in
    `English (US)`.
    """
    name, names = _REGION.sub("", text.strip().lower()), _listed()[1]
    if _CODE.fullmatch(name) and (base := base_of(name)) in names:
        return base
    known = (code for code, each in names.items() if each.lower() == name)
    return next(known, None) or _listed_under(name, _NAMES)


def side_named(text: str) -> str | None:
    """Return `source` or `target` if a text names that side of a table; None otherwise."""
    return _listed_under(_KIND.sub("", text.strip().lower()), _SIDES)


def _listed_under(word: str, words: dict[str, str]) -> str | None:
    return next((key for key, some in words.items() if word in some.split()), None)


def resolve(asked: str, codes: Iterable[str]) -> str | None:
    """Return the code of a model for the language asked for; None if there is none, or several.

    A code without script or region stands for any of them, but in a language with several scripts,
    except Chinese, for none.
    """
    found = meant(asked, codes)
    return found[0] if len(found) == 1 else None


def resolve_target(asked: str, codes: Iterable[str]) -> str | None:
    """Resolve a target language: models with plain `zh` do not write traditional Chinese."""
    found = resolve(asked, codes)
    return None if found and (tag(asked), tag(found)) == ("zh-Hant", "zh") else found


def meant(asked: str, codes: Iterable[str]) -> list[str]:
    """Return the code that `resolve` finds, or one per script of a language with several."""
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
    """Return whether text in `code` is in the language `asked`, as far as the codes tell.

    Text in a code without a variant may be in another variant than the one asked for.
    """
    is_other = tag(asked) not in {tag(code), base_of(code)}
    return not is_other and len({script_in(asked), script_in(code)} - {""}) < 2


def _parts(code: str) -> list[str]:
    return code.replace("_", "-").lower().split("-")


def label_of(code: str) -> str:
    """Return the label of `likely_language` for a language; Norwegian and Kurdish have one each."""
    base = base_of(code)
    return {"nb": "no", "mo": "ro", "sdh": "ku"}.get(base, base)


@lru_cache(1 << 16)
def script_of_letter(letter: str) -> str:
    """Return the first word of a letter's Unicode name, whatever its width: LATIN, CJK."""
    plain = unicodedata.normalize("NFKC", letter)[0]
    return re.split("[ -]", unicodedata.name(plain, "unnamed"))[0]
