"""Training for translation: pairs of texts, an encoder-decoder, scored by BLEU and chrF."""

import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from typing import Any

import torch
from torch import Tensor

from dragoman.data.batches import Stream
from dragoman.decoding import Decoding
from dragoman.evaluate import evaluate
from dragoman.folder.format import TRANSLATION, FolderConfig
from dragoman.folder.opening import ModelFolder
from dragoman.languages import base_of
from dragoman.models import EncoderDecoder
from dragoman.tasks.hiding import hide_tokens
from dragoman.tasks.results import Translation
from dragoman.tasks.translate.batches import PairBatch, PairBatches
from dragoman.tasks.translate.heads import choose_head, guided_head, link_loss
from dragoman.tasks.translate.languages import Published
from dragoman.tasks.translate.placing import Placeholders
from dragoman.tasks.translate.recipe import DataConfig, TranslateRecipe
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

COLLAPSE = 0.02  # nats; a model ignores a source that helps by less than this
COLLAPSED = (
    "the model's losses are the same whatever source it is given, so the decoder ignores the "
    "source; lower train.learning_rate, lengthen train.warmup_steps, or, "
    'if the model is not pre-norm, set model.norm_position = "pre"'
)

FREQUENCIES = 0.95
"""Share of the unigram entropy above which a loss reflects token frequencies alone."""
FREQUENT = (
    "the model's loss is that of knowing how frequent each token is and nothing else; train "
    "longer, and if that does not help, lower train.learning_rate, lengthen train.warmup_steps, "
    'or, if the model is not pre-norm, set model.norm_position = "pre"'
)
FAR = 2.0
"""Multiple of the loss of uniform guessing above which a run has diverged."""
DIVERGED = (
    "the model's loss is more than twice that of guessing, so the run has diverged; lower "
    "train.learning_rate, or lengthen train.warmup_steps"
)
LEAST_TARGETS = 1000
"""Minimum number of tokens from which their frequencies are measured."""
MOST, LEAST_LINES = 0.5, 20
"""Share of translations above which a fault is that of the model, and the minimum number of
lines."""
ALIKE = (
    "most translations are one and the same; train longer, on more texts, and if that does not "
    "help, lower train.learning_rate"
)
LOOPING = (
    "most translations repeat themselves; train longer, on more texts, and look for lines that "
    "repeat words (dragoman data check)"
)
COPYING = (
    "most translations are their sources; look for untranslated lines in the training texts "
    "(dragoman data check)"
)

SHOWN = 3
"""Number of translations that a validation shows next to their references."""
LOOKED_AT = 1000
"""Number of validation sources searched for lines of several sentences."""
SEVERAL = 0.1
"""Share of such lines above which the model translates whole lines."""

Score = Callable[[EncoderDecoder, Texts, list[str], list[str]], Validation]
"""Scores a model's greedy translations of sources against references, without a loss."""


def score_greedy(
    model: EncoderDecoder,
    texts: Texts,
    sources: list[str],
    references: list[str],
    *,
    split_sentences: bool | None = None,
) -> Validation:
    """Translate greedily, by line or by sentence, and score as the target language requires.

    `split_sentences` is the option of `Decoding`.
    """
    translator = Translator(model, *texts.tokenizers, languages=texts.languages)
    greedy = Decoding(beam_size=1, retry=False, split_sentences=split_sentences)
    found = translator.translate(sources, options=greedy)
    hypotheses = [each.text for each in found]
    scores = evaluate(hypotheses, references, tgt_lang=texts.tgt_lang)
    return Validation(
        loss=math.nan,
        scores={"bleu": scores.bleu, "chrf": scores.chrf, "exact": scores.exact},
        signature=scores.bleu_signature,
        examples=tuple(zip(hypotheses[:SHOWN], references[:SHOWN], strict=True)),
        warnings=tuple(faults(sources, found, references)),
    )


def faults(
    sources: Sequence[str], found: Sequence[Translation], references: Sequence[str]
) -> Iterator[str]:
    """Yield a sentence for each fault that most translations of a validation have."""
    if len(found) < LEAST_LINES:
        return
    most = MOST * len(found)
    texts, right = Counter(each.text for each in found), Counter(references)
    if texts.most_common(1)[0][1] - right.most_common(1)[0][1] > most:
        yield ALIKE
    if sum("loop" in each.flags for each in found) > most:
        yield LOOPING
    rows = zip(sources, found, references, strict=True)
    if sum(source == each.text != reference for source, each, reference in rows) > most:
        yield COPYING


