"""Write the corpus of `dragoman demo` into the package: `python -m tools.grammar`."""

import lzma
from importlib.resources import as_file, files

from tools.grammar.corpus import SEED, SIZES, file_text, make_corpus

if __name__ == "__main__":
    content = file_text(make_corpus(*SIZES, seed=SEED)).encode()
    with as_file(files("dragoman.data").joinpath("demo.tsv.xz")) as path:
        path.write_bytes(lzma.compress(content, preset=9 | lzma.PRESET_EXTREME))
