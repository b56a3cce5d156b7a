"""Multipart forms, which may contain a file."""

import asyncio
import re
from collections.abc import AsyncGenerator
from dataclasses import dataclass
from pathlib import PurePosixPath

from starlette.datastructures import Headers
from starlette.formparsers import MultiPartException, MultiPartParser

from dragoman.serve.refusals import LONGEST_NAME, Refusal
from dragoman.wording import counted

PIECE = 1 << 16
"""Bytes of a form that are parsed at a time."""


@dataclass(frozen=True, slots=True)
class Upload:
    """A file that was sent with a form."""

    name: str
    """The client's name for it, without folders."""
    content: bytes


class _FormParser(MultiPartParser):
    """Starlette's parser, which does not say whether the form was complete."""

    is_complete = False

    def on_end(self) -> None:
        """Remember that the closing boundary was found."""
        self.is_complete = True


async def read_parts(
    kind: str, body: bytes, files: int
) -> tuple[list[tuple[str, str]], Upload | None]:
    """Return the fields and the file of a multipart form, given its content type.

    The charset is ignored: some take forever to decode. Raises Refusal for more than `files` files,
    and for a damaged or incomplete form.
    """

    async def stream() -> AsyncGenerator[bytes, None]:
        for start in range(0, len(body), PIECE):  # other requests go on between two pieces
            yield body[start : start + PIECE]
            await asyncio.sleep(0)
        if not parser.is_complete:  # its last field would be missing
            raise Refusal(400, "The form has no closing boundary.", "Send all of it.", where="body")

    headers = Headers({"content-type": re.sub("charset", "_", kind, flags=re.IGNORECASE)})
    parser = _FormParser(headers, stream(), max_files=files, max_part_size=len(body))
    parser.spool_max_size = len(body)  # never copied to a disk
    try:
        found = await parser.parse()
    except (MultiPartException, KeyError, ValueError) as error:
        do = f"Correct it: it may have {counted(files, 'file')}, and all else as text."
        raise Refusal(400, "The form cannot be read.", do, where="body") from error
    upload = None
    for value in found.values():
        if not isinstance(value, str):
            name = PurePosixPath((value.filename or "").replace("\\", "/")).name
            upload = Upload(name[-LONGEST_NAME:], await value.read())
    await found.close()
    return [(name, value) for name, value in found.multi_items() if isinstance(value, str)], upload
