"""The chat template of a Hugging Face folder: messages to the ids of a prompt.

The template is a Jinja program that writes special tokens between the messages. A message must not
forge them, whatever the template does with it (trim, split, replace). So the names of special
tokens in the template's own text, and in variables such as `bos_token`, are replaced by marks with
a random number that no message can know. In the rendered text, only these marks become special
tokens.
"""

import json
import re
import secrets
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from dragoman.errors import DragomanError, InputError
from dragoman.files.reading import read_file
from dragoman.folder.tokenizers import rendering
from dragoman.folder.tokenizers.fast import ForeignTokenizer
from dragoman.folder.tokenizers.files import SETTINGS, USUAL, TokenizerFolder
from dragoman.text.tokenizer import Tokenizer

FILE = "chat_template.jinja"
LARGEST = 1 << 20
"""Maximum size of the file in bytes; published templates have up to 30,000."""
PATIENCE = 60
"""Seconds to wait for `rendering`, which may have to wait for a CPU."""

JOINED = re.compile(
    r"""(['"])([^'"]*)\1 *\+ *(\w+(?:\.role|\[(['"])role\4\])) *\+ *(['"])([^'"]*)\5"""
)
"""An expression such as `'<|' + message['role'] + '|>'` (Phi-4-mini)."""

Message = Mapping[str, str | Sequence[Mapping[str, str | None]]]
"""A `role` ("system", "user" or "assistant") and its `content`: a text, or a list of parts."""


def find_template(folder: TokenizerFolder) -> tuple[str, Path] | None:
    """Return a folder's chat template and its file; None if there is none.

    Raises InputError if it cannot be read.
    """
    origin, source = folder.path / SETTINGS[0], folder.settings.get("chat_template")
    if folder.has(FILE):
        origin = folder.path / FILE
        source = read_file(origin, LARGEST).decode(errors="replace")
    if isinstance(source, list):  # of several, use the one without tools
        named = (each for each in source if isinstance(each, Mapping))
        source = next((one.get("template") for one in named if one.get("name") == "default"), 0)
    if source is None:
        return None
    if not isinstance(source, str):
        raise InputError(f"{origin} has no chat template that is called default.")
    return source, origin


@dataclass(frozen=True, slots=True)
class PublishedTemplate:
    """A chat template and its tokenizer; `origin` is the template's file."""

    source: str
    origin: Path
    tokenizer: ForeignTokenizer

    @classmethod
    def of(cls, tokenizer: Tokenizer) -> Self | None:
        """Return the template of a tokenizer's folder; None if there is none."""
        if not isinstance(tokenizer, ForeignTokenizer):
            return None
        found = find_template(tokenizer.folder)
        return None if found is None else cls(*found, tokenizer)

    def encode(self, messages: Sequence[Message], hint: str = "") -> list[int]:
        """Return the ids of a prompt for the answer to the last message.

        They are those of `apply_chat_template(..., add_generation_prompt=True)` of transformers,
        except that the name of a special token in a message is text. Raises InputError if the
        template rejects the messages or fails, which `hint` may explain, or exceeds the limits of
        `rendering`.
        """
        specials, nonce = self.tokenizer.specials, secrets.randbelow(10**18)
        # names that are words may be roles, which templates compare: `_check` handles them
        signs = (name for name in specials if re.search(r"[^\w\s]", name))
        marks = {name: f"<{nonce}:{number}>" for number, name in enumerate(signs)}
        names = {mark: name for name, mark in marks.items()}
        roles = {f"{role}_token": self.tokenizer.folder.name_of(role, specials) for role in USUAL}
        variables = {key: marks.get(name, name) for key, name in roles.items() if name is not None}
        rendered = self._render(
            marks,
            {
                **variables,
                "messages": [dict(message) for message in messages],
                "tools": None,
                "documents": None,
                "add_generation_prompt": True,
            },
            hint,
        )
        text, places = "", dict[int, int]()
        for number, part in enumerate(re.split(f"(<{nonce}:[0-9]+>)", rendered)):
            if number % 2:
                places[len(text)] = len(text) + len(names[part])
            else:
                self._check(part, messages)
            text += names.get(part, part)
        return self.tokenizer.encode_with_specials(text, places)

    def _check(self, text: str, messages: Sequence[Message]) -> None:
        """Raise InputError if the template itself composes the name of a special token."""
        for name in self.tokenizer.specials:
            if name in text and not any(_says(message["content"], name) for message in messages):
                raise InputError(
                    f"The chat template of {self.origin} puts {name} together from parts, so that "
                    "it cannot be told from the text of a message; use dragoman generate."
                )

    def _render(self, marks: Mapping[str, str], variables: Mapping[str, object], hint: str) -> str:
        source = JOINED.sub(_by_role, self.source)
        asked = {"source": source, "marks": marks, "variables": variables}
        try:
            done = subprocess.run(  # noqa: S603 -- this very interpreter, on a file of this package
                [sys.executable, "-P", rendering.__file__],
                input=json.dumps(asked).encode(),
                capture_output=True,
                timeout=PATIENCE,
                check=False,
            )
        except OSError as error:
            raise DragomanError(f"Cannot start {sys.executable}: {error.strerror}.") from error
        except subprocess.TimeoutExpired:
            done = None
        if done is None or done.returncode:
            raise InputError(
                f"The chat template of {self.origin} takes more than {rendering.SECONDS} seconds "
                f"or {rendering.BYTES >> 20:,} MiB; use dragoman generate."
            )
        answer: dict[str, str] = json.loads(done.stdout)
        if "error" in answer:
            why = "".join(c if c.isprintable() else " " for c in answer["error"][:200])
            why = why.rstrip(". ") + hint
            raise InputError(f"The chat template of {self.origin} fails on these messages: {why}.")
        return answer["text"]


def _by_role(joined: re.Match[str]) -> str:
    """Return the expression with the text for each role spelt out: it may name a special token."""
    before, after = joined[2], joined[6]
    texts = (f"'{role}': '{before}{role}{after}'" for role in ("system", "user", "assistant"))
    return f"{{{', '.join(texts)}}}[{joined[3]}]"


def _says(content: str | Sequence[Mapping[str, str | None]], name: str) -> bool:
    """Return whether a message contains a name."""
    if isinstance(content, str):
        return name in content
    return any(name in (value or "") for part in content for value in part.values())
