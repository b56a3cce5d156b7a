"""Fields that OpenAI's requests share, those that this server does not act on among them.

They are accepted if they do not change the answer; a value that would is refused by name.
"""

import re
from typing import Annotated, Any, Literal, TypeVar

import msgspec

from dragoman.serve.refusals import LONGEST_NAME, Refusal
from dragoman.serve.web import Call

T = TypeVar("T")
Count = Annotated[int, msgspec.Meta(ge=1)]
Zero = Annotated[float, msgspec.Meta(ge=0, le=0)]
NoList = Annotated[list[Any], msgspec.Meta(max_length=0)]
Unforced = Literal["none", "auto"]


class TextFormat(msgspec.Struct):
    """The form of an answer."""

    type: Literal["text"]


class FreeFields(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """Fields that may have any value of their type: no answer depends on them."""

    parallel_tool_calls: bool | None = None
    service_tier: str | None = None
    user: str | None = None
    safety_identifier: str | None = None
    prompt_cache_key: str | None = None
    metadata: dict[str, str] | None = None
    store: bool | None = None


class UnusedFields(FreeFields, kw_only=True, forbid_unknown_fields=True):
    """Those, and fields that may only have the value that requests nothing."""

    frequency_penalty: Zero | None = None
    presence_penalty: Zero | None = None
    logit_bias: Annotated[dict[str, float], msgspec.Meta(max_length=0)] | None = None
    logprobs: bool | None = None
    top_logprobs: Annotated[int, msgspec.Meta(ge=0, le=0)] | None = None
    response_format: TextFormat | None = None
    modalities: list[Literal["text"]] | None = None
    tools: NoList | None = None
    tool_choice: Unforced | None = None
    functions: NoList | None = None
    function_call: Unforced | None = None


class StreamOptions(msgspec.Struct):
    """What a stream contains besides the text."""

    include_usage: bool = False


class SamplingForm(UnusedFields, kw_only=True, forbid_unknown_fields=True):
    """How a decoder answers."""

    model: str
    n: Count | None = None
    stream: bool | None = None
    stream_options: StreamOptions | None = None
    max_tokens: Count | None = None
    temperature: float | None = None
    top_p: float | None = None
    seed: int | None = None
    stop: str | list[str] | None = None

    @property
    def most(self) -> int | None:
        """The most tokens of an answer."""
        return self.max_tokens


LIMITED = {*UnusedFields.__struct_fields__} - {*FreeFields.__struct_fields__}


async def read(call: Call, kind: type[T]) -> T:
    """Decode a body as JSON of a type. Raises Refusal that names an unsupported field."""
    try:
        form = await call.read(kind)
    except Refusal as refusal:
        unknown = re.search("unknown field `(.*)`", refusal.what)
        name = unknown[1] if unknown else re.split(r"[.[]", refusal.where)[0]
        if unknown or name in LIMITED:
            what = f"This server does not support {name[:LONGEST_NAME]}."
            raise Refusal(400, what, "Leave it out.", where=name[:LONGEST_NAME]) from refusal
        if re.fullmatch(r"messages.*content.*\.type", refusal.where):
            what, where = "This server reads text only, no pictures or files.", refusal.where
            raise Refusal(400, what, "Leave them out of the messages.", where=where) from refusal
        if refusal.where.startswith(("input[", "prompt[")):
            what, do = "This server reads texts, not the ids of tokens.", "Send texts "
            do += (
                "(LangChain: check_embedding_ctx_length=False; lm-eval: tokenized_requests=False)."
            )
            raise Refusal(400, what, do, where=refusal.where.partition("[")[0]) from refusal
        raise
    if getattr(form, "logprobs", None):
        what = "A completion has no log-probabilities."
        do = "Leave logprobs out; /v1/generate and /v1/score return them."
        raise Refusal(400, what, do, where="logprobs")
    return form
