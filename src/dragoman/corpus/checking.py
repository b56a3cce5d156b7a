"""A corpus checked by all rules: which pairs break which rule, and what is left.

    found = check(read, CleaningConfig(), ("en", "de"))
    found.kept                      # a mask of the pairs
    found.report(numbered)          # how many, with examples

A pair takes 20 bytes of memory, whatever its text: a bit per rule, a hash, two lengths; 26 more
while duplicates are searched. The corpus is read once for the rules that see one pair, again for
the language, which the first good pairs show, twice for lexical translations, and once more to show
examples or to write what is left. Checked again, what is left breaks no rule.
"""

import unicodedata
import warnings
from array import array
from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from hashlib import blake2b
from itertools import compress, islice

import numpy as np
import numpy.typing as npt

from dragoman.corpus.config import EVERY, CleaningConfig
from dragoman.corpus.relation import Numbers, Relation, surprise
from dragoman.corpus.rules import likely_side, rules_of, usual_script, words
from dragoman.data.checks import Pair, prepared_warnings, script_for
from dragoman.data.lexical import MOST_LINKS
from dragoman.languages import LangCodes
from dragoman.plain import Plain
from dragoman.text.detection import is_told

Read = Callable[[], Iterable[Pair]]
"""Reads the pairs of a corpus anew."""
Progress = Callable[..., Iterable[Pair]]
"""Shows how many pairs have been read, of a `total` from the second pass on."""
Score = Callable[[Iterable[Pair]], Iterable[float]]
"""How unlikely models find each pair."""
Bits = npt.NDArray[np.uint32]
Mask = npt.NDArray[np.bool_]
Keys = npt.NDArray[np.uint64]

EXAMPLES, SHOWN = 5, 60
"""Number of pairs shown for a rule, and of characters of each side."""
SAMPLE = 1000
"""Number of good pairs by which the languages are identified."""
FEWEST = 1000
"""Minimum number of pairs to learn lexical translations from."""
LONG = 20
"""Characters of a side from which it hardly recurs by chance."""


@dataclass(frozen=True, slots=True)
class RuleFindings(Plain):
    """The findings of one rule."""

    rule: str
    removed: int
    """Pairs that break this rule but none of the rules before it."""
    broken: int
    """All pairs that break it."""
    examples: tuple[tuple[int, str, str], ...]
    """Number (line or unit, from 1) and both sides, cut, of the first pairs that it removes."""

    def __str__(self) -> str:
        return f"{self.removed:,} of {self.broken:,}"


@dataclass(frozen=True, slots=True, kw_only=True)
class CorpusReport(Plain):
    """The findings of all rules in a corpus."""

    pairs: int
    kept: int
    words: tuple[int, int]
    """Number of words of each side."""
    languages: LangCodes
    rules: tuple[RuleFindings, ...]
    """In the order in which they remove pairs."""


@dataclass(frozen=True)
class Checked:
    """The rules that each pair breaks."""

    languages: LangCodes
    broken: Bits
    """Bit n is for rule n of `EVERY`."""
    lengths_P2: Numbers
    """Number of words of both sides of each pair."""

    @property
    def kept(self) -> Mask:
        """The pairs that break no rule."""
        return np.equal(self.broken, 0)

    def first(self) -> npt.NDArray[np.int8]:
        """Return the number of the rule that removes each pair, or `len(EVERY)` if it stays."""
        lowest = self.broken & (~self.broken + np.uint32(1))
        numbers = np.full(len(self.broken), len(EVERY), np.int8)
        numbers[lowest > 0] = np.log2(lowest[lowest > 0])
        return numbers

    def report(self, numbered: Iterable[tuple[int, Pair]]) -> CorpusReport:
        """Count pairs by rule, with examples from the `numbered` pairs of the files."""
        first = self.first()
        wanted = {
            int(n) for rule in range(len(EVERY)) for n in np.nonzero(first == rule)[0][:EXAMPLES]
        }
        shown = defaultdict[int, list[tuple[int, str, str]]](list)
        for n, (place, (src, tgt)) in enumerate(islice(numbered, max(wanted, default=-1) + 1)):
            if n in wanted:
                shown[first[n]].append((place, src[:SHOWN], tgt[:SHOWN]))
        src, tgt = self.lengths_P2.sum(0, dtype=np.float64)
        removed = np.bincount(first, minlength=len(EVERY) + 1)
        broken = [int((self.broken >> np.uint32(rule) & 1).sum()) for rule in range(len(EVERY))]
        rules = (
            RuleFindings(name, int(removed[rule]), broken[rule], tuple(shown[rule]))
            for rule, name in enumerate(EVERY)
        )
        return CorpusReport(
            pairs=len(first),
            kept=int(self.kept.sum()),
            words=(round(src), round(tgt)),
            languages=self.languages,
            rules=tuple(rules),
        )


