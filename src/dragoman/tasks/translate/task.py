"""The translation task as the rest of the package sees it: how it is timed, and its name."""

import math
from dataclasses import replace

import torch

from dragoman.data.dataset import Ragged
from dragoman.data.padding import enclosed
from dragoman.decode import schedule
from dragoman.decoding import TRANSLATING
from dragoman.engine import freeze
from dragoman.models import EncoderDecoder
from dragoman.nn import inference
from dragoman.tasks.task import Task
from dragoman.tasks.translate.auto import choose_sizes
from dragoman.tasks.translate.ids import write_to_lengths
from dragoman.tasks.translate.job import assemble
from dragoman.tasks.translate.measuring import evaluate_translator
from dragoman.tasks.translate.recipe import TranslateRecipe
from dragoman.tasks.translate.texts import Texts
from dragoman.tasks.translate.translator import Translator
from dragoman.train.job import Validation


def _write_as_long(
    model: EncoderDecoder, texts: Texts, sources: list[str], references: list[str]
) -> Validation:
    """Decode each source greedily to the length of its reference, in batches as for translation.

    An untrained model does not end a sentence; a trained one ends about where the reference does.
    """
    src, tgt = texts.tokenizers
    wanted = [len(ids) + 1 for ids in tgt.encode_batch(references)]
    inputs = src.encode_batch(sources)
    with inference(model) as device:
        decoder = freeze(model, "fp32")
        for batch in schedule([len(ids) + 1 for ids in inputs], TRANSLATING.max_batch_tokens):
            chosen = Ragged.of([inputs[index] for index in batch])
            source_BS = enclosed(chosen, src.pad_id, (), (src.eos_id,)).to(device)
            lengths_B = torch.tensor([wanted[index] for index in batch], device=device)
            write_to_lengths(decoder, source_BS, lengths_B, (tgt.bos_id, tgt.eos_id))
    return Validation(loss=math.nan, scores=dict.fromkeys(TranslateRecipe.metrics, 0.0))


TASK = Task(
    recipe=TranslateRecipe,
    assemble=assemble,
    kind="encoder-decoder",
    does="translates (dragoman translate)",
    use="dragoman translate {folder} < FILE",
    choose=choose_sizes,
    load=Translator.of,
    as_trained=lambda job: replace(job, score=_write_as_long),
    evaluate=evaluate_translator,
    measured_on=("src", "ref"),
    may_use=("against", "ensemble", "comet"),
)
