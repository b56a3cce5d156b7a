"""The dialect of OpenAI: chat completions, whole or streamed.

A decoder answers with its chat template. A translator translates the user's last message line by
line; the model name may include the language pair, as in `nllb-200:en-de`.
"""

import secrets
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from functools import partial
from time import time
from typing import Annotated, Any, Generic, Literal, NamedTuple, TypeVar

import msgspec
from msgspec.json import encode
from starlette.responses import Response

from dragoman.decode import Course
from dragoman.decoding import Decoding, with_seed
from dragoman.languages import LangCodes
from dragoman.serve.endpoints import Dialect, Endpoint
from dragoman.serve.openai_fields import Count, SamplingForm, read
from dragoman.serve.refusals import LONGEST_NAME, Refusal
from dragoman.serve.responses import EventStream, json_response
from dragoman.serve.schema import ModelForm, as_list
from dragoman.serve.shelf import Chosen, Served, Shelf
from dragoman.serve.web import Call
from dragoman.serve.work import Translating
from dragoman.tasks.generate.generator import Generator
from dragoman.tasks.generate.ids import Prompt, See
from dragoman.tasks.lines import encode_each
from dragoman.tasks.results import Generation
from dragoman.text.tokenizer import Tokenizer

CODES = {401: "invalid_api_key", 404: "model_not_found", 429: "rate_limit_exceeded"}


class TextPart(msgspec.Struct):
    """A part of a message."""

    text: str
    type: Literal["text"] = "text"
    source_lang_code: str | None = None
    target_lang_code: str | None = None


class MessageForm(msgspec.Struct):
    """A message of a conversation."""

    role: Literal["system", "developer", "user", "assistant"]
    content: str | list[TextPart]

    @property
    def text(self) -> str:
        """The text of the message."""
        parts = self.content
        return parts if isinstance(parts, str) else "".join(part.text for part in parts)


class ChatForm(SamplingForm, kw_only=True, forbid_unknown_fields=True):
    """Messages to answer, or a text to translate; sampling is only for decoders."""

    messages: Annotated[list[MessageForm], msgspec.Meta(min_length=1)]
    source_lang: str | None = None
    target_lang: str | None = None
    max_completion_tokens: Count | None = None

    @property
    def most(self) -> int | None:
        """The most tokens of an answer."""
        return self.max_completion_tokens or self.max_tokens


def error(refusal: Refusal) -> Response:
    """Return an error in OpenAI's format."""
    kind = "invalid_request_error" if refusal.status < 500 else "server_error"
    code = None if refusal.where == "path" else CODES.get(refusal.status)
    said = ChatFault(refusal.sentence, kind, refusal.where, code)
    return json_response(ChatFaultAnswer(said), refusal.status, refusal.headers)


class ChatFault(msgspec.Struct):
    """What is wrong."""

    message: str
    type: str
    param: str
    code: str | None


ChatFaultAnswer = msgspec.defstruct("ChatFaultAnswer", [("error", ChatFault)])
OPENAI = Dialect(name="openai", error=error, read=read, fault=ChatFaultAnswer)


class ChatChoice(msgspec.Struct):
    """One answer."""

    index: int
    message: MessageForm
    finish_reason: Literal["stop", "length"]


Choice = TypeVar("Choice")


class CompletionAnswer(msgspec.Struct, Generic[Choice]):
    """Answers that are not streamed."""

    id: str
    object: str
    created: int
    model: str
    choices: list[Choice]
    usage: dict[str, int]


@dataclass(frozen=True, slots=True)
class Reply:
    """An answer to messages, and the numbers of tokens read and written."""

    text: str
    read: int
    written: int
    finish_reason: Literal["stop", "length"] = "stop"


class AnswerStyle(NamedTuple):
    """How an endpoint writes an answer, besides its index and reason."""

    id: str
    object: str
    chunk: str
    """The object of a stream's events."""
    whole: Callable[[str], dict[str, Any]]
    piece: Callable[..., dict[str, Any]]
    """Writes a piece of a stream, or its end (None); `first` tells the first one."""


def delta(text: str | None, *, first: bool) -> dict[str, Any]:
    """Return what a piece adds to a message; its end adds nothing."""
    role = {"role": "assistant"} if first else {}
    return {"delta": role if text is None else {**role, "content": text}}


def message(text: str) -> dict[str, Any]:
    """Return an answer as a message."""
    return {"message": MessageForm("assistant", text)}


CHAT = AnswerStyle("chatcmpl", "chat.completion", "chat.completion.chunk", message, delta)


async def chat(call: Call, form: ChatForm) -> Response:
    """Answer messages."""
    chosen = choose(call.service.shelf, form)
    answer = translated if chosen[0].task == "translate" else generated
    return await completed(call, form, answer(call, form, chosen), CHAT)


