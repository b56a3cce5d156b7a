"""What `dragoman generate`, and the other verbs on such a folder, print and refuse."""

import json
import math
from dataclasses import replace
from pathlib import Path

import pytest
from tests.system.cli.command import Run, write
from tests.system.cli.test_wrong_input import assert_refused
from tests.unit.tasks.tiny_generator import DEFAULTS, save_generator

from dragoman.tasks.generate.generator import Generator

PROMPTS = ["the cat", "a", "我喜欢", "", "😀"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model folder."""
    return save_generator(tmp_path_factory.mktemp("cli") / "writer")


@pytest.fixture(scope="module")
def generator(folder: Path) -> Generator:
    """The same from Python."""
    return Generator.load(folder, device="cpu")


def escaped(text: str) -> str:
    """As one line."""
    return text.replace("\\", "\\\\").replace("\n", "\\n").replace("\r", "\\r")


def test_a_prompt_is_gone_on_from(run: Run, folder: Path, generator: Generator) -> None:
    """Prompt, text and a line break on standard output, and nothing else."""
    done = run("generate", folder, "the cat", "--seed", "5", "--max-tokens", "20")
    text = generator.generate("the cat", seed=5, max_tokens=20).text
    assert (done.code, done.out, done.err) == (0, f"the cat{text}\n", "")


def test_a_seed_is_drawn_and_said(run: Run, folder: Path) -> None:
    """With it the text can be had again; a greedy search has none."""
    done = run("generate", folder, "the cat")
    [word, seed] = done.err.split()
    assert word == "seed"
    assert run("generate", folder, "the cat", "--seed", seed).out == done.out
    assert run("generate", folder, "the cat", "--temperature", "0").err == ""


def test_lines_give_lines(run: Run, folder: Path, generator: Generator, tmp_path: Path) -> None:
    """As many out as in, from a file or a pipe, in few batches or many, breaks as two letters."""
    file = write(tmp_path / "prompts", PROMPTS)
    expected = [escaped(found.text) for found in generator.generate(PROMPTS, seed=2)]
    done = run("generate", folder, "--file", file, "--seed", "2")
    assert done.lines == expected
    alone = run("generate", folder, "--file", file, "--seed", "2", "--max-batch-tokens", "1")
    assert alone.lines == expected
    assert "5 texts in" in done.err
    assert "ended by" in done.err
    piped = run("generate", folder, "--seed", "2", stdin=file.read_bytes())
    assert piped.lines == expected


def test_a_line_break_in_a_prompt_is_written_so(
    run: Run, folder: Path, generator: Generator
) -> None:
    """Two letters of the shell's word are one character of the prompt; a backslash is doubled."""
    done = run("generate", folder, r"a\nb\\n", "--seed", "1")
    text = generator.generate("a\nb\\n", seed=1).text
    assert done.out == f"a\nb\\n{text}\n"


def test_samples_are_lines_and_differ(run: Run, folder: Path, generator: Generator) -> None:
    """So many texts for the prompt, each with numbers of its own."""
    done = run("generate", folder, "the cat", "--samples", "4", "--seed", "3")
    assert done.lines == [escaped(f.text) for f in generator.generate(["the cat"] * 4, seed=3)]
    assert len(set(done.lines)) > 1


def test_options_reach_the_search(run: Run, folder: Path, generator: Generator) -> None:
    """With all figures in an object a line."""
    words = ("--max-tokens", "30", "--temperature", "0.7", "--seed", "4", "--stop", "zz")
    done = run("generate", folder, "the cat", *words, "--json")
    options = {"max_tokens": 30, "temperature": 0.7, "seed": 4, "stop": ("zz",)}
    chosen = replace(generator.options, **options)  # type: ignore[arg-type]
    expected = generator.generate("the cat", options=chosen).to_dict()
    assert json.loads(done.lines[0]) == json.loads(json.dumps(expected))


def test_a_prompt_that_is_cut_is_told(run: Run, tmp_path: Path) -> None:
    """On standard error; the text is that of the end of the prompt, and one that fits is silent."""
    folder = save_generator(tmp_path / "short", replace(DEFAULTS, context=9))
    short, long = "a", "the dog sees a cat and the cat sees a dog and the dog sees a cat"
    count = len(Generator.load(folder, device="cpu").encode(long))
    greedy = ("--temperature", "0", "--max-tokens", "2")
    assert run("generate", folder, short, *greedy).err == ""
    done = run("generate", folder, long, *greedy)
    assert done.out.startswith(long)
    assert done.err == f"The prompt has {count} tokens, and the model sees the last 9 alone.\n"


def test_a_stop_string_ends_the_text(run: Run, folder: Path, generator: Generator) -> None:
    """And may be given again."""
    text = generator.generate("the cat", seed=5, max_tokens=40).text
    stop = text[len(text) // 2]
    words = ("--seed", "5", "--max-tokens", "40", "--stop", "zz", "--stop", escaped(stop))
    done = run("generate", folder, "the cat", *words)
    assert done.out == f"the cat{text[: text.index(stop)]}\n"


def test_impossible_requests_are_told(run: Run, folder: Path, model: Path, tmp_path: Path) -> None:
    """In one sentence, and none of them is a traceback."""
    file = write(tmp_path / "prompts", PROMPTS)
    assert_refused(run("generate", folder, "a", "--file", file), "give one of them")
    assert_refused(run("generate", folder, "a", "--samples", "0"), "--samples is 0")
    assert_refused(run("generate", folder, "a", "--top-p", "3", "--seed", "1"), "--top-p is 3")
    assert_refused(run("generate", folder, "a", "--beam-size", "3"), "set temperature to 0")
    assert_refused(
        run("generate", folder, "a", "--max-batch-tokens", "0"), "--max-batch-tokens is 0"
    )
    assert_refused(run("generate", folder, "--file", tmp_path / "no"), "There is no file")
    assert_refused(run("generate", model, "a"), "encoder-decoder", "dragoman translate")
    assert_refused(run("translate", folder, file), "decoder-only", "dragoman generate")


def test_a_text_is_evaluated(run: Run, folder: Path, tmp_path: Path) -> None:
    """Perplexity, and the cost of tokens and characters; documents on demand."""
    file = write(tmp_path / "text", ["the cat sees a dog", "", "我喜欢学习"])
    figures = json.loads(run("evaluate", folder, "--text", file, "--json").lines[0])
    assert figures["characters"] == len(file.read_text(encoding="utf-8"))
    total = figures["nats_per_token"] * figures["tokens"]
    assert figures["nats_per_char"] == pytest.approx(total / figures["characters"])
    assert figures["perplexity"] == pytest.approx(math.exp(figures["nats_per_token"]))
    done = run("evaluate", folder, "--text", file, "--hyp", tmp_path / "hyp")
    assert done.lines[0] == f"perplexity  {figures['perplexity']:.3f}"
    assert done.err.endswith("hyp is not written: this evaluation makes no texts.\n")
    lines = json.loads(run("evaluate", folder, "--text", file, "--split", "line", "--json").out)
    assert lines["characters"] == figures["characters"] - 1  # the blank line is no document
    assert lines["nats_per_token"] != figures["nats_per_token"]


def test_a_model_is_measured_on_what_it_does(
    run: Run, folder: Path, model: Path, tmp_path: Path
) -> None:
    """Files of another task, or none, are refused with what is wanted."""
    file = write(tmp_path / "text", PROMPTS)
    assert_refused(run("evaluate", folder, "--src", file, "--ref", file), "measured on --text")
    assert_refused(run("evaluate", folder), "measured on --text")
    assert_refused(run("evaluate", model, "--text", file), "--src and --ref")
    assert_refused(run("evaluate", model, "--src", file), "--src and --ref")
