"""Downloading a model from the Hugging Face Hub: the only module that uses the network."""

import re
import shutil
import sys
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from safetensors import SafetensorError

from dragoman.errors import DragomanError, InputError, how_to_install
from dragoman.files.writing import check_own_folder, rename_durably
from dragoman.folder.foreign.files import read_checkpoint
from dragoman.folder.origin import KEPT, NESTED
from dragoman.wording import short

SAFE = re.compile(r"model(-\d+-of-\d+)?\.safetensors|model\.safetensors\.index\.json")
BIN = re.compile(r"pytorch_model(-\d+-of-\d+)?\.bin|pytorch_model\.bin\.index\.json")
"""Weights as safetensors or by `torch.save`: one file, or shards with their index."""
SITE, BOT = "https://huggingface.co", "SFconvertbot"


class Weights(NamedTuple):
    """Weight files and their origin."""

    sizes: Mapping[str, int]
    revision: str
    told: str
    """The message to the user: which files they are and what is trusted."""


def fetch(name: str, out: Path, say: Callable[[str], None]) -> None:
    """Fetch a published model into the new folder `out`, which appears when it is complete.

    `say` receives the size and licence before the first download. After an interruption, a second
    call resumes. Raises InputError if the model does not exist or is not supported, if `out`
    exists, or if huggingface_hub is not installed; DragomanError if fetching fails.
    """
    try:
        import huggingface_hub as hub
        from huggingface_hub import errors
        from huggingface_hub.utils.tqdm import disable_progress_bars
    except ImportError as error:
        raise InputError(
            f"dragoman download needs huggingface_hub; {how_to_install('download')}."
        ) from error
    if out.exists() or out.is_symlink():
        raise InputError(f"{out} exists; choose another folder.")
    if sys.stderr is None:  # with --quiet
        disable_progress_bars()
    part = out.with_name(f".{out.name}.part")
    check_own_folder(part)
    failures: Any = (*errors.HfHubHTTPError.__bases__, ValueError)  # OSError and the HTTP client's
    try:
        info = hub.model_info(name, files_metadata=True)
        weights, beside = _choose_weights(hub, name, info), _sizes(info, {*KEPT, *NESTED})
        sizes = {**beside, **weights.sizes}
        licence = getattr(info.card_data, "license", None) or "not stated: ask its publisher"
        say(f"{name}: {short(sum(sizes.values()))}B in {len(sizes)} files, licence {licence}.")
        say(f"Weights: {weights.told}.")
        for revision, files in ((info.sha, beside), (weights.revision, weights.sizes)):
            hub.snapshot_download(
                name, revision=revision, local_dir=part, allow_patterns=sorted(files)
            )
        if any(BIN.fullmatch(file) for file in weights.sizes):
            _store_as_safetensors(part)
        shutil.rmtree(part / ".cache", ignore_errors=True)  # of huggingface_hub
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
            "connection and the disk, then repeat the command: it resumes where it stopped."
        ) from error


def _choose_weights(hub: Any, name: str, info: Any) -> Weights:  # noqa: ANN401 -- optional package
    """Choose safetensors, those of the bot, or `.bin`. Raises InputError if there are none."""
    names = [each.rfilename for each in info.siblings]
    safe, pickled = _sizes(info, SAFE), _sizes(info, BIN)
    if "config.json" not in names or not (safe or pickled):
        others = ", ".join(file for file in names if file.endswith((".gguf", ".pt", ".h5")))
        has = "no config.json" if "config.json" not in names else "no weights that are read"
        raise InputError(
            f"{name} has {has}{f', only {others}' if others else ''}; nothing was fetched: look "
            f"for another version of it at {SITE}/{name}/tree/main."
        )
    if safe:
        return Weights(safe, info.sha, "safetensors of the main revision")
    return _find_proposed(hub, name, info) or Weights(
        pickled,
        info.sha,
        "pytorch_model.bin of the main revision, read by PyTorch's restricted reader, which runs "
        "no code, and stored as safetensors",
    )


def _find_proposed(hub: Any, name: str, info: Any) -> Weights | None:  # noqa: ANN401
    """Find safetensors in an open pull request of the Hub's conversion bot.

    It must add nothing else, and be based on the pickles of the current main revision.
    """
    ours = {file.rfilename: file.blob_id for file in info.siblings}
    try:
        for each in hub.get_repo_discussions(
            name, author=BOT, discussion_type="pull_request", discussion_status="open"
        ):
            if each.author != BOT or not each.is_pull_request or each.status != "open":
                continue
            theirs = hub.model_info(name, revision=f"refs/pr/{each.num}", files_metadata=True)
            blobs = {file.rfilename: file.blob_id for file in theirs.siblings}
            same = all(blobs.get(file) == ours[file] for file in ours if BIN.fullmatch(file))
            added = blobs.keys() - ours.keys()
            if same and ours.keys() < blobs.keys() and all(map(SAFE.fullmatch, added)):
                told = (
                    f"safetensors that {BOT}, the Hub's conversion bot, proposed in pull request "
                    f"{each.num}, trusted to hold what pytorch_model.bin does"
                )
                return Weights(_sizes(theirs, SAFE), theirs.sha, told)
    except hub.errors.HfHubHTTPError:  # discussions may be disabled
        pass
    return None


def _sizes(info: Any, wanted: Collection[str] | re.Pattern[str]) -> dict[str, int]:  # noqa: ANN401
    """Return the sizes of the files with these names, or with names that match."""
    chosen = wanted.fullmatch if isinstance(wanted, re.Pattern) else wanted.__contains__
    return {each.rfilename: each.size or 0 for each in info.siblings if chosen(each.rfilename)}


def _store_as_safetensors(folder: Path) -> None:
    """Replace `torch.save` files with the same tensors as safetensors."""
    from huggingface_hub import save_torch_state_dict

    _, tensors = read_checkpoint(folder)
    try:
        save_torch_state_dict(dict(tensors), folder)  # a matrix with several names is stored once
    except (RuntimeError, SafetensorError) as error:  # overlapping tensors, a full disk
        raise DragomanError(f"Storing {folder} as safetensors failed: {error}.") from error
    for path in filter(lambda path: BIN.fullmatch(path.name), sorted(folder.iterdir())):
        path.unlink()
