"""The benchmarks start, measure and write; what they find is for their own runs to say."""

import json
import lzma
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from importlib import import_module
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from benchmarks.__main__ import BENCHMARKS
from benchmarks.paired import BUILT
from tests.docs.pages import ROOT
from tests.project.started import Started
from tests.system.conftest import CommandLine
from tests.unit.tasks.tiny import save_translator
from tests.unit.tasks.tiny_generator import save_generator

from dragoman.data.made import write_town
from dragoman.decoding import Decoding

ONE_LAYER = (
    "tokenizer.vocab_size=300",
    "model.d_model=32",
    "model.num_heads=2",
    "model.d_ff=32",
    "model.num_encoder_layers=1",
    "model.num_decoder_layers=1",
    "train.max_steps=2",
    "train.device=cpu",
)
TINY = {
    "training": (
        *("--d-model=128", "--layers=1", "--decoder-layers=1", "--vocab=64"),
        *("--max-tokens=64", "--rounds=1", "--precision=fp32"),
    ),
    "train-peers": (
        *("tiny", "--modes", "fp32", "--rounds=1", "--batches=1", "--threads=1"),
        "--max-tokens=64",
    ),
    "decoding": ("--batch=2", "--beam", "1", "2", "--length=3", "--rounds=1"),
    "decode-peers": (
        *("tiny", "--cells", "1x1", "--rounds=1", "--seconds=0", "--length=3", "--threads=1"),
        *("--output=4", "--engines", "dragoman bf16", "dragoman int8+shortlist"),
        *("ctranslate2 int8_bfloat16", "huggingface float32"),
    ),
    "translate-peers": ("--rounds=1", "--theirs", "float32", "--ours", "float32", "--beam=1"),
    "alignment": ("--lines=5", "--rounds=1", "--precisions", "fp32"),
    "serve-peers": (
        *("tiny", "--peers", "--clients", "2", "--rounds=1", "--seconds=0.3", "--calls=3"),
        *("--overload=1", "--senders=20", "--requests=40"),
    ),
    "multi30k": ("decoding.beam_size=1", "decoding.max_length_factor=0", *ONE_LAYER),
    "terms": ("--lines=9", "--rounds=1", "--beams", "1"),
    "placeholders": ("--lines=9", "--rounds=1", "--beam=1"),
    "many": (
        *("--steps=2", "--beam=1", "--runs", "de-fr", "--"),
        *("decoding.max_length_factor=0", "tokenizer.vocab_size=310", *ONE_LAYER[1:]),
    ),
    "settings": (
        *("--steps=2", "--beam=1", "--seeds", "1", "--only", "plain", "ema-0.999", "--"),
        *("decoding.max_length_factor=0", *ONE_LAYER),
    ),
    "nine-minutes": (
        *("--minutes=5", "--threads=1", "--beam=1", "--valid-lines=2", "--together", "--"),
        *("decoding.max_length_factor=0", *ONE_LAYER),
    ),
    "spoiled": ("--pairs=300", "--kinds", "copies", "cut"),
    "as-published": ("--lines=3", "--beams", "1"),
    "adapted": ("--updates=1", "--pieces=100", "--steps=1", "--ways", "lora"),
    "variants": ("--only", "rotary", "--steps=1", "--rounds=1"),
    "bag-of-words": ("sst2", "resume"),
    "nearest-answer": (),
    "code": ("--lines=2", "--functions=1"),
    "attention-cost": ("--lengths", "1024", "1040", "--seconds=0"),
    "checkpointing": ("--d-model=64", "--layers=1", "--rows=1", "--length=16", "--rounds=1"),
    "busy": ("--busy=0", "--steps=1", "--lines=2", "--rounds=1"),
    "estimate": (
        *("--recipe=numbers", "data.made.train=60", "data.made.valid=10"),
        *("decoding.max_length_factor=0", *ONE_LAYER),
    ),
}
"""Each benchmark's options for a run of seconds."""


