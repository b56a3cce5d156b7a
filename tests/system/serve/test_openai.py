"""OpenAI's official client: decoders with their chat template, and translators."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.processors import needs_independent_rows, needs_independent_translations
from tests.system.serve.live import Client, Live, PanicException, serving
from tests.unit.tasks.readers import save_reader
from tests.unit.tasks.tiny_chat import save_chat_generator
from tests.unit.tasks.tiny_generator import save_generator

import dragoman
from dragoman.models.heads import NoHead
from dragoman.serve.settings import ApiKeys
from dragoman.tasks.generate.middle import SENTINELS
from dragoman.text.train import TokenizerConfig, train_tokenizer

openai = pytest.importorskip("openai", reason="the client 'openai' is not installed")

TEXT = "the cat sees a dog"
TURNS = ["the cat", "a dog", "the big\ndog"]
MESSAGES = [
    {"role": role, "content": turn}
    for role, turn in zip(("user", "assistant", "user"), TURNS, strict=True)
]
CHAT = "/v1/chat/completions"


@pytest.fixture(scope="module")
def folders(translator_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """A translator, a chat model, a decoder without a template, and an encoder."""
    root = tmp_path_factory.mktemp("chat")
    made = [save_chat_generator(root / "town"), save_generator(root / "plain")]
    return [translator_folder, *made, save_reader(root / "vectors", head=NoHead())]


@pytest.fixture(scope="module")
def chatting(folders: list[Path]) -> Iterator[Live]:
    """A server with these models."""
    with serving(*folders, keys=ApiKeys(["k"])) as live:
        yield live


@pytest.fixture(scope="module")
def client(chatting: Live) -> Client:
    """OpenAI's client, pointed at this server."""
    return openai.OpenAI(
        base_url=f"http://127.0.0.1:{chatting.port}/v1", api_key="k", max_retries=0
    )


def said(pieces: Any) -> str:  # noqa: ANN401 -- a stream
    """Return the text of a stream."""
    return "".join(one.choices[0].delta.content or "" for one in pieces if one.choices)


@needs_independent_rows
def test_a_decoder_answers(client: Client, folders: list[Path]) -> None:
    """With a seed, the answer is the same as from Python; several answers differ."""
    generator = dragoman.load(folders[1])
    options = dragoman.decoding.Decoding(seed=3, temperature=0.7, max_tokens=9)
    conversation = generator.chat(options)
    conversation.turns = TURNS[:2]
    expected = conversation.say(TURNS[2])
    ask = {"model": "town", "messages": MESSAGES, "seed": 3, "temperature": 0.7}
    answer = client.chat.completions.create(**ask, max_tokens=9)
    (choice,) = answer.choices
    assert (choice.message.role, choice.message.content) == ("assistant", expected)
    assert choice.finish_reason in {"stop", "length"}
    several = client.chat.completions.create(**ask, max_completion_tokens=9, n=3)
    assert [one.index for one in several.choices] == [0, 1, 2]
    assert several.choices[0].message.content == expected
    assert len({one.message.content for one in several.choices}) > 1
    chunks = list(client.chat.completions.create(**ask, max_tokens=9, stream=True))
    assert said(chunks) == expected
    assert chunks[0].choices[0].delta.role == "assistant"
    assert chunks[-1].choices[0].finish_reason == choice.finish_reason


def test_usage_counts_the_whole_prompt(client: Client, folders: list[Path]) -> None:
    """It includes what the template adds between messages, also for a stream."""
    generator = dragoman.load(folders[1])
    read = generator.asking(TURNS, generator.options).ids
    assert len(read) > sum(len(generator.tokenizer.encode(turn)) for turn in TURNS)
    ask = {"model": "town", "messages": MESSAGES, "max_tokens": 2}
    *_, last = client.chat.completions.create(
        **ask, stream=True, stream_options={"include_usage": True}
    )
    for usage in (client.chat.completions.create(**ask).usage, last.usage):
        assert usage.prompt_tokens == len(read)
        assert usage.completion_tokens <= 2
        assert usage.total_tokens == len(read) + usage.completion_tokens


