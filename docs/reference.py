"""The page of every key of a recipe, made from the dataclasses that read it (see docs/make.py)."""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import MISSING, asdict, is_dataclass
from types import NoneType
from typing import Annotated, Any, Literal, NamedTuple, get_args, get_origin, get_type_hints

from dragoman.decoding import GENERATING, TRANSLATING
from dragoman.models.heads import Head
from dragoman.nn import AttentionPattern, PositionScheme, Rwkv
from dragoman.nn.position.rotary import RotaryScaling
from dragoman.ranges import UNSET, Range
from dragoman.settings.fields import keys_of, sentences
from dragoman.tasks.task import TASKS, find_task

CHOICES = {
    get_args(PositionScheme): ("Position schemes", "位置方案"),
    get_args(RotaryScaling): ("Rotary scaling", "旋转位置的缩放"),
    (*get_args(AttentionPattern), Rwkv): ("Attention patterns", "注意力模式"),
    get_args(Head): ("Heads", "输出头"),
}
"""The values that are chosen by `kind`, and the headings under which their keys are listed."""

OPTIONS = {"decoding.": TRANSLATING, "generation.": GENERATING}
"""The sections of options of decoding, which have those of a task."""

WORDS = {
    "en": {
        "top": """# Every key of a recipe

English · [中文](zh/recipe-keys.md)

`make docs` writes this page from the dataclasses that read a recipe. How to write one:
[recipes](recipes.md#your-own). A key is a dotted path: `train.max_steps` is `max_steps` in the
table `[train]` of the file, and on the command line `train.max_steps=1000`. What is chosen by its
`kind` is a table: `positions = {kind = "rotary", base = 500000.0}`. A dash means that nothing is
set. [Scaling law](scaling.md) explains `[[sweep]]`.
""",
        "head": "| key | type | default | tasks | what it does |",
        "kind head": "| key | type | default | what it does |",
        "general": "The recipe",
        "all": "all",
        "required": "required",
        "list": "list: {}",
        "or": " or ",
        "table": "table",
        "bool": "true or false",
        "int": "integer",
        "float": "number",
        "str": "text",
    },
    "zh": {
        "top": """# 配方的全部键

[English](../recipe-keys.md) · 中文

本页由 `make docs` 根据读取配方的 dataclass 生成；每个键的说明取自代码，因此是英文。
怎样写配方见[配方](recipes.md#写自己的配方)。键是用点连接的路径：`train.max_steps` 是文件中
`[train]` 表里的 `max_steps`，在命令行上写作 `train.max_steps=1000`。由 `kind` 选择的值是一个表：
`positions = {kind = "rotary", base = 500000.0}`。短横表示没有设定。`[[sweep]]`
见[缩放定律](scaling.md)。
""",
        "head": "| 键 | 类型 | 默认值 | 任务 | 说明 |",
        "kind head": "| 键 | 类型 | 默认值 | 说明 |",
        "general": "配方本身",
        "all": "全部",
        "required": "必填",
        "list": "列表：{}",
        "or": " 或 ",
        "table": "表",
        "bool": "true 或 false",
        "int": "整数",
        "float": "数",
        "str": "文本",
    },
}


class Row(NamedTuple):
    """A key, as the table shows it."""

    key: str
    type: str
    default: str
    sentence: str


def recipe_page(language: Literal["en", "zh"]) -> str:
    """The page in Markdown."""
    words = WORDS[language]
    tasks: dict[Row, list[str]] = {}
    for task in TASKS:
        of = find_task(task)
        for row in rows(of.recipe, of.recipe(), "", language):  # type: ignore[call-arg] # has defaults
            tasks.setdefault(row, []).append(task)
    first = {row.key: place for place, row in reversed(list(enumerate(tasks)))}
    sections: dict[str, list[str]] = {}
    for row, having in sorted(tasks.items(), key=lambda item: first[item[0].key]):
        section, dot, _ = row.key.strip("`").partition(".")
        title = f"`{section}`" if dot else words["general"]
        named = words["all"] if len(having) == len(TASKS) else ", ".join(having)
        sections.setdefault(title, []).append(
            f"| {row.key} | {row.type} | {row.default} | {named} | {row.sentence} |"
        )
    made = [words["top"]]
    for title, lines in sections.items():
        made += [f"## {title}\n", words["head"], "|---|---|---|---|---|", *lines, ""]
    for arms, titles in CHOICES.items():
        made += [f"## {titles[language == 'zh']}\n", words["kind head"], "|---|---|---|---|"]
        for arm in arms:
            (kind,) = get_args(get_type_hints(arm)["kind"])
            made.append(f'| `kind = "{kind}"` | | | **{_cell(arm.__doc__)}** |')
            found = [row for row in rows(arm, MISSING, "", language) if row.key != "`kind`"]
            made += [f"| {' | '.join(row)} |" for row in found]
        made.append("")
    return "\n".join(made)


