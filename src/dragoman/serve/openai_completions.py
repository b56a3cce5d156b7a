"""Completions as OpenAI's older clients request them: a decoder continues prompts."""

from typing import Annotated, Any, Literal

import msgspec
from starlette.responses import Response

from dragoman.decoding import Decoding
from dragoman.serve.endpoints import Endpoint
from dragoman.serve.openai import OPENAI, AnswerStyle, CompletionAnswer, answers, completed
from dragoman.serve.openai_fields import SamplingForm
from dragoman.serve.refusals import Refusal
from dragoman.serve.schema import as_list
from dragoman.serve.web import Call
from dragoman.tasks.generate.generator import Generator
from dragoman.tasks.generate.ids import Prompt


class CompletionForm(SamplingForm, kw_only=True, forbid_unknown_fields=True):
    """Prompts to continue or, with a suffix, to fill the gap behind."""

    prompt: str | Annotated[list[str], msgspec.Meta(min_length=1)]
    suffix: str | None = None
    echo: bool | None = None
    best_of: Annotated[int, msgspec.Meta(ge=1, le=1)] | None = None


class CompletionChoice(msgspec.Struct):
    """One continuation."""

    text: str
    logprobs: None
    index: int
    finish_reason: Literal["stop", "length"]


def piece(text: str | None, *, first: bool = False) -> dict[str, Any]:  # noqa: ARG001 -- as `delta`
    """Return a continuation, or a piece of it; its end (None) is empty."""
    return {"text": text or "", "logprobs": None}


COMPLETION = AnswerStyle("cmpl", "text_completion", "text_completion", piece, piece)


async def completions(call: Call, form: CompletionForm) -> Response:
    """Continue prompts."""
    texts = as_list(form.prompt)
    served = call.service.shelf.find(form.model, "generate")
    if form.echo:
        raise Refusal(
            400, "This server does not repeat the prompt.", "Leave out echo.", where="echo"
        )
    if form.stream and len(texts) > 1:
        raise Refusal(400, "Only one prompt can be streamed.", "Send one.", where="prompt")

    def asking(generator: Generator, options: Decoding) -> list[Prompt]:
        return [generator.prompt(text, options, form.suffix or None) for text in texts]

    suffixes = [form.suffix or ""] * len(texts)
    answer = answers(call, form, served, texts, asking, beside=suffixes)
    return await completed(call, form, answer, COMPLETION)


ENDPOINTS = (
    Endpoint(
        "POST",
        "/v1/completions",
        completions,
        CompletionForm,
        CompletionAnswer[CompletionChoice],
        dialect=OPENAI,
    ),
)
