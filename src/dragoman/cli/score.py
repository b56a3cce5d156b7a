"""``dragoman score``: the log-probability of given translations, or of texts after prompts."""

import json
import math
from itertools import islice
from pathlib import Path
from typing import Annotated

import typer

from dragoman.cli import options as opt
from dragoman.cli.pipes import say, to_stdout
from dragoman.data.corpus import CorpusConfig, read_pairs
from dragoman.errors import InputError
from dragoman.wording import counted

WINDOW = 4096
"""Pairs taken at a time: bounds the memory, whatever the size of the files."""


def score(
    model: opt.ModelFolder,
    *,
    src: Annotated[Path, opt.option("Sources or prompts, one per line (.gz, .xz and .zst too).")],
    tgt: Annotated[Path, opt.option("The text that follows each, line by line.")],
    as_json: Annotated[
        bool, typer.Option("--json", help="Print a JSON object per pair, with each token's score.")
    ] = False,
    device: opt.Device = "auto",
) -> None:
    """Print the log-probability of each pair. The sum over its tokens, a tab, the mean over them.

    dragoman score runs/en-zh --src a.en --tgt a.zh
    """
    pairs = read_pairs(CorpusConfig(src=str(src), tgt=str(tgt)))
    ahead = list(islice(pairs, WINDOW))
    from dragoman.tasks.folders import load
    from dragoman.tasks.generate.generator import Generator
    from dragoman.tasks.translate.translator import Translator

    scorer = load(model, device=device)
    if not isinstance(scorer, Translator | Generator):
        raise InputError(f"{model} holds an encoder, which cannot score texts.")
    log_prob, num_tokens, num_pairs = 0.0, 0, 0
    with to_stdout() as write:
        while ahead:
            for scored in scorer.score(ahead):
                mean = scored.log_prob / len(scored.tokens)
                plain = f"{scored.log_prob:.6f}\t{mean:.6f}"
                write(json.dumps(scored.to_dict(), ensure_ascii=False) if as_json else plain)
                log_prob += scored.log_prob
                num_tokens += len(scored.tokens)
            num_pairs += len(ahead)
            ahead = list(islice(pairs, WINDOW))
    perplexity = math.exp(-log_prob / num_tokens)
    counts = f"{counted(num_pairs, 'pair')}, {counted(num_tokens, 'token')}"
    say(f"{counts}, perplexity {perplexity:.2f}")
