"""Weights saved by PyTorch without safetensors, `pytorch_model.bin`; no code in a file is run.

Since PyTorch 1.6 the file is a zip archive of `data.pkl` and one member with the data of each
storage, which is mapped into memory. Before, it was five pickles followed by the data, which are
read into memory.

A file must pass two readers. The first checks, without unpickling, that the pickles refer only to
parts of a state dict. Then PyTorch's restricted reader (`weights_only=True`) builds the tensors.
The first also bounds memory: PyTorch's would allocate whatever a file requests.
"""

import io
import pickletools
import zipfile
from collections.abc import Iterator
from pathlib import Path

import torch
from torch import Tensor

from dragoman.errors import InputError

STORAGES = "BFloat16 Bool Byte Char Double Float Half Int Long Short"
NAMES = frozenset({
    "collections.OrderedDict",
    "torch._utils._rebuild_parameter",
    "torch._utils._rebuild_tensor",
    "torch._utils._rebuild_tensor_v2",
    *(f"torch.{kind}Storage" for kind in STORAGES.split()),
})  # fmt: skip
"""Names that the pickle of a state dict may refer to."""
LARGEST_PICKLE = 1 << 22
"""Maximum size of the pickles in bytes; they contain names and shapes, about 150 a tensor."""
MOST_SHARING = 8
"""Maximum ratio of all tensors' bytes to the file's; tied matrices share one storage."""
ZIP = b"PK\x03\x04"
DAMAGED = "download it again, or take the model as safetensors"


def read_pickled(path: Path) -> dict[str, Tensor]:
    """Return the tensors of a state dict by name; those of a zip archive are mapped.

    `path` is a regular file. Raises InputError if it is damaged or compressed, refers to anything
    but tensors, or has tensors that take more memory than its size explains.
    """
    try:
        with path.open("rb") as stream:
            zipped = stream.read(len(ZIP)) == ZIP
        for name in _names_in(path, zipped=zipped):
            if name not in NAMES:
                raise InputError(
                    f"{path} refers to {name}, which is not part of a dictionary "
                    "of tensors, so it is not read; take the model as safetensors."
                )
        state = torch.load(path, map_location="cpu", weights_only=True, mmap=zipped)
    except InputError:
        raise
    except OSError as error:
        raise InputError(f"Cannot read {path}: {error.strerror or error}.") from error
    except Exception as error:  # three parsers of arbitrary bytes
        raise InputError(f"{path} is damaged ({_reason(error)}); {DAMAGED}.") from error
    return _checked(path, state)


def _names_in(path: Path, *, zipped: bool) -> Iterator[str]:
    """Yield what the pickles of a file refer to, each as "MODULE.NAME"."""
    if zipped:
        pickles = io.BytesIO(_read_member(path))
    else:
        with path.open("rb") as stream:
            pickles = io.BytesIO(stream.read(LARGEST_PICKLE))
    for _ in range(1 if zipped else 5):
        yield from _names_of(pickles)


def _names_of(pickles: io.BytesIO) -> Iterator[str]:
    """Yield what the next pickle refers to, and what could copy one long list a million times.

    The latter are calls with one or two arguments (`OrderedDict(pairs)`, `FloatStorage(size)`) and
    updates of objects. A state dict needs only empty dictionaries, tensors built from three or more
    arguments, and one update, of itself.
    """
    depths, arguments, updates = [0], None, 0
    for opcode, argument, _ in pickletools.genops(pickles):
        if opcode.name in {"GLOBAL", "INST"}:
            yield str(argument).replace(" ", ".")
        elif opcode.name in {"STACK_GLOBAL", "EXT1", "EXT2", "EXT4", "NEWOBJ"}:
            yield f"an object by {opcode.name}"
        elif opcode.name == "REDUCE" and arguments in {None, 1, 2}:
            yield "an object by a call that could copy its argument"
        elif opcode.name == "BUILD" and (updates := updates + 1) > 1:
            yield "several objects by BUILD"
        if "PUT" not in opcode.name:
            arguments = _count(depths, opcode)


def _count(depths: list[int], opcode: pickletools.OpcodeInfo) -> int | None:
    """Count the objects after each mark; return a tuple's size, None for other opcodes."""
    if opcode.name == "MARK":
        depths.append(0)
        return None
    before, after = opcode.stack_before, opcode.stack_after
    if pickletools.markobject in before:
        taken = depths.pop()
        depths[-1] += len(after) - before.index(pickletools.markobject)
    else:
        taken = len(before)
        depths[-1] += len(after) - taken
    return taken if "TUPLE" in opcode.name else None


def _read_member(path: Path) -> bytes:
    """Return the pickle of an archive. Raises InputError if any member is compressed."""
    with zipfile.ZipFile(path) as archive:
        members = archive.infolist()
        packed = any(member.compress_type != zipfile.ZIP_STORED for member in members)
        if packed or sum(member.file_size for member in members) > path.stat().st_size:
            raise InputError(f"{path} is compressed, which torch.save never does; {DAMAGED}.")
        named = [each for each in members if each.filename.rpartition("/")[2] == "data.pkl"]
        if len(named) != 1 or named[0].file_size > LARGEST_PICKLE:
            raise InputError(f"{path} has no data.pkl of a dictionary of tensors; {DAMAGED}.")
        return archive.read(named[0])


def _checked(path: Path, state: object) -> dict[str, Tensor]:
    """Check that a state dict contains only tensors, of a size that its file explains."""
    if not isinstance(state, dict) or not all(isinstance(name, str) for name in state):
        raise InputError(f"{path} is not a dictionary of tensors; take the model as safetensors.")
    for name, value in state.items():
        if not isinstance(value, Tensor):
            raise InputError(
                f"{path} holds {name!r}, which is a {type(value).__name__} and no tensor; take the "
                "model as safetensors."
            )
    held = sum(tensor.numel() * tensor.element_size() for tensor in state.values())
    if held > MOST_SHARING * path.stat().st_size:
        raise InputError(
            f"{path} has {path.stat().st_size:,} bytes, but its tensors {held:,}; {DAMAGED}."
        )
    return {name: tensor.detach().contiguous() for name, tensor in state.items()}


def _reason(error: Exception) -> str:
    """Return the first line of a parser's message; from PyTorch's, without its advice."""
    text = str(error) or type(error).__name__
    text = text.rpartition("WeightsUnpickler error: ")[2].strip()
    return text.partition("\n")[0].partition(". Please use")[0].removesuffix(".")
