r"""Training a tokenizer: which characters, which words, which pieces.

1. Count the characters. The most frequent ones that together make up `character_coverage` of the
   text get a place in the vocabulary, at most half of the places; the others are spelled in bytes.
2. Split each text into words. No piece crosses a word boundary. A word includes the space before.
3. Learn the pieces: byte-pair encoding (Sennrich et al. 2016, section 3.2: merge the most frequent
   pair, again and again) or a unigram language model (Kudo 2018, section 3.2: drop the pieces that
   the likelihood misses least).

Ids: 0 to 3 are the special tokens, 4 to 259 the bytes, then any further special tokens, then the
pieces.
"""

import json
import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Annotated, Any, Literal

from tokenizers import Regex, decoders, models, normalizers, pre_tokenizers, trainers
from tokenizers import Tokenizer as Backend

from dragoman.errors import InputError
from dragoman.ranges import Count, Millions, Range, check_ranges
from dragoman.text.tokenizer import BYTES, SPECIALS, Tokenizer, is_special

SMALLEST_VOCAB = 300
"""Special tokens, bytes, and room for some characters."""

UNSPACED = r"\p{Han}\p{Hiragana}\p{Katakana}\x{30FC}"
"""Letters of scripts without spaces between words; the model splits runs of them."""

FULL_WIDTH = r"\x{3001}-\x{303F}\x{FF01}-\x{FF65}"
"""Chinese and Japanese punctuation, which includes its own space, and full-width forms."""

WORDS = "|".join(
    [
        rf"[{UNSPACED}]+",
        r"(?<=\p{L})['’](?:s|t|re|ve|m|ll|d)(?![\p{L}\p{M}\p{N}])",  # don't: " don", "'t"
        rf" ?[\p{{L}}\p{{M}}&&[^{UNSPACED}]]+",
        rf" ?[\p{{N}}&&[^{UNSPACED}]]",  # digits one by one
        rf"[{FULL_WIDTH}]+",
        rf" ?[^\s\p{{L}}\p{{M}}\p{{N}}{UNSPACED}{FULL_WIDTH}]+",  # punctuation, emoji, the rest
        r"\s+(?!\S)",  # all spaces except the one of the next word
        r"\s+",
    ]
)
"""Every character of any text is in exactly one match."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenizerConfig:
    """How a tokenizer is trained, or which one is taken instead."""

    path: str | None = None
    """Model folder of dragoman, or its tokenizer.json, whose tokenizers are used instead of
    training some, with any `specials` that they lack."""
    model: Literal["bpe", "unigram", "characters"] = "bpe"
    """"bpe" merges frequent pairs, "unigram" prunes by likelihood, "characters" uses single
    characters."""
    vocab_size: Millions = 8000
    """Vocabulary size, including 4 special and 256 byte tokens; a small corpus may need a smaller
    one."""
    specials: tuple[str, ...] = ()
    """Additional special tokens, such as "<mask>", which masked language models need."""
    joint: bool = True
    """Whether both languages share one tokenizer, so that they can share embeddings."""
    character_coverage: Annotated[float, Range(above=0, most=1)] = 0.9999
    """Fraction of the text's characters that get tokens of their own; the rest become bytes."""
    max_texts: Count = 1_000_000
    """Maximum number of texts to train on, evenly spaced over the corpus."""

    def __post_init__(self) -> None:
        check_ranges(self)
        if self.model not in {"bpe", "unigram", "characters"}:
            raise InputError(
                f'The tokenizer model {self.model!r} must be "bpe", "unigram" or "characters".'
            )
        smallest = SMALLEST_VOCAB + len(self.specials)
        if self.vocab_size < smallest:
            raise InputError(
                f"A vocab_size of {self.vocab_size} is too small: {len(self.first)} places are "
                f"taken by special tokens and bytes; give at least {smallest}."
            )
        wrong = [token for token in self.specials if not is_special(token)]
        if wrong or len(set(self.first)) < len(self.first):
            raise InputError(
                f"The specials {', '.join(self.specials)} must be different from each other and "
                'from <pad>, <unk>, <s>, </s> and bytes, and of the form "<name>".'
            )

    @property
    def first(self) -> tuple[str, ...]:
        """The special tokens, in the order of their ids."""
        return (*SPECIALS, *BYTES, *self.specials)


def train_tokenizer(texts: Iterable[str], config: TokenizerConfig) -> Tokenizer:
    """Train on `texts`, which are read twice and not kept.

    An iterator, which can be read only once, is first put into a list: pass an object with an
    `__iter__` for a corpus larger than memory. Raises InputError if there is no text.
    """
    if isinstance(texts, Iterator):
        texts = list(texts)
    counts: Counter[str] = Counter()
    num_texts = 0
    for text in texts:
        counts.update(text)
        num_texts += 1
    if not counts:
        raise InputError("There is no text to train a tokenizer on.")
    alphabet = choose_alphabet(counts, config)
    stride = math.ceil(num_texts / config.max_texts)
    trained = _learn(_only(alphabet, islice(texts, 0, None, stride)), alphabet, config)
    plain = _as_plain_entries(trained, len(config.first))
    return Tokenizer.from_json(json.dumps(plain), origin="just trained")


