"""Chat templates of Hugging Face folders: the ids of transformers, and no forged special tokens."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from tests.foreign_folders import FAMILIES, SENTENCES, noisy, without_special
from tests.parity.test_foreign_settings import make_decoder, printed
from tests.parity.test_foreign_texts import read_tokenizer
from tokenizers import AddedToken

import dragoman
from dragoman.cli.app import make_app
from dragoman.convert.published import take_over
from dragoman.errors import InputError
from dragoman.folder.foreign.tokenizers import read_tokenizers
from dragoman.folder.opening import open_folder
from dragoman.folder.tokenizers.template import PublishedTemplate
from dragoman.tasks.generate.dialogue import converses
from dragoman.wording import as_one_line

transformers = pytest.importorskip("transformers", reason="needs transformers")

LLAMA_3 = """{% for message in messages -%}
{{ bos_token if loop.first }}
{%- set head = '<|start_header_id|>' + message.role + '<|end_header_id|>' %}
{{- head + '\n\n' + message['content'] | trim + '<|eot_id|>' }}
{%- endfor %}
{{ '<|start_header_id|>assistant<|end_header_id|>\n\n' if add_generation_prompt }}"""
LLAMA_2 = """{%- set opening = '' %}
{%- if messages[0]['role'] == 'system' %}
    {%- set opening = '<<SYS>>\n' ~ messages[0]['content'] ~ '\n<</SYS>>\n\n' %}
    {%- set messages = messages[1:] %}
{%- endif %}
{%- for message in messages %}
    {%- if (message.role == 'user') != (loop.index0 % 2 == 0) %}
        {{- raise_exception('roles must alternate\x1b[31m') }}
    {%- elif message.role == 'user' %}
        {{- bos_token + '[INST] ' + (opening if loop.first else '') }}
        {{- message.content.strip() + ' [/INST]' }}
    {%- else %}
        {{- ' ' + message.content.strip() + ' ' + eos_token }}
    {%- endif %}
{%- endfor %}"""
MISTRAL = """{{ bos_token }}{% for message in messages %}
{% if message['role'] == 'user' %}[INST]{{ message['content'] }}[/INST]
{%- elif message['role'] == 'assistant' %}
{% generation %}{{ message['content'] + eos_token }}{% endgeneration %}
{%- else %}{% continue %}{% endif %}{% endfor %}"""
CHATML = """{%- set ns = namespace(system='You help. ' ~ strftime_now('%Y')) %}
{%- if messages[0].role != 'system' %}<|im_start|>system\n{{ ns.system }}<|im_end|>\n{% endif %}
{%- for message in messages %}
    {%- set content = message.content %}
    {%- if '</think>' in content %}
        {%- set content = content.split('</think>')[-1].lstrip('\n') %}
    {%- endif %}
    {{- '<|im_start|>' + message.role + '\n' + content + '<|im_end|>' + '\n' }}
{%- endfor %}
{{- '<|im_start|>assistant\n' if add_generation_prompt }}{{ {'é<': tools} | tojson if false }}"""
ZEPHYR = """{% for message in messages %}
{% if message['role'] == 'user' %}
{{ '<|user|>\n' + message['content'] + eos_token }}
{% elif message['role'] == 'assistant' %}
{{ '<|assistant|>\n'  + message['content'] + eos_token }}
{% else %}
{{ '<|system|>\n' + message['content'] + eos_token }}
{% endif %}
{% if loop.last and add_generation_prompt %}
{{ '<|assistant|>' }}
{% endif %}
{% endfor %}"""
PHI_3 = """{% for message in messages %}
{{- '<|' + message.role + '|>\n' + message.content + '<|end|>\n' }}
{%- endfor %}
{{- '<|assistant|>\n' if add_generation_prompt else eos_token }}"""
TRANSLATING = """{{ bos_token }}
{%- for message in messages %}
    {%- if message.role == 'assistant' %}
        {{- message.content + eos_token }}
    {%- elif message.content is string or message.content | length != 1 %}
        {{- raise_exception('give one part') }}
    {%- else %}
        {%- set part = message.content[0] %}
        {{- '[' ~ part['source_lang_code'] ~ '-' ~ part['target_lang_code'] ~ '] ' }}
        {{- part.text | trim ~ '\\n' }}
    {%- endif %}
{%- endfor %}"""
TEMPLATES: Mapping[str, tuple[str, str, Sequence[str]]] = {
    "llama-3": (
        "qwen2",
        LLAMA_3,
        ["<|begin_of_text|>", "<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>"],
    ),
    "llama-2": ("llama", LLAMA_2, []),
    "mistral": ("llama", MISTRAL, ["[INST]", "[/INST]"]),
    "chatml": ("qwen2", CHATML, ["<|im_start|>", "<|im_end|>"]),
    "phi-3": ("llama", PHI_3, ["<|system|>", "<|user|>", "<|assistant|>", "<|end|>"]),
    "zephyr": ("llama", ZEPHYR, []),
}
"""By style: the family of the tokenizer, the template, and additional special tokens."""

LINES = [
    *without_special(noisy(SENTENCES, 30, seed=2)),
    " a \n",
    "a\n\nb\n",
    "[INST",
    "1 < 2 | 3 > 2",
]
FORGED = (
    "<|eot_id|>",
    "</s>",
    "[/INST]",
    "<|im_end|>",
    "<end_of_turn>",
    "<s>",
    "<|begin_of_text|>",
)


def make_template(folder: Path, style: str) -> tuple[PublishedTemplate, Any]:
    """Write a folder with a template; return our template and their tokenizer."""
    family, source, specials = TEMPLATES[style]
    config = FAMILIES[family](folder)
    theirs = read_tokenizer(folder)
    theirs.add_special_tokens({"additional_special_tokens": list(specials)})
    if style == "llama-3":
        theirs.bos_token = specials[0]
    theirs.chat_template = source
    theirs.save_pretrained(folder)
    return read_template(folder, config), read_tokenizer(folder)


def read_template(folder: Path, config: Mapping[str, Any]) -> PublishedTemplate:
    """Return our template of a folder that has one."""
    template = PublishedTemplate.of(read_tokenizers(folder, config)[0])
    assert template is not None
    return template


def as_messages(*turns: str, system: str | None = None) -> list[dict[str, str]]:
    """Return turns of user and assistant after a system prompt."""
    said = [{"role": "system", "content": system}] if system else []
    roles = ("user", "assistant")
    return said + [{"role": roles[n % 2], "content": turn} for n, turn in enumerate(turns)]


@pytest.mark.parametrize("style", TEMPLATES)
def test_a_prompt_has_the_ids_of_transformers(style: str, tmp_path: Path) -> None:
    """This holds for any ordinary text in the messages, with and without a system prompt."""
    ours, theirs = make_template(tmp_path, style)
    for number in (0, len(LINES) - 4):
        turns = LINES[number : number + 3]
        for messages in (
            as_messages(*turns, system="Be brief."),
            as_messages(*turns),
            as_messages(turns[0]),
        ):
            wanted = theirs.apply_chat_template(messages, add_generation_prompt=True)["input_ids"]
            assert ours.encode(messages) == wanted, messages


@pytest.mark.parametrize("style", TEMPLATES)
def test_a_message_forges_no_special_token(style: str, tmp_path: Path) -> None:
    """Names of special tokens in it are text: only the template writes special ids."""
    ours, theirs = make_template(tmp_path, style)
    special = set(ours.tokenizer.specials.values())

    def written(*turns: str) -> list[int]:
        return [id_ for id_ in ours.encode(as_messages(*turns)) if id_ in special]

    honest = written("a", "b", "c")
    names = [*FORGED, *ours.tokenizer.specials]
    for between in ("", "\n"):
        text = between.join(["", *names, ""])
        assert written(text, text, f"{text}c") == honest
    assert written(names[0], "b", names[1]) == honest
    text = f"x {FORGED[0]} y"
    shown = theirs.decode(ours.encode(as_messages(text)))
    assert text in shown


def test_a_token_may_take_the_white_space_beside_it(tmp_path: Path) -> None:
    """This includes white space that the normalizer creates; the template's token stays special."""
    FAMILIES["t5"](tmp_path)
    theirs = read_tokenizer(tmp_path)
    token = AddedToken("<|user|>", lstrip=True, rstrip=True, normalized=True, special=True)
    theirs.add_special_tokens({"additional_special_tokens": [token]})
    theirs.chat_template = "<|user|>{{ messages[0].content }} <|user|>"
    theirs.save_pretrained(tmp_path)
    ours = read_template(tmp_path, {"model_type": "t5"})
    for text in (" \n a", "\ufeffa\ufeff", "\u3000a "):
        messages = as_messages(text)
        assert ours.encode(messages) == theirs.apply_chat_template(messages)["input_ids"]
    user = theirs.convert_tokens_to_ids("<|user|>")
    for text in ("a <|user|> a", "\uff1c|user|\uff1ea", "<|user|>"):
        assert ours.encode(as_messages(text)).count(user) == 2


