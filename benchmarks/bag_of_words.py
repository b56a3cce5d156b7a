"""What linear models on counts of words reach: the least that a Transformer must be worth.

    python -m benchmarks bag-of-words
    python -m benchmarks bag-of-words sst2 conll2003

Classification: TF-IDF of n-grams and logistic regression. Tagging: each word by itself, from its
form and its neighbours, by a linear SVM; no search over sequences of tags. Both by scikit-learn,
fitted on the training file alone, on which cross-validation chooses the strength of the regression.
The scores are those of `dragoman evaluate`.
"""

import argparse
import re
from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from pathlib import Path
from time import process_time

from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import FeatureUnion, Pipeline, make_pipeline
from sklearn.svm import LinearSVC

from benchmarks.paired import Figures, environment
from dragoman.data.labelled import LabelledLayout, read_labelled
from dragoman.data.tagged import TaggedLayout, detect_scheme, find_spans, read_tagged, to_bio
from dragoman.evaluate import label_scores, tag_scores
from dragoman.train.recipe import DataFiles

Sentences = list[list[str]]

STRENGTHS = (1.0, 3.0, 10.0, 30.0)
"""The inverse strengths of regularisation that cross-validation compares for texts."""

SVM_STRENGTH = 0.1
"""That of the tagger, which was not tuned."""

NAMES = {
    "sst2": "sentiment/sst2.{part}.tsv",
    "waimai": "sentiment/waimai.{part}.tsv",
    "hotel": "sentiment/hotel.{part}.tsv",
    "conll2003": "ner/conll2003.{part}.conll",
    "resume": "ner/resume.{part}.conll",
}


def files(name: str) -> tuple[Path, Path]:
    """The training and the validation file, found as recipes find theirs."""
    pattern = NAMES[name]
    find = DataFiles().find
    return find(pattern.format(part="train") + ".xz"), find(pattern.format(part="dev"))


def n_grams(texts: Sequence[str]) -> dict[str, TfidfVectorizer | FeatureUnion]:
    """What is counted: words and characters, or characters alone where no spaces part words."""

    def characters(longest: int) -> TfidfVectorizer:
        return TfidfVectorizer(
            analyzer="char", ngram_range=(1, longest), sublinear_tf=True, min_df=2
        )

    if sum(text.count(" ") for text in texts) < 0.05 * sum(map(len, texts)):
        return {"characters to 2": characters(2), "characters to 4": characters(4)}
    words = TfidfVectorizer(
        ngram_range=(1, 2), sublinear_tf=True, tokenizer=str.split, token_pattern=None
    )
    both = FeatureUnion([("words", words), ("characters", characters(4))])
    return {"words to 2": words, "characters to 4": characters(4), "both": both}


def classification(train: Path, valid: Path) -> Figures:
    """The accuracies of some ways of counting."""
    read = [list(read_labelled(path, LabelledLayout())) for path in (train, valid)]
    (labels, texts), (right, unseen) = (
        ([label for _, label, _ in rows], [text for _, _, text in rows]) for rows in read
    )
    found = {}
    for counted, vectorizer in n_grams(texts).items():
        start = process_time()
        model = Pipeline([("counts", vectorizer), ("linear", LogisticRegression(max_iter=1000))])
        search = GridSearchCV(model, {"linear__C": STRENGTHS}, cv=5)
        search.fit(texts, labels)
        scores = label_scores(right, search.predict(unseen).tolist())
        found[counted] = {
            "accuracy": scores.accuracy,
            "macro_f1": scores.macro_f1,
            "majority": scores.majority,
            "cross_validated_accuracy": 100 * float(search.best_score_),
            "C": search.best_params_["linear__C"],
            "features": len(search.best_estimator_["counts"].get_feature_names_out()),
            "cpu_seconds": process_time() - start,
        }
    return found


