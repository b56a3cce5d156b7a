"""How well a translator's attention aligns words, and what it costs to keep it while translating.

Alignment error rate (Och and Ney 2003) of the mean over the heads of the last layer, of the head
that the folder names, and of every head (layer, head, and 1 for the attention of the step after),
when references are read: against the links that eflomal
(Östling and Tiedemann 2016) finds in both directions, symmetrised by "grow-diag-final-and" (Koehn
et al. 2003). All in the model's own tokens. Our own aligner, by which a head is chosen and taught,
stands beside them.
"""

import argparse
import os
import re
import tempfile
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from benchmarks.paired import Figures, environment, paired, show
from dragoman.data.aligner import Aligner
from dragoman.data.corpus import CorpusConfig, Finding, read_pairs
from dragoman.data.dataset import PairDataset, Ragged
from dragoman.data.prepare import special_ids
from dragoman.decode import Head, Hypothesis
from dragoman.folder.opening import ModelFolder, open_folder
from dragoman.models import EncoderDecoder
from dragoman.nn import Arithmetic
from dragoman.tasks.held import Held
from dragoman.tasks.task import model_of
from dragoman.tasks.translate.ids import Ids, IdTranslator, Source
from dragoman.tasks.translate.linking import Rendered, alignments_of
from dragoman.tasks.translate.translator import Translator
from dragoman.text.marked import Marked, Tag
from dragoman.text.putback import put_back

Links = set[tuple[int, int]]
"""Places in the source and in the target."""
Pairs = list[tuple[list[int], list[int]]]
CORPUS = ("multi30k/val.en", "multi30k/val.de", "multi30k/train.en.xz", "multi30k/train.de.xz")
NEIGHBOURS = [(-1, 0), (0, -1), (1, 0), (0, 1), (-1, -1), (-1, 1), (1, -1), (1, 1)]


def symmetrised(forward: Links, backward: Links) -> Links:
    """Make one set of the links of both directions: grow-diag-final-and.

    Those of both; then, again and again, those of either that are beside one that is there and link
    a token that has none; then those of either between two tokens that have none.
    """
    either, links = forward | backward, forward & backward
    read, written = {s for s, _ in links}, {t for _, t in links}

    def take(s: int, t: int) -> None:
        links.add((s, t))
        read.add(s)
        written.add(t)

    before = -1
    while before < len(links):
        before = len(links)
        for s, t in sorted(links):
            for down, right in NEIGHBOURS:
                beside = s + down, t + right
                fresh = beside[0] not in read or beside[1] not in written
                if fresh and beside in either - links:
                    take(*beside)
    for s, t in [*sorted(forward), *sorted(backward)]:
        if s not in read and t not in written:
            take(s, t)
    return links


def by_eflomal(pairs: Pairs, wanted: int) -> list[Links]:
    """The links of the first pairs, learnt from all."""
    import eflomal

    sides = [[" ".join(map(str, pair[side])) for pair in pairs] for side in (0, 1)]
    with tempfile.TemporaryDirectory() as scratch:
        files = [f"{scratch}/{name}" for name in ("forward", "backward")]
        eflomal.Aligner().align(
            *sides, links_filename_fwd=files[0], links_filename_rev=files[1], quiet=True
        )
        both = [Path(file).read_text().splitlines()[:wanted] for file in files]
    ways = [
        [{(int(s), int(t)) for s, t in (x.split("-") for x in line.split())} for line in lines]
        for lines in both
    ]
    return [symmetrised(*way) for way in zip(*ways, strict=True)]


def error_rate(found: Iterable[Links], reference: Iterable[Links]) -> float:
    """1 - 2 |found and reference| / (|found| + |reference|), over all pairs."""
    shared = total = 0
    for some, others in zip(found, reference, strict=True):
        shared, total = shared + len(some & others), total + len(some) + len(others)
    return 1 - 2 * shared / total


def by_head(folder: ModelFolder, pairs: Pairs, heads: Sequence[Head]) -> dict[Head, list[Links]]:
    """What each head attends to most when the targets are read; ends of texts have no links."""
    translator, held = Translator.of(folder), Held.of(model_of(folder, EncoderDecoder), "fp32")
    found: dict[Head, list[Links]] = {}
    for head in heads:
        ids = IdTranslator(held, translator.specials, head=head)
        with ids.model.inference():
            most = [ids.attention(src, tgt)[: len(tgt)].argmax(1).tolist() for src, tgt in pairs]
        found[head] = [
            {(s, t) for t, s in enumerate(row) if s < len(src)}
            for row, (src, _) in zip(most, pairs, strict=True)
        ]
    return found


