"""Render a chat template: a program that `template` runs with limits on time and memory.

Standard input is a JSON object with `source`, `marks` and `variables`; standard output is one with
`text` or `error`. Jinja's sandbox bounds a `range` but neither nested loops nor repeated strings,
so an untrusted template runs in a process that the system ends when it exceeds its limits.
"""

import json
import re
import sys
from collections.abc import Mapping
from datetime import datetime
from typing import Any, NoReturn

from jinja2 import TemplateError, nodes
from jinja2.ext import Extension, loopcontrols
from jinja2.parser import Parser
from jinja2.sandbox import ImmutableSandboxedEnvironment

SECONDS, BYTES, CHARACTERS = 3, 1 << 30, 1 << 24
"""Limits on CPU time, memory, and the length of the text."""


class GenerationTag(Extension):
    """`{% generation %}` around an assistant's text: used in training, ignored in a prompt."""

    tags = {"generation"}  # noqa: RUF012 -- as Jinja declares it

    def parse(self, parser: Parser) -> nodes.Node:
        """Return the contents in their own scope."""
        line = next(parser.stream).lineno
        body = parser.parse_statements(("name:endgeneration",), drop_needle=True)
        return nodes.Scope(body).set_lineno(line)


def render(source: str, marks: Mapping[str, str], variables: Mapping[str, Any]) -> str:
    """Render as `apply_chat_template` of transformers does, with the same functions.

    Each key of `marks` in the template's own text or strings is replaced by its value.
    """
    environment = ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[GenerationTag, loopcontrols]
    )
    environment.filters["tojson"] = _to_json
    environment.globals |= {
        "raise_exception": _raise_exception,
        "strftime_now": lambda form: datetime.now().strftime(form),
    }
    tree = environment.parse(source)
    names = re.compile("|".join(map(re.escape, sorted(marks, key=len, reverse=True))) or "(?!)")
    for node in tree.find_all((nodes.TemplateData, nodes.Const)):
        field = node.fields[0]
        if isinstance(text := getattr(node, field), str):
            setattr(node, field, names.sub(lambda found: marks[found[0]], text))
    rendered = environment.from_string(tree).render(**variables)
    if len(rendered) > CHARACTERS:
        raise TemplateError(f"its text has more than {CHARACTERS:,} characters")
    return rendered


def _to_json(
    value: object,
    ensure_ascii: bool = False,  # noqa: FBT001, FBT002
    indent: int | None = None,
    separators: tuple[str, str] | None = None,
    sort_keys: bool = False,  # noqa: FBT001, FBT002
) -> str:
    """Return JSON without the HTML escapes that Jinja's own filter adds."""
    return json.dumps(
        value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys
    )


def _raise_exception(message: str) -> NoReturn:
    raise TemplateError(message)


def _limit() -> None:
    """Limit the time and memory of this process; a lower limit that it already has stays."""
    try:
        import resource  # Unix only; other modules import this one for its limits

        for kind, most in ((resource.RLIMIT_CPU, SECONDS), (resource.RLIMIT_AS, BYTES)):
            hard = resource.getrlimit(kind)[1]
            limit = most if hard == resource.RLIM_INFINITY else min(most, hard)
            resource.setrlimit(kind, (limit, limit))
    except (ImportError, OSError, ValueError) as error:
        raise TemplateError("this system cannot limit its time and memory") from error


def main() -> None:
    """Answer one request."""
    try:
        _limit()
        answer = {"text": render(**json.load(sys.stdin))}
    except MemoryError:
        sys.exit(1)
    except Exception as error:  # noqa: BLE001 -- a template may raise anything
        answer = {"error": str(error) or type(error).__name__}
    json.dump(answer, sys.stdout)


if __name__ == "__main__":
    main()
