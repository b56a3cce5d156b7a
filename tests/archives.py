"""Zip archives as dictionaries: what their members hold, by name."""

import io
import zipfile
from collections.abc import Mapping


def packed(members: Mapping[str, str | bytes], method: int = zipfile.ZIP_DEFLATED) -> bytes:
    """A zip archive."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", method) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return buffer.getvalue()


def unpacked(data: bytes) -> dict[str, bytes]:
    """The members of one, each of which has the checksum that is said of it."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def replaced(data: bytes, members: Mapping[str, str | bytes]) -> bytes:
    """The archive with other members in place of some."""
    return packed({**unpacked(data), **members})
