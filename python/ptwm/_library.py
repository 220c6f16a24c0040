"""libptwm as cffi sees it, and what it needs from Python: zstd."""

from __future__ import annotations

import functools
import os
import threading
from collections import deque
from typing import Any

from ptwm._ptwm import ffi, lib

__all__ = [
    "ffi",
    "lib",
    "new_struct",
    "none_or",
    "path_to_c",
    "take_raised",
    "thread_count",
    "to_bytes",
    "zstd_provider",
]

MAX_THREADS = 1024


def new_struct(name: str) -> Any:
    """A zeroed public struct that knows its size, as `struct <name> *`."""
    pointer, nbytes = _struct_type(name)
    struct = ffi.new(pointer)
    struct.struct_nbytes = nbytes
    return struct


@functools.cache
def _struct_type(name: str) -> tuple[Any, int]:
    return ffi.typeof(f"struct {name} *"), ffi.sizeof(f"struct {name}")


def none_or(value: int) -> int | None:
    """A 64-bit field of a struct, with None for PTWM_NONE."""
    return None if value == lib.PTWM_NONE else int(value)


def to_bytes(pointer: Any, nbytes: int) -> bytes:
    """A copy of memory that C owns; pointer may be NULL if there is nothing."""
    return bytes(ffi.buffer(ffi.cast("const char *", pointer), nbytes)) if nbytes else b""


def thread_count(threads: int | None) -> int:
    """A number of threads as the library takes it. ValueError unless it is None or 0 .. 1024 (0, None: all CPUs)."""
    if threads is None:
        return 0
    if not 0 <= threads <= MAX_THREADS:
        raise ValueError(f"threads is 0 .. {MAX_THREADS}, not {threads}")
    return threads


def path_to_c(path: str | os.PathLike[str]) -> bytes:
    """A path as the library takes it. TypeError if it is none, ValueError if it contains NUL."""
    text = os.fspath(path)
    if not isinstance(text, str):
        raise TypeError(f"a path is a str or os.PathLike, not {type(path).__name__}")
    encoded = os.fsencode(text)
    if b"\0" in encoded:
        raise ValueError(f"path {text!r} contains a NUL character")
    return encoded


# --------------------------------------------------------------------------------------------------------------- zstd

# Objects of the zstandard package must not be used by two threads at once; the library calls from many.
_zstd = threading.local()


def _compressor(level: int) -> Any:
    compressors = _zstd.__dict__.setdefault("compressors", {})
    if level not in compressors:
        import zstandard

        compressors[level] = zstandard.ZstdCompressor(level=level, write_checksum=False, write_content_size=True)
    return compressors[level]


def _decompressor() -> Any:
    if not hasattr(_zstd, "decompressor"):
        import zstandard

        _zstd.decompressor = zstandard.ZstdDecompressor()
    return _zstd.decompressor


# What callbacks raised that is no failure of zstd's, such as KeyboardInterrupt and MemoryError, until the call that
# made C call them fails for it.
_raised: deque[BaseException] = deque()


def take_raised() -> BaseException | None:
    """What a zstd callback raised, for whoever turns its failure into an exception; once."""
    try:
        raised = _raised.pop()
    except IndexError:
        return None
    _raised.clear()  # what other threads raised belonged to the same failure
    return raised


def _failed(exception: Any, value: Any, traceback: Any) -> int:
    """What a callback that raised answers; C turns it into a status, so nothing is to be printed."""
    if not isinstance(value, Exception) or isinstance(value, (MemoryError, ImportError)):
        _raised.append(value)
    return 1


@ffi.def_extern(name="ptwm_python_zstd_compress", error=1, onerror=_failed)  # type: ignore[untyped-decorator]
def _zstd_compress(
    context: Any, dst: Any, dst_capacity: int, dst_nbytes: Any, src: Any, src_nbytes: int, level: int
) -> int:
    frame = _compressor(level).compress(ffi.buffer(src, src_nbytes))
    if len(frame) > dst_capacity:
        return 1
    ffi.memmove(dst, frame, len(frame))
    dst_nbytes[0] = len(frame)
    return 0


@ffi.def_extern(name="ptwm_python_zstd_decompress", error=1, onerror=_failed)  # type: ignore[untyped-decorator]
def _zstd_decompress(context: Any, dst: Any, dst_nbytes: int, src: Any, src_nbytes: int) -> int:
    # The library has checked that the frame declares dst_nbytes, which is what zstandard allocates.
    content = _decompressor().decompress(ffi.buffer(src, src_nbytes), allow_extra_data=False)
    if len(content) != dst_nbytes:
        return 1
    ffi.memmove(dst, content, dst_nbytes)
    return 0


# Given to every reader and writer; C keeps the pointer, this module keeps the struct.
zstd_provider = ffi.new(
    "struct ptwm_zstd *",
    {"compress": lib.ptwm_python_zstd_compress, "decompress": lib.ptwm_python_zstd_decompress, "context": ffi.NULL},
)
