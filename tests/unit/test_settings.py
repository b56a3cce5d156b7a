"""TOML and overrides become dataclasses; whatever is wrong becomes one sentence that says where."""

from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.decoding import Decoding
from dragoman.errors import InputError, nearest
from dragoman.plain import to_plain
from dragoman.settings import parse_settings, read_settings


@dataclass(frozen=True, slots=True, kw_only=True)
class Adam:
    """One arm of a tagged union."""

    kind: Literal["adam"] = "adam"
    lr: float = 1e-3


@dataclass(frozen=True, slots=True, kw_only=True)
class Sgd:
    """The other arm."""

    kind: Literal["sgd"] = "sgd"
    momentum: float = 0.9
    seed: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Corpus:
    """An element of a list of sections."""

    src: Path
    weight: float = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Train:
    """A section with a rule between two of its keys."""

    max_steps: int = 10
    max_minutes: float | None = None
    warmup: int = 2
    mode: Literal["fast", "exact"] = "fast"
    optimizer: Adam | Sgd = field(default_factory=lambda: Sgd(momentum=0.5))
    average: Adam | None = None
    betas: tuple[float, ...] = (0.9, 0.98)

    def __post_init__(self) -> None:
        if self.warmup > self.max_steps:
            raise InputError("warmup must not exceed max_steps")


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """The whole file."""

    out: Path
    train: Train = field(default_factory=Train)
    corpora: tuple[Corpus, ...] = ()
    src: Path | tuple[Path, ...] | None = None
    name: str = ""
    seed: str | int = 0
    resume: bool = False
    weights: dict[str, float] = field(default_factory=dict)


FILE = """\
# a recipe
out = "runs/x"

[train]
max_steps = 5
betas = [
    0.9,   # a comment
    0.98,
]
mode = "exact"

[[corpora]]
src = "a.en"

[[corpora]]
src = "b.en"
weight = 2
"""


def write(tmp_path: Path, text: str = FILE) -> Path:
    """Save a recipe."""
    path = tmp_path / "recipe.toml"
    path.write_text(text, encoding="utf-8")
    return path


def test_a_file_becomes_nested_dataclasses(tmp_path: Path) -> None:
    """Sections, lists of them, tuples, paths and an integer for a number are read."""
    recipe = read_settings(write(tmp_path)).build(Recipe)
    assert recipe == Recipe(
        out=Path("runs/x"),
        train=Train(max_steps=5, betas=(0.9, 0.98), mode="exact"),
        corpora=(Corpus(src=Path("a.en")), Corpus(src=Path("b.en"), weight=2.0)),
    )
    assert type(recipe.corpora[1].weight) is float


@pytest.mark.parametrize(
    ("override", "read"),
    [
        ("train.max_minutes=45", lambda r: r.train.max_minutes == 45.0),
        ("train.average.lr=1", lambda r: r.train.average == Adam(lr=1.0)),
        ("train.optimizer.momentum=0.1", lambda r: r.train.optimizer == Sgd(momentum=0.1)),
        ("train.optimizer.kind=adam", lambda r: r.train.optimizer == Adam()),
        ("train.optimizer=adam", lambda r: r.train.optimizer == Adam()),
        ("train.average=adam", lambda r: r.train.average == Adam()),
        ("train.max_minutes=", lambda r: r.train.max_minutes is None),
        ("src=a.en", lambda r: r.src == Path("a.en")),
        ('src=["a.en", "b.en"]', lambda r: r.src == (Path("a.en"), Path("b.en"))),
        ("out=runs/y", lambda r: r.out == Path("runs/y")),
        ("out=2024", lambda r: r.out == Path("2024")),
        ("name=2024-01-01", lambda r: r.name == "2024-01-01"),
        ('name="quoted"', lambda r: r.name == "quoted"),
        ("name=a=b", lambda r: r.name == "a=b"),
        ("name=1\nout=2", lambda r: r.name == "1\nout=2" and r.out == Path("runs/x")),
        ("seed=5", lambda r: r.seed == 5),
        ("seed=five", lambda r: r.seed == "five"),
        ("resume=true", lambda r: r.resume is True),
        ("corpora.1.weight=7", lambda r: [c.weight for c in r.corpora] == [1.0, 7.0]),
        ("weights.en=2", lambda r: r.weights == {"en": 2.0}),
    ],
)
def test_an_override_is_a_toml_value_or_else_text(tmp_path: Path, override: str, read) -> None:  # type: ignore[no-untyped-def]  # noqa: ANN001
    """A dotted path reaches any key, through defaults, None, unions and lists."""
    assert read(read_settings(write(tmp_path), [override]).build(Recipe))


