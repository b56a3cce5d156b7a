"""A corpus checked by all rules: which pairs break which, and what is left without them.

    found = check(read, CleaningConfig(), ("en", "de"))
    found.kept                      # a mask of the pairs
    found.report(numbered)          # how many, with examples

A pair takes 20 bytes of memory, whatever its text is: a bit for each rule, a hash, two lengths; 26
more while equal ones are looked for. The corpus is read once for the rules that see one pair, again
for the language, which the first good pairs tell, twice for what words become, and to show examples
or to write what is left. What is left is checked as the whole was: it breaks no rule.
"""

import unicodedata
import warnings
from array import array
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
"""Shows how many pairs have been read, of a `total` from the second time on."""
Score = Callable[[Iterable[Pair]], Iterable[float]]
"""How little models expect each pair."""
Bits = npt.NDArray[np.uint32]
Mask = npt.NDArray[np.bool_]
Keys = npt.NDArray[np.uint64]

EXAMPLES, SHOWN = 5, 60
"""Pairs that are shown for a rule, and characters of each side."""
SAMPLE = 1000
"""Good pairs by which the languages are recognised."""
FEWEST = 1000
"""Pairs from which what words become can be learnt."""
LONG = 20
"""Characters of a side that is hardly twice in the world by chance."""


@dataclass(frozen=True, slots=True)
class RuleFindings(Plain):
    """What a rule has found."""

    rule: str
    removed: int
    """Pairs that break it, and none of the rules before it."""
    broken: int
    """All pairs that break it."""
    examples: tuple[tuple[int, str, str], ...]
    """The lines or units of the first that it removes, from 1, and both sides, cut."""

    def __str__(self) -> str:
        return f"{self.removed:,} of {self.broken:,}"


@dataclass(frozen=True, slots=True, kw_only=True)
class CorpusReport(Plain):
    """What is wrong with a corpus."""

    pairs: int
    kept: int
    words: tuple[int, int]
    """Of both sides."""
    languages: LangCodes
    rules: tuple[RuleFindings, ...]
    """In the order in which they remove."""


@dataclass(frozen=True)
class Checked:
    """The rules that each pair breaks."""

    languages: LangCodes
    broken: Bits
    """Bit n is that of rule n of `EVERY`."""
    lengths_P2: Numbers
    """Words of both sides of each pair."""

    @property
    def kept(self) -> Mask:
        """The pairs that break no rule."""
        return np.equal(self.broken, 0)

    def first(self) -> npt.NDArray[np.int8]:
        """The number of the rule that removes each pair; of one that stays, that of no rule."""
        lowest = self.broken & (~self.broken + np.uint32(1))
        numbers = np.full(len(self.broken), len(EVERY), np.int8)
        numbers[lowest > 0] = np.log2(lowest[lowest > 0])
        return numbers

    def report(self, numbered: Iterable[tuple[int, Pair]]) -> CorpusReport:
        """Count by rule, with examples from the pairs, which are `numbered` as files have them."""
        first = self.first()
        wanted = {
            int(n): rule
            for rule in range(len(EVERY))
            for n in np.nonzero(first == rule)[0][:EXAMPLES]
        }
        shown: dict[int, list[tuple[int, str, str]]] = {rule: [] for rule in range(len(EVERY))}
        last = max(wanted, default=-1)
        for number, (place, (src, tgt)) in enumerate(islice(numbered, last + 1)):
            if number in wanted:
                shown[wanted[number]].append((place, src[:SHOWN], tgt[:SHOWN]))
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
    """Check each pair of a corpus, and compare it with those before it and with lines held out.

    A side whose language is None is in that of most of the first pairs that break no other rule, as
    far as it can be told.
    A pair is among the lines that are held out by both of its sides, or by one that is no everyday
    phrase. What breaks no other rule is given to `score`.
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
        """Mark what depends on the other good pairs, until these have none any more."""
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
    """Warn where the first pairs have been in a tool that cuts or escapes texts."""
    for found in prepared_warnings(dict(enumerate(islice(read(), SAMPLE)))):
        warnings.warn(found, stacklevel=3)


def _mark_foreign(
    read: Read, found: Bits, config: CleaningConfig, languages: LangCodes, progress: Progress
) -> None:
    """Mark what is in another language than these; warn of one that only its letters tell.

    The script of such a language is that of most good pairs, unless its code tells it.
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
    """Mark what is unrelated among the pairs that break no rule, until these have none any more.

    What words become is learnt from a sample, drawn by the keys, until it has no unrelated pair
    itself; then the others are looked at once, and again only if so few are left that the sample is
    another. Of a small corpus nothing can be learnt.
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
    """One in so many pairs of such lengths is enough to learn from, by words and by pairs."""
    links = round(float(lengths_P2.prod(1).sum(dtype=np.float64)))
    return min(-(-links // MOST_LINKS), max(1, len(lengths_P2) // (2 * FEWEST)))


def _mark_unlikely(found: Bits, scores_P: Numbers, most: float) -> bool:
    """Mark what is unlikely among the pairs that break no rule, until these have none any more.

    Returns whether there was any.
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
    """The languages of both sides; none is asked for where both sides are in one.

    Where too little is left to tell the language of a side it is the one `before`.
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
    """The letters and digits of a text, small, in their usual form; two texts of one are alike."""
    usual = text if text.isascii() else unicodedata.normalize("NFKC", text)
    return "".join(filter(str.isalnum, usual.lower()))


def key_of(text: str, salt: bytes = b"") -> int:
    """A hash of 64 bits: of ten million texts two have the same once in 370,000 corpora."""
    data = text.encode(errors="replace")
    return int.from_bytes(blake2b(data, digest_size=8, salt=salt).digest(), "little")


def _repeated(keys: Keys, good: Mask) -> Mask:
    """Which pairs came before: of equal ones the first good one stays, else the first."""
    order = np.lexsort((~good, keys))  # which is stable
    repeated = np.zeros(len(keys), np.bool_)
    repeated[order[1:]] = keys[order[1:]] == keys[order[:-1]]
    return repeated
