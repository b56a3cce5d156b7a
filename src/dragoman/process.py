"""Environment variables that PyTorch's libraries read only while they are loaded."""

import os
import sys

SETTINGS = {
    "GOMP_SPINCOUNT": "1000",  # a waiting thread soon sleeps, and leaves its core to others
    "ONEDNN_PRIMITIVE_CACHE_CAPACITY": "128",  # compiled kernels that oneDNN keeps; else 1,024
    "LRU_CACHE_CAPACITY": "128",  # and those that PyTorch keeps on top of them
}


def prepare_process() -> bool:
    """Set the environment variables in which PyTorch runs best, for this process and its children.

    Waiting threads sleep early, so that other programs do not slow this one down severalfold, and
    the memory for compiled kernels is bounded. A variable that is already set keeps its value. The
    command line calls this itself; in Python, call it before anything imports torch. Returns False,
    and changes nothing, if PyTorch is already loaded.
    """
    if "torch" in sys.modules:
        return False
    for name, value in SETTINGS.items():
        if name == "GOMP_SPINCOUNT" and "OMP_WAIT_POLICY" in os.environ:
            continue  # it would override what the user has chosen
        os.environ.setdefault(name, value)
    return True
