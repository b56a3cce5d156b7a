"""The word alignment of a translation at checkpoints of the model's run: a strip of pictures.

Every picture has the same tokens, those of the finished model's translation, so that only the
attention changes from one to the next.
"""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch

from dragoman.errors import InputError
from dragoman.folder.opening import open_folder
from dragoman.lens.inspection import Inspection
from dragoman.lens.pictures import blank, draw_cells, save
from dragoman.lens.trace import trace_translation
from dragoman.models import EncoderDecoder
from dragoman.tasks.task import model_of
from dragoman.text.tokenizer import Tokenizer
from dragoman.train.checkpoint import checkpoints, load_checkpoint
from dragoman.train.runfolder import RunFolder

MOST = 8
"""Maximum number of pictures of a film."""
COLUMNS = 4
_INCHES_A_TOKEN = 0.28
_INCHES_BESIDE = 0.9
_INCHES_BELOW = 0.3


def plot_film(inspection: Inspection, path: Path | str) -> Path:
    """Draw what `frames_of` returns, each frame above its step.

    Writes a PNG and returns its path. Raises InputError as `frames_of` does, and if nothing can be
    written there.
    """
    frames = frames_of(inspection)
    src, tgt = inspection.src.tokens, inspection.tgt.tokens if inspection.tgt else ()
    columns = min(COLUMNS, len(frames))
    rows = -(-len(frames) // columns)
    figure = blank(
        _INCHES_BESIDE + _INCHES_A_TOKEN * len(src) * columns,
        _INCHES_BESIDE + (_INCHES_A_TOKEN * len(tgt) + _INCHES_BELOW) * rows,
    )
    grid = figure.subplots(rows, columns, squeeze=False).ravel()
    for axes, (step, weights_TS) in zip(grid, frames, strict=False):
        draw_cells(axes, weights_TS, src, tgt)
        axes.label_outer()
        axes.text(0.5, -0.03, f"step {step:,}", transform=axes.transAxes, ha="center", va="top")
    for axes in grid[len(frames) :]:
        axes.set_axis_off()
    return save(figure, path)


def frames_of(inspection: Inspection) -> list[tuple[int, np.ndarray]]:
    """Return the step and the aligning cross-attention (T, S) of checkpoints that the run kept.

    At most `MOST` of them, closer together at the beginning of the run, when more changes. Raises
    InputError for a model that does not translate and a run without complete checkpoints.
    """
    if inspection.tgt is None:
        raise InputError(f"{inspection.model} does not translate, and --film needs a translation.")
    found = checkpoints(RunFolder(Path(inspection.model)).checkpoints)
    if not found:
        raise InputError(f"{inspection.model} has no training/checkpoints, which --film needs.")
    folder = open_folder(inspection.model)
    src_ids = _ids(folder.src_tokenizer, inspection.src.tokens)
    ids = _ids(folder.tgt_tokenizer, inspection.tgt.tokens)
    read_ids = [folder.tgt_tokenizer.bos_id, *ids[:-1]]
    model, aligns = model_of(folder, EncoderDecoder), folder.config.alignment
    parameters = dict(model.named_parameters())
    frames = []
    for place in spread(len(found)):
        state, tensors = load_checkpoint(found[place], ["weights"])
        if tensors["weights"].keys() != parameters.keys():
            raise InputError(
                f"{found[place]} holds a part of the weights, or adapters, and --film needs all."
            )
        with torch.no_grad():
            for name, weight in tensors["weights"].items():
                parameters[name].copy_(weight)
        cross = trace_translation(model, src_ids, read_ids, alignment=aligns)["cross"]
        frames += [(state.progress.step, mean_TS.numpy()) for mean_TS in cross.means.values()]
    return frames


def spread(count: int) -> list[int]:
    """Return at most `MOST` of the indices 0 to count - 1, geometrically spaced, with the last."""
    return sorted({round(number) - 1 for number in np.geomspace(1, count, MOST).tolist()})


def _ids(tokenizer: Tokenizer, tokens: Sequence[str]) -> list[int]:
    """Return the ids of tokens that are spelled as `Tokenizer.tokens` does."""
    known = {token: id_ for id_, token in enumerate(tokenizer.tokens(range(tokenizer.vocab_size)))}
    return [known[token] for token in tokens]
