"""Reading and writing files.

reading   lines and JSON lines, plain or compressed, with errors that name the line
writing   write, sync and rename: a file is whole or not there, also after a power failure; locks
"""