async def completed(
    call: Call,
    form: SamplingForm,
    answer: AsyncGenerator[str | Reply, None],
    style: AnswerStyle,
) -> Response:
    """Return `n` answers to each prompt, or stream one. Raises Refusal for too many."""
    if form.n is not None and form.n > (most := call.service.settings.limits.beam):
        what = f"n is {form.n}; this server allows at most {most}."
        raise Refusal(400, what, "Ask for fewer answers.", where="n")
    if form.stream and form.n is not None and form.n > 1:
        raise Refusal(400, "Only one answer can be streamed.", "Leave out n.", where="n")
    head = {"id": f"{style.id}-{secrets.token_hex(12)}", "created": int(time())}
    head |= {"model": form.model, "object": style.chunk if form.stream else style.object}

    async def events() -> AsyncGenerator[bytes, None]:
        first = True
        counted = form.stream_options is not None and form.stream_options.include_usage
        async with aclosing(answer):
            async for each in answer:
                text, end = (each, None) if isinstance(each, str) else (None, each)
                reason = end and end.finish_reason
                choice = {"index": 0, **style.piece(text, first=first), "finish_reason": reason}
                yield encode(head | {"choices": [choice]})
                first = False
                if end and counted:
                    yield encode(head | {"choices": [], "usage": usage([end], form)})
        yield b"[DONE]"

    if form.stream:
        return await EventStream.begun(call.error, events())
    replies = [each async for each in answer if isinstance(each, Reply)]
    choices = [
        {"index": number, **style.whole(each.text), "finish_reason": each.finish_reason}
        for number, each in enumerate(replies)
    ]
    return json_response(head | {"choices": choices, "usage": usage(replies, form)})


def usage(replies: Sequence[Reply], form: SamplingForm) -> dict[str, int]:
    """Count the tokens of the prompts, as the model reads them, and of `n` replies to each."""
    read = sum(each.read for each in replies[:: form.n or 1])
    written = sum(each.written for each in replies)
    counts = {"prompt_tokens": read, "completion_tokens": written}
    return counts | {"total_tokens": read + written}


def choose(shelf: Shelf, form: ChatForm) -> Chosen:
    """Return the model for a name, which may include a pair. Raises Refusal if there is none."""
    name, pair = form.model, ""
    if name not in shelf.models and ":" in name:
        name, _, pair = name.rpartition(":")
    if shelf.is_for(name, "generate"):
        return shelf.find(name, "generate"), (None, None)
    served, parts = shelf.find(name, "translate", or_chat=True), pair[:LONGEST_NAME].split("-")
    for cut in range(1, len(parts)):
        codes = "-".join(parts[:cut]), "-".join(parts[cut:])
        if served.pair(*codes):
            return shelf.choose(name, *codes)
    if pair:
        what = f"The model {name} does not translate {pair[:LONGEST_NAME]}."
        raise Refusal(404, what, "Name a pair such as en-de.", where="model")
    try:
        return shelf.choose(name, form.source_lang, form.target_lang)
    except Refusal as refusal:
        if not form.target_lang and refusal.where == "tgt_lang":
            pairs = ((src, tgt) for src in served.sources for tgt in served.targets if src != tgt)
            pair = "-".join(next(pairs, ("en", served.targets[0])))
            refusal.do = f"Name the model and a pair, as in {name}:{pair}."
        refusal.where = refusal.where.replace("src", "source").replace("tgt", "target")
        raise


async def translated(
    call: Call, form: ChatForm, chosen: Chosen
) -> AsyncGenerator[str | Reply, None]:
    """Yield the translation of the last message, or the n best."""
    service, last = call.service, form.messages[-1]
    if last.role != "user":
        raise Refusal(400, "The last message is not a user's.", "Add one.", where="messages")
    if form.stop:
        raise Refusal(400, "A translator takes no stop.", "Leave it out.", where="stop")
    options = with_n(call, form)
    service.accept(call, [last.text], options)
    async with service.lease(call, chosen[0], 1) as translator:
        how = Translating(call, chosen, options)
        (texts,) = await service.translate_lines(how, [last.text])

        def replies() -> list[Reply]:
            read = len(ids_of(translator.src_tokenizer, last.text))
            return [cut(translator.tgt_tokenizer, each, form.most, read) for each in texts]

        for reply in await service.in_thread(call, replies):
            yield reply.text
            yield reply


def generated(call: Call, form: ChatForm, chosen: Chosen) -> AsyncGenerator[str | Reply, None]:
    """Return the answers to the messages; in a stream, piece by piece."""
    system, turns = turns_of(form)

    def asking(generator: Generator, options: Decoding) -> list[Prompt]:
        languages = languages_of(form)
        return [generator.asking(turns, options, system=system, languages=languages)]

    return answers(call, form, chosen[0], [*turns, system or ""], asking)


