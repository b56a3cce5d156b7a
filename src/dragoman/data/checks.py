"""Checks of a corpus of pairs: shifted lines, the wrong language, test pairs seen in training.

Each yields a warning with an example if something looks wrong. The thresholds are far from the
values of all corpora that they were measured on (docs/decisions.md).
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from unicodedata import is_normalized

import numpy as np
import numpy.typing as npt

from dragoman.languages import SCRIPT_NAMES, LangCodes, base_of, script_in, script_of_letter
from dragoman.wording import counted

Pair = tuple[str, str]
Lengths = npt.NDArray[np.integer]
"""Lengths of sources and targets, in characters or tokens; shape (2, number of pairs)."""

SAMPLE, SHOWN = 2000, 60
"""Number of evenly spaced pairs whose text is read, and of characters in an example."""
HALF, NEARLY_ALL = 0.5, 0.95
"""Share of identical pairs: in two languages, and in one, where most sentences need no
correction."""
ONE_LANGUAGE = 0.6
"""Shared words: 0.78 to 0.96 within a language and subject, at most 0.42 if not `RELATED`."""


def corpus_warnings(
    name: str,
    lengths: Lengths,
    pair_at: Callable[[int], Pair],
    languages: LangCodes = (None, None),
) -> Iterator[str]:
    """Yield warnings about a corpus, whose pairs are read by index (from 0).

    One language on both sides (summaries, dialogue, paraphrases) is normal unless `languages` names
    two. Such a corpus is not checked for shifted lines: an answer may be the next source.
    """
    if not lengths.size:
        return
    sample = {number: pair_at(number) for number in _evenly(lengths.shape[1], SAMPLE)}
    yield from (f"{name}: {found}" for found in prepared_warnings(sample))
    for side, language in enumerate(languages):
        if language:
            texts = {number + 1: pair[side] for number, pair in sample.items()}
            yield from (f"{name}: {found}" for found in _wrong_letters(texts, language))
    same = [number for number, (src, tgt) in sample.items() if src == tgt and script_of(src)]
    differ = _differ(languages)
    if len(same) > (HALF if differ else NEARLY_ALL) * len(sample):
        yield (
            f"{name}: source and target are the same text in {len(same) / len(sample):.0%} of the "
            f"pairs, such as line {same[0] + 1:,}, {_cut(sample[same[0]][0])}; check whether one "
            "is a copy of the other."
        )
    elif shared_words(sample.values()) > ONE_LANGUAGE:
        if differ:
            src, tgt = map(_cut, sample[0])
            yield (
                f"{name}: both sides seem to be in one language, and not in {languages[0]} and "
                f"{languages[1]}: line 1 is {src} with {tgt}; check the files."
            )
    elif shift := find_shift(lengths):
        yield f"{name}: {_describe(shift, pair_at)}"


def _evenly(count: int, most: int) -> list[int]:
    """Return at most `most` numbers below `count`, evenly spaced, including first and last."""
    return [int(number) for number in np.linspace(0, count - 1, min(count, most))]


def _cut(text: str) -> str:
    return repr(text if len(text) <= SHOWN else f"{text[:SHOWN]}...")


FEW, SOME = 3, 0.01
"""Minimum number and share of pairs with traces of a tool; no raw corpus here has any."""
_AS_CSV = "save the table as CSV, since a TSV knows no quotes"
PREPARED = (
    ("pieces of subword-nmt", re.compile(r"\S@@(?: |$)"), "sed -r 's/(@@ )|(@@ ?$)//g'", SOME),
    ("pieces of SentencePiece", re.compile(r"(?:^| )▁[^\W_]"), "spm_decode", SOME),
    (
        "tokens of Moses",
        re.compile(r"(?:^| )(?:&apos;[a-z]*|&quot;|&#(?:91|93|124);|@-@)(?= |$)"),
        "detokenizer.perl",
        SOME,
    ),
    ("tokens of OpenNMT", re.compile("\\S\uffed|\uffed\\S|\\S\uffe8\\S"), "pyonmttok", SOME),
    (
        "both texts, as for fast_align",
        re.compile(r"^[^|]+ \|\|\| [^|]+$"),
        r"sed 's/ ||| /\t/' OLD > NEW.tsv",
        NEARLY_ALL,
    ),
    ("doubled quotes", re.compile('^"(?:[^"]*""[^"]*"")+[^"]*"$'), _AS_CSV, SOME),
    ("quotes around a text", re.compile('^"[^"]*"$'), _AS_CSV, NEARLY_ALL),
)
"""Traces of other tools: name, pattern, how to undo it, and the share of pairs that proves it."""


def prepared_warnings(pairs: Mapping[int, Pair]) -> Iterator[str]:
    """Yield a warning for each tool that has left traces in these pairs, by index (from 0)."""
    for what, sign, undo, share in PREPARED:
        found = {
            number: text
            for number, pair in pairs.items()
            for text in pair[::-1]
            if sign.search(text)
        }
        if len(found) >= max(FEW, share * len(pairs)):
            number = min(found)
            yield (
                f"{len(found) / len(pairs):.0%} of the pairs have {what}, such as line "
                f"{number + 1:,}, {_cut(found[number])}; give the raw texts, or undo it ({undo}): "
                "a model writes texts as those that it has learned."
            )
    yield from _mixed_forms(pairs)


def _mixed_forms(pairs: Mapping[int, Pair]) -> Iterator[str]:
    """Yield a warning for each side that writes letters and their accents in two ways."""
    for side, name in enumerate(("sources", "targets")):
        texts = {number: pair[side] for number, pair in pairs.items()}
        apart = [number for number, text in texts.items() if not is_normalized("NFC", text)]
        joined = [number for number, text in texts.items() if not is_normalized("NFD", text)]
        if min(len(apart), len({*joined}.difference(apart))) >= max(FEW, SOME * len(pairs)):
            yield (
                f"{len(apart) / len(pairs):.0%} of the {name} are not in Unicode's form NFC, such "
                f"as line {apart[0] + 1:,}, {_cut(texts[apart[0]])}, and others are; write all in "
                f"it ({AS_NFC}): the same word in two forms is two for a model."
            )


AS_NFC = "uconv -x nfc"
"""Command that converts a file to the usual form, with a letter and its accent as one character."""


def share_apart(texts: Sequence[str]) -> float:
    """Return the share of texts that are not in NFC."""
    return sum(not is_normalized("NFC", text) for text in texts) / max(1, len(texts))


# ---------------------------------------------------------------- shifted lines

BLOCK, LEAST_BLOCK, MOST_BLOCKS = 500, 50, 2000
"""Number of lines per compared block, its minimum, and the number of blocks checked at most."""
FARTHEST, FITTING, SURE = 10, 0.5, 6.0
"""Maximum shift in lines; minimum correlation of the lengths of translations (the lowest measured
is 0.74); number of standard errors by which other lines must correlate better."""


@dataclass(frozen=True, slots=True)
class Shift:
    """Source `i` fits target `i + offset` in `share` of a corpus, first in `block` (from 0)."""

    offset: int
    block: range
    share: float
    example: int
    """A source in the block whose own target has a very different length."""


def find_shift(lengths: Lengths) -> Shift | None:
    """Find blocks whose source lengths correlate with those of targets on other lines.

    The lengths of translations correlate (Gale and Church 1993, section 2), and those of neighbours
    hardly do. Their logarithms are compared in blocks, at each offset. Fisher's transform, the
    artanh of a correlation, has the standard error `1 / sqrt(lines)` whatever the correlation.
    """
    src, tgt = np.log1p(lengths.astype(np.float64))
    if len(src) < LEAST_BLOCK:
        return None
    size = max(LEAST_BLOCK, min(BLOCK, len(src) // 4))
    starts = _evenly(len(src) - size + 1, min(MOST_BLOCKS, -(-len(src) // size)))
    places = np.array(starts)[:, None] + np.arange(size)
    offsets = [offset for offset in range(-FARTHEST, FARTHEST + 1) if offset]
    own = _fit(src[places], tgt[places])
    others = np.stack([_fit(src[places], np.roll(tgt, -offset)[places]) for offset in offsets])
    best = others.max(0)
    shifted = (best > np.arctanh(FITTING)) & (best > own + SURE * np.sqrt(2 / size))
    if not shifted.any():
        return None
    first = int(shifted.argmax())
    offset, start = offsets[int(others[:, first].argmax())], starts[first]
    inside = np.arange(max(start, -offset), min(start + size, len(src) - max(0, offset)))
    unlike = np.abs(src - tgt)[inside] - np.abs(src[inside] - tgt[inside + offset])
    example, share = int(inside[unlike.argmax()]), float(shifted.mean())
    return Shift(offset=offset, block=range(start, start + size), example=example, share=share)


def _fit(x: npt.NDArray[np.float64], y: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Return Fisher's transform of the correlation of each row of `x` with that of `y`."""
    x, y = x - x.mean(1, keepdims=True), y - y.mean(1, keepdims=True)
    scale = np.maximum(np.sqrt((x * x).sum(1) * (y * y).sum(1)), 1e-9)  # all lines of one length
    return np.asarray(np.arctanh(0.9999 * (x * y).sum(1) / scale))


