"""Learning to tag the words of a text, and tagging them."""
