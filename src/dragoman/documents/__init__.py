"""Documents: their text translated, every other byte as it was."""
