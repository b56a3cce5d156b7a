"""Refusals: what a client receives instead of an answer."""

import errno
import sqlite3
from collections.abc import Iterable, Mapping

from dragoman.errors import InputError, is_out_of_memory
from dragoman.folder.rereading import FolderFault
from dragoman.languages import meant, name_of

NO_ROOM = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
"""Error numbers for a full disk or an exhausted quota."""
LONGEST_NAME = 100
"""Maximum characters of a client's name that are repeated; of a file name, the last ones."""


class Refusal(Exception):  # noqa: N818 -- what it is
    """Why a request has no answer: a status, what is wrong, where, and what to do."""

    def __init__(
        self,
        status: int,
        what: str,
        do: str,
        *,
        where: str = "request",
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(what)
        self.status, self.what, self.where, self.do = status, what, where, do
        self.headers = dict(headers or {})

    def plain(self) -> dict[str, dict[str, str]]:
        """Return the refusal in our own format, for JSON; OpenAI's clients show its message."""
        parts = {"what": self.what, "where": self.where, "do": self.do}
        return {"error": {"message": self.sentence, **parts}}

    @property
    def sentence(self) -> str:
        """The whole refusal, for dialects whose errors are a single text."""
        return f"{self.what} {self.do}".strip()


class Gone(Exception):  # noqa: N818 -- what it is
    """The client has disconnected."""


def refusal_of(error: BaseException) -> Refusal:
    """Return the refusal for an exception; that of a bug reveals nothing about it."""
    if isinstance(error, Refusal):
        return error
    if isinstance(error, FolderFault):
        return Refusal(503, error.sentence, "Tell the operator.", where="model")
    if isinstance(error, InputError):
        what, _, do = str(error).rpartition("; ")
        what, do = what or str(error), do if what else "correct the request."
        return Refusal(400, as_sentence(what), as_sentence(do))
    if is_out_of_memory(error):
        return busy(503, "The server has run out of memory.", 5)
    if is_out_of_room(error):
        what = "The server has no room on its disk to keep this."
        return Refusal(507, what, "Try again later, or tell the operator.")
    return Refusal(500, "The server failed.", "Try again; its log says more.")


def is_out_of_room(error: BaseException) -> bool:
    """Whether an error means that the disk is full."""
    if isinstance(error, sqlite3.Error):  # errors that the module raises itself have no code
        return getattr(error, "sqlite_errorcode", None) == sqlite3.SQLITE_FULL
    return isinstance(error, OSError) and error.errno in NO_ROOM


def busy(status: int, what: str, seconds: int) -> Refusal:
    """Return the refusal of a request that may be accepted after `seconds`."""
    do = f"Try again in {seconds} s."
    return Refusal(status, what, do, headers={"retry-after": str(seconds)})


def ended() -> Refusal:
    """Return the refusal of a server that is shutting down."""
    return busy(503, "The server is shutting down.", 1)


def as_sentence(text: str) -> str:
    """Return a text capitalized, unless it begins with a name, and with a full stop."""
    if not {"_", "."} & set(text.partition(" ")[0]):
        text = text[:1].upper() + text[1:]
    return text if text.endswith((".", "?", "!")) else f"{text}."


def check_script(name: str, asked: str | None, codes: Iterable[str]) -> None:
    """Raise Refusal if models have a language in several scripts and the request names none."""
    found = meant(asked, codes) if asked else []
    if len(found) > 1:
        what = f"{name_of(asked or '')} ({asked}) is written in several scripts here."
        raise Refusal(400, what, f"Say which: {', '.join(sorted(found))}.", where=name)