def is_trained(tokenizer: Tokenizer) -> bool:
    """Return whether a tokenizer is like those of `train_tokenizer`: same first ids, lossless."""
    first = (*SPECIALS, *BYTES)
    text = f" {''.join(SPECIALS)}  ﬁ"
    is_lossless = tokenizer.decode(tokenizer.encode(text)) == text
    return is_lossless and tokenizer.tokens(range(len(first))) == [*first]


def with_specials(tokenizer: Tokenizer, names: Iterable[str]) -> Tokenizer:
    """Add special tokens after all others: every text is encoded as before."""
    state = json.loads(tokenizer.copy_backend().to_str())
    vocab = state["model"]["vocab"]
    if state["model"]["type"] == "BPE":
        vocab |= {name: id_ for id_, name in enumerate(names, start=tokenizer.vocab_size)}
    else:
        vocab += [(name, 0.0) for name in names]
    return Tokenizer.from_json(json.dumps(state), origin="with more special tokens")


def choose_alphabet(counts: Counter[str], config: TokenizerConfig) -> list[str]:
    """Return the characters that get a place in the vocabulary, most frequent first.

    These are the fewest whose counts sum to `character_coverage` of the total, at most half of the
    places that special tokens and bytes leave (all places, if pieces are characters). The space is
    always included.
    """
    places = config.vocab_size - len(config.first)
    if config.model != "characters":
        places //= 2
    wanted = config.character_coverage * counts.total()
    alphabet, covered = [" "], counts[" "]
    for char, count in sorted(counts.items(), key=lambda item: (-item[1], item[0])):
        if covered >= wanted or len(alphabet) >= places:
            break
        if char != " ":
            alphabet.append(char)
            covered += count
    return alphabet


def _only(alphabet: list[str], texts: Iterable[str]) -> Iterator[str]:
    """Return the texts without the characters outside the alphabet."""
    others = re.compile(f"[^{re.escape(''.join(alphabet))}]+")
    return (others.sub("", text) for text in texts)


def _learn(texts: Iterable[str], alphabet: list[str], config: TokenizerConfig) -> dict[str, Any]:
    """Train with the library; return the serialised tokenizer."""
    first, size = list(config.first), config.vocab_size
    shared: dict[str, Any] = {
        "special_tokens": first,
        "initial_alphabet": alphabet,
        "show_progress": False,
    }
    trainer: trainers.Trainer
    if config.model == "unigram":
        backend = Backend(models.Unigram())
        trainer = trainers.UnigramTrainer(vocab_size=size, unk_token="<unk>", **shared)  # noqa: S106
    else:
        if config.model == "characters":
            size = len(first) + len(alphabet)  # with no place for merges
        backend = Backend(models.BPE(unk_token="<unk>", byte_fallback=True))  # noqa: S106
        letters = len(alphabet)
        trainer = trainers.BpeTrainer(
            vocab_size=size, limit_alphabet=letters, min_frequency=2, **shared
        )
    # One space before the first word, unless its script has no spaces.
    backend.normalizer = normalizers.Sequence(
        [
            normalizers.Prepend(" "),
            normalizers.Replace(Regex(rf"\A (?=[{UNSPACED}{FULL_WIDTH}])"), ""),
        ]
    )
    backend.pre_tokenizer = pre_tokenizers.Split(Regex(WORDS), "isolated")
    backend.decoder = decoders.Sequence(
        [decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)]
    )
    backend.train_from_iterator(texts, trainer)
    state: dict[str, Any] = json.loads(backend.to_str())
    return state


def _as_plain_entries(state: dict[str, Any], first: int) -> dict[str, Any]:
    """Make the `first` tokens plain vocabulary entries, and the result reproducible.

    If they were "added tokens", the library would look for them in every text. Entries are never
    matched there, because `WORDS` separates the letters from the brackets.
    """
    model = state["model"] | {"byte_fallback": True}
    if model["type"] == "Unigram":
        model["vocab"] = model["vocab"][:first] + _repeatable(model["vocab"][first:])
    return state | {"added_tokens": [], "model": model}


def _repeatable(scored: list[tuple[str, float]]) -> list[tuple[str, float]]:
    """Return Unigram pieces and log-probabilities without the trainer's randomness.

    The trainer sums in no fixed order (so the last digits are dropped), and puts the characters
    that pruning left without a probability at the end, in no fixed order, 0.0001 apart (so they get
    the same one).
    """
    last = min((score for piece, score in scored if len(piece) > 1), default=0.0)
    rare = math.floor(last) - 1.0
    rounded = [
        (piece, rare if len(piece) == 1 and score < last else round(score, 6))
        for piece, score in scored
    ]
    return sorted(rounded, key=lambda entry: (-entry[1], entry[0]))