@needs_independent_rows
def test_prompts_are_continued(chatting: Live, client: Client, folders: list[Path]) -> None:
    """The older endpoint continues prompts as from Python, also without a chat template."""
    generator = dragoman.load(folders[2])
    options = dragoman.decoding.Decoding(seed=3, temperature=0.7, max_tokens=5)
    prompts = ["the cat", "a big house"]
    expected = [each.text for each in generator.generate(prompts, options=options)]
    ask = {"model": "plain", "seed": 3, "temperature": 0.7, "max_tokens": 5}
    answer = client.completions.create(**ask, prompt=prompts)
    assert [one.index for one in answer.choices] == [0, 1]
    assert [one.text for one in answer.choices] == expected
    read = sum(len(generator.encode(prompt)) for prompt in prompts)
    assert (answer.object, answer.usage.prompt_tokens) == ("text_completion", read)
    assert answer.choices[0].finish_reason in {"stop", "length"}
    counted = {"stream": True, "stream_options": {"include_usage": True}}
    *chunks, last = client.completions.create(**ask, prompt=prompts[0], **counted)
    assert "".join(each.choices[0].text for each in chunks) == expected[0]
    assert chunks[-1].choices[0].finish_reason == answer.choices[0].finish_reason
    assert last.usage.prompt_tokens == len(generator.encode(prompts[0]))
    several = client.completions.create(**ask, prompt=prompts, n=2)
    assert (len(several.choices), several.choices[0].text) == (4, expected[0])
    assert several.usage.prompt_tokens == read
    refused: dict[str, dict[str, Any]] = {
        "not repeat the prompt": {"echo": True},
        "not support logprobs": {"logprobs": 1},
        "tokenized_requests=False": {"prompt": [[1, 2]]},
        "Only one prompt can be streamed": {"prompt": prompts, "stream": True},
        "no special token <prefix>": {"suffix": "a dog"},
        "has 200,004 characters": {"prompt": ["a", "b"], "suffix": 100_001 * "a"},
    }
    for what, wrong in refused.items():
        ask = {"model": "plain", "prompt": "a"} | wrong
        answered = chatting.post("/v1/completions", ask, {"authorization": "Bearer k"})
        assert answered.status == 400
        assert what in answered.json["error"]["message"]


def test_a_gap_is_filled(tmp_path: Path) -> None:
    """With a suffix, the completion is what is between, as editors ask for it."""
    tokenizer = train_tokenizer(50 * [TEXT], TokenizerConfig(vocab_size=320, specials=SENTINELS))
    folder = save_generator(tmp_path / "code", tokenizer=tokenizer)
    generator, sampling = dragoman.load(folder), {"seed": 5, "temperature": 3.0, "max_tokens": 9}
    options = dragoman.decoding.Decoding.of(sampling)
    between = generator.fill("the cat", " a dog", options)
    assert between.text != generator.generate("the cat", options=options).text
    with serving(folder) as live:
        ask = {"model": "code", "prompt": "the cat", "suffix": " a dog"} | sampling
        answer = live.post("/v1/completions", ask)
        assert answer.json["choices"][0]["text"] == between.text


def test_messages_name_one_pair_of_languages(client: Client) -> None:
    """TranslateGemma's messages do, each in its part; this model has learned none."""
    parts = [
        {"type": "text", "text": "a", "source_lang_code": "en", "target_lang_code": code}
        for code in ("de", "de", "zh")
    ]
    for number, error in ((2, "learned dialogues without languages"), (3, "several pairs")):
        asked = [{"role": "user", "content": parts[:number]}]
        with pytest.raises(openai.BadRequestError, match=error):
            client.chat.completions.create(model="town", messages=asked)


@needs_independent_translations
@pytest.mark.parametrize("name", ["en-zh", "en-zh:en-zh", "en-zh:eng_Latn-zho_Hans"])
def test_a_translator_translates(client: Client, folders: list[Path], name: str) -> None:
    """It translates the last message, and its name may include the pair."""
    alone = dragoman.load(folders[0])
    content = [{"type": "text", "text": f"{TEXT}\n"}, {"type": "text", "text": "a house"}]
    ask = {"model": name, "messages": [*MESSAGES[:2], {"role": "user", "content": content}]}
    first, second = alone.translate([TEXT, "a house"])
    answer = client.chat.completions.create(**ask)
    assert answer.choices[0].message.content == f"{first}\n{second}"
    assert answer.usage.prompt_tokens > 0
    assert said(client.chat.completions.create(**ask, stream=True)) == f"{first}\n{second}"
    best = client.chat.completions.create(**ask, n=2)
    assert len(best.choices) == 2
    size = answer.usage.completion_tokens
    for limit in {"max_tokens": size}, {"max_completion_tokens": size - 1, "max_tokens": size}:
        limited = client.chat.completions.create(**ask, **limit)
        whole, (choice,) = limit == {"max_tokens": size}, limited.choices
        assert choice.finish_reason == ("stop" if whole else "length")
        assert limited.usage.completion_tokens == (size if whole else size - 1)
        assert (choice.message.content == f"{first}\n{second}") is whole
        assert answer.choices[0].message.content.startswith(choice.message.content)


