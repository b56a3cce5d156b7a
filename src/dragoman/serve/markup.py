"""Texts with tags in a request, read as documents."""

from collections.abc import Sequence
from itertools import islice

import msgspec

from dragoman.documents.document import Document


def joined(documents: Sequence[Document]) -> Document:
    """Return documents as one, which is written as the list of theirs in JSON."""

    def assemble(texts: Sequence[str]) -> bytes:
        rest = iter(texts)
        written = (each.assemble([*islice(rest, len(each.parts))]) for each in documents)
        return msgspec.json.encode([each.decode() for each in written])

    return Document(tuple(part for each in documents for part in each.parts), assemble)