def by_our_aligner(pairs: Pairs, wanted: int, folder: ModelFolder) -> list[Links]:
    """The links of the first pairs, learnt from all."""
    src, tgt = (Ragged.of([pair[side] for pair in pairs]) for side in (0, 1))
    special = special_ids(folder.src_tokenizer)
    dataset = PairDataset(
        name="", src=src, tgt=tgt, special=special, identical=Finding(), content_hash=""
    )
    aligner = Aligner.learn([dataset], folder.tgt_tokenizer.vocab_size)
    rows = np.arange(wanted)
    links = aligner.links(src.take(rows), tgt.take(rows))
    return [{(s, t) for t, s in enumerate(links[n].tolist()) if s >= 0} for n in range(wanted)]


TAG = re.compile(r"<(/?)(g|bx|ex|x)\b[^>]*>")


def marked(line: str) -> Marked:
    """A line of the corpus of tags."""
    pieces, end = list[str | Tag](), 0
    for match in TAG.finditer(line):
        kind: Literal["open", "close", "void"] = "void"
        if match[2] == "g":
            kind = "close" if match[1] else "open"
        pieces += line[end : match.start()], Tag(match[0], kind)
        end = match.end()
    return Marked((*pieces, line[end:]))


def places(text: Marked) -> dict[tuple[str, str], int]:
    """Where each tag stands: the characters before it, white space aside."""
    found, opened, place = dict[tuple[str, str], int](), list[str](), 0
    for piece in text.pieces:
        if isinstance(piece, str):
            place += len("".join(piece.split()))
            continue
        if piece.kind == "open":
            opened.append(piece.raw)
        found[opened.pop() if piece.kind == "close" else piece.raw, piece.kind] = place
    return found


