"""Run the model in this folder with onnxruntime: python run.py < lines

Greedy decoding, one line at a time; needs onnxruntime, numpy and tokenizers or, if the folder
has its models, sentencepiece. A multilingual model takes two codes: python run.py en de.
From Python:

    from run import Model
    print(Model("FOLDER").answer("A line of text.").text)
"""

import json
import re
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import onnxruntime

PROVIDERS = ["CPUExecutionProvider"]
Array = npt.NDArray[Any]


@dataclass(frozen=True)
class ModelOutput:
    """The model's output for a line."""

    text: str
    """The translation, the line with its continuation, the label or the tag of each token."""
    ids: list[int]
    """The generated tokens; for an encoder, the tokens that it read."""
    logits: list[Array]
    """The logits from which each was chosen; for an encoder, all its logits."""


class SentencePieces:
    """A tokenizer of the library `sentencepiece`, with the model's own ids for its pieces."""

    def __init__(self, path: Path, said: dict[str, Any]) -> None:
        from sentencepiece import SentencePieceProcessor

        self.reads, self.writes = (
            SentencePieceProcessor(model_file=str(path.with_name(name))) for name in said["models"]
        )
        self.ids, self.unk_id = said["ids"], said["unk_id"]
        self.specials, self.marks = said["specials"], said["marks"]
        self.pieces = {id_: piece for piece, id_ in self.ids.items()}
        marks = (p for p in self.ids if re.fullmatch(r">>\S+<<|__[a-z]{2,3}__", p))
        self.never_text = {*self.specials, *marks}

    def encode(self, text: str) -> list[int]:
        """Return the ids of a text, which may begin with >>language<<."""
        mark = re.match(r">>[^<>\s]+<<", text) if self.marks else None
        before = [self.ids[mark[0]]] if mark and mark[0] in self.ids else []
        pieces = self.reads.encode(text[mark.end() :] if mark and before else text, out_type=str)
        plain = (self.unk_id if piece in self.never_text else piece for piece in pieces)
        return before + [self.ids.get(piece, self.unk_id) for piece in plain]

    def decode(self, ids: Sequence[int]) -> str:
        """Return the text of ids, without special tokens."""
        pieces = [self.pieces[id_] for id_ in ids if id_ in self.pieces]
        text: str = self.writes.decode_pieces([p for p in pieces if p not in self.specials])
        return text.replace("▁", " ").strip()


class Model:
    """The graphs, tokenizers and config of a folder."""

    def __init__(self, folder: str | Path, src_lang: str = "", tgt_lang: str = "") -> None:
        folder = Path(folder)
        config = self.config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
        (self.encode, _), (_, self.decode) = (
            _coder(folder / name, config["unk_id"]) for name in config["tokenizers"]
        )
        self.graphs = {
            name: onnxruntime.InferenceSession(folder / f"{name}.onnx", providers=PROVIDERS)
            for name in config["graphs"]
        }
        codes = config["languages"]
        if codes and not {src_lang, tgt_lang} <= {*codes}:
            raise SystemExit(f"give the languages, from and into: two of {', '.join(codes)}")
        if not codes and src_lang:
            raise SystemExit(f"{src_lang} is too much: the lines come from standard input")
        self.before, self.after = (
            [codes[src_lang] if id_ in codes.values() else id_ for id_ in config[where]]
            for where in ("before", "after")
        )
        self.start = [*config["start"], *([codes[tgt_lang]] if codes else config["begin"])]

    def answer(self, text: str, limit: int | None = None) -> ModelOutput:
        """Translate a line, continue it by at most `limit` tokens, or label it."""
        config = self.config
        source = self.encode(config["opening"] + text)
        ids = [*self.before, *source, *self.after]
        if config["kind"] == "encoder-only":
            return self._read(ids)
        if config["kind"] == "decoder-only":
            mask = np.ones((1, len(ids)), dtype=np.bool_)
            found, logits = self._write("model", ids, {"mask": mask}, limit or config["max_tokens"])
            text = self._text([*ids, *found]).removeprefix(config["opening"])
            return ModelOutput(text, found, logits)
        longest = int(config["max_length_factor"] * len(source)) + config["max_length_constant"]
        longest += 1 - len(self.start)
        encoder = self.graphs["encoder"]
        names = [output.name for output in encoder.get_outputs()]
        memory = dict(zip(names, encoder.run(names, {"ids": np.array([ids])}), strict=True))
        found, logits = self._write("decoder", self.start, memory, limit or longest)
        return ModelOutput(self._text(found), found, logits)

    def _write(
        self, graph: str, ids: list[int], given: dict[str, Array], limit: int
    ) -> tuple[list[int], list[Array]]:
        """Choose the best token and feed it back with the keys and values so far, until the end."""
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
            if ids[0] in self.config["ends"]:
                break
            written += ids
            if graph == "model":
                given["mask"] = np.ones((1, given["mask"].shape[1] + 1), dtype=np.bool_)
        return written, logits

    def _read(self, ids: list[int]) -> ModelOutput:
        """Run an encoder: a label for the text or for each token."""
        (found,) = self.graphs["model"].run(["logits"], {"ids": np.array([ids])})
        rows = found if found.ndim == 2 else found[0]
        labels = self.config["labels"] or [""] * rows.shape[1]
        return ModelOutput(
            " ".join(labels[int(row.argmax())] for row in rows).strip(), ids, list(rows)
        )

    def _text(self, ids: list[int]) -> str:
        """Decode all tokens but the special ones."""
        specials = set(self.config["specials"])
        text = self.decode([id_ for id_ in ids if id_ not in specials])
        for before in self.config["cleaned"]:
            text = text.replace(before, before.strip())
        return text


def _coder(
    path: Path, unk_id: int
) -> tuple[Callable[[str], list[int]], Callable[[Sequence[int]], str]]:
    """Return functions that encode a text, and decode ids without special tokens."""
    said = json.loads(path.read_text(encoding="utf-8"))
    if "models" in said:
        pieces = SentencePieces(path, said)
        return pieces.encode, pieces.decode
    from tokenizers import Tokenizer

    found = Tokenizer.from_file(str(path))
    found.encode_special_tokens = True  # a text never contains special tokens
    specials = {id_ for id_, each in found.get_added_tokens_decoder().items() if each.special}

    def encode(text: str) -> list[int]:
        ids = found.encode(text, add_special_tokens=False).ids
        return [unk_id if id_ in specials else id_ for id_ in ids]  # a unigram model finds them

    return encode, found.decode


if __name__ == "__main__":
    model = Model(Path(__file__).parent, *sys.argv[1:3])
    for line in map(str.strip, sys.stdin):
        sys.stdout.write((line and model.answer(line).text) + "\n")
