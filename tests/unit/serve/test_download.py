"""A file that is sent in pieces, by the rules of ASGI."""

import asyncio
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

import pytest

from dragoman.serve.refusals import Gone
from dragoman.serve.web import PIECE, Download

Message = MutableMapping[str, Any]


async def downloaded(
    content: bytes, receive: Callable[[], Awaitable[Message]], method: str = "GET"
) -> list[Any]:
    """Return the messages that were sent, and behind them "sent" once it is."""
    messages = list[Any]()

    async def send(message: Message) -> None:
        messages.append(message)

    download = Download(lambda: messages.append("sent"), content, {})
    try:
        await download({"type": "http", "method": method}, receive, send)
    except Gone:
        messages.append("gone")
    return messages


async def waits() -> Message:
    """The client stays and says nothing more."""
    await asyncio.Event().wait()
    raise AssertionError


async def leaves() -> Message:
    """The client has left."""
    return {"type": "http.disconnect"}


def bodies(messages: list[Any]) -> list[bytes]:
    """The pieces that are not empty."""
    return [m["body"] for m in messages if isinstance(m, dict) and m.get("body")]


@pytest.mark.parametrize("size", [0, 1, PIECE, PIECE + 1, 3 * PIECE])
def test_a_file_is_sent_once_its_last_piece_is(size: int) -> None:
    """All of it comes, and the last message alone says that it is the last."""
    content = bytes(n % 251 for n in range(size))
    *messages, sent = asyncio.run(downloaded(content, waits))
    assert b"".join(bodies(messages)) == content
    assert all(len(piece) <= PIECE for piece in bodies(messages))
    assert dict(messages[0]["headers"])[b"content-length"] == str(size).encode()
    assert [m["more_body"] for m in messages[1:]] == [True] * (len(messages) - 2) + [False]
    assert sent == "sent"


@pytest.mark.parametrize("size", [0, 1, 3 * PIECE])
def test_a_file_is_not_sent_whose_client_left_before_the_last_piece(size: int) -> None:
    """However late the loop comes to tell: `receive` is asked, not waited for."""
    messages = asyncio.run(downloaded(b"a" * size, leaves))
    assert messages[-1] == "gone"
    assert len(b"".join(bodies(messages))) == max(0, size - 1) // PIECE * PIECE


def test_a_file_whose_headers_are_asked_for_is_not_sent() -> None:
    """They are those of GET."""
    start, *others = asyncio.run(downloaded(b"a" * 9, waits, "HEAD"))
    assert start == asyncio.run(downloaded(b"a" * 9, waits))[0]
    assert others == [{"type": "http.response.body", "body": b"", "more_body": False}]


def test_the_end_of_a_request_is_no_leaving() -> None:
    """It may be read first."""
    answers: list[Message] = [{"type": "http.request", "body": b"", "more_body": False}]

    async def receive() -> Message:
        return answers.pop() if answers else await waits()

    assert asyncio.run(downloaded(b"a", receive))[-1] == "sent"
