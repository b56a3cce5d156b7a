"""The settings of a server, and the limits on requests."""

import hmac
import math
import os
import re
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Self

from dragoman.decoding import NO_FLAG, Decoding, Precision
from dragoman.errors import InputError
from dragoman.ranges import Count, Index, NonNegative, Positive, check_ranges
from dragoman.settings import override_settings

KEYS_VARIABLE = "DRAGOMAN_API_KEYS"
"""The environment variable for keys, separated by commas."""

UNITS = {"": 1, "K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}

HOST = r"([a-z\d_.-]+|\[[\da-f:.]+\])"
ORIGIN = re.compile(
    rf"\*|null|http://{HOST}(:(?!80$)\d+)?|https://{HOST}(:(?!443$)\d+)?"
    r"|(?!(?i:https?):)[\w+.-]+://[^/\s]+",
    re.ASCII,
)
"""An origin: of a web page, as browsers send it, or of a program."""

PARTS = 4
"""Each of several keys may have 1/PARTS of what a server keeps."""

CAPPED: Mapping[str, str] = {
    **dict.fromkeys(("beam_size", "n_best", "beam_groups", "mbr"), "beam"),
    **dict.fromkeys(("max_tokens", "min_length", "max_length_constant"), "tokens"),
    **dict.fromkeys(("max_src_tokens", "context"), "tokens"),
    **dict.fromkeys(("stop", "forbidden_words"), "strings"),
    "max_length_factor": "factor",
}
"""Decoding options, and the limit that bounds each."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestLimits:
    """Limits on requests and connections."""

    body: Count = 1 << 20
    """Bytes in the body of a request."""
    texts: Count = 1000
    """Texts in a request."""
    characters: Count = 200_000
    """Characters in all texts of a request."""
    beam: Count = 20
    """Hypotheses in a beam, alternatives, samples."""
    tokens: Count = 4096
    """Tokens that a request may ask for by an option."""
    factor: Positive = 10.0
    """Tokens in a translation per source token."""
    strings: Count = 100
    """Stop strings, or forbidden words."""
    file: Count = 10 << 20
    """Bytes in a document or a glossary."""
    files: Count = 100
    """Stored documents; each of several keys may have a quarter of them."""
    file_seconds: Positive = 3600.0
    """Seconds for which a document is stored."""
    glossaries: Count = 1000
    """Stored glossaries; each of several keys may have a quarter of them."""
    cached: Index = 0
    """Cached translations per model, so that repeated texts are answered at once."""
    headers: Count = 1 << 14
    """Bytes before the body."""
    connections: Count = 1000
    """Concurrent connections."""
    read_seconds: Positive = 15.0
    """Seconds within which a request must arrive."""
    deadline: Positive = 600.0
    """Longest deadline that a request may set, in seconds."""
    write_seconds: Positive = 30.0
    """Seconds for which a client may leave sent data unread."""

    def __post_init__(self) -> None:
        """Raise InputError for a value out of range."""
        check_ranges(self)

    @classmethod
    def read(cls, given: list[str]) -> Self:
        """Return the limits with overrides, each given as NAME=VALUE. Raises InputError."""
        try:
            return override_settings(cls(), given)
        except InputError as error:
            said = str(error).replace("override ", "--limit ", 1)
            raise InputError(said.replace("train.max_steps=1000", "texts=100")) from None

    def check(
        self, texts: Sequence[str], options: Decoding | None = None, *, beside: Sequence[str] = ()
    ) -> None:
        """Raise InputError for too many texts or characters, and for an option above its limit.

        For `beside`, such as prefixes of the texts, only the characters count.
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


class ApiKeys:
    """The API keys of a server; a server without keys is open."""

    def __init__(self, keys: Sequence[str], file: Path | None = None) -> None:
        self._digests, self._file = {*map(digest_of, keys)}, file

    @classmethod
    def read(cls, file: Path | None = None) -> Self:
        """Read the environment, and a file with one key per line; `#` begins a comment line.

        Raises InputError if the file cannot be read, if either contains no key, and for a key with
        white space.
        """
        given = os.environ.get(KEYS_VARIABLE, "")
        keys = [key.strip() for key in given.split(",")]
        if given and not any(keys):
            raise InputError(
                f"{KEYS_VARIABLE} has no key; write keys with commas between them, or unset it."
            )
        if file is not None:
            try:
                lines = file.read_text("utf-8-sig").splitlines()
            except (OSError, UnicodeError) as error:
                raise InputError(f"{file} cannot be read ({type(error).__name__}).") from error
            listed = [line.strip() for line in lines if not line.lstrip().startswith("#")]
            if not any(listed):
                raise InputError(f"{file} has no key; write one a line.")
            keys += listed
        if any(len(key.split()) > 1 for key in keys):
            raise InputError(
                "An API key contains white space; write commas between the keys of "
                f"{KEYS_VARIABLE}, and comments in a file on lines of their own."
            )
        return cls([key for key in keys if key], file)

    def __len__(self) -> int:
        return len(self._digests)

    def owner(self, key: str) -> str:
        """Return the owner of what a key creates: a hash of the key, or "" if there are no keys."""
        return digest_of(key) if self else ""

    def warn_of_readers(self) -> None:
        """Warn if others can read the file; we may read another user's file through its group."""
        if self._file is not None and hasattr(os, "geteuid"):  # Windows has no such modes
            status = self._file.stat()
            readers = 0o044 if status.st_uid == os.geteuid() else 0o004
            if status.st_mode & readers:
                told = f"{self._file} can be read by other users of this machine"
                warnings.warn(f"{told}; run chmod 600 on it.", stacklevel=2)

    def allows(self, key: str) -> bool:
        """Whether a key is accepted, in a time that does not depend on which key it is."""
        digest = digest_of(key)
        return not self._digests or sum(hmac.compare_digest(digest, d) for d in self._digests) > 0


def digest_of(key: str) -> str:
    """Return the hash that is kept of a key."""
    return sha256(key.encode("utf-8", "surrogatepass")).hexdigest()


def size_in_bytes(given: str) -> float:
    """Return the bytes of a size such as 8G or 500M. Raises InputError for an invalid size."""
    number = given.upper().removesuffix("B")
    unit = number[-1:] if number[-1:] in UNITS else ""
    try:
        size = float(number.removesuffix(unit)) * UNITS[unit]
    except ValueError:
        size = 0.0
    if not 0 < size < math.inf:
        raise InputError(f"--max-memory is {given}; it must be a size such as 500M or 8G.")
    return size


@dataclass(frozen=True, slots=True, kw_only=True)
class ServeSettings:
    """The operator's settings. The command-line options are generated from the fields."""

    models: tuple[Path, ...] = field(default=(), metadata=NO_FLAG)
    """Folders."""
    host: str = "127.0.0.1"
    """Address to listen on; 0.0.0.0 means all addresses of this machine, :: also those of IPv6."""
    port: int = 8000
    """Port to listen on; 0 chooses a free one."""
    lazy: bool = False
    """Load each model on its first request."""
    max_memory: float = field(default=math.inf, metadata={"read": size_in_bytes})
    """Memory limit for the weights of all loaded models, such as 8G; the least recently used are
    unloaded."""
    queue_tokens: Count = 1 << 17
    """Maximum number of padded tokens in all accepted requests; more are refused (429)."""
    deadline: Positive = 60.0
    """Seconds within which a request is answered, unless it sets its own deadline."""
    drain_delay: NonNegative = 0.0
    """Seconds after SIGTERM during which requests are still accepted."""
    shutdown_timeout: Positive = 30.0
    """Seconds after SIGTERM within which accepted requests are answered."""
    keys: ApiKeys = field(
        default_factory=ApiKeys.read, metadata={"flag": "--api-keys", "read": ApiKeys.read}
    )
    """File of API keys, one per line (or DRAGOMAN_API_KEYS)."""
    state: Path | None = None
    """Folder that stores documents and glossaries; without it, they are lost when the server
    stops."""
    cors: tuple[str, ...] = ()
    """Origin whose web pages may read responses; * allows any. May be repeated."""
    host_name: tuple[str, ...] = ()
    """Host name under which a server without keys is reached, such as translate.example.org. May be
    repeated."""
    limits: RequestLimits = field(
        default_factory=RequestLimits, metadata={"flag": "--limit", "read": RequestLimits.read}
    )
    """Server limit, such as texts=100, beam=10 or cached=1000. May be repeated."""
    device: str = field(default="auto", metadata=NO_FLAG)
    compute: Precision = field(default="float32", metadata=NO_FLAG)

    def __post_init__(self) -> None:
        """Raise InputError for a value out of range, and for an invalid host name or origin."""
        check_ranges(self)
        if self.drain_delay >= self.shutdown_timeout:
            raise InputError(
                f"--drain-delay {self.drain_delay:g} is not less than --shutdown-timeout "
                f"{self.shutdown_timeout:g}, of which it is a part; allow more seconds for the end"
            )
        for name in self.host_name:
            if not re.fullmatch(r"[\w.-]+(:\d+)?", name):
                raise InputError(
                    f"--host-name {name} is not a host name; give it without a scheme, a path "
                    "and wildcards, such as translate.example.org"
                )
        for origin in self.cors:
            if not ORIGIN.fullmatch(origin):
                raise InputError(
                    f"--cors {origin} is not an origin as browsers send it; give the scheme and "
                    "the name in small letters, no path and no usual port, such as "
                    "https://their.example, or give * for any"
                )

    def share(self, most: int) -> int:
        """Return one key's share of a limit for all keys."""
        return max(1, most // PARTS) if len(self.keys) > 1 else most

    @property
    def named(self) -> dict[str, Path]:
        """The folders by name: the shortest end of each path that no other has.

        Raises InputError if a folder is given twice.
        """
        absolute = {path: path.resolve().parts[1:] for path in self.models}
        if len(set(absolute.values())) < len(self.models):
            raise InputError("A model folder is given twice; give each once.")
        names = dict[str, Path]()
        for path, parts in absolute.items():
            others = [other for other in absolute.values() if other != parts]
            size = 1
            while any(other[-size:] == parts[-size:] for other in others):
                size += 1
            names["/".join(parts[-size:])] = path
        return names
