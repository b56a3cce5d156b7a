"""Zip archives as dictionaries from member names to contents."""

import io
import zipfile
from collections.abc import Mapping


def packed(members: Mapping[str, str | bytes], method: int = zipfile.ZIP_DEFLATED) -> bytes:
    """Return a zip archive."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", method) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return buffer.getvalue()


def unpacked(data: bytes) -> dict[str, bytes]:
    """Return the members, whose checksums are verified."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def replaced(data: bytes, members: Mapping[str, str | bytes]) -> bytes:
    """Return the archive with some members replaced."""
    return packed({**unpacked(data), **members})
