"""Admission of requests: bounds on their bodies, and on a queue counted in padded tokens."""

import math
from time import monotonic

from dragoman.serve.job import ServeJob
from dragoman.serve.refusals import Refusal, busy, ended
from dragoman.serve.settings import RequestLimits

MEMORY = 30.0
"""Time constant, in seconds, of the average rate from which `retry-after` is computed."""
LONGEST_WAIT = 60
"""Maximum `retry-after`, in seconds."""
GUESS = 4
"""Characters that count as one token until texts are priced."""
WHOLE = 16
"""Number of maximum-size bodies that may arrive at the same time. If the server has keys, half as
many for clients that send their key in the body, or no key."""
SMALL = 1 << 16
"""Bytes of each body that are accepted regardless of how much else is arriving."""


class ArrivingBodies:
    """A bound on the total bytes of the bodies that are arriving. Used only in the event loop."""

    def __init__(self, limits: RequestLimits) -> None:
        self._most = WHOLE * max(limits.file, limits.body)
        self.bytes = 0

    def keep(self, body: bytearray, piece: bytes, *, known: bool) -> bool:
        """Add a piece to a body; return whether there was room for it. `known` is `Call.known`."""
        most = self._most if known else self._most // 2
        if len(body) + len(piece) > SMALL and self.bytes + len(piece) > most:
            return False
        self.bytes += len(piece)
        body += piece
        return True

    def drop(self, body: bytearray) -> None:
        """Stop counting a body, and empty it: an error's reference cycle may keep it alive."""
        self.bytes -= len(body)
        body.clear()


class AdmissionQueue:
    """The requests that are accepted and not answered yet. Used only in the event loop.

    The cost of a request is the tokens of its texts, padding included, as if it were computed
    separately from others. The number of its texts makes no difference.
    """

    def __init__(self, most: int) -> None:
        self.most = most
        self.tokens = 0
        """Padded tokens that are waiting or being computed."""
        self.closed = False
        """Whether new requests are refused."""
        self.costs: dict[ServeJob, int] = {}
        """The cost of each accepted request. A document stays in it until it is translated."""
        self._rate = 0.0
        self._since = monotonic()

    def guess(self, job: ServeJob, characters: int) -> None:
        """Accept a request at a cost estimated from its length. Raises Refusal as `take` does.

        If it seems larger than the whole queue, any room is enough: pricing then decides.
        """
        tokens = guessed(characters)
        self.take(job, tokens if tokens <= self.most else max(1, self.most - self.tokens))

    def take(self, job: ServeJob, cost: int) -> None:
        """Set the cost of a request in tokens, which counts until the request leaves.

        Raises Refusal if there is no room for it, or if the request is new and the queue closed.
        """
        before = self.costs.get(job, 0)
        if self.closed and job not in self.costs:
            raise ended()
        if cost > self.most:
            raise Refusal(
                413,
                f"The request costs {cost:,} tokens, more than the whole queue of {self.most:,}.",
                "Send several smaller requests, or, in translating, ask for a smaller beam.",
            )
        if cost > before and self.tokens + cost - before > self.most:
            raise self._full()
        self.tokens += cost - before
        self.costs[job] = cost

    def leave(self, job: ServeJob, *, answered: bool) -> None:
        """Stop counting a request, if it was accepted."""
        cost = self.costs.pop(job, 0)
        self.tokens -= cost
        if answered and cost:
            now = monotonic()
            fade = math.exp(-(now - self._since) / MEMORY)
            self._rate, self._since = self._rate * fade + cost / MEMORY, now

    def _full(self) -> Refusal:
        """Return the refusal of a full queue, with the time until half of it is answered."""
        rate = max(self._rate * math.exp(-(monotonic() - self._since) / MEMORY), 1.0)
        seconds = min(max(1, math.ceil(self.tokens / 2 / rate)), LONGEST_WAIT)
        return busy(429, "The server's queue is full.", seconds)


def guessed(characters: int) -> int:
    """Estimate the number of tokens in a number of characters."""
    return 1 + characters // GUESS