def test_a_later_override_wins(tmp_path: Path) -> None:
    """Overrides are laid one over the other in order."""
    recipe = read_settings(write(tmp_path), ["train.max_steps=6", "train.max_steps=7"]).build(
        Recipe
    )
    assert recipe.train.max_steps == 7
    given = ["train.max_minutes=6", "train.max_minutes="]
    assert read_settings(write(tmp_path), given).build(Recipe).train.max_minutes is None
    with pytest.raises(InputError, match=r"^override train\.max_steps=x: "):
        read_settings(write(tmp_path), ["train.max_steps=6", "train.max_steps=x"]).build(Recipe)


def test_a_partial_section_keeps_the_default_of_the_field(tmp_path: Path) -> None:
    """Keys that a section leaves out come from the field's default, not from the class."""
    path = write(tmp_path, 'out = "x"\n[train.optimizer]\n')
    assert read_settings(path).build(Recipe).train.optimizer == Sgd(momentum=0.5)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("mode =", "moed =", "line 10: unknown key train.moed; did you mean train.mode?"),
        ("[train]", "[trian]", "line 4: unknown key trian; did you mean train?"),
        ("weight =", "zzz =", "line 17: unknown key corpora.1.zzz; known here: src, weight"),
        ("= 5", '= "many"', 'line 5: train.max_steps must be an integer, not "many"'),
        ("= 5", "= 5.0", "line 5: train.max_steps must be an integer, not 5.0"),
        ("    0.98", '    "x"', 'line 6: train.betas.1 must be a number, not "x"'),
        (
            '"exact"',
            '"exakt"',
            'line 10: train.mode must be one of "fast", "exact", '
            'not "exakt"; did you mean "exact"?',
        ),
        ("= 5", "= 1", "line 4: section train: warmup must not exceed max_steps"),
        ('src = "a.en"', "", "line 12: the key corpora.0.src is missing; it has no default"),
        ('out = "runs/x"', "", ": the key out is missing; it has no default"),
        ('out = "runs/x"', "out = ", "line 2: not valid TOML (invalid value)"),
        ("= 5", "= " + "1" * 5000, ".toml: not valid TOML (Exceeds the limit"),
        ('"runs/x"', "0x" + "F" * 5000, "line 2: out must be a path (a string), not an integer of"),
        ('out = "runs/x"', "out = 3", "line 2: out must be a path (a string), not 3"),
        ("[train]", "zzz = 3\n" + "#\n" * 30_000 + "[train]", "recipe.toml: unknown key zzz"),
        ("[train]", "src = 3\n[train]", "line 4: src must be a path (a string) or a list, not 3"),
        ("= 5", '= """\na\n"""', r'line 5: train.max_steps must be an integer, not "a\n"'),
        ('out = "runs/x"', 'out = "x"\ncorpora = 1', "not valid TOML"),
    ],
)
def test_a_mistake_in_the_file_is_one_sentence_with_its_line(
    tmp_path: Path, old: str, new: str, message: str
) -> None:
    """The key, the nearest known key, the file and the line of the statement are named."""
    path = write(tmp_path, FILE.replace(old, new))
    with pytest.raises(InputError) as caught:
        read_settings(path).build(Recipe)
    assert str(caught.value).startswith(str(path))
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("train.max_stps=5", "unknown key train.max_stps; did you mean train.max_steps?"),
        ("momentum=1", "unknown key momentum; did you mean train.optimizer.momentum?"),
        ("lr=1", "unknown key lr; did you mean train.optimizer.lr?"),
        ("steps=5", "unknown key steps; did you mean train.max_steps?"),
        ("ms=5", "unknown key ms; did you mean train.max_steps?"),
        ("mood=5", "unknown key mood; known here: corpora, "),
        ("train.optimizer=adm", 'must be one of "adam", "sgd", not "adm"; did you mean "adam"?'),
        ("train.optimizer=1", "train.optimizer must be a section, not 1"),
        ("train.optimizer.kind=['adam']", 'must be one of "adam", "sgd", not a list'),
        ("train.max_steps", "write it as key=value"),
        ("out.x=1", "out has no key 'x'"),
        ("corpora.2.weight=1", "corpora has no key '2'"),
        ("resume=1", "resume must be true or false, not 1"),
        ("train.max_steps=6\nx=1", r'must be an integer, not "6\nx=1"'),
        ("weights=1", "weights must be a section, not 1"),
        ("train.warmup=", 'train.warmup must be an integer, not ""'),
    ],
)
def test_a_mistake_in_an_override_names_the_override(
    tmp_path: Path, override: str, message: str
) -> None:
    """The user sees what was typed and not a line of a file that is right."""
    with pytest.raises(InputError) as caught:
        read_settings(write(tmp_path), [override]).build(Recipe)
    shown = override.replace("\n", r"\n")  # a sentence stays on one line
    assert str(caught.value).startswith(f"override {shown}: ")
    assert message in str(caught.value)


