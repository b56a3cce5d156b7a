"""From a text to its `Inspection`: one function for each variant of the Transformer.

The caller has run the task itself (a translation, a continuation, a label), with its search
recorded by `Observed`, and passes what came out. Here the model reads it once more, watched.
"""

from collections.abc import Iterator, Sequence

import torch
from torch import Tensor

from dragoman.lens.inspection import (
    Alternative,
    Attribution,
    Inspection,
    Note,
    Prediction,
    Sentence,
    Step,
)
from dragoman.lens.parts import (
    Searched,
    Subject,
    alignment_of,
    attention_map,
    cut_maps,
    cut_search,
    logit_step,
    searched_steps,
)
from dragoman.lens.search import beam_tree
from dragoman.lens.trace import Traced, trace_continuation, trace_text, trace_translation
from dragoman.lens.weights import gradient_input, rollout
from dragoman.models import DecoderOnly, EncoderDecoder, EncoderOnly
from dragoman.models.heads import ClassificationHead, Head, MaskedLanguageHead
from dragoman.nn.cpu.ranking import IMPOSSIBLE
from dragoman.text.tokenizer import MASK, Tokenizer

__all__ = ["inspect_continuation", "inspect_reading", "inspect_translation"]

NO_GAP = Note(
    en=f'The text has no gap for the model to fill: write {MASK} for a word, as in "The {MASK} '
    'drinks tea."',
    zh=f"文本中没有可供模型填补的空位：用 {MASK} 代替一个词，例如“The {MASK} drinks tea.”。",
)
"""The note on a text without a gap, which a masked language model cannot fill."""


def inspect_translation(
    model: EncoderDecoder, subject: Subject, text: str, src_ids: Sequence[int], found: Searched
) -> Inspection:
    """Look at a translation of a text, whose ids come without eos; `found` by a beam."""
    src_tokenizer, tgt_tokenizer = subject.src_tokenizer, subject.tgt_tokenizer
    src_ids = [*src_ids, src_tokenizer.eos_id]
    read_ids = [tgt_tokenizer.bos_id, *found.ids[:-1]]
    traced = trace_translation(model, src_ids, read_ids, subject.wanted)
    src, tgt = src_tokenizer.tokens(src_ids), tgt_tokenizer.tokens(found.ids)
    read = tgt_tokenizer.tokens(read_ids)
    return Inspection(
        kind="encoder-decoder",
        model=subject.model,
        src_lang=subject.src_lang,
        tgt_lang=subject.tgt_lang,
        src=Sentence(text=text, tokens=tuple(src)),
        tgt=Sentence(text=found.text, tokens=tuple(tgt)),
        attention=(
            attention_map("encoder", traced["encoder"], (src, src)),
            attention_map("decoder", traced["decoder"], (tgt, read), ("tgt", "tgt")),
            attention_map("cross", traced["cross"], (tgt, src), ("tgt", "src")),
        ),
        alignment=alignment_of(traced["cross"], ended=found.best.stopped == "eos"),
        steps=tuple(searched_steps(found, tgt_tokenizer, first=0)),
        beam=beam_tree(found.notes, found.best, lambda id_: tgt_tokenizer.tokens([id_])[0]),
        notes=(*cut_maps(traced), *cut_search(found, tree=True)),
    )


def inspect_continuation(
    model: DecoderOnly,
    subject: Subject,
    prompt_ids: Sequence[int],
    found: Searched,
    never: Sequence[int] = (),
) -> Inspection:
    """Look at a prompt and what the model wrote after it.

    `found.text` is both, and `never` are the ids that the model may not write.
    """
    tokenizer = subject.tgt_tokenizer
    traced, logits_PV = trace_continuation(model, prompt_ids, found.ids[:-1], subject.wanted)
    tokens = tokenizer.tokens([*prompt_ids, *found.ids])
    logits_PV = _without(logits_PV, never)
    given = [
        logit_step(logits_PV[index - 1], index, tokenizer, given=id_)
        for index, id_ in enumerate(prompt_ids[1:], start=1)
    ]
    return Inspection(
        kind="decoder-only",
        model=subject.model,
        src_lang=subject.src_lang,
        src=Sentence(text=found.text, tokens=tuple(tokens)),
        attention=(attention_map("decoder", traced["decoder"], (tokens[:-1], tokens[:-1])),),
        steps=(*given, *searched_steps(found, tokenizer, first=len(prompt_ids))),
        notes=(*cut_maps(traced), *cut_search(found, tree=False)),
    )


def inspect_reading(
    model: EncoderOnly,
    subject: Subject,
    text: str,
    ids: Sequence[int],
    head: Head,
    tags: Sequence[str | None] = (),
) -> Inspection:
    """Look at a text that an encoder reads, whose ids come with both ends.

    `head` is the one of the config; `tags` are those of the tokens, where it is a tagger's.
    """
    tokenizer = subject.src_tokenizer
    labelled = isinstance(head, ClassificationHead)
    traced, logits = trace_text(model, ids, subject.wanted, averaged=labelled)
    tokens = tokenizer.tokens(ids)
    prediction = Prediction(tags=tuple(tags)) if tags else None
    attributions: tuple[Attribution, ...] = ()
    steps: tuple[Step, ...] = ()
    notes = tuple(cut_maps(traced))
    if isinstance(head, ClassificationHead):
        prediction = _labels(logits, head.labels)
        attributions = _attributions(model, ids, traced["encoder"], head, int(logits.argmax()))
    elif isinstance(head, MaskedLanguageHead):
        steps = tuple(_gaps(logits, ids, tokenizer))
        notes += () if steps else (NO_GAP,)
    return Inspection(
        kind="encoder-only",
        model=subject.model,
        src_lang=subject.src_lang,
        src=Sentence(text=text, tokens=tuple(tokens)),
        attention=(attention_map("encoder", traced["encoder"], (tokens, tokens)),),
        steps=steps,
        prediction=prediction,
        attributions=attributions,
        notes=notes,
    )


def _without(logits_PV: Tensor, never: Sequence[int]) -> Tensor:
    """The logits of a model that may not write these ids."""
    columns = torch.tensor(never, dtype=torch.long, device=logits_PV.device)
    return logits_PV.index_fill(1, columns, IMPOSSIBLE)


def _labels(logits_C: Tensor, labels: Sequence[str]) -> Prediction:
    """The labels with their probabilities, most probable first."""
    probs_C = logits_C.softmax(0)
    order = probs_C.argsort(descending=True, stable=True).tolist()
    found = (Alternative(token=labels[index], prob=float(probs_C[index])) for index in order)
    return Prediction(labels=tuple(found))


def _attributions(
    model: EncoderOnly,
    ids: Sequence[int],
    traced: Traced,
    head: ClassificationHead,
    label: int,
) -> tuple[Attribution, ...]:
    """Both methods, for the label that the model gives."""
    mean_LSS = torch.stack([traced.means[layer] for layer in range(traced.num_layers)])
    rolled_S = rollout(mean_LSS, head.pooling)
    slopes_S = gradient_input(model, ids, label)
    return (
        Attribution(method="rollout", scores=tuple(rolled_S.tolist())),
        Attribution(method="gradient-input", scores=tuple(slopes_S.tolist())),
    )


def _gaps(logits_LV: Tensor, ids: Sequence[int], tokenizer: Tokenizer) -> Iterator[Step]:
    """What the model would put at each masked place."""
    mask_id = tokenizer.specials.get(MASK)
    for index, id_ in enumerate(ids):
        if id_ == mask_id:
            yield logit_step(logits_LV[index], index, tokenizer)