def tags_in_place(folder: ModelFolder, data: Path, lines: int) -> dict[str, float]:
    """The share of tags that stand in references where a human put them, by the links of each kind.

    Those of the folder's head, and those of our aligner, which learns from these texts alone.
    """
    files = [data / f"markup-tags/dev-eurlex.{code}" for code in ("en", "de")]
    texts = zip(*(map(marked, file.read_text("utf-8").splitlines()) for file in files), strict=True)
    both = [pair for pair in texts if places(pair[0]).keys() == places(pair[1]).keys()]
    both = both[:: max(1, len(both) // lines)]
    sides = zip(folder.tokenizers, zip(*both, strict=True), strict=True)
    columns = [tokenizer.encode_batch([m.text for m in side]) for tokenizer, side in sides]
    pairs: Pairs = [*zip(*columns, strict=True)]
    held = Held.of(model_of(folder, EncoderDecoder), "fp32")
    head = Head(*folder.config.alignment or ())
    ids = IdTranslator(held, Translator.of(folder).specials, head=head)
    linked = iter(by_our_aligner(pairs, len(pairs), folder))

    def by_aligner(src: Ids, tgt: Ids) -> Tensor:
        """Its links; the diagonal for a token that has none."""
        source_of = {t: s for s, t in next(linked)}
        rows = [source_of.get(t, t * len(src) // len(tgt)) for t in range(len(tgt))]
        return F.one_hot(torch.tensor([*rows, len(src)]), len(src) + 1).float()

    return {
        "head": placed(both, pairs, folder, ids.attention),
        "aligner": placed(both, pairs, folder, by_aligner),
    }


def placed(
    texts: Sequence[tuple[Marked, Marked]],
    pairs: Pairs,
    folder: ModelFolder,
    attention: Callable[[Ids, Ids], Tensor],
) -> float:
    """The share of the tags that `put_back` puts where the second text has them."""
    right = count = 0
    rest: dict[str, Any] = {"score": 0.0, "log_prob": 0.0, "token_log_probs": (), "stopped": "eos"}
    for (source, target), (src, tgt) in zip(texts, pairs, strict=True):
        pair = Source(src, text=source.text), Hypothesis(ids=tuple(tgt), **rest)
        sentence = Rendered(0, (0, len(target.text)), [pair])
        line, text = source.text, target.text
        found = alignments_of(line, text, [sentence], folder.tokenizers, attention)
        links = [link for each in found for link in each.text_links]
        wanted, got = places(target), places(put_back(source, text, links))
        right += sum(got.get(tag) == place for tag, place in wanted.items())
        count += len(wanted)
    return right / max(1, count)


def cost_of_keeping(path: Path, lines: list[str], precision: Arithmetic, rounds: int) -> Figures:
    """Tokens per second with the attention kept, beside the same without."""
    plain = Translator.load(path, device="cpu", precision=precision)
    found: Figures = {}
    for beam_size in (1, 5):

        def run(translator: Translator, beam_size: int = beam_size) -> int:
            results = translator.translate(lines, beam_size=beam_size)
            return sum(len(each.tokens) for each in results)

        rates = paired(partial(run, plain.aligning()), partial(run, plain), rounds)
        show(f"{precision}, beam {beam_size}", rates)
        found[f"{precision}, beam {beam_size}"] = rates
    return found


def _told(head: Head) -> str:
    return str(tuple(head))


def main(arguments: Sequence[str]) -> dict[str, Figures]:
    """Measure a model folder, print its error rates, and return the figures."""
    parser = argparse.ArgumentParser(prog="benchmarks alignment", description=__doc__)
    parser.add_argument("model", type=Path, help="folder of a translator")
    parser.add_argument("--lines", type=int, default=300, help="pairs that are measured")
    parser.add_argument("--texts", nargs="+", default=CORPUS, metavar="FILE", help="source, target")
    parser.add_argument("--precisions", nargs="*", default=["fp32", "int8"])
    parser.add_argument(
        "--tags", type=int, default=0, help="lines with tags to put into references"
    )
    parser.add_argument("--rounds", type=int, default=5)
    chosen = parser.parse_args(arguments)
    folder = open_folder(chosen.model)
    data = Path(os.environ["DRAGOMAN_DATA"])
    names = [str(data / name) for name in chosen.texts]
    texts = [
        pair
        for src, tgt in zip(names[::2], names[1::2], strict=True)
        for pair in read_pairs(CorpusConfig(src=src, tgt=tgt))
        if all(side.strip() for side in pair)
    ]
    lines, columns = min(chosen.lines, len(texts)), zip(*texts, strict=True)
    sides = zip(folder.tokenizers, columns, strict=True)
    pairs = [*zip(*(tokenizer.encode_batch(side) for tokenizer, side in sides), strict=True)]
    reference = by_eflomal(pairs, lines)
    decoder = model_of(folder, EncoderDecoder).decoder.each_layer()
    attention = decoder[-1].cross_attn
    assert attention is not None
    places = product(range(len(decoder)), range(attention.num_heads), (0, 1))
    every = [Head(*place) for place in places]
    found = by_head(folder, pairs[:lines], [Head(), *every])
    rates = {head: error_rate(links, reference) for head, links in found.items()}
    ours = error_rate(by_our_aligner(pairs, lines, folder), reference)
    named = Head(*folder.config.alignment or ())
    print(f"alignment error rate of {lines} pairs against eflomal's links")
    print(f"  our aligner                {ours:.3f}")
    print(f"  mean of the last layer     {rates[Head()]:.3f}")
    print(f"  the folder's, {_told(named):<12} {rates[named]:.3f}")
    best = min(every, key=rates.__getitem__)
    print(f"  the best one, {_told(best):<12} {rates[best]:.3f}")
    tags = tags_in_place(folder, data, chosen.tags) if chosen.tags else {}
    for links, share in tags.items():
        print(f"  tags in place, by {links:<8} {share:.3f}")
    speed: Figures = {}
    for precision in chosen.precisions:
        sources = [src for src, _ in texts[:lines]]
        speed |= cost_of_keeping(chosen.model, sources, precision, chosen.rounds)
    figures = {
        "environment": environment(["eflomal"]),
        "error": {"aligner": ours, **{_told(head): rate for head, rate in rates.items()}},
        "named": _told(named),
        "tags": tags,
        "speed": speed,
    }
    return {"alignment": figures}