def test_an_override_that_no_recipe_could_contain(tmp_path: Path) -> None:
    """A name that is not UTF-8 is rejected at the start, not when the recipe is written."""
    with pytest.raises(InputError, match="it is not UTF-8"):
        read_settings(write(tmp_path), ["out=r\udce4ns"])
    assert read_settings(write(tmp_path), ["out=räns"]).get("out") == "räns"


def test_a_conflict_between_file_and_override_names_both(tmp_path: Path) -> None:
    """A rule between keys may be broken by an override alone: it is named beside the section."""
    path = write(tmp_path)
    with pytest.raises(InputError) as caught:
        read_settings(path, ["train.warmup=9"]).build(Recipe)
    assert str(caught.value) == (
        f"{path}, line 4 with override train.warmup=9: section train: "
        "warmup must not exceed max_steps"
    )


def test_a_file_that_cannot_be_read_is_the_users_mistake(tmp_path: Path) -> None:
    """A missing file, a folder and bytes that are not UTF-8 are each told in a sentence."""
    with pytest.raises(InputError, match="cannot be read"):
        read_settings(tmp_path / "none.toml").build(Recipe)
    with pytest.raises(InputError, match="cannot be read"):
        read_settings(tmp_path).build(Recipe)
    (tmp_path / "latin.toml").write_bytes('out = "é"'.encode("latin-1"))
    with pytest.raises(InputError, match="byte 7 is not UTF-8"):
        read_settings(tmp_path / "latin.toml").build(Recipe)


def test_windows_line_ends_and_a_byte_order_mark_are_read(tmp_path: Path) -> None:
    """A recipe saved by a Windows editor means the same, and errors count the same lines."""
    path = tmp_path / "recipe.toml"
    path.write_bytes(b"\xef\xbb\xbf" + FILE.replace("\n", "\r\n").encode())
    assert read_settings(path).build(Recipe) == read_settings(write(tmp_path)).build(Recipe)
    path.write_bytes(FILE.replace("exact", "exakt").replace("\n", "\r\n").encode())
    with pytest.raises(InputError, match=r"line 10: train\.mode"):
        read_settings(path).build(Recipe)


def test_parsed_json_names_its_origin() -> None:
    """Without a TOML file the origin stands where file and line would."""
    with pytest.raises(InputError, match=r"^config\.json: unknown key nmae; did you mean name\?$"):
        parse_settings(Recipe, {"out": "x", "nmae": "y"}, "config.json")
    with pytest.raises(InputError, match=r"^config\.json: section train: warmup"):
        parse_settings(Recipe, {"out": "x", "train": {"warmup": 11}}, "config.json")


