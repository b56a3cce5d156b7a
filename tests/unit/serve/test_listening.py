"""Where a server listens."""

import socket

import pytest

pytest.importorskip("starlette", reason="the extra 'serve' is not installed")

from dragoman.errors import InputError
from dragoman.serve import server
from dragoman.serve.settings import ServeSettings


@pytest.mark.skipif(not socket.has_dualstack_ipv6(), reason="there is no IPv6 here")
@pytest.mark.parametrize(("host", "reaches"), [("::", ["::1", "127.0.0.1"]), ("::1", ["::1"])])
def test_all_addresses_of_a_machine_have_a_name(host: str, reaches: list[str]) -> None:
    """That of IPv6 is all of both kinds."""
    with server._listen(ServeSettings(host=host, port=0)) as listening:
        for each in reaches:
            with socket.create_connection((each, listening.getsockname()[1])) as client:
                assert client.getpeername()[0] == each


def test_a_port_of_another_server_is_refused_in_one_sentence() -> None:
    """Without the address that Python adds a second time."""
    with server._listen(ServeSettings(port=0)) as listening:
        port = listening.getsockname()[1]
        with pytest.raises(InputError) as refused:
            server._listen(ServeSettings(port=port))
    assert str(refused.value) == (
        f"127.0.0.1 port {port} cannot be opened (Address already in use); choose another --host "
        "or --port."
    )
