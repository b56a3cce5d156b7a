"""Learning from texts that nobody has labelled, for other tasks to start from."""
