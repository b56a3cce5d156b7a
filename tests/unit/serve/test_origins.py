"""Which web pages may use a server without keys."""

import pytest

pytest.importorskip("starlette", reason="the extra 'serve' is not installed")

from socket import gethostname
from typing import Any

from dragoman.errors import InputError
from dragoman.serve.origins import check_page
from dragoman.serve.refusals import Refusal
from dragoman.serve.settings import ApiKeys, ServeSettings


def refused(headers: dict[str, str], method: str = "GET", **settings: Any) -> str:  # noqa: ANN401 -- of ServeSettings
    """Return the refusal of a request, or "" if it is accepted."""
    try:
        check_page(ServeSettings(**settings), method, headers)
    except Refusal as refusal:
        return f"{refusal.status} {refusal.sentence}"
    return ""


@pytest.mark.parametrize(
    "host",
    [
        *("localhost", "localhost:8000", "LOCALHOST:80", "localhost.", "a.localhost:8000", ""),
        *("127.0.0.1", "127.0.0.1:8000", "127.1.2.3:1", "[::1]", "[::1]:8000", "192.168.1.5:8000"),
        *("localhost.localdomain", f"{gethostname()}:8000", "host.docker.internal:8000"),
        *("ours.example", "ours.example:8443", "OURS.example."),
    ],
)
def test_names_that_are_nobody_elses_are_answered_to(host: str) -> None:
    """So are the names that the operator sets, on any port."""
    assert not refused({"host": host}, host_name=("ours.example:443",))


@pytest.mark.parametrize(
    "host",
    [
        *("evil.example:8000", "localhost.evil.example", "127.0.0.1.evil.example", "evillocalhost"),
        *("evil.example:8000:80", "[evil.example]:80", "a@localhost", "localhost/evil", "127.1.x"),
    ],
)
def test_a_page_cannot_give_its_own_name_to_our_address(host: str) -> None:
    """The refusal says what to do if the name is the operator's."""
    found = refused({"host": host})
    assert found.startswith("403 This server does not answer to the name ")
    assert "Start it with --host-name " in found
    assert refused({"host": host}, host="::1")
    assert refused({"host": host}, host="localhost", host_name=("ours.example",))


@pytest.mark.parametrize("name", ["https://ours.example", "ours.example/", "*.example", ""])
def test_what_is_no_name_is_refused(name: str) -> None:
    """It could never match a request."""
    with pytest.raises(InputError, match="is not a host name"):
        ServeSettings(host_name=(name,))


def test_other_addresses_and_keys_make_every_name_good() -> None:
    """Unless the operator sets names; a request without a name does not come from a page."""
    evil = {"host": "evil.example:8000"}
    for host in ("0.0.0.0", "::", "192.168.1.5", ""):  # noqa: S104 -- nothing listens
        assert not refused(evil, host=host)
        assert refused(evil, host=host, host_name=("ours.example",))
    assert not refused(evil, keys=ApiKeys(["k"]))
    assert not refused({})


HERE, FORM = {"host": "localhost:8000"}, {"content-type": "multipart/form-data; boundary=json"}
CROSS, OWN = {"sec-fetch-site": "cross-site"}, {"sec-fetch-site": "same-origin"}
JSON = {"content-type": "application/json"}


@pytest.mark.parametrize(
    "headers",
    [
        CROSS | JSON,
        CROSS | {"origin": "null"},
        CROSS | {"origin": "https://evil.example"} | FORM,
        {"origin": "https://evil.example"} | FORM,
        {"origin": "https://evil.example:8000", "content-type": "Text/Plain;/json"},
        {"origin": "null"},
        {"origin": "http://localhost.evil.example"} | FORM,
    ],
)
def test_a_form_of_another_page_is_refused(headers: dict[str, str]) -> None:
    """On any address, unless the server has keys or `--cors` allows the page."""
    for method in ("POST", "PUT", "PATCH", "DELETE"):
        assert "start it with --cors" in refused(HERE | headers, method)
    assert refused(HERE | headers, "POST", host="0.0.0.0", cors=("https://a.example",))  # noqa: S104
    assert not refused(HERE | headers)
    assert not refused(HERE | headers, "POST", keys=ApiKeys(["k"]))
    assert not refused(HERE | headers, "POST", cors=("*",))
    if origin := headers.get("origin"):
        assert not refused(HERE | headers, "POST", cors=(origin,))


@pytest.mark.parametrize(
    "headers",
    [
        {},
        FORM,
        OWN | FORM | {"origin": "https://translate.example"},
        FORM | {"origin": "http://localhost:3000"},
        FORM | {"origin": "https://ours.example"},
        JSON | {"origin": "https://their.example"},
        FORM | {"sec-fetch-site": "none"},
        *(
            CROSS | FORM | {"origin": f"{scheme}://a1b2"}
            for scheme in ("chrome-extension", "moz-extension", "safari-web-extension", "app")
        ),
    ],
)
def test_clients_and_extensions_go_on_working(headers: dict[str, str]) -> None:
    """Clients send no origin; browsers send other pages' JSON only after a preflight."""
    assert not refused(HERE | headers, "POST", host_name=("ours.example",))
