r"""Multilingual models: how often each corpus is learned, and the texts of the vocabulary.

A direction of :math:`n` pairs gets a share of training that grows with :math:`n^{1/T}`, and so does
a language of :math:`n` sentences in the texts that the vocabulary is trained on (Arivazhagan et al.
2019, "Massively Multilingual Neural Machine Translation in the Wild", sections 4.1 and 5). At a
temperature of :math:`T = 1` shares are those of the corpora; as it rises they become equal.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain

from dragoman.data.corpus import CorpusConfig, CorpusTexts
from dragoman.data.dataset import PairDataset
from dragoman.languages import LangCodes

Direction = tuple[str, str]
"""Codes of a source and a target language."""


def tempered(
    datasets: Sequence[PairDataset], temperature: float, max_length: int
) -> list[PairDataset]:
    """Weight datasets so that a direction of n usable pairs has a share of weight * n^(1/T).

    An epoch has as many pairs as before.
    """
    counts = [int(dataset.usable(max_length).sum()) for dataset in datasets]
    if temperature == 1 or not any(counts):
        return [*datasets]
    of_direction = Counter[LangCodes]()
    for dataset, count in zip(datasets, counts, strict=True):
        of_direction[dataset.languages] += count
    weights = [
        dataset.weight * max(1, of_direction[dataset.languages]) ** (1 / temperature - 1)
        for dataset in datasets
    ]
    before = sum(dataset.weight * n for dataset, n in zip(datasets, counts, strict=True))
    scale = before / sum(weight * n for weight, n in zip(weights, counts, strict=True))
    return [
        replace(dataset, weight=scale * weight)
        for dataset, weight in zip(datasets, weights, strict=True)
    ]


@dataclass(frozen=True, slots=True)
class BalancedTexts:
    """All sentences of corpora that name their languages, with rare languages repeated.

    The language with the most sentences comes once; each iteration reads the texts anew.
    """

    corpora: Sequence[CorpusConfig]
    temperature: float

    def __iter__(self) -> Iterator[str]:
        texts_of: dict[str | None, list[CorpusTexts]] = {}
        for corpus in self.corpora:
            texts_of.setdefault(corpus.src_lang, []).append(CorpusTexts([corpus], ["src"]))
            texts_of.setdefault(corpus.tgt_lang, []).append(CorpusTexts([corpus], ["tgt"]))
        counts = {
            language: sum(1 for _ in chain.from_iterable(texts))
            for language, texts in texts_of.items()
        }
        most = max(counts.values(), default=0)
        for language, texts in texts_of.items():
            passes = (most / max(1, counts[language])) ** (1 - 1 / self.temperature)
            yield from _repeated(texts, passes)


def _repeated(texts: Sequence[Iterable[str]], passes: float) -> Iterator[str]:
    """Yield all texts `int(passes)` times, then evenly spaced ones for the fraction."""
    whole, share = divmod(passes, 1)
    for _ in range(int(whole)):
        yield from chain.from_iterable(texts)
    for number, text in enumerate(chain.from_iterable(texts) if share else ()):
        if int((number + 1) * share) > int(number * share):
            yield text
