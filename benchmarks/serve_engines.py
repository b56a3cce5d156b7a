"""A server as people write it around CTranslate2, one call a text; and ours without a server.

    python -m benchmarks.serve_engines flask|fastapi FOLDER BEAM MODE PORT
    python -m benchmarks.serve_engines bare FOLDER MODE

`flask` is LibreTranslate's way: Flask under waitress, with threads that each translate a text.
`fastapi` is what most people write: FastAPI under uvicorn, a function that is not asynchronous.
MODE is an arithmetic, and after a plus sign CTranslate2's threads: `int8` has two for a text,
`int8+1` one, `int8+workers` a worker of one thread for each of two texts.

`bare` answers lines of JSON: a list of texts, by the seconds that each takes.
"""

import sys
from collections.abc import Callable
from time import perf_counter
from typing import Any

from benchmarks.processes import Answer, serve

LAYOUTS = {"": (1, 2), "1": (1, 1), "workers": (2, 1)}
"""Workers, and threads of each."""


def translating(folder: str, beam: int, mode: str) -> Callable[[str], str]:
    """Return what translates a text by CTranslate2."""
    import ctranslate2
    from tokenizers import Tokenizer

    arithmetic, _, layout = mode.partition("+")
    workers, threads = LAYOUTS[layout]
    tokenizer = Tokenizer.from_file(f"{folder}/tokenizer.json")
    engine = ctranslate2.Translator(
        folder, compute_type=arithmetic, inter_threads=workers, intra_threads=threads
    )

    def translate(text: str) -> str:
        pieces = tokenizer.encode(text, add_special_tokens=False).tokens
        (result,) = engine.translate_batch(
            [pieces], beam_size=beam, max_decoding_length=len(pieces) + 1
        )
        ids = [tokenizer.token_to_id(piece) for piece in result.hypotheses[0]]
        return str(tokenizer.decode(ids, skip_special_tokens=False))

    return translate


def flask(translate: Callable[[str], str], port: int) -> None:
    """Serve as LibreTranslate does."""
    import waitress
    from flask import Flask, jsonify, request

    app = Flask(__name__)

    @app.post("/translate")
    def answer() -> Any:  # noqa: ANN401 -- a response
        return jsonify({"translatedText": translate(request.get_json()["q"])})

    waitress.serve(app, host="127.0.0.1", port=port, threads=8)


def fastapi(translate: Callable[[str], str], port: int) -> None:
    """Serve as its documentation begins."""
    import uvicorn
    from fastapi import Body, FastAPI

    app = FastAPI()

    @app.post("/translate")
    def answer(q: str = Body(embed=True)) -> dict[str, str]:
        return {"translatedText": translate(q)}

    uvicorn.run(app, host="127.0.0.1", port=port, log_level="warning")


def bare(folder: str, mode: str) -> None:
    """Translate by our own call, one text at a time."""
    from dragoman import load, prepare_process

    prepare_process()
    translator: Any = load(folder, precision=mode)

    def answer(asked: Answer) -> Answer:
        seconds = []
        for text in asked["texts"]:
            begun = perf_counter()
            translator.translate(text)
            seconds.append(perf_counter() - begun)
        return {"seconds": seconds}

    serve({}, answer)


if __name__ == "__main__":
    kind, folder, *rest = sys.argv[1:]
    if kind == "bare":
        bare(folder, *rest)
    else:
        beam, mode, port = rest
        {"flask": flask, "fastapi": fastapi}[kind](translating(folder, int(beam), mode), int(port))