def test_a_template_cannot_make_a_message_forge(tmp_path: Path) -> None:
    """Text left after a cut does not form a name, and a name that the template joins is refused."""
    FAMILIES["llama"](tmp_path)
    folder = tmp_path / "tokenizer_config.json"
    settings = json.loads(folder.read_bytes())

    def template(source: str) -> PublishedTemplate:
        folder.write_text(json.dumps(settings | {"chat_template": source}))
        return read_template(tmp_path, {"model_type": "llama"})

    cuts = template("{{ messages[0].content | replace('[INST]', '') }}</s>")
    eos = cuts.tokenizer.eos_id
    with pytest.raises(InputError, match="puts </s> together from parts"):
        cuts.encode(as_messages("</[INST]s>"))
    assert cuts.encode(as_messages("a</s>")).count(eos) == 1
    parts = template("{{ '</' + 's>' }}{{ messages[0].content }}")
    with pytest.raises(InputError, match="puts </s> together from parts"):
        parts.encode(as_messages("a"))
    assert eos not in parts.encode(as_messages("a</s>"))
    marks = template("{{ messages[0].content | upper }}{{ eos_token }}")
    assert marks.encode(as_messages("<1:2>"))[-1] == eos


def test_where_a_template_is_read_from(tmp_path: Path) -> None:
    """Its file precedes the settings; of several the default is taken, others refused by name."""
    config = FAMILIES["llama"](tmp_path)
    file = tmp_path / "tokenizer_config.json"
    settings = json.loads(file.read_bytes())
    tokenizer = read_tokenizers(tmp_path, config)[0]
    assert PublishedTemplate.of(tokenizer) is None
    several = [{"name": "tool_use", "template": "tools"}, {"name": "default", "template": "plain"}]
    for given, wanted in (("one", "one"), (several, "plain")):
        file.write_text(json.dumps(settings | {"chat_template": given}))
        assert read_template(tmp_path, config).source == wanted
    for wrong in (several[:1], 7, {"default": "x"}, [3]):
        file.write_text(json.dumps(settings | {"chat_template": wrong}))
        with pytest.raises(InputError, match=r"tokenizer_config\.json has no chat template"):
            read_template(tmp_path, config)
    (tmp_path / "chat_template.jinja").write_text("newer é")
    assert read_template(tmp_path, config).source == "newer é"
    (tmp_path / "chat_template.jinja").write_text("x" * ((1 << 20) + 1))
    with pytest.raises(InputError, match=r"\.jinja is larger than"):
        read_template(tmp_path, config)


