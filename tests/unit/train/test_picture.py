"""The picture of a run, and its sample translations over time."""

import math
from pathlib import Path
from xml.etree import ElementTree as ET

from tests.unit.train.made import CONFIG, RESULT

from dragoman.train.job import Validation
from dragoman.train.log import LogLine
from dragoman.train.picture import MOST, draw_run
from dragoman.train.progress import Progress
from dragoman.train.report import MetricsFile, RunPicture
from dragoman.train.runfolder import RunFolder

SVG = "{http://www.w3.org/2000/svg}"


def curves(lines: list[LogLine], metric: str = "bleu") -> list[list[tuple[float, float]]]:
    """Return the points of all curves in drawing order."""
    drawn = ET.fromstring(draw_run(lines, metric))  # noqa: S314 -- our own
    found = [line.get("points", "") for line in drawn.iter(f"{SVG}polyline")]
    pairs = [[point.split(",") for point in points.split()] for points in found]
    return [[(float(x), float(y)) for x, y in each] for each in pairs]


def line(step: int, loss: float) -> LogLine:
    """Return a log line of a step."""
    return LogLine(step=step, loss=loss, grad_norm=1.0, learning_rate=1e-3 * step)


def test_curves_are_drawn_to_scale() -> None:
    """The minimum is at the bottom, the maximum at the top, and steps run to the right."""
    lines = [line(0, 6.0), line(50, 4.0), line(100, 2.0)]
    lines.append(LogLine(step=100, valid={"loss": 3.0, "bleu": 7.0}))
    training, validation, score, rate, norm = curves(lines)
    assert [x for x, _ in training] == [62.0, 234.0, 406.0]
    assert [y for _, y in training] == [34.0, 128.0, 222.0]
    assert validation == [(406.0, 175.0)]
    assert score == [(406.0, 222.0)]
    assert [y for _, y in rate] == [222.0, 128.0, 34.0]
    assert len({y for _, y in norm}) == 1


def test_what_is_not_finite_has_no_point() -> None:
    """Non-finite values are skipped, an empty log has no points, and long curves are thinned."""
    lines = [line(1, 5.0), line(2, math.nan), line(3, math.inf), line(4, 4.0)]
    assert len(curves(lines)[0]) == 2
    assert curves([]) == [[]] * 5
    assert MOST / 2 < len(curves([line(n, 1.0) for n in range(3 * MOST + 1)])[0]) <= MOST


def test_the_picture_is_drawn_at_each_validation(tmp_path: Path) -> None:
    """It shows the log so far; if it cannot be written, the run continues."""
    folder = RunFolder(tmp_path)
    metrics = MetricsFile(folder.metrics, CONFIG, Progress())
    picture = RunPicture(folder, "bleu")
    metrics.stepped(Progress(step=1), RESULT)
    for step in (5, 9):
        metrics.validated(Progress(step=step), Validation(loss=2.0, scores={"bleu": step}))
        picture.validated(Progress(step=step), Validation(loss=2.0))
        drawn = (folder.training / "run.svg").read_text(encoding="utf-8")
        assert f">{step}</text>" in drawn
    (folder.training / "run.svg").unlink()
    (folder.training / "run.svg").mkdir()
    picture.validated(Progress(step=9), Validation(loss=2.0))
    assert (folder.training / "run.svg").is_dir()


def test_answers_are_side_by_side_over_time(tmp_path: Path) -> None:
    """Outputs are listed below the reference; resuming drops those that will be repeated."""
    folder = RunFolder(tmp_path)

    def validate(before: Progress, step: int, *answers: str) -> list[str]:
        shown = Validation(loss=1.0, examples=tuple(zip(answers, ("one", "two"), strict=True)))
        MetricsFile(folder.metrics, CONFIG, before).validated(Progress(step=step), shown)
        RunPicture(folder, "bleu").validated(Progress(step=step), shown)
        return (folder.training / "samples.txt").read_text(encoding="utf-8").splitlines()

    validate(Progress(), 5, "eins", "zwei")
    at_five = Progress(step=5, validated_step=5)
    assert validate(at_five, 9, "uno", "dos")[2] == "        9  uno"
    assert validate(at_five, 7, "un", "deux") == [
        *("    right  one", "        5  eins", "        7  un", ""),
        *("    right  two", "        5  zwei", "        7  deux", ""),
    ]
