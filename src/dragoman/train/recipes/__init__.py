"""What can be set in a training run: one dataclass for each task, on the parts all share."""
