"""`dragoman inspect MODEL TEXT`: what it shows is what the tasks do."""

import json
from dataclasses import replace
from math import exp, log
from pathlib import Path
from typing import Any

import pytest
from tests.system.cli.command import Run
from tests.system.cli.test_wrong_input import assert_refused
from tests.unit.tasks.readers import (
    CLASSIFY,
    LABELS,
    MASKED,
    TAG,
    TOKENIZER,
    make_config,
    save_reader,
)
from tests.unit.tasks.readers import make_model as make_reader
from tests.unit.tasks.tiny import make_tokenizer, random_lines, save_translator
from tests.unit.tasks.tiny_generator import save_generator

import dragoman
from dragoman.folder.format import FolderConfig, ReadingDefaults, save_model
from dragoman.lens.choices import Choices
from dragoman.lens.inspecting import inspect_folder
from dragoman.lens.weights import gradient_input
from dragoman.models import EncoderOnly, EncoderOnlyConfig
from dragoman.models.heads import NoHead
from dragoman.tasks.folders import read_folder
from dragoman.tasks.translate.translator import Translator
from dragoman.text.tokenizer import Tokenizer
from dragoman.text.train import TokenizerConfig, train_tokenizer

TEXT = "the cat sees a dog 我喜欢。"


def look(run: Run, *arguments: str | Path) -> dict[str, Any]:
    """The JSON of an inspection."""
    done = run("inspect", *arguments, "--json")
    assert (done.code, done.err) == (0, "")
    found: dict[str, Any] = json.loads(done.out)
    return found


def assert_whole(found: dict[str, Any]) -> None:
    """Maps, tokens, steps and summaries fit each other."""
    lists = {"src": found["src"]["tokens"], "tgt": (found["tgt"] or {"tokens": []})["tokens"]}
    assert found["format"] == 1
    for each in found["attention"]:
        assert len(each["query_tokens"]) <= len(lists[each["queries"]])
        assert each["query_tokens"] == lists[each["queries"]][: len(each["query_tokens"])]
        shape = (len(each["layers"]), len(each["heads"]))
        assert (len(each["weights"]), len(each["weights"][0])) == shape
        assert (len(each["summaries"]), len(each["summaries"][0])) == shape
        for layer in each["weights"]:
            for head in layer:
                assert len(head) == len(each["query_tokens"])
                for row in head:
                    assert len(row) == len(each["key_tokens"])
                    assert sum(row) == pytest.approx(1, abs=0.01)
    written = lists["tgt"] or lists["src"]
    for step in found["steps"]:
        assert step["token"] == written[step["index"]] or step["index"] == len(written)
        assert sum(other["prob"] for other in step["alternatives"]) <= 1.0001
        own = [other for other in step["alternatives"] if other["token"] == step["token"]]
        assert [other["prob"] for other in own] == pytest.approx(
            [exp(step["log_prob"])] * len(own), abs=1e-5
        )


@pytest.mark.parametrize(
    "decoding",
    [
        {"n_best": 3},
        {"mbr": 3},
        {"beam_size": 4, "beam_groups": 2, "diversity": 0.7},
        {"beam_size": 1, "temperature": 0.8},
    ],
)
def test_the_beam_is_inspected_however_the_folder_searches(
    run: Run, model: Path, tmp_path: Path, decoding: dict[str, Any]
) -> None:
    """Several translations, risk, groups and samples are none of one beam."""
    folder = save_translator(tmp_path / "model", **decoding)
    found, expected = (look(run, each, TEXT, "--beam-size", "2") for each in (folder, model))
    assert found["tgt"] == expected["tgt"]
    look(run, folder, TEXT)


def test_a_forbidden_word_is_in_no_inspection(run: Run, tmp_path: Path) -> None:
    """The translation that is shown is the first one of `translate`."""
    folder = save_translator(tmp_path / "model", forbidden_words=("he",))
    found = look(run, folder, TEXT)
    assert found["tgt"]["text"] == run("translate", folder, TEXT, "--no-retry").lines[0]


