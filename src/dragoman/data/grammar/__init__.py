"""A small bilingual grammar, English - Chinese: the corpus that ``dragoman demo`` carries with it.

In reading order:

    lexicon.toml, actions.toml, times.toml   the words, as tables
    lexicon, english, chinese                those tables as values; word forms; numerals
    dice                                     random choices that are the same everywhere
    phrases, doing, times                    who and what; doing what where; when
    sentence                                 agreement, negation, the full stop
    statements, happenings, descriptions,    the constructions: one function each, and its
    existence, measures, questions,          docstring is an example
    wh_questions, transfers, clauses
    corpus                                   pairs, and the three parts of the demo's corpus
"""

from dragoman.data.grammar.corpus import EXAMPLE, Pair, demo_corpus, generate

__all__ = ["EXAMPLE", "Pair", "demo_corpus", "generate"]
