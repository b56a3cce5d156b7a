"""Which requests are accepted: a bounded queue, counted in padded tokens."""

import math
from collections.abc import Iterator
from contextlib import contextmanager
from time import monotonic

from dragoman.serve.refusals import Refusal, busy, ended

MEMORY = 30.0
"""Seconds over which the rate is averaged, by which a client is told when to come back."""
LONGEST_WAIT = 60
"""Seconds after which a client may come back at the latest."""


class AdmissionQueue:
    """Counts what is accepted and not answered yet. It is used in the event loop alone.

    A request counts the tokens of its texts as they would be computed by themselves, padding
    included; whether it has one text or fifty is all the same.
    """

    def __init__(self, most: int) -> None:
        self.most = most
        self.tokens = 0
        """Padded tokens that are waiting or computed."""
        self.requests = 0
        self.closed = False
        """Whether nothing more is accepted."""
        self._rate = 0.0
        self._since = monotonic()

    def check(self) -> None:
        """Raise Refusal where no request can be accepted at present, whatever it costs."""
        if self.closed:
            raise ended()
        if self.tokens >= self.most:
            raise self._full()

    @contextmanager
    def admit(self, cost: int) -> Iterator[None]:
        """Count a request as long as it is answered. Raises Refusal where there is no room."""
        self.check()
        if cost > self.most:
            raise Refusal(
                413,
                f"The request costs {cost:,} tokens, more than the whole queue of {self.most:,}.",
                "Send several smaller requests, or ask for a smaller beam.",
            )
        if self.tokens + cost > self.most:
            raise self._full()
        self.tokens += cost
        self.requests += 1
        try:
            yield
            self._learn(cost)
        finally:
            self.tokens -= cost
            self.requests -= 1

    def _learn(self, cost: int) -> None:
        """Take an answered request into the rate: an average that fades."""
        now = monotonic()
        fade = math.exp(-(now - self._since) / MEMORY)
        self._rate, self._since = self._rate * fade + cost / MEMORY, now

    def _full(self) -> Refusal:
        """The refusal of a queue that is full; half of it will be answered by then."""
        rate = max(self._rate * math.exp(-(monotonic() - self._since) / MEMORY), 1.0)
        seconds = min(max(1, math.ceil(self.tokens / 2 / rate)), LONGEST_WAIT)
        return busy(429, "The server has as much to do as it accepts.", seconds)
