"""The exceptions, and the one place that turns the library's statuses into them."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from typing import Any

from ptwm._library import ffi, lib, new_struct, none_or, take_raised

__all__ = ["FormatError", "IntegrityError", "PtwmError", "exception", "new_error"]


class PtwmError(ValueError):
    """Something is wrong with a file's content, or with what the file asks for."""


class FormatError(PtwmError):
    """Not a .ptwm file, a truncated or malformed one, or one of a version or feature that is not known."""


class IntegrityError(PtwmError):
    """A checksum or a hash does not match: the file is damaged."""


# Reading: what is not here is a FormatError.
_READING: dict[int, type[Exception]] = {
    lib.PTWM_ERR_ARGUMENT: ValueError,
    lib.PTWM_ERR_RANGE: ValueError,
    lib.PTWM_ERR_STATE: ValueError,
    lib.PTWM_ERR_LIMIT: PtwmError,
    lib.PTWM_ERR_ZSTD_UNAVAILABLE: PtwmError,
    lib.PTWM_ERR_CHECKSUM: IntegrityError,
    lib.PTWM_ERR_HASH: IntegrityError,
    lib.PTWM_ERR_NO_TENSOR: KeyError,
    lib.PTWM_ERR_MEMORY: MemoryError,
}

# Writing: these are the caller's doing; the others are as in reading.
_WRITING: dict[int, type[Exception]] = {
    lib.PTWM_ERR_DUPLICATE_NAME: ValueError,
    lib.PTWM_ERR_SIZE_MISMATCH: ValueError,
    lib.PTWM_ERR_CHAIN: ValueError,
    lib.PTWM_ERR_LIMIT: ValueError,
    lib.PTWM_ERR_ZSTD: PtwmError,
}


def new_error() -> Any:
    """An empty `struct ptwm_error *` for the library to fill."""
    error = new_struct("ptwm_error")
    error.tensor = error.file_offset = lib.PTWM_NONE
    return error


def exception(
    status: int,
    error: Any = None,
    *,
    path: str | os.PathLike[str] | None = None,
    tensor: str | None = None,
    name_of: Callable[[int], str | None] | None = None,
    writing: bool = False,
) -> BaseException:
    """The exception to raise for a status that is not PTWM_OK: what a callback raised, or what the status means.

    Parameters
    ----------
    error
        The `struct ptwm_error *` that the call filled, or None.
    path
        The file concerned, if it has a name.
    tensor, name_of
        The name of the tensor concerned, or how to find it from the index that `error` holds.
    writing
        Whether unsuitable content came from the caller rather than from a file.
    """
    if status == lib.PTWM_ERR_IO:
        return _os_error(error, path)
    raised = take_raised() if status == lib.PTWM_ERR_ZSTD else None
    if raised is not None:
        return raised
    if tensor is None and name_of is not None and error is not None and error.tensor != lib.PTWM_NONE:
        tensor = name_of(error.tensor)
    kind = _READING.get(status, FormatError)
    if writing:
        kind = _WRITING.get(status, kind)
    return kind(_message(status, error, path, tensor))


def _os_error(error: Any, path: str | os.PathLike[str] | None) -> OSError:
    number = error.os_error if error is not None and error.os_error else errno.EIO
    if path is None:
        return OSError(number, os.strerror(number))
    return OSError(number, os.strerror(number), os.fspath(path))


def _message(status: int, error: Any, path: str | os.PathLike[str] | None, tensor: str | None) -> str:
    parts = []
    if path is not None:
        parts.append(os.fspath(path))
    if tensor is not None:
        parts.append(f"tensor {tensor!r}")
    what = ffi.string(lib.ptwm_status_string(status)).decode("ascii")
    offset = none_or(error.file_offset) if error is not None else None
    parts.append(what if offset is None else f"{what} at byte {offset}")
    detail = ffi.string(error.detail).decode("utf-8", "replace") if error is not None else ""
    if detail and detail != what:
        parts.append(detail)
    return ": ".join(parts)
