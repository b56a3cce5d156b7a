"""Tagged words: files and their errors, span schemes, pieces, batches and predictions."""

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.unit.data.streams import Doubling, assert_resumes, epoch_of

from dragoman.data.batches import BatchConfig, Stream
from dragoman.data.dataset import Ragged
from dragoman.data.prepare import special_ids
from dragoman.data.tagged import (
    Scheme,
    Span,
    TaggedDataset,
    TaggedLayout,
    detect_scheme,
    find_spans,
    load_tagged,
    read_tagged,
)
from dragoman.errors import InputError
from dragoman.tasks.tag.task import NO_TAG, tag_batches

MakeEncoder = Callable[..., Any]

IOB1 = """-DOCSTART- -X- O O

Anna NNP I-NP I-PER
Bell NNP I-NP I-PER
met VBD I-VP O
Carl NNP I-NP I-PER
Dee NNP I-NP B-PER

in IN I-PP O
Ulm NNP I-NP I-LOC
"""


def written(folder: Path, text: str) -> Path:
    """Write a file with this text."""
    path = folder / "words.conll"
    path.write_text(text, encoding="utf-8")
    return path


def made(make_encoder: MakeEncoder, count: int = 60) -> TaggedDataset:
    """Return sentences of 1 to 12 words of 1 to 5 pieces; all pieces of word w are 4 + w."""
    rng = np.random.default_rng(0)
    sentences = np.concatenate([[0], np.cumsum(rng.integers(1, 13, count))])
    words = int(sentences[-1])
    offsets = np.concatenate([[0], np.cumsum(rng.integers(1, 6, words))])
    pieces = Ragged(np.repeat(np.arange(words), np.diff(offsets)) + 4, offsets)
    return TaggedDataset(
        name="made",
        pieces=pieces,
        tags=np.arange(words) % 3,
        features=np.arange(words)[:, None],
        sentences=sentences,
        labels=("O", "B-X", "I-X"),
        scheme="bio",
        malformed=0,
        special=special_ids(make_encoder()),
    )


def test_a_conll_file_becomes_bio(make_encoder: MakeEncoder, tmp_path: Path) -> None:
    """The first column is the word, the last one the tag; document lines are skipped."""
    dataset = load_tagged(written(tmp_path, IOB1), TaggedLayout(), make_encoder())
    assert dataset.labels == ("O", "B-LOC", "I-LOC", "B-PER", "I-PER")
    assert dataset.by_sentence(dataset.tags) == [
        ["B-PER", "I-PER", "O", "B-PER", "B-PER"],
        ["O", "B-LOC"],
    ]
    assert dataset.pieces[6].tolist() == [ord(char) + 4 for char in "Ulm"]
    assert list(dataset.report(100)) == [
        f"{tmp_path}/words.conll: 2 sentences, 7 words.",
        f"{tmp_path}/words.conll: 4 spans, written as IOB1, learned as BIO.",
    ]


def test_other_columns_and_plain_tags(make_encoder: MakeEncoder, tmp_path: Path) -> None:
    """Part-of-speech tags are plain; the column is counted from either end."""
    for column in (2, -3):
        layout = TaggedLayout(tag_column=column)
        dataset = load_tagged(written(tmp_path, IOB1), layout, make_encoder())
        assert dataset.scheme == "plain"
        assert dataset.labels == ("IN", "NNP", "VBD")
        assert dataset.by_sentence(dataset.tags)[1] == ["IN", "NNP"]
    assert list(dataset.report(100))[1].endswith("3 tags, each for one word.")


def test_what_parts_columns_and_sentences(tmp_path: Path) -> None:
    """Spaces and tabs separate columns, other white space is a word; blank lines collapse."""
    path = written(tmp_path, "\n\na\tO\r\n\u3000  O\n \t\n\nb O")
    found = [(s.words, s.tags, s.line) for s in read_tagged(path, TaggedLayout())]
    assert found == [(["a", "\u3000"], ["O", "O"], 3), (["b"], ["O"], 7)]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a O\nb\n", "line 2 has 1 column"),
        ("a B-X\nb PER\n", "line 2 has the tag 'PER', neither O nor"),
        ("a B-X\n\nb PER\n", "line 3 has the tag 'PER', neither O nor"),
        ("\n\n", "holds no word"),
    ],
)
def test_what_is_no_word_and_tag_is_refused(
    make_encoder: MakeEncoder, tmp_path: Path, text: str, message: str
) -> None:
    """The error names file, line and fault."""
    with pytest.raises(InputError, match=f"words.conll.*{message}"):
        load_tagged(written(tmp_path, text), TaggedLayout(), make_encoder())


def test_given_labels_decide_the_numbers(make_encoder: MakeEncoder, tmp_path: Path) -> None:
    """Validation uses the tag numbers of training; an unknown tag is an error."""
    path, encoder = written(tmp_path, IOB1), make_encoder()
    given = ("I-PER", "B-PER", "O", "I-LOC", "B-LOC")
    dataset = load_tagged(path, TaggedLayout(), encoder, labels=given)
    assert dataset.tags.tolist() == [1, 0, 2, 1, 1, 2, 4]
    with pytest.raises(InputError, match=r"line 10 has the tag 'B-LOC'.*not among I-PER"):
        load_tagged(path, TaggedLayout(), encoder, labels=given[:3])


