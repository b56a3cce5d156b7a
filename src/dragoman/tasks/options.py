"""From decoding options to the parts of a search."""

from collections.abc import Callable, Hashable
from functools import lru_cache, partial

from dragoman.decode import Beam, DiverseBeam, ForbidSequences, Greedy, PowerBeam, Processor, Sample
from dragoman.decode.processors import GivenProcessor
from dragoman.decoding import TRANSLATING, Decoding
from dragoman.errors import InputError
from dragoman.folder.format import PublishedDefaults
from dragoman.tasks.forbidding import ForbidWords
from dragoman.text.tokenizer import Tokenizer


def strategy_of(
    options: Decoding, numbers: tuple[int, ...] | None = None
) -> Beam | Greedy | PowerBeam | Sample:
    """Return how tokens are chosen, for sequences sampled by these numbers."""
    if options.temperature > 0:
        return Sample(
            temperature=options.temperature,
            top_k=options.top_k,
            top_p=options.top_p,
            min_p=options.min_p,
            seed=options.seed,
            numbers=numbers,
            length_penalty=options.length_penalty,
        )
    given = options.given()
    beam = {
        "length_penalty": options.length_penalty,
        "n_best": given.get("mbr") or given.get("n_best", 1),
    }
    if (groups := given.get("beam_groups", 1)) > 1:
        return DiverseBeam(
            beam_size=options.beam_size, groups=groups, diversity=options.diversity, **beam
        )
    if options.beam_size == 1:
        return Greedy(length_penalty=options.length_penalty)
    if options.length_norm == "power":
        return PowerBeam(
            width=options.beam_size,
            early_stopping=options.early_stopping,
            renormalize=options.renormalize,
            **beam,
        )
    return Beam(beam_size=options.beam_size, **beam)


def key_of(options: Decoding) -> Hashable:
    """Return a key that is equal for options of requests that may share a batch.

    Processors may be anything, and have state: no two calls share theirs.
    """
    return id(options) if options.processors else options


def check_sampling(options: Decoding) -> None:
    """Raise InputError for a sampling option without effect, since nothing is sampled."""
    for name in ("top_k", "top_p", "min_p"):
        value = getattr(options, name)
        if options.temperature == 0 and value != getattr(TRANSLATING, name):
            raise InputError(
                f"{name} is {value} with temperature 0, which does not sample; set temperature "
                f"above 0, or leave {name} out"
            )


def processors_of(tokenizer: Tokenizer) -> Callable[[Decoding], tuple[Processor, ...]]:
    """Return a function from options to the processors that they name, forbidden words first.

    It keeps the last ones for forbidden words: creating one reads the vocabulary, which takes as
    long as some sentences.
    """
    forbid = lru_cache(8)(partial(ForbidWords, tokenizer))
    own = (GivenProcessor, ForbidSequences, ForbidWords)

    def processors(options: Decoding) -> tuple[Processor, ...]:
        words, named = options.forbidden_words, options.processors
        others = (each if isinstance(each, own) else GivenProcessor(each) for each in named)
        return (*([forbid(words)] if words else []), *others)

    return processors


def published_options(published: PublishedDefaults) -> Decoding:
    """Return the options with which the publisher of a model decodes."""
    sequences = published.forbidden_sequences
    given = {"processors": (ForbidSequences(sequences),)} if sequences else {}
    return Decoding(**({"length_norm": "power"} | published.given() | given))