def test_a_translation_is_looked_at(run: Run, model: Path) -> None:
    """Text, probabilities and alignment are those of `translate`, to the last digit it shows."""
    found = look(run, model, TEXT)
    assert_whole(found)
    translator = dragoman.load(model, device="cpu")
    expected = translator.translate(TEXT, options=replace(translator.options, retry=False))
    assert found["kind"] == "encoder-decoder"
    assert found["languages"] == {"src": "en", "tgt": "zh"}
    assert found["tgt"]["text"] == expected.text
    steps = found["steps"]
    assert [s["log_prob"] for s in steps] == pytest.approx(expected.token_log_probs, abs=1e-6)
    assert [each["name"] for each in found["attention"]] == ["encoder", "decoder", "cross"]
    decoder = found["attention"][1]
    assert decoder["key_tokens"] == ["<s>", *found["tgt"]["tokens"][:-1]]
    [alignment] = expected.alignments
    assert sorted((s, t) for t, s, _ in found["alignment"]["links"]) == sorted(alignment.links)
    for got, wanted in zip(
        found["alignment"]["weights"], alignment.weights_TS.tolist(), strict=False
    ):
        assert got == pytest.approx(wanted, abs=1e-4)
    assert found["beam"]["beam_size"] == 3
    chosen = [node for node in found["beam"]["nodes"] if node["state"] == "chosen"]
    assert [node["token"] for node in chosen[1:]] == found["tgt"]["tokens"]
    assert chosen[-1]["score"] == pytest.approx(expected.score, abs=1e-6)
    assert chosen[-1]["log_prob"] == pytest.approx(expected.log_prob, abs=1e-4)


def test_alternatives_and_links_are_those_of_the_chosen_way(model: Path) -> None:
    """Also where it changes rows in the beam, and where a token looks most at the end."""
    translator, folder = Translator.load(model, device="cpu"), read_folder(model, device="cpu")
    ends = 0
    for text in random_lines(8, longest=5):
        found = inspect_folder(folder, text, Choices()).to_dict()
        assert_whole(found)
        [alignment] = translator.translate(text).alignments
        links = [(s, t) for t, s, _ in found["alignment"]["links"]]
        assert links == list(alignment.links)
        ends += len(found["tgt"]["tokens"]) - 1 - len(links)
    assert ends


def test_a_continuation_is_looked_at(run: Run, tmp_path: Path) -> None:
    """Text and probabilities are those of `generate`; given tokens have those of `score`."""
    folder = save_generator(tmp_path / "model")
    generator = dragoman.load(folder, device="cpu")
    for extra in ({"temperature": 0.0}, {"temperature": 1.0, "seed": 5}):
        options = [f"--{name}={value}" for name, value in extra.items()]
        found = look(run, folder, TEXT, "--max-tokens", "6", *options)
        assert_whole(found)
        expected = generator.generate(TEXT, max_tokens=6, **extra)
        assert found["src"]["text"] == TEXT + expected.text
        written = [step for step in found["steps"] if not step["given"]]
        assert [s["log_prob"] for s in written] == pytest.approx(expected.token_log_probs, abs=1e-5)
        given = [step for step in found["steps"] if step["given"]]
        [scored] = generator.score([("", TEXT)])
        assert [s["log_prob"] for s in given] == pytest.approx(scored.token_log_probs, abs=1e-4)
        assert [step["index"] for step in found["steps"]] == list(range(1, 1 + len(found["steps"])))
        assert (found["beam"], found["tgt"], found["alignment"]) == (None, None, None)


def test_a_label_is_looked_at(run: Run, tmp_path: Path) -> None:
    """With the probabilities of `classify`, and what each token had to do with it."""
    text, folder = "the dog runs", save_reader(tmp_path / "model", CLASSIFY)
    found = look(run, folder, text)
    assert_whole(found)
    expected = dragoman.load(folder, device="cpu").classify(text)
    labels = {each["label"]: each["prob"] for each in found["prediction"]["labels"]}
    assert list(labels) == list(expected.probabilities)
    assert labels == pytest.approx(dict(expected.probabilities), abs=1e-5)
    rolled, slopes = (each["scores"] for each in found["attributions"])
    assert [each["method"] for each in found["attributions"]] == ["rollout", "gradient-input"]
    assert sum(rolled) == pytest.approx(1, abs=1e-4)
    assert len(rolled) == len(slopes) == len(found["src"]["tokens"])
    ids = [2, *TOKENIZER.encode(text), 3]
    by_label = [gradient_input(make_reader(CLASSIFY).eval(), ids, n) for n in range(len(LABELS))]
    assert expected.label == LABELS[1]
    assert slopes == pytest.approx(by_label[1].tolist(), abs=1e-5)
    assert found["steps"] == []


