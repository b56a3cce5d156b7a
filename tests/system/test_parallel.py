"""Several processes train one model: as one with as many batches, and none ends alone."""

import os
import random
import signal
import subprocess
from pathlib import Path

import pytest
from tests.system.conftest import CommandLine, Ended
from tests.system.corpora import SMALL, reversed_digits
from tests.system.ranks import command, run, start
from tests.system.test_encoders import write_recipe as write_encoder
from tests.system.test_generate import write_recipe
from tests.system.test_resume import assert_same_runs, figures
from tests.unit.train.encoder_recipes import classify_recipe, masked_recipe, tag_recipe

STEPS = 3
EXACT = (
    "train.precision=fp32",
    "train.learning_rate=1e-3",
    "train.warmup_steps=50",
    "model.dropout=0",
    f"train.max_steps={STEPS}",
    "train.save_every=100",
    "train.validate_every=100",
    "train.average_last=1",
    "train.log_every=1",
)
DIALOGUES = "<user> how are you\n<assistant> so good\n\n<user> and Ann\n<assistant> very bad\n\n"


def arguments_of(task: str, folder: Path) -> list[object]:
    """The command of a small run of a task, without dropout."""
    if task == "translate":
        reversed_digits(folder, 120)
        texts = ["--src", folder / "a.src", "--tgt", folder / "a.tgt"]
        return ["train", *texts, *SMALL, "batch.max_tokens=200", *EXACT]
    if task == "generate":
        return ["train", write_recipe(folder), f"data.root={folder}", "batch.rows=2", *EXACT]
    if task == "dialogue":
        path = write_recipe(folder)
        (folder / "song.txt").write_text(DIALOGUES * 60, encoding="utf-8")
        dialogue = (
            'generation.chat={user="<user>",assistant="<assistant>"}',
            'tokenizer.specials=["<user>","<assistant>"]',
            *("tokenizer.vocab_size=400", "generation.max_tokens=8", "batch.rows=2"),
            *("data.split=blank-line", "tokenizer.model=bpe", "batch.packing=documents"),
        )
        return ["train", path, f"data.root={folder}", *dialogue, *EXACT]
    recipes = {"classify": classify_recipe, "tag": tag_recipe, "pretrain": masked_recipe}
    return ["train", write_encoder(folder, recipes[task]), *EXACT]


@pytest.mark.parametrize(
    ("task", "size", "shard"),
    [
        ("translate", 4, "on"),
        ("generate", 2, "on"),
        ("dialogue", 2, "auto"),
        ("classify", 2, "on"),
        ("tag", 2, "auto"),
        ("pretrain", 2, "on"),
    ],
)
def test_a_step_is_that_of_one_process(
    dragoman: CommandLine, tmp_path: Path, task: str, size: int, shard: str
) -> None:
    """Losses, norms and tokens are those of one process with as many batches; there is one log."""
    arguments = arguments_of(task, tmp_path)
    several, one = tmp_path / "several", tmp_path / "one"
    own = ("--out", several, f"train.accumulate={4 // size}", f"train.shard={shard}")
    said = run(dragoman, size, *arguments, *own).succeeded()
    each = "a share of every layer" if shard == "on" else "the whole model"
    assert f"{size} processes (gloo), 4 batches a step. Each has {each}." in said
    said = run(dragoman, 1, *arguments, "--out", one, "train.accumulate=4").succeeded()
    assert "processes" not in said
    ours, theirs = figures(several), figures(one)
    assert [line.get("tokens") for line in ours] == [line.get("tokens") for line in theirs]
    for name in ("loss", "grad_norm"):
        found, expected = ([line[name] for line in run if name in line] for run in (ours, theirs))
        assert len(found) == STEPS
        assert found == pytest.approx(expected, rel=1e-6)
    assert ours[-1]["valid"]["loss"] == pytest.approx(theirs[-1]["valid"]["loss"], rel=1e-6)


