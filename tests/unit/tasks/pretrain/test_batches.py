"""Masked texts: what is masked, how often, and that each epoch is random but reproducible."""

from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tests.unit.data.streams import assert_fixed, assert_resumes, epoch_of
from tests.unit.tasks.tiny import make_tokenizer

from dragoman.data.batches import BatchConfig, Stream
from dragoman.data.dataset import Ragged, SpecialIds, TextDataset
from dragoman.data.padding import NO_TARGET
from dragoman.errors import InputError
from dragoman.tasks.pretrain.task import (
    MaskConfig,
    MaskedBatch,
    MaskedBatches,
    UnlabelledFiles,
    Vocabulary,
)

PAD, BOS, EOS, MASK_ID = 0, 2, 3, 4
VOCABULARY = Vocabulary(mask_id=MASK_ID, pieces=(5, 1000))
CONFIG = BatchConfig(max_tokens=500)


def dataset_of(rows: list[list[int]], name: str = "made") -> TextDataset:
    """Return texts of these ids."""
    special = SpecialIds(PAD, BOS, EOS)
    return TextDataset(name=name, texts=Ragged.of(rows), special=special, content_hash=str(rows))


def made(count: int = 150, longest: int = 60) -> TextDataset:
    """Return texts of random lengths and pieces, some between bos and eos."""
    rng = np.random.default_rng(count)
    rows = [rng.integers(5, 1000, rng.integers(1, longest)).tolist() for _ in range(count)]
    return dataset_of([[BOS, *row, EOS] if i % 3 == 0 else row for i, row in enumerate(rows)])


def stream_of(dataset: TextDataset, masking: MaskConfig, seed: int = 1) -> Stream[MaskedBatch]:
    """Return a stream over these texts."""
    return Stream(MaskedBatches(dataset, CONFIG, VOCABULARY, masking), seed=seed)


def restored(batch: MaskedBatch) -> torch.Tensor:
    """Return the ids with the targets restored."""
    return torch.where(batch.targets_BL == NO_TARGET, batch.ids_BL, batch.targets_BL)


def test_texts_come_back_when_targets_are_put_in() -> None:
    """Each row is bos, a text, eos, padding; nothing outside of texts is masked."""
    dataset = made()
    seen = Counter[int]()
    for batch in epoch_of(stream_of(dataset, MaskConfig(share=0.4))):
        assert batch.ids_BL.numel() <= 500
        assert batch.num_tokens == int((batch.ids_BL != PAD).sum())
        assert batch.num_targets == int((batch.targets_BL != NO_TARGET).sum())
        for row, index in zip(restored(batch), batch.indices.tolist(), strict=True):
            text = [id_ for id_ in dataset.texts[index].tolist() if id_ > MASK_ID]
            assert row.tolist() == [BOS, *text, EOS, *[PAD] * (len(row) - len(text) - 2)]
        seen.update(batch.indices.tolist())
        assert not torch.isin(batch.targets_BL, torch.tensor([PAD, BOS, EOS])).any()
    assert seen == Counter(range(150))


@pytest.mark.parametrize("share", [0.01, 0.15, 1.0])
def test_each_text_loses_its_share(share: float) -> None:
    """The share of each text's tokens is rounded to the nearest number, at least one."""
    for batch in epoch_of(stream_of(made(), MaskConfig(share=share))):
        lengths = (restored(batch) > MASK_ID).sum(dim=1).numpy()
        found = (batch.targets_BL != NO_TARGET).sum(dim=1).numpy()
        assert found.tolist() == np.maximum(1, np.rint(share * lengths)).tolist()


@pytest.mark.parametrize(("masked", "random"), [(0.8, 0.1), (1.0, 0.0), (0.0, 1.0), (0.0, 0.0)])
def test_what_stands_at_chosen_places(masked: float, random: float) -> None:
    """Mask tokens, random pieces and original ones have their configured shares."""
    batches = epoch_of(stream_of(made(400), MaskConfig(share=0.5, masked=masked, random=random)))
    pairs = torch.cat(
        [torch.stack([b.ids_BL, b.targets_BL])[:, b.targets_BL >= 0] for b in batches], 1
    )
    given, targets = pairs
    share_masked = (given == MASK_ID).float().mean().item()
    share_same = (given == targets).float().mean().item()
    assert share_masked == pytest.approx(masked, abs=0.02)
    assert share_same == pytest.approx(1 - masked - random, abs=0.02)
    replaced = given[(given != MASK_ID) & (given != targets)]
    assert not len(replaced) or (int(replaced.min()) >= 5 and int(replaced.max()) < 1000)
    assert random < 1.0 or len(replaced.unique()) > 900


