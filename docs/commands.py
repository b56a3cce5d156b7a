"""The page of the command line, made from the help of its verbs (see docs/make.py).

For the Chinese page every sentence is looked up in cli.zh.toml beside this file, under the English
one as the help has it. One that is not there is an error that names it.
"""

import re
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Literal

from excerpts import Wrong

TABLE = Path(__file__).with_name("cli.zh.toml")
TOP = {
    "en": "English · [中文](zh/cli.md)",
    "zh": "[English](../cli.md) · 中文\n\n"
    "本页由 `make docs` 根据命令的帮助文本生成；终端里显示的是英文。",
}
WORDS = {"Usage": "用法", "Arguments": "参数", "Options": "选项", "Commands": "命令"}

_ITEM = re.compile(
    r"^\* (?P<name>`[^`]+`): (?P<help>.+?)(?:  \[(?P<extra>default: .+|required)\])?$"
)


def cli_page(language: Literal["en", "zh"]) -> str:
    """The help of every verb as Markdown; example lines, which begin with the name, as code."""
    import typer
    from typer.cli import get_docs_for_click
    from typer.main import get_command

    from dragoman.cli.app import make_app

    command = get_command(make_app())
    context = typer.Context(command, info_name="dragoman")
    page = get_docs_for_click(obj=command, ctx=context, name="dragoman").rstrip()
    if language == "zh":
        page = translated(page, read_table())
    page = re.sub(r"^dragoman ", "    dragoman ", page, flags=re.MULTILINE)
    heading, _, rest = page.partition("\n\n")
    return f"{heading}\n\n{TOP[language]}\n\n{rest}\n".replace("<tab>", "&lt;tab&gt;")


def read_table() -> dict[str, str]:
    """The Chinese of each sentence or paragraph of the help."""
    return tomllib.loads(TABLE.read_text(encoding="utf-8"))


def translated(page: str, table: dict[str, str]) -> str:
    """The page with every sentence from the table; names, examples and usage stay.

    Raises `Wrong`, with all sentences that the table lacks.
    """
    missing: list[str] = []

    def chinese(text: str) -> str:
        """The Chinese of a sentence, of which a list of verbs shows only the beginning."""
        start = text.removesuffix("...").rstrip(":")
        longer = [table[key] for key in table if key.startswith(start)]
        if text in table or not longer:
            missing.extend([] if text in table else [text])
            return table.get(text, text)
        return re.split("[。：]", longer[0])[0] + "。"

    made = []
    for block in page.split("\n\n"):
        if block.startswith("* "):
            made.append("\n".join(_item(line, chinese) for line in block.splitlines()))
        elif word := re.fullmatch(r"\*\*(\w+)\*\*:", block):
            made.append(f"**{WORDS[word[1]]}**：")
        elif re.match("#|```|dragoman ", block):
            made.append(block)
        else:
            made.append(chinese(" ".join(block.split())))
    if missing:
        raise Wrong("\n".join([f"{TABLE.name} has no Chinese for", *dict.fromkeys(missing)]))
    return "\n\n".join(made)


def _item(line: str, chinese: Callable[[str], str]) -> str:
    """An option, argument or verb with its sentence, and what it is unless given."""
    found = _ITEM.match(line)
    if found is None:
        return line
    extra = (found["extra"] or "").replace("default: ", "默认：").replace("required", "必填")
    return f"* {found['name']}：{chinese(found['help'])}{f' [{extra}]' if extra else ''}"
