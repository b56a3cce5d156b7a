"""HTTP load: clients that each keep a connection, texts that are due by a Poisson process."""

import asyncio
import gc
import json
from bisect import bisect
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import cycle
from random import Random
from time import perf_counter
from typing import Any

SOON = 0.05
"""Seconds within which a refusal should come."""
HEAD = "POST {} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: {}"


@dataclass(frozen=True, slots=True)
class Target:
    """Where texts are sent, and as what."""

    port: int
    path: str
    field: str
    """The name of the text in the JSON of a request."""

    def request(self, text: str) -> bytes:
        """Return the bytes of a request."""
        body = json.dumps({self.field: text}).encode()
        return f"{HEAD.format(self.path, len(body))}\r\n\r\n".encode() + body


@dataclass(frozen=True, slots=True)
class Reply:
    """How a request ended."""

    status: int
    """0 where the connection was lost."""
    seconds: float
    """From the moment when it was due, whether a client was free then or not."""
    sent: float
    """From the moment when it was sent."""


def load(
    target: Target,
    texts: Sequence[str],
    clients: int,
    *,
    seconds: float = float("inf"),
    rate: float | None = None,
    most: int | None = None,
) -> tuple[list[Reply], float]:
    """Send texts; return the replies, and the seconds until the last one.

    With a rate, texts are due at random moments, so many a second on average, for `seconds`, and
    those that are late by as much are not sent; without one, whenever a client is free, until
    `seconds` are over or `most` were sent.
    """
    begun = perf_counter()
    due = _due(begun, seconds, rate, most)
    replies: list[Reply] = []
    requests = [target.request(text) for text in texts]

    async def run() -> None:
        shared = cycle(requests)
        async with asyncio.TaskGroup() as group:
            for _ in range(clients):
                group.create_task(_client(target.port, due, shared, replies))

    gc.disable()  # it would stop for as long as a refusal may take, among a million replies
    try:
        asyncio.run(run())
    finally:
        gc.enable()
    return replies, perf_counter() - begun


def _due(begun: float, seconds: float, rate: float | None, most: int | None) -> Iterator[float]:
    """The moments at which texts are due, in order; whoever asks is a client that is free."""
    draw, moment, number = Random(0), begun, 0
    while moment < begun + seconds and number != most and perf_counter() < begun + 2 * seconds:
        yield moment
        moment = perf_counter() if rate is None else moment + draw.expovariate(rate)
        number += 1


async def _client(
    port: int, due: Iterator[float], requests: Iterator[bytes], replies: list[Reply]
) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    for moment in due:
        await asyncio.sleep(moment - perf_counter())
        begun = perf_counter()
        try:
            writer.write(next(requests))
            head = await reader.readuntil(b"\r\n\r\n")
            lines = head.lower().split(b"\r\n")
            length = next(line for line in lines if line.startswith(b"content-length:"))
            await reader.readexactly(int(length.partition(b":")[2]))
            status = int(head.split(b" ", 2)[1])
        except (OSError, EOFError):
            status = 0
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
        replies.append(Reply(status, perf_counter() - moment, perf_counter() - begun))
    writer.close()


def summary(replies: Sequence[Reply], seconds: float) -> dict[str, Any]:
    """Return answers a second, milliseconds of half and of 99 % of them, and counts by status.

    The same of refusals, from when a text was sent, and of how late texts were sent: as long as
    some client is free, that is the lag of this process.
    """
    times = sorted(reply.seconds for reply in replies if reply.status == 200)
    refused = sorted(reply.sent for reply in replies if reply.status not in {200, 0})
    late = sorted(reply.seconds - reply.sent for reply in replies)
    counts = Counter(str(reply.status) for reply in replies)
    found: dict[str, Any] = {"rate": len(times) / seconds, "status": dict(counts)}
    found["refused_soon"] = bisect(refused, SOON) / len(refused) if refused else 1.0
    return found | _middle("", times) | _middle("refused_", refused) | _middle("late_", late)


def _middle(name: str, times: Sequence[float]) -> dict[str, float]:
    """The median and the 99th percentile of sorted times in milliseconds; 0 where none are."""
    places = {"p50": 0.5, "p99": 0.99}
    return {
        f"{name}{key}": 1000 * times[round(share * (len(times) - 1))] if times else 0.0
        for key, share in places.items()
    }
