"""Settings of the commands on corpora: the files of a corpus, and the thresholds of the rules."""

from dataclasses import dataclass, fields
from pathlib import Path
from typing import Annotated

from dragoman.data.corpus import KEYS, CorpusConfig
from dragoman.errors import InputError, did_you_mean
from dragoman.ranges import Positive, Range, check_ranges

Share = Annotated[float, Range(least=0, most=1)]

MEANING = {
    "encoding": "has damaged characters",
    "empty": "has a side without text",
    "copy": "is the same on both sides",
    "language": "is in another language",
    "length": "is too long",
    "ratio": "has sides of very different lengths",
    "word": "has a very long word",
    "repetition": "repeats itself",
    "letters": "has few letters",
    "preserved": "has other numbers, URLs, placeholders, tags or emoji on the other side",
    "punctuation": "has other ends of sentences on the other side",
    "unrelated": "has sides that have little to do with each other",
    "duplicate": "was there before",
    "held_out": "is in the texts that are held out",
    "unlikely": "has a side that the models do not expect",
}
"""What is wrong with a pair, to follow "line 7"."""
EVERY = tuple(MEANING)
"""All rules, in the order in which they remove; from "unrelated" on they need more than a pair."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PairFiles:
    """`src` and `tgt`, or `tsv`, `jsonl` or `tm`. The options of the command line are these."""

    src: Path | None = None
    """Source sentences, one per line (.gz, .bz2, .xz, .zst too)."""
    tgt: Path | None = None
    """Target sentences, line by line."""
    tsv: Path | None = None
    """Lines of source, tab and target, or a table (CSV too) with --src-key and --tgt-key; replaces
    --src and --tgt."""
    jsonl: Path | None = None
    """JSON objects, one per line; replaces --src and --tgt."""
    tm: Path | None = None
    """Translation memory (TMX, XLIFF, PO, CSV, TSV); replaces --src and --tgt."""
    src_key: str = KEYS[0]
    """Column of the source, by name (in the first row) or number; or its key in a JSON object, with
    dots for nested objects."""
    tgt_key: str = KEYS[1]
    """Column or key of the target."""
    src_lang: str | None = None
    """Language of the source, such as en; detected by default, but required for TMX."""
    tgt_lang: str | None = None
    """Language of the target, such as zh; detected by default, but required for TMX."""

    def corpus(self) -> CorpusConfig:
        """Return the corpus. Raises InputError unless exactly one of the four layouts is given."""
        given = {each.name: getattr(self, each.name) for each in fields(self)}
        if not any(isinstance(value, Path) for value in given.values()):
            raise InputError("Name the corpus: --src and --tgt, or --tsv, --jsonl or --tm.")
        named = {key: str(value) for key, value in given.items() if value is not None}
        return CorpusConfig(**named)  # type: ignore[arg-type] # the other fields are no names


@dataclass(frozen=True, slots=True, kw_only=True)
class CleaningConfig:
    """The thresholds of the rules. The options of the command line are made from the fields."""

    max_similarity: Share = 0.9
    """Maximum share of words that source and target have in common."""
    min_language: Share = 0.9
    """Confidence required to decide that a sentence is in another language."""
    max_words: Positive = 150
    """Maximum number of words per side."""
    max_ratio: Positive = 3.0
    """Maximum number of words in the longer side per word in the shorter."""
    max_word: Positive = 40
    """Maximum number of characters in a word."""
    max_repeats: Positive = 4
    """Maximum number of times that a word, or a few words, may occur in a row."""
    min_letters: Share = 0.5
    """Minimum share of letters among the non-digit characters of a side."""
    max_marks: Positive = 3
    """Maximum number of sentence ends (full stops, question and exclamation marks) that one side
    may have more than the other."""

    min_relation: float = 0.15
    """Minimum relatedness of the words of both sides, estimated from the corpus itself; about 1.5
    for translations, and 0 for shuffled pairs."""
    max_surprise: Positive = 3.5
    """Maximum number of standard deviations by which a pair is less likely than most, according to
    the models of --score-by."""
    skip: tuple[str, ...] = ()
    """Rule not to apply. May be repeated."""

    def __post_init__(self) -> None:
        check_ranges(self)
        for name in self.skip:
            if name not in MEANING:
                near = did_you_mean(name, MEANING) or "."
                raise InputError(f"{name} is not a rule{near} The rules are {', '.join(EVERY)}.")
