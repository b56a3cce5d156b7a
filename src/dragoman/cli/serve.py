"""`dragoman serve`: a service for programs and people, over HTTP."""

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from dragoman.cli.loading import Loading, with_arithmetic
from dragoman.cli.options import with_options
from dragoman.errors import InputError, how_to_install
from dragoman.serve.settings import ApiKeys, ServeSettings

Models = Annotated[list[Path], typer.Argument(help="Model folders.", metavar="MODEL...")]


@with_options("settings", ServeSettings(keys=ApiKeys([])))
@with_arithmetic
def serve(models: Models, *, settings: ServeSettings, loading: Loading) -> None:
    """Serve models over HTTP: our API, LibreTranslate's, DeepL's and OpenAI's.

    dragoman serve runs/en-zh

    dragoman serve runs/en-zh opus-mt-en-de --host 0.0.0.0 --api-keys keys.txt
    """
    try:
        from dragoman.serve import server
    except ModuleNotFoundError as error:
        raise InputError(f"{error.name} is not installed; {how_to_install('serve')}.") from error
    server.serve(
        replace(settings, models=tuple(models), device=loading.device, compute=loading.compute)
    )
