"""Reading and writing files.

reading   lines, plain or compressed, with errors that name the line
records   the rows of tables and JSON lines
writing   write, sync and rename: a file is complete or absent, even after a power failure; locks
"""
