"""What is typed wrongly: every verb tells it in one sentence, with exit code 2 and its help."""

import re
from collections.abc import Container
from itertools import chain
from pathlib import Path
from types import UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

import pytest
from tests.system.cli.command import Done, Run, command_of
from tests.system.cli.test_wrong_input import assert_refused

from dragoman.cli import app

COMMANDS: dict[str, Any] = {name: command_of(name) for name in app.COMMANDS}
TYPES = {name: get_type_hints(verb) for name, verb in app.COMMANDS.items()}
KINDS = ("", "no", "a number", "a whole number")
every_verb = pytest.mark.parametrize("verb", COMMANDS)


def options_of(verb: str) -> dict[str, str]:
    """Each option and what its value must be: "" where anything may stand, "no" for flags."""
    found = {}
    for each in COMMANDS[verb].params:
        if each.param_type_name == "option":
            found[each.opts[0]] = must_be(TYPES[verb][each.name])
    return found


def must_be(kind: Any) -> str:  # noqa: ANN401 -- a type
    """What a value of a type must be, in words; see `options_of`."""
    if get_origin(kind) in {Union, UnionType, list}:
        return must_be(get_args(kind)[0])
    if get_origin(kind) is tuple:
        return ""
    words = {int: "a whole number", float: "a number", bool: "no", str: "", Path: ""}
    return words[kind] if kind in words else " or ".join(get_args(kind))


def required(verb: str) -> dict[str, list[str]]:
    """What must be given, by the name that a user knows it by, and how to give it."""
    found = {}
    for each in COMMANDS[verb].params:
        if each.required and each.param_type_name == "option":
            word, is_one_of, _ = options_of(verb)[each.opts[0]].partition(" or ")
            found[each.opts[0]] = [each.opts[0], word if is_one_of else "there"]
        elif each.required:
            found[each.metavar or each.name.upper()] = ["there"]
    return found


def whole(verb: str, *, but: Container[str] = ()) -> list[str]:
    """The arguments of a call in which nothing is missing, but these."""
    parts = (given for name, given in required(verb).items() if name not in but)
    return list(chain.from_iterable(parts))


def assert_led_to_help(done: Done, verb: str, *words: str) -> None:
    """Refused with these words, and with the call that explains the verb."""
    assert_refused(done, *words)
    assert done.err.endswith(f"; see dragoman {verb} --help.\n")


@every_verb
def test_an_option_that_is_not_there(run: Run, verb: str) -> None:
    """It is named, with the nearest one of the verb's own; without one where none is near."""
    for option in options_of(verb):
        done = run(*verb.split(), *whole(verb), f"{option}x", "3")
        hint = f"{verb} has no option {option}x (did you mean {option}?)"
        assert_led_to_help(done, verb, hint)
    done = run(*verb.split(), *whole(verb), "--qqqq")
    assert done.err == f"dragoman: {verb} has no option --qqqq; see dragoman {verb} --help.\n"
    hint = f"{verb} has no option -q (did you mean --qu"
    assert_led_to_help(run(*verb.split(), "-q"), verb, hint)
    if verb == "evaluate":  # as other tools call it
        assert "(did you mean --against?)" in run(*verb.split(), "--compare").err
    hint = f"{verb} has no option --quite (did you mean --quiet?)"
    assert_led_to_help(run(*verb.split(), "--quite"), verb, hint)


@pytest.mark.parametrize(
    ("wrong", "meant"),
    [
        ("--beem", "--beam-size"),
        ("--sed", "--seed"),
        ("--temp", "--temperature"),
        ("-o", "--output"),
    ],
)
def test_a_part_of_an_option_is_recognised(run: Run, wrong: str, meant: str) -> None:
    """One misspelt word of several goes before a whole option that is less alike."""
    assert_led_to_help(run("translate", wrong, "3"), "translate", f"(did you mean {meant}?)")


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ("translate m --tm a --tm=b", "--tm of translate is given 2 times; give it once."),
        ("data check --src a --src b --src c", "--src of data check is given 3 times; give it"),
    ],
)
def test_no_value_of_an_option_is_dropped(run: Run, words: str, sentence: str) -> None:
    """One that takes several has them all, and a switch may come twice."""
    assert_refused(run(*words.split()), sentence)
    done = run("translate", "m", "--json", "--json", "--ensemble", "a", "--ensemble", "b")
    assert "times" not in done.err


@pytest.mark.parametrize("verb", ["train", "cost", "demo"])
def test_a_setting_that_is_given_as_an_option(run: Run, verb: str) -> None:
    """It is written out, with the value if there is one."""
    for typed, meant in (
        (["--learning-rate", "0.1"], "train.learning_rate=0.1"),
        (["--d-model=64"], "model.d_model=64"),
        (["--label-smoothing"], "train.label_smoothing=VALUE"),
        (["--patience", "--quiet"], "train.patience=VALUE"),
        (["--early-stopping", "5"], "train.patience=5"),
        (["--layers=3"], "model.num_encoder_layers=3"),
    ):
        done = run(*verb.split(), *whole(verb), *typed)
        assert_led_to_help(done, verb, f"{verb} has no option --", f"(write {meant})")


