"""A publisher's chat template runs within limits, or not at all."""

from contextlib import nullcontext
from pathlib import Path
from textwrap import dedent

import pytest
from tests.foreign_folders import FAMILIES
from tests.parity.test_foreign_chat import as_messages, read_template

from dragoman.errors import InputError
from dragoman.folder.tokenizers import rendering

BOMBS = {
    "loops": "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}",
    "text": "{% for a in range(99999) %}{{ 'a' * 999 }}{% endfor %}",
    "memory": "{{ 'a' * 10 ** 10 }}",
    "recursion": "{% macro m(n) %}{{ m(n) }}{{ m(n) }}{% endmacro %}{{ m(1) }}",
    "range": "{% for i in range(10 ** 9) %}x{% endfor %}",
    "file": "{% include '/etc/passwd' %}",
    "private": "{{ ''.__class__.__mro__[1].__subclasses__() }}",
    "syntax": "{% for message in messages %}",
    "changed": "{{ messages.append(1) }}",
}


@pytest.mark.parametrize("name", BOMBS)
def test_a_hostile_template_is_stopped(name: str, tmp_path: Path) -> None:
    """It uses up neither time nor memory, and reaches nothing outside."""
    config = FAMILIES["llama"](tmp_path)
    (tmp_path / "chat_template.jinja").write_text(BOMBS[name])
    with pytest.raises(InputError, match=r"^The chat template of .*\.jinja (takes|fails)"):
        read_template(tmp_path, config).encode(as_messages("a"))


LIMITS = {
    "missing": "sys.modules['resource'] = None",  # as on Windows
    "fixed": "resource.setrlimit = fail",
    "lower": """
        resource.setrlimit(resource.RLIMIT_CPU, (2, 2))
        resource.setrlimit = lambda kind, to: to[1] > resource.getrlimit(kind)[1] > 0 and fail()
    """,  # as for a user who is no administrator
}


@pytest.mark.parametrize("name", LIMITS)
def test_a_template_does_not_run_without_limits(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If the system has none; lower ones that a process already has are kept."""
    program = f"""
        import resource, runpy, sys
        def fail(*_):
            raise ValueError("not allowed to raise maximum limit")
        {LIMITS[name].strip()}
        runpy.run_path({rendering.__file__!r}, run_name="__main__")
    """
    (tmp_path / "limited.py").write_text(dedent(program))
    monkeypatch.setattr(rendering, "__file__", str(tmp_path / "limited.py"))
    config = FAMILIES["llama"](tmp_path)
    (tmp_path / "chat_template.jinja").write_text("{{ messages[0].content }}")
    template = read_template(tmp_path, config)
    kept = name == "lower"
    with nullcontext() if kept else pytest.raises(InputError, match="system cannot limit its"):
        assert template.encode(as_messages("a"))
