"""Translation, as others see it: how it is measured and timed, and its name."""

import math
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import chain, islice
from pathlib import Path

import numpy as np
import torch

from dragoman.data.checks import corpus_warnings, overlap_warnings
from dragoman.data.corpus import CorpusConfig, read_pairs
from dragoman.decode import schedule
from dragoman.decoding import TRANSLATING
from dragoman.engine import freeze
from dragoman.errors import InputError
from dragoman.evaluate import evaluate
from dragoman.folder.opening import ModelFolder
from dragoman.models import EncoderDecoder
from dragoman.nn import inference
from dragoman.tasks.task import EvaluationData, Report, Task
from dragoman.tasks.timing import write_to_lengths
from dragoman.tasks.translate.auto import choose_sizes
from dragoman.tasks.translate.ids import padded
from dragoman.tasks.translate.job import TranslateJob, assemble
from dragoman.tasks.translate.recipe import TranslateRecipe
from dragoman.tasks.translate.texts import Texts
from dragoman.tasks.translate.translator import Translator
from dragoman.train.job import Validation
from dragoman.train.runfolder import RunFolder
from dragoman.wording import counted

UNLIKE = 1.0
"""A chrF2 below this means unrelated texts: those of one language have more."""

MOST_COMPARED = 1_000_000
"""Training pairs among which those of a test are looked for."""


def _as_trained(job: TranslateJob) -> TranslateJob:
    return replace(job, score=_write_as_long)


def _write_as_long(
    model: EncoderDecoder, texts: Texts, sources: list[str], references: list[str]
) -> Validation:
    """Decode greedily, in the batches of translating, each source to its reference's length.

    An untrained model does not end a sentence; a trained one ends about where the reference does.
    """
    src, tgt = texts.tokenizers
    wanted = [len(ids) + 1 for ids in tgt.encode_batch(references)]
    inputs = [[*ids, src.eos_id] for ids in src.encode_batch(sources)]
    with inference(model) as device:
        decoder = freeze(model, "fp32")
        for batch in schedule([len(ids) for ids in inputs], TRANSLATING.max_batch_tokens):
            source_BS = padded([inputs[index] for index in batch], src.pad_id).to(device)
            lengths_B = torch.tensor([wanted[index] for index in batch], device=device)
            write_to_lengths(decoder, source_BS, lengths_B, (tgt.bos_id, tgt.eos_id))
    return Validation(loss=math.nan, scores=dict.fromkeys(TranslateRecipe.metrics, 0.0))


def evaluate_translator(folder: ModelFolder, test: EvaluationData) -> Report:
    """Translate the sources and compare with the references, by BLEU and chrF.

    Raises InputError where the files do not fit each other, or for an unknown tokenizer of BLEU's.
    """
    pairs = list(read_pairs(CorpusConfig(src=str(test.src), tgt=str(test.ref))))
    config = folder.config
    references = [reference for _, reference in pairs]
    compared = {"tokenize": test.tokenize, "tgt_lang": test.tgt_lang or config.tgt_lang}
    evaluate(references[:1], references[:1], **compared)  # fails before the work
    translator = Translator.load(folder, device=test.device, precision=test.precision).between(
        test.src_lang, test.tgt_lang
    )
    results = translator.stream((source for source, _ in pairs), test.decoding)
    translations, seconds = test.read(results, "lines", len(pairs))
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
    tested = str(test.ref)
    lengths = np.array([[len(text) for text in side] for side in zip(*pairs, strict=True)])
    asked = test.src_lang or config.src_lang, test.tgt_lang or config.tgt_lang
    warnings = [
        *corpus_warnings(tested, lengths, pairs.__getitem__, asked),
        *overlap_warnings(tested, pairs, _seen_in_training(folder.path, pairs)),
    ]
    if scores.chrf < UNLIKE:
        languages = f"{config.src_lang or 'unknown'} to {config.tgt_lang or 'unknown'}"
        warnings.append(
            "The translations have next to nothing in common with the references: check "
            f"whether --src and --ref are swapped (the model translates {languages}), or whether "
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


def _seen_in_training(model: Path, pairs: Sequence[tuple[str, str]]) -> list[bool]:
    """Which pairs are in the training texts of a model, as far as its recipe's files are here."""
    wanted, seen = set(pairs), set[tuple[str, str]]()
    with suppress(InputError, OSError):
        run = RunFolder(model).begun(TranslateRecipe())
        corpora = [each for each in run.data.training if all(path.is_file() for path in each.paths)]
        read = chain.from_iterable(map(read_pairs, corpora))
        either_way = chain.from_iterable((pair, pair[::-1]) for pair in islice(read, MOST_COMPARED))
        seen = {pair for pair in either_way if pair in wanted}
    return [pair in seen for pair in pairs]


TASK = Task(
    recipe=TranslateRecipe,
    assemble=assemble,
    kind="encoder-decoder",
    does="translates (dragoman translate)",
    use="dragoman translate {folder} < FILE",
    choose=choose_sizes,
    load=Translator.of,
    as_trained=_as_trained,
    evaluate=evaluate_translator,
    measured_on=("src", "ref"),
)
