"""Every command of the READMEs is executed, on a made corpus under the names that they use.

Trainings, and what they cost, are cut short by settings appended to their command. Targets of
`make` are looked up, since a test cannot run the tests; what `make demo` calls is run. What `pip
install` does is for `tests/project/test_wheel.py`; here its extras are looked up.
"""

import lzma
import re
import shlex
import signal
import tomllib
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
from tests.docs.pages import READMES, ROOT, Block, blocks
from tests.system.conftest import CommandLine
from tests.system.ranks import free_port
from tests.system.serve.test_ending import Process

from dragoman.cli.app import COMMANDS
from dragoman.data.made import Pair, demo_corpus

STEPS = ("train.max_steps=20", "train.validate_limit=10")
SMALL = (*STEPS, "model.d_model=32", "model.num_heads=2", "model.d_ff=64")
SHORT = (
    *SMALL,
    "model.num_encoder_layers=1",
    "model.num_decoder_layers=1",
    "tokenizer.vocab_size=600",
    "batch.max_tokens=512",
    "decoding.max_length_factor=0.5",
    "decoding.max_length_constant=5",
)
"""Settings that make any training of a translator a matter of seconds."""

ALONE = (*SMALL, "model.num_layers=1", "tokenizer.vocab_size=600")
SHORT_BY_RECIPE = {
    "numbers": (*SHORT, "data.made.train=300", "data.made.valid=20"),
    "tinyshakespeare": (*ALONE, "batch.length=16"),
    "town": ALONE,
    "sst2": (*ALONE, "batch.max_tokens=512"),
    "conll2003": (*ALONE, "batch.max_tokens=512"),
    "--from": STEPS,
}
"""The same for what is no translator, and for what takes its model from a folder."""

FEW = """
from dragoman.data import made

def few(whole=made.demo_corpus):
    train, valid, test = whole()
    return made.DemoCorpus(train[:400], valid[:20], test[:30])


made.demo_corpus = few
made.write_town.__defaults__ = 200, 20
"""
"""What makes the texts of the package few."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with every text that the READMEs name."""
    folder = tmp_path_factory.mktemp("readme")
    pairs = demo_corpus().train[:450]
    train, valid, test = pairs[:400], pairs[400:420], pairs[420:]
    (folder / "multi30k").mkdir()
    for src, tgt, part in (
        ("a.en", "a.zh", train),
        ("b.en", "b.zh", valid),
        ("test.en", "test.zh", test),
        ("new.en", "new.zh.expected", test),
        ("multi30k/train.en.xz", "multi30k/train.de.xz", train),
        ("multi30k/val.en", "multi30k/val.de", valid),
        ("multi30k/test_2016_flickr.en", "multi30k/test_2016_flickr.de", test),
    ):
        _write(folder / src, folder / tgt, part)
    _write_others(folder, [pair.src for pair in train])
    return folder


def _write_others(folder: Path, sentences: list[str]) -> None:
    """Texts to go on with, labelled ones, and tagged words, where recipes look for them."""
    texts = {
        "tinyshakespeare/train.txt": "\n".join(sentences),
        "sentiment/sst2.dev.tsv": "".join(f"{i % 2}\t{s}\n" for i, s in enumerate(sentences[:40])),
        "ner/conll2003.dev.conll": "".join(
            "".join(f"{word} {'B-PER' if word[0].isupper() else 'O'}\n" for word in s.split())
            + "\n"
            for s in sentences[:40]
        ),
    }
    for name, text in texts.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
        if ".dev." in name:
            train = folder / (name.replace(".dev.", ".train.") + ".xz")
            train.write_bytes(lzma.compress(text.encode()))


def _write(src: Path, tgt: Path, pairs: list[Pair]) -> None:
    for path, side in ((src, 0), (tgt, 1)):
        content = "".join(f"{pair[side]}\n" for pair in pairs).encode()
        path.write_bytes(lzma.compress(content) if path.suffix == ".xz" else content)


