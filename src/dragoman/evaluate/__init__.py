"""What a model's answers are worth, beside the right ones.

translation   BLEU and chrF, by sacreBLEU
labels        accuracy of labels; precision, recall and F1 of each
spans         precision, recall and F1 of spans of words, by nervaluate
"""

from dragoman.evaluate.labels import LabelScores, Measures, label_scores
from dragoman.evaluate.spans import TagScores, tag_scores
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
