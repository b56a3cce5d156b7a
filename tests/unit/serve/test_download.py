"""A file that is sent in pieces according to ASGI."""

import asyncio
from collections.abc import MutableMapping
from tempfile import TemporaryFile
from typing import Any

import pytest

from dragoman.serve.refusals import Gone
from dragoman.serve.responses import PIECE, Download

LEAVES = {"type": "http.disconnect"}
READ = {"type": "http.request", "body": b"", "more_body": False}


def downloaded(
    content: bytes, said: list[dict[str, Any]], method: str = "GET"
) -> tuple[list[Any], bool]:
    """Return the messages sent to a client, given its own, and whether all was sent."""
    messages, sent = list[MutableMapping[str, Any]](), list[bool]()

    async def send(message: MutableMapping[str, Any]) -> None:
        messages.append(message)

    async def receive() -> MutableMapping[str, Any]:
        if not said:
            await asyncio.Event().wait()
        return said.pop(0)

    async def answer() -> None:
        with TemporaryFile() as file:
            file.write(content)
            file.seek(0)
            download = Download(lambda: sent.append(True), file, {})
            assert not download.body  # it stays on the disk
            await download({"type": "http", "method": method}, receive, send)
            assert file.closed

    try:
        asyncio.run(answer())
    except Gone:
        assert not sent
    return messages, bool(sent)


@pytest.mark.parametrize("said", [[], [READ]], ids=["nothing", "end"])
@pytest.mark.parametrize("size", [0, 1, PIECE, PIECE + 1, 3 * PIECE])
def test_a_file_is_sent_once_its_last_piece_is(size: int, said: list[dict[str, Any]]) -> None:
    """The whole file arrives, and only the last message is marked as the last."""
    content = bytes(n % 251 for n in range(size))
    (start, *others), sent = downloaded(content, [*said])
    assert sent
    assert b"".join(each["body"] for each in others) == content
    assert max(len(each["body"]) for each in others) <= PIECE
    assert dict(start["headers"])[b"content-length"] == str(size).encode()
    assert [each["more_body"] for each in others] == [True] * (len(others) - 1) + [False]
    assert downloaded(content, [], "HEAD") == (
        [start, READ | {"type": "http.response.body"}],
        False,
    )


@pytest.mark.parametrize("size", [0, 1, 3 * PIECE])
def test_a_file_is_not_sent_whose_client_left_before_the_last_piece(size: int) -> None:
    """Even if the event loop reports it late: `receive` is polled, not awaited."""
    (_, *others), sent = downloaded(b"a" * size, [READ, LEAVES])
    assert not sent
    assert len(b"".join(each["body"] for each in others)) == max(0, size - 1) // PIECE * PIECE
