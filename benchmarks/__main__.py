"""Run a benchmark: ours and a peer in turn, on the same machine, in the same minutes."""

import argparse
import os
from importlib import import_module
from pathlib import Path

from dragoman import prepare_process

BENCHMARKS = {
    "training": "tokens/s of a training step, against torch.nn.Transformer",
    "train-peers": "tokens/s and memory of training, against torch, Hugging Face and JoeyNMT",
    "decoding": "tokens/s of decoding, against Hugging Face's MarianMT class",
    "decode-peers": "tokens/s of decoding, against CTranslate2 and Hugging Face, same weights",
    "translate-peers": "whole commands on a file of text, against a script with CTranslate2",
    "alignment": "errors of a model's word alignment against eflomal's, and what keeping it costs",
    "serve-peers": "requests/s and times of the server, against Flask and FastAPI with CTranslate2",
    "multi30k": "train by a recipe and score: BLEU, with command and versions",
    "settings": "what each setting of training brings: variants of a recipe at equal steps",
    "nine-minutes": "ours beside Hugging Face's Marian class after equal minutes: BLEU",
    "many": "one model of six directions against one of each; zero-shot against a pivot",
    "spoiled": "faults made in a corpus on purpose: how many data clean finds, what they cost",
    "adapted": "a published model before and after training on other texts, in several ways",
    "as-published": "lines split and searched again, beside what a publisher's class does",
    "code": "a model of Python's library on modules that it never saw, beside compressors",
    "variants": "one small decoder with every position scheme, pattern and block",
    "bag-of-words": "linear models on the data of the classifiers and taggers",
    "nearest-answer": "dialogues answered by the nearest question of training",
    "terms": "a glossary: terms obeyed, BLEU and time, without it and in both ways",
    "placeholders": "text that is copied: whether it is there, in its place, and time",
    "attention-cost": "time and memory of every attention pattern by length",
    "checkpointing": "what activation checkpointing costs and saves",
    "busy": "whole commands beside other work on the machine, by how idle threads wait",
    "estimate": "a run's time as `dragoman cost --measure` predicts it, and as it is",
}
DATA = Path(__file__).parents[2] / "shared" / "data"
"""Where the corpora of a checkout are, unless DRAGOMAN_DATA names another folder."""
DEFAULT = ("training", "decoding")  # the others train for minutes and need data


def main() -> None:
    """Run the benchmark that is named, or the quick ones, and write the figures."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks",
        description=__doc__,
        epilog="\n".join(f"  {name:<16}{what}" for name, what in BENCHMARKS.items()),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--out",
        type=Path,
        metavar="FOLDER",
        help="write the figures to this folder (default: build/benchmarks)",
    )
    parser.add_argument(
        "name",
        nargs="?",
        metavar="NAME",
        choices=BENCHMARKS,
        help=f"one of those below; without it, {' and '.join(DEFAULT)}",
    )
    parser.add_argument(
        "options",
        nargs=argparse.REMAINDER,
        metavar="...",
        help="options of that benchmark; NAME --help lists them",
    )
    chosen = parser.parse_args()
    os.environ.setdefault("DRAGOMAN_DATA", str(DATA))
    prepare_process()
    from benchmarks.paired import BUILT, save

    for name in [chosen.name] if chosen.name else DEFAULT:
        benchmark = import_module(f"benchmarks.{name.replace('-', '_')}")
        for file, figures in benchmark.main(chosen.options).items():
            save(file, figures, chosen.out or BUILT)


if __name__ == "__main__":
    main()
