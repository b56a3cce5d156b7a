"""The address on which a server listens."""

import re
import socket
from unittest.mock import Mock

import pytest

pytest.importorskip("starlette", reason="the extra 'serve' is not installed")

from dragoman.errors import InputError
from dragoman.serve import server
from dragoman.serve.settings import ServeSettings


@pytest.mark.skipif(not socket.has_dualstack_ipv6(), reason="there is no IPv6 here")
@pytest.mark.parametrize(("host", "reaches"), [("::", ["::1", "127.0.0.1"]), ("::1", ["::1"])])
def test_all_addresses_of_a_machine_have_a_name(host: str, reaches: list[str]) -> None:
    """The IPv6 wildcard includes all addresses of both families."""
    with server._listen(ServeSettings(host=host, port=0)) as listening:
        for each in reaches:
            with socket.create_connection((each, listening.getsockname()[1])) as client:
                assert client.getpeername()[0] == each


def test_a_port_of_another_server_is_refused_in_one_sentence() -> None:
    """The address that Python repeats is left out."""
    with server._listen(ServeSettings(port=0)) as listening:
        port = listening.getsockname()[1]
        with pytest.raises(InputError) as refused:
            server._listen(ServeSettings(port=port))
    assert str(refused.value) == (
        f"127.0.0.1 port {port} cannot be opened (Address already in use); choose another --host "
        "or --port."
    )


@pytest.mark.parametrize("host", ["0.0.0.0", "::"])  # noqa: S104 -- only its name is used
def test_a_browser_is_told_an_address_that_it_can_open(
    host: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On this machine, and on another device; without a network, a phrase replaces the address."""
    told = server._where(host, f"http://{host}:8000")
    assert re.fullmatch(r"http://localhost:8000 in a browser, on another .* http://.+:8000", told)
    assert host not in told
    monkeypatch.setattr(socket.socket, "connect", Mock(side_effect=OSError))
    assert server._where(host, f"http://{host}:8000").endswith("http://this machine's address:8000")
    assert server._where("127.0.0.1", "http://127.0.0.1:1") == "http://127.0.0.1:1 in a browser"
