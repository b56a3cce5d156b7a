"""Write the corpus of `dragoman demo` into the package: `python -m tools.grammar`."""

from tools.grammar.corpus import SIZES, make_corpus
from tools.shipping import SEED, pairs_text, ship

if __name__ == "__main__":
    ship("demo.tsv.bz2", pairs_text(*make_corpus(*SIZES, seed=SEED)))
