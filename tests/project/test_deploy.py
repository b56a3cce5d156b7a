"""What `deploy/` holds: each file by its own linter, and all of it by what the server has."""

import json
import re
import shlex
import shutil
import subprocess
import sys
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
import yaml
from tests.docs.pages import ROOT

from dragoman.cli.main import main

DEPLOY = ROOT / "deploy"
UNIT = DEPLOY / "dragoman.service"
PROGRAM = "/opt/dragoman/bin/dragoman"


def linter(name: str) -> str:
    """The path of a program, of this environment or of the system; without it, skip."""
    found = shutil.which(name, path=Path(sys.executable).parent) or shutil.which(name)
    if found is None:
        pytest.skip(f"{name} is not installed")
    return found


def assert_passes(*command: str | Path) -> None:
    """A linter must have nothing to say against a file."""
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def documents() -> list[dict[str, Any]]:
    """What the manifest asks a cluster for."""
    return [*yaml.safe_load_all((DEPLOY / "kubernetes.yaml").read_text("utf-8"))]


def container() -> dict[str, Any]:
    """The container of the deployment."""
    (found,) = documents()[0]["spec"]["template"]["spec"]["containers"]
    return dict(found)


def compose() -> dict[str, Any]:
    """The service of the compose file."""
    content = yaml.safe_load((DEPLOY / "compose.yaml").read_text("utf-8"))
    return dict(content["services"]["dragoman"])


def unit_command() -> list[str]:
    """The command of the unit."""
    (line,) = re.findall("^ExecStart=(.*)", UNIT.read_text("utf-8"), re.MULTILINE)
    return shlex.split(line)


def test_the_dockerfile_by_hadolint() -> None:
    """Without a remark."""
    assert_passes(linter("hadolint"), DEPLOY / "Dockerfile")


def test_the_compose_file_by_its_specification() -> None:
    """Every key is known."""
    module = pytest.importorskip("compose_spec", reason="compose-spec is not installed")
    found = module.PyCompose.from_yaml((DEPLOY / "compose.yaml").read_text("utf-8"))
    assert [*found.services] == ["dragoman"]


def test_the_manifest_by_kubernetes_schemas() -> None:
    """Every field is known."""
    assert_passes(linter("kubernetes-validate"), "--strict", DEPLOY / "kubernetes.yaml")


def test_the_unit_by_systemd(tmp_path: Path) -> None:
    """It is understood, and exposes little: 10 would be all."""
    analyze = linter("systemd-analyze")
    copy = tmp_path / UNIT.name
    copy.write_text(UNIT.read_text("utf-8").replace(PROGRAM, "/bin/true"), "utf-8")
    assert_passes(analyze, "verify", copy)
    assert_passes(analyze, "security", "--offline=true", "--threshold=20", "--no-pager", copy)


@pytest.mark.parametrize(
    "words",
    [unit_command()[2:], compose()["command"], container()["args"]],
    ids=["systemd", "compose", "kubernetes"],
)
def test_the_server_has_every_option(
    words: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """All are parsed; what is wrong is only that the folder is not there."""
    pytest.importorskip("starlette", reason="the extra 'serve' is not installed")
    (tmp_path / "keys").touch(0o600)
    (tmp_path / "keys").write_text("a\n", "utf-8")
    placed = [word.replace("${CREDENTIALS_DIRECTORY}", str(tmp_path)) for word in words]
    with pytest.raises(SystemExit) as ended:
        main(["serve", *placed])
    assert ended.value.code == 2
    assert "There is no model folder" in capsys.readouterr().err


def test_the_image_has_the_words_of_the_command_line() -> None:
    """`dragoman serve` on all addresses of the container."""
    content = (DEPLOY / "Dockerfile").read_text("utf-8")
    assert 'ENTRYPOINT ["dragoman", "serve", "--host", "0.0.0.0"]' in content
    assert unit_command()[:2] == [PROGRAM, "serve"]


def test_only_this_machine_reaches_a_server_without_keys() -> None:
    """Under its own name: a web page may make another one point here. In a cluster it has keys."""
    published = re.findall(r"--publish (\S+)", (DEPLOY / "Dockerfile").read_text("utf-8"))
    assert {port.rpartition(":8000:")[0] for port in published + compose()["ports"]} == {
        "127.0.0.1"
    }
    for words in compose()["command"], (DEPLOY / "Dockerfile").read_text("utf-8").split():
        assert words[words.index("--host-name") + 1] == "localhost"
    assert "--host" not in unit_command()
    (keys,) = container()["env"]
    assert (keys["name"], "secretKeyRef" in keys["valueFrom"]) == ("DRAGOMAN_API_KEYS", True)


@pytest.mark.parametrize("status", [200, 503])
def test_the_image_is_healthy_whatever_proxy_it_is_given(
    status: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The command of the Dockerfile asks the server itself, and fails where that is not ready."""

    class Ready(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(status if self.path == "/health/ready" else 404)
            self.end_headers()

    content = (DEPLOY / "Dockerfile").read_text("utf-8")
    (found,) = re.findall(r"HEALTHCHECK .*\\\n +CMD (.*)", content)
    (program, *words), server = json.loads(found), HTTPServer(("127.0.0.1", 0), Ready)
    words = [word.replace(":8000", f":{server.server_port}") for word in words]
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")
    Thread(target=server.handle_request, daemon=True).start()
    with server:
        done = subprocess.run([sys.executable, *words], capture_output=True, check=False)
    assert (program, done.returncode) == ("python", int(status != 200))


def test_all_accepted_requests_are_answered_before_the_end() -> None:
    """Each waits longer for the end than the server takes for it."""

    def seconds(words: list[str]) -> float:
        return float(words[words.index("--shutdown-timeout") + 1])

    pod = documents()[0]["spec"]["template"]["spec"]
    assert pod["terminationGracePeriodSeconds"] > seconds(container()["args"])
    assert float(compose()["stop_grace_period"].removesuffix("s")) > seconds(compose()["command"])
    (stop,) = re.findall(r"^TimeoutStopSec=(\d+)", UNIT.read_text("utf-8"), re.MULTILINE)
    assert float(stop) > seconds(unit_command())


def test_probes_and_figures_are_those_of_the_server() -> None:
    """The paths are endpoints, and the autoscaler's figure is counted."""
    pytest.importorskip("starlette", reason="the extra 'serve' is not installed")
    from dragoman.serve.admission import AdmissionQueue
    from dragoman.serve.app import ENDPOINTS
    from dragoman.serve.metrics import ServeMetrics

    paths = {each.path for each in ENDPOINTS}
    probes = [container()[f"{name}Probe"] for name in ("startup", "readiness", "liveness")]
    assert {probe["httpGet"]["path"] for probe in probes} <= paths
    assert "/health/ready" in (DEPLOY / "Dockerfile").read_text("utf-8")
    (metric,) = documents()[-1]["spec"]["metrics"]
    name = metric["pods"]["metric"]["name"]
    assert f"\n{name} " in ServeMetrics(AdmissionQueue(1)).text().decode()
