"""How good translations of a test set are, and how fast they come."""

from pathlib import Path
from time import perf_counter

from dragoman.data.corpus import CorpusConfig, read_pairs
from dragoman.evaluate import evaluate
from dragoman.models.folder import read_config
from dragoman.tasks.evaluation import EvaluationData, Report
from dragoman.tasks.options import with_given
from dragoman.tasks.translate.translator import Translator
from dragoman.wording import counted

__all__ = ["evaluate_translator"]

UNLIKE = 1.0
"""A chrF2 below this is no matter of quality: unrelated texts of one language have more."""


def evaluate_translator(model: Path, test: EvaluationData) -> Report:
    """Translate the sources and compare with the references, by BLEU and chrF.

    Raises InputError where the files do not fit each other, or for an unknown tokenizer of BLEU's.
    """
    pairs = list(read_pairs(CorpusConfig(src=str(test.src), tgt=str(test.ref))))
    config = read_config(model)
    references = [reference for _, reference in pairs]
    compared = {"tokenize": test.tokenize, "tgt_lang": config.tgt_lang}
    evaluate(references[:1], references[:1], **compared)  # fails before the work
    translator = Translator.load(model, device=test.device)
    options = with_given(translator.options, test.decoding)
    start = perf_counter()
    results = translator.stream((source for source, _ in pairs), options)
    with test.progress(results, "lines", total=len(pairs)) as shown:
        translations = list(shown)
    seconds = perf_counter() - start
    hypotheses = [translation.text for translation in translations]
    scores = evaluate(hypotheses, references, **compared)
    num_tokens = sum(len(translation.tokens) for translation in translations)
    speed = {
        "sentences": len(pairs),
        "tokens": num_tokens,
        "seconds": seconds,
        "sentences_per_second": len(pairs) / seconds,
        "tokens_per_second": num_tokens / seconds,
    }
    warnings = []
    if scores.chrf < UNLIKE:
        languages = f"{config.src_lang or 'unknown'} to {config.tgt_lang or 'unknown'}"
        warnings.append(
            "The translations have next to nothing in common with the references: look whether "
            f"--src and --ref have changed places (the model translates {languages}), or whether "
            "it has learned anything yet."
        )
    return Report(
        figures=scores.to_dict() | speed,
        lines=(
            f"BLEU   {scores.bleu:.2f}  {scores.bleu_signature}",
            f"chrF2  {scores.chrf:.2f}  {scores.chrf_signature}",
            f"exact  {scores.exact:.2f}  percent of the lines",
            f"speed  {speed['sentences_per_second']:,.1f} sentences/s, "
            f"{speed['tokens_per_second']:,.0f} tokens/s",
        ),
        remarks=(
            f"{counted(len(pairs), 'sentence')} in {seconds:.1f} s",
            f"What this BLEU means, as a rough guide: {scores.reading}.",
        ),
        warnings=warnings,
        answers=hypotheses,
    )
