"""A model folder of a quarter of the size, with its matrices in 8 bits, and what that changes.

The products of int8 decoding stay what they were, since it rounds the weights in the same way; the
embeddings are rounded too. What this changes is counted where the caller has sentences for it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from sacrebleu.metrics.chrf import CHRF

from dragoman.evaluate import evaluate
from dragoman.files.writing import creating
from dragoman.models.folder import save_model
from dragoman.models.plan import fastest
from dragoman.tasks.folders import Folder, read_folder
from dragoman.tasks.translate.translator import Translator


@dataclass(frozen=True, slots=True, kw_only=True)
class Drift:
    """How the translations of the rounded model differ from those of the original in float32."""

    sentences: int
    changed: int
    """Sentences that are translated otherwise."""
    worst: tuple[int, str, str] | None
    """The number of the sentence whose translations have the lowest chrF to each other, and both;
    None where no sentence changed."""
    bleu: tuple[float, float] | None
    """Of the original and of the rounded model, where there are references."""


def quantize(
    model: Path, out: Path, sentences: Sequence[str] = (), references: Sequence[str] = ()
) -> Drift:
    """Write the model folder `model` as the new folder `out` in 8 bits, and compare the two.

    Raises InputError where sentences are given and the model does not translate, or their number
    is not that of the references.
    """
    folder = read_folder(model, device="cpu")
    expected = list(sentences)
    if sentences:
        expected = _translations(folder, sentences)
    bleu = [_bleu(folder, expected, references)] if references else []
    with creating(out, "converted model") as part:
        tokenizers = folder.src_tokenizer, folder.tgt_tokenizer
        save_model(part, folder.model, folder.config, tokenizers=tokenizers, eight_bits=True)
        found = expected
        if sentences:
            found = _translations(read_folder(part, device="cpu"), sentences)
        if references:
            bleu.append(_bleu(folder, found, references))
    return _drift(expected, found, bleu)


def _translations(folder: Folder, sentences: Sequence[str]) -> list[str]:
    """Translations in float32, or of a folder in 8 bits in this CPU's fastest arithmetic."""
    translator = Translator.of(folder, fastest() if folder.config.eight_bits else "fp32")
    return [found.text for found in translator.stream(sentences)]


def _bleu(folder: Folder, translations: Sequence[str], references: Sequence[str]) -> float:
    return evaluate(translations, references, tgt_lang=folder.config.tgt_lang).bleu


def _drift(expected: Sequence[str], found: Sequence[str], bleu: Sequence[float]) -> Drift:
    pairs = enumerate(zip(expected, found, strict=True), start=1)
    changed = [(number, *pair) for number, pair in pairs if pair[0] != pair[1]]
    chrf = CHRF()
    return Drift(
        sentences=len(expected),
        changed=len(changed),
        worst=min(changed, key=lambda c: chrf.sentence_score(c[2], [c[1]]).score, default=None),
        bleu=(bleu[0], bleu[1]) if bleu else None,
    )
