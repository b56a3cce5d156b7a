"""`dragoman serve`: a service for programs and people, over HTTP."""

from pathlib import Path
from typing import Annotated

import typer

from dragoman.cli.loading import Loading, with_arithmetic
from dragoman.cli.output import option
from dragoman.errors import InputError, how_to_install

UNITS = {"": 1, "K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}

Models = Annotated[list[Path], typer.Argument(help="Model folders.", metavar="MODEL...")]
Host = Annotated[str, option("Address to listen on; 0.0.0.0 is all of this machine.")]
Port = Annotated[int, option("Port to listen on; 0 chooses a free one.")]
Lazy = Annotated[bool, option("Load each model at its first request.", "--lazy")]
MaxMemory = Annotated[
    str | None,
    option(
        "Memory for the weights of all loaded models, such as 8G; the least recently used are "
        "unloaded."
    ),
]
QueueTokens = Annotated[
    int, option("Padded tokens of all accepted requests; more are refused (429).")
]
Deadline = Annotated[
    float, option("Seconds in which a request is answered, unless it says otherwise.")
]
DrainDelay = Annotated[float, option("Seconds after SIGTERM in which requests are still accepted.")]
ShutdownTimeout = Annotated[
    float, option("Seconds after SIGTERM in which accepted requests are answered.")
]
Keys = Annotated[Path | None, option("File of API keys, one per line (or DRAGOMAN_API_KEYS).")]
State = Annotated[
    Path | None,
    option("Folder that keeps documents and glossaries; without one they go with the server."),
]
Cors = Annotated[
    list[str] | None,
    option("Origin whose web pages may read answers; * is any. May be repeated."),
]
Limit = Annotated[
    list[str] | None,
    option("Limit of a request, such as texts=100 or beam=10. May be repeated."),
]


@with_arithmetic
def serve(  # noqa: PLR0913 -- the options of the verb
    models: Models,
    *,
    host: Host = "127.0.0.1",
    port: Port = 8000,
    lazy: Lazy = False,
    max_memory: MaxMemory = None,
    queue_tokens: QueueTokens = 1 << 17,
    deadline: Deadline = 60.0,
    drain_delay: DrainDelay = 0.0,
    shutdown_timeout: ShutdownTimeout = 30.0,
    api_keys: Keys = None,
    state: State = None,
    cors: Cors = None,
    limit: Limit = None,
    loading: Loading,
) -> None:
    """Serve models over HTTP: our API, LibreTranslate's, DeepL's and OpenAI's.

    dragoman serve runs/en-zh

    dragoman serve runs/en-zh opus-mt-en-de --host 0.0.0.0 --api-keys keys.txt
    """
    from dragoman.serve.settings import ApiKeys, RequestLimits, ServeSettings
    from dragoman.settings import override_settings

    try:
        limits = override_settings(RequestLimits(), limit or ())
    except InputError as error:
        raise InputError(str(error).replace("override ", "--limit ", 1)) from None
    settings = ServeSettings(
        models=tuple(models),
        host=host,
        port=port,
        lazy=lazy,
        max_memory=None if max_memory is None else _bytes(max_memory),
        queue_tokens=queue_tokens,
        deadline=deadline,
        drain_delay=drain_delay,
        shutdown_timeout=shutdown_timeout,
        keys=ApiKeys.read(api_keys),
        state=state,
        cors=tuple(cors or ()),
        limits=limits,
        device=loading.device,
        compute=loading.compute,
    )
    try:
        from dragoman.serve import server
    except ModuleNotFoundError as error:
        raise InputError(f"{error.name} is not installed; {how_to_install('serve')}.") from error
    server.serve(settings)


def _bytes(given: str) -> float:
    """The bytes of a size such as 8G or 500M."""
    number = given.upper().removesuffix("B")
    unit = number[-1:] if number[-1:] in UNITS else ""
    try:
        size = float(number.removesuffix(unit)) * UNITS[unit]
    except ValueError:
        size = 0.0
    if not 0 < size < float("inf"):
        raise InputError(f"--max-memory is {given}; it must be a size such as 500M or 8G.")
    return size
