"""``dragoman evaluate`` for translators: how good translations of a test set are, and how quick."""

import json
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING

from dragoman.cli.pipes import check_output, progress_of, say, to_stdout
from dragoman.data.corpus import CorpusConfig, read_pairs
from dragoman.files.writing import replacing
from dragoman.wording import counted

if TYPE_CHECKING:
    from dragoman.evaluate import Scores

__all__ = ["Decoding", "evaluate_translations"]

UNLIKE = 1.0
"""A chrF2 below this is no matter of quality: unrelated texts of one language have more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Decoding:
    """How to translate the test set, where it is not as the folder says."""

    beam_size: int | None
    """Hypotheses kept."""
    length_penalty: float | None
    """Above 0 favours length."""
    max_batch_tokens: int | None
    """Less needs less memory."""
    device: str
    """cpu, cuda or auto."""


def evaluate_translations(
    model: Path,
    files: tuple[Path, Path],
    decoding: Decoding,
    *,
    hyp: Path | None,
    tokenize: str | None,
    as_json: bool,
) -> None:
    """Translate the first of the files and compare with the second, the references."""
    src, ref = files
    check_output(hyp, model, src, ref, option="--hyp")
    pairs = list(read_pairs(CorpusConfig(src=str(src), tgt=str(ref))))
    from dragoman.evaluate import evaluate as compare
    from dragoman.models.folder import read_config
    from dragoman.tasks.translate.translator import Translator

    config = read_config(model)
    tgt_lang = config.tgt_lang
    references = [reference for _, reference in pairs]
    compare(references[:1], references[:1], tokenize=tokenize, tgt_lang=tgt_lang)  # fails early
    translator = Translator.load(model, device=decoding.device)
    base = translator.options
    given = asdict(decoding)
    chosen = {name: given[name] for name in asdict(base) if given.get(name) is not None}
    start = perf_counter()
    results = translator.stream((source for source, _ in pairs), replace(base, **chosen))
    with progress_of(results, "lines", total=len(pairs)) as shown:
        translations = list(shown)
    seconds = perf_counter() - start
    hypotheses = [translation.text for translation in translations]
    scores = compare(hypotheses, references, tokenize=tokenize, tgt_lang=tgt_lang)
    num_tokens = sum(len(translation.tokens) for translation in translations)
    try:
        if hyp is not None:
            with replacing(hyp, "output") as part:
                text = "".join(f"{hypothesis}\n" for hypothesis in hypotheses)
                part.write_text(text, encoding="utf-8", newline="\n")
    finally:  # a full disk takes no scores along
        _print(scores, _Speed(len(pairs), num_tokens, seconds), as_json=as_json)
    if scores.chrf < UNLIKE:
        languages = f"{config.src_lang or 'not said'} to {config.tgt_lang or 'not said'}"
        say(
            "The translations have next to nothing in common with the references: look whether "
            f"--src and --ref have changed places (the model translates {languages}), or whether "
            "it has learnt anything yet."
        )


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
    with to_stdout() as write:
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
    say(f"{counted(speed.sentences, 'sentence')} in {speed.seconds:.1f} s")
    say(f"What this BLEU means, as a rough guide: {scores.reading}.")
