r"""What looking up the nearest question reaches: the least that a model of dialogues must be worth.

    python -m benchmarks nearest-answer runs/town/training/texts/train.txt \
        runs/town/training/texts/valid.txt

Each answer of the training dialogues is kept with what was said before it. The last answer of a
validation dialogue is that of the training question with the greatest cosine similarity in TF-IDF
of words and pairs of words: of the question alone, with the exchange before it, and
of all turns before the answer.
"""

import argparse
import re
from collections.abc import Sequence
from pathlib import Path
from time import process_time

from sklearn.feature_extraction.text import TfidfVectorizer

from benchmarks.paired import Figures, environment
from dragoman.data.documents import read_documents
from dragoman.tasks.generate.dialogue import last_answers

WORD = re.compile(r"[^\s.,!?]+")

ROWS = 100
"""Questions looked up at a time."""

SHOWN = {"question": 1, "question and exchange before": 3, "conversation": None}
"""How many of the last turns are compared; None is all."""


def learned(path: Path) -> tuple[list[list[str]], list[str]]:
    """The turns before each answer of the dialogues, and the answers."""
    before, answers = [], []
    for part in read_documents([path], "blank-line"):
        turns = part.text.split("\n")
        for place in range(1, len(turns), 2):
            before.append(turns[:place])
            answers.append(turns[place])
    return before, answers


def looked_up(train: Path, valid: Path, turns: int | None) -> Figures:
    """How many last answers are right to the letter when the nearest one is given."""
    start = process_time()
    before, answers = learned(train)
    prompts, right = last_answers(valid)
    words = TfidfVectorizer(
        ngram_range=(1, 2), sublinear_tf=True, tokenizer=WORD.findall, token_pattern=None
    )
    known = words.fit_transform("\n".join(said[-(turns or 0) :]) for said in before)
    asked = words.transform("\n".join(p.split("\n")[-(turns or 0) :]) for p in prompts)
    found: list[str] = []
    for first in range(0, len(prompts), ROWS):
        nearest = (asked[first : first + ROWS] @ known.T).toarray().argmax(1)
        found += [answers[place] for place in nearest]
    exact = 100 * sum(map(str.__eq__, found, right)) / len(right)
    return {"exact": exact, "answers": len(answers), "cpu_seconds": process_time() - start}


def main(arguments: Sequence[str]) -> dict[str, Figures]:
    """Look up, print and return the figures."""
    parser = argparse.ArgumentParser(
        prog="benchmarks nearest-answer",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("train", type=Path, metavar="TRAIN", help="dialogues to look answers up in")
    parser.add_argument("valid", type=Path, metavar="VALID", help="dialogues to answer the ends of")
    chosen = parser.parse_args(arguments)
    found = {name: looked_up(chosen.train, chosen.valid, turns) for name, turns in SHOWN.items()}
    for name, figures in found.items():
        print(
            f"{name:<28} exact {figures['exact']:.1f} %   "
            f"{figures['answers']:,} answers, {figures['cpu_seconds']:.0f} s"
        )
    return {"nearest-answer": {"environment": environment(["scikit-learn"]), "looked up": found}}
