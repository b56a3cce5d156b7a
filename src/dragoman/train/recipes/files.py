"""The files of a task whose examples stand in one file."""

from dataclasses import dataclass
from pathlib import Path

from dragoman.errors import InputError
from dragoman.train.recipes.base import DataFiles, check_held_out


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingFiles(DataFiles):
    """A file to learn from, and one for validation."""

    train: str | None = None
    """File to learn from; .gz, .xz and .zst are read as they are."""
    valid: str | None = None
    """File for validation."""
    hold_out: int = 1000
    """Examples taken from `train` where no validation file is given; at most a tenth."""

    def __post_init__(self) -> None:
        """Refuse to validate by nothing."""
        if self.valid is None:
            check_held_out(self.hold_out)

    @property
    def training(self) -> Path:
        """The file to learn from."""
        if self.train is None:
            raise InputError("there is nothing to learn from: set data.train")
        return self.find(self.train)

    @property
    def validation(self) -> Path | None:
        """The file for validation, if one is given."""
        return None if self.valid is None else self.find(self.valid)

    def check(self) -> None:
        """Raise InputError unless every file is there."""
        _ = self.training, self.validation

    @property
    def said(self) -> tuple[str, str]:
        """What the model card says of them."""
        held_out = f"up to {self.hold_out} examples held out from the training data"
        return (
            f"training: `{self.train}`",
            f"validation: {held_out if self.valid is None else f'`{self.valid}`'}",
        )