def test_tags_are_looked_at(run: Run, tmp_path: Path) -> None:
    """Each word's tag stands at its first token; the other tokens have none."""
    folder = save_reader(tmp_path / "model", TAG)
    found = look(run, folder, TEXT)
    assert_whole(found)
    expected = dragoman.load(folder, device="cpu").tag(TEXT)
    tags = found["prediction"]["tags"]
    assert len(tags) == len(found["src"]["tokens"])
    assert [tag for tag in tags if tag] == [word.tag for word in expected.words]
    assert (tags[0], tags[-1]) == (None, None)


def test_gaps_are_looked_at(run: Run, tmp_path: Path) -> None:
    """What a masked language model would write in each; without one it is told how to ask."""
    specials = TokenizerConfig(vocab_size=321, specials=("<mask>",))
    tokenizer = train_tokenizer(random_lines(100, seed=9), specials)
    config = replace(make_config(MASKED), vocab_size=tokenizer.vocab_size)
    folder = save_encoder(tmp_path / "model", config, tokenizer)
    found = look(run, folder, "the <mask> sees a <mask>。")
    tokens = found["src"]["tokens"]
    assert "".join(tokens) == "<s> the<mask> sees a<mask>。</s>"
    assert [step["index"] for step in found["steps"]] == [
        place
        for place, token in enumerate(tokens)
        if token == "<mask>"  # noqa: S105 -- no secret
    ]
    for step in found["steps"]:
        assert step["token"] == step["alternatives"][0]["token"]
        assert exp(step["log_prob"]) == pytest.approx(step["alternatives"][0]["prob"], abs=1e-5)
        assert 0 <= step["entropy"] <= log(config.vocab_size)
    assert found["notes"] == []
    whole = look(run, folder, "the cat")
    assert whole["steps"] == []
    [note] = whole["notes"]
    assert all("<mask>" in note[language] for language in ("en", "zh"))
    assert f"Note: {note['en']}" in run("inspect", folder, "the cat").lines


def test_an_encoder_without_a_head_is_looked_at(run: Run, tmp_path: Path) -> None:
    """There is its attention, and nothing that it says."""
    folder = save_encoder(tmp_path / "model", make_config(NoHead()), make_tokenizer())
    found = look(run, folder, TEXT)
    assert_whole(found)
    assert (found["prediction"], found["attributions"], found["steps"]) == (None, [], [])


def save_encoder(folder: Path, config: EncoderOnlyConfig, tokenizer: Tokenizer) -> Path:
    """A model folder of random weights."""
    save_model(
        folder,
        EncoderOnly(config),
        FolderConfig(model=config, reading=ReadingDefaults()),
        tokenizers=(tokenizer, tokenizer),
    )
    return folder


def test_the_terminal_shows_the_alignment(run: Run, model: Path) -> None:
    """Text to text, a row for each token, the heads, the beam; the same through a pipe."""
    done = run("inspect", model, TEXT)
    assert (done.code, done.err) == (0, "")
    translator = dragoman.load(model, device="cpu")
    expected = translator.translate(TEXT, options=replace(translator.options, retry=False))
    assert done.lines[1].split(maxsplit=1) == ["en", TEXT]
    assert any(line.startswith("zh") for line in done.lines)
    assert any(line.startswith("token") and "looked at" in line for line in done.lines)
    assert f"{expected.score:.3f}" in done.out
    piped = run("inspect", model, "-", stdin=f"{TEXT}\n".encode())
    assert (piped.code, piped.out) == (0, done.out)


def test_layers_and_heads_can_be_chosen(run: Run, tmp_path: Path) -> None:
    """Only they are kept, under their own numbers, and that is said; nothing else changes."""
    folder = save_generator(tmp_path / "model")
    whole = look(run, folder, TEXT, "--seed=1")
    for options, layers, heads, said in (
        (["--layers=1"], [1], [0, 1, 2, 3], "(decoder: layer 1 of 2, all 4 heads)"),
        (["--heads=3,1"], [0, 1], [1, 3], "(decoder: all 2 layers, heads 1, 3 of 4)"),
        (["--layers=0", "--heads=2"], [0], [2], "(decoder: layer 0 of 2, head 2 of 4)"),
    ):
        part = look(run, folder, TEXT, "--seed=1", *options)
        assert_whole(part)
        [full], [cut] = whole["attention"], part["attention"]
        assert (cut["layers"], cut["heads"]) == (layers, heads)
        assert (cut["num_layers"], cut["num_heads"]) == (2, 4)
        for key in ("weights", "summaries"):
            assert cut[key] == [[full[key][n][h] for h in heads] for n in layers]
        assert said in part["notes"][0]["en"]
        assert (part["steps"], part["notes"][1:]) == (whole["steps"], whole["notes"])


