"""Codes of languages as clients, models and publishers write them, and the language of a text."""

import unicodedata
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import chain
from typing import Any

SURE = 0.5
"""The probability from which a language is named; below, three candidates are."""
SAMPLE = 2000
"""Characters of a text that are looked at."""

_ISO_639 = """
aa:aar ab:abk ae:ave af:afr ak:aka am:amh an:arg ar:ara,arb as:asm av:ava ay:aym,ayr
az:aze,azj ba:bak be:bel bg:bul bi:bis bm:bam bn:ben bo:bod,tib br:bre bs:bos ca:cat ce:che
ch:cha co:cos cr:cre cs:ces,cze cu:chu cv:chv cy:cym,wel da:dan de:deu,ger dv:div dz:dzo ee:ewe
el:ell,gre en:eng eo:epo es:spa et:est,ekk eu:eus,baq fa:fas,per,pes ff:ful,fuv fi:fin fj:fij
fo:fao fr:fra,fre fy:fry ga:gle gd:gla gl:glg gn:grn gu:guj gv:glv ha:hau he:heb hi:hin ho:hmo
hr:hrv ht:hat hu:hun hy:hye,arm hz:her ia:ina id:ind ie:ile ig:ibo ii:iii ik:ipk io:ido
is:isl,ice it:ita iu:iku ja:jpn jv:jav ka:kat,geo kg:kon ki:kik kj:kua kk:kaz kl:kal km:khm
kn:kan ko:kor kr:kau,knc ks:kas ku:kur,kmr kv:kom kw:cor ky:kir la:lat lb:ltz lg:lug li:lim
ln:lin lo:lao lt:lit lu:lub lv:lav,lvs mg:mlg,plt mh:mah mi:mri,mao mk:mkd,mac ml:mal mn:mon,khk
mr:mar ms:msa,may,zsm mt:mlt my:mya,bur na:nau nb:nob nd:nde ne:nep,npi ng:ndo nl:nld,dut nn:nno
no:nor nr:nbl nv:nav ny:nya oc:oci oj:oji om:orm,gaz or:ori,ory os:oss pa:pan pi:pli pl:pol
ps:pus,pbt pt:por qu:que,quy rm:roh rn:run ro:ron,rum ru:rus rw:kin sa:san sc:srd sd:snd se:sme
sg:sag si:sin sk:slk,slo sl:slv sm:smo sn:sna so:som sq:sqi,alb,als sr:srp ss:ssw st:sot su:sun
sv:swe sw:swa,swh ta:tam te:tel tg:tgk th:tha ti:tir tk:tuk tl:tgl,fil tn:tsn to:ton tr:tur
ts:tso tt:tat tw:twi ty:tah ug:uig uk:ukr ur:urd uz:uzb,uzn ve:ven vi:vie vo:vol wa:wln wo:wol
xh:xho yi:yid,ydd yo:yor za:zha zh:zho,chi,cmn zu:zul
"""
"""Two letters of ISO 639-1, and the three of 639-2 and 639-3 that mean the same or a part of it."""

_SHORT = {
    three: two
    for two, _, threes in (pair.partition(":") for pair in _ISO_639.split())
    for three in threes.split(",")
}
_CHINESE = {"cn": "Hans", "sg": "Hans", "tw": "Hant", "hk": "Hant", "mo": "Hant"}
_ALIASES = {"zt": "zh-Hant", "pb": "pt-BR", "iw": "he", "in": "id", "ji": "yi"}
"""Codes of LibreTranslate, and those that ISO has withdrawn."""


@cache
def tag(code: str) -> str:
    """Return a code in one form: `zho_Hans`, `zh_CN` and `zh-hans` are `zh-Hans`, `en_XX` is `en`.

    Of scripts those of Chinese are kept, of regions those of Portuguese.
    """
    base, *rest = code.strip("><").replace("_", "-").lower().split("-")
    base = _SHORT.get(base, base)
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


def resolve(asked: str, codes: Iterable[str]) -> str | None:
    """Return the code of a model that means what was asked for; None where there is none.

    A code without script or region means any of them.
    """
    codes = sorted(codes, key=tag)  # simplified Chinese before traditional
    if asked in codes:
        return asked
    wanted, base = tag(asked), base_of(asked)
    alike = [code for code in codes if base_of(code) == base]
    exact = [code for code in alike if tag(code) == wanted]
    vague = [code for code in alike if base in {wanted, tag(code)}]
    return next(iter(exact or vague), None)


@dataclass(frozen=True, slots=True)
class Candidate:
    """A language that a text may be in."""

    language: str
    confidence: float


@dataclass(frozen=True, slots=True)
class Detected:
    """The language of a text: its tag, or null where it is unsure; and the three likeliest."""

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
"""The languages that are written in a script, by the first word of its characters' names."""
_BOTH = frozenset(["sr", "uz", "ku", "ks"])
_ONLY = frozenset(chain(*SCRIPTS.values())) - _BOTH
"""Languages that are not written in Latin letters."""


class LanguageDetector:
    """Names the language of a text, among those that the server's models read."""

    def __init__(self, codes: Iterable[str]) -> None:
        self._tags = sorted({tag(code) for code in codes})

    def detect(self, text: str) -> Detected:
        """Return the language of a text: by its script, then by its words."""
        scripts = _scripts(text[:SAMPLE])
        tags = [each for each in self._tags if _can_be(each, scripts)]
        if not scripts or not tags:
            return Detected()
        bases = sorted({base_of(each) for each in tags})
        ranked = [(bases[0], 1.0)] if len(bases) == 1 else _ranked(text[:SAMPLE], bases)
        found = [Candidate(self._written(base, text, tags), share) for base, share in ranked[:3]]
        best = found[0]
        sure = best.confidence >= SURE
        return Detected(best.language if sure else None, best.confidence, tuple(found))

    @staticmethod
    def _written(base: str, text: str, tags: Sequence[str]) -> str:
        """The tag of a language: of Chinese by its characters, else the one that is served."""
        if base == "zh":
            return chinese(text[:SAMPLE])
        return next(each for each in tags if base_of(each) == base)


def chinese(text: str) -> str:
    """Return `zh-Hant` for a text of traditional characters, else `zh-Hans`.

    Those of GB 2312 that Big5 lacks are simplified, those of Big5 that GB 2312 lacks traditional.
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


def _scripts(text: str) -> Counter[str]:
    """How many letters of each script a text has."""
    names = (unicodedata.name(char, "").split(maxsplit=1) for char in text if char.isalpha())
    return Counter(name[0] for name in names if name)


def _can_be(code: str, scripts: Counter[str]) -> bool:
    """Whether a language is written in the script that most letters are of."""
    if not scripts:
        return False
    language, kana = base_of(code), scripts["HIRAGANA"] + scripts["KATAKANA"]
    if "CJK" in scripts and kana * 10 > scripts["CJK"]:
        return language == "ja"
    most = scripts.most_common(1)[0][0]
    if most in SCRIPTS:
        return language in SCRIPTS[most]
    return language not in _ONLY


def _ranked(text: str, bases: Sequence[str]) -> list[tuple[str, float]]:
    """The languages by the probability of a text, as far as the identifier knows them."""
    shares = {code: share for code, share in _identifier().rank(text) if code in bases}
    total = sum(shares.values())
    if not total:
        return [(bases[0], 0.0)]
    return [(code, share / total) for code, share in shares.items()]


@cache
def _identifier() -> Any:  # noqa: ANN401 -- without annotations
    """The model of py3langid, which takes half a second to read."""
    from py3langid.langid import MODEL_FILE, LanguageIdentifier

    return LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)
