"""Multipart forms."""

import pytest

pytest.importorskip("starlette", reason="the extra 'serve' is not installed")

import asyncio

from dragoman.serve.forms import read_parts

HEAD = b'--B\r\nContent-Disposition: form-data; name="file"; filename="a"\r\n\r\n'


def test_other_requests_go_on_while_a_form_of_near_boundaries_is_parsed() -> None:
    """Parsing yields to the event loop."""
    content = b"\r\n--BX" * (100 << 10)

    async def turns_meanwhile() -> int:
        turns = 0
        parsing = asyncio.create_task(
            read_parts("multipart/form-data; boundary=B", HEAD + content + b"\r\n--B--\r\n", 1)
        )
        while not parsing.done():
            await asyncio.sleep(0)
            turns += 1
        _, upload = parsing.result()
        assert upload is not None
        assert upload.content == content
        return turns

    assert asyncio.run(turns_meanwhile()) >= len(content) // (64 << 10)
