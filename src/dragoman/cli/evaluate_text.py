"""``dragoman evaluate`` for generators: how well the model predicts a text, and how quick."""

import json
import tempfile
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING

from dragoman.cli.pipes import say, to_stdout
from dragoman.wording import counted

if TYPE_CHECKING:
    from dragoman.data.documents import Split

__all__ = ["evaluate_text"]

ROWS = 16
"""Windows at a time."""

CONTEXT = 1024
"""Tokens of a window, where the folder does not say how many the model sees at once."""


def evaluate_text(model: Path, file: Path, *, split: "Split", as_json: bool, device: str) -> None:
    """Print the perplexity of a text, and what its tokens and characters cost in nats.

    A window moves over the text by half of the context that the model generates with, so that every
    token has at least the other half before it (where there is so much).
    """
    from dragoman.data.documents import prepare_documents
    from dragoman.nn import row_invariant_products
    from dragoman.tasks.generate.batches import PackConfig
    from dragoman.tasks.generate.generator import Generator
    from dragoman.tasks.generate.perplexity import text_loss

    generator = Generator.load(model, device=device)
    context = generator.context or CONTEXT
    with tempfile.TemporaryDirectory() as cache:
        texts, _ = prepare_documents([file], split, generator.tokenizer, Path(cache))
        config = PackConfig(
            length=context, rows=ROWS, packing="stream" if split == "file" else "documents"
        )
        start = perf_counter()
        with row_invariant_products():
            loss = text_loss(generator.model, texts, config)
        seconds = perf_counter() - start
    figures = {
        "perplexity": loss.perplexity,
        "nats_per_token": loss.per_token,
        "nats_per_char": loss.per_char,
        "tokens": loss.num_tokens,
        "characters": loss.num_chars,
        "context": context,
        "tokens_per_second": loss.num_tokens / seconds,
    }
    with to_stdout() as write:
        if as_json:
            write(json.dumps(figures))
            return
        write(f"perplexity  {loss.perplexity:.3f}")
        write(f"per token   {loss.per_token:.4f} nats")
        write(f"per char    {loss.per_char:.4f} nats")
        write(f"speed       {figures['tokens_per_second']:,.0f} tokens/s")
    counts = f"{counted(loss.num_chars, 'character')}, {counted(loss.num_tokens, 'token')}"
    say(f"{counts} in {seconds:.1f} s")