def check(
    read: Read,
    config: CleaningConfig,
    languages: LangCodes = (None, None),
    held_out: Iterable[str] = (),
    *,
    score: Score | None = None,
    progress: Progress = lambda pairs, **_: pairs,
) -> Checked:
    """Check each pair of a corpus, and compare it with earlier pairs and with held-out lines.

    A side whose language is None gets that of most of the first pairs that break no other rule, as
    far as it can be identified. A pair counts as held out if both of its sides are among the
    held-out lines, or one that is longer than an everyday phrase. Pairs that break no other rule go
    to `score`.
    """
    rules = [
        (_bit(name), rule)
        for name, rule in rules_of(config, (None, None)).items()
        if name not in config.skip
    ]
    _warn_of_prepared(read)
    held = {key_of(normalised(line)) for line in held_out}
    bits, keys, lengths = array("I"), array("Q"), array("f")
    for pair in progress(read()):
        broken = sum(bit for bit, rule in rules if rule(*pair))
        sides = [normalised(text) for text in pair]
        if held:
            seen = [(key_of(text) in held, len(text)) for text in sides]
            if all(found for found, _ in seen) or any(found and n >= LONG for found, n in seen):
                broken |= _bit("held_out")
        bits.append(broken)
        keys.append(key_of("\t".join(sides)))
        lengths.extend(map(words, pair))
    found, keys_P, lengths_P2 = np.asarray(bits), np.asarray(keys), np.asarray(lengths)
    lengths_P2 = lengths_P2.reshape(-1, 2)
    again = partial(progress, total=len(found))

    def settle() -> LangCodes:
        """Apply the rules that depend on the other good pairs until no good pair breaks them."""
        told, before = tell_languages(compress(read(), found == 0), languages), None
        while told != before:
            _mark_foreign(read, found, config, told, again)
            if "duplicate" not in config.skip:
                found[:] |= _repeated(keys_P, found == 0) * np.uint32(_bit("duplicate"))
            if "unrelated" not in config.skip:
                _mark_unrelated(read, found, keys_P, lengths_P2, config.min_relation, again)
            told, before = tell_languages(compress(read(), found == 0), languages, told), told
        return told

    told = settle()
    if score is not None and "unlikely" not in config.skip:
        good, scores_P = found == 0, np.zeros(len(found), np.float32)
        scores_P[good] = np.fromiter(score(compress(again(read()), good)), np.float32)
        while _mark_unlikely(found, scores_P, config.max_surprise):
            told = settle()
    return Checked(told, found, lengths_P2)


def _warn_of_prepared(read: Read) -> None:
    """Warn if a tool has segmented or escaped the texts of the first pairs."""
    for found in prepared_warnings(dict(enumerate(islice(read(), SAMPLE)))):
        warnings.warn(found, stacklevel=3)


def _mark_foreign(
    read: Read, found: Bits, config: CleaningConfig, languages: LangCodes, progress: Progress
) -> None:
    """Mark pairs in other languages than these; warn of a language checked only by its script.

    The script of such a language is that of most good pairs, unless its code determines it.
    """
    if not any(languages) or "language" in config.skip:
        return
    good, scripts = [*islice(compress(read(), found == 0), SAMPLE)], list[str | None]()
    for side, code in enumerate(languages):
        is_unknown = bool(code) and not is_told(code or "")
        scripts.append(usual_script(pair[side] for pair in good) if is_unknown else None)
        if code and is_unknown:
            what = "only the script of these texts is checked"
            if good and not (scripts[-1] or script_for(code)):
                what = "since these texts are in several scripts, they are not checked"
            warnings.warn(
                f"py3langid cannot identify {code}, so {what}; if this is not the code of a "
                "language, use one such as en or zh.",
                stacklevel=2,
            )
    rule = rules_of(config, languages, (scripts[0], scripts[1]))["language"]
    foreign = np.fromiter((rule(*pair) for pair in progress(read())), np.bool_, len(found))
    found |= foreign * np.uint32(_bit("language"))


