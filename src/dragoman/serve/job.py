"""What texts are computed for: its deadline, and waiting until nobody needs the answer any more."""

import asyncio
from collections.abc import Awaitable
from dataclasses import dataclass, field
from time import monotonic
from typing import Any, ClassVar, TypeVar

from dragoman.serve.forms import Upload
from dragoman.serve.refusals import Refusal

T = TypeVar("T")

DEADLINE = "x-deadline"
"""The header for the seconds within which a request must be answered."""


@dataclass(slots=True, eq=False, kw_only=True)
class ServeJob:
    """The document or request for which texts are computed."""

    notes: dict[str, Any] = field(default_factory=dict)
    """Fields of its log line, in addition to its outcome."""
    deadline: float = 0.0
    """When it is too late for an answer (`monotonic`)."""
    characters: int = 0
    """Characters of all its texts."""
    translated: int = 0
    """Characters of the texts that are translated."""
    file: Upload | None = None
    """The document in its form."""
    owner: str = ""
    """The owner of what it creates, from its key."""
    is_document: ClassVar[bool] = False
    """Whether it is a document, which takes long to read and to price."""
    over: asyncio.Future[Exception] = field(default_factory=asyncio.Future)
    """Receives the reason why the answer is no longer needed."""

    async def unless_gone(self, work: Awaitable[T]) -> T:
        """Wait for something. Raises the error given to `end`, or Refusal when it is too late.

        In both cases, what is awaited is cancelled.
        """
        task = asyncio.ensure_future(work)
        try:
            waited: set[asyncio.Future[Any]] = {task, self.over}
            await asyncio.wait(
                waited,
                timeout=max(0.0, self.deadline - monotonic()),
                return_when=asyncio.FIRST_COMPLETED,
            )
            if task.done():
                return task.result()
            raise self.over.result() if self.over.done() else late()
        finally:
            task.cancel()

    def end(self, error: Exception) -> None:
        """Make what is awaited fail."""
        if not self.over.done():
            self.over.set_result(error)


def late() -> Refusal:
    """Return the refusal of a request that is too late."""
    what = "The request was not answered within its deadline."
    do = f"Send less at a time, or a greater {DEADLINE}."
    return Refusal(504, what, do, where=f"header {DEADLINE}")
