"""What a model costs before it is built: arithmetic, memory, time, energy and money."""
