"""``dragoman evaluate`` for classifiers and taggers: how often they are right, and how quick."""

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING

from dragoman.cli.pipes import progress_of, to_stdout
from dragoman.errors import InputError
from dragoman.wording import counted

if TYPE_CHECKING:
    from dragoman.evaluate import Measures

__all__ = ["evaluate_labelled", "evaluate_tagged"]


def evaluate_labelled(
    model: Path, file: Path, *, layout: Sequence[str], as_json: bool, device: str
) -> None:
    """Classify labelled texts and print accuracy, and precision, recall and F1 of each label.

    `layout` are settings such as `label_column=2`, as in `data.layout` of recipes.
    """
    from dragoman.data.labelled import LabelledLayout, read_labelled
    from dragoman.evaluate import label_scores
    from dragoman.settings import override_settings
    from dragoman.tasks.classify.classifier import Classifier

    examples = list(read_labelled(file, override_settings(LabelledLayout(), layout)))
    classifier = Classifier.load(model, device=device)
    _check_known(file, [label for _, label, _ in examples], classifier.labels)
    start = perf_counter()
    results = classifier.stream(text for _, _, text in examples)
    with progress_of(results, "texts", total=len(examples)) as shown:
        found = [result.label for result in shown]
    seconds = perf_counter() - start
    scores = label_scores([label for _, label, _ in examples], found)
    speed = {"texts": len(examples), "texts_per_second": len(examples) / seconds}
    if as_json:
        _print([json.dumps(scores.to_dict() | speed, ensure_ascii=False)])
        return
    _print(
        [
            f"accuracy  {scores.accuracy:.2f}  (the most frequent label alone: "
            f"{scores.majority:.2f})",
            f"macro F1  {scores.macro_f1:.2f}",
            f"speed     {speed['texts_per_second']:,.1f} texts/s",
            "",
            *_table("label", scores.labels),
        ]
    )


def evaluate_tagged(
    model: Path, file: Path, *, layout: Sequence[str], as_json: bool, device: str
) -> None:
    """Tag words whose tags are known and print precision, recall and F1 of spans, and accuracy.

    `layout` are settings such as `tag_column=2`, as in `data.layout` of recipes.
    """
    from dragoman.data.tagged import TaggedLayout, load_tagged, read_tagged
    from dragoman.evaluate import tag_scores
    from dragoman.settings import override_settings
    from dragoman.tasks.tag.tagger import Tagger

    settings = override_settings(TaggedLayout(), layout)
    tagger = Tagger.load(model, device=device)
    dataset = load_tagged(file, settings, tagger.tokenizer, tagger.labels)
    sentences = [sentence.words for sentence in read_tagged(file, settings)]
    start = perf_counter()
    results = tagger.stream_words(sentences)
    with progress_of(results, "sentences", total=len(sentences)) as shown:
        found = [[word.tag for word in result.words] for result in shown]
    seconds = perf_counter() - start
    scores = tag_scores(dataset.by_sentence(dataset.tags), found)
    speed = {"sentences": len(sentences), "sentences_per_second": len(sentences) / seconds}
    if as_json:
        _print([json.dumps(scores.to_dict() | speed, ensure_ascii=False)])
        return
    every = {} if scores.spans is None else {"all": scores.spans}
    _print(
        [
            f"accuracy  {scores.accuracy:.2f}  of {counted(len(dataset.tags), 'tag')}",
            f"speed     {speed['sentences_per_second']:,.1f} sentences/s",
            *(["", *_table("span", {**scores.types, **every})] if every else []),
        ]
    )


def _check_known(file: Path, labels: Sequence[str], known: Sequence[str]) -> None:
    """Raise InputError where a label is none of the model's."""
    strange = sorted(set(labels) - set(known))
    if strange:
        raise InputError(
            f"{file} has the label {strange[0]!r}, and the model knows {', '.join(known)}; say "
            f"what it is called: --layout rename.{strange[0]}={known[0]}"
        )


def _table(kind: str, rows: Mapping[str, "Measures"]) -> Iterator[str]:
    """A line for each kind, under a line of headings."""
    width = max(len(kind), *map(len, rows))
    yield f"{kind:<{width}}  precision  recall     F1   count"
    for name, row in rows.items():
        yield (
            f"{name:<{width}}  {row.precision:>9.2f}  {row.recall:>6.2f}  {row.f1:>5.2f}  "
            f"{row.count:>6,}"
        )


def _print(lines: Sequence[str]) -> None:
    with to_stdout() as write:
        for line in lines:
            write(line)