@dataclass(frozen=True, slots=True, kw_only=True)
class TranslateJob:
    """A training job: an encoder-decoder and pairs of texts."""

    recipe: TranslateRecipe
    config: FolderConfig
    model: EncoderDecoder
    texts: Texts
    batches: Stream[PairBatch]
    validation: tuple[PairBatch, ...]
    score: Score

    @property
    def tokenizers(self) -> tuple[Tokenizer, Tokenizer]:
        """The tokenizers of source and target."""
        return self.texts.tokenizers

    def loss(self, batch: PairBatch) -> Tensor:
        """Sum the smoothed cross-entropy over the target's tokens, and the loss of a guided head.

        With R-Drop, return its loss instead. Some tokens of the source may be hidden.
        """
        hidden = self.recipe.batch.token_dropout
        batch = replace(batch, src_BS=hide_tokens(batch.src_BS, hidden, self.tokenizers[0]))
        smoothing, weight = self.recipe.train.label_smoothing, self.recipe.data.guided_alignment
        if self.recipe.train.r_drop:
            texts = batch.src_BS, batch.tgt_in_BT, batch.tgt_out_BT
            return agreeing_loss(self.model, *texts, smoothing, self.recipe.train.r_drop)
        if batch.links_BT is None or not weight:
            return self.recipe.loss(self.model, batch, smoothing)
        with guided_head(self.model) as seen:
            loss = self.recipe.loss(self.model, batch, smoothing)
        return loss + weight * link_loss(seen[-1][:, 0], batch.links_BT)

    def measure(self) -> Validation:
        """Measure the loss, the gain from the source, and the scores of greedy translations."""
        return validate(self.model, self.validation, self._score)

    def _score(self) -> Validation:
        """Score each direction; for several, return the means and the score of each.

        Nothing is scored if no translations are wanted, as for the loss alone.
        """
        texts, limit = self.texts, self.recipe.train.validate_limit
        if limit < 1:
            return Validation(loss=math.nan)
        found = [
            self.score(self.model, texts.of(held), *texts.first_lines(held, limit))
            for held in texts.validation
        ]
        if len(found) == 1:
            return found[0]
        names = ["-".join(map(str, held.languages)) for held in texts.validation]
        return Validation(
            loss=math.nan,
            scores={
                metric: sum(each.scores[metric] for each in found) / len(found)
                for metric in found[0].scores
            },
            diagnostics={
                f"{metric}.{name}": score
                for name, each in zip(names, found, strict=True)
                for metric, score in each.scores.items()
            },
            signature=", ".join(dict.fromkeys(each.signature for each in found)),
            examples=tuple(example for each in found for example in each.examples[:1]),
            warnings=tuple(dict.fromkeys(chain.from_iterable(each.warnings for each in found))),
        )

    def card(self, validation: Validation) -> CardPart:
        """Describe the languages, the texts and how BLEU was computed."""
        data, model = self.recipe.data, self.recipe.model
        given = [f"`{path}`" for corpus in data.validating for path in corpus.paths]
        judged_on = f"validation: {', '.join(given)}"
        if not given:
            pairs = counted(data.hold_out, "pair")
            judged_on = f"validation: up to {pairs} held out from the training data"
        paths = [path for corpus in data.named for path in corpus.paths]
        languages = f"{data.src_lang or 'source'} to {data.tgt_lang or 'target'}"
        several = ", ".join(map("-".join, data.learned))
        means = ", means of all directions" if several else ""
        greedy = f"Greedy translations, sacreBLEU `{validation.signature}`{means}; the"
        judged = f"{greedy if validation.scores else 'The'} loss is in nats per target token."
        use = self.recipe.use(self.config.directions) or "dragoman translate {folder} < input.txt"
        return CardPart(
            title=f"Translation model, {several or languages}",
            data=(*(f"training: `{path}`" for path in paths), judged_on),
            architecture=f"an encoder-decoder Transformer of {model.num_encoder_layers} encoder "
            f"and {counted(model.num_decoder_layers, 'decoder layer')}, d_model {model.d_model}, "
            f"{counted(model.num_heads, 'head')}, d_ff {model.d_ff}, {model.norm_position}-norm",
            judged=judged,
            use=use.format(folder="THIS_FOLDER"),
        )


def assemble(
    recipe: TranslateRecipe,
    folder: RunFolder,
    say: Say,
    check: Check = unchecked,
    score: Score | None = None,
) -> TranslateJob:
    """Read the texts, train or load the tokenizers, and build the model and batches.

    Validation translates and scores with `score`, by default with `score_greedy`.
    """
    made = recipe.data.made is not None
    if made:
        recipe = replace(recipe, data=recipe.data.write(folder.training / "texts"))
        say(f"Wrote the generated corpus to {folder.training / 'texts'}.")
    texts = read_texts(recipe, folder, say)
    if not made and not checkpoints(folder.checkpoints):  # once per run
        for warning in texts.warnings():
            say(f"Warning: {warning}")
    src, tgt = texts.tokenizers
    architecture = recipe.model
    rows = 0, 0
    if recipe.start.model is not None:  # its matrices may have more rows than tokens
        rows = architecture.src_vocab_size, architecture.tgt_vocab_size
    architecture = replace(
        architecture,
        src_vocab_size=max(rows[0], src.vocab_size),
        tgt_vocab_size=max(rows[1], tgt.vocab_size),
    )
    config = FolderConfig(
        model=architecture,
        decoding=_decoding(recipe.decoding, texts),
        **_languages(texts, recipe.data, folder.start),
    )
    splits = (src.splits(), tgt.splits()) if recipe.batch.subword_sampling else None
    framing, around = None, 1 + len(texts.training[0].tags)
    if isinstance(texts.languages, Published):
        framing = texts.languages.framing(tgt)
        around = max(framing.sizes)
    longest = recipe.batch.max_length
    limit = f"batch.max_length = {longest} beside the ids around a text"
    check_places(architecture.positions, longest + around, limit)
    share = recipe.data.placeholders
    placeholders = Placeholders(share, src, tgt, recipe.batch.max_length) if share else None
    source = PairBatches(texts.training, recipe.batch, splits, framing, placeholders)
    judges = " ".join(held.content_hash for held in texts.validation)
    batches = Stream(source, seed=recipe.train.seed, validation=judges)
    check_tokens(architecture, src, tgt)
    held_out = (PairBatches([held], recipe.batch, framing=framing) for held in texts.validation)
    validation = tuple(chain.from_iterable(held.fixed() for held in held_out))
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
        score=score or partial(score_greedy, split_sentences=config.decoding.split_sentences),
    )


