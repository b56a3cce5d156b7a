"""Guessing the encoding of bytes that are not UTF-8, by how plausible each one's text is.

The less surprising its characters, the more plausible a reading. Surprise is in natural logarithms
of rough frequencies. All readings are of the same bytes, so their sums can be compared.
"""

import re
from collections import Counter
from collections.abc import Callable
from functools import partial

from dragoman.errors import InputError

SHOWN = 12
"""Number of characters shown in a message on each side of the first one that is not UTF-8."""

_ASCII, _USUAL, _ORDINARY, _RARE = 3, 6, 9, 14
"""Surprise of ASCII characters and, in East Asian scripts, of those that make up half of a text, of
those that the standard of an encoding lists first, and of all others."""
_AMONG_LATIN = 5
"""Additional surprise of a character that touches a Latin letter and no other of its script."""
_IN_PLACE, _SIGN, _OUT_OF_PLACE = 5, 8, 10
"""Surprise of an alphabet's letters and usual signs, of other signs, and of letters where words do
not have them."""
_OLD, _SELDOM = 5, 10
"""Surprise of a file of an old Mac, as Excel still writes there, and of one in Greek, Hebrew or
Thai, which are rarer."""
_PLAUSIBLE = 7
"""Surprise per non-ASCII byte from which a reading is not plausible."""

_LETTERS = "À-ÖØ-öø-ÿŠšŽžŒœŸ"
_WESTERN = re.compile(
    rf"(?<=[A-Za-z])[{_LETTERS}]{{1,2}}(?![{_LETTERS}])"
    rf"|(?<![{_LETTERS}])[{_LETTERS}]{{1,2}}(?=[A-Za-z])"
    r"|(?<![^\0-\x7f«»“‘„\xa0])[àáâåäæèéêíìòóôöøùúÀÁÅÈÉÊÍÓÔÖØÚ](?![^\0-\x7f«»”’\xa0])"
    r"|[’‘“”„‚«»‹›–—…•€£§°©®™¿¡½¼¾ºª²³µ±×÷·†‡¶¥¢‰¬¦¤ƒˆ˜´¨¸¯\xa0\xad]"
)
"""Letters as in Western European words, one or two among ASCII letters, and signs."""
_MISPLACED = re.compile(
    "(?<=[a-zß-öø-ÿšœž])[À-ÖØ-ÞŠŽŸ‡ˆ§]|(?<=[A-Za-zß-öø-ÿšœž])[ŠŽŸ‡ˆ‹›§](?=[a-zß-ÿ])"
)
"""Capitals and signs inside words, where the letters of another encoding are misread."""
_NOT_WESTERN = re.compile("(?![ŒœŠšŽž])[Ā-ž]")
_VOWEL = "aeiouyáéíóúýěůőűąęăâîäöüôāēīūėįų"
_CENTRAL = re.compile(
    rf"č(?=[{_VOWEL.replace('o', '')}])|ć(?=[{_VOWEL.replace('i', '')}])|ř(?=[aiouáíóúůěý])"
    rf"|[łťź](?=[{_VOWEL}])|(?<=[{_VOWEL}])[ćłťź](?![^\W_])|(?<=[^\W\d_])[żş](?=[{_VOWEL}])"
    "|(?<=[bcdfgklmnprstwz])ą(?=[bcdfgklmnprstwz])",
    re.IGNORECASE,
)
_BALTIC = re.compile(
    rf"č(?=[{_VOWEL.replace('o', '')}])|(?<![^\W_])š(?=[{_VOWEL}])|ē(?=[bdfgjklmnprstvz])",
    re.IGNORECASE,
)
"""Central European and Baltic letters in places where no word has the Western European letters of
the same bytes: é occurs there, but è (č) not before a vowel, and no word begins with ð (š)."""
_FREQUENT = re.compile(  # seven letters of ten
    "(?<=[а-яёА-ЯЁ])[оеаинтсрвл](?![A-Za-z])|(?<![A-Za-z])[оеаинтсрвл](?=[а-яё])"
)
_CYRILLIC = re.compile(
    "(?<![а-яёіїєґўA-Za-z])[А-ЯЁІЇЄ](?![A-Za-z])|(?<=[А-ЯЁ])[А-ЯЁ]+(?![а-яё])"
    "|(?<![A-Za-z])[а-яёіїєґў](?![A-Za-z])|[’‘“”„«»–—…№€°§\xa0]"
)
"""The same for Cyrillic: lower case except at the beginning of words, and not among Latin ones."""
_CYRILLIC_WORD, _LATIN = re.compile("[а-яёіїєґўА-ЯЁІЇЄ]{2}"), re.compile("[A-Za-z]")
_GREEK_FREQUENT = re.compile("(?<=[Α-ώ])[αοιετνησςρ](?![A-Za-z])|(?<![A-Za-z])[αοιετνησρ](?=[α-ώ])")
_GREEK = re.compile(
    "(?<![Ά-ώA-Za-z])[Ά-Ϋ](?![A-Za-z])|(?<=[Α-Ϋ])[Α-Ϋ]+(?![ά-ώ])|(?<=[Ά-ώ])ς(?![Ά-ώA-Za-z])"
    "|(?<![A-Za-z])[ά-ία-ρτ-ωό-ώ](?![A-Za-z])|(?<![A-Za-z])σ(?=[ά-ώ])|[’‘“”„«»–—…€°§·\xa0]"
)
"""The same for Greek, where ς ends words and σ does not, and no letter has a diaeresis."""
_HEBREW_FREQUENT = re.compile(
    "(?<=[א-ת])[יוהלארבתשמ](?![A-Za-z])|(?<![A-Za-z])[יוהלארבתשמ](?=[א-ת])"
)
_HEBREW = re.compile(
    "(?<=[א-ת])[םןץףך](?![א-תA-Za-z])|(?<![A-Za-z])[א-יכלמנ-עפצ-ת](?![A-Za-z])|[’‘“”„–—…₪°§\xa0]"
)
"""The same for Hebrew, where five letters only end words."""
_THAI_FREQUENT = re.compile("[านรอกเงมยวลดทตสหัี่้](?=[ก-๛])|(?<=[ก-๛])[านรอกงมยวลดทตสหัี่้]")
_THAI = re.compile(
    "[ก-ฮๆฯ๐-๙]|(?<=[ก-ฮ])[ัิ-ฺ็-๎]|(?<=[ัิ-ู])[็-๎]|(?<=[ก-ฮัิ-ู็-๎า])[ะาำ]|[เ-ไ](?=[ก-ฮ])|[’‘“”–—…\xa0]"
)
"""The same for Thai, where vowels and tones are next to consonants."""
_GREEK_WORD, _HEBREW_WORD = re.compile("[Ά-ώ]{2}"), re.compile("[א-ת]{2}")
_THAI_WORD = re.compile("[ก-๛]{2}")
_LONE = re.compile(r"(?<=[A-Za-z])[^\0-\x7f](?![^\0-\x7f])|(?<![^\0-\x7f])[^\0-\x7f](?=[A-Za-z])")
"""A character between Latin letters, such as two accented ones that are read as one."""
_HAN = (
    "的一是不了在人有我他这个们中来上大为和国地到以说时要就出会可也你对生能而子那得于着下自之"
    "年过发后作里用道行所然家种事成方多经么去法学如都同现当没动面起看定天分还进好小部其些主样"
    "理心她本前开但因只从想实日者意无力它与长把机十民第公此已工使情明性知全三又关点正外将两高"
    "這個們來為國說時會對於著過發後裡種經麼學現當沒動還進樣開從實無與長機關點將兩間問頭見話"
)
_KANA = "".join(map(chr, range(0x3041, 0x3100)))
_HANGUL = (
    "이다는을의에가고한하지로은를도나사리어기자인서해들아그있대"
    "수시만니었부라일정과보여스적전장면구제게했요습"
)
_POINTS = "，。、！？：；“”‘’（）《》〈〉「」『』【】…—·　～"


