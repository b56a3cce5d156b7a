"""A damaged model folder loads as it was, or is refused in one sentence.

`DRAGOMAN_FUZZ=100000` damages that many folders instead of a few hundred.
"""

import os
import resource
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from random import Random
from typing import TypeVar

import pytest
from tests.damage import damage
from tests.unit.tasks.readers import save_reader
from tests.unit.tasks.tiny import save_translator
from tests.unit.tasks.tiny_generator import save_generator

from dragoman.convert.eight_bits import quantize
from dragoman.errors import InputError
from dragoman.folder.opening import ModelFolder
from dragoman.models.heads import TaggingHead
from dragoman.tasks.folders import read_folder
from dragoman.text.tokenizer import Tokenizer

T = TypeVar("T")


def save_in_eight_bits(folder: Path) -> Path:
    """Save a translator with rounded matrices."""
    quantize(save_translator(folder.with_name("in fp32")), folder)
    return folder


CASES = int(os.environ.get("DRAGOMAN_FUZZ", "800"))
SAVE: dict[str, Callable[[Path], Path]] = {
    "encoder-decoder": save_translator,
    "eight-bits": save_in_eight_bits,
    "decoder-only": save_generator,
    "encoder-only": lambda folder: save_reader(folder, TaggingHead(labels=("O", "B-X", "I-X"))),
}
ROOM = 2**29
"""Maximum address space, in bytes, for loading a folder of a few hundred kilobytes."""


class Opened(list[Path]):
    """Records the files that Python opens while it is active; a hook can never be removed."""

    listening = False

    def __call__(self, event: str, arguments: tuple[object, ...]) -> None:
        """Record an event of the interpreter."""
        if self.listening and event == "open" and isinstance(arguments[0], str | os.PathLike):
            self.append(Path(arguments[0]))


@contextmanager
def little_memory() -> Iterator[None]:
    """Let the operating system refuse more memory than `ROOM`."""
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    before = resource.getrlimit(resource.RLIMIT_AS)
    limit = pages * resource.getpagesize() + ROOM
    resource.setrlimit(resource.RLIMIT_AS, (limit, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)


def loaded(path: Path) -> ModelFolder:
    """A folder whose model was read."""
    folder = read_folder(path, device="cpu")
    folder.model  # noqa: B018 -- read here
    return folder


def content(folder: ModelFolder) -> tuple[object, ...]:
    """Return what must not change silently: everything except descriptions and defaults."""
    weights = sha256()
    for name, weight in folder.model.state_dict().items():
        weights.update(name.encode() + weight.numpy().tobytes())
    sides = (each.content_hash for each in folder.tokenizers)
    return (folder.config.model, weights.digest(), *sides)


def attempt(load: Callable[[], T], case: str) -> T | str:
    """Return the loaded content, or the one-sentence error."""
    try:
        return load()
    except InputError as error:
        sentence = str(error)
    except BaseException as error:  # the Rust library panics with a BaseException
        raise AssertionError(case) from error
    assert "\n" not in sentence, case
    return sentence


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="there is no /proc")
@pytest.mark.parametrize("kind", SAVE)
def test_a_damaged_folder_is_what_it_was_or_refused(
    tmp_path: Path, request: pytest.FixtureRequest, kind: str
) -> None:
    """No other exception, no file read outside the folder, no memory beyond what the files need."""
    folder = SAVE[kind](tmp_path / "m")
    whole = content(read_folder(folder, device="cpu"))
    files = {path.name: path.read_bytes() for path in folder.iterdir()}
    opened = Opened()
    sys.addaudithook(opened)
    refused = 0
    with little_memory():
        for case in range(CASES // len(SAVE)):
            draw = Random(f"{request.config.getoption('seed')} {kind} {case}")
            name = draw.choice(sorted(files))
            (folder / name).write_bytes(damage(files[name], draw))
            opened.listening = True
            found = attempt(lambda: loaded(folder), f"{case}: {name}")
            opened.listening = False
            if isinstance(found, ModelFolder):
                assert content(found) == whole, (case, name)
            else:
                refused += 1
                assert str(folder) in found, (case, name)
            (folder / name).write_bytes(files[name])
    assert all(path.is_relative_to(folder) for path in opened), set(opened)
    assert refused
    assert content(loaded(folder)) == whole


def test_a_damaged_tokenizer_loads_or_is_refused(
    tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """This holds even without a hash: the folder of a run stores only the tokenizer."""
    path = save_translator(tmp_path / "m") / "tokenizer.json"
    whole = path.read_bytes()
    for case in range(CASES // len(SAVE)):
        path.write_bytes(damage(whole, Random(f"{request.config.getoption('seed')} {case}")))
        found = attempt(lambda: Tokenizer.load(path), str(case))
        assert isinstance(found, Tokenizer) or str(path) in found, case
