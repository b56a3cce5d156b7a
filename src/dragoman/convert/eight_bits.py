"""Converting a model folder to 8-bit matrices, a quarter of the size, and measuring the effect.

Decoding in int8 multiplies by the same integers as before, since it rounds weights in the same way;
only the embeddings are newly rounded. In float32 all products change slightly.
"""

import shutil
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from sacrebleu.metrics.chrf import CHRF

from dragoman.errors import InputError
from dragoman.evaluate import evaluate
from dragoman.files.writing import creating
from dragoman.folder.format import CARD, Saves, save_model
from dragoman.folder.opening import ModelFolder
from dragoman.folder.origin import Content, for_other_weights, keep_origin
from dragoman.tasks.folders import read_folder
from dragoman.tasks.translate.shortlist import FILE as SHORTLIST
from dragoman.tasks.translate.translator import Translator
from dragoman.version import __version__
from dragoman.wording import counted


@dataclass(frozen=True, slots=True, kw_only=True)
class Drift:
    """How the translations of the rounded model differ from the original's, both in float32."""

    sentences: int
    changed: int
    """Number of sentences whose translation changed."""
    worst: tuple[int, str, str] | None
    """The changed sentence whose two translations have the lowest chrF to each other: its number
    and both translations; None if no sentence changed."""
    bleu: tuple[float, float] | None
    """BLEU of the original and the rounded model, if there are references."""

    def __str__(self) -> str:
        """Return the figures as one clause."""
        changed = f"{self.changed:,} of {counted(self.sentences, 'translation')} changed"
        if self.bleu is None:
            return changed
        return f"{changed}, BLEU {self.bleu[0]:.2f} before, {self.bleu[1]:.2f} after"


def quantize(
    model: Path,
    out: Path,
    sentences: Sequence[str] | None = None,
    references: Sequence[str] | None = None,
) -> Drift | None:
    """Write the model folder `model` as the new folder `out` in 8 bits.

    If sentences are given, both models translate them, and the drift is returned and added to the
    model card. Raises InputError if the model cannot translate them, if there are none, or if their
    number differs from that of the references; then `out` is not created.
    """
    with creating(out, "converted model") as part:
        folder = read_folder(model, device="cpu")
        config = replace(folder.config, published=for_other_weights(folder.config))
        tokenizers: tuple[Saves, Saves] | dict[str, Content]
        tokenizers = folder.src_tokenizer, folder.tgt_tokenizer
        if config.published is not None:
            tokenizers = keep_origin(folder, folder.model.state_dict())
        save_model(part, folder.model, config, tokenizers=tokenizers, eight_bits=True)
        if (folder.path / SHORTLIST).exists():
            shutil.copyfile(folder.path / SHORTLIST, part / SHORTLIST)
        drift = None
        if sentences is not None:
            drift = _drift(folder, read_folder(part, device="cpu"), sentences, references)
        (part / CARD).write_text(_card(folder.path / CARD, drift), encoding="utf-8")
    return drift


def _drift(
    before: ModelFolder,
    after: ModelFolder,
    sentences: Sequence[str],
    references: Sequence[str] | None,
) -> Drift:
    """Translate all sentences with both models."""
    if not any(sentence.strip() for sentence in sentences):
        raise InputError("the probe has no sentence; give a file with some lines of source text")
    if references is not None and len(references) != len(sentences):
        raise InputError(
            f"the probe has {counted(len(sentences), 'line')} and the references have "
            f"{counted(len(references), 'line')}; give one reference for each line of the probe"
        )
    expected, found = (
        [each.text for each in Translator.of(folder).stream(sentences)]
        for folder in (before, after)
    )
    bleu = None
    if references is not None:
        bleu = _bleu(before, expected, references), _bleu(after, found, references)
    pairs = enumerate(zip(expected, found, strict=True), start=1)
    changed = [(number, *pair) for number, pair in pairs if pair[0] != pair[1]]
    chrf = CHRF()
    return Drift(
        sentences=len(expected),
        changed=len(changed),
        worst=min(changed, key=lambda c: chrf.sentence_score(c[2], [c[1]]).score, default=None),
        bleu=bleu,
    )


def _bleu(folder: ModelFolder, translations: Sequence[str], references: Sequence[str]) -> float:
    return evaluate(translations, references, tgt_lang=folder.config.tgt_lang).bleu


def _card(original: Path, drift: Drift | None) -> str:
    """Return the original's model card, if any, with a section on the conversion."""
    text = original.read_text(encoding="utf-8", errors="replace") if original.exists() else ""
    text = text.split("## 8 bits\n")[0]  # from an earlier conversion
    done = (
        "## 8 bits\n\nThe matrices are rounded to 8 bits with a scale for each row "
        f"(`dragoman convert --to int8`, dragoman {__version__}). Figures above are those of the "
        "model before."
    )
    probed = "" if drift is None else f" On a probe, in float32: {drift}."
    return f"{text.rstrip()}\n\n{done}{probed}\n".lstrip()