def rows(cls: type, base: object, path: str, language: str) -> Iterator[Row]:
    """The keys of a dataclass and of the sections in it, with the defaults that `base` has."""
    hints = get_type_hints(cls, include_extras=True)
    task = OPTIONS.get(path)
    for name, field in keys_of(cls).items():
        default = field.default if base is MISSING else getattr(base, name)
        if default is UNSET and (default := getattr(task, name)) is UNSET:
            continue  # the task has no such option
        if default is MISSING and field.default_factory is not MISSING:
            default = field.default_factory()
        key, section = f"{path}{name}", _section(hints[name])
        if section is None or section is not hints[name]:
            shown = _type(hints[name], language)
            told = _cell({"kind": "", **sentences(cls)}[name])  # a value's is in its heading
            yield Row(f"`{key}`", shown, _default(default, language), told)
        if section is not None:
            nested = default if isinstance(default, section) else MISSING
            yield from rows(section, nested, f"{key}.", language)


def _section(hint: Any) -> type | None:  # noqa: ANN401
    """The one dataclass that a type holds, if its keys stand below the key itself."""
    found = [arm for arm in (hint, *get_args(hint)) if is_dataclass(arm)]
    return found[0] if len(found) == 1 and isinstance(found[0], type) else None


def _type(hint: Any, language: str) -> str:  # noqa: ANN401
    words = WORDS[language]
    if get_origin(hint) is Annotated:
        number, *_, limits = get_args(hint)
        return f"{_type(number, language)} {_range(limits, language)}"
    arguments = tuple(arm for arm in get_args(hint) if arm is not NoneType)
    titles = CHOICES.get(arguments, CHOICES.get((*arguments, Rwkv)))  # those of an encoder
    if titles is not None:
        title = titles[language == "zh"]
        return f"[{title}](#{title.lower().replace(' ', '-')})"
    if get_origin(hint) is Literal:
        return words["or"].join(f"`{json.dumps(value)}`" for value in arguments)
    if get_origin(hint) is tuple:
        return words["list"].format(_type(arguments[0], language))
    is_table = is_dataclass(hint) or get_origin(hint) is Mapping
    if arguments and not is_table:
        return words["or"].join(_type(argument, language) for argument in arguments)
    return words["table" if is_table else hint.__name__]


def _range(limits: Range, language: str) -> str:
    """The bounds of a number, as in mathematics: `≥ 1`."""
    bounds = {"≥": limits.least, ">": limits.above, "≤": limits.most, "<": limits.below}
    comma = ", " if language == "en" else "，"
    return comma.join(f"{sign} {bound:,}" for sign, bound in bounds.items() if bound is not None)


def _default(value: object, language: str) -> str:
    if value is MISSING:
        return WORDS[language]["required"]
    if value is None or value in ("", ()) or value == {}:
        return "–"
    if is_dataclass(value) and not isinstance(value, type):
        return f'`{{kind = "{asdict(value)["kind"]}"}}`'
    return f"`{json.dumps(value)}`"


def _cell(text: str | None) -> str:
    """A sentence as a cell of a table; of a longer text, its first paragraph."""
    first = " ".join((text or "").strip().partition("\n\n")[0].split())
    return re.sub(r"(`[^`]*`)|<", lambda found: found[1] or "&lt;", first).replace("|", r"\|")
