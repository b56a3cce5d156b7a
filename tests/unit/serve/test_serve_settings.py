"""The settings that an operator chooses."""

from pathlib import Path

import pytest

from dragoman.errors import InputError
from dragoman.serve.settings import ApiKeys, ServeSettings


def test_keys_come_from_the_environment_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Unreadable or blank keys are an error, since the server would be open."""
    assert not ApiKeys.read(None)
    assert ApiKeys.read(None).allows("")
    monkeypatch.setenv("DRAGOMAN_API_KEYS", "a, b,")
    keys = ApiKeys.read(None)
    assert [keys.allows(key) for key in ("a", "b", "", ",", "a, b")] == [True, True] + [False] * 3
    monkeypatch.setenv("DRAGOMAN_API_KEYS", "")  # as in a compose file without keys
    assert not ApiKeys.read(None)
    for blank in (" , ,", ",", " ", "\n"):
        monkeypatch.setenv("DRAGOMAN_API_KEYS", blank)
        with pytest.raises(InputError, match=r"DRAGOMAN_API_KEYS has no key; .* or unset"):
            ApiKeys.read(None)
    monkeypatch.setenv("DRAGOMAN_API_KEYS", "a\nb")  # as from a file of keys
    with pytest.raises(InputError, match=r"white space; .* commas between the keys of DRAGOMAN"):
        ApiKeys.read(None)
    monkeypatch.setenv("DRAGOMAN_API_KEYS", "a")
    (tmp_path / "file").write_bytes(b"\xef\xbb\xbf# ours\r\n\r\na\r\n")
    same = ServeSettings(keys=ApiKeys.read(tmp_path / "file"))
    assert (same.keys.allows("a"), same.share(100)) == (True, 100)  # it is one key
    monkeypatch.delenv("DRAGOMAN_API_KEYS")
    with pytest.raises(InputError, match="cannot be read"):
        ApiKeys.read(tmp_path / "none")
    for content, what in (("# nothing\n", "has no key"), ("key  # ours", "white space")):
        (tmp_path / "file").write_text(content)
        with pytest.raises(InputError, match=what):
            ApiKeys.read(tmp_path / "file")


@pytest.mark.parametrize("mode", [0o644, 0o640, 0o604])
def test_a_file_of_keys_that_others_read_is_told(tmp_path: Path, mode: int) -> None:
    """A readable key file causes a warning, but its keys still work."""
    file = tmp_path / "keys.txt"
    file.write_text("k")
    file.chmod(mode)
    with pytest.warns(UserWarning, match=r"keys.txt can be read by other users .*chmod 600"):
        ApiKeys.read(file).warn_of_readers()
    file.chmod(0o600)
    ApiKeys.read(file).warn_of_readers()
    assert ApiKeys.read(file).allows("k")


@pytest.mark.parametrize(
    "origin",
    [
        *(
            "https://a.example",
            "http://a.example:8080",
            "http://localhost:443",
            "http://[::1]:3000",
        ),
        *("https://a_b.xn--bcher-kva.example:80", "http://127.0.0.1", "*", "null"),
        *("chrome-extension://abc", "safari-web-extension://E9A4-D2F1", "capacitor://localhost"),
    ],
)
def test_an_origin_is_taken_as_browsers_send_it(origin: str) -> None:
    """The origin of a page, of any page, or of a program built on a browser."""
    assert ServeSettings(cors=(origin,)).cors == (origin,)


@pytest.mark.parametrize(
    "origin",
    [
        *("their.example", "https://a.example/", "https://a.example/page", "https://A.example", ""),
        *(
            "https://*.example",
            "https://a.example:443",
            "http://a.example:80",
            "https://a.example:",
        ),
        *("https://bücher.example", "HTTPS://a.example", "https://a.example, https://b.example"),
        *("https://me@a.example", "https://", "a.example:8000", "*.example"),
    ],
)
def test_what_is_no_origin_is_refused(origin: str) -> None:
    """It could never match a request."""
    with pytest.raises(
        InputError, match=r"^--cors .*is not an origin .* such as https://their.example"
    ):
        ServeSettings(cors=("https://ours.example", origin))