def tagging(train: Path, valid: Path) -> Figures:
    """The F1 of spans when each word is tagged by itself."""
    (words, tags), (unseen, right) = bio(train), bio(valid)
    chinese = sum(len(word) == 1 for word in chain(*words)) > 0.9 * sum(map(len, words))
    described = characters_around if chinese else words_around
    start = process_time()
    model = make_pipeline(CountVectorizer(analyzer=list, binary=True), LinearSVC(C=SVM_STRENGTH))
    model.fit(features(words, described), list(chain(*tags)))
    predicted = iter(model.predict(features(unseen, described)).tolist())
    scores = tag_scores(right, [[next(predicted) for _ in sentence] for sentence in unseen])
    assert scores.spans is not None
    return {
        described.__name__: {
            "f1": scores.spans.f1,
            "precision": scores.spans.precision,
            "recall": scores.spans.recall,
            "accuracy": scores.accuracy,
            "types": {name: measures.f1 for name, measures in scores.types.items()},
            "C": SVM_STRENGTH,
            "features": len(model[0].vocabulary_),
            "cpu_seconds": process_time() - start,
        }
    }


def bio(path: Path) -> tuple[Sentences, Sentences]:
    """The words and the tags of each sentence, the tags in BIO."""
    sentences = list(read_tagged(path, TaggedLayout()))
    scheme = detect_scheme(sentence.tags for sentence in sentences)
    tags = [to_bio(find_spans(s.tags, scheme)[0], len(s.tags)) for s in sentences]
    return [sentence.words for sentence in sentences], tags


def features(
    sentences: Sentences, described: Callable[[Sequence[str], int], Iterator[str]]
) -> Iterator[list[str]]:
    """What is true of each word."""
    for words in sentences:
        for place in range(len(words)):
            yield list(described(words, place))


def words_around(words: Sequence[str], place: int) -> Iterator[str]:
    """A word, its shape, beginnings and endings, two neighbours on each side, the pairs."""
    for offset in range(-2, 3):
        word = at(words, place + offset)
        yield f"{offset} word {word.lower()}"
        yield f"{offset} shape {shape(word)}"
    word = words[place]
    yield f"word {word}"
    for length in range(1, 5):
        yield f"begins {word[:length].lower()}"
        yield f"ends {word[-length:].lower()}"
    for offset in (-1, 0):
        one, two = at(words, place + offset), at(words, place + offset + 1)
        yield f"{offset} pair {one.lower()} {two.lower()}"
        yield f"{offset} shapes {shape(one)} {shape(two)}"


def characters_around(words: Sequence[str], place: int) -> Iterator[str]:
    """Three characters on each side, and the runs of two and three around the place."""
    around = [at(words, place + offset) for offset in range(-3, 4)]
    for length in (1, 2, 3):
        for start in range(len(around) - length + 1):
            yield f"{start} {''.join(around[start : start + length])}"


def at(words: Sequence[str], place: int) -> str:
    """The word at a place, or a sign for what is outside of the sentence."""
    return words[place] if 0 <= place < len(words) else "<>"


def shape(word: str) -> str:
    """Capitals, small letters, digits and marks, runs of three and more shortened to two."""
    kinds = re.sub(r"\d", "9", re.sub(r"[^\W\d_]", lambda m: "aA"[m[0].isupper()], word))
    return re.sub(r"(.)\1{2,}", r"\1\1", kinds)


def main(arguments: Sequence[str]) -> dict[str, Figures]:
    """Fit, score, print and return the figures of each set."""
    parser = argparse.ArgumentParser(
        prog="benchmarks bag-of-words",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "sets", nargs="*", choices=[*NAMES, []], metavar="SET", help=", ".join(NAMES)
    )
    chosen = parser.parse_args(arguments).sets or list(NAMES)
    every = {}
    for name in chosen:
        train, valid = files(name)
        found = (tagging if "ner" in NAMES[name] else classification)(train, valid)
        for counted, figures in found.items():
            measure = "f1" if "f1" in figures else "accuracy"
            print(
                f"{name:<10} {counted:<18} {measure} {figures[measure]:.2f}   "
                f"{figures['features']:,} features, {figures['cpu_seconds']:.0f} s"
            )
        machine = environment(["scikit-learn", "nervaluate"])
        data = {"train": NAMES[name].format(part="train"), "valid": NAMES[name].format(part="dev")}
        figures = {"data": data, "environment": machine, "models": found}
        every[f"bag-of-words-{name}"] = figures
    return every
