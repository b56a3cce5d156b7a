"""Links lead somewhere, recipes that are named are shipped, examples can be pasted and run."""

import json
import re
import sysconfig
import tomllib
from codeop import CommandCompiler
from itertools import product
from pathlib import Path
from typing import Any

import pytest
import torch
from tests.docs.pages import (
    PAGES,
    READMES,
    ROOT,
    blocks,
    chinese,
    english,
    links,
    name_of,
    run,
    shortened,
)
from tests.docs.walk import WALK, WORKED, experiments
from tests.unit.tasks.tiny import save_translator

from dragoman.models import DecoderOnlyConfig
from dragoman.settings import parse_settings, read_settings
from dragoman.tasks.recipes import shipped_recipes
from dragoman.tasks.task import find_task
from staging import is_chinese, twin_anchors

RECIPES = ROOT / "docs" / "recipes.md"


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_links_lead_somewhere(page: Path) -> None:
    """Every relative link and picture of every page is a file or folder of the repository."""
    targets = [page.parent / target.partition("#")[0] for target in links(page)]
    assert [str(target) for target in targets if not target.exists()] == []


TRANSLATED = [READMES[0], *sorted(map(english, (ROOT / "docs" / "zh").rglob("*.md")))]
_FENCE = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
_FORMULA = re.compile(r"^\$\$\n(.+?)\n\$\$$", re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("page", TRANSLATED, ids=name_of)
def test_both_languages_hold_the_same(page: Path) -> None:
    """The same code, formulas and output, headings by level, lists and tables, links and figures.

    In order; comments in code are translated, but for what can be run in the walk and beside it.
    """
    assert _content(page, page) == _content(chinese(page), page)


def _content(page: Path, twin: Path) -> list[str]:
    text = page.read_text(encoding="utf-8")
    prose = _FORMULA.sub("", _FENCE.sub("", text))
    code = _FENCE.findall(text)
    if twin not in WORKED and twin.parent != WALK:
        code = [re.sub(r"\s+#.*$", "", each, flags=re.MULTILINE) for each in code]
    measured = re.findall(r"<!-- [\w-]+: begin -->.*?<!-- [\w-]+: end -->", text, re.DOTALL)
    measured = [] if page in READMES else measured  # whose sentences have years, too
    targets = [_target(page, link) for link in links(page)]
    return [
        *code,
        *_FORMULA.findall(text),
        *re.findall(r"^#+ |<!--.*?-->|^\d+\. |^\| |^\[`[\w./:-]+`\]", prose, re.MULTILINE),
        *sorted(number for block in measured for number in re.findall(r"\d[\d,.]*\d|\d", block)),
        *(target for target in targets if target.partition("#")[0] != name_of(twin)),
    ]


def _target(page: Path, link: str) -> str:
    """Where a link leads, by the English page's name wherever the page has one."""
    path, _, anchor = link.partition("#")
    file = (page.parent / path).resolve()
    if anchor and is_chinese(file):
        anchor = twin_anchors(file).get(anchor, anchor)
    name = name_of(file).replace("docs/zh/", "docs/").replace("lesson/zh.", "lesson/en.")
    name = re.sub(r"\.zh(-CN)?\.", ".", name)
    return name if name.startswith("docs/walk/") or not anchor else f"{name}#{anchor}"


def test_links_into_pages_name_a_heading() -> None:
    """The part of a link behind the hash is a heading of the page that it leads to."""
    lost = []
    for page in PAGES:
        for target in links(page):
            name, _, anchor = target.partition("#")
            if anchor and anchor not in _anchors(page.parent / name):
                lost.append(f"{page.name}: {target}")
    assert lost == []


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_sources_that_are_named_exist(page: Path) -> None:
    """A file of Python is one of the repository, under the name by which its link is shown."""
    if page.name == "CHANGELOG.md":  # which tells of what was
        return
    text = re.sub(r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.M | re.S)
    named = set(re.findall(r"(?<![\w./-])((?:[\w-]+/)*[\w-]+\.py)\b", text)) - NOT_OURS
    assert [name for name in named if not any(file.endswith(f"/{name}") for file in _SOURCES)] == []
    shown = re.findall(r"\[`?([\w./-]+\.(?:py|toml|c|js))`?\]\(([^)\s#]+)", text)
    assert [pair for pair in shown if not pair[1].endswith(pair[0])] == []


NOT_OURS = {"dilated.py", "mine.py", "filesystem.py"}
"""Two modules that readers write, and one of PyTorch."""
_SOURCES = [
    f"/{name_of(path)}"
    for folder in ("*.py", "benchmarks/*.py", "docs/**/*.py", "src/**/*.py", "t*s/**/*.py")
    for path in ROOT.glob(folder)
]


def _anchors(page: Path) -> set[str]:
    headings = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", [*READMES, RECIPES], ids=name_of)
def test_the_recipes_named_are_those_shipped(page: Path) -> None:
    """Each shipped recipe is named, and every name that looks like one is shipped."""
    words = re.findall(r"`([a-z0-9]+(?:-[a-z0-9]+)*)`", page.read_text(encoding="utf-8"))
    shipped = set(shipped_recipes())
    looks_like_one = ("multi30k-", "tatoeba-", "pretrain-")
    assert {w for w in words if w in shipped or w.startswith(looks_like_one)} == shipped


@pytest.mark.parametrize("name", ["multi30k-en-de", "multi30k-de-en", "multi30k-en-fr"])
def test_a_recipe_expects_what_was_measured(name: str) -> None:
    """The score in its own words, and the one in the table of recipes, are of the results kept."""
    found = json.loads((ROOT / "benchmarks" / "results" / f"{name}.json").read_bytes())
    bleu = found["test"]["bleu"]
    assert f"{bleu:.1f}" in str(read_settings(shipped_recipes()[name]).data["expect"])
    for page in (RECIPES, ROOT / "docs" / "zh" / "recipes.md"):
        (row,) = re.findall(rf"^\| `{name}` \|.*{found['steps']:,}.*$", page.read_text(), re.M)
        assert f"{bleu:.2f}" in row


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_recipes_that_commands_name_exist(page: Path) -> None:
    """Wherever a page says `dragoman train NAME`, NAME is shipped, a file or a placeholder."""
    text = page.read_text(encoding="utf-8")
    names = set(re.findall(r"dragoman train ([a-z][\w.-]*)", text))
    assert {name for name in names if not name.endswith(".toml")} <= set(shipped_recipes())


def test_recipes_written_out_are_recipes(tmp_path: Path) -> None:
    """A TOML block in the docs is a recipe that loads."""
    written = [block for page in PAGES for block in blocks(page, "toml")]
    assert written
    for number, block in enumerate(written):
        path = tmp_path / f"{number}.toml"
        path.write_text(block.text, encoding="utf-8")
        written_out = read_settings(path)
        task = find_task(str(written_out.data.get("task", "translate")))
        assert written_out.build(task.recipe).train is not None
        assert tomllib.loads(block.text)


def test_nothing_is_installed_by_a_name_that_is_not_ours() -> None:
    """Nothing is published as `dragoman`, so commands name a path."""
    folders = [ROOT / name for name in ("benchmarks", "deploy", "docs", "src")]
    inside = (path for folder in folders for path in folder.rglob("*") if path.is_file())
    inside = (path for path in inside if ".venv" not in path.parts)
    texts = {".md", ".py", ".toml", ".js", ".html", ".service", ""}
    lost = []
    for path in {*PAGES, *(path for path in inside if path.suffix in texts)}:
        text = re.sub(r"""["']\s*\n\s*f?["']""", "", path.read_text(encoding="utf-8"))
        found = re.findall(r"pip install (?:-\S+ )*['\"]?dragoman\S*|['\"]dragoman\[\w+\]", text)
        lost += [f"{name_of(path)}: {words}" for words in found]
    assert lost == []


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_python_can_be_pasted_into_the_prompt(page: Path) -> None:
    """Python's prompt takes each block line by line: a blank line ends a compound statement."""
    for block in blocks(page, "python"):
        console = CommandCompiler()
        pending: list[str] = []
        for line in [*block.text.splitlines(), ""]:
            pending.append(line)
            if console("\n".join(pending), name_of(page), "single") is not None:
                pending = []
        assert not pending


@pytest.mark.parametrize("page", [ROOT / "docs" / part / "attention.md" for part in ("", "zh")])
def test_the_pattern_of_your_own_is_one(page: Path) -> None:
    """What the page defines is accepted in a config and attends as its mask says."""
    own, _ = blocks(page, "python")
    module: dict[str, object] = {"__name__": "dilated"}  # keeps the class alive
    run(own.text, name_of(page), module)
    config = parse_settings(DecoderOnlyConfig, {"patterns": [{"kind": "dilated"}]}, "a file")
    assert type(config.patterns[0]) is module["Dilated"]
    torch.manual_seed(1)
    attn = config.make_attention(config.attention_patterns[0])
    x = torch.randn(1, 5, config.d_model)
    kv = attn.project_kv(x)
    weighed = attn.weights(x, kv) @ kv.v_BKSd
    torch.testing.assert_close(attn(x, kv), attn.out_proj(weighed.transpose(1, 2).flatten(2)))


def test_messages_that_are_explained_are_messages() -> None:
    """Each message on the page of troubleshooting is in the sources, its variable parts aside."""
    sources = "".join(path.read_text("utf-8") for path in (ROOT / "src").rglob("*.py"))
    told = re.sub(r"""["']\s*\n\s*f?["']""", "", sources)  # a sentence over several lines
    page = (ROOT / "docs" / "troubleshooting.md").read_text(encoding="utf-8")
    explained = [
        m for bold in re.findall(r"\*\*(.+?)\*\*", page) for m in re.findall("`(.+?)`", bold)
    ]
    parts = [part for m in explained for part in re.split(r"\.\.\.|\b[A-Z]+\b|\W*$", m) if part]
    assert len(explained) > 30
    assert [part.strip() for part in parts if part.strip(" ()") not in told] == []


def test_the_example_of_images_learns_digits() -> None:
    """With a fifth of its epochs it knows far more digits than chance would."""
    (block,) = blocks(ROOT / "docs" / "vit.md", "python")
    code = shortened(block.text, {"EPOCHS, BATCH, PATCH = 40,": "EPOCHS, BATCH, PATCH = 8,"})
    share, words = run(code, "vit").split(" of ")
    assert float(share.removesuffix("%")) > 60
    assert words.startswith("450 unseen digits")


def test_the_example_of_pointers_reads_stories() -> None:
    """A few steps with rotary positions beat a guess, and longer stories are read as well."""
    _, block = blocks(ROOT / "docs" / "questions.md", "python")
    changes = {
        "STORIES, STEPS, BATCH, D = .*": "STORIES, STEPS, BATCH, D = 1_000, 60, 32, 32",
        "SCHEMES = .*": "SCHEMES = (Rotary(),)",
        r"(corpus\(\w+, )500": r"\g<1>100",
    }
    *_, line = run(shortened(block.text, changes), "questions").splitlines()
    name, *shares = line.split()
    assert name == "rotary"
    assert len(shares) == 8
    assert float(shares[1].removesuffix("%")) > 5


@pytest.mark.parametrize(
    ("name", "last"), [("python", "is not a model folder|There is no"), ("inspect", "^$")]
)
def test_the_examples_from_python_run(
    name: str, last: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One after the other, with any translator."""
    for folder in ("en-zh", "live"):
        save_translator(tmp_path / "runs" / folder)
    (tmp_path / "lines.txt").write_text("the cat\n\na dog\n", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    code = "\n".join(block.text for block in blocks(ROOT / "docs" / f"{name}.md", "python"))
    *_, said = ["", *run(code, name).splitlines()]
    assert re.search(last, said)
    assert (tmp_path / "look.html").exists() == (name == "inspect")


def test_the_example_of_summaries_compares_three(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a small library: a name, a neighbour, a model, and two checks, with their figures."""
    (block,) = blocks(ROOT / "docs" / "summaries.md", "python")
    function = 'def write_{0}(x):\n    """Write {0} of them to a file."""\n    return x + {0}\n'
    for number in range(200):
        (tmp_path / f"module{number}.py").write_text(function.format(number), encoding="utf-8")
    paths = sysconfig.get_paths() | {"stdlib": str(tmp_path)}
    monkeypatch.setattr("sysconfig.get_paths", lambda *_: paths)
    save_translator(tmp_path / "runs" / "docstrings")
    monkeypatch.chdir(tmp_path)
    code = shortened(block.text, {r"range\(0, 60, 10\)": "range(2)"})
    lines = run(code, "summaries").splitlines()
    named = [line.partition(" chrF")[0].strip() for line in lines[:5]]
    assert named == ["the name", "nearest", "the model", "of others", "a constant"]
    assert sum(line.startswith("nearest: Write ") for line in lines) == 2


def test_the_example_of_images_and_texts_finds_words_for_digits() -> None:
    """With a sixth of its steps it knows far more digits than chance would, in both languages.

    Captions of vectors that leave no doubt are mostly right, with half of their steps.
    """
    *_, captions = experiments(ROOT / "docs" / "clip.md")
    changes = {
        "STEPS, GROUPS, HIDDEN = 2000, 6,": "STEPS, GROUPS, HIDDEN = 350, 4,",
        "CAPTION_STEPS = 400": "CAPTION_STEPS = 250",
        r"vectors = model\.see\(images\)": "vectors = torch.eye(32)[labels]",
    }
    said = run(shortened(captions.before + captions.code, changes), "clip")
    shares = re.findall(r"([\d.]+)% of 450 unseen digits, (\w+) wording", said)
    assert [kind for _, kind in shares] == 2 * (6 * ["known"] + 3 * ["unseen"])
    assert min(float(share) for share, kind in shares if kind == "known") > 20
    right = re.findall(r"^(..), (\w+) pairs: ([\d.]+)% of 1,000 captions", said, re.M)
    assert [found[:2] for found in right] == [*product(("en", "zh"), ("known", "unseen"))]
    assert min(float(share) for _, _, share in right) > 50


def test_the_experiments_in_context_run() -> None:
    """At a few steps and one size each they print what the page shows, whatever the figures."""
    page = ROOT / "docs" / "in-context.md"
    code = "\n".join(block.text for block in blocks(page, "python"))
    changes = {
        r"STEPS, SEEDS = 1500, \(1, 2, 3\)": "STEPS, SEEDS = 20, (2,)",
        r"\(\(64, 1\), \(16, 2\), \(32, 2\), \(64, 2\)\)": "((16, 2),)",
        r"\(16, 32, 48\)": "(16,)",
        r"\(8, 16, 32\)": "(8,)",
    }
    said = run(shortened(code, changes), "in_context")
    shown = [re.sub(r"[\d.]+", "0", line) for line in said.splitlines()]
    assert len(shown) == 5
    assert shown[0] == "0 layers, d_model 0, seed 0:" + 11 * " 0%" + "; heads 0 0% 0 0%"
    judged = "0% of the sums, 0% of the digits, 0 nats for what is written"
    assert shown[1] == f"direct d_model 0, seed 0: {judged}"
    assert shown[3] == "d_model 0, seed 0, seen shifts:" + 5 * " 0%"


def _speech(steps: int) -> tuple[float, str]:
    """The last loss of the example of speech and what it prints, after fewer steps and tests."""
    (example,) = experiments(ROOT / "docs" / "speech.md")
    changes = {"^STEPS, SECONDS, TEST = .+$": f"STEPS, SECONDS, TEST = {steps}, 8, 6"}
    module: dict[str, Any] = {"__name__": "speech"}
    said = run(shortened(example.before + example.code, changes), "speech", module)
    return float(module["loss"].detach()), said


def test_the_example_of_speech_learns() -> None:
    """A few steps lower the loss; the simple way reads what has little noise; all is printed."""
    (begun, _), (loss, said) = _speech(2), _speech(40)
    assert loss < begun / 2
    line = r"^ *(\d+) to +\d+ dB: wrong +[\d.]+%, by hand +([\d.]+)%$"
    by_hand = dict(re.findall(line, said, re.MULTILINE))
    assert len(by_hand) > 4
    assert float(by_hand["15"]) < 15
    assert re.search(r"^from a file:", said, re.MULTILINE)