def test_models_are_listed(client: Client) -> None:
    """Their client reads the same list as our own API returns."""
    listed = list(client.models.list())
    assert [one.id for one in listed] == ["en-zh", "town", "plain", "vectors"]
    assert [client.models.retrieve(one.id) for one in listed] == listed
    for name in ("gpt-4o", "a/gpt-4o"):  # like models with equal folder names
        with pytest.raises(openai.NotFoundError, match=f"No model is called {name}"):
            client.models.retrieve(name)
    with pytest.raises(openai.NotFoundError) as unknown:
        client.models.retrieve("x")
    assert (unknown.value.param, unknown.value.code) == ("model", "model_not_found")


@pytest.mark.filterwarnings("ignore:1 text is longer")
def test_texts_are_embedded(chatting: Live, client: Client, folders: list[Path]) -> None:
    """Base64, as their client requests, and numbers both work; input tokens are counted."""
    texts = ["the cat", "", " ".join([TEXT] * 30)]
    embedder = dragoman.load(folders[3])
    expected, limit = embedder.embed(texts), embedder.max_tokens
    for more in ({}, {"encoding_format": "float"}):
        answer = client.embeddings.create(model="vectors", input=texts, **more)
        assert [one.index for one in answer.data] == [0, 1, 2]
        assert np.allclose([one.embedding for one in answer.data], expected, rtol=0, atol=1e-5)
        read = len(embedder.tokenizer.encode("the cat")) + 2 + 2 + limit + 2
        assert answer.usage.prompt_tokens == answer.usage.total_tokens == read
    one = client.embeddings.create(model="vectors", input=TEXT)
    assert len(one.data[0].embedding) == embedder.dim
    same = client.embeddings.create(model="vectors", input=TEXT, dimensions=embedder.dim)
    assert same.data == one.data
    wrongs: list[dict[str, Any]] = [
        {"model": "town"},
        {"dimensions": 3},
        {"input": [[1]]},
        {"input": [1]},
        {"input": []},
    ]
    for wrong in wrongs:
        ask = {"model": "vectors", "input": TEXT} | wrong
        refused = chatting.post("/v1/embeddings", ask, {"authorization": "Bearer k"})
        assert refused.status == (404 if "model" in wrong else 400)
        error = refused.json["error"]
        assert set(error) == {"message", "type", "param", "code"}
        if wrong.get("input"):
            assert "check_embedding_ctx_length=False" in error["message"]
        assert ("dimensions" in wrong) == (f"have {embedder.dim} dimensions" in error["message"])


REFUSED: dict[str, tuple[dict[str, Any], int, str]] = {
    "an unknown model": ({"model": "none"}, 404, "model_not_found"),
    "a model of elsewhere": ({"model": "gpt-4o"}, 404, "a model that can: en-zh, town."),
    "an unknown pair": ({"model": "en-zh:de-fr"}, 404, "does not translate de-fr"),
    "no template": ({"model": "plain"}, 400, "no chat template"),
    "a system prompt": (
        {"messages": [{"role": "system", "content": "be kind"}, *MESSAGES]},
        400,
        "system prompts",
    ),
    "no turns": ({"messages": MESSAGES[:2]}, 400, "do not take turns"),
    "no messages": ({"messages": []}, 400, "messages"),
    "no user": ({"model": "en-zh", "messages": MESSAGES[:2]}, 400, "not a user's"),
    "tools": ({"tools": [{"type": "function"}]}, 400, "does not support tools"),
    "a tool": ({"tool_choice": "required"}, 400, "does not support tool_choice"),
    "a form": ({"response_format": {"type": "json_object"}}, 400, "support response_format"),
    "a leaning": ({"logit_bias": {"1": 5}}, 400, "does not support logit_bias"),
    "effort": ({"reasoning_effort": "low"}, 400, "'param': 'reasoning_effort'"),
    "a picture": (
        {"messages": [{"role": "user", "content": [{"type": "image_url", "text": ""}]}]},
        400,
        "text only, no pictures",
    ),
    "a penalty": ({"presence_penalty": 1}, 400, "does not support presence_penalty"),
    "a bonus": ({"frequency_penalty": -1}, 400, "does not support frequency_penalty"),
    "a number among texts": ({"metadata": {"a": 1}}, 400, "Expected `str`, got `int` at"),
    "log-probabilities": ({"logprobs": True}, 400, "has no log-probabilities. Leave logprobs out"),
    "too many": ({"n": 1000}, 400, "at most 20"),
    "too many translations": ({"n": 21, "model": "en-zh"}, 400, "n is 21"),
    "a translation up to a word": ({"stop": ["a"], "model": "en-zh"}, 400, "takes no stop"),
    "a long pair": ({"model": "en-zh:" + "x" * 999}, 404, "does not translate " + "x" * 100 + "."),
    "a stream of several": ({"n": 2, "stream": True}, 400, "streamed"),
    "heat": ({"temperature": -1}, 400, "emperature is -1.0"),
}


