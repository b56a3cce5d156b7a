"""Labelled texts: files and their errors, label numbers and batches."""

import json
import lzma
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.unit.data.streams import assert_fixed, assert_resumes, epoch_of

from dragoman.data.batches import BatchConfig, Stream
from dragoman.data.dataset import Ragged, SpecialIds
from dragoman.data.labelled import LabelledDataset, LabelledLayout, load_labelled, read_labelled
from dragoman.errors import InputError
from dragoman.tasks.classify.task import class_batches

MakeEncoder = Callable[..., Any]


def written(folder: Path, text: str, name: str = "reviews.tsv") -> Path:
    """Write a file with this text."""
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def made(count: int = 200) -> LabelledDataset:
    """Return texts of random lengths; every id of text i is 4 + i, its label is i % 3."""
    lengths = np.random.default_rng(0).integers(1, 40, count)
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    return LabelledDataset(
        name="made",
        texts=Ragged((np.repeat(np.arange(count), lengths) + 4).astype(np.uint16), offsets),
        targets=np.arange(count) % 3,
        labels=("a", "b", "c"),
        special=SpecialIds(0, 2, 3),
    )


def test_columns_header_and_names_can_be_set(make_encoder: MakeEncoder, tmp_path: Path) -> None:
    """Any two columns work, a header is not an example, and labels can be renamed."""
    path = written(tmp_path, "id\tsentence\tgold\n1\tgood\t1\n2\tbad\t0\n")
    layout = LabelledLayout(
        label_column=3, text_column=2, header=True, rename={"0": "negative", "1": "positive"}
    )
    dataset = load_labelled(path, layout, make_encoder())
    assert dataset.labels == ("negative", "positive")
    assert dataset.targets.tolist() == [1, 0]
    assert dataset.texts.lengths.tolist() == [4, 3]


def test_a_csv_has_quotes(tmp_path: Path) -> None:
    """Its cells may contain separators and line breaks; a place is the line where a row begins."""
    path = written(tmp_path, 'text,label\n"good, or\nbetter",1\n"so ""so""",0\n', "a.csv")
    layout = LabelledLayout(text_column=1, label_column=2, header=True)
    assert [*read_labelled(path, layout)] == [
        (f"{path} line 2", "1", "good, or\nbetter"),
        (f"{path} line 4", "0", 'so "so"'),
    ]


def test_json_lines_and_compression(tmp_path: Path) -> None:
    """Keys are dotted, labels may be integers or booleans, and files may be compressed."""
    rows = [
        {"gold": {"label": 1}, "body": "good"},
        {"gold": {"label": "no"}, "body": "a\tb"},
        {"gold": {"label": True}, "body": "x"},
    ]
    path = tmp_path / "a.jsonl.xz"
    path.write_bytes(lzma.compress("\n".join(map(json.dumps, rows)).encode()))
    layout = LabelledLayout(label_key="gold.label", text_key="body")
    found = [(label, text) for _, label, text in read_labelled(path, layout)]
    assert found == [("1", "good"), ("no", "a\tb"), ("true", "x")]


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("a.tsv", "1\tgood\n0 bad\n", "line 2 has 1 column, not 2"),
        ("a.tsv", "1\tgood\n0\tbad\tworse\n", "line 2 has 3 columns, not 2"),
        ("a.tsv", "1\n", "line 1 has 1 column, not 2"),
        ("a.tsv", "1\tgood\n0\t \n", "line 2 has an empty text"),
        ("a.tsv", "1\tgood\n\tbad\n", "line 2 has an empty label"),
        ("a.tsv", "1\tgood\n1\tbad\n", "no label but '1'"),
        ("a.jsonl", '{"label": 0.5, "text": "x"}\n', "line 1: the value of 'label'"),
        ("a.jsonl", '{"text": "x"}\n', "line 1 has no key 'label'.*set label_key, text_key"),
    ],
)
def test_what_is_no_label_and_text_is_refused(
    make_encoder: MakeEncoder, tmp_path: Path, name: str, text: str, message: str
) -> None:
    """The error names file, line and fault; a fraction is not a label."""
    path = written(tmp_path, text, name)
    with pytest.raises(InputError, match=f"{name}.*{message}"):
        load_labelled(path, LabelledLayout(), make_encoder())


@pytest.mark.parametrize("labels", [(), ("no", "yes")])
def test_a_header_alone_is_no_text(
    labels: tuple[str, ...], make_encoder: MakeEncoder, tmp_path: Path
) -> None:
    """A file with only a header is refused by name, also if the labels are known."""
    path = written(tmp_path, "label\ttext\n")
    with pytest.raises(InputError, match=r"reviews\.tsv holds no text with a label"):
        load_labelled(path, LabelledLayout(header=True), make_encoder(), labels)