@pytest.mark.parametrize("page", READMES, ids=lambda page: page.name)
def test_every_command_has_a_row(page: Path) -> None:
    """The table of the command line has each verb of the program."""
    rows = re.findall(r"^\| .*", page.read_text(encoding="utf-8"), re.MULTILINE)
    cells = " ".join(row.split(" | ")[0] for row in rows)
    told = set(re.findall(r"`dragoman ([a-z]+)`", cells))
    assert told == {command.partition(" ")[0] for command in COMMANDS}


@pytest.mark.slow
def test_every_command_works(folder: Path, dragoman: CommandLine) -> None:
    """In the order of the page, each command ends with 0, and files that it promises are there."""
    ran = [_run(command, folder, dragoman) for command in _commands(READMES[0])]
    assert len(ran) > 6
    sources, translations = ((folder / name).read_text("utf-8") for name in ("new.en", "new.zh"))
    assert translations.count("\n") == sources.count("\n")
    assert (folder / "runs" / "demo" / "model" / "config.json").exists()
    assert (folder / "runs" / "demo" / "attention.png").exists()


def _commands(page: Path) -> Iterator[Block]:
    """Each line of a shell block by itself, each Python block as a whole."""
    for block in blocks(page, "sh", "python"):
        if block.language == "python":
            yield block
        else:
            yield from (Block("sh", command) for command in block.commands)


def _run(block: Block, folder: Path, dragoman: CommandLine) -> str:
    """Run what can be run, look up what cannot; returns the program's name."""
    if block.language == "python":
        arguments, places = ("-c", block.text), {"cwd": folder}
        dragoman.start(arguments, places=places, program="python").end().succeeded()
        return "python"
    lexer = shlex.shlex(block.text, posix=True, punctuation_chars="<>|")
    lexer.whitespace_split = True
    words: list[str] = [*lexer]
    call = partial(_call, dragoman, folder)
    match words:
        case ["make", target]:
            assert re.search(rf"^{target}:", (ROOT / "Makefile").read_text("utf-8"), re.M)
            if target == "demo":
                call(["demo"])
        case [".", activate]:
            assert activate == ".venv/bin/activate"  # the Makefile's environment
        case ["pip" | "curl" as program, *others]:
            _look_up(program, others)
        case ["echo", text, "|", "dragoman", *others]:
            stdin = folder / "stdin"
            stdin.write_text(f"{text}\n", encoding="utf-8")
            call(others, stdin=stdin)
        case ["dragoman", *others, "<", source, ">", target]:
            call(others, stdin=folder / source, stdout=folder / target)
        case ["dragoman" | ".venv/bin/dragoman", *others]:
            call(others)
        case _:
            pytest.fail(f"no way to run {block.text}")
    return str(words[0])


def _call(dragoman: CommandLine, folder: Path, words: list[str], **streams: Path) -> None:
    """Run a command of ours there, made short: it ends with 0, a server when it is told to."""
    port, more = free_port(), tuple[str, ...]()
    match words:
        case ["demo" | "cost", *_]:
            more = SHORT
        case ["train", recipe, *_]:
            more = SHORT_BY_RECIPE.get(recipe, SHORT)
        case ["serve", *_]:
            more = ("--port", str(port))
    (folder / "few.py").write_text(FEW, encoding="utf-8")
    environment = {"DRAGOMAN_DATA": "", "PATCH": str(folder / "few.py")}
    places = {"cwd": folder, **streams}
    running = dragoman.start([*words, *more], environment=environment, places=places)
    if words[0] == "serve":
        ready = Process(running, port).status
        assert running.wait_until(lambda: ready() == 200), running.said()
    ended = running.end(signal.SIGTERM if words[0] == "serve" else None)
    assert ended.code == 0, f"{words}\n{ended.said}"


def _look_up(program: str, others: list[str]) -> None:
    """Of `pip install '.[plot]'`, each extra is the package's; of `curl`, the path is ours."""
    if program == "curl":
        assert others[0].partition("/")[2] == "v1/translate"  # as by tests/system/serve
        return
    assert others[0] == "install"
    requirement = others[1]
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    extras = re.findall(r"\w+", requirement)
    assert requirement.startswith(".")
    assert set(extras) <= set(project["optional-dependencies"])
