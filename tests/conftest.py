"""What all tests share."""

from hypothesis import settings

# A drawn example has no time limit: the machines that run these tests are shared. A failure prints
# the code that repeats it.
settings.register_profile("dragoman", deadline=None, print_blob=True)
settings.load_profile("dragoman")
