"""Words that are not prose: addresses, and names of files and of things in programs."""

import re

_TIME = r"(?:[yY]{2,4}|M{1,4}|[dD]{1,2}|[hH]{1,2}|m{1,2}|s{1,2}|S{3})"
_NAME = re.compile(
    r"(?:https?|ftp|file|data|mailto):[!-~]+|www\.[!-~]+|[!-~]+@[!-~]+\.[a-z]+|\.{0,2}/[!-~]+"
    r"|(?:https?|ftp)://[!-~]+[/=#?&](?u:[^\W\x00-\x7f])(?u:[\w!-~])*"
    r"|[!-~]+/[!-~]+/[!-~]*|[!-~]*[\\#=_<>{}$][!-~]*|[A-Za-z0-9.+:-]*\d[A-Za-z0-9.+:-]*"
    rf"|(?!e[A-Z])[a-z]+[A-Z][A-Za-z\d]*|(?=\S*([yMdHhms])\1){_TIME}(?:[-./:]{_TIME})+"
    r"|[\w-]+\.[a-z]{2,4}|[a-z][\w-]+(?:\.[a-z][\w-]+)+|:\w+"
    r"|[a-z]{2}-(?:(?:Hans|Hant|Latn|Cyrl|Arab)(?:-[A-Z]{2})?|[A-Z]{2})"
    r"|(?:application|multipart)/[a-z][\w.+-]*|(?:audio|font|image|text|video)/(?:\*|css|csv|gif"
    r"|html|javascript|jpe?g|markdown|mpeg|ogg|otf|plain|png|svg\+xml|ttf|wav|web[mp]|woff|xml"
    r"|\w*\d|(?:x-|vnd\.)[\w.+-]+)",
    re.ASCII,
)
"""A word that is an address, the name of a file, of a thing (isNew), of a key (errors.required), of
a media type (text/html) or of a language (en-US), a format of dates, or a number with its unit."""
_LONGEST = 256


def is_name(text: str) -> bool:
    """Return whether a text is a single word that looks like an address or a name in a program."""
    return len(text) <= _LONGEST and _NAME.fullmatch(text.strip()) is not None
