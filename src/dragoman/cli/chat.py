"""`dragoman chat`: a conversation, turn by turn."""

import secrets
from typing import Annotated

from dragoman.cli.output import Compute, Device, ModelFolder, option, precision_of
from dragoman.cli.pipes import is_typed, lines_from, say, to_stdout
from dragoman.errors import InputError
from dragoman.wording import counted

RESET = "/reset"
"""The line that begins a new conversation."""


def chat(  # noqa: PLR0913 -- the options of the verb
    model: ModelFolder,
    *,
    system: Annotated[
        str | None, option("System prompt, for a model with a chat template that takes one.")
    ] = None,
    max_tokens: Annotated[int | None, option("Maximum number of tokens of an answer.")] = None,
    temperature: Annotated[float | None, option("Sampling temperature; 0 is greedy.")] = None,
    top_p: Annotated[float | None, option("Nucleus sampling threshold.")] = None,
    seed: Annotated[int | None, option("Random seed; chosen and printed if omitted.")] = None,
    device: Device = "auto",
    compute: Compute = "float32",
) -> None:
    r"""Chat with a dialogue model. Each line is a turn; the answer is printed as it grows.

    A folder of Hugging Face is asked by its chat template. What was said before is kept within the
    context, the oldest turns dropped first. The line /reset begins anew; the end of the input
    (Ctrl-D) or Ctrl-C ends the conversation. If the turns come from a file or a pipe, each answer
    is one line, in which \n stands for a line break.

    dragoman chat runs/town

    dragoman chat runs/town < questions.txt > answers.txt
    """
    from dragoman.cli.generate import escaped
    from dragoman.tasks.generate.generator import Generator
    from dragoman.tasks.options import with_given

    generator = Generator.load(model, device=device, precision=precision_of(compute, device))
    given = {
        "max_tokens": max_tokens,
        "temperature": temperature,
        "top_p": top_p,
        "seed": secrets.randbelow(1_000_000) if seed is None else seed,
    }
    options = with_given(generator.options, given)
    conversation = generator.chat(options, system=system)
    typed = is_typed(None)
    with lines_from(None) as lines, to_stdout(end="") as write:
        if seed is None and options.temperature > 0:
            say(f"seed {options.seed}")
        for line in lines:
            if line.strip() == RESET:
                say(f"{counted(len(conversation.turns), 'turn')} forgotten")
                conversation.reset()
            elif line.strip():
                try:
                    for piece in conversation.stream(line):
                        write(piece if typed else escaped(piece))
                except InputError as error:  # such as a line that is longer than the context
                    if not typed:
                        raise
                    say(f"dragoman: {error}")
                else:
                    write("\n")
