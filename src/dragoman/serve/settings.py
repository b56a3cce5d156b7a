"""How a server is set up, and what it accepts."""

import hmac
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path

from dragoman.decoding import Decoding, Precision
from dragoman.errors import InputError
from dragoman.ranges import Count, Index, NonNegative, Positive, check_ranges

KEYS_VARIABLE = "DRAGOMAN_API_KEYS"
"""The environment variable with keys, separated by commas."""

PARTS = 4
"""Of what a server keeps each of several keys may have one part."""

CAPPED: Mapping[str, str] = {
    **dict.fromkeys(("beam_size", "n_best", "beam_groups", "mbr"), "beam"),
    **dict.fromkeys(("max_tokens", "min_length", "max_length_constant"), "tokens"),
    **dict.fromkeys(("max_src_tokens", "context"), "tokens"),
    **dict.fromkeys(("stop", "forbidden_words"), "strings"),
    "max_length_factor": "factor",
}
"""Options of decoding that a limit bounds, and which one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestLimits:
    """What a request, and a connection, may have at most."""

    body: Count = 1 << 20
    """Bytes of a body."""
    texts: Count = 1000
    """Texts of a request."""
    characters: Count = 200_000
    """Characters of all its texts."""
    beam: Count = 20
    """Hypotheses of a beam, alternatives, samples."""
    tokens: Count = 4096
    """Tokens that a request may ask for by an option."""
    factor: Positive = 10.0
    """Tokens of a translation for each token of its source."""
    strings: Count = 100
    """Stop strings, or forbidden words."""
    file: Count = 10 << 20
    """Bytes of a document, or of a glossary."""
    files: Count = 100
    """Documents that are kept; of each of several keys a quarter of them."""
    file_seconds: Positive = 3600.0
    """Seconds for which a document is kept."""
    glossaries: Count = 1000
    """Glossaries that are kept; of each of several keys a quarter of them."""
    cached: Index = 0
    """Translations of each model that are kept, so that equal texts are answered at once."""
    headers: Count = 1 << 14
    """Bytes before the body."""
    connections: Count = 1000
    """Connections at a time."""
    read_seconds: Positive = 15.0
    """Seconds in which a request must arrive."""
    deadline: Positive = 600.0
    """Seconds in which a request may ask to be answered."""
    write_seconds: Positive = 30.0
    """Seconds for which a client may leave what it is sent unread."""

    def __post_init__(self) -> None:
        """Raise InputError for a value out of range."""
        check_ranges(self)

    def check(
        self, texts: Sequence[str], options: Decoding | None = None, *, beside: Sequence[str] = ()
    ) -> None:
        """Raise InputError for too many texts or characters, and for an option above its limit.

        Of what stands beside the texts, such as their prefixes, the characters count.
        """
        sizes = {"texts": len(texts), "characters": sum(map(len, (*texts, *beside)))}
        for name, size in sizes.items():
            if size > (most := getattr(self, name)):
                raise InputError(
                    f"the request has {size:,} {name}; this server allows at most {most:,}: send "
                    "several requests"
                )
        given = {} if options is None else options.given()
        for name, limit in CAPPED.items():
            value = given.get(name) or 0
            size, unit = (len(value), " strings") if isinstance(value, tuple) else (value, "")
            if size > (most := getattr(self, limit)):
                raise InputError(f"{name} is {size}{unit}; this server allows at most {most}{unit}")


@dataclass(frozen=True, slots=True, kw_only=True)
class ServeSettings:
    """All that an operator chooses."""

    models: tuple[Path, ...]
    """Folders."""
    host: str = "127.0.0.1"
    port: int = 8000
    """0 lets the system choose one."""
    lazy: bool = False
    """Load each model at its first request."""
    max_memory: float | None = None
    """Bytes of all weights that are loaded at a time."""
    queue_tokens: Count = 1 << 17
    """Padded tokens of all requests that are accepted and not yet answered."""
    deadline: Positive = 60.0
    """Seconds in which a request that names none is to be answered."""
    drain_delay: NonNegative = 0.0
    """Seconds from the signal to the first refusal, in which a load balancer learns of it."""
    shutdown_timeout: Positive = 30.0
    """Seconds from the signal to the end."""
    state: Path | None = None
    """A folder for documents and glossaries; without one they go with the server."""
    cors: tuple[str, ...] = ()
    """Origins whose pages may read answers."""
    keys: "ApiKeys" = field(default_factory=lambda: ApiKeys(()))
    limits: RequestLimits = field(default_factory=RequestLimits)
    device: str = "auto"
    compute: Precision = "float32"

    def __post_init__(self) -> None:
        """Raise InputError for a value out of range."""
        check_ranges(self)

    def share(self, most: int) -> int:
        """Return how many of what all keys may have one may have."""
        return max(1, most // PARTS) if len(self.keys) > 1 else most


class ApiKeys:
    """Keys that open a server; it is open where there are none."""

    def __init__(self, keys: Sequence[str]) -> None:
        self._digests = [*map(_digest, keys)]

    @classmethod
    def read(cls, file: Path | None) -> "ApiKeys":
        """Read a file with a key a line (`#` begins a comment), and the environment.

        Raises InputError for a file that cannot be read, or that has no key.
        """
        keys = [key.strip() for key in os.environ.get(KEYS_VARIABLE, "").split(",")]
        if file is not None:
            try:
                lines = file.read_text("utf-8").splitlines()
            except (OSError, UnicodeError) as error:
                raise InputError(f"{file} cannot be read ({type(error).__name__}).") from error
            listed = [line.partition("#")[0].strip() for line in lines]
            if not any(listed):
                raise InputError(f"{file} has no key; write one a line.")
            keys += listed
        return cls([key for key in keys if key])

    def __len__(self) -> int:
        return len(self._digests)

    def owner(self, key: str) -> str:
        """Return whose what a key makes is: a hash of the key; "" where there are no keys."""
        return _digest(key).hex() if self else ""

    def allows(self, key: str) -> bool:
        """Whether a key is one of them, in a time that does not depend on which."""
        digest = _digest(key)
        return not self._digests or sum(hmac.compare_digest(digest, d) for d in self._digests) > 0


def _digest(key: str) -> bytes:
    return sha256(key.encode("utf-8", "surrogatepass")).digest()
