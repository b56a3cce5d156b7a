"""Laws of windows over text, for any documents, length and stride."""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from dragoman.data.batches import Stream
from dragoman.data.dataset import Ragged, SpecialIds
from dragoman.data.documents import DocumentDataset
from dragoman.tasks.generate.batches import LanguageBatch, PackConfig, PackedBatches

PAD, BOS, EOS = 0, 2, 3
documents = st.lists(st.integers(1, 30), min_size=1, max_size=12)
packings = st.sampled_from(["stream", "documents"])


def made(lengths: list[int]) -> DocumentDataset:
    """Return documents with these numbers of pieces, all different."""
    fresh = iter(range(10, 10 + sum(lengths)))
    rows = [[BOS, *(next(fresh) for _ in range(n)), EOS] for n in lengths]
    return DocumentDataset(
        name="made",
        texts=Ragged.of(rows),
        num_chars=sum(lengths),
        special=SpecialIds(PAD, BOS, EOS),
        content_hash=str(lengths),
    )


def predicted(batches: list[LanguageBatch]) -> Counter[int]:
    """Count how often each id is a target."""
    return Counter(t for b in batches for t in b.targets_BL.flatten().tolist() if t >= 0)


@given(lengths=documents, length=st.integers(1, 40), rows=st.integers(1, 4), data=st.data())
def test_validation_predicts_everything_once(
    lengths: list[int], length: int, rows: int, data: st.DataObject
) -> None:
    """Each id but bos is a target once, and the counts of batches and of targets agree."""
    dataset = made(lengths)
    config = PackConfig(
        length=length,
        rows=rows,
        packing=data.draw(packings),  # type: ignore[arg-type]
        stride=data.draw(st.integers(1, length)),
    )
    batches = list(PackedBatches(dataset, config).fixed())
    ids = dataset.texts.ids
    assert predicted(batches) == Counter(ids[ids != BOS].tolist())
    assert sum(b.num_targets for b in batches) == int((ids != BOS).sum())
    assert all(
        b.inputs_BL.shape[1] <= length * (rows if b.document_lengths else 1) for b in batches
    )


@given(
    lengths=documents, length=st.integers(1, 40), rows=st.integers(1, 4), seed=st.integers(0, 99)
)
def test_an_epoch_of_documents_holds_each_once(
    lengths: list[int], length: int, rows: int, seed: int
) -> None:
    """Each id but bos is a target once an epoch; packed lengths fill their row, all as wide.

    A lone row is as wide as its documents: there is no other shape to keep.
    """
    dataset = made(lengths)
    config = PackConfig(length=length, rows=rows, packing="documents")
    stream = Stream(PackedBatches(dataset, config), seed=seed)
    batches = [next(stream) for _ in range(stream.num_batches)]
    ids = dataset.texts.ids
    assert predicted(batches) == Counter(ids[ids != BOS].tolist())
    width = rows * length if len(batches) > 1 else batches[0].num_tokens
    assert {b.inputs_BL.shape[1] for b in batches} == {width}
    assert {sum(b.document_lengths or ()) for b in batches} == {width}
