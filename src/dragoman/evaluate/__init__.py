"""What a model's answers are worth, beside the right ones.

translation   BLEU and chrF, by sacreBLEU
labels        accuracy of labels; precision, recall and F1 of each, and of tagged spans
"""

from dragoman.evaluate.labels import (
    LabelScores,
    Measures,
    TagScores,
    label_scores,
    tag_scores,
)
from dragoman.evaluate.translation import Scores, bleu_tokenizer, evaluate

__all__ = [
    "LabelScores",
    "Measures",
    "Scores",
    "TagScores",
    "bleu_tokenizer",
    "evaluate",
    "label_scores",
    "tag_scores",
]
