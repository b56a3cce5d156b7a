"""What a test may ask of the processor."""

import pytest
import torch

needs_onednn_products = pytest.mark.skipif(
    torch.backends.cpu.get_cpu_capability() != "AVX512" or torch.__version__ < "2.13",
    reason="PyTorch multiplies through oneDNN only on processors with AVX-512, and up to 2.12 "
    "through one whose rows depend on how many there are",
)
"""For laws that hold to the last bit only there: a row of a product has no neighbours."""