def not_utf8(
    place: str, line: bytes, start: int, others: bytes = b"", in_utf8: int = 0
) -> InputError:
    """Return the error for a line that is not UTF-8 at `start`, with the likeliest encodings first.

    The error shows what each encoding reads there. `others` are other lines of the file, which may
    tell more about its encoding; line `in_utf8`, if not 0, is UTF-8 and not ASCII.
    """
    mixed = f"; but line {in_utf8} is UTF-8, so convert or remove only lines that are not"
    return InputError(
        f"{place} is not UTF-8: byte 0x{line[start]:02x} at position {start + 1}; "
        f"{_conversion(line, start, others)}{mixed if in_utf8 else ''}."
    )


def likeliest(data: bytes) -> str | None:
    """Return the encoding that reads these bytes most plausibly; None if none is plausible."""
    found = next(iter(_readings(data)), None)
    return found if found and _is_plausible(data, found) else None


def _conversion(line: bytes, start: int, others: bytes) -> str:
    """Say how to convert a file: each encoding that can read a line of it, with what it reads.

    The line is read in full, and shown around `start`, the first byte that is not UTF-8.
    """
    readings: dict[str, str] = {}  # the encodings, by what they read
    data = line + b" " + others if others else line
    for encoding, text in _readings(data).items():
        first = text[: len(line.decode(encoding))]
        if not all(each.isprintable() or each in "\t\xa0\xad\u3000" for each in first):
            continue
        before = len(line[:start].decode(encoding, "ignore"))
        shown = first[max(0, before - SHOWN) : before + SHOWN].strip()
        readings.setdefault(shown, encoding)
    if not readings:
        return "correct the line, or save the file as UTF-8 with the program that wrote it"
    choices = ", ".join(f"{name.upper()} reads {text!r}" for text, name in readings.items())
    best = next(iter(readings.values()))
    return (
        f"correct it, or convert the file from the encoding that reads it right ({choices}): "
        f"iconv -f {best.upper() if _is_plausible(data, best) else 'ENCODING'} -t UTF-8 OLD > NEW"
    )


