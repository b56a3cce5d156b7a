"""A small bilingual grammar, English - Chinese, that writes the corpus of `dragoman demo`.

    python -m tools.grammar    write src/dragoman/data/demo.tsv.bz2, which the package ships

In reading order:

    lexicon.toml, actions.toml, times.toml   the words, as tables
    lexicon, english, chinese                those tables as values; word forms; numerals
    phrases, doing, times                    who and what; doing what where; when
    sentence                                 agreement, negation, the full stop
    statements, happenings, descriptions,    the constructions: one function each, and its
    existence, measures, questions,          docstring is an example
    wh_questions, transfers, clauses
    corpus                                   pairs, and the three parts of the corpus
"""
