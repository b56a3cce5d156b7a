"""Code for reproducible bits or speed on a processor, behind plain names.

Products whose rows do not depend on each other (`products`), cheap random bits and
activations that round the same at any size (`elementwise`), dense attention by products or by a
fused kernel (`attention`), storage that copies little (`storage`), and the k best of a row in a
defined order (`ranking`). Nothing here changes what is computed, only how.
"""
