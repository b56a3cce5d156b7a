"""How well a tagger finds spans, and how fast it is."""

from pathlib import Path
from time import perf_counter

from dragoman.data.tagged import TaggedLayout, load_tagged, read_tagged
from dragoman.evaluate import tag_scores
from dragoman.settings import override_settings
from dragoman.tasks.evaluation import EvaluationData, Report, measures_table
from dragoman.tasks.tag.tagger import Tagger
from dragoman.wording import counted

__all__ = ["evaluate_tagger"]


def evaluate_tagger(model: Path, test: EvaluationData) -> Report:
    """Tag words whose tags are known: precision, recall and F1 of spans, and accuracy of tags."""
    assert test.data is not None  # noqa: S101 (the task asks for it)
    layout = override_settings(TaggedLayout(), test.layout)
    tagger = Tagger.load(model, device=test.device)
    dataset = load_tagged(test.data, layout, tagger.tokenizer, tagger.labels)
    sentences = [sentence.words for sentence in read_tagged(test.data, layout)]
    start = perf_counter()
    results = tagger.stream_words(sentences)
    with test.progress(results, "sentences", total=len(sentences)) as shown:
        found = [[word.tag for word in result.words] for result in shown]
    seconds = perf_counter() - start
    scores = tag_scores(dataset.by_sentence(dataset.tags), found)
    speed = {"sentences": len(sentences), "sentences_per_second": len(sentences) / seconds}
    every = {} if scores.spans is None else {"all": scores.spans}
    return Report(
        figures=scores.to_dict() | speed,
        lines=(
            f"accuracy  {scores.accuracy:.2f}  of {counted(len(dataset.tags), 'tag')}",
            f"speed     {speed['sentences_per_second']:,.1f} sentences/s",
            *(["", *measures_table("span", {**scores.types, **every})] if every else []),
        ),
    )
