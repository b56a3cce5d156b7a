"""The command line: it parses, calls a task or a lens, and prints.

    main     what the command runs first; Ctrl-C
    app      the verbs, the exit codes, errors in the arguments
    options  options made from the fields of a dataclass: decoding, loading, cost
    output   where results go: standard output or a file, line by line
    pipes    standard input and output, messages, progress

Nothing here imports PyTorch before a verb runs, so that `dragoman --help` answers at once.
"""
