"""Words that are no text: addresses, and names of files and of things in programs."""

import re

_NAME = re.compile(
    r"(?:https?|ftp|file|data|mailto):[!-~]+|www\.[!-~]+|[!-~]+@[!-~]+\.[a-z]+|\.{0,2}/[!-~]+"
    r"|(?:https?|ftp)://[!-~]+[/=#?&](?u:[^\W\x00-\x7f])(?u:[\w!-~])*"
    r"|[!-~]+/[!-~]+/[!-~]*|[!-~]*[\\#=_<>{}$][!-~]*|[A-Za-z0-9.+:-]*\d[A-Za-z0-9.+:-]*"
    r"|[\w-]+\.[a-z]{2,4}|:\w+",
    re.ASCII,
)
"""One word that is an address, the name of a file or of a thing, or a number with its unit."""
_LONGEST = 256


def is_name(text: str) -> bool:
    """Whether a text is a single word that looks like an address or a name in a program."""
    return len(text) <= _LONGEST and _NAME.fullmatch(text.strip()) is not None
