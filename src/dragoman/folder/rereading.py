"""Reading more of a folder whose model is in use, after checking that it has not changed."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from dragoman.errors import InputError
from dragoman.folder.opening import ModelFolder, open_folder

WEIGHTS_OF_OTHERS = ("*model*.safetensors", "*model*.bin", "*.npz")
"""Weight files in folders of other libraries, and those of adapters."""


class FolderFault(InputError):  # noqa: N818 -- what it is
    """A folder that has changed or been damaged since its model was loaded."""


def weights_of(folder: ModelFolder) -> object:
    """Return what identifies the weights: a hash, or the files' inodes and modification times."""
    if folder.config.weights_sha256 is not None and folder.adapters is None:
        return folder.config.weights_sha256
    places = {folder.path, folder.adapters or folder.path}
    files = sorted(file for each in places for how in WEIGHTS_OF_OTHERS for file in each.glob(how))
    return tuple((file.name, file.stat().st_ino, file.stat().st_mtime_ns) for file in files)


@contextmanager
def reread(path: Path | ModelFolder, weights: object) -> Iterator[ModelFolder]:
    """Open a folder for reading within the context.

    Raises FolderFault if its weights are not `weights` before or after, and in place of an
    InputError or OSError within.
    """
    try:
        now = open_folder(str(path))
        folder = path if isinstance(path, ModelFolder) else now
        if same := weights_of(now) == weights:
            yield folder
            same = weights_of(folder) == weights
    except (InputError, OSError) as error:
        raise FolderFault(str(error)) from error
    if not same:
        raise FolderFault(
            f"{path} has changed since its model was loaded; load it again, or restart the server."
        )