@pytest.mark.parametrize("name", BENCHMARKS)
def test_each_explains_itself(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Each that can be named has its file, two places in the page on benchmarks, and a help."""
    page = (ROOT / "benchmarks" / "README.md").read_text("utf-8")
    with pytest.raises(SystemExit) as ended:
        import_module(f"benchmarks.{name.replace('-', '_')}").main(["--help"])
    assert ended.value.code == 0
    assert f"benchmarks {name}" in capsys.readouterr().out
    assert f"python -m benchmarks {name} " in page
    assert f"- **{name}**: " in page


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Made texts under the names of the corpora, and a cache of their own."""
    words = ("the cat", "sees", "a dog.", "a tree", "runs!", "big", "birds")
    lines = [f"{words[n % 7]} {words[n * 3 % 7]} {words[n % 5]} {n % 9}" for n in range(60)]
    labelled = [f"{('no', 'yes')[n % 2]}\t{line}" for n, line in enumerate(lines)]
    tagged = ["我 B-NAME\n学 I-NAME\n习 O\n" for _ in range(60)]
    files = {
        "tinyshakespeare/train.txt": 40 * lines,
        "sentiment/sst2.train.tsv.xz": labelled,
        "sentiment/sst2.dev.tsv": labelled,
        "ner/resume.train.conll.xz": tagged,
        "ner/resume.dev.conll": tagged,
    }
    for language in ("en", "de", "fr"):
        files[f"msctd-de-en/train.{language}.xz"] = 30 * lines
        files[f"msctd-de-en/dev.{language}"] = lines[:9]
        files[f"multi30k/train.{language}.xz"] = 3 * lines
        files[f"multi30k/val.{language}"] = lines[:9]
        files[f"markup-tags/dev-glossary.{language}"] = ['the <g id="1">cat</g> sees a dog.'] * 3
        files[f"multi30k/test_2016_flickr.{language}"] = lines[9:18]
    for name, text in files.items():
        path = tmp_path / "data" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        content = "".join(f"{line}\n" for line in text).encode()
        path.write_bytes(lzma.compress(content) if path.suffix == ".xz" else content)
    monkeypatch.setenv("DRAGOMAN_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path


@pytest.mark.slow
@pytest.mark.parametrize("shape", ["opus", "llama100"])
def test_published_shapes_write_the_same(
    shape: str, dragoman: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Made small, each is read by all three engines, which write the same ids in fp32."""
    pytest.importorskip("ctranslate2", reason="needs ctranslate2")
    shapes = import_module("benchmarks.published").SHAPES
    kind, model, sizes = shapes[shape]
    vocab = sizes["vocab_size"]
    small = {
        key: {"vocab_size": 331, "num_layers": 1}.get(key, 330 if value == vocab - 1 else value)
        for key, value in sizes.items()
    }
    small |= {key: 1 for key in sizes if key.endswith("_layers")}
    monkeypatch.setitem(shapes, shape, (kind, model, small))
    start_at_once(dragoman, monkeypatch)
    options = ["--cells", "1x5", "--rounds=1", "--seconds=0", "--length=3", "--output=4"]
    peers = import_module("benchmarks.decode_peers")
    found = peers.main([shape, *options, "--threads=1", "--engines", *peers.EXACT])
    figures = found[f"decode-peers-{shape}"]
    assert figures["cells"]["1x5"]["same"] == 1.0
    assert set(figures["load"]) == set(figures["ready"]) == set(figures["peak"]) == {*peers.EXACT}


def shorten(benchmark: Any, patch: pytest.MonkeyPatch) -> None:  # noqa: ANN401 (a module)
    """Measure less than its options can ask for."""
    if hasattr(benchmark, "LINES"):  # what has not learned writes until it must not
        patch.setattr(benchmark, "LINES", 1)
        patch.setattr(benchmark, "TOKENS", 100)
        few = ("data.hold_out=9", "decoding.max_length_factor=0", "batch.max_tokens=100")
        patch.setitem(benchmark.WAYS, "lora", (*benchmark.WAYS["lora"], *few))
    if sizes := getattr(benchmark, "SIZES", None):
        small = dict.fromkeys(("src_vocab_size", "tgt_vocab_size"), 400)
        patch.setitem(sizes, "tiny", replace(sizes["tiny"], **small, num_encoder_layers=1))
        shorter = partial(Decoding, max_length_factor=0, max_length_constant=9)
        patch.setattr(benchmark, "Decoding", shorter, raising=False)
    if modules := getattr(benchmark, "modules", None):
        patch.setattr(benchmark, "modules", lambda recipe: [side[:5] for side in modules(recipe)])


def start_at_once(dragoman: CommandLine, patch: pytest.MonkeyPatch) -> None:
    """Programs need not import what others have imported, nor time the machine."""
    usual = subprocess.Popen

    def popen(command: Sequence[str], **options: Any) -> Any:  # noqa: ANN401 (as subprocess has it)
        started = partial(Started, dragoman) if command[:2] == [sys.executable, "-m"] else usual
        return started(command, **options)

    patch.setattr(subprocess, "Popen", popen)


@pytest.mark.slow
@pytest.mark.parametrize("name", BENCHMARKS)
def test_each_measures(
    name: str, data: Path, dragoman: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At a size of seconds each returns figures that JSON can hold."""
    if name == "estimate" and not Path("/proc/stat").exists():
        pytest.skip("it reads /proc/stat, which only Linux has")
    benchmark, options = import_module(f"benchmarks.{name.replace('-', '_')}"), list(TINY[name])
    if name == "attention-cost":
        options.append(f"--plot={data / 'cost.png'}")
    if name == "translate-peers":
        source = data / "data" / "multi30k" / "val.en"
        options += [str(save_translator(data / "model")), str(source), f"--references={source}"]
    if name in {"terms", "placeholders", "as-published"}:
        options.insert(0, str(save_translator(data / "model")))
    if name == "alignment":
        pytest.importorskip("eflomal", reason="needs eflomal")
        options.insert(0, str(save_translator(data / "model")))
    if name == "nearest-answer":
        options += [str(path) for path in write_town(data, 30, 5).values()]
    if name in {"adapted", "many", "settings"}:
        options.insert(0, f"--out={data / name}")
    if name == "code":
        options.append(str(save_generator(data / "model")))
    shorten(benchmark, monkeypatch)
    start_at_once(dragoman, monkeypatch)
    found = benchmark.main(options)
    assert found
    for figures in found.values():
        assert "environment" in json.loads(json.dumps(figures))


def test_the_command_line(tmp_path: Path) -> None:
    """Help names every benchmark; one is run by its name, and its figures go where they are sent.

    What nobody asked to keep is written where git ignores it.
    """
    program = [sys.executable, "-m", "benchmarks"]
    shown = subprocess.run([*program, "--help"], capture_output=True, text=True, check=True).stdout
    assert all(f"  {name}" in shown for name in BENCHMARKS)
    command = [*program, f"--out={tmp_path}", "checkpointing", *TINY["checkpointing"]]
    subprocess.run(command, capture_output=True, cwd=ROOT, check=True)
    assert "kept_mib" in json.loads((tmp_path / "checkpointing.json").read_text("utf-8"))
    assert BUILT.relative_to(ROOT).parts[0] == "build"


def test_a_ratio_is_taken_within_rounds() -> None:
    """Both sides run in turn, and the first round, which warms up, does not count."""
    order: list[str] = []
    calls = count()

    def work(side: str, tokens: int) -> int:
        order.append(side)
        return 0 if next(calls) < 2 else tokens

    paired = import_module("benchmarks.paired").paired
    found = paired(lambda: work("ours", 10), lambda: work("peer", 5), 3)
    assert order == ["ours", "peer"] * 4
    assert found["ratios"] == sorted(found["ratios"])
    assert len(found["ratios"]) == 3
    assert found["ratio"] > 0.0