def test_malformed_tags_are_counted_and_said(make_encoder: MakeEncoder, tmp_path: Path) -> None:
    """An I without a B is read as a B; a given scheme is not guessed."""
    path = written(tmp_path, "a B-X\nb O\nc I-X\n")
    dataset = load_tagged(path, TaggedLayout(), make_encoder())
    assert dataset.by_sentence(dataset.tags) == [["B-X", "O", "B-X"]]
    assert "1 tag does not follow the scheme" in list(dataset.report(100))[2]
    as_iob1 = load_tagged(path, TaggedLayout(scheme="iob1"), make_encoder())
    assert (as_iob1.scheme, as_iob1.malformed) == ("iob1", 1)  # here the B is malformed
    assert as_iob1.tags.tolist() == dataset.tags.tolist()


@pytest.mark.parametrize("limit", [7, 100])
@pytest.mark.parametrize("sampling", [0.0, 0.5])
def test_first_pieces_carry_the_tags(
    make_encoder: MakeEncoder, limit: int, sampling: float
) -> None:
    """Every word is predicted once, at its first piece, even if its sentence is split."""
    dataset = made(make_encoder)
    config = BatchConfig(max_tokens=100, max_length=limit, subword_sampling=sampling)
    seen = Counter[int]()
    for batch in epoch_of(Stream(tag_batches(dataset, config, splits=Doubling()), seed=1)):
        assert batch.ids_BL.numel() <= 100 or len(batch.ids_BL) == 1
        assert batch.ids_BL.shape[1] <= limit + 2
        assert batch.num_tokens == int((batch.ids_BL != 0).sum())
        assert batch.num_targets == len(batch.words) == int((batch.tags_BL >= 0).sum())
        at = batch.tags_BL >= 0
        assert (batch.ids_BL[at] - 4).tolist() == batch.words.tolist()
        assert batch.tags_BL[at].tolist() == (batch.words % 3).tolist()
        assert (batch.ids_BL[at] != batch.ids_BL.roll(1, 1)[at]).all()
        assert (batch.tags_BL[~at] == NO_TAG).all()
        assert batch.words_BLF is not None
        assert batch.words_BLF[at][:, 0].tolist() == batch.words.tolist()
        assert not batch.words_BLF[~at].any()
        assert (batch.ids_BL[:, 0] == 2).all()
        assert ((batch.ids_BL == 3).sum(dim=1) == 1).all()
        seen.update(batch.words.tolist())
        rows = at.nonzero()[:, 0]
        of_row = np.searchsorted(dataset.sentences, batch.words, side="right") - 1
        assert batch.indices[rows].tolist() == of_row.tolist()
    assert seen == Counter(range(len(dataset.tags)))


def test_a_sentence_is_parted_only_when_it_must_be(make_encoder: MakeEncoder) -> None:
    """Parts are as long as the limit allows, and the report counts the split sentences."""
    dataset = made(make_encoder)
    lengths = np.diff(dataset.pieces.offsets[dataset.sentences])
    limit = int(np.sort(lengths)[-5])
    parts = [
        row
        for b in tag_batches(dataset, BatchConfig(max_length=limit)).fixed()
        for row in b.indices
    ]
    assert sorted(parts) == sorted([*range(len(dataset)), *np.nonzero(lengths > limit)[0].tolist()])
    assert (
        f"{int((lengths > limit).sum())} sentences over {limit}" in list(dataset.report(limit))[-1]
    )


def test_a_sentence_without_words_has_no_place_in_a_batch(make_encoder: MakeEncoder) -> None:
    """Predictions still have one tag per word; a dataset without sentences has no batches."""
    dataset = replace(made(make_encoder, 3), sentences=np.array([0, 2, 2, 3]))
    dataset = replace(dataset, pieces=dataset.pieces.take(np.arange(3)), tags=np.zeros(3, int))
    (batch,) = tag_batches(dataset, BatchConfig()).fixed()
    assert sorted(batch.indices.tolist()) == [0, 2]
    assert dataset.by_sentence(dataset.tags) == [["O", "O"], [], ["O"]]
    nothing = dataset.take(np.array([], dtype=np.int64))
    assert list(tag_batches(nothing, BatchConfig()).fixed()) == []


