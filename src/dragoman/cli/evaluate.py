"""``dragoman evaluate``: how good the translations of a test set are, and how quick."""

import json
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Annotated

import typer

from dragoman.cli.pipes import say, to_file_or_stdout, with_progress
from dragoman.data.corpus import CorpusConfig, read_pairs

if TYPE_CHECKING:
    from dragoman.evaluate import Scores


def evaluate(  # noqa: PLR0913 -- the options of the verb
    model: Annotated[Path, typer.Argument(help="The model folder.")],
    *,
    src: Annotated[Path, typer.Option(help="Source lines (.gz, .xz, .zst too).")],
    ref: Annotated[Path, typer.Option(help="Reference translations, line by line.")],
    hyp: Annotated[Path | None, typer.Option(help="Keep the translations in this file.")] = None,
    tokenize: Annotated[
        str | None, typer.Option(help="BLEU's tokenizer; by the target language unless given.")
    ] = None,
    beam_size: Annotated[int | None, typer.Option(help="Hypotheses kept; 1 is greedy.")] = None,
    length_penalty: Annotated[float | None, typer.Option(help="Above 0 favours length.")] = None,
    max_batch_tokens: Annotated[int | None, typer.Option(help="Less needs less memory.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="One object with all figures.")] = False,
    device: Annotated[str, typer.Option(help="cpu, cuda or auto.")] = "auto",
) -> None:
    """Translate a test set and score it: BLEU and chrF with signatures, and the speed.

    dragoman evaluate runs/en-zh --src test.en --ref test.zh --hyp test.out
    """
    pairs = list(read_pairs(CorpusConfig(src=str(src), tgt=str(ref))))
    from dragoman.evaluate import evaluate as compare
    from dragoman.models.folder import read_config
    from dragoman.tasks.translation import Translator

    tgt_lang = read_config(model).tgt_lang
    references = [reference for _, reference in pairs]
    compare(references[:1], references[:1], tokenize=tokenize, tgt_lang=tgt_lang)  # fails early
    translator = Translator.load(model, device=device)
    base = translator.options
    options = replace(
        base,
        beam_size=base.beam_size if beam_size is None else beam_size,
        length_penalty=base.length_penalty if length_penalty is None else length_penalty,
        max_batch_tokens=base.max_batch_tokens if max_batch_tokens is None else max_batch_tokens,
    )
    start = perf_counter()
    results = translator.stream((source for source, _ in pairs), options)
    translations = list(with_progress(results, "lines", total=len(pairs)))
    seconds = perf_counter() - start
    hypotheses = [translation.text for translation in translations]
    if hyp is not None:
        with to_file_or_stdout(hyp) as write:
            for hypothesis in hypotheses:
                write(hypothesis)
    scores = compare(hypotheses, references, tokenize=tokenize, tgt_lang=tgt_lang)
    num_tokens = sum(len(translation.tokens) for translation in translations)
    _print(scores, _Speed(len(pairs), num_tokens, seconds), as_json=as_json)


@dataclass(frozen=True, slots=True)
class _Speed:
    sentences: int
    tokens: int
    seconds: float

    def to_dict(self) -> dict[str, float]:
        return asdict(self) | {
            "sentences_per_second": self.sentences / self.seconds,
            "tokens_per_second": self.tokens / self.seconds,
        }


def _print(scores: "Scores", speed: _Speed, *, as_json: bool) -> None:
    figures = scores.to_dict() | speed.to_dict()
    with to_file_or_stdout(None) as write:
        if as_json:
            write(json.dumps(figures, ensure_ascii=False))
            return
        write(f"BLEU   {scores.bleu:.2f}  {scores.bleu_signature}")
        write(f"chrF2  {scores.chrf:.2f}  {scores.chrf_signature}")
        write(f"exact  {scores.exact:.2f}  percent of the lines")
        write(
            f"speed  {figures['sentences_per_second']:,.1f} sentences/s, "
            f"{figures['tokens_per_second']:,.0f} tokens/s"
        )
    say(f"{speed.sentences:,} sentences in {speed.seconds:.1f} s")
