"""Classification: one label for each text."""