def test_what_reads_all_heads_does_so_still(run: Run, model: Path, tmp_path: Path) -> None:
    """A translation's alignment and a label's rollout are the same whichever heads are chosen."""
    reader = save_reader(tmp_path / "model", CLASSIFY)
    for folder, key in ((model, "alignment"), (reader, "attributions")):
        whole, part = look(run, folder, TEXT), look(run, folder, TEXT, "--heads=1", "--layers=0")
        assert part[key] == whole[key]
        assert all(each["heads"] == [1] for each in part["attention"])


def test_chosen_heads_are_shown_wherever_heads_are(run: Run, tmp_path: Path) -> None:
    """In the terminal, in the picture and in the page, by their numbers; it is said where."""
    folder = save_generator(tmp_path / "model")
    png, html = tmp_path / "new" / "a.png", tmp_path / "a.html"
    call = ("inspect", folder, TEXT, "--layers=1", "--heads=0,3", "--seed=1")
    done = run(*call, "--png", png, "--html", html)
    assert (done.code, done.out) == (0, run(*call).out)
    assert done.err.splitlines() == [f"wrote {png}", f"wrote {html}"]
    assert "(looked at: layer 1, mean of heads 0, 3)" in done.lines
    listed = done.lines[[line.startswith("layer.head") for line in done.lines].index(True) + 1 :]
    assert [line.split()[:2] for line in listed[:2]] == [["1.0", "decoder"], ["1.3", "decoder"]]
    assert '"heads":[0,3]' in html.read_text(encoding="utf-8")
    assert png.read_bytes().startswith(b"\x89PNG")


def test_texts_that_cannot_be_looked_at_are_told(run: Run, model: Path, tmp_path: Path) -> None:
    """Nothing, and more than the model reads at once."""
    for empty in ("", " \n"):
        assert_refused(run("inspect", model, empty), "The text is empty")
    long = "cat " * 300
    assert_refused(run("inspect", model, long), "tokens", "at most 256")
    reader = save_reader(tmp_path / "reader", TAG)
    assert_refused(run("inspect", reader, long), "tokens", "at most 20")


def test_options_of_other_kinds_are_told(run: Run, model: Path, tmp_path: Path) -> None:
    """By the option and the kind."""
    generator = save_generator(tmp_path / "model")
    done = run("inspect", generator, TEXT, "--beam-size", "2")
    assert_refused(done, "decoder-only", "no --beam-size")
    for option in ("--max-tokens", "--temperature", "--seed"):
        done = run("inspect", model, TEXT, option, "1")
        assert_refused(done, "encoder-decoder", f"no {option}")
    assert_refused(run("inspect", model, TEXT, "--beam-size", "0"), "beam_size is 0")
    wide = run("inspect", model, TEXT, "--beam-size", "100000")
    assert_refused(wide, "beam_size is 100000; it must be at least 1 and at most 1,000")
    assert_refused(run("inspect", generator, TEXT, "--max-tokens", "0"), "max_tokens is 0")


def test_layers_and_heads_that_are_not_there_are_told(run: Run, model: Path) -> None:
    """With those that are; and lists that are none."""
    call: tuple[str | Path, ...] = ("inspect", model, TEXT)
    assert_refused(run(*call, "--layers", "0,7"), "no layer 7; its only layer is 0")
    assert_refused(run(*call, "--heads", "0,4"), "no head 4; its heads are 0 to 3")
    assert_refused(run(*call, "--heads", "-1"), "no head -1; its heads are 0 to 3")
    for option in ("--layers", "--heads"):
        for wrong in ("first", "", "0-3", "1,"):
            assert_refused(run(*call, option, wrong), f'{option} "{wrong}" is not a list', "0,2,5")


def test_options_without_a_text_are_told(run: Run, model: Path, tmp_path: Path) -> None:
    """A model alone has nothing to draw."""
    assert_refused(run("inspect", model, "--png", tmp_path / "a.png"), "--png needs a TEXT")
    assert_refused(run("inspect", model, "--beam-size", "2"), "--beam-size needs a TEXT")
    assert_refused(run("inspect", model, "--heads", "2"), "--heads needs a TEXT")