numbers = st.floats(allow_nan=False)
names = st.text(max_size=8)
paths = names.map(Path)
adams = st.builds(Adam, lr=numbers)
trains = st.builds(
    Train,
    max_steps=st.integers(2, 2**40),
    max_minutes=st.none() | numbers,
    warmup=st.integers(0, 2),
    mode=st.sampled_from(("fast", "exact")),
    optimizer=adams | st.builds(Sgd, momentum=numbers),
    average=st.none() | adams,
    betas=st.lists(numbers, max_size=3).map(tuple),
)
recipes = st.builds(
    Recipe,
    out=paths,
    train=trains,
    corpora=st.lists(st.builds(Corpus, src=paths, weight=numbers), max_size=3).map(tuple),
    src=st.none() | paths | st.lists(paths, max_size=3).map(tuple),
    name=names,
    seed=names | st.integers(0, 2**40),
    resume=st.booleans(),
    weights=st.dictionaries(names, numbers, max_size=3),
)


@given(recipes)
def test_what_is_written_plainly_is_read_back_equal(recipe: Recipe) -> None:
    """to_plain and parse_settings are inverses."""
    assert parse_settings(Recipe, to_plain(recipe), "memory") == recipe


@given(trains, st.sampled_from(["max_steps", "mode", "optimizer", "betas"]), st.data())
def test_one_wrong_letter_in_a_key_is_noticed_and_undone(
    train: Train, key: str, data: st.DataObject
) -> None:
    """Dropping any one letter of a key is an error that suggests the key."""
    plain = to_plain(train)
    at = data.draw(st.integers(0, len(key) - 1))
    plain[key[:at] + key[at + 1 :]] = plain.pop(key)
    with pytest.raises(InputError, match=rf"did you mean {key}\?"):
        parse_settings(Train, plain, "memory")


def test_a_look_before_a_class_is_chosen(tmp_path: Path) -> None:
    """What was given can be looked at by key, overrides included, before anything is built."""
    path = tmp_path / "r.toml"
    path.write_text("[train]\nmax_steps = 3\n[train.optimizer]\nkind = 'sgd'\n", "utf-8")
    read = read_settings(path, ["train.mode=fast"])
    assert read.get("train.max_steps") == 3
    assert read.get("train.mode") == "fast"
    assert read.get("train.optimizer.kind") == "sgd"
    assert read.get("train.max_steps.deeper") is None
    assert read.get("nothing") is None


def test_a_choice_by_key(tmp_path: Path) -> None:
    """A key of the top level chooses; without it the default; a wrong one is a sentence."""
    path = tmp_path / "r.toml"
    path.write_text("kind = 'one'\n", "utf-8")
    choices = {"one": 1, "two": 2}
    assert read_settings(path).choose("kind", choices, default="two") == 1
    assert read_settings(path).choose("other", choices, default="two") == 2
    with pytest.raises(InputError, match=r'kind=on: kind must be one of "one", "two", not "on"; d'):
        read_settings(path, ["kind=on"]).choose("kind", choices, default="two")
    with pytest.raises(InputError, match="not 5"):
        read_settings(path, ["kind=5"]).choose("kind", choices, default="two")


@given(recipes)
def test_what_is_not_given_comes_from_the_base(recipe: Recipe) -> None:
    """Built upon other settings, only what was given differs, in the sections below too."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "r.toml"
        path.write_text("[train]\nmax_steps = 77\n", "utf-8")
        built = read_settings(path).build(Recipe, recipe)
    assert built == replace(recipe, train=replace(recipe.train, max_steps=77))


def test_a_key_that_no_file_can_give_is_not_suggested() -> None:
    """A field of Python alone is unknown, and is no hint."""
    with pytest.raises(InputError, match=r"unknown key processors; known here: beam_groups"):
        parse_settings(Decoding, {"processors": []}, "x")


def test_nearest_overlooks_case_and_hyphens_but_does_not_guess() -> None:
    """A suggestion is made only when something is close."""
    assert nearest("Max-Steps", ["max_minutes", "max_steps"]) == "max_steps"
    assert nearest("tokens", ["max_minutes", "seed"]) is None
    assert nearest("seed", []) is None