def _languages(texts: Texts, data: DataConfig, start: ModelFolder | None) -> dict[str, Any]:
    """Return the folder's languages; for several directions, those that all of them share."""
    chosen = texts.languages
    if not chosen.directions:
        src, tgt = chosen.src_lang or data.src_lang, chosen.tgt_lang or data.tgt_lang
        return {"src_lang": src, "tgt_lang": tgt}
    before = () if start is None else start.config.directions
    directions = tuple(dict.fromkeys((*before, *chosen.directions)))
    srcs, tgts = ({*side} for side in zip(*directions, strict=True))
    return {
        "src_lang": srcs.pop() if len(srcs) == 1 else None,
        "tgt_lang": tgts.pop() if len(tgts) == 1 else None,
        "directions": directions,
    }


def _decoding(wanted: Decoding, texts: Texts) -> Decoding:
    """Split lines into sentences by default, unless the validation lines often have several."""
    wanted = replace(wanted, **(TRANSLATION.given() | wanted.given()))
    if wanted.split_sentences is not None:
        return wanted
    every = (texts.first_lines(held, LOOKED_AT)[0] for held in texts.validation)
    sources = [*chain.from_iterable(every)]
    several = sum(len(sentences_of(source.strip())) > 1 for source in sources)
    return replace(wanted, split_sentences=several <= SEVERAL * len(sources))


def _compare_directions(start: FolderConfig, config: FolderConfig, say: Say) -> None:
    """Warn if the texts are in other languages than the model that a run starts from."""
    theirs, ours = (start.src_lang, start.tgt_lang), (config.src_lang, config.tgt_lang)
    then, now = ([base_of(code) for code in codes if code] for codes in (theirs, ours))
    if len({*then}) < 2 or len(now) < 2 or now == then:
        return
    to_do = (
        "check whether source and target are swapped"
        if now == then[::-1]
        else "training on these alone replaces the old pair; to keep both, list corpora of both in "
        "a recipe"
    )
    say(
        f"Warning: the model to start from translates {theirs[0]} to {theirs[1]}, and these texts "
        f"go from {ours[0]} to {ours[1]}; {to_do}."
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
    mean = loss / sum(batch.num_targets for batch in batches)
    return replace(
        scored,
        loss=mean,
        diagnostics={**scored.diagnostics, **({} if gain is None else {"source_gain": gain})},
        warnings=(
            *scored.warnings,
            *([COLLAPSED] if gain is not None and gain < COLLAPSE else []),
            *_of_loss(mean, batches, model),
        ),
        alignment=alignment,
    )


def _of_loss(mean: float, batches: Sequence[PairBatch], model: EncoderDecoder) -> list[str]:
    """Return the warnings that follow from the loss alone."""
    if mean > FAR * math.log(model.output.out_features):
        return [DIVERGED]
    return [FREQUENT] if mean > FREQUENCIES * _entropy(batches, model.pad_id) else []


def _entropy(batches: Sequence[PairBatch], pad_id: int) -> float:
    """Return the entropy of the target token frequencies in nats; infinity for too few tokens."""
    targets = torch.cat([batch.tgt_out_BT.flatten() for batch in batches])
    counts = targets[targets != pad_id].bincount()
    shares = counts[counts > 0] / counts.sum()
    few = counts.sum() < LEAST_TARGETS
    return math.inf if few else -(shares * shares.log()).sum().item()


def _source_gain(model: EncoderDecoder, batches: Sequence[PairBatch]) -> float | None:
    """Return how much the loss grows, in nats per token, when sentences get each other's source.

    It is measured on one batch, whose sources are rotated by one; None for a batch of one pair.
    """
    sample = max(batches, key=lambda batch: len(batch.src_BS))
    if len(sample.src_BS) == 1:
        return None
    swapped = replace(sample, src_BS=sample.src_BS.roll(1, dims=0))
    right, wrong = (TranslateRecipe.loss(model, each, 0.0).item() for each in (sample, swapped))
    return (wrong - right) / sample.num_targets
