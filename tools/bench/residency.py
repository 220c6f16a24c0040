"""How much of a file is in the page cache, and getting it out."""

from __future__ import annotations

import ctypes
import mmap
import os
from pathlib import Path

import numpy as np


def flush(path: Path) -> None:
    """Writes a file's dirty pages, which cannot be dropped."""
    with path.open("rb+") as file:
        os.fsync(file.fileno())


def drop(path: Path) -> float:
    """Drops a file from the page cache and gives the share of it that is still there."""
    with path.open("rb") as file:
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
    return resident(path)


def resident(path: Path) -> float:
    """The share of a file's pages that are in the page cache; NaN where the system does not tell."""
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY) as view:
        pages = -(-len(view) // mmap.PAGESIZE)
        states = (ctypes.c_ubyte * pages)()
        mapped = np.frombuffer(view, np.uint8)
        try:
            mincore = ctypes.CDLL(None, use_errno=True).mincore
            failed = mincore(ctypes.c_void_p(mapped.ctypes.data), ctypes.c_size_t(len(view)), states)
        except AttributeError:
            failed = 1
        del mapped
        return float("nan") if failed else float((np.frombuffer(states, np.uint8) & 1).mean())
