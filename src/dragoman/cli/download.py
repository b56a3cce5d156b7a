"""`dragoman download`: a model of the Hugging Face Hub as a folder, the only way to the network."""

import re
import shutil
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from dragoman.cli.pipes import say
from dragoman.errors import DragomanError, InputError
from dragoman.files.writing import rename_durably
from dragoman.wording import short

FILES = frozenset((
    "config.json", "generation_config.json", "tokenizer.json", "tokenizer_config.json",
    "special_tokens_map.json", "added_tokens.json", "vocab.json", "target_vocab.json", "vocab.txt",
    "merges.txt", "source.spm", "target.spm", "spiece.model", "sentencepiece.bpe.model",
    "tokenizer.model", "chat_template.jinja", "README.md", "LICENSE", "LICENSE.md", "LICENSE.txt",
))  # fmt: skip
"""What loading reads beside the weights, and what says who may use them."""
WEIGHTS, INDEX = "model.safetensors", "model.safetensors.index.json"
SHARD = re.compile(r"model-\d+-of-\d+\.safetensors")
SITE = "https://huggingface.co"


def download(
    name: Annotated[str, typer.Argument(metavar="NAME", help="The model's name on the Hub.")],
    out: Annotated[
        Path | None,
        typer.Argument(metavar="OUT", help="The folder to write; default: the end of the name."),
    ] = None,
) -> None:
    """Fetch a published model from the Hugging Face Hub into a folder.

    dragoman download Helsinki-NLP/opus-mt-en-de

    Says size and licence first. No other command opens a connection. Interrupted, the same command
    goes on; the folder appears when it is whole.
    """
    try:
        import huggingface_hub as hub
        from huggingface_hub import errors
        from huggingface_hub.utils.tqdm import disable_progress_bars
    except ImportError as error:
        raise InputError(
            "dragoman download needs huggingface_hub: pip install 'dragoman[download]'."
        ) from error
    out = out or Path(name.rpartition("/")[2] or name)
    if out.exists() or out.is_symlink():
        raise InputError(f"{out} exists; choose another folder.")
    part = out.with_name(f".{out.name}.part")
    failures: Any = (
        *errors.HfHubHTTPError.__bases__,
        ValueError,
    )  # OSError, and of its HTTP client
    try:
        info = hub.model_info(name, files_metadata=True)
        sizes = _needed(name, {file.rfilename: file.size or 0 for file in info.siblings or ()})
        licence = getattr(info.card_data, "license", None) or "not stated: ask its publisher"
        say(f"{name}: {short(sum(sizes.values()))}B in {len(sizes)} files, licence {licence}.")
        if sys.stderr is None:  # by --quiet
            disable_progress_bars()
        hub.snapshot_download(name, revision=info.sha, local_dir=part, allow_patterns=sorted(sizes))
        _check_whole(part, sizes)
        shutil.rmtree(part / ".cache", ignore_errors=True)  # of the package
        rename_durably(part, out)
    except errors.GatedRepoError as error:
        raise InputError(
            f"{name} has gated access; accept its terms at {SITE}/{name} and log in: hf auth login."
        ) from error
    except (errors.RepositoryNotFoundError, errors.HFValidationError) as error:
        raise InputError(
            f"There is no public model {name}; look for its name, OWNER/MODEL, at {SITE}/models."
        ) from error
    except failures as error:
        raise DragomanError(
            f"Downloading {name} failed ({str(error).strip() or type(error).__name__}); check the "
            "connection and the disk, then repeat the command: it goes on where it stopped."
        ) from error
    say(f"{out} holds the model; it is used without a connection.")


def _needed(name: str, sizes: dict[str, int]) -> dict[str, int]:
    """Choose the files that loading reads. Raises InputError where it could not load them."""
    shards = {file for file in sizes if file == INDEX or SHARD.fullmatch(file)}
    weights = {WEIGHTS} if WEIGHTS in sizes else shards
    if "config.json" not in sizes or not weights:
        others = ", ".join(file for file in sizes if file.endswith((".bin", ".gguf", ".pt", ".h5")))
        has = "no config.json" if "config.json" not in sizes else "no weights as safetensors"
        raise InputError(
            f"{name} has {has}{f', only {others}' if others else ''}; nothing was fetched: look "
            f"for another version of it at {SITE}/{name}/tree/main."
        )
    return {file: size for file, size in sizes.items() if file in FILES | weights}


def _check_whole(folder: Path, sizes: dict[str, int]) -> None:
    """Raise ValueError for a file that has not come, or not all of it."""
    for file, size in sizes.items():
        path = folder / file
        found = path.stat().st_size if path.is_file() else 0
        if found < size:
            raise ValueError(f"{file} has {found:,} of {size:,} bytes")
