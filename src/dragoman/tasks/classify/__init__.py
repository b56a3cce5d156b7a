"""Learning to say the label of a text, and saying it."""