def _describe(shift: Shift, pair_at: Callable[[int], Pair]) -> str:
    number, offset = shift.example, shift.offset
    (src, own), (_, fitting) = pair_at(number), pair_at(number + offset)
    return (
        f"in {shift.share:.0%} of the corpus, first in lines {shift.block.start + 1:,} to "
        f"{shift.block.stop:,}, the sources fit the targets {counted(abs(offset), 'line')} "
        f"{'below' if offset > 0 else 'above'} their own: line {number + 1:,} is {_cut(src)} with "
        f"{_cut(own)}, and line {number + offset + 1:,} has {_cut(fitting)}; look for a missing or "
        "an extra line on one side."
    )


# ---------------------------------------------------------------- languages

SCRIPTS = """
LATIN af bs ca cs cy da de en eo es et eu fi fr ga gl hr hu id is it la lb lt lv ms mt nb nl nn
LATIN no oc pl pt ro sk sl sq sv sw tl tr vi
CJK zh
HIRAGANA ja
HANGUL ko
CYRILLIC be bg mk ru uk
ARABIC ar fa ps ur
HEBREW he yi
GREEK el
DEVANAGARI hi mr ne
BENGALI as bn
TAMIL ta
THAI th
GEORGIAN ka
ARMENIAN hy
ETHIOPIC am ti
"""
"""The first word of Unicode's character names, and the languages that use no other script (ISO
639-1). Katakana counts as Hiragana."""
SCRIPT_OF = {code: line.split()[0] for line in SCRIPTS.splitlines() for code in line.split()[1:]}
RELATED = ("da nb nn no sv", "id ms", "cs sk", "bg mk", "bs hr sl", "ca es gl oc pt")
"""Groups of languages that share about half of their frequent words, or more."""


