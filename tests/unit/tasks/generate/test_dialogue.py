"""Dialogues: template, loss, truncation of long histories, and conversations."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.tasks.generate.test_batches import documents_of
from tests.unit.tasks.tiny import WORDS
from tests.unit.tasks.tiny_chat import TEMPLATE, make_chat_generator, make_tokenizer
from tests.unit.tasks.tiny_generator import make_config, make_generator
from tests.unit.train.made import make_job

from dragoman.data.documents import DocumentDataset
from dragoman.data.made import write_town
from dragoman.decoding import Decoding
from dragoman.errors import InputError
from dragoman.folder.format import ChatTemplate, GenerationDefaults, save_model
from dragoman.folder.opening import open_folder
from dragoman.tasks.generate.batches import PackConfig, PackedBatches
from dragoman.tasks.generate.dialogue import DialogueCodec, last_answers
from dragoman.tasks.generate.generator import Generator
from dragoman.tasks.generate.recipe import GenerateRecipe, TextFiles
from dragoman.tasks.generate.task import evaluate_generator
from dragoman.tasks.task import EvaluationData
from dragoman.text.train import TokenizerConfig
from dragoman.train.config import TrainConfig
from dragoman.train.job import Validation

TOKENIZER = make_tokenizer()
CODEC = DialogueCodec(TOKENIZER, TEMPLATE)
USER, ASSISTANT = CODEC.roles
LINES = st.one_of(
    st.lists(st.sampled_from(WORDS), max_size=8).map(" ".join),
    st.text(st.characters(exclude_characters="\n", exclude_categories=["Cs"]), max_size=8),
    st.sampled_from(["<user>", "</s>", " <assistant> the"]),
)
TURNS = st.lists(LINES, min_size=1, max_size=9)


def decoded(ids: Sequence[int]) -> list[tuple[int, str]]:
    """Return role and text of each turn by the template alone."""
    turns: list[tuple[int, list[int]]] = []
    for id_ in ids:
        if id_ in (USER, ASSISTANT):
            turns.append((id_, []))
        elif id_ not in (TOKENIZER.bos_id, TOKENIZER.eos_id):
            turns[-1][1].append(id_)
    return [(role, TOKENIZER.decode(pieces)) for role, pieces in turns]


@given(TURNS)
def test_what_is_encoded_can_be_read_back(turns: list[str]) -> None:
    """Roles in turn, the user first to learn from, last in a prompt; no text makes a role."""
    roles = [USER, ASSISTANT] * 5
    [learned] = CODEC.encode_batch(["\n".join(turns)])
    assert decoded(learned) == list(zip(roles, turns, strict=False))
    [prompt] = CODEC.encode(["\n".join(turns)])
    shift = (len(turns) - 1) % 2
    expected = [*zip(roles[shift:], turns, strict=False), (ASSISTANT, "")]
    assert decoded(prompt) == expected
    assert prompt[0] == TOKENIZER.bos_id
    assert prompt.count(TOKENIZER.eos_id) == len(turns)
    if shift == 0:  # training has seen what a prompt looks like
        [whole] = CODEC.encode_batch(["\n".join([*turns, "the"])])
        assert [TOKENIZER.bos_id, *whole][: len(prompt)] == prompt


@given(TURNS, st.integers(3, 60))
def test_a_long_history_loses_its_oldest_turns(turns: list[str], room: int) -> None:
    """Whole ones, as few as possible; what is left fits and begins with the user, or is all."""
    text = "\n".join(turns)
    [whole] = CODEC.encode([text])
    last = CODEC.encode([turns[-1]])[0]
    if len(last) > room:
        with pytest.raises(InputError, match=f"leaves room for {room} beside an answer"):
            CODEC.encode([text], (room, room))
        return
    [kept] = CODEC.encode([text], (room, room))
    assert len(kept) <= room
    expected = decoded(whole)
    assert decoded(kept) == expected[len(expected) - len(decoded(kept)) :]
    assert kept == whole or decoded(kept)[0][0] == USER
    more = len(decoded(kept)) + 1  # turns, that of two more and no answer yet
    if kept != whole and more <= len(turns):
        assert len(CODEC.encode(["\n".join(turns[-more:])])[0]) > room


def dataset_of(texts: Sequence[str]) -> DocumentDataset:
    """Return dialogues as training reads them."""
    rows = [[CODEC.bos_id, *ids, CODEC.eos_id] for ids in CODEC.encode_batch(texts)]
    return replace(documents_of(rows), roles=CODEC.roles)


DIALOGUES = [
    "the cat\nsees a dog\na tree\nruns",
    "a big house\nthe dog runs",
    "the tree\na cat\nbig",
    "我喜欢\n你学习吗。",
]


@pytest.mark.parametrize("length", [6, 40], ids=["in parts", "whole"])
def test_each_answer_is_predicted_once_and_nothing_else(length: int) -> None:
    """This also holds if a dialogue is split into parts, one of which starts within an answer."""
    config = PackConfig(length=length, rows=2, packing="documents", stride=length)
    batches = list(PackedBatches(dataset_of(DIALOGUES), config).fixed())
    found = sorted(t for b in batches for t in b.targets_BL.flatten().tolist() if t >= 0)
    answers = [line for d in DIALOGUES for line in d.split("\n")[1::2]]
    pieces = [*TOKENIZER.encode_batch(answers), [CODEC.eos_id] * len(answers)]
    assert found == sorted(id_ for ids in pieces for id_ in ids)
    assert sum(batch.num_targets for batch in batches) == len(found)


# ---------------------------------------------------------------- answering

GENERATOR = make_chat_generator()


@settings(deadline=None, max_examples=8)
@given(st.lists(st.lists(st.sampled_from(WORDS), max_size=5).map(" ".join), max_size=4))
def test_a_conversation_is_what_the_model_answers_to_the_whole_of_it(texts: list[str]) -> None:
    """Streamed text is the whole text; the turns are kept until they are reset."""
    chat, turns = GENERATOR.chat(Decoding(seed=1)), list[str]()
    for text in texts:
        turns.append(text)
        prompt = "\n".join(" ".join(turn.splitlines()) for turn in turns)
        expected = GENERATOR.generate(prompt, seed=1).text
        assert "".join(chat.stream(text)) == expected
        turns.append(expected)
        assert chat.turns == turns
    chat.reset()
    assert chat.say("the cat") == GENERATOR.generate("the cat", seed=1).text


def test_an_answer_that_is_broken_off_was_not_said() -> None:
    """The next question sees the conversation as it was before."""
    chat = GENERATOR.chat()
    next(chat.stream("the cat"))
    assert chat.turns == []


def test_line_breaks_become_spaces() -> None:
    """A turn is one line, so a text cannot imitate several turns."""
    broken, whole = (GENERATOR.chat(Decoding(seed=1)) for _ in range(2))
    assert broken.say("the\ncat\r\nsees") == whole.say("the cat sees")
    assert broken.turns[0] == "the\ncat\r\nsees"


def test_a_conversation_outgrows_the_context() -> None:
    """The model sees the last turns; a turn that is too long is refused and not recorded."""
    generator = make_chat_generator(context=40)
    chat = generator.chat()
    for _ in range(6):
        chat.say("the cat sees a big dog")
    assert len(chat.turns) == 12
    ids = generator.encode("\n".join(["the"] * 21))  # turns of three tokens
    assert len(ids) == 2 + 7 * 3  # 12 of 40 tokens are for the answer
    assert generator.options.max_tokens == 12
    with pytest.raises(InputError, match="shorten it"):
        chat.say("the cat " * 30)
    assert len(chat.turns) == 12


@pytest.mark.parametrize("most", [50, 64, 500])
def test_an_answer_takes_what_the_prompt_leaves(most: int) -> None:
    """If both do not fit, the answer is limited to the context, and history may take half of it."""
    generator = make_chat_generator(context=64)
    options = replace(generator.options, max_tokens=most, min_length=60, temperature=0.0)
    turn, chat = "the cat sees a dog", generator.chat(options)
    alone = len(generator.asking([turn], options).ids)
    assert chat.say(turn)
    (written,) = generator.generate([turn], options=options)
    assert len(written.ids) == min(most, 64 - alone)
    assert (written.stopped, written.flags) == ("length", ())
    turns = ["the cat", "a dog", turn]
    kept = len(generator.asking(turns, options).ids)
    assert (kept > alone) == (most >= 64)
    longest = " ".join([turn] * 4)
    read = len(generator.asking([longest], options).ids)
    assert 64 - most < read < 64
    assert len(generator.generate(longest, options=options).ids) == min(most, 64 - read)
    with pytest.raises(InputError, match="leaves room for 63 beside an answer; shorten it"):
        chat.say(" ".join([turn] * 60))


def test_other_models_do_not_talk() -> None:
    """A model without a template, or whose tokenizer lacks the roles, is refused."""
    with pytest.raises(InputError, match="no chat template"):
        make_generator().chat()
    with pytest.raises(InputError, match="without system prompts"):
        GENERATOR.chat(system="Be brief.")
    with pytest.raises(InputError, match="no special token <user>"):
        make_generator(GenerationDefaults(chat=TEMPLATE))
    with pytest.raises(InputError, match="both <user>"):
        ChatTemplate(assistant="<user>")


# ---------------------------------------------------------------- recipe and evaluation


@pytest.fixture
def recipe(tmp_path: Path) -> GenerateRecipe:
    """A small recipe of generated town dialogues."""
    train, valid = map(str, write_town(tmp_path / "texts", 60, 8).values())
    return GenerateRecipe(
        out=str(tmp_path / "run"),
        data=TextFiles(
            train=(train,), valid=(valid,), split="blank-line", cache=str(tmp_path / "cache")
        ),
        tokenizer=TokenizerConfig(vocab_size=400, specials=("<user>", "<assistant>")),
        batch=PackConfig(length=128, rows=4, packing="documents"),
        model=replace(make_config(TOKENIZER), vocab_size=0),
        train=TrainConfig(max_steps=1),
        generation=GenerationDefaults(max_tokens=40, chat=TEMPLATE),
    )


def test_a_folder_keeps_its_template(recipe: GenerateRecipe, tmp_path: Path) -> None:
    """A saved folder evaluates the loss of the answers and the share of correct last ones."""
    job, _ = make_job(recipe)
    folder = tmp_path / "model"
    save_model(folder, job.model, job.config, tokenizers=job.tokenizers)
    saved = open_folder(folder).config.generation
    assert saved is not None
    assert saved.chat == TEMPLATE
    valid = tmp_path / "texts" / "valid.txt"
    report = evaluate_generator(open_folder(folder), EvaluationData(text=valid))
    assert report.figures["nats_per_token"] == pytest.approx(job.measure().loss, rel=1e-4)
    assert report.figures["tokens"] == sum(
        len(ids) + 1
        for dialogue in valid.read_text("utf-8").strip().split("\n\n")
        for ids in job.tokenizer.encode_batch(dialogue.split("\n")[1::2])
    )
    assert (report.figures["dialogues"], report.figures["exact"]) == (8, 0.0)
    prompts, right = last_answers(valid)
    generator = Generator.load(folder, device="cpu")
    found = [generator.generate(prompt, temperature=0.0).text for prompt in prompts]
    assert list(report.answers) == found
    valid.write_text("\n\n".join(f"{p}\n{a}" for p, a in zip(prompts, found, strict=True)))
    # Outputs of an untrained model may have white space that dialogue files do not preserve.
    kept = [read == written for read, written in zip(last_answers(valid)[1], found, strict=True)]
    again = evaluate_generator(open_folder(folder), EvaluationData(text=valid))
    assert again.figures["exact"] == 100 * sum(kept) / len(kept) > 50
    assert right != found


def test_the_last_answer_is_asked_for(tmp_path: Path) -> None:
    """An unanswered question, at the end of a dialogue or alone, is left out."""
    path = tmp_path / "dialogues"
    path.write_text("a\nb\n\nc\n\nd\ne\nf\n\ng\nh\ni\nj\n", encoding="utf-8")
    assert last_answers(path) == (["a", "d", "g\nh\ni"], ["b", "e", "j"])


def test_the_card_speaks_of_answers(recipe: GenerateRecipe) -> None:
    """The card has the data, the metric and the command."""
    card = make_job(recipe)[0].card(Validation(loss=1.0))
    assert "answers" in card.judged
    assert card.use == "dragoman chat THIS_FOLDER"
    assert any("valid.txt" in line for line in card.data)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"batch": PackConfig(length=128)}, "needs data.split"),
        ({"tokenizer": TokenizerConfig(vocab_size=400)}, r'specials = \["<user>", "<assistant>"\]'),
        ({"generation": GenerationDefaults(max_tokens=128, chat=TEMPLATE)}, "leaves no room"),
    ],
)
def test_a_recipe_that_cannot_be_is_refused(
    recipe: GenerateRecipe, change: dict[str, object], words: str
) -> None:
    """Each error says what to set."""
    with pytest.raises(InputError, match=words):
        replace(recipe, **change)  # type: ignore[arg-type]


def test_a_town_is_made_where_the_run_is(tmp_path: Path) -> None:
    """The files of a generated town become those of the recipe, and need not exist before."""
    data = TextFiles(made="town", split="blank-line")
    data.check()
    assert "made by the package" in data.summary[0]
    written = data.write(tmp_path)
    written.check()
    assert [path.name for path in written.training + written.validation] == [
        "train.txt",
        "valid.txt",
    ]
    assert written.write(tmp_path / "other") == written