def test_a_word_without_pieces_is_not_predicted(tmp_path: Path) -> None:
    """No tag moves to another word, and a sentence of such words alone is in no batch."""

    class Dropping:
        vocab_size, pad_id, bos_id, eos_id, content_hash = 99, 0, 2, 3, ""

        def encode_words(
            self, texts: list[str], words: list[list[tuple[int, int]]]
        ) -> list[tuple[list[int], list[int | None]]]:
            assert [*texts] == ["a - b", "-", "cd e"]
            assert [*words] == [[(0, 1), (2, 3), (4, 5)], [(0, 1)], [(0, 2), (3, 4)]]
            return [([10, 11, 12], [0, None, 2]), ([], [None]), ([13], [0, 0])]

    path = written(tmp_path, "a B-X\n- O\nb B-Y\n\n- O\n\ncd B-X\ne O\n")
    dataset = load_tagged(path, TaggedLayout(), Dropping())  # type: ignore[arg-type]
    assert [dataset.pieces[word].tolist() for word in range(6)] == [
        [10, 11],
        [],
        [12],
        [],
        [13],
        [],
    ]
    (batch,) = tag_batches(dataset, BatchConfig()).fixed()
    assert sorted(batch.words.tolist()) == [0, 2, 4]
    assert batch.num_targets == 3
    assert sorted(batch.indices.tolist()) == [0, 2]
    learned = zip(batch.ids_BL[batch.tags_BL >= 0], batch.tags_BL[batch.tags_BL >= 0], strict=True)
    named = {int(id_): dataset.labels[int(tag)] for id_, tag in learned}
    assert named == {10: "B-X", 12: "B-Y", 13: "B-X"}


def test_resuming_goes_on_with_the_same_batches(make_encoder: MakeEncoder) -> None:
    """A saved stream continues exactly; other tags are refused."""
    config = BatchConfig(max_tokens=100, subword_sampling=0.3)
    dataset, other = made(make_encoder), made(make_encoder)
    other.tags[3] += 1
    source, changed = (tag_batches(data, config, Doubling()) for data in (dataset, other))
    assert_resumes(source, 3, changed)


def test_a_part_is_taken(make_encoder: MakeEncoder) -> None:
    """The selected sentences keep words and tags."""
    dataset = made(make_encoder)
    rows = np.array([7, 2, 30, 11])
    part = dataset.take(rows)
    assert part.by_sentence(part.tags) == [dataset.by_sentence(dataset.tags)[i] for i in rows]
    first = dataset.sentences[7]
    assert part.pieces[0].tolist() == dataset.pieces[int(first)].tolist()


# ---------------------------------------------------------------- schemes


@pytest.mark.parametrize(
    ("begin", "inside", "end", "single"), [tuple("BMES"), tuple("BILU"), tuple("BIES")]
)
def test_the_dialects_of_bioes(begin: str, inside: str, end: str, single: str) -> None:
    """M means I, L means E, and U means S."""
    tags = [f"{begin}-A", f"{inside}-A", f"{end}-A", f"{single}-A", "O"]
    assert detect_scheme([tags]) == "bioes"
    assert find_spans(tags, "bioes") == ([Span(0, 3, "A"), Span(3, 4, "A")], 0)


@pytest.mark.parametrize(
    ("scheme", "tags", "spans", "malformed"),
    [
        ("bio", "B-A-B I-A-B", [(0, 2, "A-B")], 0),  # the prefix ends at the first hyphen
        ("bio", "O I-A I-A", [(1, 3, "A")], 1),
        ("bio", "B-A I-B", [(0, 1, "A"), (1, 2, "B")], 1),
        ("bio", "I-A O I-A", [(0, 1, "A"), (2, 3, "A")], 2),
        ("iob1", "I-A I-B", [(0, 1, "A"), (1, 2, "B")], 0),
        ("iob1", "I-A B-B O B-A", [(0, 1, "A"), (1, 2, "B"), (3, 4, "A")], 2),
        ("bioes", "B-A I-A", [(0, 2, "A")], 1),
        ("bioes", "B-A O", [(0, 1, "A")], 1),
        ("bioes", "B-A S-B", [(0, 1, "A"), (1, 2, "B")], 1),
        ("bioes", "E-A", [(0, 1, "A")], 1),
        ("bioes", "I-A E-A", [(0, 2, "A")], 1),
        ("bioes", "B-A E-B", [(0, 1, "A"), (1, 2, "B")], 2),
    ],
)
def test_broken_spans_are_read_and_counted(
    scheme: Scheme, tags: str, spans: list[tuple[int, int, str]], malformed: int
) -> None:
    """A stray continuation begins a span; an unfinished span ends before a tag of another one."""
    assert find_spans(tags.split(), scheme) == ([Span(*span) for span in spans], malformed)


@pytest.mark.parametrize(
    ("files", "scheme"),
    [
        (["O O", "O"], "bio"),
        (["I-A I-A O", "O"], "iob1"),
        (["I-A B-A", "I-B"], "iob1"),
        (["B-A I-A", "O I-A"], "bio"),  # the initial I is an error in BIO
        (["I-A I-A", "O I-A", "B-A"], "iob1"),  # the needless B is an error in IOB1
        (["NN VB O"], "plain"),
        (["B-A I-A", "E-A"], "bioes"),
        (["B-A PER"], "bio"),
    ],
)
def test_the_scheme_is_that_of_the_whole_file(files: list[str], scheme: Scheme) -> None:
    """Most starts decide between BIO and IOB1; a single E means BIOES."""
    assert detect_scheme([tags.split() for tags in files]) == scheme
