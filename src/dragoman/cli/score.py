"""`dragoman score`: log-probabilities of given texts."""

import math
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from dragoman.cli.loading import Loading, with_device
from dragoman.cli.output import WINDOW, ModelFolder, option, to_json, with_languages
from dragoman.cli.pipes import say, telling_interrupt, to_stdout
from dragoman.data.corpus import CorpusConfig, read_pairs
from dragoman.errors import InputError
from dragoman.languages import LanguagePair
from dragoman.wording import counted

if TYPE_CHECKING:
    from dragoman.tasks.results import Scored, Scorer


@with_languages
@with_device
@telling_interrupt()
def score(
    model: ModelFolder,
    *,
    src: Annotated[Path, option("Sources or prompts, one per line (.gz, .bz2, .xz and .zst too).")],
    tgt: Annotated[Path, option("The translation or continuation of each, line by line.")],
    as_json: Annotated[
        bool,
        option(
            "Print a JSON object per pair: each token's log-probability, their sum, and a "
            "length-normalized score.",
            "--json",
        ),
    ] = False,
    pair: LanguagePair,
    loading: Loading,
) -> None:
    """Print the log-probability of each pair: the sum over its tokens, a tab, their mean.

    dragoman score runs/en-zh --src a.en --tgt a.zh
    """
    pairs = read_pairs(CorpusConfig(src=str(src), tgt=str(tgt)))
    ahead = list(islice(pairs, WINDOW))
    from dragoman.tasks.results import stream_scores

    scorer = load_scorer(model, loading)
    if any(pair.languages):
        from dragoman.tasks.translate.translator import Translator

        if not isinstance(scorer, Translator):
            raise InputError(f"{model} holds no translator; leave out --src-lang and --tgt-lang.")
        scorer = scorer.between(*pair.languages)
    log_prob, num_tokens, num_pairs = 0.0, 0, 0
    with to_stdout() as write:
        for scored in stream_scores(scorer, chain(ahead, pairs), WINDOW):
            write(to_json(scored) if as_json else _to_line(scored))
            log_prob += scored.log_prob
            num_tokens += len(scored.tokens)
            num_pairs += 1
    perplexity = math.exp(-log_prob / max(1, num_tokens))
    counts = f"{counted(num_pairs, 'pair')}, {counted(num_tokens, 'token')}"
    say(f"{counts}, perplexity {perplexity:.2f}")


def load_scorer(model: Path, loading: Loading) -> "Scorer":
    """Return the model of a folder. Raises InputError for an encoder."""
    from dragoman.tasks.loading import load
    from dragoman.tasks.results import Scorer

    loading.check(model)
    scorer = load(model, device=loading.device)
    if not isinstance(scorer, Scorer):
        raise InputError(f"{model} holds an encoder, which cannot score texts.")
    return scorer


def _to_line(scored: "Scored") -> str:
    """Return the sum and the mean; an empty line for a pair without a score."""
    if not scored.tokens:
        return ""
    return f"{scored.log_prob:.6f}\t{scored.log_prob / len(scored.tokens):.6f}"
