"""Learning to translate: pairs of texts, an encoder-decoder, judged by BLEU and chrF."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

from torch import Tensor

from dragoman.data.batches import Stream
from dragoman.decoding import Decoding
from dragoman.evaluate import bleu_tokenizer, evaluate
from dragoman.folder.format import TRANSLATION, FolderConfig
from dragoman.models import EncoderDecoder
from dragoman.tasks.translate.batches import PairBatch, PairBatches
from dragoman.tasks.translate.heads import choose_head, guided_head, link_loss
from dragoman.tasks.translate.recipe import TranslateRecipe
from dragoman.tasks.translate.texts import Texts, read_texts
from dragoman.tasks.translate.translator import Translator
from dragoman.text.sentences import sentences_of
from dragoman.text.tokenizer import Tokenizer
from dragoman.train.checkpoint import checkpoints
from dragoman.train.job import CardPart, Check, Say, Validation, evaluating, unchecked
from dragoman.train.objective import agreeing_loss
from dragoman.train.recipe import check_places
from dragoman.train.runfolder import RunFolder
from dragoman.train.start import begin_model, check_tokens
from dragoman.wording import counted

COLLAPSE = 0.02  # nats: a source that helps by less than this is not looked at
COLLAPSED = (
    "the model's losses are the same whatever source it is given, so the decoder ignores the "
    "source; lower train.learning_rate, lengthen train.warmup_steps or use "
    'model.norm_position = "pre"'
)

SHOWN = 3
"""Translations that a validation shows beside their references."""
LOOKED_AT = 1000
"""Validation sources that tell whether lines have several sentences."""
SEVERAL = 0.1
"""Share of such lines above which the model translates lines whole."""

Score = Callable[[EncoderDecoder, Texts, list[str], list[str]], Validation]
"""Scores a model's greedy translations of sources, given the references; without a loss."""