def _wrong_letters(texts: dict[int, str], language: str) -> Iterator[str]:
    """Yield a warning if most lines, by number, are not in the script of the language."""
    wanted = script_for(language)
    scripts = {line: script for line, text in texts.items() if (script := script_of(text))}
    wrong = {line: script for line, script in scripts.items() if script != wanted}
    if wanted and len(wrong) > len(scripts) / 2:
        found = Counter(wrong.values()).most_common(1)[0][0]
        line = next(line for line, script in wrong.items() if script == found)
        yield (
            f"{len(wrong) / len(scripts):.0%} of the lines in {language} have no {wanted} letters "
            f"but mostly {found} ones: line {line:,} is {_cut(texts[line])}; check the languages, "
            "and whether the sides are swapped."
        )


def script_for(language: str) -> str | None:
    """Return the script of a code such as zh_Hans or hsb-Latn, or the only one of its language."""
    return SCRIPT_NAMES.get(script_in(language)) or SCRIPT_OF.get(base_of(language))


def script_of(text: str) -> str | None:
    """Return the script of a text, as named in `SCRIPTS`; None if it has no letter.

    Latin counts only if it is the only script: names and code are written in it everywhere. In a
    text with kana, Chinese characters count as Japanese.
    """
    scripts = Counter(map(script_of_letter, filter(str.isalpha, text)))
    if scripts.keys() & {"HIRAGANA", "KATAKANA"}:
        return "HIRAGANA"
    latin = scripts.pop("LATIN", 0)
    return scripts.most_common(1)[0][0] if scripts else "LATIN" if latin else None


def _differ(languages: LangCodes) -> bool:
    """Return whether these are two languages that can be told apart by their texts."""
    src, tgt = (base_of(language) if language else "" for language in languages)
    related = any(src in codes.split() and tgt in codes.split() for codes in RELATED)
    return src in SCRIPT_OF and tgt in SCRIPT_OF and src != tgt and not related


def shared_words(pairs: Iterable[Pair]) -> float:
    """Return the share of their 50 most frequent words that sources and targets have in common.

    For Chinese, Japanese and Korean, characters are compared. Tags are skipped.
    """
    src, tgt = map(_frequencies, zip(*pairs, strict=True))
    return float(sum(min(share, tgt.get(word, 0.0)) for word, share in src.items()))


def _frequencies(texts: Iterable[str]) -> dict[str, float]:
    """Return the relative frequencies of the most frequent words, which add up to 1."""
    counts = Counter(word for text in texts for word in _WORD.findall(text.lower()) if word)
    frequent = dict(counts.most_common(50))
    return {word: count / sum(frequent.values()) for word, count in frequent.items()}


_WORD = re.compile(r"<[^<>]*>|([\u2e80-\ufaff]|[^\W\d_\u2e80-\ufaff]+)")


LONG, SEEN = 40, 0.01
"""Characters from which a pair hardly recurs by chance, and the share of such pairs that may."""


def overlap_warnings(name: str, pairs: Sequence[Pair], seen: Sequence[bool]) -> Iterator[str]:
    """Yield a warning if too many of the test pairs were `seen` in training."""
    long = [number for number, (src, tgt) in enumerate(pairs) if len(src) + len(tgt) >= LONG]
    found = [number for number in long if seen[number]]
    if len(found) > SEEN * len(long):
        src, tgt = map(_cut, pairs[found[0]])
        yield (
            f"{name}: {len(found):,} of the {counted(len(long), 'pair')} of at least {LONG} "
            f"characters are in the training texts too, such as line {found[0] + 1:,}, {src} with "
            f"{tgt}; leave them out of one of the two, since the score measures memory there."
        )
