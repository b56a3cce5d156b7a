"""A small bilingual grammar, English - Chinese: the corpus that `dragoman demo` carries with it.

Reading order: the tables (`lexicon.toml`, `actions.toml`, `times.toml`), `phrases` (the parts of a
sentence, each made in both languages at once), `sentence` (agreement, negation, full stop), the
constructions (`statements`, `happenings`, `descriptions`, `existence`, `measures`, `questions`,
`wh_questions`, `transfers`, `clauses`: one function each, its docstring an example) and `corpus`.
"""

from dragoman.data.grammar.corpus import EXAMPLE, Pair, demo_corpus, generate

__all__ = ["EXAMPLE", "Pair", "demo_corpus", "generate"]
