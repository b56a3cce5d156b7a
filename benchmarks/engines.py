"""One engine in a process of its own: it decodes what it is told on standard input, and is timed.

    python -m benchmarks.engines ENGINE MODE FOLDER THREADS

MODE is an arithmetic, and after a plus sign how it runs, where the engine has more ways than one:
`int8+1` on one thread; `int8+shortlist` (ours) from lists of tokens; `int8+workers` (CTranslate2)
with a worker of one thread for each of THREADS, each of which takes its share of the rows, as its
documentation recommends for throughput; `int8+mkl` and `int8+mkl+workers` by Intel's library on any
processor; `float32+static` (Hugging Face) with a static cache and a compiled forward pass.

Each line in is a JSON object `{"rows", "beam", "length", "output", "seconds"}`: decode that many
sentences of `length` tokens, with results forced to `output` tokens, again and again for so many
seconds. Each line out is one, `{"tokens", "seconds", "ids"}`, with the last results. The first line
out is `{"start", "load", "ready"}` in seconds: from the first import to a model that is loaded, of
that the loading, and the loading and one token of one sentence, for which weights may have to be
laid out; after the end of the input comes `{"peak": bytes}`.
"""

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from random import Random
from time import perf_counter
from typing import Any

from benchmarks.processes import serve

Decode = Callable[[int, int, int, int], list[list[int]]]
"""Decodes for rows, beam size, length and output; returns the ids of the best results."""


SPECIALS = 4
"""Ids that stand for no piece, at most; `<pad>` may be the last one of a vocabulary, or be cut."""


def drawn(rows: int, length: int, vocab_size: int) -> list[list[int]]:
    """Sources or prompts, the same for all engines."""
    draw, pieces = Random(rows), range(SPECIALS, vocab_size // 10 * 10)
    return [draw.choices(pieces, k=length) for _ in range(rows)]


def dragoman(folder: Path, mode: str, threads: int) -> tuple[Decode, float]:
    """Ours: the engine, the search and the scheduler of `Translator`, on ids."""
    from dragoman import prepare_process

    prepare_process()
    import torch

    from benchmarks.decoding import our_decoder
    from dragoman.decode import Course, Items, Scheduler
    from dragoman.folder.opening import open_folder
    from dragoman.models import DecoderOnly, EncoderDecoder
    from dragoman.tasks.held import Held

    arithmetic, *ways = mode.split("+")
    torch.set_num_threads(1 if "1" in ways else threads)
    begun = perf_counter()
    about = open_folder(folder)
    kind: Any = EncoderDecoder if about.config.model.kind == "encoder-decoder" else DecoderOnly
    held: Any = Held.read(about, kind, arithmetic)
    loaded = perf_counter() - begun
    decoders: dict[int, Any] = {}
    vocab_size, listed = len(held.shape.output.weight), "shortlist" in ways

    def run(how: tuple[int, int], batch: list[list[int]], _withdrawn: object) -> list[list[int]]:
        beam, output = how
        if beam not in decoders:
            decoders[beam] = our_decoder(held, about.config.model, arithmetic, beam, listed)
        found: list[list[int]] = decoders[beam](torch.tensor(batch), output)
        return found

    scheduler = Scheduler(run, held.lanes)

    def decode(rows: int, beam: int, length: int, output: int) -> list[list[int]]:
        sources = drawn(rows, length, vocab_size)

        def course() -> Course[list[int], list[int], list[list[int]]]:
            found = yield Items(values=sources, costs=[1] * rows, budget=rows, how=(beam, output))
            return found

        return dict(scheduler.submit([course()]))[0]

    return decode, loaded


def ctranslate2(folder: Path, mode: str, threads: int) -> tuple[Decode, float]:
    """CTranslate2 on the converted folder, with the tokens it would have from a tokenizer."""
    arithmetic, *ways = mode.split("+")
    if "mkl" in ways:
        os.environ["CT2_USE_MKL"] = "1"  # which it reads when it is imported
    import ctranslate2

    file = next(folder.glob("*vocabulary.json"))
    vocabulary = json.loads(file.read_text(encoding="utf-8"))
    id_of = {piece: id_ for id_, piece in enumerate(vocabulary)}
    generates = file.name == "vocabulary.json"
    workers = threads if "workers" in ways else 1
    begun = perf_counter()
    engine = (ctranslate2.Generator if generates else ctranslate2.Translator)(
        str(folder),
        compute_type=arithmetic,
        inter_threads=workers,
        intra_threads=threads if ways in ([], ["mkl"]) else 1,
    )
    loaded = perf_counter() - begun

    def decode(rows: int, beam: int, length: int, output: int) -> list[list[int]]:
        sources = [[vocabulary[n] for n in row] for row in drawn(rows, length, len(id_of))]
        options = {"beam_size": beam, "max_batch_size": -(-rows // workers)}
        if generates:
            options |= {"min_length": output, "max_length": output}
            found = engine.generate_batch(sources, include_prompt_in_result=False, **options)
            results = [result.sequences[0] for result in found]
        else:
            options |= {"min_decoding_length": output, "max_decoding_length": output}
            found = engine.translate_batch(sources, **options)
            results = [result.hypotheses[0] for result in found]
        return [[id_of[piece] for piece in result] for result in results]

    return decode, loaded


def huggingface(folder: Path, mode: str, threads: int) -> tuple[Decode, float]:
    """`generate` of transformers on the converted folder."""
    import torch
    from transformers import (
        AutoConfig,
        AutoModelForCausalLM,
        AutoModelForSeq2SeqLM,
        CompileConfig,
        logging,
    )

    from benchmarks.decoding import peer_decoder

    logging.set_verbosity_error()
    torch.set_num_threads(threads)
    arithmetic, _, static = mode.partition("+")
    dtype = {"float32": torch.float32, "bfloat16": torch.bfloat16}[arithmetic]
    translates = AutoConfig.from_pretrained(folder).is_encoder_decoder
    kind = AutoModelForSeq2SeqLM if translates else AutoModelForCausalLM
    begun = perf_counter()
    model = kind.from_pretrained(folder, dtype=dtype).eval()
    loaded = perf_counter() - begun
    if static:
        model.generation_config.cache_implementation = "static"
        compiling = CompileConfig(mode="default")
        compiling._compile_all_devices = True  # noqa: SLF001 -- else it compiles on GPUs alone
        model.generation_config.compile_config = compiling

    def decode(rows: int, beam: int, length: int, output: int) -> list[list[int]]:
        ids_BS = torch.tensor(drawn(rows, length, model.config.vocab_size))
        return peer_decoder(model, beam)(ids_BS, output)

    return decode, loaded


def main() -> None:
    """Answer until the input ends."""
    engine, mode, folder, threads = sys.argv[1:]
    begun = perf_counter()
    decode, load = globals()[engine](Path(folder), mode, int(threads))
    start, again = perf_counter() - begun, perf_counter()
    decode(1, 1, 1, 1)
    begin = {"start": start, "load": load, "ready": load + perf_counter() - again}

    def answer(asked: dict[str, Any]) -> dict[str, Any]:
        case = asked["rows"], asked["beam"], asked["length"], asked["output"]
        decode(*case)  # the engine before has taken the caches
        tokens, start = 0, perf_counter()
        while not tokens or perf_counter() - start < asked["seconds"]:
            ids = decode(*case)
            tokens += sum(map(len, ids))
        return {"tokens": tokens, "seconds": perf_counter() - start, "ids": ids}

    serve(begin, answer)


if __name__ == "__main__":
    main()