async def answers(
    call: Call,
    form: SamplingForm,
    served: Served,
    texts: Sequence[str],
    asking: Callable[[Generator, Decoding], list[Prompt]],
    *,
    beside: Sequence[str] = (),
) -> AsyncGenerator[str | Reply, None]:
    """Yield `n` answers to each of a decoder's prompts; a stream's single one piece by piece.

    `texts`, and others `beside` them, count in the queue until `asking` has made them prompts.
    """
    service, count = call.service, form.n or 1
    given = Decoding.of(
        {
            "max_tokens": form.most,
            "temperature": form.temperature,
            "top_p": form.top_p,
            "seed": form.seed,
            "stop": form.stop and tuple(as_list(form.stop)),
        }
    )
    with_n(call, form)
    service.accept(call, texts, given, beside=beside)
    async with service.lease(call, served, count) as generator:
        options = with_seed(given, generator.options)
        made = await service.in_thread(call, partial(asking, generator, options))
        prompts = [each for each in made for _ in range(count)]
        call.notes["texts"] = len(prompts)

        def courses(see: See | None = None) -> list[Course[Any, Any, Generation]]:
            numbered = enumerate(prompts)
            asked = [each._replace(see=see, number=number) for number, each in numbered]
            return [generator.continued(each, options) for each in asked]

        if form.stream:
            text = generator.growing(options, begins_text=made[0].begins_text)
            answers = service.growing(call, generator.scheduler, courses, text)
            async with aclosing(answers):
                async for each in answers:
                    yield each if isinstance(each, str) else reply_of(each, len(made[0].ids))
            return
        found = await service.ask(call, generator.scheduler, courses)
        for each, prompt in zip(found, prompts, strict=True):
            yield reply_of(each, len(prompt.ids))


def with_n(call: Call, form: SamplingForm) -> Decoding | None:
    """Return the options for `n` answers, if given. Raises Refusal for too many."""
    if form.n is not None and form.n > (most := call.service.settings.limits.beam):
        what = f"n is {form.n}; this server allows at most {most}."
        raise Refusal(400, what, "Ask for fewer answers.", where="n")
    return None if form.n is None else Decoding(n_best=form.n)


def turns_of(form: ChatForm) -> tuple[str | None, list[str]]:
    """Return the system prompt and the turns. Raises Refusal if the roles do not alternate."""
    said = [each for each in form.messages if each.role in {"user", "assistant"}]
    before = [each.text for each in form.messages if each.role in {"system", "developer"}]
    in_turn = ["user", *["assistant", "user"] * (len(said) // 2)]
    if [each.role for each in said] != in_turn:
        what = "User and assistant do not take turns in the messages."
        raise Refusal(400, what, "Begin and end with a user's.", where="messages")
    return "\n\n".join(before) or None, [each.text for each in said]


def languages_of(form: ChatForm) -> LangCodes:
    """Return the languages that messages name, as TranslateGemma's do, or else the form.

    Raises Refusal if the messages name several pairs.
    """
    parts = [
        part for each in form.messages if isinstance(each.content, list) for part in each.content
    ]
    named = {(part.source_lang_code, part.target_lang_code) for part in parts} - {(None, None)}
    if len(named) > 1:
        what = "The messages name several pairs of languages."
        raise Refusal(400, what, "Send each pair by itself.", where="messages")
    return next(iter(named), (form.source_lang, form.target_lang))


def ids_of(tokenizer: Tokenizer, text: str) -> Sequence[int]:
    """Return the tokens of a text; none if they cannot be read."""
    (ids,) = encode_each(tokenizer.encode_batch, [text])
    return ids or ()


def cut(tokenizer: Tokenizer, text: str, most: int | None, read: int) -> Reply:
    """Return a translation as a reply of at most `most` tokens to a prompt of `read` tokens."""
    ids = ids_of(tokenizer, text)
    if most is None or len(ids) <= most:
        return Reply(text, read, len(ids))
    return Reply(tokenizer.decode(ids[:most]), read, most, "length")


def reply_of(generation: Generation | None, read: int) -> Reply:
    """Return a generated reply. Raises Refusal if a library failed."""
    if generation is None:
        raise Refusal(500, "The prompt could not be answered.", "Try another one.")
    reason: Literal["stop", "length"] = "length" if generation.stopped == "length" else "stop"
    return Reply(generation.text, read, len(generation.tokens), reason)


async def model(call: Call) -> Response:
    """Describe a model, as `/v1/models` lists it."""
    name = call.named
    if (served := call.service.shelf.models.get(name)) is None:
        what, do = f"No model is called {name[:LONGEST_NAME]}.", "GET /v1/models lists the models."
        raise Refusal(404, what, do, where="model")
    return json_response(msgspec.convert(served, type=ModelForm, from_attributes=True))


_at = partial(Endpoint, dialect=OPENAI)
ENDPOINTS = (
    _at("POST", "/v1/chat/completions", chat, ChatForm, CompletionAnswer[ChatChoice]),
    _at("GET", "/v1/models/{model}", model, None, ModelForm),
)
