"""Texts with a label each: read and tokenised.

A file is a table of label and text (TSV, or `.csv`), or (`.jsonl`) JSON objects; both may be
compressed.
"""

import json
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass, field, replace
from pathlib import Path

import numpy as np
import numpy.typing as npt

from dragoman.data.dataset import Ragged, SpecialIds, TextDataset, fingerprint_of
from dragoman.data.prepare import TextEncoder, encode_all, special_ids
from dragoman.errors import InputError, did_you_mean
from dragoman.files.records import read_records, read_rows, text_at, value_at
from dragoman.wording import counted

FEW_TEXTS = 20
"""With fewer texts, almost as many labels as texts are not suspicious."""

LISTED = 20
"""Maximum number of labels in a message."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelledLayout:
    """The columns or keys of a file of labelled texts."""

    label_column: int = 1
    """Column of the label in a TSV or CSV file, counted from 1."""
    text_column: int = 2
    """Column of the text in a TSV or CSV file."""
    header: bool = False
    """Whether the first line of a TSV or CSV file is a header."""
    label_key: str = "label"
    """Key of the label in a JSON object, with dots for nested objects."""
    text_key: str = "text"
    """Key of the text in a JSON object."""
    rename: Mapping[str, str] = field(default_factory=dict)
    """New names for the labels in the file: {0 = "negative", 1 = "positive"}."""

    def __post_init__(self) -> None:
        if min(self.label_column, self.text_column) < 1 or self.label_column == self.text_column:
            raise InputError(
                f"label_column ({self.label_column}) and text_column ({self.text_column}) must be "
                "two different columns, counted from 1."
            )


def read_labelled(path: Path, layout: LabelledLayout) -> Iterator[tuple[str, str, str]]:
    """Yield the place (for messages), label and text of each example.

    Raises InputError with the line for anything that is not a label and a text.
    """
    is_jsonl = ".jsonl" in path.suffixes
    rows = _jsonl_rows(path, layout) if is_jsonl else _table_rows(path, layout)
    for place, label, text in rows:
        if not label.strip():
            raise InputError(f"{place} has an empty label; give it one or remove the line.")
        if not text.strip():
            raise InputError(f"{place} has an empty text; remove the line.")
        yield place, layout.rename.get(label, label), text


def _table_rows(path: Path, layout: LabelledLayout) -> Iterator[tuple[str, str, str]]:
    last = max(layout.label_column, layout.text_column)
    width = None
    for number, columns, _ in read_rows(path):
        width = width or max(last, len(columns))
        if len(columns) != width:
            raise InputError(
                f"{path} line {number} has {counted(len(columns), 'column')}, not {width} "
                f"(label in column {layout.label_column}, text in {layout.text_column}); put one "
                "tab between columns (a comma in a .csv), or set label_column and text_column."
            )
        if number > 1 or not layout.header:
            label, text = columns[layout.label_column - 1], columns[layout.text_column - 1]
            yield f"{path} line {number}", label, text


def _jsonl_rows(path: Path, layout: LabelledLayout) -> Iterator[tuple[str, str, str]]:
    settings = "label_key, text_key"
    for place, record, _ in read_records(path):
        label = value_at(record, layout.label_key, place, settings)
        if not isinstance(label, str | int):
            raise InputError(
                f"{place}: the value of {layout.label_key!r} is neither a text nor a whole number."
            )
        label = label if isinstance(label, str) else json.dumps(label)
        yield place, label, text_at(record, layout.text_key, place, settings)


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelledDataset:
    """Texts as ids and their labels as numbers; example i is the i-th of the file."""

    name: str
    texts: Ragged
    """Piece ids, without bos and eos."""
    targets: npt.NDArray[np.int64]
    """The number of each text's label; shape (examples,)."""
    labels: tuple[str, ...]
    """The labels by number."""
    special: SpecialIds

    def __len__(self) -> int:
        return len(self.texts)

    @property
    def content_hash(self) -> str:
        """A hash of the ids, the labels and their names."""
        arrays = (self.texts.ids, self.texts.offsets, self.targets)
        return fingerprint_of(self.labels, astuple(self.special), arrays=arrays)

    def take(self, rows: npt.NDArray[np.int64]) -> "LabelledDataset":
        """Return the examples at these indices."""
        return replace(self, texts=self.texts.take(rows), targets=self.targets[rows])

    def as_texts(self) -> TextDataset:
        """Return only the texts, to learn from them without labels."""
        return TextDataset(
            name=self.name, texts=self.texts, special=self.special, content_hash=self.content_hash
        )

    def report(self, max_length: int) -> Iterator[str]:
        """Describe the dataset in sentences; texts beyond `max_length` tokens are cut."""
        counts = Counter(self.targets.tolist())
        shares = _listed([f"{label} {counts[i]:,}" for i, label in enumerate(self.labels)])
        yield f"{self.name}: {counted(len(self), 'text')}; labels: {shares}."
        longer = int((self.texts.lengths > max_length).sum())
        if longer:
            cut = counted(longer, "text is cut to its", "texts are cut to their")
            yield f"{self.name}: {cut} first {counted(max_length, 'token')}."


def load_labelled(
    path: Path, layout: LabelledLayout, encoder: TextEncoder, labels: Sequence[str] = ()
) -> LabelledDataset:
    """Read and tokenise a file.

    The labels are numbered in the order of `labels`, or sorted if none are given. Raises InputError
    for a label that is not among those given, and for anything that `read_labelled` rejects.
    """
    names: list[str] = []

    def texts() -> Iterator[str]:
        for place, label, text in read_labelled(path, layout):
            if labels and label not in labels:
                raise unknown_label(place, "label", label, labels)
            names.append(label)
            yield text

    encoded = encode_all(texts(), encoder)
    if not names:
        raise InputError(f"{path} holds no text with a label: it has a header and nothing else.")
    ordered = tuple(labels) or tuple(sorted(set(names)))
    wrong = None
    if len(ordered) < 2:
        wrong = f"has no label but {names[0]!r}: there is nothing to tell apart"
    elif len(names) >= FEW_TEXTS and 2 * len(set(names)) > len(names):
        number = f"{len(set(names)):,} labels for {len(names):,} texts"
        wrong = f"has {number}, which is one for nearly each"
    if wrong:
        raise InputError(
            f"{path} {wrong}; check label_column ({layout.label_column}) or label_key "
            f"({layout.label_key})."
        )
    numbers = {name: number for number, name in enumerate(ordered)}
    return LabelledDataset(
        name=str(path),
        texts=encoded,
        targets=np.array([numbers[name] for name in names], dtype=np.int64),
        labels=ordered,
        special=special_ids(encoder),
    )


def unknown_label(place: str, what: str, name: str, known: Collection[str]) -> InputError:
    """Return the error for an unknown label or tag, with the most similar known one."""
    return InputError(
        f"{place} has the {what} {name!r}, which is not among {_listed(list(known))}"
        f"{did_you_mean(name, known)}"
    )


def _listed(names: Sequence[str]) -> str:
    """Join the names, or the first of them and the number of the others."""
    more = len(names) - LISTED
    return ", ".join(names[:LISTED]) + (f" and {more:,} more" if more > 0 else "")
