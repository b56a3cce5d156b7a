"""``python -m benchmarks [NAME] [options]``; each benchmark explains itself with ``--help``."""

import sys

from benchmarks import decoding, multi30k, training

BENCHMARKS = {"training": training.main, "decoding": decoding.main, "multi30k": multi30k.main}
DEFAULT = ("training", "decoding")  # multi30k trains for minutes and needs its data


def main() -> None:
    """Run the benchmark that is named, or the quick ones."""
    name, *arguments = sys.argv[1:] or [""]
    if name in BENCHMARKS:
        BENCHMARKS[name](arguments)
    elif not name:
        for quick in DEFAULT:
            BENCHMARKS[quick]([])
    else:
        sys.exit(f"there is no benchmark {name!r}; there are {', '.join(BENCHMARKS)}")


if __name__ == "__main__":
    main()
