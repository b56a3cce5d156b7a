"""Us and our peers side by side, on the same machine, in the same minutes: ratios."""