def test_given_labels_decide_the_numbers(make_encoder: MakeEncoder, tmp_path: Path) -> None:
    """They are those of training, or sorted; an unknown label is an error. Texts become ids."""
    path = written(tmp_path, "pos\t好吃\nneg\tbad  one\n")
    dataset = load_labelled(path, LabelledLayout(), make_encoder())
    assert (dataset.labels, dataset.targets.tolist()) == (("neg", "pos"), [1, 0])
    for text, ids in zip(("好吃", "bad  one"), (dataset.texts[0], dataset.texts[1]), strict=True):
        assert ids.tolist() == [ord(char) + 4 for char in text]
    given = ("pos", "neutral", "neg")
    dataset = load_labelled(path, LabelledLayout(), make_encoder(), labels=given)
    assert dataset.labels == given
    assert dataset.targets.tolist() == [0, 2]
    with pytest.raises(InputError, match=r"line 2 .*'neg'.*did you mean nega"):
        load_labelled(path, LabelledLayout(), make_encoder(), labels=("pos", "nega"))


def test_texts_in_the_column_of_labels_are_found_out(
    make_encoder: MakeEncoder, tmp_path: Path
) -> None:
    """Nearly as many labels as texts means a wrong column; many repeated labels are fine."""
    path = written(tmp_path, "".join(f"text {i}\t{i % 2}\n" for i in range(40)))
    with pytest.raises(InputError, match=r"40 labels for 40 texts.*label_column \(1\)"):
        load_labelled(path, LabelledLayout(), make_encoder())
    path = written(tmp_path, "".join(f"label {i % 30}\ttext {i}\n" for i in range(60)))
    dataset = load_labelled(path, LabelledLayout(), make_encoder())
    (said,) = dataset.report(max_length=99)
    assert len(dataset.labels) == 30
    assert "and 10 more" in said
    path = written(tmp_path, "label 99\ttext\n")
    with pytest.raises(InputError, match=r"'label 99', which is not among .* and 10 more"):
        load_labelled(path, LabelledLayout(), make_encoder(), labels=dataset.labels)


def test_the_report_counts_labels_and_cut_texts() -> None:
    """The report counts each label and the texts that are cut."""
    longer = int((made().texts.lengths > 30).sum())
    assert longer > 0
    assert list(made().report(30)) == [
        "made: 200 texts; labels: a 67, b 67, c 66.",
        f"made: {longer} texts are cut to their first 30 tokens.",
    ]
    assert len(list(made().report(40))) == 1


@pytest.mark.parametrize("max_length", [10, 40])
def test_rows_are_framed_and_cut(max_length: int) -> None:
    """Rows are bos, the first max_length ids, eos and padding; each keeps its label."""
    dataset = made()
    config = BatchConfig(max_tokens=300, max_length=max_length)
    seen = Counter[int]()
    for batch in epoch_of(Stream(class_batches(dataset, config), seed=1)):
        assert batch.ids_BL.numel() <= 300
        assert batch.num_targets == len(batch.indices) == len(batch.ids_BL)
        assert batch.num_tokens == int((batch.ids_BL != 0).sum())
        for row, index in enumerate(batch.indices):
            ids = [2, *dataset.texts[index][:max_length].tolist(), 3]
            assert batch.ids_BL[row, : len(ids)].tolist() == ids
            assert (batch.ids_BL[row, len(ids) :] == 0).all()
            assert batch.labels_B[row] == index % 3
        seen.update(batch.indices.tolist())
    assert seen == Counter(range(200))


def test_evaluation_holds_all_texts_in_fixed_batches() -> None:
    """Every text comes once, in the same batches each time."""
    assert_fixed(class_batches(made(), BatchConfig(max_tokens=300)), 200)
    short = BatchConfig(max_tokens=300, max_length=10)
    assert max(batch.ids_BL.shape[1] for batch in class_batches(made(), short).fixed()) == 12


def test_resuming_goes_on_with_the_same_batches() -> None:
    """A saved stream continues exactly; other texts, labels or settings are refused."""
    config = BatchConfig(max_tokens=300)
    relabelled = made()
    relabelled.targets[7] += 1
    assert_resumes(
        class_batches(made(), config),
        3,
        class_batches(made(201), config),
        class_batches(relabelled, config),
        class_batches(made(), BatchConfig(max_tokens=301)),
    )


def test_a_part_is_taken() -> None:
    """The selected examples keep their labels."""
    part = made().take(np.array([5, 3]))
    assert part.targets.tolist() == [2, 0]
    assert set(part.texts[0].tolist()) == {9}
