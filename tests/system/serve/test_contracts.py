"""Conformance to OpenAPI descriptions: ours, and DeepL's if a copy is available."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.system.serve.live import Live, serving

from dragoman.serve.app import ENDPOINTS
from dragoman.serve.deepl import DEEPL
from dragoman.serve.openapi import describe
from dragoman.serve.settings import ApiKeys

KEY = "k"


@pytest.fixture(scope="module")
def keyed(translator_folder: Path) -> Iterator[Live]:
    """A server that requires a key."""
    with serving(translator_folder, keys=ApiKeys([KEY])) as live:
        yield live


def fuzz(live: Live, description: Path, scheme: str, only: str) -> str:
    """Send what a description allows and what it forbids; return the report of failures."""
    pytest.importorskip("schemathesis", reason="needs schemathesis")
    told = ["--url", f"http://127.0.0.1:{live.port}", "-H", f"Authorization: {scheme} {KEY}"]
    more = ["--phases", "examples,coverage,fuzzing", "--max-examples", "20", "--seed", "1"]
    more += ["--suppress-health-check", "all", "--request-timeout", "60"]  # on a busy machine
    # unserved languages are refused, and DeepL refuses a missing key with 403
    checks = ["-c", "all", "--exclude-checks", "positive_data_acceptance,missing_required_header"]
    done = subprocess.run(
        [
            *(sys.executable, "-m", "schemathesis.cli", "run", str(description)),
            *("--include-path-regex", only, *told, *checks, *more),
        ],
        check=False,
        capture_output=True,
        text=True,
        timeout=120,
        cwd=description.parent,
    )
    return done.stdout if done.returncode else ""


def test_our_description_is_kept(keyed: Live, tmp_path: Path) -> None:
    """Every endpoint of every dialect conforms to our description."""
    description = tmp_path / "openapi.json"
    description.write_bytes(keyed.get("/openapi.json").body)
    assert not fuzz(keyed, description, "Bearer", ".")


def test_the_contract_of_deepl_is_kept(keyed: Live, tmp_path: Path) -> None:
    """The endpoints that we offer conform; DEEPL_OPENAPI is the path of DeepL's `openapi.yaml`."""
    if (published := os.environ.get("DEEPL_OPENAPI")) is None:
        pytest.skip("DEEPL_OPENAPI is not set")
    description = tmp_path / "openapi.yaml"
    description.write_bytes(Path(published).read_bytes())
    ours = "|".join(each.path for each in ENDPOINTS if each.dialect is DEEPL)
    assert not fuzz(keyed, description, DEEPL.scheme, f"^({ours})$")


def test_our_description_is_valid() -> None:
    """The description is valid OpenAPI 3.1."""
    validator = pytest.importorskip("openapi_spec_validator", reason="needs the validator")
    description = json.loads(json.dumps(describe(ENDPOINTS)))
    assert validator.validate(description) is None
