"""`dragoman shortlist`: which words of the target each word of the source can become."""

from pathlib import Path
from typing import Annotated

import typer

from dragoman.cli.output import ModelFolder, option
from dragoman.cli.pipes import say
from dragoman.ranges import Count, check_range

SIZE = 50


def shortlist(
    model: ModelFolder,
    *,
    src: Annotated[Path, option("Source texts: those used in training, or similar ones.")],
    tgt: Annotated[Path, option("Their translations, line by line.")],
    size: Annotated[
        int, typer.Option(metavar="N", help="Number of target tokens per source token.")
    ] = SIZE,
) -> None:
    """Learn the possible translations of each word from text pairs, for translate --shortlist.

    dragoman shortlist runs/en-zh --src train.en --tgt train.zh
    """
    from dragoman.data.corpus import CorpusConfig, read_pairs
    from dragoman.folder.opening import open_folder
    from dragoman.tasks.task import check_task
    from dragoman.tasks.translate.shortlist import learn_shortlist, save_shortlist

    check_range("--size", size, Count)
    folder = open_folder(model)
    check_task(folder, "translate")
    tokenizers = folder.tokenizers
    texts = list(read_pairs(CorpusConfig(src=str(src), tgt=str(tgt))))
    sides = zip(tokenizers, zip(*texts, strict=True), strict=True)
    pairs = list(zip(*(each.encode_batch(lines) for each, lines in sides), strict=True))
    learnt = learn_shortlist(pairs, size, tokenizers)
    path = save_shortlist(learnt, folder.path, tokenizers)
    lists = [(set(learnt.of(source).tolist()), target) for source, target in pairs]
    mean = sum(len(tokens) for tokens, _ in lists) / len(lists)
    written = [token in tokens for tokens, target in lists for token in target]
    say(
        f"{path} is written: a sentence of these texts has {mean:,.0f} of "
        f"{tokenizers[1].vocab_size:,} target tokens to choose from, and "
        f"{100 * sum(written) / len(written):.1f} % of those of its translation are among them."
    )