def make_chatting(folder: Path, source: str, **settings: object) -> Any:  # noqa: ANN401 -- theirs
    """Write a small Llama with a template; return their model."""
    model = make_decoder(folder, max_new_tokens=8, **settings)
    (folder / "chat_template.jinja").write_text(source)
    return model


def test_a_conversation_is_that_of_transformers(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """Each answer is what the class generates after the template; also for the converted folder."""
    folder, ours = tmp_path / "theirs", tmp_path / "ours"
    model = make_chatting(folder, LLAMA_2)
    tokenizer = read_tokenizer(folder)
    said: list[str] = []
    for text in ("A man\nin a hat </S>", "And  a dog?"):
        messages = as_messages(*said, text, system="Be brief.")
        prompt = tokenizer.apply_chat_template(messages, return_tensors="pt")["input_ids"]
        with torch.no_grad():
            (whole,) = model.generate(prompt, attention_mask=torch.ones_like(prompt))
        new = whole[prompt.shape[1] :]
        said += [text, tokenizer.decode(new, skip_special_tokens=True)]
    take_over(folder, ours)
    for path in (folder, ours):
        chat = dragoman.load(path, device="cpu").chat(system="Be brief.")
        for text in said[::2]:
            chat.say(text)
        assert chat.turns == said
        assert converses(open_folder(path))
    (folder / "chat_template.jinja").unlink()
    assert not converses(open_folder(folder))
    (folder / "chat_template.jinja").write_text(LLAMA_2)
    assert "chat template" in printed(capfd, "inspect", folder)
    assert "chat template" in printed(capfd, "inspect", ours)


def test_a_template_for_translation_gets_languages(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """TranslateGemma's messages are lists of one part, which says both; each line is alone."""
    folder, lines = tmp_path / "model", ["A man in a hat.", "A dog."]
    model, pair = make_chatting(folder, TRANSLATING), ("en", "de-DE")
    tokenizer, wanted = read_tokenizer(folder), []
    generator = dragoman.load(folder, device="cpu")
    for text in lines:
        part = {"type": "text", "source_lang_code": "en", "target_lang_code": "de-DE", "text": text}
        messages = [{"role": "user", "content": [part]}]
        prompt = tokenizer.apply_chat_template(messages, return_tensors="pt")["input_ids"]
        with torch.no_grad():
            (whole,) = model.generate(prompt, attention_mask=torch.ones_like(prompt))
        wanted.append(tokenizer.decode(whole[prompt.shape[1] :], skip_special_tokens=True))
        asked = generator.asking([text], generator.options, languages=pair)
        assert asked.ids == prompt[0].tolist()
        assert generator.chat(languages=pair).say(text) == wanted[-1]
    forged = generator.asking(["A </s> man."], generator.options, languages=pair).ids
    assert generator.tokenizer.eos_id not in forged
    (tmp_path / "lines").write_text("".join(f"{line}\n" for line in lines))
    with (tmp_path / "lines").open() as given:
        monkeypatch.setattr("sys.stdin", given)
        found = printed(capfd, "chat", folder, "--src-lang", "en", "--tgt-lang", "de-DE")
    assert found == " ".join(" ".join(map(as_one_line, wanted)).split())


def test_languages_are_for_templates_that_read_them(tmp_path: Path) -> None:
    """They are asked for, and refused elsewhere, in one sentence."""
    make_chatting(tmp_path / "one", TRANSLATING)
    make_chatting(tmp_path / "other", ZEPHYR)
    with pytest.raises(InputError, match=r"by --src-lang and --tgt-lang .*: source_lang and"):
        dragoman.load(tmp_path / "one", device="cpu").chat(languages=("en", None))
    with pytest.raises(InputError, match=r"\.jinja reads no languages; write them in the text"):
        dragoman.load(tmp_path / "other", device="cpu").chat(languages=("en", "de"))


def test_a_template_may_not_know_a_language(tmp_path: Path) -> None:
    """The codes are named after the template's reason, in one sentence."""
    make_chatting(tmp_path, "{{ source_lang_code }}{{ raise_exception('Not supported.') }}")
    chat = dragoman.load(tmp_path, device="cpu").chat(languages=("en", "xx"))
    said = r": Not supported; it may not know the code en or xx \(see the model's card\)\.$"
    with pytest.raises(InputError, match=said):
        chat.say("A man.")


def test_a_long_conversation_loses_its_oldest_exchanges(tmp_path: Path) -> None:
    """The system prompt stays; a turn that does not fit alone is refused."""
    make_chatting(tmp_path, ZEPHYR)
    generator = dragoman.load(tmp_path, device="cpu")
    options = replace(generator.options, max_tokens=4, context=64)
    chat = generator.chat(options, system="Be brief.")
    for _ in range(4):
        chat.say("A man in an orange hat.")
    assert len(chat.turns) == 8
    with pytest.raises(InputError, match=r"leaves room for 63 .* shorten it"):
        chat.say("A man in an orange hat. " * 20)
    assert len(chat.turns) == 8


def test_a_template_may_refuse_messages(tmp_path: Path) -> None:
    """The reason is shown without control characters, and a refused message is not recorded."""
    make_chatting(tmp_path, "{{ raise_exception('no system\x1b[31m prompts') if messages[1] }}</s>")
    generator = dragoman.load(tmp_path, device="cpu")
    chat = generator.chat(system="Be brief.")
    with pytest.raises(InputError, match=r"fails on these messages: no system \[31m prompts\.$"):
        chat.say("A man.")
    assert chat.turns == []
    assert len(generator.chat().say("A man.")) > 0


def test_answers_to_lines_are_lines(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """For piped input each answer is written as a line, as by `generate`; a system prompt works."""
    make_chatting(tmp_path, ZEPHYR)
    chat = dragoman.load(tmp_path, device="cpu").chat(system="Be brief.")
    wanted = [chat.say(text) for text in ("A man.", "A dog.")]
    (tmp_path / "lines").write_text("A man.\nA dog.\n")
    with (tmp_path / "lines").open() as lines:
        monkeypatch.setattr("sys.stdin", lines)
        command = ("chat", str(tmp_path), "--system", "Be brief.", "--device", "cpu")
        make_app()(command, standalone_mode=False)
    assert capfd.readouterr().out.splitlines() == [as_one_line(text) for text in wanted]
