"""What every room does with files.

durable     write, rename and sync, so that a file survives a power failure
"""
