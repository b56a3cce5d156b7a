"""Which requests are accepted: bounded bodies, and a bounded queue, counted in padded tokens."""

import math
from time import monotonic

from dragoman.serve.refusals import Refusal, busy, ended
from dragoman.serve.settings import RequestLimits
from dragoman.serve.web import ServeJob

MEMORY = 30.0
"""Seconds over which the rate is averaged, by which a client is told when to come back."""
LONGEST_WAIT = 60
"""Seconds after which a client may come back at the latest."""
GUESS = 4
"""Characters that are taken for a token until texts are priced."""
WHOLE = 16
"""How many of the largest bodies may arrive at a time; of clients whose keys come in the bodies, or
not at all, where there are keys, half as many."""
SMALL = 1 << 16
"""Bytes of each body that are taken however much arrives beside it."""


class ArrivingBodies:
    """Bounds the bytes of all bodies that are arriving. It is used in the event loop alone."""

    def __init__(self, limits: RequestLimits) -> None:
        self._most = WHOLE * max(limits.file, limits.body)
        self.bytes = 0

    def keep(self, body: bytearray, piece: bytes, *, known: bool) -> bool:
        """Add a piece to a body; whether there is room for it. `known` is that of a call."""
        most = self._most if known else self._most // 2
        if len(body) + len(piece) > SMALL and self.bytes + len(piece) > most:
            return False
        self.bytes += len(piece)
        body += piece
        return True

    def drop(self, body: bytearray) -> None:
        """Count a body no more, and empty it, which a cycle of an error and its frames may hold."""
        self.bytes -= len(body)
        body.clear()


class AdmissionQueue:
    """Counts what is accepted and not answered yet. It is used in the event loop alone.

    A request counts the tokens of its texts as they would be computed by themselves, padding
    included; whether it has one text or fifty is all the same.
    """

    def __init__(self, most: int) -> None:
        self.most = most
        self.tokens = 0
        """Padded tokens that are waiting or computed."""
        self.closed = False
        """Whether nothing more is accepted."""
        self.costs: dict[ServeJob, int] = {}
        """What each accepted request counts; a document is one until it is translated."""
        self._rate = 0.0
        self._since = monotonic()

    def guess(self, job: ServeJob, characters: int) -> None:
        """Accept a request by its length, until it is priced. Raises Refusal as `take`.

        One that seems larger than the queue is priced where there is any room, to be told so.
        """
        tokens = guessed(characters)
        self.take(job, tokens if tokens <= self.most else max(1, self.most - self.tokens))

    def take(self, job: ServeJob, cost: int) -> None:
        """Count a request as so many tokens until it leaves, in place of what it counted before.

        Raises Refusal where there is no room for more.
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
        """Count a request no more, if it was accepted."""
        cost = self.costs.pop(job, 0)
        self.tokens -= cost
        if answered and cost:
            now = monotonic()
            fade = math.exp(-(now - self._since) / MEMORY)
            self._rate, self._since = self._rate * fade + cost / MEMORY, now

    def _full(self) -> Refusal:
        """The refusal of a queue that is full; half of it will be answered by then."""
        rate = max(self._rate * math.exp(-(monotonic() - self._since) / MEMORY), 1.0)
        seconds = min(max(1, math.ceil(self.tokens / 2 / rate)), LONGEST_WAIT)
        return busy(429, "The server's queue is full.", seconds)


def guessed(characters: int) -> int:
    """Return about how many tokens so many characters are."""
    return 1 + characters // GUESS