def _mark_unrelated(
    read: Read,
    found: Bits,
    keys_P: Keys,
    lengths_P2: Numbers,
    least: float,
    progress: Progress,
) -> None:
    """Mark unrelated pairs among those that break no rule, until there are none.

    Lexical translations are learnt from a sample, drawn by the keys, until it contains no unrelated
    pair itself; then the others are checked once, and again only if so few are left that the sample
    changes. Nothing can be learnt from a small corpus.
    """
    step = 0
    while step != (step := _step(lengths_P2[found == 0])):
        sampled = (found == 0) & (keys_P % np.uint64(step) == 0)
        (places,), pairs = np.nonzero(sampled), [*compress(progress(read()), sampled)]
        related = None
        while related is None or not related.all():
            if len(places) < FEWEST:
                return
            relation = Relation(pairs, lengths_P2[places])
            related = relation.of(pairs, lengths_P2[places], learnt=True) >= least
            found[places[~related]] = _bit("unrelated")
            places, pairs = places[related], [*compress(pairs, related)]
        (places,) = np.nonzero(others := (found == 0) & ~sampled)
        unrelated = relation.of(compress(progress(read()), others), lengths_P2[places]) < least
        found[places[unrelated]] = _bit("unrelated")


def _step(lengths_P2: Numbers) -> int:
    """Return n such that every n-th pair is enough to learn from, by words and by pairs."""
    links = round(float(lengths_P2.prod(1).sum(dtype=np.float64)))
    return min(-(-links // MOST_LINKS), max(1, len(lengths_P2) // (2 * FEWEST)))


def _mark_unlikely(found: Bits, scores_P: Numbers, most: float) -> bool:
    """Mark unlikely pairs among those that break no rule, until there are none.

    Returns whether there were any.
    """
    before = np.count_nonzero(found)
    while (good := found == 0).any() and (unlikely := surprise(scores_P[good]) > most).any():
        found[good] = unlikely * np.uint32(_bit("unlikely"))
    return bool(np.count_nonzero(found) > before)


def _bit(rule: str) -> int:
    return 1 << EVERY.index(rule)


def tell_languages(
    good: Iterable[Pair], given: LangCodes, before: LangCodes | None = None
) -> LangCodes:
    """Return the languages of both sides; none if they are the same and not both given.

    If too little is left to identify the language of a side, it stays the one `before`.
    """
    first = [*islice(good, SAMPLE)]
    src, tgt = (
        code or likely_side([pair[side] for pair in first]) for side, code in enumerate(given)
    )
    if src == tgt and None in given:
        src = tgt = None
    if before is not None and src in {None, before[0]} and tgt in {None, before[1]}:
        return before
    return src, tgt


def normalised(text: str) -> str:
    """Return the letters and digits of a text, in lower case and NFKC, to compare texts by."""
    usual = text if text.isascii() else unicodedata.normalize("NFKC", text)
    return "".join(filter(str.isalnum, usual.lower()))


def key_of(text: str, salt: bytes = b"") -> int:
    """Return a 64-bit hash: among ten million texts two collide in one of 370,000 corpora."""
    data = text.encode(errors="replace")
    return int.from_bytes(blake2b(data, digest_size=8, salt=salt).digest(), "little")


def _repeated(keys: Keys, good: Mask) -> Mask:
    """Return which pairs are duplicates: of equal ones the first good one stays, else the first."""
    order = np.lexsort((~good, keys))  # stable
    repeated = np.zeros(len(keys), np.bool_)
    repeated[order[1:]] = keys[order[1:]] == keys[order[:-1]]
    return repeated
