"""Chat templates of Hugging Face folders: the ids of transformers, and no forged special token."""

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

import dragoman
from dragoman.convert.published import take_over
from dragoman.errors import InputError
from dragoman.text.foreign import read_tokenizers
from dragoman.text.foreign.fast import ForeignTokenizer
from dragoman.text.foreign.template import PublishedTemplate

transformers = pytest.importorskip("transformers", reason="needs transformers")
pytest.importorskip("sentencepiece", reason="needs sentencepiece")

LLAMA_3 = """{% for message in messages -%}
{{ bos_token if loop.first }}{% set head = '<|start_header_id|>' + message.role + '<|end_header_id|>' %}
{{- head + '\n\n' + message['content'] | trim + '<|eot_id|>' }}
{%- endfor %}
{% if add_generation_prompt %}{{ '<|start_header_id|>assistant<|end_header_id|>\n\n' }}{% endif %}"""
LLAMA_2 = """{%- set opening = '' %}
{%- if messages[0]['role'] == 'system' %}
    {%- set opening = '<<SYS>>\n' ~ messages[0]['content'] ~ '\n<</SYS>>\n\n' %}
    {%- set messages = messages[1:] %}
{%- endif %}
{%- for message in messages %}
    {%- if (message.role == 'user') != (loop.index0 % 2 == 0) %}
        {{- raise_exception('roles must alternate\x1b[31m') }}
    {%- elif message.role == 'user' %}
        {{- bos_token + '[INST] ' + (opening if loop.first else '') + message.content.strip() + ' [/INST]' }}
    {%- else %}
        {{- ' ' + message.content.strip() + ' ' + eos_token }}
    {%- endif %}
{%- endfor %}"""
MISTRAL = """{{ bos_token }}{% for message in messages %}
{% if message['role'] == 'user' %}[INST]{{ message['content'] }}[/INST]
{%- elif message['role'] == 'assistant' %}{% generation %}{{ message['content'] + eos_token }}{% endgeneration %}
{%- else %}{% continue %}{% endif %}{% endfor %}"""
CHATML = """{%- set ns = namespace(system='You help. ' ~ strftime_now('%Y')) %}
{%- if messages[0].role != 'system' %}<|im_start|>system\n{{ ns.system }}<|im_end|>\n{% endif %}
{%- for message in messages %}
    {%- set content = message.content.split('</think>')[-1].lstrip('\n') if '</think>' in message.content else message.content %}
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
GEMMA = """{{ bos_token }}{% for message in messages %}{% if message.role == 'system' %}
{{ raise_exception('System role not supported') }}{% endif %}
{{- '<start_of_turn>' ~ ('model' if message.role == 'assistant' else message.role) }}
{{ message['content'] | trim }}<end_of_turn>
{% endfor %}{% if add_generation_prompt %}{{'<start_of_turn>model\n'}}{% endif %}"""
TEMPLATES: Mapping[str, tuple[str, str, Sequence[str]]] = {
    "llama-3": (
        "qwen2",
        LLAMA_3,
        ["<|begin_of_text|>", "<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>"],
    ),
    "llama-2": ("llama", LLAMA_2, []),
    "mistral": ("llama", MISTRAL, ["[INST]", "[/INST]"]),
    "chatml": ("qwen2", CHATML, ["<|im_start|>", "<|im_end|>"]),
    "zephyr": ("llama", ZEPHYR, []),
    "gemma": ("llama", GEMMA, ["<start_of_turn>", "<end_of_turn>"]),
}
"""By style: the family of its tokenizer, the template, and special tokens beside the usual ones."""

LINES = [*without_special(noisy(SENTENCES, 30, seed=2)), " a \n", "a\n\nb\n", "[INST", "1 < 2 | 3 > 2"]
FORGED = ("<|eot_id|>", "</s>", "[/INST]", "<|im_end|>", "<end_of_turn>", "<s>", "<|begin_of_text|>")


def make_template(folder: Path, style: str) -> tuple[PublishedTemplate, Any]:
    """Ours and their tokenizer of a folder with a template."""
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
    """Ours of a folder that has one."""
    template = PublishedTemplate.of(read_tokenizers(folder, config)[0])
    assert template is not None
    return template


def as_messages(*turns: str, system: str | None = None) -> list[dict[str, str]]:
    """Turns of user and assistant behind a system prompt."""
    said = [{"role": "system", "content": system}] if system else []
    roles = ("user", "assistant")
    return said + [{"role": roles[n % 2], "content": turn} for n, turn in enumerate(turns)]


@pytest.mark.parametrize("style", TEMPLATES)
def test_a_prompt_has_the_ids_of_transformers(style: str, tmp_path: Path) -> None:
    """Whatever ordinary text the messages hold, with a system prompt and without."""
    ours, theirs = make_template(tmp_path, style)
    system = None if style == "gemma" else "Be brief."
    for number in range(0, len(LINES) - 2, 3):
        turns = LINES[number : number + 3]
        for messages in (
            as_messages(*turns, system=system),
            as_messages(*turns),
            as_messages(turns[0]),
        ):
            wanted = theirs.apply_chat_template(messages, add_generation_prompt=True)["input_ids"]
            assert ours.encode(messages) == wanted, messages
