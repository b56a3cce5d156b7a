"""Selection and training of the attention head that best aligns target tokens with the source.

One head can be trained to align (Garg et al. 2019, "Jointly Learning to Align and Translate"): the
cross-entropy of its weights and the links of the training pairs is added to the loss. As in Chen et
al. 2020, "Accurate Word Alignment Induction from Neural Machine Translation", it aligns the token
that a step reads, not the one that it writes.
"""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace

import torch
from torch import Tensor

from dragoman.data.aligner import Aligner
from dragoman.data.batches import BatchConfig
from dragoman.data.corpus import CorpusConfig, Finding, read_pairs
from dragoman.data.dataset import PairDataset, Ragged
from dragoman.data.prepare import special_ids
from dragoman.folder.opening import ModelFolder
from dragoman.models import EncoderDecoder
from dragoman.nn import evaluation_view
from dragoman.nn.patterns.recording import Recording
from dragoman.tasks.task import model_of
from dragoman.tasks.translate.batches import PairBatch, PairBatches
from dragoman.tasks.translate.languages import languages_of

ENOUGH = 300
"""Number of pairs from which a head is chosen."""


def choose_head(model: EncoderDecoder, batches: Iterable[PairBatch]) -> tuple[int, ...] | None:
    """Return the layer and head that attend most often to the linked source tokens.

    The head attends to them when a token is written, or, if the result ends with a 1, when it is
    read. It is chosen by the first pairs, in evaluation mode. None if no head is better than the
    mean over the heads of the last layer when a token is written, or if nothing is linked.
    """
    view, seen, rows = evaluation_view(model), list[Tensor](), 0
    for each in view.decoder.each_layer():
        if (attention := each.cross_attn) is not None:
            attention.pattern = Recording(of=attention.pattern, see=seen.append)
    right: Tensor | None = None
    for batch in batches:
        if batch.links_BT is not None and rows < ENOUGH:
            rows += len(batch.links_BT)
            view(batch.src_BS, batch.tgt_in_BT)
            links_BT = batch.links_BT
            written = [_right(weights, links_BT) for weights in seen]
            read = [_right(weights[:, :, 1:], links_BT[:, :-1]) for weights in seen]
            found = torch.stack([torch.stack(written), torch.stack(read)], dim=2)
            right = found if right is None else right + found
            seen.clear()
    if right is None:
        return None
    heads = right[:, :-1]
    layer, head, later = map(int, torch.unravel_index(heads.argmax(), heads.shape))
    if heads[layer, head, later] <= right[-1, -1, 0]:
        return None
    return (layer, head, 1) if later else (layer, head)


@contextmanager
def guided_head(model: EncoderDecoder) -> Iterator[list[Tensor]]:
    """Record the weights (B, 1, T, S) of the first head of the last layer but one."""
    seen: list[Tensor] = []
    layers = [each.cross_attn for each in model.decoder.each_layer() if each.cross_attn is not None]
    attention = layers[-2:][0]
    pattern = attention.pattern
    attention.pattern = Recording(of=pattern, see=seen.append, heads=[0])
    try:
        yield seen
    finally:
        attention.pattern = pattern


def link_loss(weights_BTS: Tensor, links_BT: Tensor) -> Tensor:
    """Sum `-log` of the weight of each linked token on its source token.

    The weights are those of the step that reads the token, one after it was written (Chen et al.
    2020): a head that knows the token aligns it better than one that cannot see it yet.
    """
    links_BT = links_BT[:, :-1]
    linked_BT = links_BT >= 0
    weights_MS, links_M = weights_BTS[:, 1:][linked_BT].float(), links_BT[linked_BT]
    return -weights_MS.gather(1, links_M[:, None]).clamp(min=1e-6).log().sum()


def choose_by_texts(folder: ModelFolder, corpus: CorpusConfig) -> tuple[int, ...] | None:
    """Choose the head of a model folder by pairs of texts, from which links are learned.

    Raises InputError if the folder does not contain a translator, or if the model needs a language
    that is not given.
    """
    model, tokenizers = model_of(folder, EncoderDecoder), folder.tokenizers
    languages = languages_of(folder)
    if languages.known and (corpus.src_lang or corpus.tgt_lang):
        languages = languages.between(corpus.src_lang, corpus.tgt_lang)
    languages.check_chosen()
    texts = zip(*read_pairs(corpus), strict=True)
    src, tgt = (
        Ragged.of(tokenizer.encode_batch(side))
        for tokenizer, side in zip(tokenizers, texts, strict=True)
    )
    special = special_ids(tokenizers[0])
    pairs = PairDataset(
        name=corpus.label, src=src, tgt=tgt, special=special, identical=Finding(), content_hash=""
    )
    links = Aligner.learn([pairs], tokenizers[1].vocab_size).links(src, tgt)
    framing = languages.framing(tokenizers[1])
    batches = PairBatches([replace(pairs, links=links)], BatchConfig(), framing=framing)
    with torch.inference_mode():
        return choose_head(model, batches.fixed())


def _right(weights_BHTS: Tensor, links_BT: Tensor) -> Tensor:
    """Count the links that each head, and then their mean, attends to most: (H + 1)."""
    every_BHTS = torch.cat([weights_BHTS, weights_BHTS.mean(1, keepdim=True)], dim=1)
    linked_BHT = (every_BHTS.argmax(3) == links_BT[:, None]) & (links_BT[:, None] >= 0)
    return linked_BHT.sum((0, 2)).cpu()
