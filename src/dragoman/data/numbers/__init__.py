"""A made text-to-text corpus: numbers, dates, times and money in figures, written out in English.

spoken       numbers in words
expressions  the kinds of expressions: in figures and as one reads them
corpus       sentences around them, and pairs for training and validation
"""

from dragoman.data.numbers.corpus import WrittenOut, generate, numbers_corpus, withheld

__all__ = ["WrittenOut", "generate", "numbers_corpus", "withheld"]
