"""`dragoman chat`: a conversation, turn by turn."""

from typing import Annotated

from dragoman.cli.loading import Loading, decoding_options, say_seed, with_arithmetic
from dragoman.cli.output import ModelFolder, option, with_languages
from dragoman.cli.pipes import is_typed, lines_from, say, to_stdout
from dragoman.decoding import GENERATING, Decoding, with_seed
from dragoman.errors import InputError
from dragoman.languages import LanguagePair
from dragoman.wording import as_one_line, counted

RESET = "/reset"
"""The line that starts a new conversation."""


@decoding_options(GENERATING, only=("max_tokens", "temperature", "top_p", "seed"))
@with_languages
@with_arithmetic
def chat(
    model: ModelFolder,
    *,
    system: Annotated[
        str | None, option("System prompt, for a model with a chat template that takes one.")
    ] = None,
    decoding: Decoding,
    loading: Loading,
    pair: LanguagePair,
) -> None:
    r"""Chat with a dialogue model. Each line is a turn; the answer is printed as it is generated.

    A Hugging Face folder is prompted with its chat template. Earlier turns are kept within the
    context; the oldest are dropped first. The line /reset starts over; the end of the input
    (Ctrl-D) or Ctrl-C ends the conversation. If the turns come from a file or a pipe, each answer
    is one line, in which \n stands for a line break. A template that reads languages
    (TranslateGemma) needs --src-lang and --tgt-lang, and each line is then translated alone.

    dragoman chat runs/town

    dragoman chat runs/town < questions.txt > answers.txt
    """
    from dragoman.tasks.generate.generator import Generator

    generator = Generator.load(model, device=loading.device, precision=loading.precision)
    options = with_seed(decoding, generator.options)
    conversation = generator.chat(options, system=system, languages=pair.languages)
    typed = is_typed(None)
    with lines_from(None) as lines, to_stdout(end="") as write:
        say_seed(decoding, options)
        for line in lines:
            if line.strip() == RESET:
                say(f"{counted(len(conversation.turns), 'turn')} forgotten")
                conversation.reset()
            elif line.strip():
                if any(pair.languages):
                    conversation.reset()
                try:
                    for piece in conversation.stream(line):
                        write(piece if typed else as_one_line(piece))
                except InputError as error:  # such as a line that is longer than the context
                    if not typed:
                        raise
                    say(f"dragoman: {error.sentence}")
                else:
                    write("\n")