def score_greedy(
    model: EncoderDecoder,
    texts: Texts,
    sources: list[str],
    references: list[str],
    *,
    tokenize: str,
    split_sentences: bool | None = None,
) -> Validation:
    """Translate greedily, lines whole or in sentences, and compare by BLEU's tokenizer `tokenize`.

    `split_sentences` is that of `Decoding`.
    """
    translator = Translator(model, *texts.tokenizers, published=texts.published)
    greedy = Decoding(beam_size=1, retry=False, split_sentences=split_sentences)
    hypotheses = [found.text for found in translator.translate(sources, options=greedy)]
    scores = evaluate(hypotheses, references, tokenize=tokenize)
    return Validation(
        loss=math.nan,
        scores={"bleu": scores.bleu, "chrf": scores.chrf, "exact": scores.exact},
        signature=scores.bleu_signature,
        examples=tuple(zip(hypotheses[:SHOWN], references[:SHOWN], strict=True)),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class TranslateJob:
    """An encoder-decoder and pairs of texts."""

    recipe: TranslateRecipe
    config: FolderConfig
    model: EncoderDecoder
    texts: Texts
    batches: Stream[PairBatch]
    validation: tuple[PairBatch, ...]
    score: Score

    @property
    def tokenizers(self) -> tuple[Tokenizer, Tokenizer]:
        """Of source and target."""
        return self.texts.tokenizers

    def loss(self, batch: PairBatch) -> Tensor:
        """Sum the smoothed cross-entropy over the target's tokens, and that of a guided head.

        With R-Drop its loss.
        """
        smoothing, weight = self.recipe.train.label_smoothing, self.recipe.data.guided_alignment
        if self.recipe.train.r_drop:
            texts = batch.src_BS, batch.tgt_in_BT, batch.tgt_out_BT
            return agreeing_loss(self.model, *texts, smoothing, self.recipe.train.r_drop)
        if batch.links_BT is None:
            return self.recipe.loss(self.model, batch, smoothing)
        with guided_head(self.model) as seen:
            loss = self.recipe.loss(self.model, batch, smoothing)
        return loss + weight * link_loss(seen[-1][:, 0], batch.links_BT)

    def measure(self) -> Validation:
        """Find the loss, what the source is worth, and the scores of greedy translations."""
        sources, references = self.texts.validation_lines(self.recipe.train.validate_limit)
        return validate(
            self.model,
            self.validation,
            lambda: self.score(self.model, self.texts, sources, references),
        )

    def card(self, validation: Validation) -> CardPart:
        """Say which languages, which texts and how BLEU was computed."""
        data, model = self.recipe.data, self.recipe.model
        if data.valid_src:
            judged_on = f"validation: `{data.valid_src}`, `{data.valid_tgt}`"
        else:
            pairs = counted(data.hold_out, "pair")
            judged_on = f"validation: up to {pairs} held out from the training data"
        paths = [path for corpus in data.named for path in corpus.paths]
        return CardPart(
            title=f"Translation model, {data.src_lang or 'source'} to {data.tgt_lang or 'target'}",
            data=(*(f"training: `{path}`" for path in paths), judged_on),
            architecture=f"an encoder-decoder Transformer of {model.num_encoder_layers} encoder "
            f"and {counted(model.num_decoder_layers, 'decoder layer')}, d_model {model.d_model}, "
            f"{counted(model.num_heads, 'head')}, d_ff {model.d_ff}, {model.norm_position}-norm",
            judged=f"Greedy translations, sacreBLEU `{validation.signature}`; the loss is in nats "
            "per target token.",
            use="dragoman translate THIS_FOLDER < input.txt",
        )


def assemble(
    recipe: TranslateRecipe,
    folder: RunFolder,
    say: Say,
    check: Check = unchecked,
    score: Score | None = None,
) -> TranslateJob:
    """Read the texts, learn or load the tokenizers, and build model and batches.

    A validation translates and scores as `score_greedy` does, or as `score` does in its place.
    """
    made = recipe.data.made is not None
    if made:
        recipe = replace(recipe, data=recipe.data.write(folder.training / "texts"))
        say(f"Wrote the generated corpus to {folder.training / 'texts'}.")
    texts = read_texts(recipe, folder, say)
    if not made and not checkpoints(folder.checkpoints):  # said once for a run
        for warning in texts.warnings(recipe.data):
            say(f"Warning: {warning}")
    src, tgt = texts.tokenizers
    architecture = recipe.model
    if recipe.start.model is None:
        architecture = replace(
            architecture, src_vocab_size=src.vocab_size, tgt_vocab_size=tgt.vocab_size
        )
    languages = recipe.data if texts.published is None else texts.published
    config = FolderConfig(
        model=architecture,
        decoding=_decoding(recipe.decoding, texts),
        src_lang=languages.src_lang or recipe.data.src_lang,
        tgt_lang=languages.tgt_lang or recipe.data.tgt_lang,
    )
    splits = (src.splits(), tgt.splits()) if recipe.batch.subword_sampling else None
    framing = None
    if texts.published is not None:
        framing = texts.published.framing(tgt)
        longest = recipe.batch.max_length
        limit = f"batch.max_length = {longest} beside the ids around a text"
        check_places(architecture.positions, longest + max(framing.sizes), limit)
    source = PairBatches(texts.training, recipe.batch, splits, framing)
    batches = Stream(source, seed=recipe.train.seed)
    check_tokens(architecture, src, tgt)
    held_out = PairBatches([texts.validation], recipe.batch, framing=framing)
    validation = tuple(held_out.fixed())
    check(architecture, batches, validation)
    if folder.start is not None:
        _compare_directions(folder.start.config, config, say)
    return TranslateJob(
        recipe=recipe,
        config=config,
        model=begin_model(EncoderDecoder, architecture, recipe),
        texts=texts,
        batches=batches,
        validation=validation,
        score=score
        or partial(
            score_greedy,
            tokenize=bleu_tokenizer(config.tgt_lang),
            split_sentences=config.decoding.split_sentences,
        ),
    )


def _decoding(wanted: Decoding, texts: Texts) -> Decoding:
    """Let sentences be translated one by one, unless the model learns to translate more at once."""
    wanted = replace(wanted, **(TRANSLATION.given() | wanted.given()))
    if wanted.split_sentences is not None:
        return wanted
    sources, _ = texts.validation_lines(LOOKED_AT)
    several = sum(len(sentences_of(source.strip())) > 1 for source in sources)
    return replace(wanted, split_sentences=several <= SEVERAL * len(sources))


def _compare_directions(start: FolderConfig, config: FolderConfig, say: Say) -> None:
    """Warn of texts that go the other way than the model that a run starts from."""
    src, tgt = start.src_lang, start.tgt_lang
    if src and tgt and src != tgt and (config.src_lang, config.tgt_lang) == (tgt, src):
        say(
            f"Warning: the model to start from translates {src} to {tgt}, and these texts go from "
            f"{tgt} to {src}; check whether source and target are swapped."
        )


def validate(
    model: EncoderDecoder, batches: Sequence[PairBatch], score: Callable[[], Validation]
) -> Validation:
    """Measure a model on fixed batches, in evaluation mode, and leave it in training mode."""
    with evaluating(model) as device:
        batches = [batch.to(device) for batch in batches]
        loss = sum(TranslateRecipe.loss(model, batch, 0.0).item() for batch in batches)
        gain = _source_gain(model, batches)
        alignment = choose_head(model, batches)
        scored = score()
    return replace(
        scored,
        loss=loss / sum(batch.num_targets for batch in batches),
        diagnostics={} if gain is None else {"source_gain": gain},
        warnings=(COLLAPSED,) if gain is not None and gain < COLLAPSE else (),
        alignment=alignment,
    )


def _source_gain(model: EncoderDecoder, batches: Sequence[PairBatch]) -> float | None:
    """How much the loss grows, in nats per token, when each sentence gets another one's source.

    Measured on one batch, whose sources are passed on by one place; None for a batch of one pair.
    """
    sample = max(batches, key=lambda batch: len(batch.src_BS))
    if len(sample.src_BS) == 1:
        return None
    swapped = replace(sample, src_BS=sample.src_BS.roll(1, dims=0))
    right, wrong = (TranslateRecipe.loss(model, each, 0.0).item() for each in (sample, swapped))
    return (wrong - right) / sample.num_targets
