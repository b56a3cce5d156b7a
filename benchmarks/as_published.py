"""What splitting lines and searching again change, which a publisher's class does not do.

    python -m benchmarks as-published MODEL

A translator reads lines by the default, with one of its two steps alone, and as published, greedily
and with a beam: captions of Multi30k's test, one a line and several a line; and dialogue, of which
some lines have several sentences. `differ` is the share of lines whose text is another than as
published, `better` and `worse` count those whose chrF rose and fell.
"""

import argparse
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from sacrebleu.metrics.chrf import CHRF

from benchmarks.paired import Figures, environment
from dragoman.decoding import Decoding
from dragoman.evaluate import evaluate
from dragoman.tasks.translate.translator import Translator

WAYS = {
    "as published": Decoding(split_sentences=False, retry=False),
    "split": Decoding(split_sentences=True, retry=False),
    "retry": Decoding(split_sentences=False, retry=True),
    "default": Decoding(split_sentences=True, retry=True),
}
Lines = tuple[list[str], list[str]]


def texts(data: Path, src: str, tgt: str, limit: int | None) -> Iterator[tuple[str, Lines]]:
    """Sources and references, by name."""
    captions = _sides(data / "multi30k", "test_2016_flickr", src, tgt)
    for several in (1, 2, 4):
        joined = [
            [" ".join(side[at : at + several]) for at in range(0, len(side), several)]
            for side in captions
        ]
        yield f"captions, {several} a line", (joined[0][:limit], joined[1][:limit])
    dialogue = _sides(data / "msctd-de-en", "dev", src, tgt)
    yield "dialogue", (dialogue[0][:limit], dialogue[1][:limit])


def _sides(folder: Path, name: str, *langs: str) -> list[list[str]]:
    return [(folder / f"{name}.{lang}").read_text("utf-8").splitlines() for lang in langs]


def compare(translator: Translator, lines: Lines, beam_size: int) -> dict[str, Any]:
    """BLEU and chrF each way, and what becomes of the lines that come out otherwise."""
    src, references = lines
    found: dict[str, Any] = {}
    said: dict[str, list[str]] = {}
    for way, options in WAYS.items():
        results = translator.translate(src, beam_size=beam_size, options=options)
        said[way] = [result.text for result in results]
        scores = evaluate(said[way], references)
        found[way] = {"bleu": round(scores.bleu, 1), "chrf": round(scores.chrf, 1)}
    plain = said["as published"]
    for way in WAYS:
        chrf = [
            [CHRF().sentence_score(text, [ref]).score for text in texts]
            for *texts, ref in zip(said[way], plain, references, strict=True)
            if texts[0] != texts[1]
        ]
        found[way] |= {
            "differ": round(len(chrf) / len(src), 3),
            "better": sum(mine > theirs for mine, theirs in chrf),
            "worse": sum(mine < theirs for mine, theirs in chrf),
        }
    return {"lines": len(src), **found}


def main(arguments: Sequence[str]) -> dict[str, Figures]:
    """Translate every text in every way and score."""
    parser = argparse.ArgumentParser(
        prog="benchmarks as-published",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("model", type=Path, help="a folder that translates")
    parser.add_argument("--src-lang", default="en")
    parser.add_argument("--tgt-lang", default="de")
    parser.add_argument("--beams", type=int, nargs="+", default=[1, 4])
    parser.add_argument("--lines", type=int, help="of each text, at most")
    given = parser.parse_args(arguments)
    translator = Translator.load(given.model)
    figures: Figures = {}
    data = Path(os.environ["DRAGOMAN_DATA"])
    for name, lines in texts(data, given.src_lang, given.tgt_lang, given.lines):
        for beam in given.beams:
            figures[f"{name}, beam {beam}"] = found = compare(translator, lines, beam)
            print(f"{name}, beam {beam}: {found}", flush=True)
    return {"as-published": figures | {"environment": environment(["sacrebleu"])}}
