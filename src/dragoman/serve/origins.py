"""Which web pages may use a server without keys: a browser sends requests for any page in it."""

import re
from collections.abc import Container, Mapping
from ipaddress import IPv4Address, IPv6Address, ip_address
from socket import gethostname

from dragoman.serve.refusals import LONGEST_NAME, Refusal
from dragoman.serve.settings import ServeSettings

OURS = (".localhost", ".localdomain", ".internal")
"""Suffixes of host names that nobody can register; containers call this machine
`host.docker.internal`."""
FORMS = {"", "application/x-www-form-urlencoded", "multipart/form-data", "text/plain"}
"""The content types that a page may send to any origin."""


def check_page(settings: ServeSettings, method: str, headers: Mapping[str, str]) -> None:
    """Raise Refusal for a request from a foreign page, unless the server has keys.

    A page may point its own host name to this machine (DNS rebinding) and so have our origin; the
    `host` header then contains that name. Or it may send its form here (CSRF).
    """
    if settings.keys:
        return
    host = _name(headers.get("host", ""))
    known = [*map(_name, settings.host_name)]
    bounded = known or _is_local(settings.host)
    if bounded and host and not (host in known or _is_ours(host)):
        what = f"This server does not answer to the name {host[:LONGEST_NAME]}."
        do = f"Start it with --host-name {host[:LONGEST_NAME]} or with --api-keys."
        raise Refusal(403, what, do, where="header host")
    origin = headers.get("origin", "")
    if method == "GET" or not _is_foreign(headers, origin, {host, *known}):
        return
    if {origin, "*"}.isdisjoint(settings.cors):
        what = "This server takes no requests from web pages of other origins."
        do = f"To allow this one, start it with --cors {origin[:LONGEST_NAME] or 'ORIGIN'}."
        raise Refusal(403, what, do, where="header origin")


def _is_foreign(headers: Mapping[str, str], origin: str, ours: Container[str]) -> bool:
    """Whether a page of another site sends a request without asking first.

    Browser extensions, and programs built on a browser, have origins that no page has. An older
    browser, or one that reaches us over plain HTTP, sends no `sec-fetch-site`; it sends anything
    but a form to another origin only if that origin has agreed.
    """
    scheme, _, place = origin.partition("://")
    if scheme not in {"", "null", "http", "https"}:
        return False
    if site := headers.get("sec-fetch-site"):
        return site == "cross-site"
    form = headers.get("content-type", "").partition(";")[0].strip().lower() in FORMS
    return form and origin != "" and _name(place) not in ours


def _name(host: str) -> str:
    """Return the name or address of a host without its port."""
    found = re.fullmatch(r"\[?([^][]*?)\]?\.?(:\d*)?", host)
    return (found[1] if found else host).lower()


def _is_ours(name: str) -> bool:
    """Whether a name can only be ours, or is an address, which no page can take as its name."""
    ours = {"localhost", gethostname().lower()}
    return name in ours or name.endswith(OURS) or _address(name) is not None


def _is_local(name: str) -> bool:
    """Whether a server that listens there can be reached only from this machine."""
    address = _address(name)
    return name == "localhost" if address is None else address.is_loopback


def _address(name: str) -> IPv4Address | IPv6Address | None:
    try:
        return ip_address(name)
    except ValueError:
        return None
