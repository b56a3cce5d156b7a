"""A damaged model folder loads as what it was, or is refused in one sentence.

`DRAGOMAN_FUZZ=100000` damages that many folders in place of a few hundred.
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
    """A translator with its matrices rounded."""
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
"""Bytes of address space that loading a folder of some hundred kilobytes may take at most."""


class Opened(list[Path]):
    """The files that Python opens while it listens; a hook can never be taken away again."""

    listening = False

    def __call__(self, event: str, arguments: tuple[object, ...]) -> None:
        """Hear of what the interpreter does."""
        if self.listening and event == "open" and isinstance(arguments[0], str | os.PathLike):
            self.append(Path(arguments[0]))


@contextmanager
def little_memory() -> Iterator[None]:
    """Let the operating system refuse any more memory than `ROOM`."""
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
    """What may not change without a word: all but descriptions and defaults."""
    weights = sha256()
    for name, weight in folder.model.state_dict().items():
        weights.update(name.encode() + weight.numpy().tobytes())
    sides = (each.content_hash for each in folder.tokenizers)
    return (folder.config.model, weights.digest(), *sides)


def attempt(load: Callable[[], T], case: str) -> T | str:
    """What is loaded, or the one sentence with which it is refused."""
    try:
        return load()
    except InputError as error:
        sentence = str(error)
    except BaseException as error:  # the library in Rust panics with one
        raise AssertionError(case) from error
    assert "\n" not in sentence, case
    return sentence


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="there is no /proc")
@pytest.mark.parametrize("kind", SAVE)
def test_a_damaged_folder_is_what_it_was_or_refused(
    tmp_path: Path, request: pytest.FixtureRequest, kind: str
) -> None:
    """No other exception, nothing read outside the folder, no memory that the files do not fill."""
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
    assert 0 < refused < CASES // len(SAVE)


def test_a_damaged_tokenizer_loads_or_is_refused(
    tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """Also where no hash guards it: the folder of a run keeps the tokenizer alone."""
    path = save_translator(tmp_path / "m") / "tokenizer.json"
    whole = path.read_bytes()
    for case in range(CASES // len(SAVE)):
        path.write_bytes(damage(whole, Random(f"{request.config.getoption('seed')} {case}")))
        found = attempt(lambda: Tokenizer.load(path), str(case))
        assert isinstance(found, Tokenizer) or str(path) in found, case