def _readings(data: bytes) -> dict[str, str]:
    """Return the text by each encoding that can read all of the bytes, most plausible first."""
    found = list[tuple[int, str, str]]()
    for encoding in ENCODINGS:
        try:
            text = data.decode(encoding)
        except UnicodeDecodeError:
            continue
        if all(each.isprintable() or each in "\xa0\xad\u3000" for each in _beyond(text)):
            found.append((_surprise(text, encoding) + _ASCII * _in_ascii(text), encoding, text))
    return {encoding: text for _, encoding, text in sorted(found, key=lambda each: each[0])}


def _is_plausible(data: bytes, encoding: str) -> bool:
    text = data.decode(encoding)
    return _surprise(text, encoding) < _PLAUSIBLE * (len(data) - _in_ascii(text))


def _surprise(text: str, encoding: str) -> int:
    """Return the surprise of non-ASCII characters, and of a file in this encoding."""
    of_file, of_characters = ENCODINGS[encoding]
    return of_file + of_characters(text)


def _in_ascii(text: str) -> int:
    return len(text.encode("ascii", "ignore"))


def _beyond(text: str) -> Counter[str]:
    """Count each non-ASCII character."""
    return Counter({each: n for each, n in Counter(text).items() if not each.isascii()})


def _western(text: str) -> int:
    """Return the surprise of non-ASCII characters, read as a Western European alphabet."""
    misplaced = _IN_PLACE * len(_MISPLACED.findall(text))
    return _of_alphabet(_WESTERN.sub("", text)) + _IN_PLACE * _matched(_WESTERN, text) + misplaced


def _latin(frequent: re.Pattern[str], text: str) -> int:
    """Return the surprise as another Latin alphabet, with letters `frequent` in their places."""
    as_western = _western(_NOT_WESTERN.sub("ñ", text))
    often = _matched(frequent, text)
    return as_western + len(_NOT_WESTERN.findall(text)) - (_IN_PLACE + 1 - _ASCII) * often


def _lettered(
    word: re.Pattern[str], in_place: re.Pattern[str], frequent: re.Pattern[str], text: str
) -> int:
    """Return the surprise as another alphabet, of which a Latin text contains whole words."""
    if not word.search(text) and _LATIN.search(text):
        return _RARE * sum(_beyond(text).values())
    often = _matched(frequent, text)
    rest = in_place.sub("", text)
    return _of_alphabet(rest) + _USUAL * (_matched(in_place, text) - often) + _ASCII * often


def _matched(pattern: re.Pattern[str], text: str) -> int:
    return sum(map(len, pattern.findall(text)))


def _of_alphabet(text: str) -> int:
    """Return the surprise of letters and signs that are not where words have them."""
    return sum(
        n * (_OUT_OF_PLACE if each.isalpha() else _SIGN) for each, n in _beyond(text).items()
    )


def _eastern(encoding: str, first: range, usual: str, text: str) -> int:
    """Return the surprise as two-byte characters: `usual`, with a `first` byte, or others."""
    surprise = _AMONG_LATIN * len(_LONE.findall(text))
    for each, count in _beyond(text).items():
        if each in usual or each in _POINTS or "！" <= each <= "～":
            surprise += _USUAL * count
        else:
            written = each.encode(encoding, "ignore") or b"\0"
            surprise += (_ORDINARY if written[0] in first else _RARE) * count
    return surprise


ENCODINGS: dict[str, tuple[int, Callable[[str], int]]] = {
    "cp1252": (0, _western),
    "cp1250": (0, partial(_latin, _CENTRAL)),
    "cp1257": (0, partial(_latin, _BALTIC)),
    "macintosh": (_OLD, _western),
    "cp1251": (0, partial(_lettered, _CYRILLIC_WORD, _CYRILLIC, _FREQUENT)),
    "koi8-r": (0, partial(_lettered, _CYRILLIC_WORD, _CYRILLIC, _FREQUENT)),
    "cp1253": (_SELDOM, partial(_lettered, _GREEK_WORD, _GREEK, _GREEK_FREQUENT)),
    "iso-8859-7": (_SELDOM, partial(_lettered, _GREEK_WORD, _GREEK, _GREEK_FREQUENT)),
    "cp1255": (_SELDOM, partial(_lettered, _HEBREW_WORD, _HEBREW, _HEBREW_FREQUENT)),
    "cp874": (_SELDOM, partial(_lettered, _THAI_WORD, _THAI, _THAI_FREQUENT)),
    "gb18030": (0, partial(_eastern, "gb2312", range(0xB0, 0xD8), _HAN)),
    "big5": (0, partial(_eastern, "big5", range(0xA4, 0xC7), _HAN)),
    "shift_jis": (0, partial(_eastern, "shift_jis", range(0x88, 0x99), _KANA)),
    "euc-jp": (0, partial(_eastern, "euc-jp", range(0xB0, 0xD0), _KANA)),
    "euc-kr": (0, partial(_eastern, "euc-kr", range(0xB0, 0xC9), _HANGUL)),
}
"""The encodings of files other than UTF-8, by names that Python and iconv share, the surprise of a
file in one, and the function that computes that of its characters. Ties go to the first."""
