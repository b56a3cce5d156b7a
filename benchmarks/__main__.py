"""``python -m benchmarks [NAME] [options]``; each benchmark explains itself with ``--help``."""

import sys
from importlib import import_module

BENCHMARKS = (
    "training",
    "decoding",
    "multi30k",
    "variants",
    "bag-of-words",
    "attention-cost",
    "checkpointing",
    "estimate",
)
DEFAULT = ("training", "decoding")  # the others train for minutes and need data


def run(name: str, arguments: list[str]) -> None:
    """Run one: its module has its name."""
    import_module(f"benchmarks.{name.replace('-', '_')}").main(arguments)


def main() -> None:
    """Run the benchmark that is named, or the quick ones."""
    name, *arguments = sys.argv[1:] or [""]
    if name in BENCHMARKS:
        run(name, arguments)
    elif not name:
        for quick in DEFAULT:
            run(quick, [])
    else:
        sys.exit(f"there is no benchmark {name!r}; there are {', '.join(BENCHMARKS)}")


if __name__ == "__main__":
    main()