@pytest.fixture(scope="module")
def whole(server: "subprocess.Popen[str]", tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with texts, and in `run` an unbroken run of two processes on them."""
    folder = tmp_path_factory.mktemp("whole")
    reversed_digits(folder, 120)
    run(CommandLine(server, folder), 2, *command(folder, folder / "run")).succeeded()
    return folder


@pytest.mark.parametrize("victims", [[0], [1]])
def test_killed_ranks(
    dragoman: CommandLine, whole: Path, tmp_path: Path, victims: list[int]
) -> None:
    """Where a rank is killed the others end; the run goes on with every bit of an unbroken one."""
    killed = tmp_path / "killed"
    ranks = start(dragoman, 2, command(whole, killed))
    metrics = killed / "training" / "metrics.jsonl"
    lines = random.randint(3, 9)

    def stepped() -> bool:
        return metrics.exists() and metrics.read_bytes().count(b"\n") >= lines

    assert ranks[0].wait_until(stepped)
    for victim in victims:
        os.kill(ranks[victim].pid, signal.SIGKILL)
    codes = [running.end().code for running in ranks]
    assert codes == [-signal.SIGKILL if rank in victims else 1 for rank in range(2)]
    if victims == [1]:
        assert "another process of the run has ended" in ranks[0].said().splitlines()[-1]
        assert "Traceback" not in ranks[0].said() + ranks[1].said()
    said = run(dragoman, 2, *command(whole, killed)).succeeded()
    assert "this machine has" not in said
    assert_same_runs(killed, whole / "run")


def test_one_rank_is_interrupted(dragoman: CommandLine, whole: Path, tmp_path: Path) -> None:
    """All stop after the same step and save; the run goes on with the bits of an unbroken one."""
    stopped = tmp_path / "stopped"
    ranks = start(dragoman, 2, command(whole, stopped))
    metrics = stopped / "training" / "metrics.jsonl"
    assert ranks[0].wait_until(lambda: metrics.exists() and metrics.read_bytes().count(b"\n") > 2)
    os.kill(ranks[1].pid, signal.SIGTERM)
    assert [running.end().code for running in ranks] == [130, 130]
    assert "The same command resumes from there." in ranks[0].said()
    assert run(dragoman, 2, *command(whole, stopped)).code == 0
    assert_same_runs(stopped, whole / "run")


PATCH = """
import os, time
from datetime import timedelta
import torch
from dragoman.errors import InputError
from dragoman.tasks.translate import job
from dragoman.train import parallel
from dragoman.data.batches import Stream

failure = os.environ["FAILURE"]
loss, draw, assemble = job.TranslateJob.loss, Stream.__next__, job.read_texts

def fail_in_loss(self, batch):
    late = self.batches.epoch and os.environ.get("RANK", "1") == "1"
    if late and failure == "hang":
        time.sleep(14)
    once = failure == "once" and os.environ["RANK"] == "1" and self.batches.position == 2
    once = once and not self.batches.epoch
    if late and failure == "backward":
        def run_out(gradient):
            raise torch.OutOfMemoryError("out of memory")
        self.model.src_embedding.weight.register_hook(run_out)
    return loss(self, batch) * (float("nan") if once or late and failure == "nan" else 1)

def fail_in_drawing(self):
    if self.epoch and os.environ.get("RANK", "1") == "1" and failure == "data":
        raise InputError("the file x is damaged")
    return draw(self)

def fail_in_reading(*given):
    if os.environ.get("RANK", "1") == "1" and failure == "texts":
        raise InputError("the file y is damaged")
    return assemble(*given)

if failure == "hang":
    parallel.PROMPT = timedelta(seconds=9)
job.TranslateJob.loss = fail_in_loss
Stream.__next__ = fail_in_drawing
job.read_texts = fail_in_reading
"""
"""What makes rank 1, or a process that is alone, come to grief."""
PROGRAM = f"""
import dragoman
dragoman.prepare_process()
{PATCH}
from dragoman.cli.main import entry
entry()
"""


def run_broken(dragoman: CommandLine, folder: Path, failure: str, *words: object) -> list[Ended]:
    """Run it in two processes that nobody watches over."""
    patch = folder / "patch.py"
    patch.write_text(PATCH, encoding="utf-8")
    ranks = start(dragoman, 2, words, PATCH=str(patch), FAILURE=failure)
    return [running.end() for running in ranks]


@pytest.mark.parametrize(
    ("failure", "sentence", "code"),
    [
        ("nan", "the loss is nan, in a batch of the examples [", 1),
        ("backward", "out of memory in a batch of ", 1),
        pytest.param(
            *("hang", "process 1 of 2 has not answered for 0:00:09", 1), marks=pytest.mark.slow
        ),
        ("data", "the file x is damaged", 2),
        ("texts", "the file y is damaged", 2),
    ],
)
def test_what_fails_on_one_rank_ends_all(
    dragoman: CommandLine, tmp_path: Path, failure: str, sentence: str, code: int
) -> None:
    """With the sentence and the exit code of a process that is alone; what was saved is whole."""
    reversed_digits(tmp_path, 120)
    out = tmp_path / "run"
    words = [*command(tmp_path, out), "train.accumulate=1", "train.save_every=1"]
    ended = run_broken(dragoman, tmp_path, failure, *words)
    lines = [line for each in ended for line in each.said.splitlines()]
    said = [line for line in lines if line.startswith("dragoman: ")]
    assert len(said) == (2 if failure == "backward" else 1), lines  # of both processes
    assert any(line.startswith(f"dragoman: {sentence}") for line in said), said
    assert [each.code for each in ended] == [code, 1]  # the first one speaks for both
    assert not any(line.startswith("Traceback") for line in lines)
    saved = sorted(path.name for path in (out / "training").glob("checkpoints/step-*"))
    if failure == "texts":
        assert not out.exists()
    else:
        assert saved[-1] == f"step-{figures(out)[-1]['step']:08}"


def test_torchrun_ends_with_the_sentence_and_the_code(
    dragoman: CommandLine, tmp_path: Path
) -> None:
    """Of a rank that fails: once, before what torchrun itself says of it."""
    reversed_digits(tmp_path, 120)
    program = tmp_path / "program.py"
    program.write_text(PROGRAM, encoding="utf-8")
    launched = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", program]
    words = [*launched, *command(tmp_path, tmp_path / "run")]
    said = dragoman.start(words, environment={"FAILURE": "texts"}, program="python").end().said
    ours = [line for line in said.splitlines() if line.startswith("dragoman: ")]
    assert ours == ["dragoman: the file y is damaged."], said
    assert "exitcode  : 2 " in said
    assert "Traceback" not in said.partition("dragoman: ")[0]


def test_all_skip_what_is_not_finite_on_one_rank(dragoman: CommandLine, tmp_path: Path) -> None:
    """The step counts on none, rank 0 writes down whose example it was, and the run goes on."""
    reversed_digits(tmp_path, 120)
    out = tmp_path / "run"
    words = [*command(tmp_path, out), "train.accumulate=1"]
    said = "".join(ended.said for ended in run_broken(dragoman, tmp_path, "once", *words))
    assert said.count("a step after step 0 was skipped: the loss is nan, in a batch") == 1
    skips = [line["skipped"] for line in figures(out) if "skipped" in line]
    assert [(skip["total"], skip["where"]) for skip in skips] == [(1, "in the loss")]
    assert skips[0]["examples"]
    assert [line["step"] for line in figures(out) if "loss" in line] == list(range(1, 13))
