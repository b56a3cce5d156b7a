"""Small recipes that train in a second or two: labelled, tagged and plain texts."""

from pathlib import Path
from random import Random

from dragoman.data.batches import BatchConfig
from dragoman.data.tagged import TaggedLayout
from dragoman.models import EncoderOnlyConfig
from dragoman.models.heads import ClassificationHead, Head, MaskedLanguageHead, TaggingHead
from dragoman.nn import Rotary
from dragoman.tasks.classify.task import ClassifyRecipe, LabelledFiles
from dragoman.tasks.hiding import NoisyBatchConfig
from dragoman.tasks.pretrain.task import MaskedRecipe, UnlabelledFiles
from dragoman.tasks.tag.task import TaggedFiles, TagRecipe
from dragoman.text.tokenizer import MASK
from dragoman.text.train import TokenizerConfig
from dragoman.train.config import TrainConfig

FILLERS = ("it", "was", "so", "very", "the", "film", "and")
TOKENIZER = TokenizerConfig(vocab_size=330, specials=(MASK,))
BATCH = NoisyBatchConfig(max_tokens=120)
TRAIN = TrainConfig(
    max_steps=40,
    warmup_steps=4,
    learning_rate=1e-2,
    label_smoothing=0.0,
    validate_every=20,
    save_every=20,
    average_last=1,
    device="cpu",
    precision="fp32",
)


def model(head: Head) -> EncoderOnlyConfig:
    """Return a tiny model config."""
    return EncoderOnlyConfig(
        d_model=32,
        num_heads=2,
        d_ff=48,
        num_layers=1,
        norm_position="pre",
        positions=Rotary(),
        dropout=0.0,
        head=head,
    )


def labelled_file(path: Path, count: int = 80) -> Path:
    """Write texts whose label depends on one word."""
    draw = Random(1)
    lines = []
    for number in range(count):
        words = draw.choices(FILLERS, k=draw.randint(1, 5))
        words.insert(draw.randint(0, len(words)), ("bad", "good")[number % 2])
        lines.append(f"{number % 2}\t{' '.join(words)}\n")
    path.write_text("".join(lines), encoding="utf-8")
    return path


def tagged_file(path: Path, count: int = 80) -> Path:
    """Write sentences in which Ann is a name, together with Bo if that follows."""
    draw = Random(2)
    lines = []
    for _ in range(count):
        words = draw.choices((*FILLERS, "Bo"), k=draw.randint(2, 5))
        words.insert(draw.randint(0, len(words)), "Ann")
        tags = ["O"] * len(words)
        at = words.index("Ann")
        tags[at] = "B-PER"
        if words[at + 1 : at + 2] == ["Bo"]:
            tags[at + 1] = "I-PER"
        lines += [f"{word} {tag}\n" for word, tag in zip(words, tags, strict=True)] + ["\n"]
    path.write_text("".join(lines), encoding="utf-8")
    return path


def classify_recipe(folder: Path) -> ClassifyRecipe:
    """Return a recipe that classifies texts as good or bad."""
    return ClassifyRecipe(
        out=str(folder / "run"),
        data=LabelledFiles(train=str(labelled_file(folder / "texts.tsv"))),
        tokenizer=TOKENIZER,
        batch=BATCH,
        model=model(ClassificationHead()),
        train=TRAIN,
    )


def tag_recipe(folder: Path) -> TagRecipe:
    """Return a recipe that tags names."""
    return TagRecipe(
        out=str(folder / "run"),
        data=TaggedFiles(train=str(tagged_file(folder / "words.conll")), layout=TaggedLayout()),
        tokenizer=TOKENIZER,
        batch=BATCH,
        model=model(TaggingHead()),
        train=TRAIN,
    )


def masked_recipe(folder: Path) -> MaskedRecipe:
    """Return a recipe that predicts masked words in all of these texts."""
    (folder / "bare.txt").write_text("the film was bad\nit was so good\n\n" * 30, encoding="utf-8")
    return MaskedRecipe(
        out=str(folder / "pretrained"),
        data=UnlabelledFiles(
            texts=(str(folder / "bare.txt"),),
            labelled=(str(labelled_file(folder / "texts.tsv")),),
            tagged=(str(tagged_file(folder / "words.conll")),),
            cache=str(folder / "cache"),
        ),
        tokenizer=TOKENIZER,
        batch=BatchConfig(max_tokens=120),
        model=model(MaskedLanguageHead()),
        train=TRAIN,
    )
