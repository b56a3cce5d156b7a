"""Masked pretraining on unlabelled texts, for other tasks to start from."""
