"""Opening tensors wherever they are: .ptwm files, .safetensors files, and directories of either."""

from __future__ import annotations

import os
import stat
from typing import Any

from ptwm._safetensors import MAX_HEADER_NBYTES
from ptwm.random_access.file import FileIndex
from ptwm.random_access.index import TensorIndex
from ptwm.random_access.safetensors_file import SafetensorsIndex


def open_tensors(path: str | os.PathLike[str], *, backend: str = "mmap", threads: int | None = None) -> TensorIndex:
    """Opens a .ptwm file, a .safetensors file or a directory of either; what it is, its content says.

    A directory that has both is opened as .ptwm. Errors as those of `TensorIndex`.
    """
    if isinstance(path, (str, os.PathLike)) and os.path.isdir(path):
        from ptwm.random_access.directory import DirectoryIndex

        return DirectoryIndex(path, backend=backend, threads=threads, suffixes=(".ptwm", ".safetensors"))
    kind = SafetensorsIndex if _is_safetensors(path) else FileIndex
    return kind(path, backend=backend, threads=threads)


def open_buffer(data: Any, *, threads: int | None = None) -> TensorIndex:
    """Opens a .ptwm or .safetensors file that is in memory; see `TensorIndex.from_buffer`."""
    try:
        start = bytes(memoryview(data).cast("B")[:9])
    except (TypeError, ValueError):  # what is no buffer, FileIndex refuses
        start = b""
    kind = SafetensorsIndex if _starts_as_safetensors(start) else FileIndex
    return kind._of_buffer(data, threads)


def _is_safetensors(path: str | os.PathLike[str]) -> bool:
    """Whether a file is rather a .safetensors file than a .ptwm file. Leaves all errors to who opens it then."""
    try:
        if not stat.S_ISREG(os.stat(path).st_mode):
            return False
        with open(path, "rb") as file:
            start = file.read(9)
    except (OSError, ValueError, TypeError):
        return False
    # A broken file gets the error that suits its name.
    named_so = os.fspath(path).lower().endswith(".safetensors") and start[1:5] != b"ptwm"
    return named_so or _starts_as_safetensors(start)


def _starts_as_safetensors(start: bytes) -> bool:
    """Whether a length and the first character of a JSON object are there; a .ptwm file's magic is no such length."""
    return start[8:9] == b"{" and int.from_bytes(start[:8], "little") <= MAX_HEADER_NBYTES
