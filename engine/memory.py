"""Give freed memory back to the system while a model is put together.

Building allocates and frees matrices of a few MB by the hundred. glibc keeps such pieces for itself, in holes between
the packed weights: 190 MB of them for the embedded model in fp32. Elsewhere the allocator does as it likes; nothing
depends on this.
"""

from __future__ import annotations

import ctypes
import functools
import sys
from collections.abc import Callable


def return_freed_memory() -> None:
    """Hand whole free pages back, where the C library can (glibc); else nothing."""
    trim = _malloc_trim()
    if trim is not None:
        trim(0)


@functools.cache
def _malloc_trim() -> Callable[[int], int] | None:
    if not sys.platform.startswith("linux"):
        return None
    try:
        trim: Callable[[int], int] = ctypes.CDLL(None).malloc_trim
    except (OSError, AttributeError):  # musl
        return None
    return trim
