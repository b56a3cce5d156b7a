"""One engine in a process of its own: it decodes what it is told on standard input, and is timed.

    python -m benchmarks.engines ENGINE MODE FOLDER THREADS

Each line in is a JSON object `{"rows", "beam", "length", "seconds"}`: decode that many sentences of
`length` tokens, with results forced to the same length, again and again for so many seconds. Each
line out is one, `{"tokens", "seconds"}`. The first line out is `{"start": seconds}`, from the first
import to a model that is loaded; after the end of the input comes `{"peak": bytes}`.
"""

import json
import resource
import sys
from collections.abc import Callable
from pathlib import Path
from time import perf_counter
from typing import Any

Decode = Callable[[int, int, int], int]
"""Decodes for rows, beam size and length; returns the tokens of the best results."""


def dragoman(folder: Path, mode: str, threads: int) -> Decode:
    """Ours: the plan and the search of `Translator`, on ids."""
    from dragoman import prepare_process

    prepare_process()
    import torch

    from benchmarks.decoding import our_decoder
    from dragoman.models.folder import load_model

    torch.set_num_threads(threads)
    model, about = load_model(folder)
    decoders: dict[int, Any] = {}
    first = about.model.eos_id + 1

    def decode(rows: int, beam: int, length: int) -> int:
        if beam not in decoders:
            decoders[beam] = our_decoder(model, about.model, mode, beam)
        generator = torch.Generator().manual_seed(rows)
        vocab_size = about.model.src_vocab_size
        return decoders[beam](torch.randint(first, vocab_size, (rows, length), generator=generator))

    return decode


def ctranslate2(folder: Path, mode: str, threads: int) -> Decode:
    """CTranslate2 on the converted folder, with the tokens it would have from a tokenizer."""
    from random import Random

    import ctranslate2

    engine = ctranslate2.Translator(str(folder), compute_type=mode, intra_threads=threads)
    vocabulary = json.loads(next(folder.glob("*vocabulary.json")).read_text(encoding="utf-8"))
    pieces = [piece for piece in vocabulary if not piece.startswith("<")]

    def decode(rows: int, beam: int, length: int) -> int:
        draw = Random(rows)
        sources = [draw.choices(pieces, k=length) for _ in range(rows)]
        found = engine.translate_batch(
            sources,
            beam_size=beam,
            min_decoding_length=length,
            max_decoding_length=length,
            max_batch_size=0,
        )
        return sum(len(result.hypotheses[0]) for result in found)

    return decode


def huggingface(folder: Path, mode: str, threads: int) -> Decode:
    """`generate` of transformers on the converted folder."""
    import torch
    from transformers import AutoModelForSeq2SeqLM, logging

    from benchmarks.decoding import peer_decoder

    logging.set_verbosity_error()
    torch.set_num_threads(threads)
    dtype = {"float32": torch.float32, "bfloat16": torch.bfloat16}[mode]
    model = AutoModelForSeq2SeqLM.from_pretrained(folder, dtype=dtype).eval()

    def decode(rows: int, beam: int, length: int) -> int:
        generator = torch.Generator().manual_seed(rows)
        first = model.config.eos_token_id + 1
        ids_BS = torch.randint(first, model.config.vocab_size, (rows, length), generator=generator)
        return peer_decoder(model, beam)(ids_BS)

    return decode


def main() -> None:
    """Answer until the input ends."""
    engine, mode, folder, threads = sys.argv[1:]
    begun = perf_counter()
    decode = globals()[engine](Path(folder), mode, int(threads))
    print(json.dumps({"start": perf_counter() - begun}), flush=True)
    for line in sys.stdin:
        asked = json.loads(line)
        case = asked["rows"], asked["beam"], asked["length"]
        decode(*case)  # the engine before has taken the caches
        tokens, start = 0, perf_counter()
        while not tokens or perf_counter() - start < asked["seconds"]:
            tokens += decode(*case)
        print(json.dumps({"tokens": tokens, "seconds": perf_counter() - start}), flush=True)
    peak = 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(json.dumps({"peak": peak}), flush=True)


if __name__ == "__main__":
    main()
