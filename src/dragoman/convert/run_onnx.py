"""Run the model in this folder by onnxruntime: python run.py < lines

Greedy decoding, one line at a time; needs onnxruntime, tokenizers and numpy alone. From Python:

    from run import Model
    print(Model("FOLDER").answer("A line of text.").text)
"""

import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import onnxruntime
from tokenizers import Tokenizer

PROVIDERS = ["CPUExecutionProvider"]
Array = npt.NDArray[Any]


@dataclass(frozen=True)
class Answer:
    """What the model makes of a line."""

    text: str
    """The translation, the line and how it goes on, the label or the tag of each token."""
    ids: list[int]
    """The tokens that were written; of an encoder those that were read."""
    logits: list[Array]
    """What each of them was chosen from, of an encoder all that it computed."""


class Model:
    """The graphs of a folder, its tokenizers and what its config says."""

    def __init__(self, folder: str | Path) -> None:
        folder = Path(folder)
        self.config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
        self.source, self.target = (
            Tokenizer.from_file(str(folder / name)) for name in self.config["tokenizers"]
        )
        self.graphs = {
            name: onnxruntime.InferenceSession(folder / f"{name}.onnx", providers=PROVIDERS)
            for name in self.config["graphs"]
        }

    def answer(self, text: str, limit: int | None = None) -> Answer:
        """Translate a line, go on with it by at most `limit` tokens, or read it."""
        config = self.config
        ids = self.source.encode(config["opening"] + text, add_special_tokens=False).ids
        ids = [*config["before"], *ids, *config["after"]]
        if config["kind"] == "encoder-only":
            return self._read(ids)
        if config["kind"] == "decoder-only":
            mask = np.ones((1, len(ids)), dtype=np.bool_)
            found, logits = self._write("model", ids, {"mask": mask}, limit or config["max_tokens"])
            text = self._text([*ids, *found]).removeprefix(config["opening"])
            return Answer(text, found, logits)
        longest = int(config["max_length_factor"] * (len(ids) - 1)) + config["max_length_constant"]
        encoder = self.graphs["encoder"]
        names = [output.name for output in encoder.get_outputs()]
        memory = dict(zip(names, encoder.run(names, {"ids": np.array([ids])}), strict=True))
        found, logits = self._write("decoder", [config["bos_id"]], memory, limit or longest)
        return Answer(self._text(found), found, logits)

    def _write(
        self, graph: str, ids: list[int], given: dict[str, Array], limit: int
    ) -> tuple[list[int], list[Array]]:
        """Choose the best token, and feed it back with the keys and values so far, to the end."""
        session, written, logits = self.graphs[graph], list[int](), list[Array]()
        outputs = [output.name for output in session.get_outputs()]
        past = {
            put.name: np.zeros((1, put.shape[1], 0, put.shape[3]), dtype=np.float32)
            for put in session.get_inputs()
            if put.name.startswith("past_")
        }
        for _ in range(limit):
            found = session.run(outputs, {"ids": np.array([ids]), **given, **past})
            step = dict(zip(outputs, found, strict=True))
            past = {name: step[name.removeprefix("past_")] for name in past}
            logits.append(step["logits"][0].copy())
            step["logits"][0, self.config["never"]] = -np.inf
            ids = [int(step["logits"][0].argmax())]
            if ids[0] == self.config["eos_id"]:
                break
            written += ids
            if graph == "model":
                given["mask"] = np.ones((1, given["mask"].shape[1] + 1), dtype=np.bool_)
        return written, logits

    def _read(self, ids: list[int]) -> Answer:
        """Run an encoder: a label for the text, or one for each token."""
        (found,) = self.graphs["model"].run(["logits"], {"ids": np.array([ids])})
        rows = found if found.ndim == 2 else found[0]
        labels = self.config["labels"] or [""] * rows.shape[1]
        return Answer(" ".join(labels[int(row.argmax())] for row in rows).strip(), ids, list(rows))

    def _text(self, ids: list[int]) -> str:
        """Decode all tokens but the special ones, which are no text."""
        specials = set(self.config["specials"])
        text: str = self.target.decode([id_ for id_ in ids if id_ not in specials])
        return text


if __name__ == "__main__":
    model = Model(Path(__file__).parent)
    for line in sys.stdin:
        sys.stdout.write(model.answer(line.strip()).text + "\n")