NEUTRAL: dict[str, Any] = {
    "frequency_penalty": 0,
    "presence_penalty": 0.0,
    "logit_bias": {},
    "logprobs": False,
    "top_logprobs": 0,
    "n": 1,
    "response_format": {"type": "text"},
    "modalities": ["text"],
    "tools": [],
    "tool_choice": "none",
    "parallel_tool_calls": True,
    "service_tier": "auto",
    "user": "somebody",
    "metadata": {"a": "b"},
    "store": False,
}


def test_what_changes_no_answer_is_taken(client: Client) -> None:
    """Fields that clients send by default, with neutral values, are accepted."""
    ask = {"model": "town", "messages": MESSAGES, "max_tokens": 3, "seed": 1}
    for name, value in [*NEUTRAL.items(), *((name, None) for name in NEUTRAL)]:
        answer = client.chat.completions.create(**ask | {name: value})
        assert answer.usage.prompt_tokens > 0, name


@pytest.mark.parametrize("name", REFUSED)
def test_refusals_are_of_their_form(chatting: Live, name: str, folders: list[Path]) -> None:
    """They have a message, a type, a parameter and a code, and contain no paths."""
    ask, status, what = REFUSED[name]
    headers = {"authorization": "Bearer k"}
    answer = chatting.post(CHAT, {"model": "town", "messages": MESSAGES} | ask, headers)
    assert answer.status == status
    error = answer.json["error"]
    assert set(error) == {"message", "type", "param", "code"}
    assert what in f"{error}"
    assert str(folders[1].parent) not in f"{error}"


def test_a_model_of_several_pairs_needs_one(several_folder: Path) -> None:
    """The advice and the named fields are those of this API."""
    ask = {"model": "several", "messages": [{"role": "user", "content": TEXT}]}
    with serving(several_folder) as live:
        refused = live.post(CHAT, ask)
        error = refused.json["error"]
        assert (refused.status, error["param"]) == (400, "target_lang")
        do = "Name the model and a pair, as in several:en-zh."
        assert error["message"] == f"The model several translates into en, zh. {do}"
        for told in {"model": "several:en-zh"}, {"source_lang": "en", "target_lang": "zh"}:
            assert live.post(CHAT, ask | told).status == 200
        unknown = live.post(CHAT, ask | {"target_lang": "fr"}).json["error"]
        assert unknown["param"] == "source_lang, target_lang"


def test_a_library_that_panics_is_answered(folders: list[Path]) -> None:
    """As a status before the first piece, and as an event after it."""
    headers = {"content-type": "application/json"}
    with serving(folders[1]) as live:
        generator, pieces = live.answering("town"), ["a"]

        class Panics:
            """A text that grows by one piece and then panics."""

            def extend(self, _ids: object) -> str:
                """Return the next piece; panic if there is none."""
                if not pieces:
                    raise PanicException("index out of bounds")
                return pieces.pop()

        generator.growing = lambda *_, **__: Panics()
        ask = {"model": "town", "messages": MESSAGES, "stream": True}
        begun = live.post(CHAT, ask, headers)
        assert begun.status == 200
        *_, last = begun.body.removesuffix(b"\n\n").split(b"\n\n")
        assert b'"type":"server_error"' in last
        assert live.post(CHAT, ask, headers).status == 500


def test_an_endpoint_that_is_not_there(chatting: Live, client: Client) -> None:
    """Their client shows the reason, and does not report an unknown model."""
    with pytest.raises(openai.NotFoundError, match="no such path") as found:
        client.responses.create(model="town", input="a")
    assert found.value.type == "invalid_request_error"
    assert found.value.code is None
    with pytest.raises(openai.NotFoundError, match="no such path"):
        client.moderations.create(input="a")
    short = openai.OpenAI(base_url=f"http://127.0.0.1:{chatting.port}", api_key="k")
    with pytest.raises(openai.NotFoundError, match="begin with /v1"):
        short.chat.completions.create(model="town", messages=MESSAGES)


def test_a_wrong_key(chatting: Live) -> None:
    """Their client raises an authentication error."""
    wrong = openai.OpenAI(base_url=f"http://127.0.0.1:{chatting.port}/v1", api_key="no")
    with pytest.raises(openai.AuthenticationError, match="key is missing or wrong"):
        wrong.models.list()
