"""The doors: parse, call, print. One file a verb; ``app`` puts them together,
and ``main`` is what the command runs first.

    pipes   lines in, lines out: standard input, files, progress

Nothing here imports PyTorch before a verb runs, so that ``dragoman --help`` answers at once.
"""