def test_places_are_drawn_evenly() -> None:
    """Each position of a text of ten tokens is chosen equally often."""
    dataset = dataset_of([list(range(5, 15))] * 3000)
    epoch = epoch_of(stream_of(dataset, MaskConfig(share=0.2)))
    counts = sum((b.targets_BL >= 0).sum(dim=0) for b in epoch)
    assert isinstance(counts, torch.Tensor)
    assert counts[[0, -1]].tolist() == [0, 0]
    assert counts[1:-1].float().numpy() == pytest.approx(600, rel=0.15)


def test_what_is_hidden_is_drawn_anew_each_epoch() -> None:
    """The same text has other targets in the next epoch, and with another seed."""
    dataset = made(20)
    stream = stream_of(dataset, MaskConfig(share=0.3))
    found = []
    for drawn in (stream, stream, stream_of(dataset, MaskConfig(share=0.3), seed=9)):
        hidden = {}
        for batch in epoch_of(drawn):
            for row, index in zip(batch.targets_BL, batch.indices.tolist(), strict=True):
                hidden[index] = tuple((row >= 0).nonzero().flatten().tolist())
        found.append(hidden)
    for other in found[1:]:
        assert sum(other[i] == found[0][i] for i in range(20)) < 10


def test_resuming_goes_on_with_the_same_batches() -> None:
    """A saved stream continues exactly, including masked tokens; other data is refused."""
    source, *others = (
        MaskedBatches(made(count), CONFIG, VOCABULARY, MaskConfig(share=share))
        for count, share in ((150, 0.15), (151, 0.15), (150, 0.2))
    )
    assert_resumes(source, 3, *others)


def test_validation_hides_always_the_same() -> None:
    """Every text comes once, with the same targets each time."""
    assert_fixed(MaskedBatches(made(), CONFIG, VOCABULARY, MaskConfig()), 150)


def test_long_texts_come_in_parts() -> None:
    """No row exceeds the limit, and the parts of a text are complete."""
    dataset = made(40)
    config = BatchConfig(max_tokens=300, max_length=16)
    found: dict[int, Counter[int]] = {}
    for batch in MaskedBatches(dataset, config, VOCABULARY, MaskConfig()).fixed():
        assert batch.ids_BL.shape[1] <= 18
        for row, index in zip(restored(batch), batch.indices.tolist(), strict=True):
            found.setdefault(index, Counter()).update(row[row > MASK_ID].tolist())
    for index in range(40):
        text = dataset.texts[index]
        assert found[index] == Counter(text[text > MASK_ID].tolist())


def test_nothing_to_learn_from_is_refused() -> None:
    """A dataset of only empty texts is refused; single empty texts are skipped."""
    with pytest.raises(InputError, match="none holds no text"):
        stream_of(dataset_of([[]], "none"), MaskConfig())
    (batch,) = epoch_of(stream_of(dataset_of([[], [7, 8], [BOS, EOS]]), MaskConfig()))
    assert batch.indices.tolist() == [1]


@pytest.mark.parametrize(
    ("kind", "content", "texts"),
    [
        ("texts", "good dog\nbad bad dog\n", ["good dog", "bad bad dog"]),
        ("labelled", "1\tgood dog\n0\tbad dog\n", ["good dog", "bad dog"]),
        ("tagged", "good O\ndog B-X\n\nbad O\n", ["good dog", "bad"]),
    ],
)
def test_files_of_one_kind_are_enough(
    tmp_path: Path, kind: str, content: str, texts: list[str]
) -> None:
    """One kind of file is enough; datasets of different tokenizers cannot be joined."""
    (tmp_path / kind).write_text(content)
    tokenizer = make_tokenizer()
    files: dict[str, Any] = {kind: (str(tmp_path / kind),)}
    dataset = UnlabelledFiles(**files, cache=str(tmp_path)).load(tokenizer)
    found = (dataset.texts[number].tolist() for number in range(len(dataset)))
    assert [*map(tokenizer.decode, found)] == texts
    other = replace(dataset_of([[1]]), special=SpecialIds(9, 9, 9))
    with pytest.raises(ValueError, match="different tokenizers"):
        TextDataset.joined([dataset, other])


def test_a_tokenizer_without_mask_is_refused() -> None:
    """The error names the setting that adds one."""
    with pytest.raises(InputError, match=r"no special token <mask>.*tokenizer\.specials"):
        Vocabulary.of(make_tokenizer())
