"""Published folders with any file damaged: a model that answers or one sentence, never a crash."""

import os
import random
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
from tests.damage import damage
from tests.parity.test_foreign_answers import CLASSIFIERS, DECODERS, TAGGERS, make
from tests.parity.test_foreign_damage import REFUSED
from tests.parity.test_foreign_folders import saved
from tests.parity.test_foreign_marian import own_folder, their_folder
from tests.parity.test_foreign_texts import CASES, CODES, make_folder
from tests.property.test_damaged_folders import attempt, little_memory

import dragoman
from dragoman.convert.published import take_over
from dragoman.errors import InputError
from dragoman.folder.opening import open_folder
from dragoman.tasks.generate.generator import Generator
from dragoman.tasks.tag.tagger import Tagger
from dragoman.tasks.translate.translator import Translator

transformers = pytest.importorskip("transformers", reason="makes the folders")

TRIES = int(os.environ.get("DRAGOMAN_FUZZ", "10"))
"""Number of damaged folders of each kind."""
ALONE = {**DECODERS, **CLASSIFIERS, **{n: TAGGERS[n] for n in TAGGERS if "Roberta" in n}}
OLD = ("t5", "mbart", "nllb", "Llama", "GPT2", "BertForSeq", "XLM", "Camembert")
"""Prefixes of the families whose older folders have no tokenizer.json."""


def make_alone(folder: Path, name: str) -> None:
    """Write a decoder or an encoder."""
    tokenizer, sizes = ALONE[name]
    make(folder, tokenizer, name, sizes).save_pretrained(folder)


def make_adapters(folder: Path) -> None:
    """Write adapters of a Llama next to it."""
    peft = pytest.importorskip("peft", reason="needs peft")
    base = folder.with_name("base")
    make_alone(base, "LlamaForCausalLM")
    model = transformers.AutoModelForCausalLM.from_pretrained(base)
    lora = peft.LoraConfig(task_type="CAUSAL_LM", r=2, target_modules=["q_proj", "v_proj"])
    peft.get_peft_model(model, lora).save_pretrained(folder)


def make_marians_own(folder: Path) -> None:
    """Write a folder in Marian's own format."""
    theirs = folder.with_name("theirs")
    own_folder(folder, their_folder(theirs), theirs)


def make_converted(folder: Path) -> None:
    """Write a folder in our format, converted from a Marian."""
    make_folder(theirs := folder.with_name("theirs"), "marian")
    take_over(theirs, folder)


def make_old(folder: Path, make: Callable[[Path], object]) -> None:
    """Write a folder without its tokenizer.json."""
    make(folder)
    (folder / "tokenizer.json").unlink()


NEW: dict[str, Callable[[Path], object]] = {
    **{name: partial(make_folder, name=name) for name in CASES},
    **{name: partial(make_alone, name=name) for name in ALONE},
}
KINDS: dict[str, Callable[[Path], object]] = {
    **NEW,
    **{f"old {n}": partial(make_old, make=NEW[n]) for n in NEW if n.startswith(OLD)},
    "adapters": make_adapters,
    "converted": make_converted,
    "marian's own": make_marians_own,
}


def used(folder: Path, kind: str) -> None:
    """Load a folder and answer a text."""
    model = dragoman.load(folder, device="cpu")
    if isinstance(model, Translator):
        options = replace(model.options, max_length_factor=0.0, max_length_constant=4)
        model.between(*CODES.get(kind.removeprefix("old "), ())).translate(
            "Ein Hund <b>", options=options
        )
    elif isinstance(model, Generator):
        model.generate("Ein Hund <b>", max_tokens=2)
    elif isinstance(model, Tagger):
        model.tag("Ein Hund <b>")
    else:
        model.classify("Ein Hund <b>")


@pytest.mark.filterwarnings("ignore")  # from packages that write the folders
@pytest.mark.parametrize("kind", KINDS)
def test_any_damage_is_one_sentence(
    kind: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """Any file may be damaged, by a disk or by hand; afterwards the folder is restored."""
    folder = tmp_path / "m"
    KINDS[kind](folder)
    draw = random.Random(f"{request.config.getoption('seed')} {kind}")
    read = sorted(path for path in folder.rglob("*") if path.is_file() and path.stat().st_size)
    whole = {path: path.read_bytes() for path in read}
    used(folder, kind)
    for case in range(TRIES):
        path = draw.choice(read)
        path.write_bytes(damage(whole[path], draw))
        with little_memory():
            refused = attempt(lambda: used(folder, kind), f"{case}: {path.name}")
        assert refused is None or "\n" not in refused
        path.write_bytes(whole[path])
    for path in read:
        path.unlink()
        os.mkfifo(path)  # a reader must not wait for a writer
        attempt(lambda: used(folder, kind), f"a pipe: {path.name}")
        path.unlink()
        path.write_bytes(whole[path])
    used(folder, kind)


@pytest.mark.parametrize("case", ["beyond the end", "long header"])
def test_a_header_that_lies_takes_no_memory(case: str, tmp_path: Path) -> None:
    """A tensor of 4 TiB, a header of 2^60 bytes: refused in the memory that loading takes."""
    change, pattern = REFUSED[case]
    change(saved("marian", tmp_path))
    with little_memory(), pytest.raises(InputError, match=pattern):
        open_folder(tmp_path).load()
