r"""What can be wrong with a pair of sentences, as rules that each see one pair.

They are ordered by their cost to a model: copies and the wrong language do the most harm
(Khayrallah and Koehn 2018). The thresholds are those of OpusFilter and OpusCleaner where these
agree, and each is a setting.

The length of a sentence is counted in words. In scripts without spaces between words, a word counts
as 1.5 characters in Chinese, Japanese and Yi, as in dictionary-based Chinese segmentation, and as 4
letters, not counting their signs, in Thai, Lao, Khmer, Burmese and Tibetan.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from unicodedata import category

from dragoman.corpus.config import CleaningConfig
from dragoman.data.checks import script_for, script_of
from dragoman.languages import LangCodes, label_of
from dragoman.tasks.translate.preserved import differences
from dragoman.text.detection import by_main_script, is_told, likely_language, without_asides
from dragoman.text.sentences import SPACED_ENDS, UNSPACED_ENDS

Rule = Callable[[str, str], bool]
"""Whether something is wrong with a source and its target."""


def rules_of(
    config: CleaningConfig, languages: LangCodes, scripts: LangCodes = (None, None)
) -> dict[str, Rule]:
    """Return the rules by name, in order; "language" only if a language is given.

    `scripts` are those of languages whose codes do not determine them.
    """

    def in_wrong_language(src: str, tgt: str) -> bool:
        sides, sure = zip((src, tgt), languages, scripts, strict=True), config.min_language
        return any(code and is_in_another(text, code, sure, script) for text, code, script in sides)

    def out_of_ratio(src: str, tgt: str) -> bool:
        shorter, longer = sorted((words(src), words(tgt)))
        return longer + SPARE > config.max_ratio * (shorter + SPARE)

    def differs(src: str, tgt: str) -> bool:
        return bool(differences(src if tgt.startswith("<") else _MARK.sub("", src), tgt))

    return {
        "encoding": lambda src, tgt: is_damaged(src) or is_damaged(tgt),
        "empty": lambda src, tgt: not (has_text(src) and has_text(tgt)),
        "copy": lambda src, tgt: similarity(src, tgt) >= config.max_similarity,
        **({"language": in_wrong_language} if any(languages) else {}),
        "length": lambda src, tgt: max(words(src), words(tgt)) > config.max_words,
        "ratio": out_of_ratio,
        "word": lambda src, tgt: max(longest_word(src), longest_word(tgt)) > config.max_word,
        "repetition": lambda src, tgt: repeats_itself(src, tgt, config.max_repeats),
        "letters": lambda src, tgt: min(letters(src), letters(tgt)) < config.min_letters,
        "preserved": differs,
        "punctuation": lambda src, tgt: marks_apart(src, tgt) > config.max_marks,
    }


# ---------------------------------------------------------------- characters

_SPECIAL = "€‚ƒ„…†‡ˆ‰Š‹ŒŽ‘’“”•–—˜™š›œžŸ"
"""The characters of bytes 80 to 9F in Windows-1252."""
_MOJIBAKE = re.compile(f"[ÃÂ][\x80-\xbf{_SPECIAL}]|â€[\x80-\xbf{_SPECIAL}]|ï¿½")
_DAMAGED = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x84\x86-\x9f\ufffd\ufffe\uffff\ud800-\udfff]")


def is_damaged(text: str) -> bool:
    """Return whether a text has control or invalid characters, or UTF-8 read as Windows-1252.

    A line with non-ASCII letters that is valid UTF-8 when encoded as Windows-1252 was misread; the
    letter é alone is not.
    """
    if text.isascii():
        return bool(_DAMAGED.search(text))
    return bool(_DAMAGED.search(text) or _MOJIBAKE.search(text)) or _is_misread(text)


def _is_misread(text: str) -> bool:
    try:
        text.encode("cp1252").decode()
    except UnicodeError:
        return False
    return True


_MARK = re.compile(r"^<[\w-]+> (?!.*</)")
"""The tag that `data back-translate --tag` writes before a synthetic source."""


def has_text(text: str) -> bool:
    """Return whether a text has a letter or a digit."""
    return any(map(str.isalnum, text))


def letters(text: str) -> float:
    """Return the share of letters, with their accents, among all but digits and white space.

    Dots in a row count as one mark, as do all ends of sentences; a Chinese character counts as two
    letters.
    """
    seen = [char for char in _END.sub(".", text) if not (char.isspace() or char.isdecimal())]
    seen += filter(str.isalpha, _CHARACTER.findall(text))
    if not seen:
        return 1.0
    return sum(char.isalpha() or char in "'’-" or is_sign(char) for char in seen) / len(seen)


def is_sign(char: str) -> bool:
    """Return whether a character is an accent or a vowel sign of the preceding letter."""
    return category(char)[0] == "M"


# ---------------------------------------------------------------- words

SPARE = 2
"""Words added to both sides before comparing them: short sentences differ more."""
CHARACTERS, LETTERS = 1.5, 4.0
"""Characters per word in scripts such as Chinese, and letters per word in those such as Thai."""
_WIDE = "\u2e80-\u9fff\ua000-\ua4cf\uf900-\ufaff\U00020000-\U0003ffff"
_TIBETAN = "\u0f00-\u0fff"
_DENSE = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\ua9e0-\ua9ff\uaa60-\uaa7f"
"""Chinese, Japanese, Yi; Tibetan, with separated syllables; Thai, Lao, Burmese, Khmer."""
_SIGNS = (
    "".join(filter(is_sign, map(chr, range(0x300, 1 << 16)))) + "\U0001e944-\U0001e94a"
)  # Adlam
_SIGN = re.compile(f"[{_SIGNS}]+")
_WORD = re.compile(rf"[^\s{_WIDE}{_DENSE}{_TIBETAN}]+")
_CHARACTER = re.compile(f"[{_WIDE}]")
_LETTER = re.compile(rf"[{_DENSE}{_TIBETAN}](?<=\w)")
_PART = rf"[^\W_{_WIDE}{_DENSE}]"
_TOKEN = re.compile(rf"[{_WIDE}{_DENSE}][{_SIGNS}]*|{_PART}+(?:[{_SIGNS}]++{_PART}*+)*+")


@lru_cache(8)
def words(text: str) -> float:
    """Return the length of a text in words."""
    characters, letters = len(_CHARACTER.findall(text)), len(_LETTER.findall(text))
    return len(_WORD.findall(text)) + characters / CHARACTERS + letters / LETTERS


def longest_word(text: str) -> int:
    """Return the length of the longest word, without signs; skips addresses and paths."""
    found = _WORD.findall(_SIGN.sub("", without_addresses(text)))
    return max(map(len, found), default=0)


def without_addresses(text: str) -> str:
    """Remove the URLs, paths and mail addresses from a text."""
    found = text.split()
    if _ADDRESS.search(text):
        found = [word for word in found if not _ADDRESS.search(word)]
    return " ".join(found)


_ADDRESS = re.compile(r"[/\\]|.@.")


@lru_cache(8)
def tokens(text: str) -> tuple[str, ...]:
    """Return the words of a text in lower case; characters in scripts without word spaces."""
    return tuple(_TOKEN.findall(text.lower()))


def similarity(src: str, tgt: str) -> float:
    """Return the share of words that two texts have in common; 0 for only names and numbers.

    Addresses do not count as words.

    `2 |A & B| / (|A| + |B|)` of the multisets (Dice 1945).
    """
    one, two = (tokens(without_addresses(text)) for text in (src, tgt))
    if min(len(one), len(two)) < FEW and not _reads(src):
        return 0.0
    both = sum((Counter(one) & Counter(two)).values())
    return 2 * both / max(1, len(one) + len(two))


FEW = 4
"""Number of words from which a text is more than a name."""


def _reads(text: str) -> bool:
    """Return whether a short text has a word in lower case, unlike names and numbers."""
    return any(word.isalpha() and word.islower() for word in text.split())


def repeats_itself(src: str, tgt: str, most: float) -> bool:
    """Return whether words repeat in a row more than `most` times, on one side only."""
    frequent = (max(Counter(tokens(text)).values(), default=0) for text in (src, tgt))
    if max(frequent) <= most:  # the usual case: no word occurs often enough
        return False
    counts = sorted(map(most_repeats, (src, tgt)))
    return counts[0] != counts[1] and counts[1] > most


def most_repeats(text: str) -> int:
    """Return how often one to four words repeat in a row, at most."""
    found = tokens(text)
    best = 1
    for size in range(1, 5):
        count = 1
        for place in range(size, len(found) - size + 1):
            same = found[place : place + size] == found[place - size : place]
            count = count + 1 if same else 1
            best = max(best, 1 + (count - 1) // size)
    return best


_END = re.compile(rf"(?!\.[^\W{_WIDE}])[{SPACED_ENDS}{UNSPACED_ENDS}]+|፡፡")
"""Ends of sentences; not the full stop within a word (3.14, i.e., list.index)."""


def marks_apart(src: str, tgt: str) -> int:
    """Return the difference in the number of ends of sentences."""
    return abs(len(_END.findall(src)) - len(_END.findall(tgt)))


# ---------------------------------------------------------------- languages

LEAST_LETTERS = 20
"""Number of letters from which the language of a text can be identified."""

_WITH_CHINESE = ("HIRAGANA", "HANGUL")


USUAL = 0.9
"""Minimum share of texts in the script of their language, if its code does not determine it."""


def usual_script(texts: Iterable[str]) -> str | None:
    """Return the script of nearly all texts that have letters; None if there are several."""
    found = Counter(filter(None, (script_of(without_asides(text)) for text in texts)))
    return next((name for name, n in found.most_common(1) if n >= USUAL * found.total()), None)


def is_in_another(text: str, language: str, sure: float, script_known: str | None = None) -> bool:
    """Return whether a text is in another script than its language, or surely in another language.

    Addresses and placeholders do not count, nor do Latin names in a text of another script.
    """
    text = without_asides(text)
    script, wanted = script_of(text), script_for(language) or script_known
    if script and wanted and script not in {wanted, "CJK" if wanted in _WITH_CHINESE else wanted}:
        return True
    text = by_main_script(text)
    if sum(map(str.isalpha, text)) < LEAST_LETTERS or not is_told(language):
        return False
    found, share = likely_language(text)
    return found != label_of(language) and share >= sure


def likely_side(texts: Sequence[str]) -> str | None:
    """Return the language of most longer texts; None unless half of them are surely in one."""
    long = [text for text in texts if sum(map(str.isalpha, text)) >= LEAST_LETTERS]
    likely = map(likely_language, long)  # zxx means no language
    found = Counter(code for code, share in likely if share >= SURELY and code != "zxx")
    return next((code for code, count in found.most_common(1) if 2 * count > len(long)), None)


SURELY = 0.5
"""Minimum confidence for a text to count for its side."""
