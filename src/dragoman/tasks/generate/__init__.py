"""Learning to go on with a text, and going on."""
