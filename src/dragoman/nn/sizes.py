"""The sizes of attention and the check that they are compatible."""

from dragoman.errors import InputError
from dragoman.ranges import Count, check_range


def head_width(
    d_model: int, num_heads: int, num_kv_heads: int | None = None, head_dim: int | None = None
) -> int:
    """Return the width of a head, `d_model / num_heads` unless `head_dim` is given.

    Raises InputError if a size is not an integer of 1 or more, or if sizes do not divide each
    other.
    """
    optional = {"num_kv_heads": num_kv_heads, "head_dim": head_dim}
    sizes = {name: size for name, size in optional.items() if size is not None}
    for name, size in {"d_model": d_model, "num_heads": num_heads, **sizes}.items():
        check_range(name, size, Count)
    if head_dim is None and d_model % num_heads:
        raise InputError(
            f"d_model = {d_model} is not a multiple of num_heads = {num_heads}; change one of them "
            "or set head_dim"
        )
    if num_kv_heads is not None and num_heads % num_kv_heads:
        raise InputError(
            f"num_heads = {num_heads} is not a multiple of num_kv_heads = {num_kv_heads}"
        )
    return head_dim or d_model // num_heads
