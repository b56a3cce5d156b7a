"""A small classifier and a small tagger with random weights, in memory and in folders."""

from dataclasses import replace
from pathlib import Path

import torch
from tests.unit.tasks.tiny import make_tokenizer

from dragoman.folder.format import FolderConfig, ReadingDefaults, save_model
from dragoman.models import EncoderOnly, EncoderOnlyConfig
from dragoman.models.heads import ClassificationHead, Head, MaskedLanguageHead, TaggingHead
from dragoman.nn import Rotary
from dragoman.tasks.classify.classifier import Classifier
from dragoman.tasks.tag.tagger import Tagger

LABELS = ("bad", "good", "none of both")
TAGS = ("O", "B-X", "I-X", "B-Y", "I-Y")
CLASSIFY, TAG, MASKED = (
    ClassificationHead(labels=LABELS),
    TaggingHead(labels=TAGS),
    MaskedLanguageHead(),
)
TOKENIZER = make_tokenizer()
READING = ReadingDefaults(max_tokens=20)


def make_config(head: Head) -> EncoderOnlyConfig:
    """Return a config of two small layers; a tagger has word features."""
    return EncoderOnlyConfig(
        vocab_size=TOKENIZER.vocab_size,
        d_model=36,
        num_heads=2,
        d_ff=48,
        num_layers=2,
        norm_position="pre",
        positions=Rotary(),
        scale_embedding=True,
        word_features=300 if isinstance(head, TaggingHead) else 0,
        head=head,
    )


def make_model(head: Head) -> EncoderOnly:
    """Return a model with fixed random weights and confident predictions."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(3)
        model = EncoderOnly(make_config(head))
    with torch.no_grad():
        for layer in model.head.modules():
            if isinstance(layer, torch.nn.Linear):
                layer.weight *= 4.0
    return model


def make_classifier(reading: ReadingDefaults = READING) -> Classifier:
    """Return a classifier in memory."""
    return Classifier(make_model(CLASSIFY), TOKENIZER, LABELS, reading)


def make_tagger(reading: ReadingDefaults = READING) -> Tagger:
    """Return a tagger in memory."""
    return Tagger(make_model(TAG), TOKENIZER, TAGS, reading)


def save_reader(folder: Path, head: Head) -> Path:
    """Save such a model to a folder."""
    config = FolderConfig(model=make_config(head), reading=replace(READING))
    save_model(folder, make_model(head), config, tokenizers=(TOKENIZER, TOKENIZER))
    return folder
