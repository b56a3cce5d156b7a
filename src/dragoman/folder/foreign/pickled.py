"""Weights as PyTorch saved them before safetensors, `pytorch_model.bin`; no code of a file is run.

Since PyTorch 1.6 the file is a zip archive, `data.pkl` and one member for the numbers of each
storage, which is mapped into memory. Before, it was five pickles with the numbers behind them,
which are read into memory.

Two readers must agree: the pickles may name the parts of a state dict only, which is checked
without unpickling, and then PyTorch's restricted reader (`weights_only=True`) builds the tensors.
The first one bounds memory too: PyTorch's would allocate what a file asks for.
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
"""What the pickle of a state dict refers to."""
LARGEST_PICKLE = 1 << 22
"""Most bytes of pickles, which hold names and shapes: about 150 for a tensor."""
MOST_SHARING = 8
"""Most bytes of all tensors, in sizes of the file; tied matrices share one storage."""
ZIP = b"PK\x03\x04"
DAMAGED = "download it again, or take the model as safetensors"


def read_pickled(path: Path) -> dict[str, Tensor]:
    """Return the tensors of a state dict, by their names; those of a zip archive are mapped.

    `path` is a regular file. Raises InputError for one that is damaged or compressed, that refers
    to anything but tensors, or whose tensors take more memory than the file explains.
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
    except Exception as error:  # what bytes of any kind raise in three parsers
        raise InputError(f"{path} is damaged ({_reason(error)}); {DAMAGED}.") from error
    return _checked(path, state)


def _names_in(path: Path, *, zipped: bool) -> Iterator[str]:
    """What the pickles of a file refer to, each as "MODULE.NAME"."""
    if zipped:
        pickles = io.BytesIO(_read_member(path))
    else:
        with path.open("rb") as stream:
            pickles = io.BytesIO(stream.read(LARGEST_PICKLE))
    for _ in range(1 if zipped else 5):
        yield from _names_of(pickles)


def _names_of(pickles: io.BytesIO) -> Iterator[str]:
    """What the next pickle refers to, and what could copy one long list a million times.

    That is a call with one or two arguments (`OrderedDict(pairs)`, `FloatStorage(size)`) and the
    update of an object. A state dict makes empty dictionaries and, of three arguments or more,
    tensors, and updates itself alone.
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
    """Count the objects behind each mark; return how many a tuple takes, None for other opcodes."""
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
    """The pickle of an archive of which no member is compressed."""
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
    """Return a state dict whose tensors are no larger than its file explains."""
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
    """The first line of what a parser says, of PyTorch's the part behind its advice."""
    text = str(error) or type(error).__name__
    text = text.rpartition("WeightsUnpickler error: ")[2].strip()
    return text.partition("\n")[0].partition(". Please use")[0].removesuffix(".")