@every_verb
def test_something_that_is_missing(run: Run, verb: str) -> None:
    """Each argument and option that a verb cannot do without is asked for by its name."""
    last = [name for name in required(verb) if not name.startswith("-")][-1:]
    for name in required(verb):
        asked = name if name.startswith("-") else last[0]
        done = run(*verb.split(), *whole(verb, but={name}))
        assert_led_to_help(done, verb, f"{verb} needs {asked};")


@every_verb
def test_a_value_that_is_none_of_its_type(run: Run, verb: str) -> None:
    """The option, what it must be and what was typed, however it was typed."""
    for option, must in options_of(verb).items():
        for typed in ([option, "many"], [f"{option}=many"]) if must not in {"", "no"} else ():
            done = run(*verb.split(), *typed, *whole(verb, but={option}))
            assert_led_to_help(done, verb, f"{option} must be {must}, not many")


@every_verb
def test_values_too_few_and_too_many(run: Run, verb: str) -> None:
    """An option at the end that needs a value, and one that takes none."""
    for option, must in options_of(verb).items():
        typed, told = (f"{option}=1", "takes no") if must == "no" else (option, "needs a")
        done = run(*verb.split(), *whole(verb), typed)
        assert_led_to_help(done, verb, f"{option} of {verb} {told} value")


@every_verb
def test_an_argument_too_many(run: Run, verb: str) -> None:
    """It is named, and a text without its quotes is thought of."""
    arguments = [each for each in COMMANDS[verb].params if each.param_type_name == "argument"]
    if any(each.nargs == -1 for each in arguments):
        return
    filled = ["there"] * (len(arguments) - sum(each.required for each in arguments))
    done = run(*verb.split(), *whole(verb), *filled, "I", "like")
    assert_led_to_help(done, verb, f"{verb} takes no argument I like", "quote a text")


@every_verb
def test_a_verb_that_is_not_there(run: Run, verb: str) -> None:
    """The nearest one is thought of."""
    done = run(*verb[:-1].split(), "--json", "x")
    wrong = f"There is no command {verb[:-1]} (did you mean {verb}?)"
    group = "".join(f" {word}" for word in verb.split()[:-1])
    assert done.err == f"dragoman: {wrong}; see dragoman{group} --help.\n"
    assert (done.code, done.out) == (2, "")


def test_the_laws_reach_every_kind() -> None:
    """There are options of every kind, and verbs that need something."""
    kinds = {must for verb in COMMANDS for must in options_of(verb).values()}
    assert {"", "no", "a number", "a whole number", "text or words or columns"} < kinds
    assert "file or line or blank-line" in kinds
    assert {len(required(verb)) for verb in COMMANDS} == {0, 1, 2, 3}


def test_wrong_options_before_a_verb(run: Run) -> None:
    """They are the command's own."""
    hint = "dragoman has no option --versio (did you mean --version?); see dragoman --help."
    assert_refused(run("--versio"), hint)
    assert_refused(run("--versio", "translate"), hint)
    assert_refused(run("--version=3"), "--version of dragoman takes no value; see dragoman --help.")


def test_what_was_typed_is_harmless(run: Run) -> None:
    """No line feed and no escape sequence of an argument reaches the terminal."""
    for call in (["translate", "--a\x1b[31m\nb"], ["a\x1b[31m\nb"], ["tag", "m", "f", "a\x1b\nb"]):
        done = run(*call)
        assert_refused(done)
        assert "\x1b" not in done.err


@every_verb
def test_help_is_laid_out(run: Run, monkeypatch: pytest.MonkeyPatch, verb: str) -> None:
    """Every option has its line, and in 80 columns no text is cut and no choice broken."""
    assert f"\ndragoman {verb}" in COMMANDS[verb].help
    monkeypatch.setenv("COLUMNS", "80")
    for typed in ("--help", "-h"):
        done = run(*verb.split(), typed)
        assert (done.code, done.err) == (0, "")
        assert f"Usage: dragoman {verb} " in done.out
        assert "…" not in done.out
        words = set(re.findall(r"[\w-]+", done.out))
        for option, must in options_of(verb).items():
            choices = set() if must in KINDS else {*must.split(" or ")}
            assert {option, *choices} <= words


def test_without_arguments_the_help_is_shown(run: Run) -> None:
    """All verbs; that there was none is still exit code 2."""
    done = run()
    assert (done.code, done.err) == (2, "")
    assert all(verb.split()[0] in done.out for verb in COMMANDS)


def test_the_first_sentences_have_no_hard_line_break() -> None:
    """The list of verbs wraps them itself, as wide as the terminal is."""
    assert not any("\n" in str(each.help).partition("\n\n")[0] for each in COMMANDS.values())


def test_options_of_translating_stand_in_groups(run: Run) -> None:
    """Under a title each, with those of the verb itself among them."""
    for title, option in (
        ("Decoding", "--prefixes"),
        ("Model", "--ensemble"),
        ("Documents and terms", "--glossary"),
        ("Output", "--resume"),
    ):
        _, _, below = run("translate", "--help").out.partition(f" {title} ─")
        assert option in below.partition("╰")[0]
